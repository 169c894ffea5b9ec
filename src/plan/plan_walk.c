/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  Walking finished plans and queries (plan_walk.h).
 *
 * PostgreSQL has such a walker for executor nodes (planstate_tree_walker), but none for plans.
 *
 * Tests: regress/plan_sorts, regress/arrays_plans, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "plan/plan_walk.h"

const GsBound gs_no_bound = {GS_NO_BOUND, GS_NO_BOUND, NULL};

void
gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context), void *context)
{
	List	   *children = NIL;
	ListCell   *lc;

	switch (nodeTag(plan))
	{
		case T_Append:
			children = ((Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			children = ((MergeAppend *) plan)->mergeplans;
			break;
		case T_BitmapAnd:
			children = ((BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			children = ((BitmapOr *) plan)->bitmapplans;
			break;
		case T_CustomScan:
			children = ((CustomScan *) plan)->custom_plans;
			break;
		case T_SubqueryScan:
			visit(&((SubqueryScan *) plan)->subplan, context);
			break;
		default:
			break;
	}
	foreach(lc, children)
		visit((Plan **) &lfirst(lc), context);
	if (outerPlan(plan) != NULL)
		visit(&outerPlan(plan), context);
	if (innerPlan(plan) != NULL)
		visit(&innerPlan(plan), context);
}

void
gs_plan_visit_all(PlannedStmt *stmt, void (*visit) (Plan **plan, void *context), void *context)
{
	ListCell   *lc;

	visit(&stmt->planTree, context);
	foreach(lc, stmt->subplans)
		if (lfirst(lc) != NULL)
			visit((Plan **) &lfirst(lc), context);
}

static void
note_node_id(Plan **plan, void *highest)
{
	int		   *id = highest;

	*id = Max(*id, (*plan)->plan_node_id);
	gs_plan_visit_children(*plan, note_node_id, highest);
}

int
gs_plan_last_node_id(PlannedStmt *stmt)
{
	int			id = 0;

	gs_plan_visit_all(stmt, note_node_id, &id);
	return id;
}

/* A constant that is not NULL; else NULL. */
static const Const *
known_constant(Node *expr)
{
	return expr && IsA(expr, Const) && !((Const *) expr)->constisnull ? (Const *) expr : NULL;
}

/* Does a node ask its children for no more rows than it is asked for?  Follows ExecSetTupleBound(). */
static bool
passes_bound_on(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_MergeAppend:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_Result:
			return ((const Result *) plan)->resconstantqual == NULL;
		case T_SubqueryScan:
			return plan->qual == NIL;
		default:
			return false;
	}
}

/* Does an expression contain anything that changes during execution, except volatile functions? */
static bool
may_change(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN))
		return true;
	return expression_tree_walker(node, may_change, context);
}

bool
gs_plan_agg_is_simple(const Agg *agg)
{
	return (agg->aggstrategy == AGG_PLAIN || agg->aggstrategy == AGG_SORTED) &&
		agg->aggsplit == AGGSPLIT_SIMPLE && agg->groupingSets == NIL && agg->chain == NIL;
}

List *
gs_plan_aggregates(const Agg *agg)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, pull_var_clause((Node *) list_make2(agg->plan.targetlist, agg->plan.qual),
								PVC_INCLUDE_AGGREGATES))
		if (IsA(lfirst(lc), Aggref))
			result = lappend(result, lfirst(lc));
	return result;
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

