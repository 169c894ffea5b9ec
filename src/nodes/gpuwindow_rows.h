/*-------------------------------------------------------------------------
 *
 * gpuwindow_rows.h
 *	  The rows of a partition that a GpuWindow holds: those that it has read ahead of
 *	  the current one, and those that it looks back at.
 *
 * Rows have positions, from 0, in the order in which they are appended.  They are
 * dropped from the front.  Up to work_mem is held in memory; then all rows go to a
 * tuplestore, until there is but one row left or the store is cleared.
 *
 * Each reader has a slot of its own, with minimal tuples.  A row in it is good until
 * the reader goes on or the row is dropped.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUWINDOW_ROWS_H
#define GS_GPUWINDOW_ROWS_H

#include "executor/executor.h"

typedef struct GsHeldRows GsHeldRows;

/* In CurrentMemoryContext, which must live as long as the query. */
extern GsHeldRows *gs_held_create(EState *estate, TupleDesc tupdesc, int n_readers);

/* starts_peers: it is not equal, by the window's ORDER BY, to the row before. */
extern void gs_held_append(GsHeldRows *held, TupleTableSlot *slot, bool starts_peers);

/* The position after the last row. */
extern int64 gs_held_end(const GsHeldRows *held);

/* Are there too many rows for memory? */
extern bool gs_held_in_file(const GsHeldRows *held);

/* A row that is held; the slot is the reader's. */
extern TupleTableSlot *gs_held_row(GsHeldRows *held, int reader, int64 position);

/* What gs_held_append() was told of it. */
extern bool gs_held_starts_peers(GsHeldRows *held, int reader, int64 position);

/* Rows before that one, which is there, are not asked for any more. */
extern void gs_held_drop_before(GsHeldRows *held, int64 position);

/* Drop all rows; positions begin at 0 again. */
extern void gs_held_clear(GsHeldRows *held);

#endif							/* GS_GPUWINDOW_ROWS_H */
