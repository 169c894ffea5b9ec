/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  A finished plan's children, wherever its nodes keep them (plan_walk.h).
 *
 * PostgreSQL has such a walker for the executor's nodes
 * (planstate_tree_walker), and none for plans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planner/plan_walk.h"

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
