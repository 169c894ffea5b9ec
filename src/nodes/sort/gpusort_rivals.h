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

/*
 * Add paths that sort, beside others that hash; take away those of the others that cost more
 * by all that PostgreSQL does not count.
 */
extern void gs_add_sorted_paths(PlannerInfo *root, RelOptInfo *rel, List *paths);

/*
 * The same for paths that sort so many rows to find groups, by these expressions.  Nothing is added
 * where few groups are expected.  Where their number is no more than a guess the choice is left to
 * execution (gpuchoice.h); if that cannot be, nothing is added either.  wanted: the order that the
 * query's next step needs.  final_costs: of aggregates in two phases; NULL for DISTINCT.
 */
extern void gs_add_grouped_paths(PlannerInfo *root, RelOptInfo *rel, List *paths, double rows,
								 List *exprs, List *wanted, const AggClauseCosts *final_costs);

/* Does a path of groups hash them, also in parts? */
extern bool gs_path_hashes(const Path *path);

/* How many groups PostgreSQL expects; 0: none of its paths tells. */
extern double gs_expected_groups(const RelOptInfo *grouped_rel);

/*
 * What it costs that aggregates sort by themselves in this path: so many sorts like agg's.
 * in_order: the input is in that order already, so that they only compare neighbours.
 */
extern Cost gs_cost_inner_sorts(const AggPath *path, const Aggref *agg, int sorts, bool in_order);

#endif							/* GS_NODES_GPUSORT_RIVALS_H */
