/*-------------------------------------------------------------------------
 *
 * gpuarrays.h
 *	  The node GpuArraySort, which computes calls of gpu_sort_array().
 *
 * A GpuArraySort's scan tuple (custom_scan_tlist) has columns of its child, as
 * OUTER_VAR Vars, and after these the calls of gpu_sort_array() that it
 * computes, whose arguments are in terms of its child's columns.  Its target
 * list and filter refer to the scan tuple by INDEX_VAR, as with all custom
 * scans.  custom_private is a list of integers, named by the enum.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUARRAYS_H
#define GS_GPUARRAYS_H

#include "nodes/plannodes.h"

#include "nodes/common/gpunode.h"

#define GS_ARRAYS_NAME	"GpuArraySort"

extern const GsNode gs_arrays_node;

typedef enum GsArraysItem
{
	GS_ARRAYS_CALLS,			/* number of calls in the scan tuple */
	GS_ARRAYS_TO_END,			/* bool: read ahead only if the executor runs the query to its end */
	GS_ARRAYS_Count
} GsArraysItem;

/* gpuarrays_plan.c */

/* May a statement's plans have calls of gpu_sort_array()?  Cheap. */
extern bool gs_array_plan_may_have_calls(const PlannedStmt *stmt);

/*
 * Let GpuArraySort compute calls of gpu_sort_array() in a statement's plans, where that pays off.
 * is_volatile: the query has volatile functions.
 */
extern void gs_array_plan(PlannedStmt *stmt, int cursor_options, bool is_volatile);

#endif							/* GS_GPUARRAYS_H */
