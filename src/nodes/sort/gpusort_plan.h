/*-------------------------------------------------------------------------
 *
 * gpusort_plan.h
 *	  Making the plans GpuSort and GpuSortFeed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_PLAN_H
#define GS_GPUSORT_PLAN_H

#include "nodes/plannodes.h"

/* Those of the flags (GS_PLAN_FLAG_) that the plan below a Sort allows.  in_workers: which workers run. */
extern int	gs_plan_flags_below(const Sort *sort, int flags, bool in_workers);

/*
 * The flags that a statement's subplans allow, other than init plans.  They run
 * when an expression asks for them, so they may be part of any sort's input.
 */
extern int	gs_plan_subplan_flags(PlannedStmt *stmt);

/*
 * gpusort_tlist.c: where a column to sort by is another column of the same target list under a
 * binary-compatible type or another collation, sort by that one.  Changes
 * sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

#endif							/* GS_GPUSORT_PLAN_H */
