/*-------------------------------------------------------------------------
 *
 * gpupercentile_path.c
 *	  Offering GpuSort for percentile_disc(), percentile_cont() and mode().
 *
 * PostgreSQL never sorts for these outside of the aggregate, where each group is a
 * sort in one process, and part of no cost.  Here are paths
 *
 *		Agg -> GpuSort -> cheapest path
 *		Agg -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * sorted by the columns of GROUP BY, then by that of WITHIN GROUP.  In the finished plan
 * GpuPercentile comes between Agg and GpuSort (gpupercentile_plan.c).
 *
 * All such functions of a query must have the same order, and no other aggregate may
 * have one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "guc.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_rivals.h"
#include "plan/sort_cost.h"
#include "service/service_client.h"

/* A query's aggregates. */
typedef struct Functions
{
	const Aggref *function;		/* one of ours, whose order all of them have */
	int			sorts;			/* how many sorts they are to PostgreSQL */
	bool		by_place;		/* they depend on the places of values alone */
	bool		alone;			/* and there are no other aggregates */
} Functions;

/* False: none of them is ours, or one needs another order. */
static bool
find_functions(const PlannerInfo *root, Functions *functions)
{
	const Aggref *found = NULL;
	Bitmapset  *states = NULL;
	ListCell   *lc;

	functions->by_place = root->parse->groupClause == NIL;
	functions->alone = true;

	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);
		const Aggref *agg = gs_compat_agg_of(info);

		if (gs_percentile_is_known(agg))
		{
			if (found && !gs_percentile_same_order(agg, found))
				return false;
			found = agg;
			states = bms_add_member(states, info->transno);
			functions->by_place &= agg->aggfnoid != F_MODE && agg->aggfilter == NULL;
		}
		else if (agg->aggorder != NIL || agg->aggdistinct != NIL || !gs_agg_ignores_order(agg))
			return false;
		else
			functions->alone = false;
	}
	functions->function = found;
	functions->sorts = bms_num_members(states);
	return found != NULL;
}

/* The order of the rows; NIL: the column has no pathkey of its own. */
static List *
order_pathkeys(PlannerInfo *root, const Aggref *agg)
{
	List	   *keys = make_pathkeys_for_sortclauses(root, agg->aggorder, agg->args);
	ListCell   *lc;

	if (keys == NIL)
		return NIL;
	foreach(lc, root->group_pathkeys)
		if (lfirst_node(PathKey, lc)->pk_eclass == linitial_node(PathKey, keys)->pk_eclass)
			return NIL;
	return list_concat_copy(root->group_pathkeys, keys);
}

/*
 * Does a path cost less than all that PostgreSQL has?  Without groups nothing is
 * saved but the sorts.  Then a parallel scan alone is no reason: its workers do not make
 * what follows faster.
 */
static bool
is_cheapest(const PlannerInfo *root, const Path *path, const RelOptInfo *grouped_rel,
			const Functions *functions)
{
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		const Path *other = lfirst(lc);
		Cost		inside = 0;

		if (IsA(other, AggPath))
		{
			const Path *input = ((const AggPath *) other)->subpath;
			double		rows = input->rows;
			int			width = input->pathtarget->width;

			inside = gs_cost_inner_sorts((const AggPath *) other, functions->function,
										 functions->sorts, false);
			if (root->parse->groupClause == NIL &&
				inside <= (functions->by_place ? gs_cost_sort_startup(rows, rows, width) :
						   gs_cost_sort(rows, rows, width)))
				return false;
		}
		if (gs_compat_more_disabled(path, other) ||
			other->total_cost + inside <= path->total_cost)
			return false;
		/* not all groups may be wanted, and this one returns the first one sooner */
		if (root->tuple_fraction > 0 && root->parse->groupClause != NIL &&
			other->startup_cost < path->startup_cost)
			return false;
	}
	return true;
}

/* An Agg over sorted rows, with a GpuPercentile below. */
static Path *
make_path(PlannerInfo *root, RelOptInfo *rel, Path *sorted, List *having, double groups,
		  const Functions *functions)
{
	AggStrategy strategy = root->parse->groupClause != NIL ? AGG_SORTED : AGG_PLAIN;
	AggClauseCosts costs;
	Path	   *path;

	memset(&costs, 0, sizeof(costs));
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	path = (Path *) create_agg_path(root, rel, sorted, rel->reltarget, strategy, AGGSPLIT_SIMPLE,
									gs_compat_group_clause(root), having, &costs, groups);
	if (functions->by_place && functions->alone)
	{
		/* few rows are read, and Agg gets one */
		path->total_cost = sorted->startup_cost;
	}
	else if (!functions->by_place)
	{
		/* GpuPercentile reads the rows twice, and compares their groups */
		path->total_cost += sorted->rows *
			(gs_guc_fetch_row_cost + cpu_operator_cost * list_length(gs_compat_group_clause(root)));
	}
	if (strategy == AGG_PLAIN)
		path->startup_cost = path->total_cost;
	/* the column of WITHIN GROUP is not one of the result */
	if (path->pathkeys != NIL)
		path->pathkeys = root->group_pathkeys;
	return path;
}

void
gs_percentile_offer_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
						 const GroupPathExtraData *extra)
{
	const Path *cheapest = input_rel->cheapest_total_path;
	Functions	functions;
	List	   *pathkeys;
	double		groups;
	Path	   *best = NULL;
	ListCell   *lc;

	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL || cheapest == NULL ||
		cheapest->param_info != NULL || IS_OTHER_REL(grouped_rel))
		return;
	if (!gs_guc_force && (!enable_sort || cheapest->rows < gs_guc_min_rows))
		return;
	groups = gs_expected_groups(grouped_rel);
	if (groups == 0 || !find_functions(root, &functions) || !gs_client_service_ready())
		return;
	/* places in files are found by reading all rows before */
	functions.by_place &= !gs_cost_expects_files(cheapest->rows, cheapest->pathtarget->width);
	pathkeys = order_pathkeys(root, functions.function);
	if (pathkeys == NIL || !gs_sort_supports(pathkeys))
		return;
	foreach(lc, gs_sort_input_paths(root, grouped_rel, input_rel, pathkeys, cheapest->rows))
	{
		Path	   *path = make_path(root, grouped_rel, lfirst(lc), (List *) extra->havingQual,
									 groups, &functions);

		if (best == NULL || path->total_cost < best->total_cost)
			best = path;
	}
	/* the costs of the others lack the sorts */
	if (gs_guc_force || is_cheapest(root, best, grouped_rel, &functions))
		grouped_rel->pathlist = list_make1(best);
}
