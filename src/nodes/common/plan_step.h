/*-------------------------------------------------------------------------
 *
 * plan_step.h
 *	  A step of what gpusort does to a finished plan; plan_steps.c has the table of all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_STEP_H
#define GS_PLAN_STEP_H

#include "nodes/plannodes.h"

/* How many rows a node will be asked for, from the first one on; GS_NO_BOUND: perhaps all. */
typedef struct GsBound
{
	double		expected;
	double		sure;			/* no more */
	const Limit *limit;			/* that will know no more, when execution starts; else NULL */
} GsBound;

typedef struct GsStepContext
{
	PlannedStmt *stmt;
	int			last_node_id;	/* the highest plan_node_id in use */

	/* what the nodes above say of the node that a step looks at */
	const Plan *parent;			/* NULL: it is the topmost one */
	int			flags;			/* GS_PLAN_FLAG_: those that GpuSort may have here */
	GsBound		bound;
} GsStepContext;

/* Returns the node, perhaps changed, or the one that takes its place. */
typedef Plan *(*GsPlanStep) (GsStepContext *context, Plan *plan);

#endif							/* GS_PLAN_STEP_H */
