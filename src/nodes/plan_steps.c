/*-------------------------------------------------------------------------
 *
 * plan_steps.c
 *	  The planner hooks, and the table of all steps that change finished plans.
 *
 * While a query's paths are made, GpuSort paths are added (gpusort_path.h, gpupercentile.h).
 *
 * A step looks at one node of a plan and returns it, perhaps changed, or the node that takes its place
 * (plan_steps.h).  A pass visits each node once, and runs the matching steps in table order.  A step gets
 * the node that the step before it has returned.  If that has another tag, steps for the former tag are
 * skipped.
 *
 * Passes, in their order:
 *
 *		UP		a node after those below it
 *		TOP		the topmost node of a SELECT's plan, when that walk has ended
 *		LAST	again a node after those below it
 *
 * Calls of gpu_sort_array() have a walk of their own, between TOP and LAST (gpuarrays_plan.c).  TOP looks
 * for GpuSort at the top, and that walk reads ahead below Unique and Group, which LAST replaces.
 *
 * Steps rely on these rules, and must keep them:
 *
 *	  - Expressions have their final form: a node's target list refers to its child's by OUTER_VAR,
 *		that of a custom scan to its scan tuple, custom_scan_tlist, by INDEX_VAR, and the
 *		scan tuple to the child's by OUTER_VAR.
 *	  - At UP a node's children are finished, apart from LAST.  The nodes above it are still PostgreSQL's.
 *	  - Unique and Group stay until LAST, because steps look for them below other nodes.
 *	  - A plan_node_id occurs once.  A node that takes another's place takes its number, costs, parameters
 *		and init plans (gs_node_make(), gs_sort_replace_merge()); one that is added gets
 *		++context->last_node_id.
 *	  - Nothing is assumed of how a plan came about: steps compare columns, operators and collations.
 *
 * Tests: regress/plan_sorts, regress/aggregates, regress/plans, regress/paths
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "client/client.h"
#include "compat.h"
#include "gpusort.h"
#include "guc.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/group/gpugroup.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/plan_steps.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/sort/gpusort_steps.h"
#include "nodes/window/gpuwindow.h"
#include "plan/sort_refuse.h"

static create_upper_paths_hook_type previous_hook = NULL;
static set_join_pathlist_hook_type previous_join_hook = NULL;
static planner_hook_type previous_planner = NULL;

/* The planner's knowledge of the query that is being planned; NULL before its paths are made, or if freed. */
static PlannerInfo *top_root = NULL;

typedef enum Pass
{
	UP,
	TOP,
	LAST
} Pass;

/* Note what the nodes below a node may know of it. */
static void
note_above(GsStepContext *context, const Plan *plan)
{
	const Plan *above = context->parent;

	/*
	 * Below a Gather a process has only its part of the rows, and would not get the same part by scanning
	 * again.  Below the FOR UPDATE of a subquery, rows were locked meanwhile.
	 */
	if (IsA(plan, Gather) || IsA(plan, GatherMerge) || IsA(plan, LockRows))
		context->rerun = false;
	context->bound = gs_plan_bound_below(plan, context->bound);
	context->is_second |= above && gs_node_is(above, &gs_choice_node) && plan == innerPlan(above);
	context->parent = plan;
}

static Plan *
report(GsStepContext *context, Plan *plan)
{
	/* a GpuChoice has a sort to do, too */
	if (!context->is_second)
		gs_refuse_node(plan);
	return plan;
}

/*
 * Does a plan's query have volatile functions?  The query is searched after planning, so that only queries
 * whose plans need the answer pay for it.  The planner moves parts between queries.  It never drops them, so
 * we find each part in one of the queries below: a pulled-up subquery in the query around it, sublinks and
 * CTEs in the queries of subplans, and a planned subquery in its RTE.
 */
static bool
is_volatile(const PlannedStmt *stmt, GsVolatileScope scope)
{
	ListCell   *lc;

	/* not planned by the usual planner, freed, or changed since: be careful */
	if (top_root == NULL || top_root->glob->finalrtable != stmt->rtable)
		return true;
	if (gs_query_is_volatile(top_root->parse, scope))
		return true;
	foreach(lc, top_root->glob->subroots)
		if (gs_query_is_volatile(lfirst_node(PlannerInfo, lc)->parse, scope))
			return true;
	return false;
}

/*
 * All steps that change a finished plan.  tag: the kind of node that a step is for.  above: the step
 * makes nodes above sorts, and gpusort.sorts_only switches it off.
 */
static const struct
{
	Pass		pass;
	NodeTag		tag;
	GsPlanStep	step;
	bool		above;
}			steps[] = {
	/* First: the other steps read the columns of GpuSorts, which are not final before. */
	{UP, T_CustomScan, gs_sort_finish},

	/* Before gs_agg_use_order(), which takes out the DISTINCT that is looked for here. */
	{UP, T_Agg, gs_group_count, true},

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
	{UP, T_Agg, gs_agg_use_order, true},
#endif

	/* These stand in each other's place: above one GpuSort the first one wins. */
	{UP, T_Agg, gs_percentile_replace, true},
	{UP, T_Agg, gs_group_aggregate, true},
	{UP, T_WindowAgg, gs_window_replace, true},

	/* Before the Sort is replaced: it stays where a GpuSort is not worth while. */
	{UP, T_Sort, gs_group_keep_top, true},
	{UP, T_CustomScan, gs_group_keep_top, true},
	{UP, T_Sort, gs_sort_replace},
	{UP, T_GatherMerge, gs_sort_replace_merge},

	/* After these two, which make GpuSorts for it. */
	{UP, T_CustomScan, gs_keep_for_limit},

	/* The rest stays PostgreSQL's. */
	{UP, T_Agg, report},
	{UP, T_IncrementalSort, report},

	/* Last, because the plan that it may return has had all steps. */
	{UP, T_CustomScan, gs_choice_finish},

	/* Only the user needs these columns. */
	{TOP, T_Limit, gs_tlist_drop_junk},
	{TOP, T_CustomScan, gs_tlist_drop_junk},
	{TOP, T_CustomScan, gs_window_drop_junk},

	{LAST, T_Unique, gs_group_distinct, true},
	{LAST, T_Group, gs_group_distinct, true},
};

