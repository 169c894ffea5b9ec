/*-------------------------------------------------------------------------
 *
 * agg_plan_15.c
 *	  Aggregates that need not sort, because a GpuSort below has done it.
 *
 * PostgreSQL 16 and later have the input of aggregates sorted, and aggregates that know it.
 * Before, an aggregate with ORDER BY whose rows come in that order is the aggregate
 * without ORDER BY.  So is one with DISTINCT if, in addition, no two rows of a
 * group are equal in its columns, which a Unique between the two sees to.  Where
 * other aggregates need all rows, it takes the first one of equal rows by a
 * FILTER:
 *
 *		Agg (count(DISTINCT x), sum(y))			Agg (count(x) FILTER (row_number = 1), sum(y))
 *		  -> GpuSort (x)						  -> GpuWindow (row_number() over equal x)
 *												    -> GpuSort (x)
 *
 * An Agg checks the right to execute the equality functions of several columns of a DISTINCT, and forgets
 * that of one.  So do the nodes that take its place.
 *
 * That row need not be the one that the aggregate would have kept.  So equal
 * values must be the same ones, unless they are only counted.  The Agg's
 * expressions are changed accordingly, and EXPLAIN (VERBOSE) shows them so.
 *
 * Tests: regress/aggregates
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/typcache.h"

#include "compat.h"
#include "nodes/group/gpugroup.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/window/gpuwindow_function.h"
#include "plan/plan_walk.h"

#ifndef GS_COMPAT_PRESORTED_AGGREGATES

typedef struct AggContext
{
	GsAggInput	input;
	const Aggref *numbered;		/* its DISTINCT is done by the number of each row
								 * among equal ones; NULL: none */
	bool		unchecked;		/* the Unique does that of one column */
} AggContext;

/* Is a key of the sort one of the columns of a DISTINCT? */
static bool
is_in_distinct(const GsAggInput *input, int key, const Aggref *agg)
{
	ListCell   *lc;

	foreach(lc, agg->aggdistinct)
		if (gs_plan_find_argument(input->sort, lfirst(lc), agg->args) == key)
			return true;
	return false;
}

/* Do two rows of a group always differ in what an aggregate's DISTINCT compares? */
static bool
is_unique(const GsAggInput *input, const Aggref *agg)
{
	const Unique *unique = input->unique;

	if (unique == NULL)
		return false;
	for (int i = 0; i < unique->numCols; i++)
	{
		int			key = gs_plan_find_key(input->sort, unique->uniqColIdx[i], unique->uniqOperators[i],
										   unique->uniqCollations[i]);

		if (key < 0 || (!bms_is_member(key, input->grouped) && !is_in_distinct(input, key, agg)))
			return false;
	}
	return true;
}

/* May an aggregate get its rows in another way, if the order is right? */
static bool
is_changeable(const Aggref *agg)
{
	return gs_compat_aggref_sorts(agg) && !AGGKIND_IS_ORDERED_SET(agg->aggkind) &&
		agg->aggsplit == AGGSPLIT_SIMPLE && !contain_volatile_functions((Node *) agg);
}

/*
 * Can an aggregate with DISTINCT take the first one of its equal rows, by their
 * number?  There is one such number; the first aggregate says among which rows.
 */
static bool
can_take_first(AggContext *context, const Aggref *agg)
{
	if (context->input.unique || agg->aggfilter || !gs_agg_takes_any_equal(agg))
		return false;
	if (context->numbered == NULL)
		context->numbered = agg;
	return gs_agg_equal_distinct(agg, context->numbered);
}

/* The number of a row among those that are equal to it is 1. */
static Expr *
is_first(const GsAggInput *input)
{
	AttrNumber	attno = list_length(input->sort->scan.plan.targetlist) + 1;
	Var		   *number = makeVar(OUTER_VAR, attno, INT8OID, -1, InvalidOid, 0);
	Const	   *one = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(1), false,
								FLOAT8PASSBYVAL);
	Expr	   *result = make_opclause(lookup_type_cache(INT8OID, TYPECACHE_EQ_OPR)->eq_opr, BOOLOID,
									   false, (Expr *) number, (Expr *) one, InvalidOid,
									   InvalidOid);

	set_opfuncid((OpExpr *) result);
	return result;
}

