/*-------------------------------------------------------------------------
 *
 * sort_private.h
 *	  The state of a sort, shared by the files of this folder alone.
 *
 *	  sort.c		 begin, put, perform, restart: the way in
 *	  sort_output.c	 get, settle, mark: the way out
 *	  sort_local.c	 rows kept in this process
 *	  sort_aside.c	 rows without a key: both ways
 *	  sort_sample.c	 some rows compared with their neighbours
 *	  sort_stored.c	 how rows are stored and read back
 *	  sort_rows.c	 a cursor over sorted rows, in pages or in memory; also for index builds
 *
 * Each calls only files below it in this list.
 *
 * A row is in one of these stores until it is returned:
 *
 *	  store		  holds									written by		returned by
 *	  device	  chunks and pages of the service, also	gs_feeder_put	gs_rows_move
 *				  in its temporary files (feeder, rows)
 *	  local		  few rows, chunks in this process		gs_local_put	gs_rows_move
 *	  aside		  rows without a key, in a tuplesort;	gs_aside_put	gs_aside_get
 *				  merged with the device's rows
 *	  tuplesort	  all rows, if place is CPU				tuplesort_put	tuplesort_gettupleslot
 *	  tuplestore  all rows, for random access to		fill_store		get_from_store
 *				  inexact keys
 *
 * Words for rows:
 *
 *	  stored	its bytes, as they lie in a chunk or a page
 *	  big		too large for a chunk; a temporary file has its bytes, and a stub is stored in its
 *				place (GsBigRows)
 *	  aside		without a key (GsAside)
 *	  settled	sorted by the columns' own operators, because keys are inexact: the ties of one key after
 *				the other.  For random access all are settled before the first row is returned
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_PRIVATE_H
#define GS_SORT_PRIVATE_H

#include "feed/feeder.h"
#include "sort/sort.h"
#include "sort/sort_rows.h"
#include "storage/buffile.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Rows kept in this process, in chunks of the usual form; the first one may be smaller. */
typedef struct GsLocalRows
{
	GsChunkWriter *chunks;
	int			n_chunks;
	int			max_chunks;
	uint64		rows;
} GsLocalRows;

typedef struct GsAside GsAside;

/* The temporary file of rows too large for a chunk. */
typedef struct GsBigRows
{
	BufFile    *file;			/* NULL until there is one */
	bool		at_end;			/* its position is where to write */
	int			end_fileno;
	off_t		end_offset;
} GsBigRows;

/*
 * A source of a performed sort's rows, chosen by gs_output_begin().  Without random access only get is
 * called.  count is NULL if gs_sort_count_rows() is false.  If get can return GS_SORT_LOST, it notes in
 * returned that it has returned a row.  With GsSort.direct it is not called for most rows.
 */
typedef struct GsSortSource
{
	GsSortStatus (*get) (GsSort *sort, bool forward, TupleTableSlot *slot);
	void		(*rescan) (GsSort *sort);
	void		(*mark) (GsSort *sort);
	void		(*restore) (GsSort *sort);
	GsSortStatus (*skip) (GsSort *sort, uint64 n);
	bool		(*count) (const GsSort *sort, uint64 *count);
} GsSortSource;

struct GsSort
{
	/* constant */
	const GsColumns *keys;
	TupleDesc	tupdesc;
	int			work_mem_kb;
	bool		random_access;
	int			access;			/* random_access as an option of tuplesort */
	bool		rerun;
	GsSortKeep	keep;
	double		group_rows;		/* rows by gs_sort_watch_groups(); 0: not called */
	double		few_groups;
	uint64		first_look;		/* rows after which to look for few groups; 0: no, or done */
	bool		drops_by_group; /* the device drops rows by keep.group_first */
	GsKeyDesc  *desc;			/* NULL: no keys, place CPU */
	MemoryContext context;		/* holds all of this, and the session */
	MemoryContext scratch;		/* reset with each row that needs it */
	instr_time	begun;

