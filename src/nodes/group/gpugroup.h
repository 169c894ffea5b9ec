/*-------------------------------------------------------------------------
 *
 * gpugroup.h
 *	  The node GpuAggregate, in the place of an Agg whose input is sorted.
 *
 *	  gpugroup_plan.c	where it can take Agg's place
 *	  gpugroup_exec.c	the executor's part, EXPLAIN's lines
 *	  gpuaccumulator.c		the aggregates
 *
 * The columns of its scan tuple, custom_scan_tlist, are aggregates (Aggref) and columns of a group's first
 * row.
 *
 * custom_private is a list of lists, so that plans can be copied; the enum names its members.
 * Columns are those of the child's output.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUGROUP_H
#define GS_GPUGROUP_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"

#define GS_AGGREGATE_NAME	"GpuAggregate"

extern const GsNode gs_aggregate_node;

/* All empty: one group, also of no rows. */
typedef enum GsAggregateItem
{
	GS_AGGREGATE_ATTNOS,		/* IntList: GROUP BY */
	GS_AGGREGATE_OPERATORS,		/* OidList: equality */
	GS_AGGREGATE_COLLATIONS,	/* OidList */
	GS_AGGREGATE_Count
} GsAggregateItem;

/* The node that does the work of a finished Agg, or the Agg itself. */
extern Plan *gs_aggregate_replace(Agg *agg);

/* The arguments of an aggregate; sort columns are none. */
extern List *gs_aggregate_args(const Aggref *agg);

#endif							/* GS_GPUGROUP_H */
