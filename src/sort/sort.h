/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  A sort as its consumers see it, shaped like tuplesort.
 *
 * Calling protocol
 *	  1. gs_sort_begin.
 *	  2. Only if other processes feed, too: gs_sort_open_device, then
 *		 give the handle of gs_sort_client to them.
 *	  3. gs_sort_put for every tuple that reaches this process, then
 *		 gs_sort_perform.
 *	  4. gs_sort_get; gs_sort_rescan, gs_sort_mark and gs_sort_restore only
 *		 with random access.
 *	  5. gs_sort_end, or reset the memory context that it was begun in.
 *
 * Fewer rows
 *	  GsSortKeep tells which rows the caller needs: the first of equal rows, the first rows
 *	  of each group (rows that are equal in some first columns), or the first rows of
 *	  all.  A caller that needs only the first of equal rows must not read backward.  If the keys show
 *	  that a row is not needed, it is dropped on the device, or before it is written to temporary files.
 *	  The sort may return more rows, after a fallback or with inexact keys.  So the caller must drop them
 *	  itself.
 *
 * Losing the device
 *	  put, perform and get may answer GS_SORT_LOST: the rows that were fed are gone.  The caller then
 *	  calls gs_sort_restart, which raises an error if rows were returned or cannot be put again.  It puts
 *	  all tuples once more, from the first one on, and PostgreSQL's own sort orders them.
 *
 * Where rows are kept, in this order of preference
 *	  LOCAL   in memory of this process: the first gpusort.min_rows rows
 *	  DEVICE  on the device, through the service
 *	  CPU     in a tuplesort, if the device is not available or full
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

/* The rows that a caller needs; all zero: every row. */
typedef struct GsSortKeep
{
	bool		unique;			/* only the first of rows that are equal in all columns */
	bool		counted;		/* if possible, that row with their number (GsSortPage.counted) */
	uint32		min_count;		/* counted: only rows with this number or a greater one */
	uint32		max_count;		/* counted: only rows with this number or a smaller one; 0: any */
	int			group_cols;		/* rows that are equal in this many first columns are a group */
	uint32		group_first;	/* only this many first rows of each group; 0: all */
	bool		group_ties;		/* and rows equal to the last of these in all columns */
	bool		group_several;	/* with group_first, which may be PG_UINT32_MAX: none of a group of one row */
	uint64		limit;			/* only this many rows of those: the first ones or, if counted, those
								 * with the greatest numbers; 0: all */
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

/* The outcome of a sort, for EXPLAIN.  Pointers in it are to static strings. */
typedef struct GsSortReport
{
	GsSortPlace place;
	GsFallback	fallback;		/* why place is CPU */
	uint64		rows;
	uint64		settled;		/* rows ordered by comparison, as their keys
								 * were too long */
	uint32		devices;		/* bit i: device i took part; 0: there is only one device */
	GsSessionOutcome session;	/* zeroes: there was no session */
	const char *cpu_method;		/* place CPU: as Sort prints it; else NULL */
	const char *cpu_space_type;
	int64		cpu_space_kb;
} GsSortReport;

typedef struct GsSort GsSort;

/* NULL and the reason: gpusort cannot sort by these columns. */
extern GsKeyDesc *gs_sort_key_desc(const GsColumns *keys, TupleDesc tupdesc, GsRefusal *refusal);

/*
 * keys and tupdesc must live as long as the sort; work_mem_kb bounds what a
 * fallback may use.  rerun: the caller can put all tuples a second time.
 * keep: the rows that the caller needs, see there; it may get more.
 */
extern GsSort *gs_sort_begin(const GsColumns *keys, TupleDesc tupdesc, int work_mem_kb,
							 bool random_access, bool rerun, const GsSortKeep *keep);

/*
 * Before rows are put: the caller expects this many rows, and has another plan for them.  That plan is better
 * if the rows have fewer groups of equal keys than few, or no device is available.  After GS_SORT_DECLINED
 * the caller ends the sort.
 */
extern void gs_sort_watch_groups(GsSort *sort, double rows, double few);

/* feeders: processes that are expected to have a chunk's worth of rows or more. */
extern bool gs_sort_open_device(GsSort *sort, int feeders);

/* The client of the session that takes the sort's rows; NULL: none does now. */
extern GsClient *gs_sort_client(const GsSort *sort);

extern GsSortStatus gs_sort_put(GsSort *sort, TupleTableSlot *slot);

/* After an error in put or perform, which may have raised temp_file_limit. */
extern void gs_sort_lower_limit(GsSort *sort);

/* The feeder of this process, and the keys that it writes; NULL: this process does not feed now. */
extern GsFeeder *gs_sort_feeder(const GsSort *sort, const GsKeyDesc **desc);

/* to_end: rows will be got to the end without a rest, unlike a cursor's. */
extern GsSortStatus gs_sort_perform(GsSort *sort, bool to_end);
extern GsSortStatus gs_sort_get(GsSort *sort, bool forward, TupleTableSlot *slot);

/*
 * The number of different keys, of a sort performed with GsSortKeep.unique.  False: the caller has to
 * read and compare the rows.
 */
extern bool gs_sort_count_distinct(const GsSort *sort, uint64 *count);

/* With GsSortPage.counted: how many equal rows the row in this slot stands for. */
extern int64 gs_sort_row_count(TupleTableSlot *slot);

/*
 * Sorted rows in memory: the row that gs_sort_get last returned, moving forward, and the rows that it would
 * return next.  They are valid until it is called again.
 */
typedef struct GsSortPage
{
	const char *page;			/* in device.h's format */
	uint32		bytes;			/* size of the page */
	uint32		first;			/* entry of the first row */
	uint32		n;				/* number of rows */
	bool		one_of_equal;	/* no two rows of the sort have equal keys */
	bool		counted;		/* gs_sort_row_count() tells how many equal rows there were */
} GsSortPage;

/* False: the caller has to call gs_sort_get for each row. */
extern bool gs_sort_page(const GsSort *sort, GsSortPage *page);

/* Move on by n rows of the page, as if gs_sort_get had returned them.  None of them is GS_ENTRY_EXTERNAL. */
extern void gs_sort_take(GsSort *sort, uint32 n);

/*
 * Skip the next n rows, as tuplesort_skiptuples() does; GS_SORT_END: there were fewer.  Only with
 * random access.  Most skipped rows are not fetched from the device.
 */
extern GsSortStatus gs_sort_skip(GsSort *sort, uint64 n);

/*
 * The number of rows of a sort with random access.  False: it is not known, or gs_sort_skip() would
 * read all of the rows.
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