static Plan *
take_steps(GsStepContext *context, Pass pass, Plan *plan)
{
	for (int i = 0; i < lengthof(steps); i++)
		if (steps[i].pass == pass && steps[i].tag == nodeTag(plan) && !(steps[i].above && gs_guc_sorts_only))
			plan = steps[i].step(context, plan);
	return plan;
}

static void
walk(Plan **plan, void *data)
{
	GsStepContext *context = data;
	const GsStepContext here = *context;

	note_above(context, *plan);
	gs_plan_visit_children(*plan, walk, context);
	context->parent = here.parent;
	context->rerun = here.rerun;
	context->bound = here.bound;
	*plan = take_steps(context, UP, *plan);
	context->is_second = here.is_second;
}

static void
walk_last(Plan **plan, void *context)
{
	gs_plan_visit_children(*plan, walk_last, context);
	*plan = take_steps(context, LAST, *plan);
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

/* Take all steps that the statement needs. */
static void
change_plan(PlannedStmt *stmt, const Query *parse, int cursor_options)
{
	GsStepContext context = {.stmt = stmt, .bound = gs_no_bound};
	bool		has_sorts = gs_plan_has_sorts(stmt);

	if (has_sorts)
	{
		gs_refuse_begin(stmt);
		context.rerun = gs_sort_may_rerun(parse) && !is_volatile(stmt, GS_VOLATILE_BESIDE_SCANS) &&
			gs_subplans_may_rerun(stmt);
		context.any_order = groups_in_any_order(parse);
		context.last_node_id = gs_plan_last_node_id(stmt);
		gs_plan_visit_all(stmt, walk, &context);
		if (only_selects(stmt))
			stmt->planTree = take_steps(&context, TOP, stmt->planTree);
	}
	if (!gs_guc_sorts_only && gs_array_plan_may_have_calls(stmt) && gs_client_service_ready())
		gs_array_plan(stmt, cursor_options, is_volatile(stmt, GS_VOLATILE_ANYWHERE));
	if (has_sorts)
		gs_plan_visit_all(stmt, walk_last, &context);
}

/*
 * The hooks
 */

static void
offer_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			RelOptInfo *output_rel, void *extra)
{
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
			gs_agg_offer_paths(root, input_rel, output_rel, extra);
#endif
			gs_group_offer_paths(root, input_rel, output_rel, extra);
			gs_percentile_offer_path(root, input_rel, output_rel, extra);
			break;
		case UPPERREL_WINDOW:
			gs_window_offer_paths(root, input_rel, output_rel);
			break;
		case UPPERREL_DISTINCT:
			gs_distinct_offer_paths(root, input_rel, output_rel);
			break;
		case UPPERREL_SETOP:
			gs_union_offer_paths(root, output_rel);
			break;
		case UPPERREL_ORDERED:
			gs_order_offer_paths(root, input_rel, output_rel);
			break;
		default:
			break;
	}
}

static void
set_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	if (previous_join_hook)
		previous_join_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	if (gs_guc_enabled == GS_ENABLED_ON)
		gs_join_offer_path(root, joinrel, outerrel, innerrel, jointype, extra);
}

/* The context of a root is reset: a planner hook between us and PostgreSQL had one of its own. */
static void
forget_root(void *root)
{
	if (top_root == root)
		top_root = NULL;
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);
	if (gs_guc_enabled == GS_ENABLED_ON)
		offer_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_FINAL && root->query_level == 1)
	{
		MemoryContext context = GetMemoryChunkContext(root);
		MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));

		*callback = (MemoryContextCallback){.func = forget_root, .arg = root};
		MemoryContextRegisterResetCallback(context, callback);
		top_root = root;
	}
}

static PlannedStmt *
plan_query(gs_compat_planner_params)
{
	PlannerInfo *outer_root = top_root;
	bool		outer_unfinished = gs_sort_unfinished;
	PlannedStmt *stmt;

	/* functions that the planner evaluates may have queries to be planned */
	top_root = NULL;
	gs_sort_unfinished = false;
	PG_TRY();
	{
		if (previous_planner)
			stmt = previous_planner(gs_compat_planner_args);
		else
			stmt = standard_planner(gs_compat_planner_args);
		if ((gs_guc_enabled == GS_ENABLED_ON || gs_sort_unfinished) && stmt->planTree != NULL)
			change_plan(stmt, parse, cursor_options);
	}
	PG_FINALLY();
	{
		top_root = outer_root;
		gs_sort_unfinished = outer_unfinished;
	}
	PG_END_TRY();
	return stmt;
}

void
gs_nodes_init(void)
{
	RegisterCustomScanMethods(&gs_sort_node.scan);
	RegisterCustomScanMethods(&gs_feed_node.scan);
	RegisterCustomScanMethods(&gs_window_node.scan);
	RegisterCustomScanMethods(&gs_percentile_node.scan);
	RegisterCustomScanMethods(&gs_group_node.scan);
	RegisterCustomScanMethods(&gs_choice_node.scan);
	RegisterCustomScanMethods(&gs_arrays_node.scan);
	gs_compat_register_explain_option();
}

void
gs_planner_init(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_query;
	previous_hook = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
	previous_join_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = set_join_pathlist;
}
