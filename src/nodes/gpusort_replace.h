/*-------------------------------------------------------------------------
 *
 * plan_replace.h
 *	  Putting GpuSort in the place of Sort nodes in finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_REPLACE_H
#define GS_PLAN_REPLACE_H

#include "nodes/plannodes.h"

/*
 * Has a statement sorts that gs_plan_replace_sorts() might do something about?
 * Cheap: looks at nothing but the plans' nodes.
 */
extern bool gs_plan_has_sorts(const PlannedStmt *stmt);

/*
 * Replace the Sort nodes of all of a statement's plans where gpusort can do
 * what they do, and faster, and complete the GpuSort nodes that were made from
 * paths.  rerun: a plan of the statement may be run a second time.
 */
extern void gs_plan_replace_sorts(PlannedStmt *stmt, bool rerun);

/* The highest plan_node_id of a statement's plans. */
extern int	gs_plan_last_node_id(const PlannedStmt *stmt);

/* No Limit above that a node would learn of. */
#define GS_NO_BOUND	(-1.0)

/*
 * How many rows a node's children will be asked for, where the node itself is
 * asked for bound.
 */
extern double gs_plan_bound_below(const Plan *plan, double bound);

#endif							/* GS_PLAN_REPLACE_H */
