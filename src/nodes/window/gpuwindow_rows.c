/*-------------------------------------------------------------------------
 *
 * gpuwindow_rows.c
 *	  The rows that a GpuWindow holds (gpuwindow_rows.h).
 *
 * In memory a row is a minimal tuple, allocated by itself, in a ring: the row at
 * position p is in the ring's place p modulo its size.  In a file it is in a
 * tuplestore, where each reader has a read pointer.  Reading and writing a
 * tuplestore's file by turns is slow; so whoever appends should not read
 * before there is need.
 *
 * That a row starts a group of peers is noted in its tuple's header, by a bit that
 * means nothing there and that hash joins use in the same way
 * (HEAP_TUPLE_HAS_MATCH).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "nodes/window/gpuwindow_rows.h"

#define STARTS_PEERS	HEAP_ONLY_TUPLE

#define MIN_RING	64			/* a power of two, as all sizes of rings are */

struct HeldReader
{
	TupleTableSlot *slot;
	int64		position;		/* of the row in the slot; -1: none */
	int64		last;			/* of the read pointer: the row returned last */
	int			pointer;		/* in the tuplestore */
};

GsHeldRows *
gs_held_create(EState *estate, const GsReader *reader, int n_readers)
{
	TupleDesc	tupdesc = ExecGetResultType(reader->child);
	GsHeldRows *held = palloc0(sizeof(GsHeldRows));

	held->context = CurrentMemoryContext;
	held->reader = reader;
	held->tuples = GenerationContextCreate(CurrentMemoryContext, "GpuWindow Rows",
										   ALLOCSET_DEFAULT_SIZES);
	held->ring_size = MIN_RING;
	held->ring = palloc(MIN_RING * sizeof(MinimalTuple));
	held->bytes = MIN_RING * sizeof(MinimalTuple);
	held->writer = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
	held->n_readers = n_readers;
	held->readers = palloc0(n_readers * sizeof(HeldReader));
	for (int i = 0; i < n_readers; i++)
	{
		held->readers[i].slot = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
		held->readers[i].position = -1;
	}
	return held;
}

static inline MinimalTuple *
place(const GsHeldRows *held, int64 position)
{
	return &held->ring[position & (held->ring_size - 1)];
}

static void
enlarge_ring(GsHeldRows *held)
{
	MinimalTuple *ring = held->ring;
	int64		size = held->ring_size;

	held->ring = MemoryContextAllocHuge(held->context, 2 * size * sizeof(MinimalTuple));
	held->ring_size = 2 * size;
	held->bytes += size * sizeof(MinimalTuple);
	for (int64 i = held->begin; i < held->end; i++)
		*place(held, i) = ring[i & (size - 1)];
	pfree(ring);
}

static void
free_tuple(GsHeldRows *held, int64 position)
{
	MinimalTuple tuple = *place(held, position);

	held->bytes -= tuple->t_len;
	pfree(tuple);
}

static void
free_tuples(GsHeldRows *held)
{
	for (int64 i = held->begin; i < held->end; i++)
		free_tuple(held, i);
}

static void
write_tuple(GsHeldRows *held, MinimalTuple tuple)
{
	ExecStoreMinimalTuple(tuple, held->writer, false);
	tuplestore_puttupleslot(held->file, held->writer);
	ExecClearTuple(held->writer);
}

/* From memory to a tuplestore. */
static void
move_to_file(GsHeldRows *held)
{
	MemoryContext old = MemoryContextSwitchTo(held->context);

	held->file = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(held->file, EXEC_FLAG_BACKWARD);
	for (int i = 0; i < held->n_readers; i++)
	{
		HeldReader *reader = &held->readers[i];

		reader->pointer = i == 0 ? 0 : tuplestore_alloc_read_pointer(held->file, EXEC_FLAG_BACKWARD);
		reader->last = held->begin - 1;
		if (reader->position >= held->begin)
			ExecMaterializeSlot(reader->slot);	/* its tuple goes */
		else
		{
			ExecClearTuple(reader->slot);
			reader->position = -1;
		}
	}
	for (int64 i = held->begin; i < held->end; i++)
		write_tuple(held, *place(held, i));
	free_tuples(held);
	MemoryContextSwitchTo(old);
}

