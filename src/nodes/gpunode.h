/*-------------------------------------------------------------------------
 *
 * executor_nodes.h
 *	  The executor nodes GpuSort, GpuSortFeed, GpuWindow and
 *	  GpuArraySort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_EXECUTOR_NODES_H
#define GS_EXECUTOR_NODES_H

#include "nodes/extensible.h"

#include "array/array_batch.h"
#include "sort/sort.h"

extern const CustomScanMethods gs_sort_scan_methods;
extern const CustomScanMethods gs_feed_scan_methods;
extern const CustomScanMethods gs_window_scan_methods;
extern const CustomScanMethods gs_arrays_scan_methods;

/* Let plans with these nodes be read in this process. */
extern void gs_executor_init(void);

/*
 * node_gpufeed.c: what GpuSort sees of a feed node below it.
 *
 * Before the feed nodes run, the leader's is told where to feed: to a sort's
 * session, or nowhere (NULL), which makes all feed nodes pass rows on.
 */
extern bool gs_feed_is_feed(PlanState *state);
extern void gs_feed_set_sort(PlanState *state, GsSort *sort);

/* The workers that the node was planned for. */
extern int	gs_feed_planned_workers(PlanState *gather);

/* node_explain.c */
extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsSortKeys *keys,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);
extern void gs_explain_array_calls(CustomScanState *node, List *ancestors, int n_calls,
								   ExplainState *es);
extern void gs_explain_array_report(const GsArrayReport *report, ExplainState *es);

#endif							/* GS_EXECUTOR_NODES_H */
