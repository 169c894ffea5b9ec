/*-------------------------------------------------------------------------
 *
 * plan_steps.c
 *	  What gpusort does to finished plans: the table of all steps, in their order.
 *
 * A step looks at one node of a plan and returns it, perhaps changed, or the node that takes its place
 * (plan_steps.h).  A pass takes its steps node by node, and at each node in the order of the
 * table.  A step gets what the steps before it have returned.  If that is a node with another tag, the steps
 * for the former tag are left out.
 *
 * Passes, in their order:
 *
 *		DOWN	a node before those below it: what these may know of the nodes above them
 *		UP		a node after those below it.  DOWN and UP are one walk
 *		TOP		the topmost node of a SELECT's plan, when that walk has ended
 *		ARRAYS	the topmost node, of a statement that may call gpu_sort_array(); a walk of its own
 *		LAST	again a node after those below it
 *
 * What steps rely on, and have to leave so:
 *
 *	  - Expressions have their final form: a node's target list refers to its child's by OUTER_VAR,
 *		that of a custom scan to its scan tuple, custom_scan_tlist, by INDEX_VAR, and the
 *		scan tuple to the child's by OUTER_VAR.
 *	  - At UP a node's children are finished, apart from LAST.  The nodes above it are still PostgreSQL's.
 *	  - Unique and Group stay until LAST, because steps look for them below other nodes.
 *	  - A plan_node_id occurs once.  A node that takes another's place takes its number, costs and parameters
 *		(gs_node_make()) and its init plans; one that is added gets ++context->last_node_id.
 *	  - Nothing is assumed of how a plan came about: steps compare columns, operators and collations.
 *
 * Tests: regress/plan_sorts, regress/aggregates
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/group/gpuchoice.h"
#include "nodes/group/gpugroup.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/plan_steps.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/sort/gpusort_steps.h"
#include "nodes/window/gpuwindow.h"
#include "plan/sort_refuse.h"

typedef enum Pass
{
	DOWN,
	UP,
	TOP,
	ARRAYS,
	LAST
} Pass;

/* The statement whose plans are changed. */
typedef struct Statement
{
	GsStepContext step;			/* first: steps get a pointer to it */
	const PlannerInfo *root;
	int			cursor_options;
} Statement;

/*
 * Below a Gather a process has its part of the rows only, and by scanning again it would not get the same
 * part.
 */
static Plan *
forbid_rerun(GsStepContext *context, Plan *plan)
{
	context->flags = 0;
	return plan;
}

static Plan *
pass_bound_on(GsStepContext *context, Plan *plan)
{
	context->bound = gs_plan_bound_below(plan, context->bound);
	return plan;
}

static Plan *
report(GsStepContext *context, Plan *plan)
{
	gs_decline_node(plan);
	return plan;
}

/*
 * Has the query that a plan is for volatile functions?  The answer is looked for
 * in the query as the planner has left it, so that only those queries pay for it whose
 * plans need it.  The planner scribbles on queries, but whatever it takes from
 * one it leaves in another one that is looked at here: subqueries that are
 * pulled up in the query around them, sublinks and CTEs in those of the
 * subplans, a planned subquery in its RTE.
 */
static bool
is_volatile(const PlannerInfo *root, const PlannedStmt *stmt, GsVolatileScope scope)
{
	ListCell   *lc;

	/* not planned by the usual planner, or changed since: be careful */
	if (root == NULL || root->glob->finalrtable != stmt->rtable)
		return true;
	if (gs_query_is_volatile(root->parse, scope))
		return true;
	foreach(lc, root->glob->subroots)
		if (gs_query_is_volatile(lfirst_node(PlannerInfo, lc)->parse, scope))
			return true;
	return false;
}

static Plan *
sort_arrays(GsStepContext *context, Plan *plan)
{
	const Statement *statement = (const Statement *) context;
	PlannedStmt *stmt = context->stmt;

	gs_array_plan(stmt, statement->cursor_options,
				  is_volatile(statement->root, stmt, GS_VOLATILE_ANYWHERE));
	return stmt->planTree;
}