static void
put(GsHeldRows *held, MinimalTuple tuple)
{
	if (held->end - held->begin == held->ring_size)
		enlarge_ring(held);
	*place(held, held->end++) = tuple;
	held->bytes += tuple->t_len;
	if (unlikely(held->bytes > work_mem * (Size) 1024) && held->end - held->begin > 1)
		move_to_file(held);
}

void
gs_held_append(GsHeldRows *held, TupleTableSlot *slot, bool starts_peers)
{
	MemoryContext old;
	MinimalTuple tuple;

	if (held->end == held->read_end)
		return;
	old = MemoryContextSwitchTo(held->tuples);
	tuple = ExecCopySlotMinimalTuple(slot);
	MemoryContextSwitchTo(old);
	if (starts_peers)
		tuple->t_infomask2 |= STARTS_PEERS;
	else
		tuple->t_infomask2 &= ~STARTS_PEERS;
	if (likely(held->file == NULL))
	{
		put(held, tuple);
		return;
	}
	write_tuple(held, tuple);
	pfree(tuple);
	held->end++;
}

/* Like window_gettupleslot() in nodeWindowAgg.c. */
static void
read_file(GsHeldRows *held, HeldReader *reader, int64 position)
{
	bool		forward = reader->last < position;
	int64		skipped = forward ? position - reader->last - 1 : reader->last - position - 1;

	Assert(reader->last != position);
	tuplestore_select_read_pointer(held->file, reader->pointer);
	if ((skipped > 0 && !tuplestore_skiptuples(held->file, skipped, forward)) ||
		!tuplestore_gettupleslot(held->file, forward, true, reader->slot))
		elog(ERROR, "unexpected end of tuplestore");
	reader->last = position;
}

TupleTableSlot *
gs_held_row(GsHeldRows *held, int number, int64 position)
{
	HeldReader *reader = &held->readers[number];

	if (position >= held->end)
	{
		/* it may lie elsewhere when it is asked for again */
		reader->position = -1;
		if (!gs_reader_look_ahead(held->reader, position - held->read_end + 1, reader->slot))
			elog(ERROR, "row is not at hand");
		return reader->slot;
	}
	Assert(position >= held->begin);
	if (reader->position == position)
		return reader->slot;
	if (likely(held->file == NULL))
		ExecStoreMinimalTuple(*place(held, position), reader->slot, false);
	else
	{
		MemoryContext old = MemoryContextSwitchTo(held->context);

		read_file(held, reader, position);
		MemoryContextSwitchTo(old);
	}
	reader->position = position;
	return reader->slot;
}

bool
gs_held_starts_peers(GsHeldRows *held, int reader, int64 position)
{
	MinimalTuple tuple;

	if (likely(held->file == NULL))
		tuple = *place(held, position);
	else
		tuple = ((MinimalTupleTableSlot *) gs_held_row(held, reader, position))->mintuple;
	return (tuple->t_infomask2 & STARTS_PEERS) != 0;
}

static void
clear_readers(GsHeldRows *held)
{
	for (int i = 0; i < held->n_readers; i++)
		if (held->readers[i].position >= 0)
		{
			ExecClearTuple(held->readers[i].slot);
			held->readers[i].position = -1;
		}
}

static void
drop_all(GsHeldRows *held)
{
	clear_readers(held);
	if (held->file)
		tuplestore_end(held->file);
	else
		free_tuples(held);
	held->file = NULL;
}

/* Of the rows in a tuplestore only the last one is left. */
static void
move_to_memory(GsHeldRows *held)
{
	TupleTableSlot *slot = gs_held_row(held, 0, held->end - 1);
	MemoryContext old = MemoryContextSwitchTo(held->tuples);
	MinimalTuple tuple = ExecCopySlotMinimalTuple(slot);

	MemoryContextSwitchTo(old);
	drop_all(held);
	held->begin = --held->end;
	put(held, tuple);
}

void
gs_held_drop(GsHeldRows *held, int64 position)
{
	if (likely(held->file == NULL))
		for (; held->begin < held->end && held->begin < position; held->begin++)
			free_tuple(held, held->begin);
	else if (position >= held->end)
	{
		drop_all(held);
		held->begin = held->end;
	}
	else if (position == held->end - 1)
		move_to_memory(held);
}

void
gs_held_clear(GsHeldRows *held)
{
	drop_all(held);
	held->begin = held->end = held->read_end = 0;
}
