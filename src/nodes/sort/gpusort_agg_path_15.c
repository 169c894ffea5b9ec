/*-------------------------------------------------------------------------
 *
 * gpusort_agg_path_15.c
 *	  Offering GpuSort for the sorts of aggregates with DISTINCT or ORDER BY.
 *
 * Before PostgreSQL 16 an aggregate with DISTINCT or ORDER BY sorts its input by
 * itself, in one process: that sort is no node of the plan, and not part of its
 * cost.  Later versions sort the input by a Sort node, which is replaced like
 * any other.  Here the same is done for the older ones:
 *
 *		Agg -> GpuSort -> cheapest path
 *		Agg -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * sorted by the columns of GROUP BY, then by the aggregate's.  If all aggregates have the same DISTINCT, a
 * Unique above the GpuSort drops equal rows for them.  If the aggregates only count, GpuGroup replaces Agg
 * and Unique (gpugroup_plan.c), and no rows come back.
 *
 * group/agg_plan_15.c reads the finished plan, and removes the sorts of aggregates whose input is sorted.  An
 * aggregate that keeps its sort gives the same result.
 *
 * Tests: regress/aggregates, regress/paths
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "guc.h"
#include "key/key_types.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/plan_walk.h"

#ifndef GS_COMPAT_PRESORTED_AGGREGATES

/* SortGroupClauses that say how an aggregate sorts; NIL: it does not. */
static List *
sort_clauses(const Aggref *agg)
{
	if (AGGKIND_IS_ORDERED_SET(agg->aggkind))
		return NIL;
	return agg->aggdistinct != NIL ? agg->aggdistinct : agg->aggorder;
}

bool
gs_agg_takes_any_equal(const Aggref *agg)
{
	ListCell   *lc;

	if (agg->aggfnoid == F_COUNT_ANY)
		return true;
	foreach(lc, agg->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, agg->args);
		Oid			opfamily;
		Oid			type;
		bool		descending;

		if (!gs_compat_ordering_op(clause->sortop, &opfamily, &type, &descending) ||
			!gs_key_equal_image(opfamily, type, exprCollation(expr)))
			return false;
	}
	return true;
}

bool
gs_agg_equal_distinct(const Aggref *a, const Aggref *b)
{
	List	   *clauses[2] = {NIL, NIL};
	const Aggref *aggs[2] = {a, b};
	ListCell   *lc;
	ListCell   *other;

	for (int i = 0; i < 2; i++)
		foreach(lc, aggs[i]->aggdistinct)
			if (!IsA(get_sortgroupclause_expr(lfirst(lc), aggs[i]->args), Const))
				clauses[i] = lappend(clauses[i], lfirst(lc));
	if (list_length(clauses[0]) != list_length(clauses[1]))
		return false;
	forboth(lc, clauses[0], other, clauses[1])
	{
		SortGroupClause *ours = lfirst_node(SortGroupClause, lc);
		SortGroupClause *theirs = lfirst_node(SortGroupClause, other);
		Node	   *our_expr = get_sortgroupclause_expr(ours, a->args);
		Node	   *their_expr = get_sortgroupclause_expr(theirs, b->args);

		if (ours->eqop != theirs->eqop || ours->sortop != theirs->sortop ||
			ours->nulls_first != theirs->nulls_first ||
			exprCollation(our_expr) != exprCollation(their_expr) ||
			!equal(gs_plan_strip_relabel(our_expr), gs_plan_strip_relabel(their_expr)))
			return false;
	}
	return true;
}

/* Can this aggregate do without a sort if its input comes in order? */
static bool
takes_order(const Aggref *agg)
{
	List	   *clauses = sort_clauses(agg);
	ListCell   *lc;

	if (clauses == NIL || contain_volatile_functions((Node *) agg))
		return false;
	/* the first of equal rows may be one that the filter keeps away */
	if (agg->aggdistinct != NIL && (agg->aggfilter || !gs_agg_takes_any_equal(agg)))
		return false;
	foreach(lc, clauses)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), agg->args);

		Oid			collation = exprCollation(expr);

		if (contain_subplans(expr) ||
			(OidIsValid(collation) && !get_collation_isdeterministic(collation)))
			return false;
		/* it would be evaluated for rows that the filter keeps away from it */
		if (agg->aggfilter && !IsA(gs_plan_strip_relabel(expr), Var))
			return false;
	}
	return true;
}