Node *
gs_plan_strip_relabel(Node *node)
{
	while (node && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* The typmod that ExecInitExpr() gives to the row's values. */
static int32
row_typmod(const RowExpr *row)
{
	TupleDesc	tupdesc = ExecTypeFromExprList(row->args);

	ExecTypeSetColNames(tupdesc, row->colnames);
	return BlessTupleDesc(tupdesc)->tdtypmod;
}

/* The typmod of a column that comes from several nodes: -1 if they make different rows. */
static int32
common_row_typmod(const List *plans, AttrNumber column)
{
	int32		result = -1;
	ListCell   *lc;

	foreach(lc, plans)
	{
		const Plan *plan = lfirst(lc);
		TargetEntry *tle = get_tle_by_resno(plan->targetlist, column);
		int32		typmod = tle ? gs_plan_row_typmod(plan, (Node *) tle->expr) : -1;

		if (typmod < 0 || (result >= 0 && typmod != result))
			return -1;
		result = typmod;
	}
	return result;
}

int32
gs_plan_row_typmod(const Plan *plan, const Node *expr)
{
	if (exprType(expr) != RECORDOID)
		return -1;
	while (plan != NULL && IsA(expr, Var))
	{
		const Var  *var = (const Var *) expr;
		List	   *columns = NIL;
		TargetEntry *tle;

		if (IsA(plan, Append))
			return common_row_typmod(((const Append *) plan)->appendplans, var->varattno);
		if (IsA(plan, MergeAppend))
			return common_row_typmod(((const MergeAppend *) plan)->mergeplans, var->varattno);
		if (var->varno == INDEX_VAR && IsA(plan, CustomScan))
			columns = ((const CustomScan *) plan)->custom_scan_tlist;
		else
		{
			if (IsA(plan, SubqueryScan))
				plan = ((const SubqueryScan *) plan)->subplan;
			else
				plan = var->varno == OUTER_VAR ? outerPlan(plan) : NULL;
			if (plan)
				columns = plan->targetlist;
		}
		tle = get_tle_by_resno(columns, var->varattno);
		if (tle == NULL)
			return -1;
		expr = (const Node *) tle->expr;
	}
	return IsA(expr, RowExpr) && ((const RowExpr *) expr)->row_typeid == RECORDOID ?
		row_typmod((const RowExpr *) expr) : -1;
}

static bool
is_known_at_start(Node *expr)
{
	return !may_change(expr, NULL) && !contain_mutable_functions(expr) && !gs_expr_is_volatile(expr);
}

/* How many tuples a Limit will ask for. */
static GsBound
limit_bound(const Limit *limit)
{
	const Const *count = known_constant(limit->limitCount);
	const Const *offset = known_constant(limit->limitOffset);
	GsBound		bound = gs_no_bound;

	if (limit->limitOption == LIMIT_OPTION_WITH_TIES || limit->limitCount == NULL ||
		(IsA(limit->limitCount, Const) && count == NULL))
		return bound;
	bound.expected = count ? DatumGetInt64(count->constvalue) : limit->plan.plan_rows;
	/* assume that an unknown offset is small */
	if (offset)
		bound.expected += DatumGetInt64(offset->constvalue);
	if (count && (offset || limit->limitOffset == NULL))
		bound.sure = bound.expected;
	else if (is_known_at_start(limit->limitCount) && is_known_at_start(limit->limitOffset))
		bound.limit = limit;
	return bound;
}

GsBound
gs_plan_bound_below(const Plan *plan, GsBound bound)
{
	if (IsA(plan, Limit))
		return limit_bound((const Limit *) plan);
	return passes_bound_on(plan) ? bound : gs_no_bound;
}

static bool
is_volatile_function(Oid function)
{
	return OidIsValid(function) && func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* Is an aggregate computed by a volatile function? */
static bool
is_volatile_aggregate(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(oid));
	Form_pg_aggregate agg;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;			/* a window function that is no aggregate */
	agg = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = is_volatile_function(agg->aggtransfn) || is_volatile_function(agg->aggfinalfn) ||
		is_volatile_function(agg->aggmtransfn) || is_volatile_function(agg->aggmfinalfn);
	ReleaseSysCache(tuple);
	return result;
}

/* For check_functions_in_node(). */
static bool
is_volatile_called(Oid function, void *context)
{
	(void) context;
	return is_volatile_function(function);
}

/*
 * Like contain_volatile_functions(), but also looks at the functions of aggregates and at domains.  Any
 * constraint of a domain counts as volatile: at worst a plan is not run a second time.  scope: a
 * GsVolatileScope.
 */
static bool
is_volatile_node(Node *node, void *scope)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_volatile_called, NULL))
		return true;
	if (IsA(node, NextValueExpr))	/* of an identity column */
		return true;
	if (IsA(node, Aggref) && is_volatile_aggregate(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) && is_volatile_aggregate(((WindowFunc *) node)->winfnoid))
		return true;
	if (IsA(node, CoerceToDomain) && gs_compat_domain_has_constraints(((CoerceToDomain *) node)->resulttype))
		return true;
	if (IsA(node, RangeTblFunction) && *(GsVolatileScope *) scope == GS_VOLATILE_BESIDE_SCANS)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, is_volatile_node, scope, 0);
	return expression_tree_walker(node, is_volatile_node, scope);
}

bool
gs_query_is_volatile(const Query *parse, GsVolatileScope scope)
{
	return is_volatile_node((Node *) unconstify(Query *, parse), &scope);
}

bool
gs_expr_is_volatile(Node *node)
{
	GsVolatileScope scope = GS_VOLATILE_ANYWHERE;

	return is_volatile_node(node, &scope);
}
