/*-------------------------------------------------------------------------
 *
 * gpugroup.h
 *	  The node GpuGroup, which replaces Agg, Group and Unique over sorted rows.
 *
 *	  gpugroup_plan.c	where it can take their place
 *	  gpugroup_exec.c	the executor's part, EXPLAIN's lines
 *
 * The columns of its scan tuple, custom_scan_tlist, are aggregates (Aggref) and columns of a group's first
 * row.  custom_private is a list, so that plans can be copied; the enum names its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUGROUP_H
#define GS_GPUGROUP_H

#include "nodes/plannodes.h"

#include "compat.h"
#include "nodes/common/gpunode.h"
#include "nodes/plan_steps.h"

#define GS_GROUP_NAME	"GpuGroup"

extern const GsNode gs_group_node;

typedef enum GsGroupItem
{
	GS_GROUP_KEY,				/* GsColumns: rows of a group are equal in them.  None: all rows
								 * are one group, also where there are none */
	GS_GROUP_KIND,				/* IntList: GsGroupKind; bool: check the right to execute the equality
								 * functions */
	GS_GROUP_Count
} GsGroupItem;

typedef enum GsGroupKind
{
	GS_GROUP_BY,				/* a row of each group, with aggregates of its rows */
	GS_GROUP_DISTINCT,			/* the first row of each group */
	GS_GROUP_COUNT_DISTINCT		/* one row: the number of groups; above a GpuSort by these columns alone */
} GsGroupKind;

/*
 * Steps (plan_steps.h).  They replace an Agg that only counts different rows; an Agg above sorted rows; and
 * Unique or Group.
 */
extern Plan *gs_group_count(GsStepContext *context, Plan *plan);
extern Plan *gs_group_aggregate(GsStepContext *context, Plan *plan);
extern Plan *gs_group_distinct(GsStepContext *context, Plan *plan);

/* Have the GpuSort below keep the groups that have most rows, if a Sort and a Limit want no others. */
extern Plan *gs_group_keep_top(GsStepContext *context, Plan *plan);

/* Does the GpuSort below a GpuGroup count the rows of each group?  Is an expression of that node count(*)? */
extern bool gs_group_is_counted(const Plan *plan);
extern bool gs_group_is_count(const CustomScan *group, const Node *expr);

/* agg_plan_15.c, a step: the aggregates of an Agg sort nothing that is in their order already. */
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
extern Plan *gs_agg_use_order(GsStepContext *context, Plan *plan);
#endif

#endif							/* GS_GPUGROUP_H */
