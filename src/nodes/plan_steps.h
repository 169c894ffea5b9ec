/*-------------------------------------------------------------------------
 *
 * plan_steps.h
 *	  The steps that change a finished plan; plan_steps.c has the table of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_STEPS_H
#define GS_PLAN_STEPS_H

#include "nodes/plannodes.h"

#include "plan/plan_walk.h"

typedef struct GsStepContext
{
	PlannedStmt *stmt;
	bool		any_order;		/* the statement groups, and has no ORDER BY */
	int			last_node_id;	/* the highest plan_node_id in use */
	List	   *unchecked;		/* Unique nodes that do an Agg's DISTINCT, which checks no rights */

	/* set by the nodes above, for the current node */
	const Plan *parent;			/* NULL: it is the topmost node */
	bool		rerun;			/* a GpuSort's child may be run a second time here */
	GsBound		bound;
	bool		is_second;		/* it is below a GpuChoice's inner plan */
} GsStepContext;

/* A step returns the node, perhaps changed, or the one that takes its place. */
typedef Plan *(*GsPlanStep) (GsStepContext *context, Plan *plan);

#endif							/* GS_PLAN_STEPS_H */
