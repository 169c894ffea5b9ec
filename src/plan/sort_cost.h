/*-------------------------------------------------------------------------
 *
 * sort_cost.h
 *	  How long sorts and their rivals take: the planner's model, in nanoseconds.
 *
 * Each decision between gpusort and PostgreSQL asks this model.  Only the costs that EXPLAIN shows, and
 * that PostgreSQL compares further up, are in its units (gs_cost_of()).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_COST_H
#define GS_SORT_COST_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* When a plan's first and last row are there, and the time of all its processes together. */
typedef struct GsTime
{
	double		first;
	double		last;
	double		cpu;
} GsTime;

/* Rows that are sorted. */
typedef struct GsSortInput
{
	double		rows;
	int			width;
	int			columns;		/* of a row */
	Oid			type;			/* the first sort column's */
	Oid			collation;
	bool		by_pages;		/* they are a table's rows, as its scan finds them */
	bool		projected;		/* not all of its columns */
	double		in_order;		/* how far they lie in the sort's order already, from 0 (in random order, or
								 * unknown) to 1 */
} GsSortInput;

/* What one of PostgreSQL's hash tables has to do for each row. */
typedef struct GsHash
{
	double		rows;
	double		groups;
	double		entry_bytes;
	int			columns;
	int			texts;			/* how many of the columns vary in width */
	double		transitions;	/* gs_time_transitions() */
	bool		large_states;	/* of aggregates, not passed by value */
} GsHash;

/* From nanoseconds to the planner's cost units, and back. */
extern Cost gs_cost_of(double time);
extern double gs_time_of(Cost cost);

/* The time until this part of a plan's rows is there, on as many cores as there are. */
extern double gs_time_of_part(const GsTime *time, double fraction);

/* Is our plan clearly faster?  fraction: the part of its rows that is wanted. */
extern bool gs_time_is_less(const GsTime *ours, const GsTime *theirs, double fraction);

/*
 * PostgreSQL
 */

/* Adds the sort of a plan's rows in one process, for the first limit rows; limit <= 0: all. */
extern void gs_time_add_sort(GsTime *time, const GsSortInput *rows, double limit);

/* Does it sort them by a heap of limit rows? */
extern bool gs_sort_is_bounded(const GsSortInput *rows, double limit);

/* How much longer a comparison takes in a sort than PostgreSQL's costs say. */
extern double gs_sort_factor(const GsSortInput *rows);

/* A comparison of two rows without abbreviated keys, as merges do it. */
extern double gs_time_comparison(const GsSortInput *rows);

/* The sort of values in an aggregate, whose groups have this number of rows. */
extern double gs_time_inner_sort(const GsSortInput *rows, double groups);

/* For each row, all functions of a query's aggregates; ours: in GpuGroup. */
extern double gs_time_transitions(const PlannerInfo *root, bool ours);

extern double gs_time_hash(const GsHash *hash);

/* Aggregates of sorted rows; ours: by GpuGroup. */
extern double gs_time_group(const PlannerInfo *root, double rows, bool ours);

/* Expressions that are no columns. */
extern double gs_time_expressions(double rows, const List *exprs);

/* By how much the planner divides the rows of a parallel scan: the leader does less than a worker. */
extern double gs_processes(int workers);

/* Starting and ending parallel workers. */
extern void gs_time_add_workers(GsTime *time, int workers);

/*
 * gpusort
 */

/* Handing rows to the device, beyond the scan, in one process. */
extern double gs_time_feed(const GsSortInput *rows);

/*
 * A sort whose rows were fed in this time: fed.last when all were, fed.cpu in all processes.  rows_back: rows
 * that are returned.  settling: gs_time_settling().
 */
extern GsTime gs_time_device(GsTime fed, const GsSortInput *rows, double rows_back, double settling);

/* Settling rows whose keys end before the sort's last column.  keys: number of different keys. */
extern double gs_time_settling(double rows, double keys);

/* Is a sort of these rows expected to need temporary files? */
extern bool gs_expects_files(double rows, int width);

/* The rows of a path that is to be sorted; the rows that one process sorts of a finished plan's Sort. */
extern GsSortInput gs_rows_of_path(PlannerInfo *root, const Path *path, List *pathkeys);
extern GsSortInput gs_rows_of_plan(const PlannedStmt *stmt, const Sort *sort);

#endif							/* GS_SORT_COST_H */
