/*-------------------------------------------------------------------------
 *
 * sort_private.h
 *	  The state of a sort, shared by the files of this folder alone.
 *
 *	  sort.c		 begin, put, perform, restart: the way in
 *	  sort_output.c	 get, settle, mark: the way out
 *	  sort_cpu.c	 the same of a tuplesort
 *	  sort_local.c	 rows kept in this process
 *	  sort_aside.c	 rows without a key: both ways
 *	  sort_sample.c	 some rows compared with their neighbours
 *	  sort_stored.c	 how rows are stored and read back
 *
 * Each calls only files below it in this list.
 *
 * A row is in one of four stores until it is returned:
 *
 *	  store		  holds									written by		returned by
 *	  device	  chunks and pages of the service, also	gs_feeder_put	gs_rows_move
 *				  in its temporary files (feeder, rows)
 *	  local		  few rows, chunks in this process		gs_local_put	gs_rows_move
 *	  aside		  rows without a key, a tuplesort; they	gs_aside_put	gs_aside_get
 *				  are merged with those of the device
 *	  tuplesort	  all rows, if place is CPU				tuplesort_put	gs_cpu_source
 *
 * Words for rows:
 *
 *	  stored	its bytes, as they lie in a chunk or a page
 *	  big		too large for a chunk; a temporary file has its bytes, and a stub is stored in its
 *				place (GsBigRows)
 *	  aside		without a key (GsAside)
 *	  settled	put in order by the columns' own operators, because keys are inexact; a run of
 *				equal keys at a time (settling), or all rows, for random access (settled)
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
 * A source of a performed sort's rows.  Without random access only get is called.  Where rescan is NULL,
 * gs_sort_can_rescan() is false; where count is NULL, gs_sort_count_rows().
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
	int			access;			/* the same as an option of tuplesort */
	bool		rerun;
	bool		repeatable;
	GsSortKeep	keep;
	double		group_rows;		/* gs_sort_watch_groups(); 0: not called */
	uint64		first_look;		/* at the groups of so many rows; 0: none, or it has been */
	bool		drops_by_group; /* the device does, by keep's group */
	GsKeyDesc  *desc;			/* NULL: no keys, place CPU */
	MemoryContext context;		/* holds all of this, and the session */
	MemoryContext scratch;		/* reset with each row that needs it */
	instr_time	begun;

	/* the way in */
	GsSortPlace place;
	bool		declined;		/* the caller is told with its next call */
	GsLocalRows local;
	GsClient   *client;			/* NULL: no session; place CPU: rows on the device are
								 * to be taken back */
	GsFeeder   *feeder;			/* this process's own rows */
	Tuplesortstate *tuplesort;	/* place CPU */
	int			processes;		/* whose temp_file_limit it has; 0: this one's */
	bool		raised;			/* temp_file_limit is theirs now, */
	int			file_limit;		/* and was this before */
	uint64		bound_left;		/* no more than so many rows are got from it */
	GsBigRows	big;
	GsAside    *aside;			/* rows without a key; NULL until there is
								 * one, or place CPU */
	TupleTableSlot *row_slot;	/* to pass stored rows on */
	SortSupport comparison;		/* of columns; NULL until needed */

	/* the way out */
	const GsSortSource *source; /* NULL: the sort is not performed */
	GsRows	   *rows;			/* places LOCAL and DEVICE */
	Tuplesortstate *settling;	/* of one run of equal keys after the other; NULL until there is one */
	bool		in_run;			/* it is settled, and returned now */
	bool		first_of_equal; /* place DEVICE: only the first row of equal ones
								 * is returned, but for rows put aside */
	bool		direct;			/* place DEVICE: rows are returned as they lie in
								 * pages, except runs to settle and large rows */
	Tuplestorestate *settled;	/* all rows in their order, for random access */
	TupleTableSlot *ahead;		/* the device's next row, while rows put aside may stand before it */
	MinimalTuple big_row;		/* the external row last returned */
	GsRowsPlace mark;
	bool		wandered;		/* rows were not returned in order, once each */
	uint32		sampled;		/* rows looked at for the sample, if keys hold libc text */
	bool		distrusted;		/* the sample was out of order */
	uint64		emitted;		/* rows returned, moving forward; place CPU: before the restart */
	const GsSortSource *behind; /* after a restart: the source that leaves these out first; or NULL */

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

/* Ends the output.  The next one goes on behind the rows that were returned, or this is an error. */
extern void gs_output_restart(GsSort *sort);
extern void gs_output_end(GsSort *sort);

/* sort_cpu.c */
extern const GsSortSource *gs_cpu_source(const GsSort *sort);

/* Notes that rows were returned before a restart.  by_groups: one row of each group of equal rows. */
extern void gs_cpu_plan_skip(GsSort *sort, bool by_groups);

/* sort_aside.c */
extern void gs_aside_put(GsSort *sort, TupleTableSlot *slot);

/* The tuplesort that holds them, to be the sort's own; NULL: there are none. */
extern Tuplesortstate *gs_aside_take(GsSort *sort);
extern uint64 gs_aside_rows(const GsSort *sort);
extern void gs_aside_perform(GsSort *sort);

/* The next row: one put aside, or the device's in ahead, which is empty if there is none left. */
extern GsSortStatus gs_aside_get(GsSort *sort, TupleTableSlot *slot);

extern void gs_aside_end(GsSort *sort);

/*
 * sort_sample.c: gs_sample_page() compares a sample of the current row's page, if that is new.
 * gs_sample_local() compares a sample of rows in memory.  False: the sample is out of order, and no row was
 * returned.
 */
extern bool gs_sample_page(GsSort *sort);
extern bool gs_sample_local(GsSort *sort, const GsLocalRow *rows, uint64 n);

/* sort_stored.c */
extern Tuplesortstate *gs_stored_make_tuplesort(GsSort *sort, int options);

/* By the columns' own operators.  column: NULL, or set to the last column compared, from 0. */
extern int	gs_stored_compare(GsSort *sort, TupleTableSlot *a, TupleTableSlot *b, int *column);

/* Can a row that is too large for a chunk be fed as a stub? */
extern bool gs_stored_has_key(GsSort *sort, TupleTableSlot *slot);

/*
 * Write a row that is too large for a chunk down.  Returns what to put in its
 * stead: stub, which is filled in, with the same key.
 */
extern GsPutRow gs_stored_write_big(GsSort *sort, TupleTableSlot *slot, GsBigStub *stub);

/* A stored row in a slot that is good until the next call. */
extern TupleTableSlot *gs_stored_slot(GsSort *sort, const char *row, bool external);

/* The same in the consumer's slot, from a row with GS_ENTRY_ flags. */
extern void gs_stored_output(GsSort *sort, const char *row, uint32 flags, TupleTableSlot *slot);

#endif							/* GS_SORT_PRIVATE_H */
