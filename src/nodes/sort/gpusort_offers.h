/*-------------------------------------------------------------------------
 *
 * gpusort_offers.h
 *	  The places where paths with GpuSort are offered, each with what the planner's hook got.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_OFFERS_H
#define GS_GPUSORT_OFFERS_H

#include "nodes/pathnodes.h"

#include "compat.h"

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
extern void gs_agg_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel);
#endif

#endif							/* GS_GPUSORT_OFFERS_H */
