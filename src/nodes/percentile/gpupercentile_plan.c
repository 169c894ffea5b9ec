/*-------------------------------------------------------------------------
 *
 * gpupercentile_plan.c
 *	  Offering GpuSort for percentile_disc() and percentile_cont(), and putting GpuPercentile between
 *	  Agg and GpuSort.
 *
 * PostgreSQL sorts for these only inside the aggregate.  Each group is a sort in one process there, and no
 * cost includes it.  This file offers paths
 *
 *		Agg -> GpuSort -> cheapest path
 *		Agg -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * sorted by the columns of GROUP BY, then by that of WITHIN GROUP.  In the finished plan
 * GpuPercentile comes between Agg and GpuSort:
 *
 *		Agg (percentile_disc(0.5) WITHIN GROUP (ORDER BY x), count(*))
 *		  -> GpuSort (g, x)
 *
 * becomes
 *
 *		Agg (value, count(*))
 *		  -> GpuPercentile (all columns, value)
 *			   -> GpuSort (g, x)
 *
 * The Agg takes the value from the first row of a group, as it does with the columns of GROUP BY.  Without
 * GROUP BY there may be no row.  So the Agg gets the empty grouping set, GROUP BY ().  That means the same,
 * except that without rows columns are NULL, which all of the functions return there.  An Agg that computes
 * nothing else gets the first row of each group only.
 *
 * Nothing is assumed of how the plan came about: operators, collations and columns are
 * compared (gpusort_keys.c).
 *
 * All such functions of a query must have the same order, and no other aggregate may have an order.
 *
 * Tests: regress/percentiles
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "guc.h"
#include "nodes/common/aggregates.h"
#include "nodes/percentile/gpupercentile.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/drop_rows.h"
#include "plan/plan_walk.h"
#include "plan/sort_cost.h"

/* Is this a percentile function, in a form that GpuPercentile computes? */
static bool
is_known(const Aggref *agg)
{
	switch (agg->aggfnoid)
	{
		case F_PERCENTILE_DISC_FLOAT8_ANYELEMENT:
		case F_PERCENTILE_DISC__FLOAT8_ANYELEMENT:
		case F_PERCENTILE_CONT_FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT__FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT_FLOAT8_INTERVAL:
		case F_PERCENTILE_CONT__FLOAT8_INTERVAL:
			return list_length(agg->aggorder) == 1 && agg->aggfilter == NULL &&
				!gs_expr_is_volatile((Node *) agg) && !contain_subplans((Node *) agg);
		default:
			return false;
	}
}

/* Have two aggregates the same ORDER BY? */
static bool
same_order(const Aggref *a, const Aggref *b)
{
	SortGroupClause *ours = linitial_node(SortGroupClause, a->aggorder);
	SortGroupClause *theirs = linitial_node(SortGroupClause, b->aggorder);

	return ours->sortop == theirs->sortop && ours->nulls_first == theirs->nulls_first &&
		a->inputcollid == b->inputcollid &&
		equal(get_sortgroupclause_expr(ours, a->args), get_sortgroupclause_expr(theirs, b->args));
}

/*
 * Paths
 */

/* False: none of them is a percentile function, or one needs another order. */
static bool
find_functions(const PlannerInfo *root, GsAggOffer *aggs)
{
	const Aggref *found = NULL;
	Bitmapset  *states = NULL;
	ListCell   *lc;

	aggs->few_come_back = root->parse->groupClause == NIL;
	aggs->alone = true;
	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);
		const Aggref *agg = gs_compat_agg_of(info);

		if (is_known(agg))
		{
			if (found && !same_order(agg, found))
				return false;
			found = agg;
			states = bms_add_member(states, info->transno);
		}
		else if (agg->aggorder != NIL || agg->aggdistinct != NIL || !gs_agg_ignores_order(agg))
			return false;
		else
			aggs->alone = false;
	}
	aggs->offer.agg = found;
	aggs->offer.sorts = bms_num_members(states);
	return found != NULL;
}

