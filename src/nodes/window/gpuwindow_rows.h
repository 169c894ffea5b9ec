/*-------------------------------------------------------------------------
 *
 * gpuwindow_rows.h
 *	  The rows of a partition that a GpuWindow can get at: those that it holds, as it
 *	  has read them ahead of the current one or looks back at them, and those that
 *	  the GpuSort below has at hand, to be read later.
 *
 * Rows have positions, from 0, in the order in which they are read.  A row that was read is
 * held if it is appended; the last one need not be.  Those before it are held without a
 * gap, or not at all.  They are dropped from the front.  Up to work_mem is held in memory;
 * then all rows go to a tuplestore, until there is but one row left or the store is cleared.
 *
 * Each reader has a slot of its own, with minimal tuples.  A row in it is good until
 * the reader goes on, the row is dropped, or, if it is not held, another row is read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_ROWS_H
#define GS_GPUWINDOW_ROWS_H

#include "executor/executor.h"
#include "utils/tuplestore.h"

#include "nodes/sort/gpusort_reader.h"

typedef struct HeldReader HeldReader;

typedef struct GsHeldRows
{
	int64		begin;			/* position of the first row that is held */
	int64		end;
	int64		read_end;		/* of those that were read: end, or more */
	Tuplestorestate *file;		/* NULL: rows are in memory */

	/* the rest is for gpuwindow_rows.c */
	MemoryContext context;		/* long-lived */
	const GsReader *reader;

	MinimalTuple *ring;
	int64		ring_size;
	MemoryContext tuples;
	Size		bytes;			/* of tuples and the ring */

	TupleTableSlot *writer;		/* for a tuple that goes to the file */

	int			n_readers;
	HeldReader *readers;
} GsHeldRows;

/*
 * reader: of the GpuWindow's child.  In CurrentMemoryContext, which
 * must live as long as the query.
 */
extern GsHeldRows *gs_held_create(EState *estate, const GsReader *reader, int n_readers);

/* Another row of the partition was read.  If the one before is not held, none may be. */
static inline void
gs_held_note_read(GsHeldRows *held)
{
	if (held->end < held->read_end)
	{
		Assert(held->begin == held->end && held->file == NULL);
		held->begin = held->end = held->read_end;
	}
	held->read_end++;
}

/*
 * Hold the row that was read last, unless it is held.  starts_peers: it is not equal, by the window's
 * ORDER BY, to the row before.
 */
extern void gs_held_append(GsHeldRows *held, TupleTableSlot *slot, bool starts_peers);

/* The positions after the last row that is held, and after the last one that was read. */
static inline int64
gs_held_end(const GsHeldRows *held)
{
	return held->end;
}

static inline int64
gs_held_read_end(const GsHeldRows *held)
{
	return held->read_end;
}

/* Are there too many rows for memory? */
static inline bool
gs_held_in_file(const GsHeldRows *held)
{
	return held->file != NULL;
}

/* A row that is held, or that was not read yet and is at hand; the slot is the reader's. */
extern TupleTableSlot *gs_held_row(GsHeldRows *held, int reader, int64 position);

/* What gs_held_append() was told of it. */
extern bool gs_held_starts_peers(GsHeldRows *held, int reader, int64 position);

/* Rows before that one are not asked for any more.  It is held, or will be read next. */
extern void gs_held_drop(GsHeldRows *held, int64 position);

static inline void
gs_held_drop_before(GsHeldRows *held, int64 position)
{
	if (held->begin < held->end && held->begin < position)
		gs_held_drop(held, position);
}

/* Drop all rows; positions begin at 0 again. */
extern void gs_held_clear(GsHeldRows *held);

#endif							/* GS_GPUWINDOW_ROWS_H */
