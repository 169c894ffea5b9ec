/*-------------------------------------------------------------------------
 *
 * sort_plan.h
 *	  What the planner tells the executor about a GpuSort or GpuSortFeed node.
 *
 * A GpuSort node stands where a Sort node would.  Its child, in lefttree, is
 * either any plan, or Gather over GpuSortFeed over a partial plan: then the
 * feed nodes hand the rows to the device, in the workers and the leader, and
 * return only those rows that they could not hand over.
 *
 * custom_private is a list of lists, so that plans can be copied and sent to
 * workers; the enum names its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_PLAN_H
#define GS_SORT_PLAN_H

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#include "sort/sort.h"

#define GS_SORT_NAME	"GpuSort"
#define GS_FEED_NAME	"GpuSortFeed"

typedef enum GsPlanItem
{
	GS_PLAN_ATTNOS,				/* IntList: columns of the child's output */
	GS_PLAN_OPERATORS,			/* OidList */
	GS_PLAN_COLLATIONS,			/* OidList */
	GS_PLAN_NULLS_FIRST,		/* IntList of bools */
	GS_PLAN_FLAGS,				/* IntList of one: GS_PLAN_FLAG_ below */
	GS_PLAN_Count
} GsPlanItem;

#define GS_PLAN_FLAG_RERUN	1	/* the child may be run a second time */
#define GS_PLAN_FLAG_REPEATABLE	2	/* and returns the very same rows then */

/*
 * Sort columns as custom_private, and back (palloc'd).  Of the flags, those
 * stay set that the plan below the Sort allows.
 */
extern List *gs_plan_private(const Sort *sort, int flags);
extern void gs_plan_read(const CustomScan *plan, GsSortKeys *keys, int *flags);

extern const CustomPathMethods gs_sort_path_methods;
extern const CustomPathMethods gs_feed_path_methods;

#endif							/* GS_SORT_PLAN_H */
