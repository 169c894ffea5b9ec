/*-------------------------------------------------------------------------
 *
 * drop_rows.h
 *	  The rule that tells which rows a GpuSort may keep from the nodes above it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_DROP_ROWS_H
#define GS_DROP_ROWS_H

#include "nodes/plannodes.h"

/*
 * May a GpuSort drop rows that the node "judge" above it would discard?  judge is
 *
 *	  - an Agg, Group, Unique or GpuGroup that needs one of equal rows, or only their number
 *	  - a WindowAgg, or a GpuGroup, whose condition discards them, also with all rows of their partition or
 *		group
 *	  - a SubqueryScan whose condition discards the rows that are made of them
 *	  - a Sort or GpuSort that returns only its first rows
 *
 * The condition is one of gs_deciding_conditions().
 */
extern bool gs_may_drop_rows(const Plan *judge, const Plan *sort);

/* The conditions of a node that may drop rows: the silent ones up to the first other one.  palloc'd. */
extern List *gs_deciding_conditions(const List *conditions);

/* Is an expression, or a list of them, silent (drop_rows.c)? */
extern bool gs_expr_is_silent(const void *expr);

/* Do all functions of a WindowAgg need only the current row and rows before it? */
extern bool gs_window_looks_back(const WindowAgg *window);

#endif							/* GS_DROP_ROWS_H */
