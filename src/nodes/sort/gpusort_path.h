/*-------------------------------------------------------------------------
 *
 * gpusort_path.h
 *	  Offering the planner paths that sort by GpuSort.
 *
 * Wherever sorted rows are of use up to two paths are made (gs_offer()):
 *
 *		[what wants the order ->] GpuSort -> cheapest path
 *		[what wants the order ->] GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the second one the rows reach the device from all processes at once and
 * none goes through Gather, whose part is to launch and join the workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_PATH_H
#define GS_GPUSORT_PATH_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"

#include "compat.h"
#include "guc.h"

extern const CustomPathMethods gs_sort_path_methods;
extern const CustomPathMethods gs_feed_path_methods;

typedef struct GsOffer GsOffer;

/* One place where sorted rows are of use.  Structs that begin with it add what a kind needs. */
struct GsOffer
{
	RelOptInfo *rel;			/* that the paths are for */
	List	   *pathkeys;		/* the order */
	Path	   *serial;			/* whose rows are sorted; NULL: no such path is wanted */
	Path	   *partial;		/* the same in workers, to be fed; NULL: none */
	double		rows;			/* that are sorted, */
	double		rows_back;		/* and that GpuSort returns of them */
	double		groups;			/* that what is above makes of these, */
	List	   *having;			/* and their condition */
	Cost		settling;		/* of what the keys do not tell; found by gs_offer_complete() */
	bool		in_order_too;	/* offer it also if the serial path is in order: what is above would
								 * sort once more */
	bool		forced;			/* gpusort.force is on, and leaves rel no other paths */

	/* What wants the order, over a GpuSort; NULL: it cannot be made.  Not set: nothing is above it. */
	Path	   *(*above) (PlannerInfo *root, const GsOffer *offer, Path *sorted);

	/* Add the paths to rel's. */
	void		(*add) (PlannerInfo *root, const GsOffer *offer, List *paths);
};

/*
 * Ask this first, because it is cheap: could sorting these rows for the relation pay off?
 * forced: gpusort.force counts here, and is on.  Inline, because it is asked of each pair of tables.
 */
static inline bool
gs_offer_may_pay(const RelOptInfo *rel, const Path *input, bool forced)
{
	return input != NULL && (forced || (input->rows >= gs_guc_min_rows && enable_sort)) &&
		input->param_info == NULL && rel->pathlist != NIL && !IS_OTHER_REL(rel);
}

/* The rows to be sorted are those of input_rel, with a column for each of offer->pathkeys; all come back. */
extern void gs_offer_set_input(PlannerInfo *root, GsOffer *offer, RelOptInfo *input_rel);

/* Make the paths, where gpusort can sort so, and add them. */
extern void gs_offer(PlannerInfo *root, GsOffer *offer);

/* The GpuSorts alone, one or two.  That gpusort can sort so is known. */
extern List *gs_offer_sorts(PlannerInfo *root, const GsOffer *offer);

/*
 * The order by these clauses over an aggregate's args as pathkeys, behind those of GROUP BY.  NIL: there is
 * nothing to sort by, or a column has no pathkey of its own, because the query makes it equal to another
 * one or to a constant.  In the finished plan that could not be seen (gpusort_keys.c).
 */
extern List *gs_agg_pathkeys(PlannerInfo *root, List *clauses, List *args);

/* A path that wants an order: an Agg in one phase over sorted rows, by the query's GROUP BY. */
extern Path *gs_agg_path(PlannerInfo *root, const GsOffer *offer, Path *sorted);

/*
 * Complete an offer: if keys do not hold all of its pathkeys, settling costs something, and all rows come
 * back.  False: gpusort cannot sort so.
 */
extern bool gs_offer_complete(PlannerInfo *root, GsOffer *offer);

/* May a plan for this query be run a second time, unseen by the user, if it is not volatile? */
extern bool gs_sort_may_rerun(const Query *parse);

/*
 * gpusort_rivals.c: what PostgreSQL's own paths for groups and DISTINCT cost, beyond what it charges
 */

/*
 * Add paths that sort, beside others that hash; take away those of the others that cost more
 * by all that PostgreSQL does not count.
 */
extern void gs_add_sorted_paths(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Sorted rows for groups, or DISTINCT. */
typedef struct GsGroupOffer
{
	GsOffer		offer;
	List	   *exprs;			/* that make groups */
	List	   *wanted;			/* the order that the query's next step needs */

	/*
	 * For aggregates in two phases of hashing.  NULL for DISTINCT: there PostgreSQL hashes alike in both
	 * phases, so the second hash table is filled in the order of the first.  If groups turn out to be many,
	 * it grows past work_mem, and then each group makes a pass over the files: minutes instead of a second.
	 */
	const AggClauseCosts *final_costs;
} GsGroupOffer;

/*
 * The same for a GsGroupOffer.  Nothing is added where few groups are expected.  Where their number is
 * no more than a guess the choice is left to execution (gpuchoice.h); if that cannot be, nothing
 * is added either.
 */
extern void gs_add_grouped_paths(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Sorted rows for aggregates that sort by themselves in PostgreSQL's paths. */
typedef struct GsAggOffer
{
	GsOffer		offer;
	const Aggref *agg;			/* one of them */
	int			sorts;			/* how many sorts like its own are saved */
	bool		order_helps;	/* where their input is in this order they only compare neighbours */
	bool		few_come_back;	/* if all rows are one group: of the GpuSort's */
} GsAggOffer;

/*
 * For a GsAggOffer: the cheapest of the paths takes the place of all others if it is cheaper than these with
 * their sorts.
 */
extern void gs_add_agg_path(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Does a relation's cheapest path hash groups? */
extern bool gs_cheapest_hashes(const RelOptInfo *rel);

/* How many values has an expression in its table?  0: there are no statistics of it. */
extern double gs_known_values(PlannerInfo *root, Node *expr);

/* How many groups PostgreSQL expects; 0: none of its paths tells. */
extern double gs_expected_groups(const RelOptInfo *grouped_rel);

/*
 * The places where paths are offered, each with what the planner's hook got
 */

/* gpusort_order_path.c: a query's ORDER BY. */
extern void gs_order_offer_paths(PlannerInfo *root, RelOptInfo *input_rel,
								 RelOptInfo *ordered_rel);

/* gpusort_upper_path.c: GROUP BY, DISTINCT and window functions. */
extern void gs_group_offer_paths(PlannerInfo *root, RelOptInfo *input_rel,
								 RelOptInfo *grouped_rel, const GroupPathExtraData *extra);
extern void gs_distinct_offer_paths(PlannerInfo *root, RelOptInfo *input_rel,
									RelOptInfo *distinct_rel);
extern void gs_window_offer_paths(PlannerInfo *root, RelOptInfo *input_rel,
								  RelOptInfo *window_rel);

/* gpusort_union.c: UNION; other relations are left alone. */
extern void gs_union_offer_paths(PlannerInfo *root, RelOptInfo *rel);

/* gpusort_join_path.c: merge joins. */
extern void gs_join_offer_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
							   RelOptInfo *innerrel, JoinType jointype,
							   JoinPathExtraData *extra);

/* gpusort_agg_path_15.c: the sorts of aggregates with DISTINCT or ORDER BY. */
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
extern void gs_agg_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
							   const GroupPathExtraData *extra);

/*
 * Do two aggregates with DISTINCT drop the same rows, and sort in the same order?
 * May one be given any one of equal values: does it only count them, or are equal ones the same,
 * byte by byte?
 */
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);
extern bool gs_agg_takes_any_equal(const Aggref *agg);
#endif

#endif							/* GS_GPUSORT_PATH_H */
