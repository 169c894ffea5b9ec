/*-------------------------------------------------------------------------
 *
 * index_hook.h
 *	  Where gpusort enters PostgreSQL's index builds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_HOOK_H
#define GS_INDEX_HOOK_H

#include "nodes/pathnodes.h"

extern void gs_index_init(void);

/*
 * Does a utility command ask the planner?  It has no query at all.  plan_create_index_workers() asks with
 * the table's inh set, plan_cluster_use_sort() without.
 */
extern bool gs_has_no_query(const PlannerInfo *root);

#endif							/* GS_INDEX_HOOK_H */
