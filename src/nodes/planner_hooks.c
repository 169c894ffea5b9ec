/*-------------------------------------------------------------------------
 *
 * planner_hooks.c
 *	  Offer GpuSort paths for a query's ORDER BY, and look at finished plans.
 *
 * At UPPERREL_ORDERED up to two paths are added, and compete by cost with
 * those that PostgreSQL made:
 *
 *		GpuSort -> cheapest path
 *		GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the second one the rows reach the device from all processes at once and
 * none goes through Gather, whose part is to launch and join the workers.
 *
 * In the finished plan the sorts that have no paths of their own are replaced
 * (plan_replace.c), and columns that only PostgreSQL's own sort would have
 * needed taken out (sort_tlist.c).  Calls of gpu_sort_array() are given to
 * GpuArraySort there (array_plan.c).
 *
 * Most statements have neither large sorts nor such calls, and must not pay for
 * gpusort.  So a plan is walked for sorts in one look at its nodes, for calls only if
 * it depends on some function that is not built in, and all else, which looks
 * at expressions, is done only for what was found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "guc.h"
#include "planner/array_plan.h"
#include "planner/plan_replace.h"
#include "planner/planner_hooks.h"
#include "planner/sort_cost.h"
#include "planner/sort_plan.h"
#include "planner/sort_tlist.h"
#include "service/service_client.h"

static create_upper_paths_hook_type previous_hook = NULL;
static planner_hook_type previous_planner = NULL;

/* What the planner knows of the query that is being planned; NULL before its paths are made. */
static PlannerInfo *top_root = NULL;

/*
 * Can every column of the query's ORDER BY be sorted by gpusort?  The columns
 * that an equivalence class makes redundant do no harm here.
 */
static bool
order_by_is_supported(PlannerInfo *root)
{
	List	   *clauses = root->parse->sortClause;
	int			n = list_length(clauses);
	AttrNumber *attnos = palloc(n * sizeof(AttrNumber));
	Oid		   *operators = palloc(n * sizeof(Oid));
	Oid		   *collations = palloc(n * sizeof(Oid));
	bool	   *nulls_first = palloc(n * sizeof(bool));
	Oid		   *types = palloc(n * sizeof(Oid));
	GsRefusal	refusal;
	int			i = 0;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, root->processed_tlist);

		attnos[i] = i + 1;
		operators[i] = clause->sortop;
		collations[i] = exprCollation(expr);
		nulls_first[i] = clause->nulls_first;
		types[i] = exprType(expr);
		i++;
	}
	/* a refusal is noted when the plan turns out to have a Sort in it */
	return gs_key_desc_create(n, attnos, operators, collations, nulls_first, types,
							  &refusal) != NULL;
}

/* May a plan for this query be run a second time, unseen by the user? */
static bool
can_run_again(const Query *parse, bool is_volatile)
{
	return !parse->hasModifyingCTE && parse->rowMarks == NIL && !is_volatile;
}

static CustomPath *
make_custom_path(RelOptInfo *rel, Path *child, PathTarget *target, const CustomPathMethods *methods)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.param_info = NULL;
	path->custom_paths = list_make1(child);
	path->methods = methods;
	return path;
}

static Path *
make_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *child, double rows, bool fed_below)
{
	CustomPath *path;
	SortPath   *sort = create_sort_path(root, rel, child, root->sort_pathkeys, -1.0);
	bool		rerun = can_run_again(root->parse, contain_volatile_functions((Node *) root->parse));

	path = make_custom_path(rel, (Path *) sort, child->pathtarget, &gs_sort_path_methods);
	path->path.parallel_aware = false;
	path->path.parallel_safe = false;
	path->path.parallel_workers = 0;
	path->path.pathkeys = root->sort_pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	path->custom_private = list_make1_int(rerun ? GS_PLAN_FLAG_RERUN : 0);
	gs_cost_sort(&path->path, child->total_cost, rows, fed_below);
	gs_compat_inherit_disabled(&path->path, child);
	return &path->path;
}

