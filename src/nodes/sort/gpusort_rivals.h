/*-------------------------------------------------------------------------
 *
 * gpusort_rivals.h
 *	  What PostgreSQL's own paths for groups and DISTINCT cost, beyond what it charges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_NODES_GPUSORT_RIVALS_H
#define GS_NODES_GPUSORT_RIVALS_H

#include "nodes/pathnodes.h"

#include "nodes/sort/gpusort_path.h"

/*
 * Add paths that sort, beside others that hash; take away those of the others that cost more
 * by all that PostgreSQL does not count.
 */
extern void gs_add_sorted_paths(PlannerInfo *root, const GsOffer *offer, List *paths);

/* Sorted rows for groups, or DISTINCT. */
typedef struct GsGroupOffer
{
	GsOffer		offer;
	double		expected;		/* groups */
	List	   *exprs;			/* that make them */
	List	   *wanted;			/* the order that the query's next step needs */

	/*
	 * Of aggregates in two phases of hashing.  NULL for DISTINCT: there PostgreSQL hashes alike in both
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

#endif							/* GS_NODES_GPUSORT_RIVALS_H */
