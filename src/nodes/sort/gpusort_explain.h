/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *	  EXPLAIN's lines about a sort: by what, which rows are needed, what became of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_EXPLAIN_H
#define GS_GPUSORT_EXPLAIN_H

#include "commands/explain.h"
#include "nodes/execnodes.h"

#include "sort/sort.h"

extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsSortKeys *keys,
								 ExplainState *es);
extern void gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);

#endif							/* GS_GPUSORT_EXPLAIN_H */
