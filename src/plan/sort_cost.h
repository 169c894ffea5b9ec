/*-------------------------------------------------------------------------
 *
 * sort_cost.h
 *	  What a sort by gpusort costs, in the planner's units.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_COST_H
#define GS_SORT_COST_H

#include "nodes/pathnodes.h"

/* Cost of handing so many rows of this width to the device, in one process. */
extern Cost gs_cost_feed(double rows, int width);

/* Set startup_cost and total_cost of a GpuSort path over a child. */
extern void gs_cost_sort(Path *path, Cost child_total, double rows, bool fed_below);

/*
 * Is PostgreSQL's top-N heapsort the better way to the first limit_tuples of
 * so many rows?  limit_tuples <= 0: there is no limit.
 */
extern bool gs_cost_prefers_heapsort(double rows, int width, double limit_tuples);

#endif							/* GS_SORT_COST_H */
