/*-------------------------------------------------------------------------
 *
 * gpusort_union.c
 *	  Offering GpuSort paths for UNION.
 *
 * PostgreSQL makes three kinds of paths for a UNION: Unique over a Sort of an Append, or over a
 * Merge Append of sorted inputs (17 and later), and HashAggregate over an Append.  Each needs one
 * process from there on.  At UPPERREL_SETOP up to two paths are added, which compete with them by cost:
 *
 *		Unique -> GpuSort -> Append
 *		Unique -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> Parallel Append
 *
 * In the finished plan GpuSort is told to drop equal rows (gpusort_keep.c).  If PostgreSQL has chosen a Sort,
 * gpusort_replace.c replaces it, also one of INTERSECT or EXCEPT.
 *
 * Tests: regress/unions
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
#include "nodes/sort/gpusort_path.h"

/* A UNION, as PostgreSQL's paths show it. */
typedef struct Union
{
	GsOffer		offer;			/* by pathkeys that make equal rows neighbours */
	List	   *inputs;			/* a Path of each */
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

	found->offer.rows_back = path->rows;
	found->target = path->pathtarget;
	if (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	sorted = gs_compat_unique_input(path);
	if (sorted)
	{
		found->offer.pathkeys = sorted->pathkeys;
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
		found->offer.pathkeys = make_pathkeys_for_sortclauses(root, agg->groupClause,
														make_tlist_from_pathtarget(agg->subpath->pathtarget));

		/* a column may be there twice */
		if (list_length(found->offer.pathkeys) != list_length(agg->groupClause))
			return false;
	}
	else
		return false;
	return found->inputs != NIL && found->offer.pathkeys != NIL;
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

/* How many different rows are there, as far as the statistics of one column tell? */
static double
known_rows(const List *inputs)
{
	double		most = 0;
	ListCell   *lc;

	foreach(lc, inputs)
	{
		const RelOptInfo *input = ((const Path *) lfirst(lc))->parent;
		ListCell   *column;

		if (input->subroot == NULL)
			continue;

		/* not processed_tlist, as in generate_union_paths() */
		foreach(column, input->subroot->parse->targetList)
		{
			const TargetEntry *tle = lfirst_node(TargetEntry, column);

			if (!tle->resjunk)
				most = Max(most, Min(gs_known_values(input->subroot, (Node *) tle->expr), input->rows));
		}
	}
	return most;
}

static Path *
make_unique_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	const Union *found = (const Union *) offer;
	Path	   *path = gs_compat_unique_path(root, offer->rel, sorted, list_length(offer->pathkeys),
											 offer->rows_back);

	if (equal(path->pathtarget->exprs, found->target->exprs))
		return path;
	return apply_projection_to_path(root, offer->rel, path, found->target);
}

void
gs_union_offer_paths(PlannerInfo *root, RelOptInfo *rel)
{
	Union		found = {{.rel = rel, .forced = gs_guc_force, .above = make_unique_path,
						  .add = gs_add_fastest}};
	GsOffer    *offer = &found.offer;

	if (!find_union(root, rel, &found))
		return;
	offer->serial = make_append(root, rel, found.inputs);
	if (!gs_offer_may_pay(rel, offer->serial, gs_guc_force))
		return;
	offer->rows = offer->serial->rows;
	offer->partial = make_partial_append(root, rel, found.inputs);
	/* PostgreSQL expects that all rows differ */
	offer->sure_groups = Max(known_rows(found.inputs), 1.0);
	gs_offer(root, offer);
}
