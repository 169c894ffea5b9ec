/*-------------------------------------------------------------------------
 *
 * gpusort_steps.h
 *	  Steps and questions of plan_steps.c about sorts in finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_STEPS_H
#define GS_GPUSORT_STEPS_H

#include "nodes/plan_steps.h"

/*
 * gpusort_replace.c
 *
 * Does a statement have sorts that steps may change?  Cheap: looks only at the nodes of its plans.
 */
extern bool gs_plan_has_sorts(PlannedStmt *stmt);

/* GpuSort in the place of Sort, or of Gather Merge and the Sort below it. */
extern Plan *gs_sort_replace(GsStepContext *context, Plan *plan);
extern Plan *gs_sort_replace_merge(GsStepContext *context, Plan *plan);

/*
 * gpusort_plan.c: complete a GpuSort or GpuSortFeed that was made from a path.  gs_sort_unfinished: the
 * statement being planned has one.  Do not test a setting instead, because planning can change settings.
 */
extern bool gs_sort_unfinished;
extern Plan *gs_sort_finish(GsStepContext *context, Plan *plan);

/*
 * gpusort_rerun.c: do a plan's own nodes allow that it is run a second time?
 */
extern bool gs_plan_may_rerun(Plan *plan);

/*
 * The same for a statement's subplans, except init plans.  A subplan runs when an expression needs it, so it
 * may be part of any sort's input.
 */
extern bool gs_subplans_may_rerun(PlannedStmt *stmt);

/*
 * gpusort_tlist.c
 *
 * If a GpuSort is at the top, remove columns that neither the user nor the sort needs.
 */
extern Plan *gs_tlist_drop_junk(GsStepContext *context, Plan *plan);

/*
 * A column to sort by may be a copy of another column, with a binary-compatible type or another
 * collation.  Then sort by the other column.  Changes sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

/* gpusort_keep.c: have a GpuSort drop rows that its parent, or a Limit above it, does not need. */
extern Plan *gs_keep_for_parent(GsStepContext *context, Plan *plan);
extern Plan *gs_keep_for_limit(GsStepContext *context, Plan *plan);

/* Set a GpuSort's bound (GS_PLAN_BOUND), if it is known now or when execution starts. */
extern void gs_keep_bound(CustomScan *sort, const GsBound *bound);

#endif							/* GS_GPUSORT_STEPS_H */
