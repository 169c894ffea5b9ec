/*-------------------------------------------------------------------------
 *
 * gpuarrays_ahead.c
 *	  May rows of a plan be read before they are asked for?
 *
 * Nobody must be able to tell that GpuArraySort read rows ahead.  There are two
 * cases in which nobody can.
 *
 * Any row
 *	  The query may end before it asks for the row.  So reading the row must not
 *	  fail, lock, or call anything that has an effect: the plan is made of scans
 *	  of tables, and computes expressions of columns, constants, and functions
 *	  that are leakproof, which is PostgreSQL's word for functions that never
 *	  fail whatever their arguments.  What is below a sort was read to its
 *	  end before the sort returned its first row.
 *
 *	  Parameters that the executor sets are not allowed, as there may be an
 *	  InitPlan behind them, which runs when it is first needed.
 *
 * All rows
 *	  The query will ask for the row, so an error in it comes anyway.  But row
 *	  locks and volatile functions below run earlier, compared with what is
 *	  above.  That matters for row locks, which skip rows that the same command
 *	  has changed; and for volatile functions where others are above, for example
 *	  nextval() below and currval() above.
 *
 * Storage that is damaged and memory that is short do not count: PostgreSQL
 * reads pages ahead, too.
 *
 * Tests: regress/arrays_ahead
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "nodes/arrays/gpuarrays.h"
#include "nodes/sort/gpusort.h"
#include "plan/plan_walk.h"

typedef bool (*ExpressionCheck) (Node *expr);

/*
 * Expressions
 */

static bool
is_loud_function(Oid function, void *context)
{
	return !get_func_leakproof(function) || func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * Does a call compare texts without knowing the collation?  Leakproof functions
 * raise an error then.
 */
static bool
lacks_collation(Node *node)
{
	ListCell   *lc;
	List	   *args;

	switch (nodeTag(node))
	{
		case T_FuncExpr:
			args = ((FuncExpr *) node)->args;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			args = ((OpExpr *) node)->args;
			break;
		case T_ScalarArrayOpExpr:
			args = ((ScalarArrayOpExpr *) node)->args;
			break;
		default:
			return false;
	}
	if (OidIsValid(exprInputCollation(node)))
		return false;
	foreach(lc, args)
		if (type_is_collatable(exprType(lfirst(lc))))
			return true;
	return false;
}

static bool
is_loud(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (lacks_collation(node))
		return true;
	if (check_functions_in_node(node, is_loud_function, context))
		return true;
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		case T_ArrayExpr:
			/* arrays within may have different dimensions */
			if (((ArrayExpr *) node)->multidims)
				return true;
			break;
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, is_loud, context);
}

static bool
check_loud(Node *expr)
{
	return is_loud(expr, NULL);
}

bool
gs_ahead_is_silent(Node *expr)
{
	return !is_loud(expr, NULL);
}

/*
 * Nodes
 */

/*
 * Does the check hold for an expression of the node, beside its target list
 * and filter?  For a node that is not known: yes.
 */
