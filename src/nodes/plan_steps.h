/*-------------------------------------------------------------------------
 *
 * plan_steps.h
 *	  What gpusort does to finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLAN_STEPS_H
#define GS_PLAN_STEPS_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * Change a statement's plans, and no more than there is to do.  root: of the query at the top; NULL: it is
 * not known, as the usual planner did not make the plans.
 */
extern void gs_plan_steps(PlannedStmt *stmt, const Query *parse, const PlannerInfo *root,
						  int cursor_options);

#endif							/* GS_PLAN_STEPS_H */
