/*-------------------------------------------------------------------------
 *
 * plan_walk.h
 *	  A finished plan's children, wherever its nodes keep them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_WALK_H
#define GS_PLAN_WALK_H

#include "nodes/plannodes.h"

/*
 * Call visit for each child of a node, the outer and the inner one last; it
 * may put another one in its place.  Init plans and subplans are not a node's
 * children: they stand in PlannedStmt->subplans.  Nor is Agg->chain, of which
 * the executor makes no nodes of their own.
 */
extern void gs_plan_visit_children(Plan *plan, void (*visit) (Plan **child, void *context),
								   void *context);

#endif							/* GS_PLAN_WALK_H */
