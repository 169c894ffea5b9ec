/*-------------------------------------------------------------------------
 *
 * gpuwindow.h
 *	  The node GpuWindow, in the place of WindowAgg above GpuSort, or of its own.
 *
 *	  gpuwindow_plan.c		where it can take WindowAgg's place
 *	  gpuwindow_exec.c		the executor's part: rows, partitions, peers, run conditions; EXPLAIN's lines
 *	  gpuwindow_function.c	the value of a window function for a row
 *	  gpuwindow_rows.c		the rows that are held back
 *
 * The columns of its scan tuple, custom_scan_tlist, are columns of the child, aggregates (Aggref), and
 * calls of other functions, for EXPLAIN.  custom_exprs are two lists: all functions in their order,
 * WindowFunc nodes over the child's columns; and the clauses of the run condition, over the scan tuple's.
 *
 * custom_private is a list of lists, so that plans can be copied; the enum names
 * its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_H
#define GS_GPUWINDOW_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"
#include "nodes/plan_steps.h"

#define GS_WINDOW_NAME	"GpuWindow"

extern const GsNode gs_window_node;

typedef enum GsWindowItem
{
	GS_WINDOW_OPTIONS,			/* IntList: GsWindowOption */
	GS_WINDOW_PARTITION,		/* columns (GsColumns): PARTITION BY */
	GS_WINDOW_ORDER,			/* columns: ORDER BY */
	GS_WINDOW_Count
} GsWindowItem;

typedef enum GsWindowOption
{
	GS_WINDOW_FRAME,			/* GsWindowFrame (gpuwindow_function.h) */
	GS_WINDOW_IS_TOP,			/* bool: no window above needs rows that fail the run
								 * condition */
	GS_WINDOW_IS_CHECKED,		/* bool: rights are checked, as by WindowAgg */
	GS_WINDOW_OPTION_Count
} GsWindowOption;

/*
 * Steps (plan_steps.h): GpuWindow in the place of a WindowAgg; at the top of a plan it drops columns that
 * only the sort below needs.
 */
extern Plan *gs_window_replace(GsStepContext *context, Plan *plan);
extern Plan *gs_window_drop_junk(GsStepContext *context, Plan *plan);

/* Does it return rows that a GpuSort has sorted? */
extern bool gs_window_is_sorted(const Plan *plan);

/* The second part of a GpuWindow's custom_exprs. */
extern List *gs_window_run_condition(const CustomScan *plan);

#endif							/* GS_GPUWINDOW_H */
