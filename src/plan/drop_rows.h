/*-------------------------------------------------------------------------
 *
 * drop_rows.h
 *	  The rule on rows, and on expressions of rows, that gpusort need not bring to the nodes above a GpuSort.
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
 *	  - a SubqueryScan whose condition discards what comes of them
 *	  - a Sort or GpuSort that returns only its first rows
 *
 * The condition is one of gs_deciding_conditions().
 */
extern bool gs_may_drop_rows(const Plan *judge, const Plan *sort);

/*
 * Those of a node's conditions that may decide that rows are dropped: they are silent, and so are those
 * before them.  palloc'd.
 */
extern List *gs_deciding_conditions(const List *conditions);

/* Is an expression, or a list of them, silent (drop_rows.c)? */
extern bool gs_expr_is_silent(const void *expr);

/* Does a WindowAgg call functions only that need no row but those that went by? */
extern bool gs_window_looks_back(const WindowAgg *window);

#endif /* GS_DROP_ROWS_H */
