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

/* The cost of handing rows of this width to the device, in one process. */
extern Cost gs_cost_feed(double rows, int width);

/*
 * The cost of a sort beyond its child: up to the first row, and up to the last one.  rows_fed is the number
 * of rows that one process feeds; 0 if the feed has its own cost.  If the rows do not fit into device memory,
 * the cost of temporary files is included.
 */
extern Cost gs_cost_sort_startup(double rows_fed, double rows, int width);
extern Cost gs_cost_sort(double rows_fed, double rows, int width);

/* The cost of settling rows whose keys end before the sort's last column.  keys: number of different keys. */
extern Cost gs_cost_settling(double rows, double keys);

/* Is a sort of these rows expected to need temporary files? */
extern bool gs_cost_expects_files(double rows, int width);

/* An extra cost of workers that feed these rows: they take cores from the host device's threads. */
extern Cost gs_cost_workers(double rows, int workers);

/* The cost of reading rows by an index if its pages are in memory, from PostgreSQL's cost. */
extern Cost gs_cost_by_index(Cost cost);

/* The real cost of PostgreSQL's sort, from its planner's cost, for rows with this first column's type. */
extern Cost gs_cost_by_postgres(Cost cost, int n_columns, Oid type);

/*
 * The cost of merging streams in the order of a libc collation, beyond PostgreSQL's.  rows: rows whose text
 * differs from that of the row before.
 */
extern Cost gs_cost_libc_merge(double rows, int streams);

/*
 * Does PostgreSQL's top-N heapsort cost less, for the first limit_tuples rows?  rows_fed: the rows that one
 * process feeds, or puts into its heapsort.  limit_tuples <= 0: no limit.  in_order: how far the rows come in
 * order (gs_order_of_path()).
 */
extern bool gs_cost_prefers_heapsort(double rows_fed, double rows, int width, double limit_tuples,
									 double in_order);

/*
 * How far the rows of a table lie in the order of a sort already, from 0 (random order, or unknown) to 1 (in
 * order).  For a path that is to be sorted, and for a Sort of a finished plan.
 */
extern double gs_order_of_path(PlannerInfo *root, const Path *path, List *pathkeys);
extern double gs_order_of_plan(const PlannedStmt *stmt, const Sort *sort);

/* The cost of looking rows up in a hash table, beyond PostgreSQL's estimate. */
extern Cost gs_cost_hash_misses(double rows, double table_bytes);

#endif							/* GS_SORT_COST_H */
