/*-------------------------------------------------------------------------
 *
 * planner_hooks.c
 *	  Where gpusort enters PostgreSQL's planner.
 *
 * While a query's paths are made GpuSort is offered for its ORDER BY
 * (gpusort_path.c), GROUP BY and window functions (gpusort_upper_path.c), DISTINCT
 * (gpusort_distinct.c), UNION (gpusort_union.c), merge joins (gpusort_join_path.c) and the sorts inside
 * aggregates (gpusort_agg_path.c).  In the finished plan the sorts that PostgreSQL
 * chose all the same are replaced (gpusort_replace.c), and columns that only
 * PostgreSQL's own sort would have needed taken out (gpusort_tlist.c).  Calls of
 * gpu_sort_array() are given to GpuArraySort there (gpuarrays_plan.c).  At last GpuGroup takes
 * the place of what drops equal rows above a GpuSort (gpugroup_plan.c).
 *
 * Most statements have neither large sorts nor such calls, and must not pay for
 * gpusort.  So a plan is walked for sorts in one look at its nodes, for calls only if
 * it depends on some function that is not built in, and all else, which looks
 * at expressions, is done only for what was found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "compat.h"
#include "guc.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_offers.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/group/gpugroup.h"
#include "nodes/planner_hooks.h"
#include "plan/query_volatile.h"
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

/* What to do with a finished plan, and no more than there is to do. */
static void
change_plan(PlannedStmt *stmt, const Query *parse, const PlannerInfo *root, int cursor_options)
{
	bool		has_sorts = gs_plan_has_sorts(stmt);

	if (has_sorts)
	{
		gs_plan_replace_sorts(stmt, gs_sort_may_rerun(parse) &&
							  !is_volatile(root, stmt, GS_VOLATILE_BESIDE_SCANS));
		gs_tlist_drop_junk(stmt);
	}
	if (gs_array_plan_may_have_calls(stmt) && gs_client_service_ready())
		gs_array_plan(stmt, cursor_options, is_volatile(root, stmt, GS_VOLATILE_ANYWHERE));
	if (has_sorts)
		gs_group_distinct(stmt);
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
			change_plan(stmt, parse, top_root, cursor_options);
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
