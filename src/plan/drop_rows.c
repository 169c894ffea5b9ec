/*-------------------------------------------------------------------------
 *
 * drop_rows.c
 *	  Rows that a GpuSort may drop, because nobody notices (drop_rows.h).
 *
 * A query calls the same functions, for the same rows, and raises the same errors with gpusort as in
 * PostgreSQL.  So:
 *
 *	1. An expression is silent if it raises no error, has no side effect and reads nothing but its row.  For
 *	   functions PostgreSQL knows that: they are leakproof and not volatile.
 *	2. A node calls what is not silent for each row for which PostgreSQL's node does: in its select list, in
 *	   arguments, filters and transition functions of its aggregates and window functions, in its conditions.
 *	3. No node above the GpuSort sees a dropped row.  So a row is dropped only if all that PostgreSQL
 *	   evaluates for it is silent, from the GpuSort up to the node that discards it.
 *	4. A node evaluates its conditions in their order, which is also the order of security barriers, up to the
 *	   first condition that is not true.  So a condition drops rows only if it is silent, and all conditions
 *	   before it are.
 *	5. PostgreSQL evaluates nothing for rows behind a LIMIT.  They are not asked for.
 *
 * gpusort does not keep what PostgreSQL does not promise: how often it compares values, and in which order;
 * whether it sorts groups or hashes them, and so which groups come first without ORDER BY; how often it calls
 * immutable and stable functions; whether it computes columns that nobody reads; at which node it evaluates a
 * condition of the query.
 *
 * Tests: tap/plans_calls, regress/group_rows, regress/counts, regress/groups_kept
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "plan/drop_rows.h"
#include "plan/plan_walk.h"

/* For check_functions_in_node(). */
static bool
is_noticed(Oid function, void *context)
{
	(void) context;
	return !get_func_leakproof(function) || func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* A function over a partition or group that raises no error, whatever its rows are. */
static bool
is_silent_call(Oid function)
{
	switch (function)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_ROW_NUMBER:
		case F_RANK_:
		case F_DENSE_RANK_:
		case F_LAG_ANYELEMENT:
		case F_LEAD_ANYELEMENT:
		case F_FIRST_VALUE:
		case F_LAST_VALUE:
			return true;
		default:
			return false;
	}
}

/* A tree walker: true as soon as a node is not silent. */
static bool
find_noticed(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Aggref:
			if (!is_silent_call(((Aggref *) node)->aggfnoid))
				return true;
			break;
		case T_WindowFunc:
			/* its run condition is the WindowAgg's */
			return !is_silent_call(((WindowFunc *) node)->winfnoid) ||
				find_noticed((Node *) ((WindowFunc *) node)->args, context) ||
				find_noticed((Node *) ((WindowFunc *) node)->aggfilter, context);
		case T_Param:
			/* others may be values of init plans, which run when they are asked for */
			if (((Param *) node)->paramkind != PARAM_EXTERN)
				return true;
			break;
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
			if (check_functions_in_node(node, is_noticed, NULL))
				return true;
			break;
		case T_BooleanTest:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_Const:
		case T_List:
		case T_NullTest:
		case T_RelabelType:
		case T_TargetEntry:
		case T_Var:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, find_noticed, context);
}

bool
gs_expr_is_silent(const void *expr)
{
	return !find_noticed(unconstify(Node *, (const Node *) expr), NULL);
}

List *
gs_deciding_conditions(const List *conditions)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, conditions)
	{
		if (!gs_expr_is_silent(lfirst(lc)))
			break;
		result = lappend(result, lfirst(lc));
	}
	return result;
}

bool
gs_window_looks_back(const WindowAgg *window)
{
	ListCell *lc;

	foreach(lc, pull_var_clause((Node *) list_make2(window->plan.targetlist, window->plan.qual),
								PVC_INCLUDE_WINDOWFUNCS))
	{
		const WindowFunc *call = lfirst(lc);

		if (IsA(call, WindowFunc) && call->winfnoid != F_ROW_NUMBER && call->winfnoid != F_RANK_ &&
			call->winfnoid != F_DENSE_RANK_)
			return false;
	}
	return true;
}

/* What aggregates evaluate for each row. */
static List *
arguments(const List *aggregates)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, aggregates)
	{
		const Aggref *agg = lfirst_node(Aggref, lc);

		result = lappend(lappend(result, agg->args), agg->aggfilter);
	}
	return result;
}

/* What a node evaluates for a row before it discards it. */
static const void *
seen_by_judge(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
			return arguments(gs_plan_aggregates((const Agg *) plan));
		case T_WindowAgg:
			return plan->targetlist;
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_scan_tlist;
		default:
			return NULL;
	}
}

/* What a node evaluates for a row that it passes on. */
static const void *
seen_by(const Plan *plan)
{
	List *result = list_make2(plan->targetlist, plan->qual);

	if (IsA(plan, CustomScan))
		result = lappend(lappend(result, ((const CustomScan *) plan)->custom_scan_tlist),
						 ((const CustomScan *) plan)->custom_exprs);
	if (IsA(plan, WindowAgg))
		result = lappend(result, ((const WindowAgg *) plan)->runCondition);
	return result;
}

bool
gs_may_drop_rows(const Plan *judge, const Plan *sort)
{
	for (const Plan *plan = judge; plan != sort;)
	{
		const WindowAgg *window = (const WindowAgg *) plan;

		if (plan == NULL || !gs_expr_is_silent(plan == judge ? seen_by_judge(plan) : seen_by(plan)))
			return false;
		/* comparing rows with an offset may raise an error */
		if (IsA(plan, WindowAgg) && (window->startOffset || window->endOffset))
			return false;
		plan = IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : outerPlan(plan);
	}
	return gs_expr_is_silent(sort->targetlist);
}
