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
	for (int i = 0; i < agg->numCols; i++)
	{
		int			key = gs_plan_find_key(input->sort, agg->grpColIdx[i], agg->grpOperators[i],
										   agg->grpCollations[i]);

		if (key >= 0)
			input->grouped = bms_add_member(input->grouped, key);
	}
	return true;
}

bool
gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args)
{
	const GsColumns keys = gs_plan_read(input->sort);
	int			i = 0;
	ListCell   *lc;

	while (bms_is_member(i, input->grouped))
		i++;
	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, args);
		Oid			collation = exprCollation(expr);
		int			key;

		if (IsA(expr, Const))
			continue;
		/* its equality says less than an operator that compares bytes, as ~<~ */
		if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
			return false;
		key = gs_plan_find_argument(input->sort, clause, args);
		if (key < 0)
			return false;
		/* rows that are equal in all columns before are equal in it */
		if (key < i || bms_is_member(key, input->grouped))
			continue;
		if (key > i || clause->sortop != keys.operators[i] || collation != keys.collations[i] ||
			clause->nulls_first != keys.nulls_first[i])
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
