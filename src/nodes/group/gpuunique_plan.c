/*-------------------------------------------------------------------------
 *
 * gpuunique_plan.c
 *	  Putting GpuUnique in the place of Unique and Group.
 *
 *		Unique (x, y)			GpuUnique (x, y)
 *		  -> GpuSort (x, y)		  -> GpuSort (x, y)
 *
 * The same for a Group, if it computes nothing and has no HAVING.  Unique and Group compare each
 * row with the one before, and copy it.  GpuUnique asks the GpuSort, which knows of nearly all
 * rows whether they differ.  It knows that of all sort columns together only: below a DISTINCT ON
 * that is sorted by more columns Unique stays.
 *
 * This is the last step with a finished plan.  So all others find the nodes that PostgreSQL made.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"

#include "nodes/sort/gpusort.h"
#include "nodes/group/gpuunique.h"
#include "plan/plan_walk.h"

/* Are a node's columns just its child's, in their order? */
static bool
passes_columns_on(const Plan *plan)
{
	ListCell   *lc;

	if (list_length(plan->targetlist) != list_length(outerPlan(plan)->targetlist))
		return false;
	foreach(lc, plan->targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (!IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != OUTER_VAR ||
			((Var *) tle->expr)->varattno != tle->resno)
			return false;
	}
	return true;
}

/* A target list of columns of the child, as one of the same columns of the scan tuple. */
static List *
scan_tuple_columns(List *tlist)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = (TargetEntry *) copyObjectImpl(lfirst_node(TargetEntry, lc));

		((Var *) tle->expr)->varno = INDEX_VAR;
		result = lappend(result, tle);
	}
	return result;
}

/* GpuUnique in the place of plan, or plan. */
static Plan *
replace_node(Plan *plan, bool groups, int n, const AttrNumber *attnos, const Oid *operators,
			 const Oid *collations)
{
	CustomScan *sort = (CustomScan *) outerPlan(plan);
	GsSortKeys	keys;
	int			flags;
	Bitmapset  *found = NULL;
	CustomScan *scan;

	if (!gs_node_is(&sort->scan.plan, &gs_sort_node) || plan->qual != NIL || !passes_columns_on(plan))
		return plan;
	gs_plan_read(sort, &keys, &flags);
	if (!gs_plan_find_keys(sort, &keys, n, attnos, operators, collations, &found) ||
		bms_num_members(found) < keys.ncols)
		return plan;
	scan = gs_node_make(&gs_unique_node, plan, scan_tuple_columns(plan->targetlist),
						(List *) copyObjectImpl(plan->targetlist), &sort->scan.plan,
						list_make4(gs_node_attno_list(n, attnos), gs_node_oid_list(n, operators),
								   gs_node_oid_list(n, collations), list_make1_int(groups)));
	scan->scan.plan.initPlan = plan->initPlan;
	return &scan->scan.plan;
}

static void
replace(Plan **plan, void *context)
{
	gs_plan_visit_children(*plan, replace, context);
	if (IsA(*plan, Unique))
	{
		const Unique *node = (const Unique *) *plan;

		*plan = replace_node(*plan, false, node->numCols, node->uniqColIdx, node->uniqOperators,
							 node->uniqCollations);
	}
	else if (IsA(*plan, Group))
	{
		const Group *node = (const Group *) *plan;

		*plan = replace_node(*plan, true, node->numCols, node->grpColIdx, node->grpOperators,
							 node->grpCollations);
	}
}

void
gs_unique_replace(PlannedStmt *stmt)
{
	ListCell   *lc;

	replace(&stmt->planTree, NULL);
	foreach(lc, stmt->subplans)
		if (lfirst(lc) != NULL)
			replace((Plan **) &lfirst(lc), NULL);
}
