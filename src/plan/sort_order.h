/*-------------------------------------------------------------------------
 *
 * sort_order.h
 *	  How far the rows of a table lie in the order of a sort already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_ORDER_H
#define GS_SORT_ORDER_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * 0: as if at random, or unknown; 1: wholly.  Of a path that is to be sorted, and of a Sort of a
 * finished plan.
 */
extern double gs_order_of_path(PlannerInfo *root, const Path *path, List *pathkeys);
extern double gs_order_of_plan(const PlannedStmt *stmt, const Sort *sort);

#endif							/* GS_SORT_ORDER_H */
