/*-------------------------------------------------------------------------
 *
 * gpusort_exec.h
 *	  What the nodes above a GpuSort ask of it while it runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_EXEC_H
#define GS_GPUSORT_EXEC_H

#include "nodes/execnodes.h"

#include "sort/sort.h"

/* The sort of a GpuSort that has returned a row; NULL: it does not have it any more. */
extern GsSort *gs_sort_node_sort(const PlanState *node);

/* As gs_sort_skip(), of one that was begun with EXEC_FLAG_MARK. */
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* No row is asked for any more, unless the node is rescanned: give back what its rows take. */
extern void gs_sort_node_release(PlanState *node);

#endif							/* GS_GPUSORT_EXEC_H */
