/*-------------------------------------------------------------------------
 *
 * sort_cost.h
 *	  What a sort by gpusort costs, in the planner's units.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_COST_H
#define GS_SORT_COST_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* Cost of handing so many rows of this width to the device, in one process. */
extern Cost gs_cost_feed(double rows, int width);

/*
 * What a sort costs beyond its child: up to the first row, and up to the last one.
 * rows_fed is the number of rows that one process feeds; 0 if the feed has a cost of
 * its own.  If the rows do not fit into device memory, this includes the cost of
 * temporary files.
 */
extern Cost gs_cost_sort_startup(double rows_fed, double rows, int width);
extern Cost gs_cost_sort(double rows_fed, double rows, int width);

/* The cost of settling rows whose keys end before the sort's last column; keys: how many different ones. */
extern Cost gs_cost_settling(double rows, double keys);

/* Is a sort of so many rows expected to go to temporary files? */
extern bool gs_cost_expects_files(double rows, int width);

/* A price for workers, which feed so many rows: they take cores from the host device's threads. */
extern Cost gs_cost_workers(double rows, int workers);

/* The price of reading rows in an index's order, as if the pages were in memory, from PostgreSQL's. */
extern Cost gs_cost_by_index(Cost cost);

/*
 * What PostgreSQL's sort really costs if its planner says cost, and rows have so many columns,
 * the first one of this type.
 */
extern Cost gs_cost_by_postgres(Cost cost, int n_columns, Oid type);

/*
 * What merging streams in the order of a libc collation costs beyond what PostgreSQL charges for it, if so
 * many rows come after another text.
 */
extern Cost gs_cost_libc_merge(double rows, int streams);

/*
 * Is PostgreSQL's top-N heapsort the better way to the first limit_tuples of
 * so many rows?  rows_fed: the rows that one process feeds, or has in its heapsort.
 * limit_tuples <= 0: there is no limit.  in_order: how far they come in order.
 */
extern bool gs_cost_prefers_heapsort(double rows_fed, double rows, int width, double limit_tuples,
									 double in_order);

/*
 * How far the rows of a table lie in the order of a sort already.  0: as if at random, or unknown; 1: wholly.
 * Of a path that is to be sorted, and of a Sort of a finished plan.
 */
extern double gs_order_of_path(PlannerInfo *root, const Path *path, List *pathkeys);
extern double gs_order_of_plan(const PlannedStmt *stmt, const Sort *sort);

/* What looking so many rows up in a hash table costs beyond PostgreSQL's estimate. */
extern Cost gs_cost_hash_misses(double rows, double table_bytes);

#endif							/* GS_SORT_COST_H */
