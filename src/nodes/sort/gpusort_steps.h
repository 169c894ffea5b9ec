/*-------------------------------------------------------------------------
 *
 * gpusort_steps.h
 *	  What is done about sorts in finished plans: questions and steps of plan_steps.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_STEPS_H
#define GS_GPUSORT_STEPS_H

#include "nodes/plan_steps.h"

/*
 * gpusort_replace.c
 *
 * Has a statement sorts that the steps might do something about?
 * Cheap: looks at nothing but the plans' nodes.
 */
extern bool gs_plan_has_sorts(PlannedStmt *stmt);

/* GpuSort in the place of Sort, or of Gather Merge and the Sort below it. */
extern Plan *gs_sort_replace(GsStepContext *context, Plan *plan);
extern Plan *gs_sort_replace_merge(GsStepContext *context, Plan *plan);

/*
 * gpusort_plan.c: complete a GpuSort or GpuSortFeed that was made from a path.  The statement that is being
 * planned has one if gs_sort_unfinished.  Ask no setting instead: planning can change settings.
 */
extern bool gs_sort_unfinished;
extern Plan *gs_sort_finish(GsStepContext *context, Plan *plan);

/*
 * gpusort_flags.c
 *
 * Those of the flags (GS_PLAN_FLAG_) that a plan allows.
 */
extern int	gs_plan_flags(Plan *plan, int flags);

/*
 * The flags that a statement's subplans allow, other than init plans.  They run
 * when an expression asks for them, so they may be part of any sort's input.
 */
extern int	gs_plan_subplan_flags(PlannedStmt *stmt);

/*
 * gpusort_tlist.c
 *
 * If there is a GpuSort at the top, columns go that nobody needs: neither the user nor the sort.
 */
extern Plan *gs_tlist_drop_junk(GsStepContext *context, Plan *plan);

/*
 * Where a column to sort by is another column of the same target list under a
 * binary-compatible type or another collation, sort by that one.  Changes
 * sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

/* gpusort_keep.c: have a GpuSort drop rows that its parent, or a Limit above it, does not need. */
extern Plan *gs_keep_for_parent(GsStepContext *context, Plan *plan);
extern Plan *gs_keep_for_limit(GsStepContext *context, Plan *plan);

/* Tell it GS_PLAN_BOUND, if that is known when planning, or execution starts. */
extern void gs_keep_bound(CustomScan *sort, const GsBound *bound);

#endif							/* GS_GPUSORT_STEPS_H */