/* Have all aggregates of a query the same DISTINCT, so that a Unique below does it? */
static bool
same_distinct(const PlannerInfo *root)
{
	const Aggref *first = ((const AggInfo *) linitial(root->agginfos))->representative_aggref;
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;

		if (agg->aggdistinct == NIL || !takes_order(agg) || !gs_agg_equal_distinct(agg, first))
			return false;
	}
	return true;
}

/* Is all that a query wants the number of its different values?  same_distinct() is true. */
static bool
counts_only(const PlannerInfo *root)
{
	ListCell   *lc;

	if (root->parse->groupClause != NIL)
		return false;
	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;

		if (agg->aggfnoid != F_COUNT_ANY || list_length(agg->aggdistinct) != 1)
			return false;
	}
	return true;
}

/* How many sorts of aggregates an order saves; aggregates that share a state share one. */
static int
count_served(PlannerInfo *root, List *pathkeys)
{
	Bitmapset  *states = NULL;
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);
		const Aggref *agg = info->representative_aggref;
		List	   *wanted;

		if (!takes_order(agg))
			continue;
		wanted = gs_agg_pathkeys(root, sort_clauses(agg), agg->args);
		if (wanted != NIL && pathkeys_contained_in(wanted, pathkeys))
			states = bms_add_member(states, info->transno);
	}
	return bms_num_members(states);
}

/* The order that saves most sorts; false: there is none. */
static bool
choose_order(PlannerInfo *root, GsAggOffer *aggs)
{
	ListCell   *lc;

	if (same_distinct(root))
	{
		Bitmapset  *states = NULL;

		foreach(lc, root->agginfos)
			states = bms_add_member(states, ((const AggInfo *) lfirst(lc))->transno);
		aggs->offer.agg = ((const AggInfo *) linitial(root->agginfos))->representative_aggref;
		aggs->offer.pathkeys = gs_agg_pathkeys(root, sort_clauses(aggs->offer.agg), aggs->offer.agg->args);
		aggs->alone = true;
		aggs->few_come_back = counts_only(root);
		aggs->offer.sorts = bms_num_members(states);
		return aggs->offer.pathkeys != NIL;
	}
	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;
		List	   *pathkeys;
		int			served;

		if (!gs_agg_ignores_order(agg))
			return false;
		if (!takes_order(agg))
			continue;
		pathkeys = gs_agg_pathkeys(root, sort_clauses(agg), agg->args);
		served = count_served(root, pathkeys);
		if (pathkeys != NIL && served > aggs->offer.sorts)
		{
			aggs->offer.agg = agg;
			aggs->offer.pathkeys = pathkeys;
			aggs->offer.sorts = served;
		}
	}
	return aggs->offer.sorts > 0;
}

/* How many rows are left when a Unique has dropped those that are equal in the order's columns. */
static double
distinct_rows(PlannerInfo *root, const GsAggOffer *aggs)
{
	const Aggref *agg = aggs->offer.agg;
	List	   *exprs = list_concat(get_sortgrouplist_exprs(root->parse->groupClause,
															root->processed_tlist),
									get_sortgrouplist_exprs(sort_clauses(agg), agg->args));

	return estimate_num_groups(root, exprs, aggs->offer.rows, NULL, NULL);
}

/* An Agg over sorted rows. */
static Path *
make_agg_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	const GsAggOffer *aggs = (const GsAggOffer *) offer;
	int			n_keys = list_length(offer->pathkeys);

	if (aggs->alone)
		sorted = gs_compat_unique_path(root, offer->rel, sorted, n_keys, sorted->rows);
	return gs_agg_path(root, offer, sorted);
}

void
gs_agg_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
				   const GroupPathExtraData *extra)
{
	GsAggOffer	aggs = {{.rel = grouped_rel, .in_order_too = true, .forced = gs_guc_force,
						 .above = make_agg_path, .add = gs_add_fastest}};
	GsOffer    *offer = &aggs.offer;

	if (gs_guc_sorts_only || root->numOrderedAggs == 0 || root->parse->groupingSets != NIL ||
		!gs_offer_may_pay(grouped_rel, input_rel->cheapest_total_path, gs_guc_force))
		return;
	offer->groups = gs_expected_groups(grouped_rel);
	offer->having = (List *) extra->havingQual;
	if (offer->groups == 0 || !choose_order(root, &aggs))
		return;
	gs_offer_set_input(root, offer, input_rel);
	if (aggs.few_come_back)
		offer->rows_back = 1;	/* GpuGroup needs no more (gpugroup_exec.c) */
	else if (aggs.alone)
		offer->rows_back = distinct_rows(root, &aggs);
	gs_offer(root, offer);
}

#endif							/* GS_COMPAT_PRESORTED_AGGREGATES */
