/*-------------------------------------------------------------------------
 *
 * gpusort_rivals.c
 *	  The choice between gpusort's paths and PostgreSQL's (gpusort_path.h).
 *
 * PostgreSQL's costs leave out much of what its plans take.  So this file compares the times (sort_cost.h) of
 * two paths: ours, and the path that PostgreSQL would choose by its costs.  Only the faster path stays.
 *
 * Tests: regress/paths, regress/choice
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_statistic_ext.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/sort_cost.h"

/* Must a path's rows be sorted for the query's next step? */
static bool
is_sorted_next(const GsOffer *offer, const Path *path)
{
	return offer->wanted != NIL && !pathkeys_contained_in(offer->wanted, path->pathkeys);
}

/* Which part of a path's rows is wanted? */
static double
wanted_fraction(const PlannerInfo *root, const GsOffer *offer, const Path *path)
{
	double		rows = offer->limit > 0 ? offer->limit : root->tuple_fraction;

	if (rows <= 0 || is_sorted_next(offer, path))
		return 1.0;
	return Min(rows < 1.0 ? rows : rows / Max(path->rows, 1.0), 1.0);
}

/* The path that PostgreSQL would choose; NULL: it has none. */
static Path *
find_rival(const PlannerInfo *root, const GsOffer *offer)
{
	Path	   *best = NULL;
	Cost		least = 0;
	ListCell   *lc;

	foreach(lc, offer->rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		Cost		cost = path->startup_cost +
			wanted_fraction(root, offer, path) * (path->total_cost - path->startup_cost);

		if (is_sorted_next(offer, path))
			cost += gs_compat_cost_sort(path->rows, path->pathtarget->width, work_mem);
		if (best == NULL || gs_compat_more_disabled(best, path) ||
			(cost < least && !gs_compat_more_disabled(path, best)))
		{
			best = path;
			least = cost;
		}
	}
	return best;
}

/* The time until the query's next step has its rows. */
static GsTime
time_of(PlannerInfo *root, const GsOffer *offer, const Path *path, double groups)
{
	GsPathTimes context = {root, groups, offer->agg, offer->sorts};
	GsTime		time = gs_time_of_path(&context, path, offer->limit);

	if (is_sorted_next(offer, path))
	{
		GsSortInput rows = gs_rows_of_path(root, path, offer->wanted);

		if (groups > 0)
			rows.rows = Min(rows.rows, groups);
		gs_time_add_sort(&time, &rows, -1);
	}
	return time;
}

static Path *
find_fastest(PlannerInfo *root, const GsOffer *offer, const List *paths)
{
	Path	   *best = NULL;
	double		least = 0;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		GsTime		time = time_of(root, offer, path, offer->sure_groups);
		double		wanted = gs_time_of_part(&time, wanted_fraction(root, offer, path));

		/* in the last path, rows do not go through the Gather */
		if (best == NULL || wanted <= least)
		{
			best = path;
			least = wanted;
		}
	}
	return best;
}

/* Is our path faster for this number of groups?  0: the number that PostgreSQL expects. */
static bool
is_faster(PlannerInfo *root, const GsOffer *offer, const Path *ours, const Path *theirs, double groups)
{
	GsTime		our_time = time_of(root, offer, ours, groups);
	GsTime		their_time = time_of(root, offer, theirs, groups);

	return !gs_compat_more_disabled(ours, theirs) &&
		gs_time_is_less(&our_time, &their_time, wanted_fraction(root, offer, theirs));
}

void
gs_add_fastest(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	Path	   *ours = find_fastest(root, offer, paths);
	Path	   *theirs = offer->forced ? NULL : find_rival(root, offer);

	if (theirs == NULL || is_faster(root, offer, ours, theirs, offer->sure_groups))
		offer->rel->pathlist = list_make1(ours);
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

/* PostgreSQL's path that hashes groups; NULL: it has none. */
static const AggPath *
find_hashing(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
		if (IsA(lfirst(lc), AggPath) && lfirst_node(AggPath, lc)->aggstrategy == AGG_HASHED)
			return lfirst(lc);
	return NULL;
}

/* The least number of groups for which sorting is faster than hashing.  More than there are rows: none. */
static double
find_break_even(PlannerInfo *root, const GsOffer *offer, const Path *ours, const Path *hashing)
{
	double		less = 1.0;
	double		more = offer->rows;

	if (!is_faster(root, offer, ours, hashing, more))
		return 2.0 * more;
	while (more > 1.1 * less)
	{
		double		between = sqrt(less * more);

		if (is_faster(root, offer, ours, hashing, between))
			more = between;
		else
			less = between;
	}
	return more;
}

void
gs_add_grouped_paths(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	const GsGroupOffer *groups = (const GsGroupOffer *) offer;
	const AggPath *hashing = gs_guc_force || !is_guess(root, groups->exprs) ? NULL : find_hashing(offer->rel);
	Path	   *ours;
	Path	   *parallel;
	Path	   *few;
	double		from;

	if (hashing == NULL)
	{
		gs_add_fastest(root, offer, paths);
		return;
	}
	ours = find_fastest(root, offer, paths);
	few = gs_choice_hashing(hashing);
	parallel = gs_choice_parallel(root, offer->rel, hashing, groups->final_costs);
	if (parallel && is_faster(root, offer, parallel, few, 1.0))
		few = parallel;
	from = find_break_even(root, offer, ours, few);
	if (from > 2.0 && !gs_choice_is_possible(root, hashing))
		return;
	if (from <= 2.0 || from > hashing->numGroups)
		gs_add_fastest(root, offer, paths);
	else
		offer->rel->pathlist = list_make1(gs_choice_path(root, offer, ours, few, from));
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
