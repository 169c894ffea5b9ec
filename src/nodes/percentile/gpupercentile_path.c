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
 * Tests: regress/percentiles
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "guc.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/sort/gpusort_agg.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/sort_cost.h"

/* A query's aggregates. */
typedef struct Functions
{
	GsAggOffer	aggs;			/* few_come_back: they depend on the places of values alone */
	bool		alone;			/* there are no other aggregates */
} Functions;

/* False: none of them is ours, or one needs another order. */
static bool
find_functions(const PlannerInfo *root, Functions *functions)
{
	const Aggref *found = NULL;
	Bitmapset  *states = NULL;
	ListCell   *lc;

	functions->aggs.few_come_back = root->parse->groupClause == NIL;
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
			functions->aggs.few_come_back &= agg->aggfnoid != F_MODE;
		}
		else if (agg->aggorder != NIL || agg->aggdistinct != NIL || !gs_agg_ignores_order(agg))
			return false;
		else
			functions->alone = false;
	}
	functions->aggs.agg = found;
	functions->aggs.sorts = bms_num_members(states);
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

/* An Agg over sorted rows, with a GpuPercentile below. */
static Path *
make_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	const Functions *functions = (const Functions *) offer;
	Path	   *path = gs_agg_path(root, offer, sorted, functions->aggs.having, functions->aggs.groups);

	if (functions->aggs.few_come_back && functions->alone)
	{
		/* few rows are read, and Agg gets one */
		path->total_cost = sorted->startup_cost;
	}
	else if (!functions->aggs.few_come_back)
	{
		/* GpuPercentile reads the rows to count them, and compares their groups */
		path->total_cost += sorted->rows *
			(gs_guc_fetch_row_cost + cpu_operator_cost * list_length(gs_compat_group_clause(root)));
	}
	if (root->parse->groupClause == NIL)
		path->startup_cost = path->total_cost;
	return path;
}

void
gs_percentile_offer_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
						 const GroupPathExtraData *extra)
{
	const Path *cheapest = input_rel->cheapest_total_path;
	Functions	functions = {{{.rel = grouped_rel, .in_order_too = true, .above = make_path,
							   .add = gs_add_agg_path}}};
	GsOffer    *offer = &functions.aggs.offer;

	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL ||
		!gs_offer_may_pay(grouped_rel, cheapest, gs_guc_force))
		return;
	functions.aggs.groups = gs_expected_groups(grouped_rel);
	functions.aggs.having = (List *) extra->havingQual;
	if (functions.aggs.groups == 0 || !find_functions(root, &functions))
		return;
	/* places in files are found by reading all rows before */
	functions.aggs.few_come_back &= !gs_cost_expects_files(cheapest->rows,
														   cheapest->pathtarget->width);
	offer->pathkeys = order_pathkeys(root, functions.aggs.agg);
	gs_offer_set_input(root, offer, input_rel);
	gs_offer(root, offer);
}
