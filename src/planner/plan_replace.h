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
 * Replace the Sort nodes of all of a statement's plans where gpusort can do
 * what they do, and faster.  rerun: a plan of the statement may be run a
 * second time.
 */
extern void gs_plan_replace_sorts(PlannedStmt *stmt, bool rerun);

#endif							/* GS_PLAN_REPLACE_H */
