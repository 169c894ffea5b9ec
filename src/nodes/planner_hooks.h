/*-------------------------------------------------------------------------
 *
 * planner_hooks.h
 *	  Where gpusort enters PostgreSQL's planner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PLANNER_HOOKS_H
#define GS_PLANNER_HOOKS_H

extern void gs_planner_init(void);

#endif							/* GS_PLANNER_HOOKS_H */
