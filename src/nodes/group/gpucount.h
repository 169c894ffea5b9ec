/*-------------------------------------------------------------------------
 *
 * gpucount.h
 *	  The node GpuCount: how many different rows a GpuSort below it has, or how
 *	  many there are of each.
 *
 *	  gpucount_plan.c	GpuCount in the place of an Agg that only counts them
 *	  gpucount_exec.c	the executor's part
 *
 * custom_private is a list of lists, so that plans can be copied; the enum names its
 * members.  Columns are those of the child's output.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUCOUNT_H
#define GS_GPUCOUNT_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"

#define GS_COUNT_NAME	"GpuCount"

extern const GsNode gs_count_node;

typedef enum GsCountItem
{
	GS_COUNT_ATTNOS,			/* IntList: rows differ in one of these columns */
	GS_COUNT_OPERATORS,			/* OidList: equality */
	GS_COUNT_COLLATIONS,		/* OidList */
	GS_COUNT_FUNCTION,			/* OidList of one: the aggregate */
	GS_COUNT_SKIPS_NULL,		/* IntList of one bool: the row that is NULL in the first column,
								 * which comes first, does not count */
	GS_COUNT_GROUPED,			/* IntList of one bool: one row is returned of each group, with
								 * the child's columns and, behind them, its number of rows;
								 * else the number of groups alone */
	GS_COUNT_Count
} GsCountItem;

/*
 * The node for a finished Agg that wants nothing of a GpuSort's rows but how many are
 * different, or which are and how many of each; or the Agg itself.
 */
extern Plan *gs_count_replace(Agg *agg);

#endif							/* GS_GPUCOUNT_H */
