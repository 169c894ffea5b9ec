/*-------------------------------------------------------------------------
 *
 * gpugroup_plan.c
 *	  Putting GpuAggregate in the place of Agg.
 *
 *		GroupAggregate (x, string_agg(y))		GpuAggregate (x, string_agg(y))
 *		  -> GpuSort (x, y)						  -> GpuSort (x, y)
 *
 * Of each row Agg evaluates the arguments, calls a function for each aggregate and compares the row with
 * the first one of its group, all of it by interpreting expressions: which takes several times as long
 * as reading the row.  GpuAggregate knows some aggregates itself (gpuaccumulator.h).
 *
 * Agg stays where there are others among them, and where an expression needs it: subplans,
 * GROUPING(), gpu_sort_array(), which has a node of its own around Agg.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

#include "compat.h"
#include "nodes/common/gpuaccumulator.h"
#include "nodes/group/gpugroup.h"
#include "nodes/sort/gpusort.h"
#include "nodes/window/gpuwindow.h"
#include "plan/array_calls.h"

List *
gs_aggregate_args(const Aggref *agg)
{
	List	   *args = NIL;
	ListCell   *lc;

	foreach(lc, agg->args)
		if (!lfirst_node(TargetEntry, lc)->resjunk)
			args = lappend(args, lfirst_node(TargetEntry, lc)->expr);
	return args;
}

/* Can it be computed without Agg? */
static bool
is_possible(const Aggref *agg)
{
	return agg->aggsplit == AGGSPLIT_SIMPLE && agg->aggkind == AGGKIND_NORMAL &&
		agg->aggdistinct == NIL && !gs_compat_aggref_sorts(agg) &&
		gs_accumulator_kind(agg->aggfnoid, gs_aggregate_args(agg)) != GS_ACCUMULATE_NOTHING &&
		!contain_volatile_functions((Node *) agg->aggfilter);
}

static bool
needs_agg(Node *node, void *context)
{
	return node != NULL &&
		(IsA(node, GroupingFunc) || expression_tree_walker(node, needs_agg, context));
}

static bool
exprs_are_possible(List *exprs)
{
	List	   *array_calls = NIL;

	(void) gs_array_calls_find((Node *) exprs, false, false, &array_calls);
	(void) gs_array_calls_find((Node *) exprs, false, true, &array_calls);
	return array_calls == NIL && !contain_subplans((Node *) exprs) &&
		!needs_agg((Node *) exprs, NULL);
}

/* Are its rows sorted by gpusort? */
static bool
is_sorted_input(const Plan *child)
{
	if (IsA(child, Unique))
		child = outerPlan(child);
	return gs_node_is(child, &gs_sort_node) || gs_node_is(child, &gs_window_node);
}

Plan *
gs_aggregate_replace(Agg *agg)
{
	List	   *columns = NIL;
	List	   *scan_tlist = NIL;
	bool		has_aggregate = false;
	bool		has_column = false;
	CustomScan *scan;
	List	   *tlist;
	List	   *qual;
	ListCell   *lc;

	if ((agg->aggstrategy != AGG_PLAIN && agg->aggstrategy != AGG_SORTED) ||
		(agg->aggstrategy == AGG_SORTED) != (agg->numCols > 0) ||
		agg->aggsplit != AGGSPLIT_SIMPLE || agg->groupingSets != NIL || agg->chain != NIL ||
		!is_sorted_input(outerPlan(agg)) || !exprs_are_possible(agg->plan.targetlist) ||
		!exprs_are_possible(agg->plan.qual))
		return &agg->plan;
	tlist = gs_node_use_scan_tuple(agg->plan.targetlist, T_Aggref, &columns);
	qual = gs_node_use_scan_tuple(agg->plan.qual, T_Aggref, &columns);
	foreach(lc, columns)
	{
		Expr	   *column = lfirst(lc);

		if (IsA(column, Aggref) && !is_possible((Aggref *) column))
			return &agg->plan;
		has_aggregate |= IsA(column, Aggref);
		has_column |= IsA(column, Var);
		scan_tlist = lappend(scan_tlist,
							 makeTargetEntry(column, list_length(scan_tlist) + 1, NULL, false));
	}
	/* without GROUP BY there may be no row that a column could come from */
	if (!has_aggregate || (has_column && agg->numCols == 0))
		return &agg->plan;
	scan = gs_node_make(&gs_aggregate_node, &agg->plan, tlist, scan_tlist, outerPlan(agg),
						list_make3(gs_node_attno_list(agg->numCols, agg->grpColIdx),
								   gs_node_oid_list(agg->numCols, agg->grpOperators),
								   gs_node_oid_list(agg->numCols, agg->grpCollations)));
	scan->scan.plan.qual = qual;
	scan->scan.plan.initPlan = agg->plan.initPlan;
	return &scan->scan.plan;
}
