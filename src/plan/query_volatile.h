/*-------------------------------------------------------------------------
 *
 * query_volatile.h
 *	  Has a query volatile functions, wherever they are called from?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_QUERY_VOLATILE_H
#define GS_QUERY_VOLATILE_H

#include "nodes/parsenodes.h"

typedef enum GsVolatileScope
{
	GS_VOLATILE_ANYWHERE,

	/*
	 * All but functions in FROM: the plan tells which of these are called.  An extension
	 * may have put a scan of another kind in the place of such a function.
	 */
	GS_VOLATILE_BESIDE_SCANS
} GsVolatileScope;

/*
 * As contain_volatile_functions(), and true for what that does not see: functions
 * that compute an aggregate, and constraints of a domain.
 */
extern bool gs_query_is_volatile(const Query *parse, GsVolatileScope scope);

/* The same of an expression, or a list of them. */
extern bool gs_expr_is_volatile(Node *node);

#endif							/* GS_QUERY_VOLATILE_H */
