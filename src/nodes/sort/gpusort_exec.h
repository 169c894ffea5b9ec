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

/*
 * How many different rows a GpuSort has that drops equal ones, and has
 * returned one.  False: they have to be read and compared.
 */
extern bool gs_sort_node_count_distinct(PlanState *node, uint64 *count);

/* The same as gs_sort_page() and gs_sort_take(), of a GpuSort that has returned a row. */
extern bool gs_sort_node_page(const PlanState *node, GsSortPage *page);
extern void gs_sort_node_take(PlanState *node, uint32 n);

/* These of one that was begun with EXEC_FLAG_MARK. */
extern bool gs_sort_node_count_rows(const PlanState *node, uint64 *count);
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* No row is asked for any more, unless the node is rescanned: give back what its rows take. */
extern void gs_sort_node_release(PlanState *node);

#endif							/* GS_GPUSORT_EXEC_H */
