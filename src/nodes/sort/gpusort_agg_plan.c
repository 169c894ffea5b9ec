/*-------------------------------------------------------------------------
 *
 * gpusort_agg_plan.c
 *	  Aggregates that need not sort, because a GpuSort below has done it.
 *
 * An aggregate with ORDER BY whose rows come in that order is the aggregate
 * without ORDER BY.  So is one with DISTINCT if, in addition, no two rows of a
 * group are equal in its columns, which a Unique between the two sees to.  Where
 * other aggregates need all rows, it takes the first one of equal rows by a
 * FILTER:
 *
 *		Agg (count(DISTINCT x), sum(y))			Agg (count(x) FILTER (row_number = 1), sum(y))
 *		  -> GpuSort (x)						  -> GpuWindow (row_number() over equal x)
 *												    -> GpuSort (x)
 *
 * That row need not be the one that the aggregate would have kept.  So equal
 * values must be the same ones, unless they are only counted.  The Agg's
 * expressions are changed accordingly, and EXPLAIN (VERBOSE) shows them so.
 *
 * Nothing is assumed of how the plan came about.  Rows of a group are equal in
 * the columns of GROUP BY; so the GpuSort's first columns may be any of these,
 * and its next ones must be the aggregate's.  Operators and collations are
 * compared as well, as columns that one equality takes for equal another one may
 * not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "nodes/feed/gpufeed.h"
#include "nodes/sort/gpusort.h"
#include "nodes/window/gpuwindow.h"

/* An Agg and what is below it. */
typedef struct AggInput
{
	const Agg  *agg;
	const Unique *unique;		/* NULL: there is none */
	const CustomScan *sort;		/* GpuSort */
	GsSortKeys	keys;			/* of sort */
	const Aggref *numbered;		/* its DISTINCT is done by the number of each row
								 * among equal ones; NULL: none */
} AggInput;

/* A column of the Agg's input as one of the GpuSort's child; 0: it is none. */
static AttrNumber
sorted_column(const AggInput *input, AttrNumber attno)
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

/* The same of an aggregate's expression. */
static AttrNumber
expression_column(const AggInput *input, Node *expr)
{
	const Var  *var = (const Var *) gs_tlist_strip_relabel(expr);

	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return 0;
	return sorted_column(input, var->varattno);
}

/* What a column of the GpuSort's child is computed from, if it is a variable; else NULL. */
static Node *
column_variable(const AggInput *input, AttrNumber attno)
{
	const Plan *plan = outerPlan(input->sort);
	const TargetEntry *tle;
	Node	   *bare;

	/* these two have the columns of their child */
	while (IsA(plan, Gather) || gs_node_is(plan, &gs_feed_node))
		plan = outerPlan(plan);
	tle = get_tle_by_resno(plan->targetlist, attno);
	bare = tle ? gs_tlist_strip_relabel((Node *) tle->expr) : NULL;
	return bare && IsA(bare, Var) ? bare : NULL;
}

/* Do two columns of the GpuSort's child have the same value, but for type and collation? */
static bool
same_column(const AggInput *input, AttrNumber a, AttrNumber b)
{
	Node	   *variable;

	if (a == 0 || b == 0)
		return false;
	if (a == b)
		return true;
	variable = column_variable(input, a);
	return variable && equal(variable, column_variable(input, b));
}

/* Are rows of a group equal in a column, as this equality under this collation has it? */
static bool
is_grouped_by(const AggInput *input, AttrNumber column, Oid equality, Oid collation)
{
	const Agg  *agg = input->agg;

	for (int i = 0; i < agg->numCols; i++)
		if (agg->grpOperators[i] == equality && agg->grpCollations[i] == collation &&
			same_column(input, column, sorted_column(input, agg->grpColIdx[i])))
			return true;
	return false;
}

/* Are rows of a group sorted like this? */
static bool
is_sorted(const AggInput *input, List *clauses, List *args)
{
	const GsSortKeys *keys = &input->keys;
	int			i = 0;
	ListCell   *lc;

	while (i < keys->ncols &&
		   is_grouped_by(input, keys->attnos[i],
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
		column = expression_column(input, expr);
		if (is_grouped_by(input, column, clause->eqop, collation))
			continue;
		if (i >= keys->ncols || !same_column(input, column, keys->attnos[i]) ||
			clause->sortop != keys->operators[i] || collation != keys->collations[i] ||
			clause->nulls_first != keys->nulls_first[i])
			return false;
		i++;
	}
	return true;
}

/* Is a column one of those of a DISTINCT, with the same equality? */
static bool
is_in_distinct(const AggInput *input, AttrNumber column, Oid equality, Oid collation,
			   const Aggref *agg)
{
	ListCell   *lc;

	foreach(lc, agg->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, agg->args);

		if (clause->eqop == equality && exprCollation(expr) == collation &&
			same_column(input, column, expression_column(input, expr)))
			return true;
	}
	return false;
}

