/*-------------------------------------------------------------------------
 *
 * gpusort_agg.c
 *	  In which order a finished Agg gets its rows from a GpuSort (gpusort_agg.h).
 *
 * Nothing is assumed of how the plan came about.  Rows of a group are equal in
 * the columns of GROUP BY; so the GpuSort's first columns may be any of these,
 * and its next ones must be the aggregate's.  Operators and collations are
 * compared as well, as columns that one equality takes for equal another one may
 * not.
 *
 * Tests: regress/aggregates, regress/aggregates_grouped
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_agg.h"
#include "plan/plan_walk.h"

bool
gs_agg_read_input(GsAggInput *input, const Agg *agg)
{
	const Plan *child = outerPlan(agg);

	if (!gs_plan_agg_is_simple(agg))
		return false;
	memset(input, 0, sizeof(*input));
	input->agg = agg;
	if (IsA(child, Unique))
	{
		input->unique = (const Unique *) child;
		child = outerPlan(child);
	}
	if (!gs_node_is(child, &gs_sort_node))
		return false;
	input->sort = (const CustomScan *) child;
	gs_plan_read(input->sort, &input->keys);
	return true;
}

AttrNumber
gs_agg_sorted_column(const GsAggInput *input, AttrNumber attno)
{
	const TargetEntry *tle;

	if (input->unique)
	{
		tle = get_tle_by_resno(input->unique->plan.targetlist, attno);
		if (tle == NULL || !IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != OUTER_VAR)
			return 0;
		attno = ((Var *) tle->expr)->varattno;
	}
	tle = get_tle_by_resno(input->sort->scan.plan.targetlist, attno);
	if (tle == NULL || !IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != INDEX_VAR)
		return 0;
	return ((Var *) tle->expr)->varattno;
}

AttrNumber
gs_agg_expression_column(const GsAggInput *input, Node *expr)
{
	const Var  *var = (const Var *) gs_plan_strip_relabel(expr);

	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return 0;
	return gs_agg_sorted_column(input, var->varattno);
}

/* What a column of the GpuSort's child is computed from, if it is a variable; else NULL. */
static Node *
column_variable(const GsAggInput *input, AttrNumber attno)
{
	const Plan *plan = outerPlan(input->sort);
	const TargetEntry *tle;
	Node	   *bare;

	/* these two have the columns of their child */
	while (IsA(plan, Gather) || gs_node_is(plan, &gs_feed_node))
		plan = outerPlan(plan);
	tle = get_tle_by_resno(plan->targetlist, attno);
	bare = tle ? gs_plan_strip_relabel((Node *) tle->expr) : NULL;
	return bare && IsA(bare, Var) ? bare : NULL;
}

bool
gs_agg_same_column(const GsAggInput *input, AttrNumber a, AttrNumber b)
{
	Node	   *variable;

	if (a == 0 || b == 0)
		return false;
	if (a == b)
		return true;
	variable = column_variable(input, a);
	return variable && equal(variable, column_variable(input, b));
}

bool
gs_agg_is_grouped_by(const GsAggInput *input, AttrNumber column, Oid equality, Oid collation)
{
	const Agg  *agg = input->agg;

	for (int i = 0; i < agg->numCols; i++)
		if (agg->grpOperators[i] == equality && agg->grpCollations[i] == collation &&
			gs_agg_same_column(input, column, gs_agg_sorted_column(input, agg->grpColIdx[i])))
			return true;
	return false;
}

bool
gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args)
{
	const GsSortKeys *keys = &input->keys;
	int			i = 0;
	ListCell   *lc;

	while (i < keys->ncols &&
		   gs_agg_is_grouped_by(input, keys->attnos[i],
						 get_equality_op_for_ordering_op(keys->operators[i], NULL),
						 keys->collations[i]))
		i++;
	foreach(lc, clauses)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(unconstify(SortGroupClause *, clause), args);
		Oid			collation = exprCollation(expr);
		AttrNumber	column;

		if (IsA(expr, Const))
			continue;
		/* its equality says less than an operator that compares bytes, as ~<~ */
		if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
			return false;
		column = gs_agg_expression_column(input, expr);
		if (gs_agg_is_grouped_by(input, column, clause->eqop, collation))
			continue;
		if (i >= keys->ncols || !gs_agg_same_column(input, column, keys->attnos[i]) ||
			clause->sortop != keys->operators[i] || collation != keys->collations[i] ||
			clause->nulls_first != keys->nulls_first[i])
			return false;
		i++;
	}
	return true;
}

bool
gs_agg_ignores_order(const Aggref *agg)
{
	HeapTuple	tuple;
	bool		result;

	if (agg->aggorder != NIL || agg->aggdistinct != NIL)
		return true;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg->aggfnoid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", agg->aggfnoid);
	result = OidIsValid(((Form_pg_aggregate) GETSTRUCT(tuple))->aggcombinefn);
	ReleaseSysCache(tuple);
	return result;
}
