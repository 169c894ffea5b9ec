/*-------------------------------------------------------------------------
 *
 * sort_refuse.h
 *	  Saying why a sort is left to PostgreSQL.
 *
 * A refusal is a sort that gpusort does not offer to do.  If gpusort cannot do it, the refusal is counted
 * and reported at DEBUG1.  It is not counted if another plan is expected to be faster, or if the plan
 * sorts in a way that gpusort has no node for.  With gpusort.log_refusals all refusals are
 * reported at NOTICE, with the columns' types.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_REFUSE_H
#define GS_SORT_REFUSE_H

#include "nodes/plannodes.h"

#include "key/key.h"
#include "stats.h"

/* The level of messages about work that gpusort leaves to PostgreSQL. */
extern int	gs_refuse_elevel(void);

/* "... is of type text under collation "de-x-icu".", palloc'd */
extern char *gs_refuse_detail(const char *column, Oid type, Oid collation);

/* The keys of a Sort's first columns; NULL and the reason: gpusort cannot sort by them. */
extern const GsKeyDesc *gs_sort_describe(const Sort *sort, int n_columns, GsRefusal *refusal);

/* Call this before the functions below, for each plan.  Refusals are not shown if it reads only catalogs. */
extern void gs_refuse_begin(const PlannedStmt *stmt);

/* A Sort of a finished plan that gpusort cannot do. */
extern void gs_refuse_sort(const Sort *sort, GsRefusal reason);

/* A Sort that PostgreSQL is expected to do faster.  rows: in all processes. */
extern void gs_refuse_by_cost(const Sort *sort, double rows, const char *reason);

/* A WindowAgg above sorted rows, whose work GpuWindow cannot do. */
extern void gs_refuse_window(const char *reason);

/* Report any other node of a finished plan that sorts, or that hashes instead of sorting. */
extern void gs_refuse_node(const Plan *plan);

#endif							/* GS_SORT_REFUSE_H */