/* Do two rows of a group always differ in what an aggregate's DISTINCT compares? */
static bool
is_unique(const AggInput *input, const Aggref *agg)
{
	const Unique *unique = input->unique;

	if (unique == NULL)
		return false;
	for (int i = 0; i < unique->numCols; i++)
	{
		AttrNumber	column = sorted_column(input, unique->uniqColIdx[i]);
		Oid			equality = unique->uniqOperators[i];
		Oid			collation = unique->uniqCollations[i];

		if (!is_grouped_by(input, column, equality, collation) &&
			!is_in_distinct(input, column, equality, collation, agg))
			return false;
	}
	return true;
}

/*
 * PostgreSQL checks the right to execute the equality functions of several columns, and
 * forgets that of one.
 */
bool
gs_agg_may_compare(const Aggref *agg)
{
	ListCell   *lc;

	foreach(lc, agg->aggdistinct)
	{
		Oid			function = get_opcode(lfirst_node(SortGroupClause, lc)->eqop);

		if (gs_compat_may_execute(function, GetUserId()) != ACLCHECK_OK)
			return false;
	}
	return true;
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
		Oid			function;
		bool		descending;

		if (!gs_compat_ordering_op(clause->sortop, &opfamily, &type, &descending))
			return false;
		function = get_opfamily_proc(opfamily, type, type, BTEQUALIMAGE_PROC);
		if (!OidIsValid(function) ||
			!DatumGetBool(OidFunctionCall1Coll(function, exprCollation(expr),
											   ObjectIdGetDatum(type))))
			return false;
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
			!equal(gs_tlist_strip_relabel(our_expr), gs_tlist_strip_relabel(their_expr)))
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
can_take_first(AggInput *input, const Aggref *agg)
{
	if (input->unique || agg->aggfilter || !gs_agg_takes_any_equal(agg) || !gs_agg_may_compare(agg))
		return false;
	if (input->numbered == NULL)
		input->numbered = agg;
	return gs_agg_equal_distinct(agg, input->numbered);
}

/* The number of a row among those that are equal to it is 1. */
static Expr *
is_first(const AggInput *input)
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
drop_sorts(Node *node, void *context)
{
	AggInput   *input = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;
		List	   *clauses = agg->aggdistinct != NIL ? agg->aggdistinct : agg->aggorder;

		if (is_changeable(agg) && is_sorted(input, clauses, agg->args))
		{
			bool		must_take_first = agg->aggdistinct != NIL && !is_unique(input, agg);

			if (!must_take_first || can_take_first(input, agg))
			{
				Aggref	   *result = without_sort(agg);

				if (must_take_first)
					result->aggfilter = is_first(input);
				return (Node *) result;
			}
		}
	}
	return expression_tree_mutator(node, drop_sorts, context);
}

/* Rows with their number among those of a group that are equal for the DISTINCT. */
static Plan *
number_rows(const AggInput *input)
{
	const Agg  *agg = input->agg;
	GsColumns	columns = gs_columns_read(gs_columns_write(agg->numCols, agg->grpColIdx,
														   agg->grpOperators, agg->grpCollations));
	ListCell   *lc;

	foreach(lc, input->numbered->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, input->numbered->args);

		if (IsA(expr, Const))
			continue;
		columns.attnos = lappend_int(columns.attnos, ((Var *) gs_tlist_strip_relabel(expr))->varattno);
		columns.operators = lappend_oid(columns.operators, clause->eqop);
		columns.collations = lappend_oid(columns.collations, exprCollation(expr));
	}
	return gs_window_number_rows(outerPlan(agg), &columns);
}

/* What is below an Agg; false: no GpuSort that it gets its rows from. */
static bool
find_input(AggInput *input, const Agg *agg)
{
	const Plan *child = outerPlan(agg);
	int			flags;

	if ((agg->aggstrategy != AGG_PLAIN && agg->aggstrategy != AGG_SORTED) ||
		agg->aggsplit != AGGSPLIT_SIMPLE || agg->groupingSets != NIL || agg->chain != NIL)
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
	gs_plan_read(input->sort, &input->keys, &flags);
	return true;
}

bool
gs_agg_input_is_sorted(const Agg *agg, List *clauses, List *args, AttrNumber *column)
{
	AggInput	input;
	Node	   *expr = get_sortgroupclause_expr(linitial(clauses), args);
	const Var  *var = (const Var *) gs_tlist_strip_relabel(expr);

	if (!IsA(var, Var) || !find_input(&input, agg) || input.unique != NULL)
		return false;
	*column = var->varattno;
	return is_sorted(&input, clauses, args);
}

void
gs_agg_use_order(Agg *agg, int *last_node_id)
{
	AggInput	input;

	if (!find_input(&input, agg))
		return;
	agg->plan.targetlist = (List *) drop_sorts((Node *) agg->plan.targetlist, &input);
	agg->plan.qual = (List *) drop_sorts((Node *) agg->plan.qual, &input);
	if (input.numbered)
	{
		outerPlan(agg) = number_rows(&input);
		outerPlan(agg)->plan_node_id = ++*last_node_id;
	}
}
