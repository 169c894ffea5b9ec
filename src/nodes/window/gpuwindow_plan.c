/*-------------------------------------------------------------------------
 *
 * gpuwindow_plan.c
 *	  Putting GpuWindow in the place of WindowAgg above GpuSort.
 *
 * WindowAgg keeps the rows of a partition in a tuplestore, because a window function may ask
 * for any of them, and copies each row several times.  That takes longer than the sort below it.
 * Most functions need few rows, or only the row before.  GpuWindow holds only these.
 *
 * WindowAgg stays if GpuWindow does not know a function, if a frame does not begin at the partition's
 * first row, or if it does not end at the current row, its last peer or the partition's last row.
 * It also stays if users could see the difference: with volatile arguments, and with subplans in
 * the target list.
 *
 * WindowAgg computes its target list before its run condition and filter, and so does GpuWindow.  When a run
 * condition fails, WindowAgg also computes it for the partition's rows that it has read ahead, to find the
 * frame's end or for a function.  If that might be noticed (plan/drop_rows.h), WindowAgg stays.
 *
 * "SELECT rank() OVER (ORDER BY p)" has p as junk in the topmost target list, too: below
 * GpuWindow it is needed, above it is not.
 *
 * A GpuWindow's scan tuple has the child's columns that its target list uses, and the functions'
 * values, in the target list's order.  So a projection is seldom needed.
 *
 * Tests: regress/windows, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_agg.h"
#include "parser/parsetree.h"
#include "utils/syscache.h"

#include "compat.h"
#include "nodes/sort/gpusort.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/window/gpuwindow_function.h"
#include "plan/array_calls.h"
#include "plan/drop_rows.h"
#include "plan/plan_walk.h"
#include "plan/sort_refuse.h"

/* A run condition refers to the results of window functions as columns of the target list. */
static Node *
find_results(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
		return (Node *) get_tle_by_resno(context, ((Var *) node)->varattno)->expr;
	return expression_tree_mutator(node, find_results, context);
}

static GsWindowFrame
frame(const WindowAgg *window)
{
	int			options = window->frameOptions;

	if (!(options & FRAMEOPTION_START_UNBOUNDED_PRECEDING) || (options & FRAMEOPTION_EXCLUSION))
		return GS_FRAME_OTHER;
	if (options & FRAMEOPTION_END_UNBOUNDED_FOLLOWING)
		return GS_FRAME_TO_PARTITION;
	if (!(options & FRAMEOPTION_END_CURRENT_ROW))
		return GS_FRAME_OTHER;
	if (options & FRAMEOPTION_ROWS)
		return GS_FRAME_TO_ROW;
	return window->ordNumCols > 0 ? GS_FRAME_TO_PEERS : GS_FRAME_TO_PARTITION;
}

/* Does an aggregate's final function leave the state as it is? */
static bool
leaves_state(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	bool		result = HeapTupleIsValid(tuple) &&
		((Form_pg_aggregate) GETSTRUCT(tuple))->aggfinalmodify == AGGMODIFY_READ_ONLY;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}

/* Why GpuWindow cannot make a call; NULL: it can. */
static const char *
refuse_call(const WindowAgg *window, const WindowFunc *call)
{
	GsWindowKind kind = gs_window_kind(call);
	Node	   *offset = NULL;

	if (kind == GS_WINDOW_UNKNOWN)
		return "a function is not supported";
	if (gs_compat_null_treatment(call))
		return "IGNORE NULLS and RESPECT NULLS are not supported";
	if (gs_window_uses_frame(kind) && frame(window) == GS_FRAME_OTHER)
		return "its frame is not supported";
	if (kind == GS_WINDOW_AGGREGATE && !leaves_state(call->winfnoid))
		return "an aggregate changes its state to return a value";
	if (gs_expr_is_volatile((Node *) call->args) ||
		gs_expr_is_volatile((Node *) call->aggfilter))
		return "an argument is volatile";
	if ((kind == GS_WINDOW_LAG || kind == GS_WINDOW_LEAD) && list_length(call->args) > 1)
		offset = lsecond(call->args);
	if (offset && contain_var_clause(offset))
		return "an offset is not constant";
	return NULL;
}

/* The same for the whole window.  projected: its target list over the scan tuple. */
static const char *
refuse_window(const WindowAgg *window, const List *scan_tlist, const List *projected)
{
	Node	   *tlist = (Node *) window->plan.targetlist;
	ListCell   *lc;

	foreach(lc, scan_tlist)
	{
		const Expr *column = lfirst_node(TargetEntry, lc)->expr;
		const char *reason = NULL;

		if (IsA(column, WindowFunc))
			reason = refuse_call(window, (const WindowFunc *) column);
		if (reason)
			return reason;
	}
	if (window->startOffset || window->endOffset)
		return "its frame is not supported";
	if (contain_subplans(tlist) || contain_subplans((Node *) window->plan.qual) ||
		contain_subplans((Node *) window->runCondition))
		return "it contains a subquery";
	if (window->runCondition != NIL && !gs_expr_is_silent(projected) &&
		(frame(window) != GS_FRAME_TO_ROW || !gs_window_looks_back(window)))
		return "its select list is computed for rows that were read ahead";

	/* around WindowAgg they are sorted many at a time (gpuarrays_plan.c) */
	if (gs_array_calls_are_in(tlist))
		return "it calls gpu_sort_array()";
	return NULL;
}

