/*-------------------------------------------------------------------------
 *
 * array_calls.c
 *	  Calls of gpu_sort_array() in expressions (array_calls.h).
 *
 * A call that is taken out of its expression is computed for each row.  The expression might not
 * have evaluated it, in the second argument of COALESCE, the branches of CASE or the operands
 * after AND.  There a call is taken only if it sorts a plain column, which does no harm.
 *
 * Only calls for elements that devices can sort are taken.  Sorting them cannot fail.
 *
 * Tests: regress/arrays_plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "array/array_sort.h"
#include "plan/array_calls.h"
#include "plan/plan_walk.h"

typedef struct FindContext
{
	bool		sometimes;		/* the current node is not evaluated for every row */
	bool		in_aggregates;
	bool		inside;			/* the current node is in the arguments of an aggregate */
	bool		found;
	List	  **calls;
} FindContext;

static bool find(Node *node, FindContext *context);

Expr *
gs_array_call_array(const FuncExpr *call)
{
	return linitial(call->args);
}

static bool
flag_argument(const FuncExpr *call, int n, bool otherwise)
{
	if (list_length(call->args) <= n)
		return otherwise;
	return DatumGetBool(((Const *) list_nth(call->args, n))->constvalue);
}

GsArrayCall
gs_array_call_read(const FuncExpr *call)
{
	bool		descending = flag_argument(call, 1, false);

	return (GsArrayCall){get_base_element_type(exprType((Node *) gs_array_call_array(call))),
						 call->inputcollid, descending, flag_argument(call, 2, descending)};
}

/* Is it our function?  Its C symbol tells, whatever its schema and name. */
static bool
is_sort_array(Oid function)
{
	HeapTuple	tuple;
	Form_pg_proc form;
	bool		result = false;

	if (function < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prolang == ClanguageId)
	{
		bool		isnull;
		Datum		source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

		if (!isnull)
		{
			char	   *symbol = TextDatumGetCString(source);

			result = strcmp(symbol, "gpusort_sort_array") == 0;
			pfree(symbol);
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

/* Is it a value that need not be computed? */
static bool
is_plain(Expr *expr)
{
	const Node *value = gs_plan_strip_relabel((Node *) expr);

	return IsA(value, Var) || IsA(value, Const) ||
		(IsA(value, Param) && ((const Param *) value)->paramkind == PARAM_EXTERN);
}

/* Does an expression have a meaning only in its place? */
static bool
is_bound_to_place(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) || IsA(node, CaseTestExpr) ||
		IsA(node, CoerceToDomainValue))
		return true;
	return expression_tree_walker(node, is_bound_to_place, context);
}

static bool
can_be_taken(FuncExpr *call, bool sometimes)
{
	Node	   *array;
	Oid			element_type;

	if (!is_sort_array(call->funcid))
		return false;
	for (int i = 1; i < list_length(call->args); i++)
	{
		Const	   *flag = (Const *) list_nth(call->args, i);

		if (!IsA(flag, Const) || flag->constisnull)
			return false;
	}
	element_type = gs_array_call_read(call).element_type;
	if (!OidIsValid(element_type) || gs_array_elem(element_type) == GS_ELEM_NONE)
		return false;
	array = linitial(call->args);
	if (is_plain((Expr *) array))
		return true;
	return !sometimes && !is_bound_to_place(array, NULL) && !expression_returns_set(array) &&
		!gs_expr_is_volatile(array);
}

/* Look at an expression that is, or may be, evaluated only sometimes. */
static void
find_in(void *expr, bool sometimes, FindContext *context)
{
	bool		outside = context->sometimes;

	context->sometimes |= sometimes;
	find((Node *) expr, context);
	context->sometimes = outside;
}

static void
find_in_aggregate(List *args, Expr *filter, bool sometimes, FindContext *context)
{
	bool		outside = context->inside;

	if (!context->in_aggregates)
		return;
	context->inside = true;
	find_in(args, sometimes || filter != NULL, context);
	find_in(filter, sometimes, context);
	context->inside = outside;
}

static void
find_in_subscripts(SubscriptingRef *expr, FindContext *context)
{
	/* subscripts are not evaluated if the array is NULL */
	find((Node *) expr->refexpr, context);
	find_in(expr->refupperindexpr, true, context);
	find_in(expr->reflowerindexpr, true, context);
	find_in(expr->refassgnexpr, true, context);
}

static bool
find(Node *node, FindContext *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_FuncExpr:
			if ((context->inside || !context->in_aggregates) &&
				can_be_taken((FuncExpr *) node, context->sometimes))
			{
				context->found = true;
				*context->calls = list_append_unique(*context->calls, node);
				return false;
			}
			break;
		case T_Aggref:
			find_in_aggregate(((Aggref *) node)->args, ((Aggref *) node)->aggfilter, false,
							  context);
			return false;
		case T_WindowFunc:
			/* the arguments are not evaluated for a row that is in no frame */
			find_in_aggregate(((WindowFunc *) node)->args, ((WindowFunc *) node)->aggfilter, true,
							  context);
			return false;
		case T_SubscriptingRef:
			find_in_subscripts((SubscriptingRef *) node, context);
			return false;
		case T_ArrayCoerceExpr:
			find((Node *) ((ArrayCoerceExpr *) node)->arg, context);
			return false;
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return false;

			/* these evaluate all that is in them */
		case T_List:
		case T_TargetEntry:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_CoerceToDomain:
		case T_ConvertRowtypeExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_FieldSelect:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_MinMaxExpr:
			break;

		default:
			{
				bool		outside = context->sometimes;

				context->sometimes = true;
				expression_tree_walker(node, find, context);
				context->sometimes = outside;
				return false;
			}
	}
	return expression_tree_walker(node, find, context);
}

bool
gs_array_calls_find(Node *expr, bool sometimes, bool in_aggregates, List **calls)
{
	FindContext context = {sometimes, in_aggregates, false, false, calls};

	find(expr, &context);
	return context.found;
}

bool
gs_array_calls_are_in(Node *expr)
{
	List	   *calls = NIL;

	return gs_array_calls_find(expr, false, false, &calls) ||
		gs_array_calls_find(expr, false, true, &calls);
}
