/*-------------------------------------------------------------------------
 *
 * gpusort_upper_path.c
 *	  Offering GpuSort for GROUP BY and window functions.
 *
 *		GroupAggregate -> GpuSort		against HashAggregate
 *		WindowAgg -> GpuSort			against indexes, and serial scans
 *
 * each over the input's cheapest path and over the parallel feed
 * (gpusort_path.c).  PostgreSQL makes the same paths over its own Sort, which the
 * finished plan would have replaced (gpusort_replace.c); but with the cost of that
 * Sort another path mostly wins before.
 *
 * Hashing is best for few groups: rows go nowhere, and workers hash in parallel.
 * So nothing is offered against it for fewer than gpusort.min_rows groups.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "guc.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_rivals.h"
#include "service/service_client.h"

/* Is it worth while to look for paths that sort the input like this? */
static bool
is_candidate(const RelOptInfo *input_rel, const RelOptInfo *rel, List *pathkeys)
{
	const Path *cheapest = input_rel->cheapest_total_path;

	return enable_sort && pathkeys != NIL && cheapest != NULL && rel->pathlist != NIL &&
		cheapest->param_info == NULL && !IS_OTHER_REL(rel) &&
		cheapest->rows >= gs_guc_min_rows &&
		!pathkeys_contained_in(pathkeys, cheapest->pathkeys) && gs_client_service_ready() &&
		gs_sort_supports(pathkeys);
}

void
gs_group_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
					 const GroupPathExtraData *extra)
{
	const Query *parse = root->parse;
	List	   *clause = gs_compat_group_clause(root);
	List	   *having = (List *) extra->havingQual;
	double		groups = gs_expected_groups(grouped_rel);
	double		rows;
	AggClauseCosts costs;
	List	   *paths = NIL;
	ListCell   *lc;

	if (parse->groupingSets != NIL || groups == 0 ||
		!is_candidate(input_rel, grouped_rel, root->group_pathkeys))
		return;
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
	/* there are paths for these already (gpusort_agg_path.c) */
	if (root->numOrderedAggs > 0)
		return;
#endif
	if (groups < gs_guc_min_rows && enable_hashagg && parse->groupClause != NIL &&
		root->numOrderedAggs == 0 && grouping_is_hashable(clause))
		return;

	/* without aggregates equal rows are dropped (gpusort_keep.c) */
	rows = input_rel->cheapest_total_path->rows;
	memset(&costs, 0, sizeof(costs));
	if (parse->hasAggs)
		get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	foreach(lc, gs_sort_input_paths(root, grouped_rel, input_rel, root->group_pathkeys,
									 parse->hasAggs ? rows : Min(groups, rows)))
	{
		Path	   *sorted = lfirst(lc);
		AggStrategy strategy = parse->groupClause != NIL ? AGG_SORTED : AGG_PLAIN;

		if (parse->hasAggs)
			paths = lappend(paths, create_agg_path(root, grouped_rel, sorted,
												   grouped_rel->reltarget, strategy,
												   AGGSPLIT_SIMPLE, clause, having, &costs,
												   groups));
		else
			paths = lappend(paths, create_group_path(root, grouped_rel, sorted, clause, having,
													 groups));
	}
	gs_add_grouped_paths(root, grouped_rel, paths, rows,
						 get_sortgrouplist_exprs(clause, root->processed_tlist),
						 root->window_pathkeys ? root->window_pathkeys :
						 root->distinct_pathkeys ? root->distinct_pathkeys : root->sort_pathkeys,
						 &extra->agg_final_costs);
}

/* The order that a window wants its rows in. */
static List *
window_pathkeys(PlannerInfo *root, const WindowClause *window)
{
	return make_pathkeys_for_sortclauses(root,
										 list_concat_copy(window->partitionClause,
														  window->orderClause),
										 root->processed_tlist);
}

/* The same windows, the first one last, without what sorts the rows between them. */
static List *
find_windows(const Path *path)
{
	List	   *windows = NIL;

	for (;;)
	{
		if (IsA(path, WindowAggPath))
		{
			windows = lappend(windows, unconstify(Path *, path));
			path = ((const WindowAggPath *) path)->subpath;
		}
		else if (IsA(path, SortPath) || IsA(path, IncrementalSortPath))
			path = ((const SortPath *) path)->subpath;
		else
			return windows;
	}
}

/* A window like PostgreSQL's, over sorted rows. */
static Path *
copy_window(const WindowAggPath *like, Path *sorted)
{
	WindowAggPath *window = makeNode(WindowAggPath);

	*window = *like;
	window->subpath = sorted;
	window->path.parallel_aware = false;
	window->path.parallel_safe = false;
	window->path.parallel_workers = 0;
	window->path.pathkeys = sorted->pathkeys;
	window->path.startup_cost += sorted->startup_cost - like->subpath->startup_cost;
	window->path.total_cost += sorted->total_cost - like->subpath->total_cost;
	/* from PostgreSQL 17 on the startup cost has a part of the input's run cost in it */
	window->path.startup_cost = Min(window->path.startup_cost, window->path.total_cost);
	gs_compat_inherit_disabled(&window->path, sorted);
	return &window->path;
}

void
gs_window_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *window_rel)
{
	List	   *windows = NIL;
	List	   *pathkeys;
	List	   *paths = NIL;
	ListCell   *lc;

	if (window_rel->pathlist != NIL)
		windows = find_windows(linitial(window_rel->pathlist));
	if (windows == NIL)
		return;
	pathkeys = window_pathkeys(root, llast_node(WindowAggPath, windows)->winclause);
	if (!is_candidate(input_rel, window_rel, pathkeys))
		return;
	foreach(lc, gs_sort_input_paths(root, window_rel, input_rel, pathkeys,
									 input_rel->cheapest_total_path->rows))
	{
		Path	   *path = lfirst(lc);

		for (int i = list_length(windows) - 1; i >= 0; i--)
		{
			const WindowAggPath *window = list_nth_node(WindowAggPath, windows, i);

			pathkeys = window_pathkeys(root, window->winclause);
			if (!pathkeys_contained_in(pathkeys, path->pathkeys))
			{
				if (!gs_sort_supports(pathkeys))
					return;
				path = gs_sort_path(root, window_rel, path, pathkeys, path->rows, path->rows, false,
									gs_sort_path_flags(root));
			}
			path = copy_window(window, path);
		}
		paths = lappend(paths, path);
	}
	gs_add_sorted_paths(root, window_rel, paths);
}
