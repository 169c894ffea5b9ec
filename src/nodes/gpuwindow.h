/*-------------------------------------------------------------------------
 *
 * gpuwindow.h
 *	  The node GpuWindow, in the place of WindowAgg above GpuSort, or of its own.
 *
 * custom_private is a list of lists, so that plans can be copied; the enum names
 * its members.  Columns are those of the child's output;
 * operators are equality operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_H
#define GS_GPUWINDOW_H

#include "nodes/plannodes.h"

#include "nodes/gpunode.h"

#define GS_WINDOW_NAME	"GpuWindow"

extern const GsNode gs_window_node;

typedef enum GsWindowItem
{
	GS_WINDOW_COLUMNS,			/* IntList: for each column of the scan tuple, the
								 * child's; 0: a window function */
	GS_WINDOW_FUNCTIONS,		/* OidList: the functions among them, in order */
	GS_WINDOW_PART_ATTNOS,		/* IntList: PARTITION BY */
	GS_WINDOW_PART_OPERATORS,	/* OidList */
	GS_WINDOW_PART_COLLATIONS,	/* OidList */
	GS_WINDOW_ORDER_ATTNOS,		/* IntList: ORDER BY */
	GS_WINDOW_ORDER_OPERATORS,	/* OidList */
	GS_WINDOW_ORDER_COLLATIONS, /* OidList */
	GS_WINDOW_Count
} GsWindowItem;

/* The node that does a WindowAgg's work, or the WindowAgg itself. */
extern Plan *gs_window_replace(WindowAgg *window);

/*
 * A node that returns a GpuSort's columns and, as one more, the row_number() of
 * rows that are equal in some columns and come one after the other.  It has the
 * GpuSort's plan_node_id.
 */
extern Plan *gs_window_number_rows(Plan *sort, List *attnos, List *operators, List *collations);

#endif							/* GS_GPUWINDOW_H */
