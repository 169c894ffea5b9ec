/*-------------------------------------------------------------------------
 *
 * gpuwindow_rows.c
 *	  The rows that a GpuWindow has read and still needs (gpuwindow_rows.h).
 *
 * Each reader has a read pointer in the tuplestore.  The pointer moves to the requested row, mostly the next
 * one.  The store has the rows before page_begin.  It gets rows only when a page is left, so it is trimmed or
 * cleared only then.
 *
 * Tests: regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "nodes/window/gpuwindow_rows.h"

#define MIN_STARTS	64

struct HeldReader
{
	TupleTableSlot *slot;
	int64		position;		/* position of the row in the slot; -1: none */
	int			pointer;		/* its read pointer in the store */
	int64		next;			/* position of the row that the pointer reads next */
};

GsHeldRows *
gs_held_create(EState *estate, GsReader *reader, GsRowMatcher *matcher, int n_readers)
{
	TupleDesc	tupdesc = ExecGetResultType(reader->child);
	GsHeldRows *held = palloc0(sizeof(GsHeldRows));

	held->context = CurrentMemoryContext;
	held->reader = reader;
	held->matcher = matcher;
	held->starts = palloc(MIN_STARTS / 8);
	held->starts_size = MIN_STARTS;
	held->n_readers = n_readers;
	held->readers = palloc0(n_readers * sizeof(HeldReader));
	for (int i = 0; i < n_readers; i++)
		held->readers[i].slot = ExecInitExtraTupleSlot(estate, tupdesc, &TTSOpsMinimalTuple);
	gs_held_reset(held);
	return held;
}

/*
 * Which rows start peers
 */

static void
enlarge_starts(GsHeldRows *held)
{
	uint64	   *old = held->starts;
	int64		words = held->starts_size / 64;
	uint64	   *starts = MemoryContextAllocHuge(held->context, 2 * words * sizeof(uint64));

	for (int64 i = 0; i < 2 * words; i++)
		starts[i] = old[i % words];
	held->starts = starts;
	held->starts_size *= 2;
	pfree(old);
}

static inline void
note_start(GsHeldRows *held, int64 position, bool starts_peers)
{
	int64		bit;

	if (position - held->begin >= held->starts_size)
		enlarge_starts(held);
	bit = position & (held->starts_size - 1);
	if (starts_peers)
		held->starts[bit / 64] |= UINT64CONST(1) << (bit % 64);
	else
		held->starts[bit / 64] &= ~(UINT64CONST(1) << (bit % 64));
}

/*
 * The tuplestore
 */

static void
make_store(GsHeldRows *held)
{
	MemoryContext old = MemoryContextSwitchTo(held->context);

	held->store = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(held->store, EXEC_FLAG_BACKWARD);
	for (int i = 1; i < held->n_readers; i++)
		held->readers[i].pointer = tuplestore_alloc_read_pointer(held->store, EXEC_FLAG_BACKWARD);
	MemoryContextSwitchTo(old);
}

static void
clear_store(GsHeldRows *held)
{
	if (held->stored > 0)
		tuplestore_clear(held->store);
	held->stored = 0;
}

/* Move the reader in the store to the row at a position. */
static void
move_pointer(GsHeldRows *held, HeldReader *reader, int64 position)
{
	tuplestore_select_read_pointer(held->store, reader->pointer);
	/* false where it goes back to the first row */
	if (position > reader->next)
		(void) tuplestore_skiptuples(held->store, position - reader->next, true);
	else if (position < reader->next)
		(void) tuplestore_skiptuples(held->store, reader->next - position, false);
	reader->next = position;
}

/* Drop rows that are no longer needed, if they are half of the store. */
static void
trim_store(GsHeldRows *held)
{
	int64		needed = held->page_begin - held->begin;

	/* in a file it stays */
	if (needed > held->stored / 2 || !tuplestore_in_memory(held->store))
		return;
	for (int i = 0; i < held->n_readers; i++)
		if (held->readers[i].next < held->begin)
			move_pointer(held, &held->readers[i], held->begin);
	tuplestore_trim(held->store);
	held->stored = needed;
}

/* The page is about to be left: store the rows that are needed. */
static void
leave_page(GsHeldRows *held)
{
	int64		position = Max(held->begin, held->page_begin);

	if (held->begin >= held->page_begin)
		clear_store(held);
	else
		trim_store(held);
	if (held->stored == 0)
		for (int i = 0; i < held->n_readers; i++)
			held->readers[i].next = position;
	if (position < held->end && held->store == NULL)
		make_store(held);
	for (; position < held->end; position++)
	{
		tuplestore_puttupleslot(held->store, gs_held_row(held, 0, position));
		held->stored++;
	}
	held->page_begin = held->end;

	/* the rows in slots lie elsewhere now */
	for (int i = 0; i < held->n_readers; i++)
		held->readers[i].position = -1;
}

/*
 * Rows
 */

bool
gs_held_read(GsHeldRows *held)
{
	GsRowMatch match;

	if (held->is_complete)
		return false;
	if (held->begin >= held->end && held->stored == 0)
		held->page_begin = held->end;
	else if (!gs_reader_stays_in_page(held->reader))
		leave_page(held);
	held->last = gs_reader_next(held->reader);
	held->is_complete = true;
	if (TupIsNull(held->last))
		return false;
	match = gs_row_matcher_match(held->matcher, held->last);
	if (match == GS_OTHER_PARTITION)
		return false;
	held->is_complete = false;
	note_start(held, held->end++, match == GS_SAME_PARTITION);
	return true;
}

bool
gs_held_begin_partition(GsHeldRows *held)
{
	if (TupIsNull(held->last))
		return false;
	clear_store(held);
	for (int i = 0; i < held->n_readers; i++)
	{
		held->readers[i].position = -1;
		held->readers[i].next = 0;
	}
	held->begin = held->page_begin = 0;
	held->end = 1;
	held->is_complete = false;
	note_start(held, 0, true);
	return true;
}

TupleTableSlot *
gs_held_row(GsHeldRows *held, int number, int64 position)
{
	HeldReader *reader = &held->readers[number];

	Assert(position >= held->begin && position < held->end);
	if (position == held->end - 1 && !held->is_complete)
		return held->last;
	if (reader->position == position)
		return reader->slot;
	if (position >= held->page_begin)
		gs_reader_look_back(held->reader, held->end - position - !held->is_complete,
							reader->slot);
	else
	{
		move_pointer(held, reader, position);
		if (!tuplestore_gettupleslot(held->store, true, false, reader->slot))
			elog(ERROR, "unexpected end of tuplestore");
		reader->next++;
	}
	reader->position = position;
	return reader->slot;
}

void
gs_held_reset(GsHeldRows *held)
{
	if (held->store)
		tuplestore_end(held->store);
	held->store = NULL;
	held->stored = 0;
	held->last = NULL;
	held->begin = held->page_begin = held->end = 0;
	held->is_complete = false;
	for (int i = 0; i < held->n_readers; i++)
	{
		ExecClearTuple(held->readers[i].slot);
		held->readers[i].position = -1;
		held->readers[i].next = 0;
	}
}
