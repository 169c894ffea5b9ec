/*-------------------------------------------------------------------------
 *
 * query_volatile.c
 *	  Has a query volatile functions (query_volatile.h)?
 *
 * Tests: tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "plan/query_volatile.h"

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
 * As contain_volatile_functions() does it, which looks neither into the functions of
 * an aggregate nor into the constraints of a domain.  Any constraint counts as
 * volatile here.  scope: a GsVolatileScope.
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
