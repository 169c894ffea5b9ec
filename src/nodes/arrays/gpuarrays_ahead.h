/*-------------------------------------------------------------------------
 *
 * gpuarrays_ahead.h
 *	  May rows of a plan be read before they are asked for?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUARRAYS_AHEAD_H
#define GS_GPUARRAYS_AHEAD_H

#include "nodes/plannodes.h"

/* Can computing an expression neither fail nor be seen? */
extern bool gs_ahead_is_silent(Node *expr);

/*
 * Both questions are about a plan whose uppermost node has the expressions
 * given in the place of its target list and filter.
 *
 * May any row be read ahead, though nobody asks for it in the end?
 */
extern bool gs_ahead_any_row(Plan *plan, Node *exprs);

/*
 * May rows be read ahead where all of them will be asked for?  is_volatile: the
 * statement has volatile functions.
 */
extern bool gs_ahead_all_rows(Plan *plan, Node *exprs, bool is_volatile);

#endif							/* GS_GPUARRAYS_AHEAD_H */
