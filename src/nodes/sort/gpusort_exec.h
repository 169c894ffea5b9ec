/*-------------------------------------------------------------------------
 *
 * gpusort_exec.h
 *	  Functions of a running GpuSort for the nodes above it, and EXPLAIN's lines about it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_EXEC_H
#define GS_GPUSORT_EXEC_H

#include "commands/explain.h"
#include "executor/executor.h"

#include "sort/sort.h"

/* The sort of a GpuSort that has returned a row; NULL: the sort has ended. */
extern GsSort *gs_sort_node_sort(const PlanState *node);

/* Like gs_sort_skip(), for a node that was begun with EXEC_FLAG_MARK. */
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Before the first row of a GpuSort that counts groups: keep only groups with these counts (GsSortKeep). */
extern void gs_sort_node_keep_counts(PlanState *node, uint32 min_count, uint32 max_count);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* End the sort, which frees its memory.  No more rows are needed, unless the node is rescanned. */
extern void gs_sort_node_release(PlanState *node);

/* gpusort_explain.c: EXPLAIN's lines on sort keys, on the rows that are needed, and on the outcome. */
extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsColumns *keys,
								 ExplainState *es);
extern void gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);

#endif							/* GS_GPUSORT_EXEC_H */
