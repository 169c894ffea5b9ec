/*-------------------------------------------------------------------------
 *
 * sort_stored.c
 *	  Storing rows of a sort and reading them back, as all places and ways
 *	  need it.
 *
 * A stored row is a minimal tuple, or the stub of one in the file of large
 * rows (sort_big.h).
 *
 * Called by the other files of the sort (sort_private.h); calls none of them.
 *
 * Tests: regress/large, regress/plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "sort/sort_private.h"

Tuplesortstate *
gs_stored_make_tuplesort(GsSort *sort, int options)
{
	const GsSortKeys *keys = sort->keys;

	return tuplesort_begin_heap(sort->tupdesc, keys->ncols, keys->attnos, keys->operators,
								keys->collations, keys->nulls_first, sort->work_mem_kb, NULL, options);
}

SortSupport
gs_stored_comparison(GsSort *sort)
{
	const GsSortKeys *keys = sort->keys;
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	SortSupport comparison = palloc0(keys->ncols * sizeof(SortSupportData));

	for (int i = 0; i < keys->ncols; i++)
	{
		SortSupport key = &comparison[i];

		key->ssup_cxt = sort->context;
		key->ssup_collation = keys->collations[i];
		key->ssup_nulls_first = keys->nulls_first[i];
		key->ssup_attno = keys->attnos[i];
		PrepareSortSupportFromOrderingOp(keys->operators[i], key);
	}
	MemoryContextSwitchTo(old);
	return comparison;
}

int
gs_stored_compare(SortSupport comparison, int ncols, TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = 0; i < ncols; i++)
	{
		SortSupport key = &comparison[i];
		bool		a_null;
		bool		b_null;
		Datum		a_value = slot_getattr(a, key->ssup_attno, &a_null);
		Datum		b_value = slot_getattr(b, key->ssup_attno, &b_null);
		int			order = ApplySortComparator(a_value, a_null, b_value, b_null, key);

		if (order != 0)
			return order;
	}
	return 0;
}

/* The row goes into the file of large rows, which the first one creates. */
GsPutRow
gs_stored_write_big(GsSort *sort, TupleTableSlot *slot, GsBigStub *stub)
{
	GsPutRow	row = {.slot = slot};

	if (sort->big == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->context);

		sort->big = gs_big_begin();
		MemoryContextSwitchTo(old);
	}
	gs_big_write(sort->big, slot, stub);
	row.bytes = stub;
	row.n_bytes = sizeof(*stub);
	row.flags = GS_ROW_EXTERNAL;
	return row;
}

/* Spares writing a large row down only to learn that it has no key. */
bool
gs_stored_has_key(GsSort *sort, TupleTableSlot *slot)
{
	MemoryContext old;
	bool		inexact;
	uint32		len;

	if (!sort->desc->whole && !sort->desc->abbreviated)
		return true;
	old = MemoryContextSwitchTo(sort->scratch);
	slot_getsomeattrs(slot, sort->desc->max_attno);
	len = gs_key_write(sort->desc, slot->tts_values, slot->tts_isnull, palloc(GS_KEY_MAX),
					   GS_KEY_MAX, &inexact);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->scratch);
	return len != GS_KEY_TOO_LONG;
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
		tuple = gs_big_read(sort->big, (const GsBigStub *) row);
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
	sort->big_row = gs_big_read(sort->big, (const GsBigStub *) row);
	MemoryContextSwitchTo(old);
	ExecStoreMinimalTuple(sort->big_row, slot, false);
}
