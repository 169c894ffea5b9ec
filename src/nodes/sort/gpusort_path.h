/*-------------------------------------------------------------------------
 *
 * gpusort_path.h
 *	  Offering the planner paths that sort by GpuSort.
 *
 * Where sorted rows are useful, up to two paths are made (gs_offer()):
 *
 *		[node that needs the order ->] GpuSort -> cheapest path
 *		[node that needs the order ->] GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the second path all processes hand rows to the device.  The Gather only launches workers, and waits for
 * them; rows do not go through it.
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
#include "plan/sort_cost.h"

extern const CustomPathMethods gs_sort_path_methods;
extern const CustomPathMethods gs_feed_path_methods;

typedef struct GsOffer GsOffer;

/* A place where sorted rows are useful.  Structs for kinds of places begin with it. */
struct GsOffer
{
	RelOptInfo *rel;			/* gets the paths */
	List	   *pathkeys;		/* the order */
	Path	   *serial;			/* input of the first path; NULL: make no such path */
	Path	   *partial;		/* input of the second path, in workers; NULL: make no such path */
	double		rows;			/* rows to be sorted */
	double		rows_back;		/* rows that GpuSort returns */
	double		limit;			/* only this many sorted rows are wanted; <= 0: all, or it is not known */
	double		groups;			/* groups of these rows in the node above */
	List	   *having;			/* the condition of these groups */
	List	   *wanted;			/* the order that the query's next step needs */
	double		settling;		/* time of settling, found by gs_offer_complete() */
	const Aggref *agg;			/* an aggregate that needs no sort of its own in this order, */
	int			sorts;			/* and the number of sorts that are saved */
	double		sure_groups;	/* PostgreSQL's number of groups is a guess, but there are at least this
								 * many; 0: it is no guess */
	bool		in_order_too;	/* offer it also if the serial path is in order, because the node above
								 * would sort once more */
	bool		forced;			/* gpusort.force is on, and leaves rel no other paths */

	/* Make the path that needs the order, over a GpuSort; NULL: not possible.  Not set: no path is above. */
	Path	   *(*above) (PlannerInfo *root, const GsOffer *offer, Path *sorted);

	/* Add the paths to rel's. */
	void		(*add) (PlannerInfo *root, const GsOffer *offer, List *paths);
};

/*
 * A cheap test to be called first: could sorting these rows for the relation pay off?  forced: gpusort.force
 * is on, and counts here.  Inline, because it is called for each pair of tables.
 */
static inline bool
gs_offer_may_pay(const RelOptInfo *rel, const Path *input, bool forced)
{
	return input != NULL && (forced || (input->rows >= gs_guc_min_rows && enable_sort)) &&
		input->param_info == NULL && rel->pathlist != NIL && !IS_OTHER_REL(rel);
}

/* Let the offer sort input_rel's rows, with a column for each of offer->pathkeys, and return all rows. */
extern void gs_offer_set_input(PlannerInfo *root, GsOffer *offer, RelOptInfo *input_rel);

/* Make the paths, if gpusort can sort in this order, and add them. */
extern void gs_offer(PlannerInfo *root, GsOffer *offer);

/* Only the GpuSort paths, one or two.  The caller knows that gpusort can sort in this order. */
extern List *gs_offer_sorts(PlannerInfo *root, const GsOffer *offer);

/*
 * Pathkeys of GROUP BY, followed by those of these clauses over an aggregate's args.  NIL: there is nothing
 * to sort by, or a column has no pathkey of its own, because the query makes it equal to another column or to
 * a constant.  gpusort_keys.c could not see that in the finished plan.
 */
extern List *gs_agg_pathkeys(PlannerInfo *root, List *clauses, List *args);

/* For GsOffer.above: an Agg in one phase over sorted rows, by the query's GROUP BY. */
extern Path *gs_agg_path(PlannerInfo *root, const GsOffer *offer, Path *sorted);

/*
 * Complete an offer.  If keys do not hold all pathkeys, settling has a cost, and all rows come back.  False:
 * gpusort cannot sort in this order.
 */
extern bool gs_offer_complete(PlannerInfo *root, GsOffer *offer);

/* May a plan for this query be run a second time, unseen by the user, if it is not volatile? */
extern bool gs_sort_may_rerun(const Query *parse);

/*
 * gpusort_time.c: how long paths take
 */

/* A path of GpuSort. */
typedef struct GsSortPath
{
	CustomPath	custom;
	GsTime		time;
} GsSortPath;

typedef struct GsPathTimes
{
	PlannerInfo *root;
	double		groups;			/* hash tables have no more groups; 0: as many as PostgreSQL expects */
	const Aggref *agg;			/* as in GsOffer */
	int			sorts;
} GsPathTimes;

/* limit: as in GsOffer. */
extern GsTime gs_time_of_path(const GsPathTimes *context, const Path *path, double limit);

/* The path below a path that the planner made above scans and joins.  NULL: the path is none of these. */
extern const Path *gs_path_below(const Path *path);

/* The GpuSort that a path gets its rows from, maybe through a Unique; NULL: it does not. */
extern const Path *gs_path_sort(const Path *path);

/*
 * gpusort_rivals.c: the choice between gpusort's paths and PostgreSQL's
 */

/* The fastest of these paths takes the place of PostgreSQL's, if it is faster than all of them. */
extern void gs_add_fastest(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Sorted rows for groups, or DISTINCT. */
typedef struct GsGroupOffer
{
	GsOffer		offer;
	List	   *exprs;			/* the grouping expressions */

	/*
	 * For aggregates in two phases of hashing.  NULL for DISTINCT: PostgreSQL uses the same hash in both
	 * phases, so the second hash table is filled in the first one's order.  If there are many groups, it
	 * grows past work_mem.  Then each group makes a pass over the files: minutes instead of a second.
	 */
	const AggClauseCosts *final_costs;
} GsGroupOffer;

/*
 * The same for a GsGroupOffer.  If the number of groups is only a guess, and decides, a GpuChoice is added
 * (gpuchoice.h), or nothing if that is not possible.
 */
extern void gs_add_grouped_paths(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Sorted input for aggregates that PostgreSQL would sort internally. */
typedef struct GsAggOffer
{
	GsOffer		offer;
	bool		few_come_back;	/* GpuSort returns few rows if all rows are one group */
	bool		alone;			/* all aggregates of the query have this DISTINCT, or are percentiles */
} GsAggOffer;

/* The number of an expression's different values in its table; 0: there are no statistics. */
extern double gs_known_values(PlannerInfo *root, Node *expr);

/* The number of groups that PostgreSQL expects; 0: unknown. */
extern double gs_expected_groups(const RelOptInfo *grouped_rel);

/*
 * The places where paths are offered, each with arguments of the planner's hook
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
 * Do two aggregates with DISTINCT drop the same rows, and sort in the same order?  May an aggregate get any
 * of several equal values, because it only counts them, or their bytes are the same?
 */
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);
extern bool gs_agg_takes_any_equal(const Aggref *agg);
#endif

#endif							/* GS_GPUSORT_PATH_H */
