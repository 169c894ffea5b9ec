/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  A sort as its consumers see it, shaped like tuplesort.
 *
 * Calling protocol
 *	  1. gs_sort_begin.
 *	  2. Only where other processes are to feed: gs_sort_open_device, then
 *		 give the handle of gs_sort_client to them.
 *	  3. gs_sort_put for every tuple that reaches this process, then
 *		 gs_sort_perform.
 *	  4. gs_sort_get; gs_sort_rescan, gs_sort_mark and gs_sort_restore where
 *		 begun with random access.
 *	  5. gs_sort_end, or reset the memory context that it was begun in.
 *
 * Fewer rows
 *	  A caller that needs the first one of equal rows only, and only reads forward, or the
 *	  first rows of each group of rows that are equal in some first columns, or that
 *	  will not read beyond the first so many rows, says so (GsSortKeep).  Rows that the
 *	  keys tell to be others are then dropped on the device, or before they are written
 *	  to temporary files.  Others come as well: where PostgreSQL's sort orders the rows,
 *	  where keys are inexact.  So the caller still has to do what it says.
 *
 * Losing the device
 *	  put, perform and get may answer GS_SORT_LOST: what was fed is gone.  The caller then
 *	  calls gs_sort_restart, and puts all tuples once more, from the first one on: PostgreSQL's own
 *	  sort orders them, and get goes on behind the last row that it returned before.  restart and the
 *	  next get may end in an error.
 *
 * Where rows are kept, in this order of preference
 *	  LOCAL   in memory of this process: the first gpusort.min_rows rows
 *	  DEVICE  on the device, through the service
 *	  CPU     in a tuplesort, when the device is not to be had or full
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_H
#define GS_SORT_H

#include "client/client.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "feed/feeder.h"
#include "key/key.h"
#include "stats.h"

/* The rows that a caller needs; all zero: all. */
typedef struct GsSortKeep
{
	bool		unique;			/* of rows that are equal in all columns, the first one only */
	bool		counted;		/* or, where GsSortPage says so, that one with their number */
	uint32		min_count;		/* counted: the least number of a row that is needed */
	uint32		max_count;		/* and the greatest; 0: any */
	int			group_cols;		/* rows equal in so many first columns are a group, ... */
	uint32		group_first;	/* ... of which so many first rows are needed; 0: all */
	bool		group_ties;		/* and all that are equal to the last of these in all columns */
	uint64		limit;			/* how many first rows of all that; or, counted, rows with the greatest
								 * numbers; 0: all */
} GsSortKeep;

typedef enum GsSortStatus
{
	GS_SORT_OK,
	GS_SORT_END,				/* get: no more rows in this direction */
	GS_SORT_LOST,
	GS_SORT_DECLINED			/* put, perform: the caller's other plan is better (gs_sort_watch_groups) */
} GsSortStatus;

typedef enum GsSortPlace
{
	GS_SORT_LOCAL,
	GS_SORT_DEVICE,
	GS_SORT_CPU
} GsSortPlace;

/* What became of a sort, for EXPLAIN; holds no pointers but static ones. */
typedef struct GsSortReport
{
	GsSortPlace place;
	GsFallback	fallback;		/* why place is CPU */
	uint64		rows;
	uint64		settled;		/* rows ordered by comparison, as their keys
								 * were too long */
	uint32		devices;		/* bit i: device i took part; 0: there is one only */
	GsSessionOutcome session;	/* zeroes: there was none */
	const char *cpu_method;		/* place CPU: as Sort prints it; else NULL */
	const char *cpu_space_type;
	int64		cpu_space_kb;
} GsSortReport;

typedef struct GsSort GsSort;

/* GS_REFUSE_NONE: these columns can be sorted by gpusort. */
extern GsKeyDesc *gs_sort_key_desc(const GsColumns *keys, TupleDesc tupdesc, GsRefusal *refusal);

/*
 * keys and tupdesc must live as long as the sort; work_mem_kb bounds what a
 * fallback may use.  rerun: the caller can put all tuples a second time;
 * repeatable: and they are known to be the very same ones then, in any order.
 * keep: the rows that the caller needs, see there; it may get more.
 */
extern GsSort *gs_sort_begin(const GsColumns *keys, TupleDesc tupdesc, int work_mem_kb,
							 bool random_access, bool rerun, bool repeatable,
							 const GsSortKeep *keep);

/*
 * Before rows are put: the caller has another plan for these rows, which is better where they have few
 * groups of equal keys, and where no device is to be had.  It expects so many rows.  After
 * GS_SORT_DECLINED it ends the sort.
 */
extern void gs_sort_watch_groups(GsSort *sort, double rows);

/* feeders: processes that have a chunk's worth of rows or more, by estimate. */
extern bool gs_sort_open_device(GsSort *sort, int feeders);

/* NULL: no session takes its rows now. */
extern GsClient *gs_sort_client(const GsSort *sort);

extern GsSortStatus gs_sort_put(GsSort *sort, TupleTableSlot *slot);

/* After an error in put or perform, which may have raised temp_file_limit. */
extern void gs_sort_lower_limit(GsSort *sort);

/* Where this process feeds rows to the device, and what their keys are; NULL: it does not feed now. */
extern GsFeeder *gs_sort_feeder(const GsSort *sort, const GsKeyDesc **desc);

/* to_end: rows will be got to the end without a rest, unlike a cursor's. */
extern GsSortStatus gs_sort_perform(GsSort *sort, bool to_end);
extern GsSortStatus gs_sort_get(GsSort *sort, bool forward, TupleTableSlot *slot);

/*
 * How many different keys were put, of a sort that was performed with GsSortKeep.unique.  False:
 * the rows have to be read and compared.
 */
extern bool gs_sort_count_distinct(const GsSort *sort, uint64 *count);

/* For how many rows one stands, of those that GsSortPage.counted is about, in its slot. */
extern int64 gs_sort_row_count(TupleTableSlot *slot);

/*
 * Sorted rows in memory: first the row that gs_sort_get returned last, moving forward,
 * then the rows that it would return next.  They are valid until it is called again.
 */
typedef struct GsSortPage
{
	const char *page;			/* as in device.h */
	uint32		bytes;			/* of it */
	uint32		first;			/* entry of the first one of these rows */
	uint32		n;				/* how many there are; 0: none */
	bool		one_of_equal;	/* no two rows of the sort have */
	bool		counted;		/* gs_sort_row_count() tells how many were put */
} GsSortPage;

/* False: gs_sort_get has to be called for each row. */
extern bool gs_sort_page(const GsSort *sort, GsSortPage *page);

/* As if gs_sort_get had returned n other rows of that page, none of them GS_ENTRY_EXTERNAL. */
extern void gs_sort_take(GsSort *sort, uint32 n);

/*
 * Leave out the next n rows, as tuplesort_skiptuples() does; GS_SORT_END: there were fewer.
 * Only with random access.  On the device most of them are not fetched.
 */
extern GsSortStatus gs_sort_skip(GsSort *sort, uint64 n);

/*
 * How many rows a sort with random access returns.  False: it does not know, or gs_sort_skip()
 * would read all of them.
 */
extern bool gs_sort_count_rows(const GsSort *sort, uint64 *count);

extern void gs_sort_rescan(GsSort *sort);
extern void gs_sort_mark(GsSort *sort);
extern void gs_sort_restore(GsSort *sort);
extern bool gs_sort_can_rescan(const GsSort *sort);

extern void gs_sort_restart(GsSort *sort);

extern void gs_sort_report(const GsSort *sort, GsSortReport *report);
extern void gs_sort_end(GsSort *sort);

#endif							/* GS_SORT_H */
