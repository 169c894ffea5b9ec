/*-------------------------------------------------------------------------
 *
 * gpuwindow_plan.c
 *	  Putting GpuWindow in the place of WindowAgg above GpuSort, and below an Agg
 *	  that needs to know the first one of equal rows (gpusort_agg_plan.c).
 *
 * WindowAgg keeps the rows of a partition in a tuplestore, because a window
 * function may ask for any of them.  row_number(), rank() and dense_rank() need
 * none but the row before, and WindowAgg, which takes a quarter of a
 * microsecond for a row, would be several times as slow as the sort below it.
 * Where a window computes nothing but these three, GpuWindow counts as the rows
 * go by.
 *
 * WindowAgg stays where it can stop early (runCondition), filters rows, must
 * evaluate the offsets of a frame, if only to find that they are wrong, or has
 * subplans in its target list.
 *
 * A GpuWindow's scan tuple has those of its child's columns that its target list
 * names and the functions' values, in the order in which they stand there, so that
 * mostly no projection is needed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "nodes/gpusort.h"
#include "nodes/gpuwindow.h"

typedef struct WindowContext
{
	List	   *columns;		/* of the scan tuple: Var or WindowFunc */
	bool		possible;
} WindowContext;

/* The expression in terms of the scan tuple. */
static Node *
find_columns(Node *node, WindowContext *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, WindowFunc))
	{
		WindowFunc *function = (WindowFunc *) node;

		if (function->args != NIL || function->aggfilter != NULL ||
			gs_compat_null_treatment(function) ||
			(function->winfnoid != F_ROW_NUMBER && function->winfnoid != F_RANK_ &&
			 function->winfnoid != F_DENSE_RANK_))
			context->possible = false;
	}
	if (IsA(node, WindowFunc) || (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR))
	{
		AttrNumber	attno = 1;
		ListCell   *lc;

		foreach(lc, context->columns)
		{
			if (equal(lfirst(lc), node))
				break;
			attno++;
		}
		if (lc == NULL)
			context->columns = lappend(context->columns, copyObject(node));
		return (Node *) makeVar(INDEX_VAR, attno, exprType(node), exprTypmod(node),
								exprCollation(node), 0);
	}
	return expression_tree_mutator(node, find_columns, context);
}

/*
 * A column of the scan tuple as EXPLAIN is to show it.  PostgreSQL 18 prints a
 * WindowFunc below a WindowAgg only, with whose window's name; so functions
 * are shown as calls, which nobody evaluates.
 */
static Expr *
shown_column(Expr *column)
{
	WindowFunc *function = (WindowFunc *) column;

	if (!IsA(column, WindowFunc))
		return column;
	return (Expr *) makeFuncExpr(function->winfnoid, function->wintype, NIL, function->wincollid,
								 function->inputcollid, COERCE_EXPLICIT_CALL);
}

static List *
int_list(const AttrNumber *values, int n)
{
	List	   *list = NIL;

	for (int i = 0; i < n; i++)
		list = lappend_int(list, values[i]);
	return list;
}

static List *
oid_list(const Oid *values, int n)
{
	List	   *list = NIL;

	for (int i = 0; i < n; i++)
		list = lappend_oid(list, values[i]);
	return list;
}

static bool
returns_sorted_rows(const Plan *plan)
{
	return gs_node_is(plan, &gs_sort_node) || gs_node_is(plan, &gs_window_node);
}

Plan *
gs_window_replace(WindowAgg *window)
{
	WindowContext context = {NIL, true};
	CustomScan *scan;
	List	   *tlist;
	List	   *scan_tlist = NIL;
	List	   *columns = NIL;
	List	   *functions = NIL;
	ListCell   *lc;

	if (!returns_sorted_rows(outerPlan(window)) || window->plan.qual != NIL ||
		window->runCondition != NIL || window->startOffset || window->endOffset ||
		contain_subplans((Node *) window->plan.targetlist))
		return &window->plan;
	tlist = (List *) find_columns((Node *) window->plan.targetlist, &context);
	if (!context.possible)
		return &window->plan;
	foreach(lc, context.columns)
	{
		Expr	   *expr = lfirst(lc);
		bool		is_function = IsA(expr, WindowFunc);

		columns = lappend_int(columns, is_function ? 0 : ((Var *) expr)->varattno);
		if (is_function)
			functions = lappend_oid(functions, ((WindowFunc *) expr)->winfnoid);
		scan_tlist = lappend(scan_tlist,
							 makeTargetEntry(shown_column(expr), list_length(scan_tlist) + 1, NULL,
											 false));
	}

	scan = makeNode(CustomScan);
	scan->scan.plan = window->plan;
	scan->scan.plan.type = T_CustomScan;
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = scan_tlist;
	scan->custom_private =
		list_make4(columns, functions,
				   int_list(window->partColIdx, window->partNumCols),
				   oid_list(window->partOperators, window->partNumCols));
	scan->custom_private =
		list_concat(scan->custom_private,
					list_make4(oid_list(window->partCollations, window->partNumCols),
							   int_list(window->ordColIdx, window->ordNumCols),
							   oid_list(window->ordOperators, window->ordNumCols),
							   oid_list(window->ordCollations, window->ordNumCols)));
	scan->methods = &gs_window_node.scan;
	return &scan->scan.plan;
}

Plan *
gs_window_number_rows(Plan *sort, List *attnos, List *operators, List *collations)
{
	List	   *scan_tlist = NIL;
	List	   *tlist = NIL;
	List	   *columns = NIL;
	List	   *private;
	ListCell   *lc;

	foreach(lc, sort->targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Var		   *column = makeVarFromTargetEntry(OUTER_VAR, tle);

		scan_tlist = lappend(scan_tlist,
							 makeTargetEntry((Expr *) column, tle->resno, NULL, false));
		columns = lappend_int(columns, tle->resno);
	}
	scan_tlist = lappend(scan_tlist,
						 makeTargetEntry((Expr *) makeFuncExpr(F_ROW_NUMBER, INT8OID, NIL, InvalidOid,
															   InvalidOid, COERCE_EXPLICIT_CALL),
										 list_length(scan_tlist) + 1, NULL, false));
	columns = lappend_int(columns, 0);
	foreach(lc, scan_tlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Var		   *column = makeVarFromTargetEntry(INDEX_VAR, tle);

		tlist = lappend(tlist, makeTargetEntry((Expr *) column, tle->resno, NULL, false));
	}
	private = list_make4(columns, list_make1_oid(F_ROW_NUMBER), attnos, operators);
	private = list_concat(private, list_make4(collations, NIL, NIL, NIL));
	return &gs_node_make(&gs_window_node, sort, tlist, scan_tlist, sort, private)->scan.plan;
}
