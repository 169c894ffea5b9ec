/*-------------------------------------------------------------------------
 *
 * gpuwindow_agg.h
 *	  Aggregates as window functions whose frame only grows.
 *
 * The aggregates of one GpuWindow belong together: for each partition
 * gs_window_aggs_begin(), for each row of the frame gs_window_aggs_advance(), and
 * gs_window_aggs_finish() whenever values are wanted.  These are good until the next
 * of these calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_AGG_H
#define GS_GPUWINDOW_AGG_H

#include "executor/executor.h"

typedef struct GsWindowAggs GsWindowAggs;

/*
 * calls: WindowFunc nodes.  Their arguments are evaluated over econtext's outer
 * tuple, in its per-tuple memory.  In CurrentMemoryContext, which must live as long as the
 * query.  Checks the user's permissions, but for the calls themselves.
 */
extern GsWindowAggs *gs_window_aggs_create(List *calls, PlanState *parent, ExprContext *econtext);

extern void gs_window_aggs_begin(GsWindowAggs *aggs);
extern void gs_window_aggs_advance(GsWindowAggs *aggs, TupleTableSlot *row);
extern void gs_window_aggs_finish(GsWindowAggs *aggs);

/* The value of call i. */
extern Datum gs_window_aggs_value(GsWindowAggs *aggs, int i, bool *isnull);

/* Can the call be made so?  For the planner. */
extern bool gs_window_agg_is_read_only(Oid aggregate);

#endif							/* GS_GPUWINDOW_AGG_H */
