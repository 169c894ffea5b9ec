/*-------------------------------------------------------------------------
 *
 * gpusort_rerun.c
 *	  May the input of a GpuSort be run again?
 *
 * A GpuSort that loses its device runs its child a second time, if nobody can notice (../../sort/README.md).
 * plan_steps.c looks at the query, and at the nodes above the GpuSort.  This file looks at the nodes below.
 *
 * Tests: tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"

/*
 * A node that locks or changes rows must not run twice.  Volatile functions in FROM are found here, because
 * the plan may call only some of the query's.
 */
static void
note_rerun(Plan **plan, void *context)
{
	bool	   *rerun = context;
	Node	   *volatile_part = NULL;

	if (IsA(*plan, LockRows) || IsA(*plan, ModifyTable))
		*rerun = false;
	else if (IsA(*plan, FunctionScan))
		volatile_part = (Node *) ((FunctionScan *) *plan)->functions;
	else if (IsA(*plan, CustomScan) && !gs_is_sort_or_feed(*plan))
		volatile_part = (Node *) ((CustomScan *) *plan)->custom_exprs;
	*rerun = *rerun && !gs_expr_is_volatile(volatile_part);
	if (*rerun)
		gs_plan_visit_children(*plan, note_rerun, context);
}

bool
gs_plan_may_rerun(Plan *plan)
{
	bool		rerun = true;

	note_rerun(&plan, &rerun);
	return rerun;
}

static void
note_init_plans(Plan **plan, void *context)
{
	Bitmapset **init_plans = context;
	ListCell   *lc;

	foreach(lc, (*plan)->initPlan)
		*init_plans = bms_add_member(*init_plans, lfirst_node(SubPlan, lc)->plan_id);
	gs_plan_visit_children(*plan, note_init_plans, context);
}

bool
gs_subplans_may_rerun(PlannedStmt *stmt)
{
	Bitmapset  *init_plans = NULL;
	ListCell   *lc;
	int			plan_id = 0;

	if (stmt->subplans == NIL)
		return true;
	gs_plan_visit_all(stmt, note_init_plans, &init_plans);

	/* an init plan's result is kept, and so are the rows of a WITH query */
	foreach(lc, stmt->subplans)
	{
		plan_id++;
		if (lfirst(lc) != NULL && !bms_is_member(plan_id, init_plans) && !gs_plan_may_rerun(lfirst(lc)))
			return false;
	}
	return true;
}