static bool
check_node(const Plan *plan, ExpressionCheck check)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_CteScan:
		case T_Gather:
		case T_GatherMerge:
		case T_Group:
		case T_IncrementalSort:
		case T_Material:
		case T_MergeAppend:
		case T_NamedTuplestoreScan:
		case T_ProjectSet:
		case T_RecursiveUnion:
		case T_SeqScan:
		case T_SetOp:
		case T_Sort:
		case T_SubqueryScan:
		case T_Unique:
		case T_WorkTableScan:
		case T_Agg:
			return false;
		case T_SampleScan:
			return check((Node *) ((const SampleScan *) plan)->tablesample);
		case T_IndexScan:
			return check((Node *) ((const IndexScan *) plan)->indexqualorig) ||
				check((Node *) ((const IndexScan *) plan)->indexorderbyorig);
		case T_IndexOnlyScan:
			return check((Node *) ((const IndexOnlyScan *) plan)->indexqual) ||
				check((Node *) ((const IndexOnlyScan *) plan)->recheckqual) ||
				check((Node *) ((const IndexOnlyScan *) plan)->indexorderby);
		case T_BitmapIndexScan:
			return check((Node *) ((const BitmapIndexScan *) plan)->indexqualorig);
		case T_BitmapHeapScan:
			return check((Node *) ((const BitmapHeapScan *) plan)->bitmapqualorig);
		case T_TidScan:
			return check((Node *) ((const TidScan *) plan)->tidquals);
		case T_TidRangeScan:
			return check((Node *) ((const TidRangeScan *) plan)->tidrangequals);
		case T_FunctionScan:
			return check((Node *) ((const FunctionScan *) plan)->functions);
		case T_ValuesScan:
			return check((Node *) ((const ValuesScan *) plan)->values_lists);
		case T_TableFuncScan:
			return check((Node *) ((const TableFuncScan *) plan)->tablefunc);
		case T_NestLoop:
			return check((Node *) ((const Join *) plan)->joinqual);
		case T_MergeJoin:
			return check((Node *) ((const Join *) plan)->joinqual) ||
				check((Node *) ((const MergeJoin *) plan)->mergeclauses);
		case T_HashJoin:
			return check((Node *) ((const Join *) plan)->joinqual) ||
				check((Node *) ((const HashJoin *) plan)->hashclauses);
		case T_Hash:
			return check((Node *) ((const Hash *) plan)->hashkeys);
		case T_Memoize:
			return check((Node *) ((const Memoize *) plan)->param_exprs);
		case T_Limit:
			return check(((const Limit *) plan)->limitOffset) ||
				check(((const Limit *) plan)->limitCount);
		case T_Result:
			return check(((const Result *) plan)->resconstantqual);
		case T_WindowAgg:
			return check((Node *) ((const WindowAgg *) plan)->runCondition) ||
				check(((const WindowAgg *) plan)->startOffset) ||
				check(((const WindowAgg *) plan)->endOffset);
		case T_CustomScan:
			return check((Node *) ((const CustomScan *) plan)->custom_scan_tlist) ||
				check((Node *) ((const CustomScan *) plan)->custom_exprs);
		default:
			return true;
	}
}

static bool
check_all(const Plan *plan, Node *exprs, ExpressionCheck check)
{
	return check(exprs) || check_node(plan, check);
}

/* A node's target list and filter, for which there is no one expression. */
static Node *
own_expressions(const Plan *plan)
{
	return (Node *) list_make2(plan->targetlist, plan->qual);
}

/*
 * Any row
 */

static bool
is_sort(const Plan *plan)
{
	return IsA(plan, Sort) || gs_node_is(plan, &gs_sort_node);
}

static bool
is_plain(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapHeapScan:
		case T_BitmapIndexScan:
		case T_BitmapOr:
		case T_IndexOnlyScan:
		case T_IndexScan:
		case T_NamedTuplestoreScan:
		case T_Result:
		case T_SeqScan:
		case T_SubqueryScan:
		case T_TidRangeScan:
		case T_TidScan:
		case T_ValuesScan:
		case T_WorkTableScan:
			return true;
		default:
			return false;
	}
}

static void
any_row_below(Plan **plan, void *possible)
{
	*(bool *) possible = *(bool *) possible && gs_ahead_any_row(*plan, own_expressions(*plan));
}

bool
gs_ahead_any_row(Plan *plan, Node *exprs)
{
	bool		possible;

	if (is_sort(plan))
		return !check_loud(exprs);
	possible = is_plain(plan) && !check_all(plan, exprs, check_loud);
	gs_plan_visit_children(plan, any_row_below, &possible);
	return possible;
}

/*
 * All rows
 */

typedef struct AllRows
{
	bool		possible;
	bool		is_volatile;
} AllRows;

static void
all_rows_below(Plan **plan, void *context)
{
	AllRows    *below = context;

	below->possible = below->possible &&
		gs_ahead_all_rows(*plan, own_expressions(*plan), below->is_volatile);
}

bool
gs_ahead_all_rows(Plan *plan, Node *exprs, bool is_volatile)
{
	AllRows		below = {true, is_volatile};

	if (IsA(plan, LockRows) || IsA(plan, ModifyTable))
		return false;
	if (is_volatile && check_all(plan, exprs, contain_volatile_functions))
		return false;
	gs_plan_visit_children(plan, all_rows_below, &below);
	return below.possible;
}
