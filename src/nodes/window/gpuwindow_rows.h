/*-------------------------------------------------------------------------
 *
 * gpuwindow_rows.h
 *	  The rows of a partition that a GpuWindow has read and still needs.
 *
 * Rows have positions, from 0, in the order in which they are read.
 *
 *		0 .......... begin .............. page_begin ........... end
 *		not needed		  in a tuplestore			in the page
 *
 * A GpuSort's row stays in its page while later rows of the page are read, so it need not be
 * copied.  Before the page is left, its rows that are still needed go to the tuplestore.  Other
 * children have no pages: only the last row stays in its place.
 *
 * Each reader has its own slot.  A row in it is valid until the reader goes on, or a row is read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_ROWS_H
#define GS_GPUWINDOW_ROWS_H

#include "utils/tuplestore.h"

#include "nodes/read/row_match.h"

typedef struct HeldReader HeldReader;

typedef struct GsHeldRows
{
	int64		begin;
	int64		page_begin;
	int64		end;
	bool		is_complete;	/* all rows of the partition were read */
	TupleTableSlot *last;		/* the row read last: at end - 1, or the next partition's first;
								 * empty: no row */

	/* the rest is for gpuwindow_rows.c */
	MemoryContext context;		/* long-lived */
	GsReader   *reader;
	GsRowMatcher *matcher;
	Tuplestorestate *store;		/* NULL until it is needed */
	int64		stored;			/* rows in the store, with those before begin */

	uint64	   *starts;			/* a bit for each position, modulo starts_size: it starts peers */
	int64		starts_size;	/* a power of two; not fewer than rows from begin to end */

	int			n_readers;
	HeldReader *readers;
} GsHeldRows;

/*
 * reader: of the GpuWindow's child; matcher: of its rows.  In CurrentMemoryContext, which
 * must live as long as the query.
 */
extern GsHeldRows *gs_held_create(EState *estate, GsReader *reader, GsRowMatcher *matcher,
								  int n_readers);

/* Read another row of the partition; false: there is none. */
extern bool gs_held_read(GsHeldRows *held);

/* Begin a partition with the row that was read last; false: there is none. */
extern bool gs_held_begin_partition(GsHeldRows *held);

/* Returns the row at a position, in the reader's slot or, if it was read last, in its own. */
extern TupleTableSlot *gs_held_row(GsHeldRows *held, int reader, int64 position);

/* Does the row differ, by the window's ORDER BY, from the row before? */
static inline bool
gs_held_starts_peers(const GsHeldRows *held, int64 position)
{
	int64		bit = position & (held->starts_size - 1);

	return (held->starts[bit / 64] >> (bit % 64)) & 1;
}

/* Rows before that one are not asked for any more. */
static inline void
gs_held_drop_before(GsHeldRows *held, int64 position)
{
	held->begin = Max(held->begin, position);
}

/* Before the child's first row: no row was read. */
extern void gs_held_reset(GsHeldRows *held);

#endif							/* GS_GPUWINDOW_ROWS_H */