void
gs_percentile_offer_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
						 const GroupPathExtraData *extra)
{
	const Path *cheapest = input_rel->cheapest_total_path;
	GsAggOffer	aggs = {{.rel = grouped_rel, .in_order_too = true, .forced = gs_guc_force,
						 .above = gs_agg_path, .add = gs_add_fastest}};
	GsOffer    *offer = &aggs.offer;

	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL ||
		!gs_offer_may_pay(grouped_rel, cheapest, gs_guc_force))
		return;
	offer->groups = gs_expected_groups(grouped_rel);
	offer->having = (List *) extra->havingQual;
	if (offer->groups == 0 || !find_functions(root, &aggs))
		return;
	/* places in files are found by reading all rows before */
	aggs.few_come_back &= !gs_expects_files(cheapest->rows, cheapest->pathtarget->width);
	offer->pathkeys = gs_agg_pathkeys(root, offer->agg->aggorder, offer->agg->args);
	gs_offer_set_input(root, offer, input_rel);
	/* GpuPercentile reads few rows then */
	if (aggs.few_come_back && aggs.alone)
		offer->rows_back = 1;
	gs_offer(root, offer);
}

/*
 * The finished plan
 */

typedef struct PercentileContext
{
	GsAggInput	input;			/* of the Agg */
	const Aggref *order;		/* one of the functions; NULL: none was found */
	List	   *tlist;			/* the sort's columns, and the functions, each once */
	bool		others;			/* there are Aggrefs that stay */
} PercentileContext;

/* Do the Agg's rows come in a function's order, by a column? */
static bool
is_sorted(const Aggref *agg, const PercentileContext *context)
{
	Node	   *expr = get_sortgroupclause_expr(linitial(agg->aggorder), agg->args);

	return IsA(gs_plan_strip_relabel(expr), Var) &&
		gs_agg_is_sorted(&context->input, agg->aggorder, agg->args);
}

/* Collect the percentile functions of the Agg; false: it has none, or one needs another order. */
static bool
collect_functions(PercentileContext *context)
{
	ListCell   *lc;

	foreach(lc, gs_plan_aggregates(context->input.agg))
	{
		const Aggref *agg = lfirst_node(Aggref, lc);

		if (!is_known(agg))
		{
			context->others = true;
			continue;
		}
		if (!is_sorted(agg, context) || (context->order && !same_order(agg, context->order)))
			return false;
		context->order = agg;
		context->tlist = add_to_flat_tlist(context->tlist, list_make1(lfirst(lc)));
	}
	return context->order != NULL;
}

/* The node for the functions that were found. */
static CustomScan *
make_node(PercentileContext *context)
{
	const Agg  *agg = context->input.agg;
	Plan	   *sort = outerPlan(agg);
	GsColumns	groups = gs_columns_of_groups(&agg->plan);

	return gs_node_make(&gs_percentile_node, sort, gs_node_tlist(context->tlist, INDEX_VAR),
						context->tlist, sort,
						list_make2(gs_columns_write(&groups),
								   list_make2_int(agg->aggstrategy == AGG_PLAIN, !context->others)));
}

Plan *
gs_percentile_replace(GsStepContext *step, Plan *plan)
{
	Agg		   *agg = (Agg *) plan;
	PercentileContext context;
	CustomScan *scan;

	memset(&context, 0, sizeof(context));
	/* GpuPercentile reads some rows twice, and others not at all */
	if (!gs_agg_read_input(&context.input, agg) || context.input.unique ||
		!gs_expr_is_silent(outerPlan(agg)->targetlist))
		return plan;
	context.tlist = gs_node_tlist(outerPlan(agg)->targetlist, OUTER_VAR);
	if (!collect_functions(&context))
		return plan;
	scan = make_node(&context);
	agg->plan.targetlist = gs_node_use_columns(agg->plan.targetlist, context.tlist, OUTER_VAR);
	agg->plan.qual = gs_node_use_columns(agg->plan.qual, context.tlist, OUTER_VAR);
	gs_aggregates_renumber(agg);
	if (agg->aggstrategy == AGG_PLAIN)
		agg->groupingSets = list_make1(NIL);
	scan->scan.plan.plan_node_id = ++step->last_node_id;
	bms_free(scan->scan.plan.allParam);
	scan->scan.plan.allParam = bms_copy(agg->plan.allParam);
	outerPlan(agg) = &scan->scan.plan;
	return plan;
}
