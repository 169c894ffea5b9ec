/*-------------------------------------------------------------------------
 *
 * window_plan.h
 *	  Putting GpuWindow in the place of WindowAgg above GpuSort.
 *
 * custom_private of a GpuWindow is a list of lists, so that plans can be copied;
 * the enum names its members.  Columns are those of the child's output;
 * operators are equality operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_WINDOW_PLAN_H
#define GS_WINDOW_PLAN_H

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#define GS_WINDOW_NAME	"GpuWindow"

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

#endif							/* GS_WINDOW_PLAN_H */