/* All that changes a finished plan.  tag: of the nodes that a step is for; T_Invalid: all. */
static const struct
{
	Pass		pass;
	NodeTag		tag;
	GsPlanStep	step;
}			steps[] = {
	{DOWN, T_Gather, forbid_rerun},
	{DOWN, T_GatherMerge, forbid_rerun},
	{DOWN, T_Invalid, pass_bound_on},

	/* First: the other steps read the columns of GpuSorts, which are not final before. */
	{UP, T_CustomScan, gs_sort_finish},

	/* Before gs_agg_use_order(), which takes out the DISTINCT that is looked for here. */
	{UP, T_Agg, gs_group_count},

	/*
	 * While nothing is between a GpuSort and the node above, aggregates have their DISTINCT, and WindowAgg
	 * its run condition.
	 */
	{UP, T_Agg, gs_keep_for_parent},
	{UP, T_Group, gs_keep_for_parent},
	{UP, T_Unique, gs_keep_for_parent},
	{UP, T_WindowAgg, gs_keep_for_parent},

#ifndef GS_COMPAT_PRESORTED_AGGREGATES
	/* Before gs_group_aggregate(): an aggregate that sorts is none of GpuGroup's. */
	{UP, T_Agg, gs_agg_use_order},
#endif

	/* These stand in each other's place: above one GpuSort the first one wins. */
	{UP, T_Agg, gs_percentile_replace},
	{UP, T_Agg, gs_group_aggregate},
	{UP, T_WindowAgg, gs_window_replace},

	{UP, T_Sort, gs_sort_replace},
	{UP, T_GatherMerge, gs_sort_replace_merge},

	/* After these two, which make GpuSorts for it. */
	{UP, T_CustomScan, gs_keep_for_limit},

	/* The rest stays PostgreSQL's. */
	{UP, T_Agg, report},
	{UP, T_IncrementalSort, report},

	/* Last, because the plan that it may return has had all steps. */
	{UP, T_CustomScan, gs_choice_finish},

	/* Nothing but the user wants these columns. */
	{TOP, T_Limit, gs_tlist_drop_junk},
	{TOP, T_CustomScan, gs_tlist_drop_junk},
	{TOP, T_CustomScan, gs_window_drop_junk},

	/* After TOP, which looks for GpuSort at the top.  Before LAST: it reads ahead below Unique and Group. */
	{ARRAYS, T_Invalid, sort_arrays},

	{LAST, T_Unique, gs_group_distinct},
	{LAST, T_Group, gs_group_distinct},
};

static Plan *
take_steps(GsStepContext *context, Pass pass, Plan *plan)
{
	for (int i = 0; i < lengthof(steps); i++)
		if (steps[i].pass == pass && (steps[i].tag == T_Invalid || steps[i].tag == nodeTag(plan)))
			plan = steps[i].step(context, plan);
	return plan;
}

static void
walk(Plan **plan, void *data)
{
	GsStepContext *context = data;
	const GsStepContext here = *context;

	*plan = take_steps(context, DOWN, *plan);
	context->parent = *plan;
	gs_plan_visit_children(*plan, walk, context);
	context->parent = here.parent;
	context->flags = here.flags;
	context->bound = here.bound;
	*plan = take_steps(context, UP, *plan);
}

static void
walk_last(Plan **plan, void *context)
{
	gs_plan_visit_children(*plan, walk_last, context);
	*plan = take_steps(context, LAST, *plan);
}

static void
walk_all(GsStepContext *context, void (*walk_plan) (Plan **plan, void *context))
{
	ListCell   *lc;

	walk_plan(&context->stmt->planTree, context);
	foreach(lc, context->stmt->subplans)
		if (lfirst(lc) != NULL)
			walk_plan((Plan **) &lfirst(lc), context);
}

/* Does a statement return its rows as they are, and do nothing else? */
static bool
only_selects(const PlannedStmt *stmt)
{
	return stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE && stmt->rowMarks == NIL;
}

/*
 * May the topmost node return its groups in any order?  Not if they are those of a subquery: the node that
 * returned the subquery's rows was left out, and it may have an ORDER BY.
 */
static bool
groups_in_any_order(const Query *parse)
{
	return parse->sortClause == NIL &&
		(parse->groupClause != NIL || parse->distinctClause != NIL || parse->setOperations != NULL);
}

void
gs_plan_steps(PlannedStmt *stmt, const Query *parse, const PlannerInfo *root, int cursor_options,
			  bool has_sorts, bool has_calls)
{
	Statement	statement = {{.stmt = stmt, .bound = gs_no_bound}, root, cursor_options};
	GsStepContext *context = &statement.step;

	if (has_sorts)
	{
		if (gs_sort_may_rerun(parse) && !is_volatile(root, stmt, GS_VOLATILE_BESIDE_SCANS))
			context->flags = gs_plan_subplan_flags(stmt);
		context->any_order = groups_in_any_order(parse);
		context->last_node_id = gs_plan_last_node_id(stmt);
		walk_all(context, walk);
		if (only_selects(stmt))
			stmt->planTree = take_steps(context, TOP, stmt->planTree);
	}
	if (has_calls)
		stmt->planTree = take_steps(context, ARRAYS, stmt->planTree);
	if (has_sorts)
		walk_all(context, walk_last);
}
