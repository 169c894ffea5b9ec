/*-------------------------------------------------------------------------
 *
 * gpusort_rivals.c
 *	  What PostgreSQL's own paths for groups, DISTINCT and UNION cost (gpusort_path.h).
 *
 * PostgreSQL leaves out two costs, and a GpuSort could not win against a path without them:
 *
 *		hash tables			cache misses in a large table that fits into memory
 *		sorts in aggregates	of DISTINCT and ORDER BY inside of them (before PostgreSQL 16),
 *							and of percentile_cont() and the like
 *
 * The paths' costs are left as they are, so that PostgreSQL's choice among them is its
 * own.  A path that wins for that reason only is taken away.
 *
 * Tests: regress/paths, regress/choice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_statistic_ext.h"
#include "executor/nodeAgg.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "feed/group_sample.h"
#include "guc.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/sort_cost.h"

/*
 * PostgreSQL sorts values that need no tuple around them, as one of them is all
 * that the aggregate takes, in this part of the time for texts: measured 0.13 us
 * for each of a million integers, and 1.2 us for file paths.
 */
#define DATUM_SORT_FACTOR	0.1

/* For how many aggregates a hash table has states: those of DISTINCT have none. */
static int
count_states(const PlannerInfo *root, const AggPath *path)
{
	if (list_member_ptr(root->upper_rels[UPPERREL_DISTINCT], path->path.parent) ||
		list_member_ptr(root->upper_rels[UPPERREL_PARTIAL_DISTINCT], path->path.parent))
		return 0;
	return list_length(root->aggtransinfos);
}