/* The same aggregate without DISTINCT and ORDER BY, and the arguments that only these have. */
static Aggref *
without_sort(const Aggref *agg)
{
	Aggref	   *result = (Aggref *) copyObjectImpl(agg);
	ListCell   *lc;

	result->aggdistinct = NIL;
	result->aggorder = NIL;
	foreach(lc, result->args)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		tle->ressortgroupref = 0;
		if (tle->resjunk)
			result->args = foreach_delete_current(result->args, lc);
	}
	return result;
}

static Node *
drop_sorts(Node *node, void *data)
{
	AggContext *context = data;
	const GsAggInput *input = &context->input;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;
		List	   *clauses = agg->aggdistinct != NIL ? agg->aggdistinct : agg->aggorder;

		if (is_changeable(agg) && gs_agg_is_sorted(input, clauses, agg->args))
		{
			bool		must_take_first = agg->aggdistinct != NIL && !is_unique(input, agg);

			if (!must_take_first || can_take_first(context, agg))
			{
				Aggref	   *result = without_sort(agg);

				if (must_take_first)
					result->aggfilter = is_first(input);
				context->unchecked |= !must_take_first && list_length(agg->aggdistinct) == 1;
				return (Node *) result;
			}
		}
	}
	return expression_tree_mutator(node, drop_sorts, data);
}

/* The columns in which rows are equal that are numbered, as gs_columns_write() has them. */
static List *
numbered_columns(const AggContext *context)
{
	GsColumns	groups = gs_columns_of_groups(&context->input.agg->plan);
	List	   *columns = gs_columns_write(&groups);
	ListCell   *lc;

	foreach(lc, context->numbered->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, context->numbered->args);

		if (IsA(expr, Const))
			continue;
		linitial(columns) = lappend_int(linitial(columns), ((Var *) gs_plan_strip_relabel(expr))->varattno);
		lsecond(columns) = lappend_oid(lsecond(columns), clause->eqop);
		lthird(columns) = lappend_oid(lthird(columns), exprCollation(expr));
	}
	return columns;
}

/*
 * A GpuWindow that returns a GpuSort's columns and, as one more, the row_number() of
 * rows that are equal in some columns and come one after the other.
 */
static CustomScan *
number_rows(Plan *sort, List *columns, bool checked)
{
	List	   *scan_tlist = gs_node_tlist(sort->targetlist, OUTER_VAR);
	WindowFunc *call = makeNode(WindowFunc);
	FuncExpr   *shown = makeFuncExpr(F_ROW_NUMBER, INT8OID, NIL, InvalidOid, InvalidOid,
									 COERCE_EXPLICIT_CALL);
	CustomScan *scan;

	call->winfnoid = F_ROW_NUMBER;
	call->wintype = INT8OID;
	call->location = -1;
	scan_tlist = gs_node_add_column(scan_tlist, (Expr *) shown);
	scan = gs_node_make(&gs_window_node, sort, gs_node_tlist(scan_tlist, INDEX_VAR), scan_tlist, sort,
						list_make3(list_make3_int(GS_FRAME_TO_ROW, true, checked),
								   columns, list_make4(NIL, NIL, NIL, NIL)));
	scan->custom_exprs = list_make2(list_make1(call), NIL);
	return scan;
}

Plan *
gs_agg_use_order(GsStepContext *step, Plan *plan)
{
	AggContext	context = {.numbered = NULL};

	if (!gs_agg_read_input(&context.input, (const Agg *) plan))
		return plan;
	plan->targetlist = (List *) drop_sorts((Node *) plan->targetlist, &context);
	plan->qual = (List *) drop_sorts((Node *) plan->qual, &context);
	if (context.unchecked)
		step->unchecked = lappend(step->unchecked, outerPlan(plan));
	if (context.numbered)
	{
		CustomScan *numbers = number_rows(outerPlan(plan), numbered_columns(&context),
										  list_length(context.numbered->aggdistinct) > 1);

		numbers->scan.plan.plan_node_id = ++step->last_node_id;
		outerPlan(plan) = &numbers->scan.plan;
	}
	return plan;
}

#endif							/* GS_COMPAT_PRESORTED_AGGREGATES */