/* As preprocess_aggref() in prepagg.c has it. */
static Oid
transition_type(Aggref *agg)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg->aggfnoid));
	Oid			types[FUNC_MAX_ARGS];
	int			n_types = get_aggregate_argtypes(agg, types);
	Oid			type;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", agg->aggfnoid);
	type = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggtranstype;
	type = resolve_aggregate_transtype(agg->aggfnoid, type, types, n_types);
	ReleaseSysCache(tuple);
	return type;
}

/*
 * Returns a call as a column of the scan tuple, with this number.  An aggregate becomes an Aggref, as in an
 * Agg (aggregates.h).  Any other function becomes a FuncExpr that nobody evaluates, for EXPLAIN only:
 * PostgreSQL 18 cannot print a WindowFunc without a WindowAgg, whose window's name it prints.
 */
static Expr *
scan_column(const WindowFunc *call, int number)
{
	Aggref	   *agg;
	ListCell   *lc;

	if (!call->winagg)
		return (Expr *) makeFuncExpr(call->winfnoid, call->wintype, call->args, call->wincollid,
									 call->inputcollid, COERCE_EXPLICIT_CALL);
	agg = makeNode(Aggref);
	agg->aggfnoid = call->winfnoid;
	agg->aggtype = call->wintype;
	agg->aggcollid = call->wincollid;
	agg->inputcollid = call->inputcollid;
	agg->aggfilter = call->aggfilter;
	agg->aggstar = call->winstar;
	agg->aggkind = AGGKIND_NORMAL;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->aggno = agg->aggtransno = number;
	agg->location = -1;
	foreach(lc, call->args)
	{
		agg->aggargtypes = lappend_oid(agg->aggargtypes, exprType(lfirst(lc)));
		agg->args = gs_node_add_column(agg->args, lfirst(lc));
	}
	agg->aggtranstype = transition_type(agg);
	return (Expr *) agg;
}

bool
gs_window_is_sorted(const Plan *plan)
{
	return gs_node_is(plan, &gs_sort_node) || gs_node_is(plan, &gs_window_node);
}

Plan *
gs_window_replace(GsStepContext *context, Plan *plan)
{
	WindowAgg  *window = (WindowAgg *) plan;
	CustomScan *scan;
	List	   *tlist;
	List	   *qual;
	List	   *conditions;
	const char *reason;
	List	   *calls = NIL;
	List	   *scan_tlist = NIL;
	List	   *private;
	ListCell   *lc;

	if (!gs_window_is_sorted(outerPlan(window)))
		return plan;
	tlist = gs_node_use_scan_tuple(window->plan.targetlist, PVC_INCLUDE_WINDOWFUNCS, &scan_tlist);
	qual = gs_node_use_scan_tuple(window->plan.qual, PVC_INCLUDE_WINDOWFUNCS, &scan_tlist);
	conditions = (List *) find_results((Node *) window->runCondition, window->plan.targetlist);
	conditions = gs_node_use_scan_tuple(conditions, PVC_INCLUDE_WINDOWFUNCS, &scan_tlist);
	reason = refuse_window(window, scan_tlist, tlist);
	if (reason)
	{
		gs_refuse_window(reason);
		return plan;
	}
	foreach(lc, scan_tlist)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!IsA(column->expr, WindowFunc))
			continue;
		calls = lappend(calls, column->expr);
		column->expr = scan_column((WindowFunc *) column->expr, column->resno);
	}

	private = list_make3(list_make3_int(frame(window), window->topWindow, true),
						 gs_columns_write(&(GsColumns){window->partNumCols, window->partColIdx,
										  window->partOperators, window->partCollations}),
						 gs_columns_write(&(GsColumns){window->ordNumCols, window->ordColIdx,
										  window->ordOperators, window->ordCollations}));
	scan = gs_node_make(&gs_window_node, plan, tlist, scan_tlist, outerPlan(plan), private);
	scan->scan.plan.qual = qual;
	scan->scan.plan.initPlan = plan->initPlan;
	scan->custom_exprs = list_make2(calls, conditions);
	return &scan->scan.plan;
}

/* The last column of the scan tuple, if it is the child's and no longer used, is left out. */
static void
drop_last_column(CustomScan *plan)
{
	const TargetEntry *last = llast_node(TargetEntry, plan->custom_scan_tlist);
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) list_make3(plan->scan.plan.targetlist, plan->scan.plan.qual,
									   gs_window_run_condition(plan)), INDEX_VAR, &used);
	if (IsA(last->expr, Var) && !bms_is_member(last->resno - FirstLowInvalidHeapAttributeNumber, used))
		plan->custom_scan_tlist = list_truncate(plan->custom_scan_tlist, last->resno - 1);
}

Plan *
gs_window_drop_junk(GsStepContext *context, Plan *plan)
{
	while (gs_node_is(plan, &gs_window_node))
	{
		TargetEntry *last = llast_node(TargetEntry, plan->targetlist);

		if (!last->resjunk || last->resno < 2 || !IsA(last->expr, Var))
			break;
		plan->targetlist = list_truncate(plan->targetlist, last->resno - 1);
		drop_last_column((CustomScan *) plan);
	}
	return plan;
}

List *
gs_window_run_condition(const CustomScan *plan)
{
	return lsecond(plan->custom_exprs);
}
