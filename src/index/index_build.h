/*-------------------------------------------------------------------------
 *
 * index_build.h
 *	  Where gpusort enters PostgreSQL's index builds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_BUILD_H
#define GS_INDEX_BUILD_H

#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "utils/rel.h"

#include "key/key.h"

extern void gs_index_init(void);

/* REINDEX begins, in ProcessUtility_hook. */
extern void gs_index_see_reindex(const ReindexStmt *stmt);

/*
 * Does a utility command call the planner, without a query?  plan_create_index_workers() does so with the
 * table's inh set, plan_cluster_use_sort() without.
 */
extern bool gs_has_no_query(const PlannerInfo *root);

/*
 * The index's keys if gpusort sorts the table's rows by them, else NULL; the reason is reported as for a
 * build.  scan_is_cheaper: reading the rows by the index costs less than a sort.
 */
extern GsKeyDesc *gs_index_accept_copy(Relation heap, Relation index, bool scan_is_cheaper);

#endif							/* GS_INDEX_BUILD_H */
