/*-------------------------------------------------------------------------
 *
 * query_volatile.c
 *	  Has a query volatile functions, wherever they are called from?
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

/*
 * contain_volatile_functions() looks neither into the functions of an aggregate
 * nor into the constraints of a domain.  Any constraint counts as volatile here.
 */
static bool
hides_volatile(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && is_volatile_aggregate(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) && is_volatile_aggregate(((WindowFunc *) node)->winfnoid))
		return true;
	if (IsA(node, CoerceToDomain) && gs_compat_domain_has_constraints(((CoerceToDomain *) node)->resulttype))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, hides_volatile, context, 0);
	return expression_tree_walker(node, hides_volatile, context);
}

bool
gs_query_is_volatile(const Query *parse)
{
	return contain_volatile_functions((Node *) parse) || hides_volatile((Node *) parse, NULL);
}