static Path *
make_parallel_feed(PlannerInfo *root, RelOptInfo *rel, Path *partial)
{
	CustomPath *feed;
	GatherPath *gather;
	double		none = 0;

	feed = make_custom_path(rel, partial, partial->pathtarget, &gs_feed_path_methods);
	feed->path.parallel_aware = true;
	feed->path.parallel_safe = true;
	feed->path.parallel_workers = partial->parallel_workers;
	feed->path.rows = partial->rows;
	feed->path.startup_cost = partial->startup_cost;
	gs_compat_inherit_disabled(&feed->path, partial);
	feed->path.total_cost = partial->total_cost +
		gs_cost_feed(partial->rows, partial->pathtarget->width);

	gather = create_gather_path(root, rel, &feed->path, partial->pathtarget, NULL, &none);
	gather->path.startup_cost = feed->path.startup_cost + parallel_setup_cost;
	gather->path.total_cost = feed->path.total_cost + parallel_setup_cost;
	return &gather->path;
}

static void
add_ordered_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *path)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];

	/* a set operation has no target of its own for this step */
	if (target && path->pathtarget != target)
		path = apply_projection_to_path(root, ordered_rel, path, target);
	add_path(ordered_rel, path);
}

static void
offer_sort(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	Path	   *serial;
	Path	   *parallel = NULL;

	if (root->parse->sortClause == NIL || root->sort_pathkeys == NIL || cheapest == NULL ||
		cheapest->param_info != NULL)
		return;
	if (!gs_guc_force)
	{
		if (!enable_sort || cheapest->rows < gs_guc_min_rows ||
			gs_cost_prefers_heapsort(cheapest->rows, cheapest->pathtarget->width,
									 root->limit_tuples))
			return;
		if (pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys))
			return;
	}
	if (!gs_client_service_ready() || !order_by_is_supported(root))
		return;

	serial = make_sort_path(root, ordered_rel, cheapest, cheapest->rows, false);
	if (ordered_rel->consider_parallel && input_rel->partial_pathlist != NIL)
	{
		Path	   *gather = make_parallel_feed(root, ordered_rel,
												linitial(input_rel->partial_pathlist));

		parallel = make_sort_path(root, ordered_rel, gather, cheapest->rows, true);
	}

	/* forced: leave the planner no other choice */
	if (gs_guc_force)
		ordered_rel->pathlist = NIL;
	add_ordered_path(root, ordered_rel, serial);
	if (parallel)
		add_ordered_path(root, ordered_rel, parallel);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_ORDERED && gs_guc_enabled)
		offer_sort(root, input_rel, output_rel);
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
is_volatile(const PlannerInfo *root, const PlannedStmt *stmt)
{
	ListCell   *lc;

	/* not planned by the usual planner, or changed since: be careful */
	if (root == NULL || root->glob->finalrtable != stmt->rtable)
		return true;
	if (contain_volatile_functions((Node *) root->parse))
		return true;
	foreach(lc, root->glob->subroots)
		if (contain_volatile_functions((Node *) lfirst_node(PlannerInfo, lc)->parse))
			return true;
	return false;
}

/* What to do with a finished plan, and no more than there is to do. */
static void
change_plan(PlannedStmt *stmt, const Query *parse, const PlannerInfo *root, int cursor_options)
{
	if (gs_plan_has_sorts(stmt))
	{
		gs_plan_replace_sorts(stmt, can_run_again(parse, is_volatile(root, stmt)));
		gs_tlist_drop_junk(stmt);
	}
	if (gs_array_plan_may_have_calls(stmt) && gs_client_service_ready())
		gs_array_plan(stmt, cursor_options, is_volatile(root, stmt));
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannerInfo *outer_root = top_root;
	PlannedStmt *stmt;

	/* functions that the planner evaluates may have queries to be planned */
	top_root = NULL;
	PG_TRY();
	{
		if (previous_planner)
			stmt = previous_planner(parse, query_string, cursor_options, params);
		else
			stmt = standard_planner(parse, query_string, cursor_options, params);
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
}
