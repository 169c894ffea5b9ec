/*-------------------------------------------------------------------------
 *
 * gpugroupingsets.h
 *	  The nodes GpuGroupingSets and GpuSpool, which stand where an Agg with several sorts would.
 *
 *	  gpugroupingsets_plan.c	the nodes in the place of an Agg with a chain
 *	  gpugroupingsets_exec.c	the executor's part
 *
 * GpuGroupingSets has the Aggs in custom_plans and returns the rows of one after the other. Its
 * scan tuple is theirs.  The lowest node of the first Agg, but for the input itself, is a GpuSpool; those
 * of the others are GpuSpools without a child.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUGROUPINGSETS_H
#define GS_GPUGROUPINGSETS_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"

#define GS_GROUPING_SETS_NAME	"GpuGroupingSets"
#define GS_SPOOL_NAME			"GpuSpool"

extern const GsNode gs_grouping_sets_node;
extern const GsNode gs_spool_node;

/*
 * The sorts that an Agg with a chain does itself, as Sort nodes over new GpuSpools that read what the
 * Agg's child returns, in the order of the chain.  NIL: it has none, or needs its sets together.
 * last_node_id is the highest plan_node_id in use, before and after.
 */
extern List *gs_grouping_sets_sorts(const Agg *agg, int *last_node_id);

/* GpuGroupingSets in the place of that Agg, with these Sorts, or what replaces them later. */
extern CustomScan *gs_grouping_sets_make(Agg *agg, List *sorts, int *last_node_id);

#endif							/* GS_GPUGROUPINGSETS_H */
