/*-------------------------------------------------------------------------
 *
 * planner_hooks.c
 *	  Where gpusort enters PostgreSQL's planner.
 *
 * While a query's paths are made GpuSort is offered for them (gpusort_offers.h, gpupercentile.h).  The steps
 * of plan_steps.c change the finished plan.
 *
 * Most statements have neither large sorts nor calls of gpu_sort_array(), and must not pay for gpusort.
 * So a plan is walked for sorts in one look at its nodes, for calls only if it depends on some
 * function that is not built in, and all else, which looks at expressions, is done only for what was
 * found.
 *
 * Tests: regress/plans, regress/paths
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "compat.h"
#include "gpusort.h"
#include "guc.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/plan_steps.h"
#include "nodes/sort/gpusort_offers.h"
#include "nodes/sort/gpusort_steps.h"
#include "service/service_client.h"

static create_upper_paths_hook_type previous_hook = NULL;
static set_join_pathlist_hook_type previous_join_hook = NULL;
static planner_hook_type previous_planner = NULL;

/* What the planner knows of the query that is being planned; NULL before its paths are made. */
static PlannerInfo *top_root = NULL;

static void
offer_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			RelOptInfo *output_rel, void *extra)
{
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
			gs_agg_offer_paths(root, input_rel, output_rel);
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
	if (gs_guc_enabled)
		gs_join_offer_path(root, joinrel, outerrel, innerrel, jointype, extra);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);
	if (gs_guc_enabled)
		offer_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_FINAL && root->query_level == 1)
		top_root = root;
}

static void
change_plan(PlannedStmt *stmt, const Query *parse, int cursor_options)
{
	bool		has_sorts = gs_plan_has_sorts(stmt);
	bool		has_calls = gs_array_plan_may_have_calls(stmt) && gs_client_service_ready();

	if (has_sorts || has_calls)
		gs_plan_steps(stmt, parse, top_root, cursor_options, has_sorts, has_calls);
}

static PlannedStmt *
plan_query(gs_compat_planner_params)
{
	PlannerInfo *outer_root = top_root;
	PlannedStmt *stmt;

	/* functions that the planner evaluates may have queries to be planned */
	top_root = NULL;
	PG_TRY();
	{
		if (previous_planner)
			stmt = previous_planner(gs_compat_planner_args);
		else
			stmt = standard_planner(gs_compat_planner_args);
		if (gs_guc_enabled && stmt->planTree != NULL)
			change_plan(stmt, parse, cursor_options);
	}
	PG_FINALLY();
	{
		top_root = outer_root;
	}
	PG_END_TRY();
	return stmt;
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