	/* the way in */
	GsSortPlace place;
	bool		declined;		/* the caller's next call returns GS_SORT_DECLINED */
	GsLocalRows local;
	GsClient   *client;			/* NULL: no session; place CPU: the device still has rows
								 * to be taken back */
	GsFeeder   *feeder;			/* feeds this process's rows */
	Tuplesortstate *tuplesort;	/* place CPU */
	int			processes;		/* tuplesort may use temp_file_limit this many times; 0: once */
	bool		raised;			/* temp_file_limit is raised for them ... */
	int			file_limit;		/* ... and was this before */
	uint64		bound_left;		/* rows that may still be got from tuplesort */
	GsBigRows	big;
	GsAside    *aside;			/* rows without a key; NULL: none yet, or place CPU */
	TupleTableSlot *row_slot;	/* to pass stored rows on */
	SortSupport comparison;		/* of columns; NULL until needed */

	/* the way out */
	const GsSortSource *source; /* NULL: the sort is not performed */
	GsRows	   *rows;			/* places LOCAL and DEVICE */
	Tuplesortstate *settling;	/* sorts the ties of one key at a time; NULL before the first ties */
	bool		in_ties;		/* settling holds sorted ties, which are being returned */
	bool		first_of_equal; /* place DEVICE: returns only the first of equal rows, except rows
								 * put aside */
	bool		direct;			/* place DEVICE: most rows are returned where they lie in pages; not
								 * inexact ties, and large rows */
	Tuplestorestate *tuplestore;	/* all rows in their order, for random access to inexact keys */
	TupleTableSlot *ahead;		/* the device's next row; a row put aside may come before it */
	MinimalTuple big_row;		/* the external row last returned */
	GsRowsPosition mark;
	bool		returned;		/* the caller has got a row, or moved: the sort cannot begin again */
	uint32		sampled;		/* rows counted for the sample, if keys hold libc text */
	bool		distrusted;		/* the sample was out of order */

	GsSortReport report;
};

/* sort_local.c */
extern void gs_local_put(GsSort *sort, TupleTableSlot *slot);
extern bool gs_local_full(const GsSort *sort);

/* Make the last chunk as large as this, or leave it larger. */
extern void gs_local_grow(GsSort *sort, uint32 bytes);

/* False: the sample was out of order, and the rows are as they were. */
extern bool gs_local_perform(GsSort *sort);
extern void gs_local_free(GsSort *sort);

/* sort_output.c */
extern GsSortStatus gs_output_begin(GsSort *sort);
extern void gs_output_end(GsSort *sort);

/* sort_aside.c */
extern void gs_aside_put(GsSort *sort, TupleTableSlot *slot);

/* Returns the tuplesort that holds the rows put aside.  It is the caller's then.  NULL: there are none. */
extern Tuplesortstate *gs_aside_take(GsSort *sort);
extern uint64 gs_aside_rows(const GsSort *sort);
extern void gs_aside_perform(GsSort *sort);

/* Returns the next row: one put aside, or the device's in ahead.  ahead is empty at the device's end. */
extern GsSortStatus gs_aside_get(GsSort *sort, TupleTableSlot *slot);

extern void gs_aside_end(GsSort *sort);

/*
 * sort_sample.c: compare a sample of the current page's rows, once for each page; or of rows in memory.
 * False: the sample is out of order, and no row was returned.
 */
extern bool gs_sample_page(GsSort *sort);
extern bool gs_sample_local(GsSort *sort, const GsLocalRow *rows, uint64 n);

/* sort_stored.c */
extern Tuplesortstate *gs_stored_make_tuplesort(GsSort *sort, int options);

/* By the columns' own operators.  column: NULL, or set to the last column compared, from 0. */
extern int	gs_stored_compare(GsSort *sort, TupleTableSlot *a, TupleTableSlot *b, int *column);

/* Can a row that is too large for a chunk be fed as a stub? */
extern bool gs_stored_has_key(GsSort *sort, TupleTableSlot *slot);

/* Write a row too large for a chunk to the file of such rows.  Returns the row to put instead: its stub. */
extern GsPutRow gs_stored_write_big(GsSort *sort, TupleTableSlot *slot, GsBigStub *stub);

/* A stored row in a slot that is valid until the next call. */
extern TupleTableSlot *gs_stored_slot(GsSort *sort, const char *row, bool external);

/* The same in the consumer's slot, from a row with GS_ENTRY_ flags. */
extern void gs_stored_output(GsSort *sort, const char *row, uint32 flags, TupleTableSlot *slot);

#endif							/* GS_SORT_PRIVATE_H */
