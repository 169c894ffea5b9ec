/*-------------------------------------------------------------------------
 *
 * aggregates.h
 *	  Aggregates over the rows that a node reads: groups, or frames that only grow.
 *
 * Call gs_aggregates_begin() for each group, gs_aggregates_advance() for each of its rows, and
 * gs_aggregates_finish() whenever values are needed.  Values are valid until the next of these calls; until
 * then gs_aggregates_set() returns them again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_AGGREGATES_H
#define GS_AGGREGATES_H

#include "nodes/execnodes.h"

typedef struct GsAggregates GsAggregates;

/* The aggregates. */
typedef enum GsAggregated
{
	GS_AGGREGATED_GROUP,
	GS_AGGREGATED_DIFFERENT,	/* a group of different rows, in which DISTINCT drops none */
	GS_AGGREGATED_FRAME			/* functions are called as by WindowAgg */
} GsAggregated;

/*
 * The aggregates in a node's scan tuple, custom_scan_tlist: Aggref nodes over the child's columns, none of an
 * ordered set, and none that sorts its input.  NULL: there are none.  Begins the child as well, and sets
 * outerPlanState(node).  In CurrentMemoryContext, which must live as long as the query.  Checks permissions
 * as Agg does.
 */
extern GsAggregates *gs_aggregates_init(CustomScanState *node, GsAggregated what, EState *estate, int eflags);

/* Also ends the child.  aggregates may be NULL. */
extern void gs_aggregates_end(GsAggregates *aggregates, CustomScanState *node);

extern void gs_aggregates_begin(GsAggregates *aggregates);
extern void gs_aggregates_advance(GsAggregates *aggregates, TupleTableSlot *row);

/* Put the values for the rows so far into a scan tuple; or put them once more after finish(). */
extern void gs_aggregates_finish(GsAggregates *aggregates, TupleTableSlot *scan);
extern void gs_aggregates_set(const GsAggregates *aggregates, TupleTableSlot *scan);

/* Number the aggregates of an Agg anew, without gaps, in their order.  They share states as before. */
extern void gs_aggregates_renumber(const Agg *agg);

/*
 * Only if all calls are count(), and int8 is passed by value (FLOAT8PASSBYVAL).  count() advances by n rows.
 * set_count() stands for begin(), advance() and finish() of a group of n rows.
 */
extern void gs_aggregates_count(GsAggregates *aggregates, int64 n);
extern void gs_aggregates_set_count(const GsAggregates *aggregates, int64 n, TupleTableSlot *scan);

#endif							/* GS_AGGREGATES_H */
