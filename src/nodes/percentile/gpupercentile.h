/*-------------------------------------------------------------------------
 *
 * gpupercentile.h
 *	  The node GpuPercentile: percentile_disc() and percentile_cont() of rows that a
 *	  GpuSort below it has put in order.
 *
 *	  gpupercentile_plan.c	paths that have the rows sorted; GpuPercentile between Agg and GpuSort
 *	  gpupercentile_exec.c	the executor's part
 *
 * The columns of its scan tuple, custom_scan_tlist, are all columns of the child, and the functions (Aggref)
 * over them.  custom_private is a list of lists, so that plans can be copied; the enum names its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUPERCENTILE_H
#define GS_GPUPERCENTILE_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"
#include "nodes/plan_steps.h"

#define GS_PERCENTILE_NAME	"GpuPercentile"

extern const GsNode gs_percentile_node;

typedef enum GsPercentileItem
{
	GS_PERCENTILE_GROUPS,		/* GsColumns: GROUP BY */
	GS_PERCENTILE_OPTIONS,		/* IntList of two bools: there is no GROUP BY, so there is a group even
								 * without rows; only the first row of each group is needed */
	GS_PERCENTILE_Count
} GsPercentileItem;

/* Offer paths that sort rows for such functions, if that costs less than their own sorts. */
extern void gs_percentile_offer_path(PlannerInfo *root, RelOptInfo *input_rel,
									 RelOptInfo *grouped_rel,
									 const GroupPathExtraData *extra);

/*
 * A step (plan_steps.h): GpuPercentile between an Agg and a GpuSort, to compute the functions as columns,
 * if the order is right.
 */
extern Plan *gs_percentile_replace(GsStepContext *step, Plan *plan);

#endif							/* GS_GPUPERCENTILE_H */
