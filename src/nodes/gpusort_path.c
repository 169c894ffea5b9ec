/*-------------------------------------------------------------------------
 *
 * gpusort_path.c
 *	  Offering GpuSort paths for a query's ORDER BY.
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
 * A MergeAppend under a libc collation costs far more than PostgreSQL thinks.  Where it
 * would win for that reason only, it is taken out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "guc.h"
#include "key/key_types.h"
#include "nodes/gpusort.h"
#include "plan/query_volatile.h"
#include "plan/sort_cost.h"
#include "service/service_client.h"

/* Columns that an equivalence class makes redundant do no harm here. */
bool
gs_sort_clauses_are_supported(PlannerInfo *root, List *clauses)
{
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

bool
gs_sort_may_rerun(const Query *parse)
{
	return !parse->hasModifyingCTE && parse->rowMarks == NIL;
}

int
gs_sort_path_flags(const PlannerInfo *root)
{
	if (!gs_sort_may_rerun(root->parse) || gs_query_is_volatile(root->parse, GS_VOLATILE_BESIDE_SCANS))
		return 0;
	return GS_PLAN_FLAG_RERUN | GS_PLAN_FLAG_REPEATABLE;
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

Path *
gs_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *child, List *pathkeys, double rows,
			 double rows_back, bool fed_below, int flags)
{
	CustomPath *path;
	SortPath   *sort = create_sort_path(root, rel, child, pathkeys, -1.0);
	double		rows_fed = fed_below ? 0 : rows;
	int			width = child->pathtarget->width;
	Cost		cost = gs_cost_sort(rows_fed, rows, width);

	path = make_custom_path(rel, (Path *) sort, child->pathtarget, &gs_sort_path_methods);
	path->path.parallel_aware = false;
	path->path.parallel_safe = false;
	path->path.parallel_workers = 0;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	path->custom_private = list_make1_int(flags);
	path->path.rows = rows_back;
	path->path.startup_cost = child->total_cost + gs_cost_sort_startup(rows_fed, rows, width);
	path->path.total_cost = child->total_cost + cost - (rows - rows_back) * gs_guc_fetch_row_cost;
	gs_compat_inherit_disabled(&path->path, child);
	return &path->path;
}

Path *
gs_sort_feed_path(PlannerInfo *root, RelOptInfo *rel, Path *partial)
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

/*
 * May the cheapest path be gone?  One in the right order was itself added to
 * ordered_rel, and freed if a Gather Merge then turned out to be cheaper.  Below
 * grouping that one was among the cheapest path's rivals before.
 */
static bool
may_be_freed(const RelOptInfo *input_rel, const RelOptInfo *ordered_rel)
{
	return IS_UPPER_REL(input_rel) && input_rel->partial_pathlist != NIL &&
		!list_member_ptr(ordered_rel->pathlist, input_rel->cheapest_total_path);
}

/* What so much of a path's rows cost. */
static Cost
fraction_cost(const Path *path, double fraction)
{
	return path->startup_cost + fraction * (path->total_cost - path->startup_cost);
}

/*
 * How many streams a path merges by the comparison of a libc collation; 0: it does no
 * such thing.
 */
static int
libc_merge_streams(const Path *path)
{
	const PathKey *first;
	GsKeyCollator *collator;
	const GsLibcCollation *libc;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (!IsA(path, MergeAppendPath) || path->pathkeys == NIL)
		return 0;
	first = linitial_node(PathKey, path->pathkeys);
	if (!gs_key_collation_lookup(first->pk_eclass->ec_collation, &collator, &libc) || libc == NULL)
		return 0;
	return list_length(((const MergeAppendPath *) path)->subpaths);
}

/*
 * Remove merges that PostgreSQL takes to be cheaper than a GpuSort, or as cheap, only
 * since it does not count what their comparisons cost.
 */
static void
remove_merges(const PlannerInfo *root, RelOptInfo *ordered_rel, const Path *sort)
{
	double		fraction = root->tuple_fraction >= 1.0 ?
		root->tuple_fraction / Max(sort->rows, 1.0) : root->tuple_fraction;
	ListCell   *lc;

	if (fraction <= 0 || fraction > 1.0)
		fraction = 1.0;
	foreach(lc, ordered_rel->pathlist)
	{
		const Path *path = lfirst(lc);
		int			streams = libc_merge_streams(path);

		if (streams > 1 && !gs_compat_more_disabled(sort, path) &&
			fraction_cost(sort, fraction) <
			fraction_cost(path, fraction) + fraction * gs_cost_libc_merge(path->rows, streams))
			ordered_rel->pathlist = foreach_delete_current(ordered_rel->pathlist, lc);
	}
}

void
gs_sort_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	Path	   *partial = NULL;
	Path	   *serial = NULL;
	Path	   *parallel = NULL;
	bool		serial_wins = true;
	bool		parallel_wins = true;
	double		rows;
	int			flags;

	if (root->parse->sortClause == NIL || root->sort_pathkeys == NIL || cheapest == NULL ||
		may_be_freed(input_rel, ordered_rel) || cheapest->param_info != NULL)
		return;
	rows = cheapest->rows;
	if (ordered_rel->consider_parallel && input_rel->partial_pathlist != NIL)
		partial = linitial(input_rel->partial_pathlist);
	if (!gs_guc_force)
	{
		int			width = cheapest->pathtarget->width;

		if (!enable_sort || rows < gs_guc_min_rows)
			return;
		serial_wins = !gs_cost_prefers_heapsort(rows, rows, width, root->limit_tuples);
		parallel_wins = partial &&
			!gs_cost_prefers_heapsort(partial->rows, rows, width, root->limit_tuples);
		if (!serial_wins && !parallel_wins)
			return;
		if (pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys))
			return;
	}
	if (!gs_client_service_ready() ||
		!gs_sort_clauses_are_supported(root, root->parse->sortClause))
		return;

	flags = gs_sort_path_flags(root);

	/* forced: leave the planner no other choice */
	if (gs_guc_force)
		ordered_rel->pathlist = NIL;
	if (serial_wins)
		serial = gs_sort_path(root, ordered_rel, cheapest, root->sort_pathkeys, rows, rows, false,
							  flags);
	if (partial && parallel_wins)
		parallel = gs_sort_path(root, ordered_rel, gs_sort_feed_path(root, ordered_rel, partial),
								root->sort_pathkeys, rows, rows, true, flags);
	if (!gs_guc_force && serial)
		remove_merges(root, ordered_rel, serial);
	if (!gs_guc_force && parallel)
		remove_merges(root, ordered_rel, parallel);
	if (serial)
		add_ordered_path(root, ordered_rel, serial);
	if (parallel)
		add_ordered_path(root, ordered_rel, parallel);
}
