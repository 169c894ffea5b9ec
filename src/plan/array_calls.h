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
 * Add to *calls the calls (FuncExpr) in an expression that may be computed
 * for many rows before the expression is, if they are not there yet.
 * sometimes: the expression is not evaluated for every row.  in_aggregates:
 * look only into the arguments of aggregates and window functions; otherwise
 * not into them.  Returns whether there are any in this expression.
 */
extern bool gs_array_calls_find(Node *expr, bool sometimes, bool in_aggregates, List **calls);

/* Are there such calls, inside or outside aggregates and window functions? */
extern bool gs_array_calls_are_in(Node *expr);

/* The array that a call sorts, and how: by the element type that its arrays should have. */
extern Expr *gs_array_call_array(const FuncExpr *call);
extern GsArrayCall gs_array_call_read(const FuncExpr *call);

#endif							/* GS_ARRAY_CALLS_H */
