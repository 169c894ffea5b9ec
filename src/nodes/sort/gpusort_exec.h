/*-------------------------------------------------------------------------
 *
 * gpusort_exec.h
 *	  What the nodes above a GpuSort ask of it while it runs, and EXPLAIN's lines about it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_EXEC_H
#define GS_GPUSORT_EXEC_H

#include "commands/explain.h"
#include "executor/executor.h"

#include "sort/sort.h"

/* The sort of a GpuSort that has returned a row; NULL: it does not have it any more. */
extern GsSort *gs_sort_node_sort(const PlanState *node);

/* As gs_sort_skip(), of one that was begun with EXEC_FLAG_MARK. */
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Before its first row: the counts that are needed, of a GpuSort that counts groups (GsSortKeep). */
extern void gs_sort_node_keep_counts(PlanState *node, uint32 min_count, uint32 max_count);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* No row is asked for any more, unless the node is rescanned: give back what its rows take. */
extern void gs_sort_node_release(PlanState *node);

/* gpusort_explain.c: by what it sorts, which rows are needed, what became of them. */
extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsColumns *keys,
								 ExplainState *es);
extern void gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);

#endif							/* GS_GPUSORT_EXEC_H */