/* The path below one of those that are made above scans and joins; NULL: it is none. */
static const Path *
input_of(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			return ((const AggPath *) path)->subpath;
		case T_GroupPath:
			return ((const GroupPath *) path)->subpath;
		case T_WindowAggPath:
			return ((const WindowAggPath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((const SortPath *) path)->subpath;
		case T_ProjectionPath:
			return ((const ProjectionPath *) path)->subpath;
		case T_GatherPath:
			return ((const GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((const GatherMergePath *) path)->subpath;
		case T_CustomPath:
			/* those of other extensions may have no path below */
			if (((const CustomPath *) path)->methods != &gs_sort_path_methods &&
				((const CustomPath *) path)->methods != &gs_feed_path_methods &&
				((const CustomPath *) path)->methods != &gs_choice_path_methods)
				return NULL;
			return linitial(((const CustomPath *) path)->custom_paths);
		default:
			return gs_compat_unique_input(path);
	}
}

static bool
has_workers(const Path *path)
{
	for (; path != NULL; path = input_of(path))
		if (IsA(path, GatherPath) || IsA(path, GatherMergePath))
			return true;
	return false;
}

/* Does a path of groups hash them, also in parts? */
static bool
hashes(const Path *path)
{
	for (; path != NULL; path = input_of(path))
		if (IsA(path, AggPath) && ((const AggPath *) path)->aggstrategy == AGG_HASHED)
			return true;
	return false;
}

/* What hashing costs in a path beyond PostgreSQL's estimate. */
static Cost
hidden_cost(const PlannerInfo *root, const Path *path)
{
	Cost		cost = 0;

	for (; path != NULL; path = input_of(path))
	{
		const AggPath *agg = (const AggPath *) path;

		if (IsA(path, AggPath) && agg->aggstrategy == AGG_HASHED)
		{
			Size		entry = hash_agg_entry_size(count_states(root, agg),
													agg->subpath->pathtarget->width,
													agg->transitionSpace);

			cost += gs_cost_hash_misses(agg->subpath->rows, agg->numGroups * entry);
		}
	}
	return cost;
}

void
gs_add_sorted_paths(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	RelOptInfo *rel = offer->rel;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		ours = hidden_cost(root, path);
		ListCell   *other;

		foreach(other, rel->pathlist)
		{
			Path	   *theirs = lfirst(other);
			Cost		hidden = hidden_cost(root, theirs) - ours;

			if (hidden > 0 && !gs_compat_more_disabled(path, theirs) &&
				path->startup_cost < theirs->startup_cost + hidden &&
				path->total_cost < theirs->total_cost + hidden)
				rel->pathlist = foreach_delete_current(rel->pathlist, other);
		}
		add_path(rel, path);
	}
}

double
gs_known_values(PlannerInfo *root, Node *expr)
{
	VariableStatData data;
	bool		is_default;
	double		values;

	examine_variable(root, expr, 0, &data);
	values = get_variable_numdistinct(&data, &is_default);
	ReleaseVariableStats(data);
	return is_default ? 0 : values;
}

/*
 * Is the number of groups by these expressions no more than a guess?  Where there are no statistics
 * of an expression PostgreSQL takes the numbers of values of its columns, and it multiplies those of
 * several expressions, unless CREATE STATISTICS has their combinations counted.
 */
static bool
is_guess(PlannerInfo *root, List *exprs)
{
	int			relid;
	ListCell   *lc;

	if (list_length(exprs) <= 1)
		return exprs != NIL && gs_known_values(root, linitial(exprs)) == 0;
	/* the columns of a set operation are of no table: number 0 */
	if (!bms_get_singleton_member(pull_varnos(root, (Node *) exprs), &relid) || relid == 0)
		return true;
	foreach(lc, root->simple_rel_array[relid]->statlist)
	{
		const StatisticExtInfo *stat = lfirst(lc);
		bool		known = stat->kind == STATS_EXT_NDISTINCT;
		ListCell   *cell;

		foreach(cell, exprs)
		{
			const Var  *var = lfirst(cell);

			known &= IsA(var, Var) ? var->varattno > 0 && bms_is_member(var->varattno, stat->keys) :
				list_member(stat->exprs, var);
		}
		if (known)
			return false;
	}
	return true;
}

/*
 * Workers cost more CPU time than PostgreSQL charges: 8 sessions that hashed 300,000 rows each took
 * three times as long with workers as without.  Where PostgreSQL uses no workers, gpusort uses none
 * for fewer rows than this either.
 */
#define MIN_ROWS_FOR_WORKERS	1000000

static List *
without_workers(List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (has_workers(lfirst(lc)))
			paths = foreach_delete_current(paths, lc);
	return paths;
}

static Path *
find_cheapest(const RelOptInfo *rel)
{
	return get_cheapest_path_for_pathkeys(rel->pathlist, NIL, NULL, TOTAL_COST, false);
}

bool
gs_cheapest_hashes(const RelOptInfo *rel)
{
	return hashes(find_cheapest(rel));
}

/* The cheapest path, if it hashes groups: the rival of paths that sort them.  Else NULL. */
static const AggPath *
find_rival(const RelOptInfo *rel)
{
	const Path *best = find_cheapest(rel);

	return best && IsA(best, AggPath) && hashes(best) ? (const AggPath *) best : NULL;
}

void
gs_add_grouped_paths(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	const GsGroupOffer *groups = (const GsGroupOffer *) offer;
	const AggPath *rival = gs_guc_force ? NULL : find_rival(offer->rel);
	bool		serial = rival && offer->rows < MIN_ROWS_FOR_WORKERS && !has_workers(&rival->path);
	Path	   *few;
	ListCell   *lc;

	if (serial)
		paths = without_workers(paths);
	if (rival && !is_guess(root, groups->exprs))
	{
		if (rival->numGroups * GS_FEW_GROUPS_ROWS < offer->rows)
			return;
	}
	else if (rival)
	{
		if (!gs_choice_is_possible(root, rival))
			return;
		few = gs_choice_few(root, offer->rel, rival, serial ? NULL : groups->final_costs);
		foreach(lc, paths)
			lfirst(lc) = gs_choice_path(root, offer->rel, lfirst(lc), offer->rows, few,
										groups->wanted);
	}
	gs_add_sorted_paths(root, offer, paths);
}

double
gs_expected_groups(const RelOptInfo *grouped_rel)
{
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		const Path *path = lfirst(lc);

		if (IsA(path, AggPath))
			return ((const AggPath *) path)->numGroups;
		if (IsA(path, GroupPath) && ((const GroupPath *) path)->qual == NIL)
			return path->rows;
	}
	return 0;
}

/* The cost of the sorts that aggregates do by themselves in a path. */
static Cost
inner_cost(const AggPath *path, const GsAggOffer *aggs)
{
	double		rows = Max(path->subpath->rows, 2.0);
	Cost		cost = 2.0 * cpu_operator_cost * aggs->sorts * rows;
	const List *args = aggs->agg->args;

	/* with the costs of cost_tuplesort(); percentiles gain nothing from input in order */
	if (AGGKIND_IS_ORDERED_SET(aggs->agg->aggkind) ||
		!pathkeys_contained_in(aggs->offer.pathkeys, path->subpath->pathkeys))
		cost *= log2(Max(rows / Max(path->numGroups, 1.0), 2.0));
	if (list_length(args) == 1 &&
		get_typbyval(exprType((Node *) linitial_node(TargetEntry, args)->expr)))
		cost *= DATUM_SORT_FACTOR;
	return cost;
}

/*
 * Does a path cost less than all that PostgreSQL has?  Without groups nothing is
 * saved but the sorts.  Then a parallel scan alone is no reason: its workers do not make
 * what follows faster.
 */
static bool
is_cheapest(const PlannerInfo *root, const Path *path, const GsAggOffer *aggs)
{
	bool		one_group = root->parse->groupClause == NIL;
	ListCell   *lc;

	foreach(lc, aggs->offer.rel->pathlist)
	{
		const Path *other = lfirst(lc);
		Cost		inside = 0;

		if (IsA(other, AggPath))
		{
			const Path *input = ((const AggPath *) other)->subpath;
			double		rows = input->rows;
			int			width = input->pathtarget->width;

			inside = inner_cost((const AggPath *) other, aggs);
			if (one_group && inside <= (aggs->few_come_back ? gs_cost_sort_startup(rows, rows, width) :
										gs_cost_sort(rows, rows, width)))
				return false;
		}
		if (gs_compat_more_disabled(path, other) ||
			other->total_cost + inside <= path->total_cost)
			return false;
		/* not all groups may be wanted, and this one returns the first one sooner */
		if (root->tuple_fraction > 0 && !one_group && other->startup_cost < path->startup_cost)
			return false;
	}
	return true;
}

void
gs_add_agg_path(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	Path	   *best = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		if (best == NULL || path->total_cost < best->total_cost)
			best = path;
	}
	/* the costs of the others lack the sorts */
	if (gs_guc_force || is_cheapest(root, best, (const GsAggOffer *) offer))
		offer->rel->pathlist = list_make1(best);
}
