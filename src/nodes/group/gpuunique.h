/*-------------------------------------------------------------------------
 *
 * gpuunique.h
 *	  The node GpuUnique, which stands where a Unique, or a Group, would: of the rows of a
 *	  GpuSort below it that are equal in all sort columns it returns the first.
 *
 * The GpuSort has dropped most of the others (gpusort_keep.c), but only those whose keys tell
 * that they are equal.
 *
 *	  gpuunique_plan.c	GpuUnique in the place of a Unique or a Group
 *	  gpuunique_exec.c	the executor's part
 *
 * custom_private is a list of lists, so that plans can be copied; the enum names its
 * members.  Columns are those of the child's output.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUUNIQUE_H
#define GS_GPUUNIQUE_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"

#define GS_UNIQUE_NAME	"GpuUnique"

extern const GsNode gs_unique_node;

typedef enum GsUniqueItem
{
	GS_UNIQUE_ATTNOS,			/* IntList: rows differ in one of these columns */
	GS_UNIQUE_OPERATORS,		/* OidList: equality */
	GS_UNIQUE_COLLATIONS,		/* OidList */
	GS_UNIQUE_GROUPS,			/* IntList of one bool: it stands for a Group */
	GS_UNIQUE_Count
} GsUniqueItem;

/*
 * Replace each Unique and Group of a statement's plans whose rows come from a GpuSort by the
 * same columns.  To be called when nothing else looks for such nodes any more.
 */
extern void gs_unique_replace(PlannedStmt *stmt);

#endif							/* GS_GPUUNIQUE_H */
