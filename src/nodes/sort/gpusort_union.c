/*-------------------------------------------------------------------------
 *
 * gpusort_union.c
 *	  Offering GpuSort paths for UNION.
 *
 * PostgreSQL makes three kinds of paths for a UNION: Unique over a Sort of an Append, or over a
 * Merge Append of sorted inputs (17 and later), and HashAggregate over an Append; each in one
 * process from there on.  At UPPERREL_SETOP up to two paths are added, which compete by cost
 * with these:
 *
 *		Unique -> GpuSort -> Append
 *		Unique -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> Parallel Append
 *
 * In the finished plan GpuSort is told to drop equal rows (gpusort_keep.c).  A Sort that
 * PostgreSQL has chosen is replaced there as any other (gpusort_replace.c), as are those of
 * INTERSECT and EXCEPT.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "port/pg_bitutils.h"

#include "compat.h"
#include "guc.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_rivals.h"
#include "service/service_client.h"

/* A UNION, as PostgreSQL's paths show it. */
typedef struct Union
{
	List	   *inputs;			/* a Path of each */
	List	   *pathkeys;		/* that make equal rows neighbours */
	double		groups;
	PathTarget *target;			/* what is wanted of them: for INTERSECT and EXCEPT above, before
								 * PostgreSQL 18, a column more */
} Union;

/* The paths that are appended, also below a Gather; NIL: this is no Append. */
static List *
appended_paths(const Path *path)
{
	if (IsA(path, GatherPath))
		path = ((const GatherPath *) path)->subpath;
	return IsA(path, AppendPath) ? ((const AppendPath *) path)->subpaths : NIL;
}

/* How a path drops equal rows: sorted, merged or hashed.  False: it does not. */
static bool
read_path(PlannerInfo *root, Path *path, Union *found)
{
	const Path *sorted;

	found->groups = path->rows;
	found->target = path->pathtarget;
	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	sorted = gs_compat_unique_input(path);
	if (sorted)
	{
		found->pathkeys = sorted->pathkeys;
		if (IsA(sorted, SortPath))
			found->inputs = appended_paths(((const SortPath *) sorted)->subpath);
		else if (IsA(sorted, MergeAppendPath))
			found->inputs = ((const MergeAppendPath *) sorted)->subpaths;
		else
			return false;
	}
	else if (IsA(path, AggPath) && ((const AggPath *) path)->aggstrategy == AGG_HASHED)
	{
		const AggPath *agg = (const AggPath *) path;

		if (!grouping_is_sortable(agg->groupClause))
			return false;
		found->inputs = appended_paths(agg->subpath);
		found->pathkeys = make_pathkeys_for_sortclauses(root, agg->groupClause,
														make_tlist_from_pathtarget(agg->subpath->pathtarget));

		/* a column may be there twice */
		if (list_length(found->pathkeys) != list_length(agg->groupClause))
			return false;
	}
	else
		return false;
	return found->inputs != NIL && found->pathkeys != NIL;
}

static bool
find_union(PlannerInfo *root, const RelOptInfo *rel, Union *found)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
		if (read_path(root, lfirst(lc), found))
			return true;
	return false;
}

/* All inputs, read by this process; they need not be in order.  NULL: they cannot. */
static Path *
make_append(PlannerInfo *root, RelOptInfo *rel, const List *inputs)
{
	List	   *paths = NIL;
	ListCell   *lc;

	foreach(lc, inputs)
	{
		Path	   *path = lfirst(lc);

		/* before PostgreSQL 17 paths of nested UNIONs do not name the relation that they are of */
		if (!IS_UPPER_REL(path->parent) && path->parent->cheapest_total_path)
			path = path->parent->cheapest_total_path;
		if (path->parallel_workers > 0)
			return NULL;		/* a part of the rows only; PostgreSQL makes no such path today */
		paths = lappend(paths, path);
	}
	return gs_compat_append_path(root, rel, paths, NIL, 0, false);
}

/* The same, read by workers, as generate_union_paths() does it; NULL: they cannot. */
static Path *
make_partial_append(PlannerInfo *root, RelOptInfo *rel, const List *inputs)
{
	List	   *paths = NIL;
	int			workers = 0;
	ListCell   *lc;

	if (!rel->consider_parallel)
		return NULL;
	foreach(lc, inputs)
	{
		const RelOptInfo *input = ((const Path *) lfirst(lc))->parent;
		Path	   *path;

		if (!input->consider_parallel || input->partial_pathlist == NIL)
			return NULL;
		path = linitial(input->partial_pathlist);
		paths = lappend(paths, path);
		workers = Max(workers, path->parallel_workers);
	}
	if (enable_parallel_append)
		workers = Min(Max(workers, pg_leftmost_one_pos32(list_length(paths)) + 1),
					  max_parallel_workers_per_gather);
	return gs_compat_append_path(root, rel, NIL, paths, workers, enable_parallel_append);
}

void
gs_union_offer_paths(PlannerInfo *root, RelOptInfo *rel)
{
	Union		found;
	Path	   *serial;
	Path	   *partial;
	List	   *paths;
	double		rows;
	int			flags;
	ListCell   *lc;

	if (!find_union(root, rel, &found) || !gs_client_service_ready() ||
		!gs_sort_supports(found.pathkeys))
		return;
	if (list_length(found.inputs) == 1 &&
		pathkeys_contained_in(found.pathkeys, ((Path *) linitial(found.inputs))->pathkeys))
		return;
	serial = make_append(root, rel, found.inputs);
	if (serial == NULL)
		return;
	rows = serial->rows;
	if (!gs_guc_force && (!enable_sort || rows < gs_guc_min_rows))
		return;

	flags = gs_sort_path_flags(root);
	paths = list_make1(gs_sort_path(root, rel, serial, found.pathkeys, rows, found.groups, false, flags));
	partial = make_partial_append(root, rel, found.inputs);
	if (partial)
		paths = lappend(paths, gs_sort_path(root, rel, gs_sort_feed_path(root, rel, partial),
											found.pathkeys, rows, found.groups, true, flags));
	foreach(lc, paths)
	{
		Path	   *path = gs_compat_unique_path(root, rel, lfirst(lc),
												 list_length(found.pathkeys), found.groups);

		if (!equal(path->pathtarget->exprs, found.target->exprs))
			path = apply_projection_to_path(root, rel, path, found.target);
		lfirst(lc) = path;
	}
	if (gs_guc_force)
		rel->pathlist = NIL;
	gs_add_sorted_paths(root, rel, paths);
}
