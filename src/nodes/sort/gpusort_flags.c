/*-------------------------------------------------------------------------
 *
 * gpusort_flags.c
 *	  May the input of a GpuSort be run again?
 *
 * A GpuSort that loses its device runs its child a second time, if nobody can notice (../../sort/README.md).
 * plan_steps.c looks at the query, and at the nodes above the GpuSort.  This file looks at those below it.
 *
 * Tests: tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tsmapi.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"

/*
 * Remove the flags that a plan does not allow.  A node that locks or changes rows must not run twice.  A node
 * that picks some of many rows, or computes a value from the order of rows, may return other rows the second
 * time.  Volatile functions in FROM are found here, because the plan may call only some of the query's.
 */
static void
note_flags(Plan **plan, void *context)
{
	int		   *flags = context;

	switch (nodeTag(*plan))
	{
		case T_LockRows:
		case T_ModifyTable:
			*flags = 0;
			break;
		case T_Limit:
		case T_Agg:
		case T_Group:
		case T_Unique:
		case T_WindowAgg:
		case T_SetOp:
		case T_RecursiveUnion:
		case T_ForeignScan:
			*flags &= ~GS_PLAN_FLAG_REPEATABLE;
			break;
		case T_SampleScan:
			if (!GetTsmRoutine(((SampleScan *) *plan)->tablesample->tsmhandler)->repeatable_across_scans)
				*flags &= ~GS_PLAN_FLAG_REPEATABLE;
			break;
		case T_FunctionScan:
			if (gs_expr_is_volatile((Node *) ((FunctionScan *) *plan)->functions))
				*flags = 0;
			break;
		case T_CustomScan:
			if (gs_is_sort_or_feed(*plan))
				break;
			*flags &= ~GS_PLAN_FLAG_REPEATABLE;
			if (gs_expr_is_volatile((Node *) ((CustomScan *) *plan)->custom_exprs))
				*flags = 0;
			break;
		default:
			break;
	}
	if (*flags != 0)
		gs_plan_visit_children(*plan, note_flags, context);
}

int
gs_plan_flags(Plan *plan, int flags)
{
	if (flags != 0)
		note_flags(&plan, &flags);
	return flags;
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

int
gs_plan_subplan_flags(PlannedStmt *stmt)
{
	int			flags = GS_PLAN_FLAG_RERUN | GS_PLAN_FLAG_REPEATABLE;
	Bitmapset  *init_plans = NULL;
	ListCell   *lc;
	int			plan_id = 0;

	if (stmt->subplans == NIL)
		return flags;
	gs_plan_visit_all(stmt, note_init_plans, &init_plans);

	/* an init plan's result is kept, and so are the rows of a WITH query */
	foreach(lc, stmt->subplans)
	{
		plan_id++;
		if (lfirst(lc) != NULL && !bms_is_member(plan_id, init_plans))
			flags = gs_plan_flags(lfirst(lc), flags);
	}
	return flags;
}
