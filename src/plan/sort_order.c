/*-------------------------------------------------------------------------
 *
 * sort_order.c
 *	  How far the rows of a table lie in the order of a sort already (sort_order.h).
 *
 * ANALYZE finds the correlation of a column's order with that of the rows in the table.  Rows that
 * are read in that order, by each process of a parallel scan as well, hardly ever enter the heap of
 * a top-N heapsort once it is full.  The first column of the sort tells.
 *
 * Tests: regress/paths
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_statistic.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "plan/sort_order.h"

static double
order_of_column(const RangeTblEntry *table, AttrNumber attno, Oid sort_operator)
{
	Oid			opfamily;
	Oid			opcintype;
	bool		descending;
	AttStatsSlot slot;
	HeapTuple	tuple;
	double		correlation = 0;

	if (table->rtekind != RTE_RELATION || attno <= 0 ||
		!gs_compat_ordering_op(sort_operator, &opfamily, &opcintype, &descending))
		return 0;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table->relid), Int16GetDatum(attno),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers > 0)
			correlation = descending ? -slot.numbers[0] : slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return correlation > 0 ? correlation * correlation : 0;
}

double
gs_order_of_path(PlannerInfo *root, const Path *path, List *pathkeys)
{
	const PathKey *key = linitial_node(PathKey, pathkeys);
	ListCell   *lc;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (path->pathtype != T_SeqScan && path->pathtype != T_BitmapHeapScan)
		return 0;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);
		const Var  *var = (const Var *) member->em_expr;

		if (IsA(var, Var) && var->varno == path->parent->relid && var->varlevelsup == 0)
			return order_of_column(planner_rt_fetch(var->varno, root), var->varattno,
								   gs_compat_pathkey_operator(key, member->em_datatype));
	}
	return 0;
}

double
gs_order_of_plan(const PlannedStmt *stmt, const Sort *sort)
{
	const Plan *plan = &sort->plan;
	const Var  *var = (const Var *) get_tle_by_resno(plan->targetlist, sort->sortColIdx[0])->expr;

	while (IsA(var, Var) && var->varno == OUTER_VAR && (IsA(plan, Sort) || IsA(plan, Gather)))
	{
		plan = outerPlan(plan);
		var = (const Var *) get_tle_by_resno(plan->targetlist, var->varattno)->expr;
	}
	if (!IsA(var, Var) || IS_SPECIAL_VARNO(var->varno) ||
		(!IsA(plan, SeqScan) && !IsA(plan, BitmapHeapScan)))
		return 0;
	return order_of_column(rt_fetch(var->varno, stmt->rtable), var->varattno, sort->sortOperators[0]);
}
