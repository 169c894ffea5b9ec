/*-------------------------------------------------------------------------
 *
 * gpusort_upper_path.c
 *	  Offering GpuSort for GROUP BY, DISTINCT and window functions.
 *
 *		GroupAggregate, or Group -> GpuSort		against HashAggregate
 *		Unique -> GpuSort						the same
 *		WindowAgg -> GpuSort					against indexes, and serial scans
 *
 * PostgreSQL makes the same paths over its own Sort.  gpusort_replace.c could replace that Sort in the
 * finished plan, but such a path seldom wins, because the cost of PostgreSQL's Sort is in it.
 *
 * In the finished plan GpuSort is told to drop equal rows if they are not needed (gpusort_keep.c).  So only
 * different rows come back, and only these are in the cost.
 *
 * Tests: regress/paths
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "guc.h"
#include "nodes/sort/gpusort_path.h"

/* Find the order that the query's next step needs. */
static List *
next_pathkeys(const PlannerInfo *root)
{
	if (root->window_pathkeys)
		return root->window_pathkeys;
	return root->distinct_pathkeys ? root->distinct_pathkeys : root->sort_pathkeys;
}

/* Has a query no other aggregates than count(*)? */
static bool
counts_only(const PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const Aggref *agg = gs_compat_agg_of((const AggInfo *) lfirst(lc));

		if (agg->aggfnoid != F_COUNT_ || agg->aggfilter)
			return false;
	}
	return true;
}

static Path *
make_group_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	if (root->parse->hasAggs)
		return gs_agg_path(root, offer, sorted);
	return (Path *) create_group_path(root, offer->rel, sorted, gs_compat_group_clause(root), offer->having,
									  offer->groups);
}

void
gs_group_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
					 const GroupPathExtraData *extra)
{
	const Query *parse = root->parse;
	List	   *clause = gs_compat_group_clause(root);
	GsGroupOffer groups = {{.rel = grouped_rel, .pathkeys = root->group_pathkeys, .above = make_group_path,
							.add = gs_add_grouped_paths}};
	GsOffer    *offer = &groups.offer;

	offer->groups = gs_expected_groups(grouped_rel);
	if (parse->groupingSets != NIL || offer->groups == 0 || offer->pathkeys == NIL ||
		!gs_offer_may_pay(grouped_rel, input_rel->cheapest_total_path, false))
		return;
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
	/* there are paths for these already (gpusort_agg_path_15.c) */
	if (root->numOrderedAggs > 0)
		return;
#endif
	offer->having = (List *) extra->havingQual;
	groups.exprs = get_sortgrouplist_exprs(clause, root->processed_tlist);
	offer->wanted = next_pathkeys(root);
	groups.final_costs = &extra->agg_final_costs;
	gs_offer_set_input(root, offer, input_rel);
	/* GpuSort also counts the rows of groups */
	if (counts_only(root))
		offer->rows_back = Min(offer->groups, offer->rows);
	gs_offer(root, offer);
}

static Path *
make_unique_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	return gs_compat_unique_path(root, offer->rel, sorted, list_length(root->distinct_pathkeys),
								 offer->groups);
}

void
gs_distinct_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *distinct_rel)
{
	const Query *parse = root->parse;
	GsGroupOffer groups = {{.rel = distinct_rel, .pathkeys = root->distinct_pathkeys,
							.forced = gs_guc_force, .above = make_unique_path,
							.add = gs_add_grouped_paths}};
	GsOffer    *offer = &groups.offer;

	if (offer->pathkeys == NIL ||
		!gs_offer_may_pay(distinct_rel, input_rel->cheapest_total_path, gs_guc_force))
		return;
	offer->groups = ((Path *) linitial(distinct_rel->pathlist))->rows;
	groups.exprs = get_sortgrouplist_exprs(parse->distinctClause, root->processed_tlist);
	offer->wanted = root->sort_pathkeys;
	/* the order says which row is the first one of its group; more rows come back */
	if (parse->hasDistinctOn && list_length(offer->pathkeys) < list_length(root->sort_pathkeys))
		offer->pathkeys = root->sort_pathkeys;
	gs_offer_set_input(root, offer, input_rel);
	if (offer->pathkeys == root->distinct_pathkeys)
		offer->rows_back = Min(offer->groups, offer->rows);
	gs_offer(root, offer);
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

typedef struct WindowOffer
{
	GsOffer		offer;
	List	   *windows;		/* WindowAggPaths of PostgreSQL's, the topmost first */
} WindowOffer;

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

/* The same stack of windows, with GpuSorts between those of different orders. */
static Path *
make_window_path(PlannerInfo *root, const GsOffer *offer, Path *path)
{
	const List *windows = ((const WindowOffer *) offer)->windows;

	for (int i = list_length(windows) - 1; i >= 0; i--)
	{
		const WindowAggPath *window = list_nth_node(WindowAggPath, windows, i);
		GsOffer		next = {.rel = offer->rel, .pathkeys = window_pathkeys(root, window->winclause),
							.serial = path, .rows = path->rows, .rows_back = path->rows};

		if (!pathkeys_contained_in(next.pathkeys, path->pathkeys))
		{
			if (!gs_offer_complete(root, &next))
				return NULL;
			path = linitial(gs_offer_sorts(root, &next));
		}
		path = copy_window(window, path);
	}
	return path;
}

void
gs_window_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *window_rel)
{
	WindowOffer window = {{.rel = window_rel, .above = make_window_path, .add = gs_add_fastest}};

	if (!gs_offer_may_pay(window_rel, input_rel->cheapest_total_path, false))
		return;
	window.windows = find_windows(linitial(window_rel->pathlist));
	if (window.windows == NIL)
		return;
	window.offer.wanted = root->sort_pathkeys;
	window.offer.pathkeys = window_pathkeys(root, llast_node(WindowAggPath,
															 window.windows)->winclause);
	gs_offer_set_input(root, &window.offer, input_rel);
	gs_offer(root, &window.offer);
}
