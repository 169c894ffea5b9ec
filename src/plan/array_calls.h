/*-------------------------------------------------------------------------
 *
 * array_calls.h
 *	  Calls of gpu_sort_array() in expressions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_CALLS_H
#define GS_ARRAY_CALLS_H

#include "nodes/pg_list.h"
#include "nodes/primnodes.h"

#include "array/array_batch.h"

/*
 * Find the calls (FuncExpr) in an expression that may be computed for many rows before the
 * expression is evaluated, and add new ones to *calls.  sometimes: the expression is not evaluated
 * for every row.  in_aggregates: look only into the arguments of aggregates and window functions;
 * otherwise into everything else.  Returns whether the expression has such calls.
 */
extern bool gs_array_calls_find(Node *expr, bool sometimes, bool in_aggregates, List **calls);

/* Are there such calls, inside or outside aggregates and window functions? */
extern bool gs_array_calls_are_in(Node *expr);

/* The array that a call sorts; and the call's arguments, with the element type by its expression. */
extern Expr *gs_array_call_array(const FuncExpr *call);
extern GsArrayCall gs_array_call_read(const FuncExpr *call);

#endif							/* GS_ARRAY_CALLS_H */
