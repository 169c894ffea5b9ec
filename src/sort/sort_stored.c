/*-------------------------------------------------------------------------
 *
 * sort_stored.c
 *	  Storing rows of a sort and reading them back.
 *
 * A stored row is a minimal tuple, or a stub.  A row that is too large for a chunk is
 * written to a file, and a stub with its place in the file goes through the device.
 *
 * Tests: regress/large, tap/order_large
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "utils/memutils.h"

#include "compat.h"
#include "sort/sort_private.h"

/* A device writes the number of equal rows to a place that is unused in minimal tuples and in stubs. */
StaticAssertDecl(offsetof(MinimalTupleData, mt_padding) == 4 && offsetof(GsBigStub, count) == 4,
				 "rows have room for a count where GsKeep.counted says");

Tuplesortstate *
gs_stored_make_tuplesort(GsSort *sort, int options)
{
	const GsColumns *keys = sort->keys;

	return tuplesort_begin_heap(sort->tupdesc, keys->n, keys->attnos, keys->operators,
								keys->collations, keys->nulls_first, sort->work_mem_kb, NULL, options);
}

static void
prepare_comparison(GsSort *sort)
{
	const GsColumns *keys = sort->keys;
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	sort->comparison = palloc0(keys->n * sizeof(SortSupportData));
	for (int i = 0; i < keys->n; i++)
	{
		SortSupport key = &sort->comparison[i];

		key->ssup_cxt = sort->context;
		key->ssup_collation = keys->collations[i];
		key->ssup_nulls_first = keys->nulls_first[i];
		key->ssup_attno = keys->attnos[i];
		PrepareSortSupportFromOrderingOp(keys->operators[i], key);
	}
	MemoryContextSwitchTo(old);
}

int
gs_stored_compare(GsSort *sort, TupleTableSlot *a, TupleTableSlot *b, int *column)
{
	if (sort->comparison == NULL)
		prepare_comparison(sort);
	for (int i = 0; i < sort->keys->n; i++)
	{
		SortSupport key = &sort->comparison[i];
		bool		a_null;
		bool		b_null;
		Datum		a_value = slot_getattr(a, key->ssup_attno, &a_null);
		Datum		b_value = slot_getattr(b, key->ssup_attno, &b_null);
		int			order = ApplySortComparator(a_value, a_null, b_value, b_null, key);

		if (column)
			*column = i;
		if (order != 0)
			return order;
	}
	return 0;
}

static void
seek_big(GsSort *sort, int fileno, off_t offset)
{
	if (BufFileSeek(sort->big.file, fileno, offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file")));
}

/* The first large row creates the file, which lives until the transaction or the sort ends. */
GsPutRow
gs_stored_write_big(GsSort *sort, TupleTableSlot *slot, GsBigStub *stub)
{
	GsBigRows  *big = &sort->big;
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);

	if (big->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->context);

		PrepareTempTablespaces();
		big->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
	}
	else if (!big->at_end)
		seek_big(sort, big->end_fileno, big->end_offset);
	big->at_end = true;

	memset(stub, 0, sizeof(*stub));
	BufFileTell(big->file, &stub->fileno, &stub->offset);
	stub->len = tuple->t_len;
	BufFileWrite(big->file, tuple, tuple->t_len);
	BufFileTell(big->file, &big->end_fileno, &big->end_offset);
	if (should_free)
		heap_free_minimal_tuple(tuple);
	return (GsPutRow){.slot = slot, .bytes = stub, .n_bytes = sizeof(*stub), .flags = GS_ROW_EXTERNAL};
}

/* A stub's tuple, palloc'd in CurrentMemoryContext. */
static MinimalTuple
read_big(GsSort *sort, const char *row)
{
	const GsBigStub *stub = (const GsBigStub *) row;
	MinimalTuple tuple = palloc(stub->len);

	sort->big.at_end = false;
	seek_big(sort, stub->fileno, stub->offset);
	BufFileReadExact(sort->big.file, tuple, stub->len);
	memcpy(tuple->mt_padding, &stub->count, sizeof(stub->count));
	return tuple;
}

int64
gs_sort_row_count(TupleTableSlot *slot)
{
	uint32		count;

	Assert(TTS_IS_MINIMALTUPLE(slot));
	memcpy(&count, ((MinimalTupleTableSlot *) slot)->mintuple->mt_padding, sizeof(count));
	return count;
}

/* Tested before a large row is written to the file: a row without a key is put aside instead. */
bool
gs_stored_has_key(GsSort *sort, TupleTableSlot *slot)
{
	MemoryContext old;
	bool		inexact;
	uint32		len;

	if (!sort->desc->may_lack_key)
		return true;
	old = MemoryContextSwitchTo(sort->scratch);
	slot_getsomeattrs(slot, sort->desc->max_attno);
	len = gs_key_write(sort->desc, slot->tts_values, slot->tts_isnull, palloc(GS_KEY_MAX),
					   GS_KEY_MAX, &inexact);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->scratch);
	return len != GS_KEY_NONE;
}

TupleTableSlot *
gs_stored_slot(GsSort *sort, const char *row, bool external)
{
	if (external)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->scratch);
		MinimalTuple tuple;

		ExecClearTuple(sort->row_slot);
		MemoryContextReset(sort->scratch);
		tuple = read_big(sort, row);
		MemoryContextSwitchTo(old);
		return ExecStoreMinimalTuple(tuple, sort->row_slot, false);
	}
	return ExecStoreMinimalTuple((MinimalTuple) row, sort->row_slot, false);
}

/* Put a row where it lies, or a stub's row, into a slot. */
void
gs_stored_output(GsSort *sort, const char *row, uint32 flags, TupleTableSlot *slot)
{
	MemoryContext old;

	if (likely(!(flags & GS_ENTRY_EXTERNAL)))
	{
		ExecStoreMinimalTuple((MinimalTuple) row, slot, false);
		return;
	}
	old = MemoryContextSwitchTo(sort->context);
	if (sort->big_row)
		pfree(sort->big_row);
	sort->big_row = NULL;
	sort->big_row = read_big(sort, row);
	MemoryContextSwitchTo(old);
	ExecStoreMinimalTuple(sort->big_row, slot, false);
}
