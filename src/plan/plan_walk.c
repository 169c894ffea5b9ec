/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  Walking a finished plan (plan_walk.h).
 *
 * PostgreSQL has such a walker for the executor's nodes
 * (planstate_tree_walker), and none for plans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan/plan_walk.h"

void
gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context), void *context)
{
	List	   *children = NIL;
	ListCell   *lc;

	switch (nodeTag(plan))
	{
		case T_Append:
			children = ((Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			children = ((MergeAppend *) plan)->mergeplans;
			break;
		case T_BitmapAnd:
			children = ((BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			children = ((BitmapOr *) plan)->bitmapplans;
			break;
		case T_CustomScan:
			children = ((CustomScan *) plan)->custom_plans;
			break;
		case T_SubqueryScan:
			visit(&((SubqueryScan *) plan)->subplan, context);
			break;
		default:
			break;
	}
	foreach(lc, children)
		visit((Plan **) &lfirst(lc), context);
	if (outerPlan(plan) != NULL)
		visit(&outerPlan(plan), context);
	if (innerPlan(plan) != NULL)
		visit(&innerPlan(plan), context);
}

static void
note_node_id(Plan **plan, void *highest)
{
	int		   *id = highest;

	*id = Max(*id, (*plan)->plan_node_id);
	gs_plan_visit_children(*plan, note_node_id, highest);
}

int
gs_plan_last_node_id(const PlannedStmt *stmt)
{
	Plan	   *plan = stmt->planTree;
	int			id = 0;
	ListCell   *lc;

	note_node_id(&plan, &id);
	foreach(lc, stmt->subplans)
	{
		plan = lfirst(lc);
		if (plan != NULL)
			note_node_id(&plan, &id);
	}
	return id;
}

/* How many tuples a Limit will ask for, or an estimate of it. */
static double
limit_bound(const Limit *limit)
{
	double		count = limit->plan.plan_rows;

	if (limit->limitOption == LIMIT_OPTION_WITH_TIES || limit->limitCount == NULL)
		return GS_NO_BOUND;
	if (IsA(limit->limitCount, Const))
	{
		const Const *value = (const Const *) limit->limitCount;

		if (value->constisnull)
			return GS_NO_BOUND;
		count = DatumGetInt64(value->constvalue);
	}
	if (limit->limitOffset)
	{
		const Const *value = (const Const *) limit->limitOffset;

		/* an offset that is not known: assume that it is small */
		if (IsA(value, Const) && !value->constisnull)
			count += DatumGetInt64(value->constvalue);
	}
	return count;
}

/* As in ExecSetTupleBound(). */
double
gs_plan_bound_below(const Plan *plan, double bound)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
			return limit_bound((const Limit *) plan);
		case T_Append:
		case T_MergeAppend:
		case T_Gather:
		case T_GatherMerge:
			return bound;
		case T_Result:
			return ((const Result *) plan)->resconstantqual == NULL ? bound : GS_NO_BOUND;
		case T_SubqueryScan:
			return plan->qual == NIL ? bound : GS_NO_BOUND;
		default:
			return GS_NO_BOUND;
	}
}
