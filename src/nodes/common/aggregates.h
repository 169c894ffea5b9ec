/*-------------------------------------------------------------------------
 *
 * aggregates.h
 *	  Aggregates over the rows that a node reads: groups, or frames that only grow.
 *
 * For each group gs_aggregates_begin(), for each of its rows gs_aggregates_advance(), and
 * gs_aggregates_finish() whenever values are wanted.  These are good until the next of these calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_AGGREGATES_H
#define GS_AGGREGATES_H

#include "nodes/execnodes.h"

typedef struct GsAggregates GsAggregates;

/*
 * Begins a node's child as well, and sets outerPlanState(node).  calls: Aggref nodes over the child's
 * columns, perhaps none; none of them is of an ordered set, or sorts its input.  in_window: their functions
 * are called as by WindowAgg, else as by Agg.  In CurrentMemoryContext, which must live as long as the
 * query.  Checks permissions as Agg does.
 */
extern GsAggregates *gs_aggregates_init(CustomScanState *node, List *calls, bool in_window, EState *estate,
										int eflags);

/* Ends the child, too. */
extern void gs_aggregates_end(GsAggregates *aggregates, CustomScanState *node);

extern void gs_aggregates_begin(GsAggregates *aggregates);
extern void gs_aggregates_advance(GsAggregates *aggregates, TupleTableSlot *row);
extern void gs_aggregates_finish(GsAggregates *aggregates);

/* The value of call i. */
extern Datum gs_aggregates_value(const GsAggregates *aggregates, int i, bool *isnull);

/* So many more rows, where all calls are count(). */
extern void gs_aggregates_count(GsAggregates *aggregates, int64 n);

/* The arguments of an aggregate; sort columns are none. */
extern List *gs_aggregate_args(const Aggref *call);

#endif							/* GS_AGGREGATES_H */
