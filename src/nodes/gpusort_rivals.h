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

/* How many groups PostgreSQL expects; 0: none of its paths tells. */
extern double gs_expected_groups(const RelOptInfo *grouped_rel);

/*
 * What it costs that aggregates sort by themselves in this path: so many sorts like agg's.
 * in_order: the input is in that order already, so that they only compare neighbours.
 */
extern Cost gs_cost_inner_sorts(const AggPath *path, const Aggref *agg, int sorts, bool in_order);

#endif							/* GS_NODES_GPUSORT_RIVALS_H */
