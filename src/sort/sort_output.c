/*-------------------------------------------------------------------------
 *
 * sort_output.c
 *	  The sort as its consumers see it: the way out.
 *
 * Settling
 *	  A key is inexact if it was cut off at GS_KEY_MAX, is abbreviated, or ends before the last
 *	  column.  Ties are rows with equal keys.  They are neighbours.  If their key is inexact, each is
 *	  marked so, and a tuplesort with the columns' own operators sorts them.  This works only in forward
 *	  direction.  So with random access and inexact keys, all rows are settled first, and kept in a
 *	  tuplestore.
 *
 * Rows put aside
 *	  Rows without a key (sort_aside.c) are merged in, also only in forward direction.  With
 *	  random access they are merged when the tuplestore is filled.
 *
 * Equal rows
 *	  If the caller needs only the first of equal rows, the others are left out here, too, if
 *	  the keys tell that they are equal.
 *
 * Sources
 *	  A performed sort has one source of rows, a table of functions (GsSortSource): pages, the tuplestore
 *	  that holds all rows for random access, or the tuplesort.
 *
 * Tests: regress/plans, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "sort/sort_private.h"

/* Sort the current row, which is given, and its ties. */
static GsSortStatus
settle_ties(GsSort *sort, const char *row, uint32 flags)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	if (sort->settling == NULL)
		sort->settling = gs_stored_make_tuplesort(sort, TUPLESORT_NONE);
	else
		tuplesort_reset(sort->settling);
	MemoryContextSwitchTo(old);
	for (;;)
	{
		uint32		next;

		CHECK_FOR_INTERRUPTS();
		tuplesort_puttupleslot(sort->settling,
							   gs_stored_slot(sort, row, (flags & GS_ENTRY_EXTERNAL) != 0));
		sort->report.settled++;
		if (gs_rows_peek(sort->rows, &next) != GS_CLIENT_OK)
			return GS_SORT_LOST;
		if (!(next & GS_ENTRY_TIE))
			break;
		if (gs_rows_move(sort->rows, true, &row, &flags) != GS_CLIENT_OK)
			return GS_SORT_LOST;
	}
	tuplesort_performsort(sort->settling);
	sort->in_ties = true;
	return GS_SORT_OK;
}

/* Settle the ties that begin with this row, and return the first of them. */
static GsSortStatus
get_settled_row(GsSort *sort, const char *row, uint32 flags, TupleTableSlot *slot)
{
	GsSortStatus status = settle_ties(sort, row, flags);

	if (status != GS_SORT_OK)
		return status;
	if (!tuplesort_gettupleslot(sort->settling, true, false, slot, NULL))
		elog(ERROR, "a sort of ties returned no row");
	return GS_SORT_OK;
}

static GsSortStatus
get_device_row(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	const char *row;
	uint32		flags;

	if (unlikely(sort->in_ties))
	{
		if (tuplesort_gettupleslot(sort->settling, true, false, slot, NULL))
			return GS_SORT_OK;
		sort->in_ties = false;
	}
	do
	{
		if (unlikely(gs_rows_move(sort->rows, forward, &row, &flags) != GS_CLIENT_OK))
			return GS_SORT_LOST;
		if (sort->desc->has_libc && unlikely(!gs_sample_page(sort)))
			return GS_SORT_LOST;

		/* equal rows of several runs; most were dropped before */
	} while (unlikely(sort->first_of_equal && row != NULL && (flags & GS_ENTRY_TIE) != 0));
	if (unlikely(row == NULL))
	{
		ExecClearTuple(slot);
		return GS_SORT_END;
	}
	if (unlikely((flags & GS_ENTRY_INEXACT) != 0 && !gs_rows_next_differs(sort->rows)))
	{
		Assert(forward && !sort->tuplestore);
		return get_settled_row(sort, row, flags, slot);
	}
	gs_stored_output(sort, row, flags, slot);
	return GS_SORT_OK;
}

/* Get the next row, settled or put aside. */
static GsSortStatus
get_row(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	if (likely(sort->aside == NULL))
		return get_device_row(sort, forward, slot);
	Assert(forward && !sort->tuplestore);
	if (TTS_EMPTY(sort->ahead) && get_device_row(sort, true, sort->ahead) == GS_SORT_LOST)
		return GS_SORT_LOST;
	return gs_aside_get(sort, slot);
}

/*
 * Do no two returned rows have equal keys?  Each run drops rows only among its own, and no row put aside is
 * compared with the device's rows.
 */
static bool
returns_each_key_once(const GsSort *sort)
{
	if (sort->aside)
		return false;
	return sort->report.session.counted ||
		(sort->first_of_equal && !sort->drops_by_group && sort->report.session.n_runs == 0);
}

bool
gs_sort_count_distinct(const GsSort *sort, uint64 *count)
{
	if (sort->source == NULL || sort->place != GS_SORT_DEVICE || !returns_each_key_once(sort) ||
		sort->keep.limit > 0)
		return false;
	*count = sort->rows->n;
	return true;
}

bool
gs_sort_page(const GsSort *sort, GsSortPage *page)
{
	if (sort->place != GS_SORT_DEVICE || sort->aside || sort->tuplestore ||
		(sort->first_of_equal && !returns_each_key_once(sort)) ||
		gs_client_session(sort->client)->inexact > 0)
		return false;
	page->page = gs_rows_page(sort->rows, &page->bytes, &page->first);
	page->n = gs_rows_left_in_page(sort->rows);

	page->one_of_equal = returns_each_key_once(sort);
	page->counted = sort->report.session.counted;
	return true;
}

void
gs_sort_take(GsSort *sort, uint32 n)
{
	gs_rows_advance(sort->rows, n);
	sort->returned = true;
}

static GsSortStatus
get_from_pages(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	GsSortStatus status = get_row(sort, forward, slot);

	sort->returned |= status == GS_SORT_OK;
	return status;
}

static void
rescan_pages(GsSort *sort)
{
	GsRowsPosition start = {.rank = -1};

	gs_rows_seek(sort->rows, &start);
}

static void
mark_page(GsSort *sort)
{
	gs_rows_tell(sort->rows, &sort->mark);
}

static void
restore_page(GsSort *sort)
{
	gs_rows_seek(sort->rows, &sort->mark);
}

static GsSortStatus
skip_in_pages(GsSort *sort, uint64 n)
{
	bool		found;

	if (gs_rows_skip(sort->rows, n, &found) != GS_CLIENT_OK ||
		(sort->desc->has_libc && !gs_sample_page(sort)))
		return GS_SORT_LOST;
	return found ? GS_SORT_OK : GS_SORT_END;
}

static bool
count_in_pages(const GsSort *sort, uint64 *count)
{
	*count = sort->rows->n;
	return gs_rows_is_one_range(sort->rows);
}

static const GsSortSource pages = {
	get_from_pages, rescan_pages, mark_page, restore_page, skip_in_pages, count_in_pages
};

/* Settle all rows now, for random access. */
static GsSortStatus
fill_store(GsSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	Tuplestorestate *store = tuplestore_begin_heap(true, false, sort->work_mem_kb);
	GsSortStatus status;

	tuplestore_set_eflags(store, EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	(void) tuplestore_alloc_read_pointer(store,
										 EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	MemoryContextSwitchTo(old);
	while ((status = get_row(sort, true, slot)) == GS_SORT_OK)
	{
		CHECK_FOR_INTERRUPTS();
		tuplestore_puttupleslot(store, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	sort->tuplestore = store;
	if (status == GS_SORT_LOST)
		return GS_SORT_LOST;
	tuplestore_select_read_pointer(store, 0);
	tuplestore_rescan(store);
	return GS_SORT_OK;
}

static GsSortStatus
get_from_store(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	return tuplestore_gettupleslot(sort->tuplestore, forward, false, slot) ? GS_SORT_OK : GS_SORT_END;
}

static void
rescan_store(GsSort *sort)
{
	tuplestore_rescan(sort->tuplestore);
}

static void
mark_store(GsSort *sort)
{
	tuplestore_copy_read_pointer(sort->tuplestore, 0, 1);
}

static void
restore_store(GsSort *sort)
{
	tuplestore_copy_read_pointer(sort->tuplestore, 1, 0);
}

static GsSortStatus
skip_in_store(GsSort *sort, uint64 n)
{
	return tuplestore_skiptuples(sort->tuplestore, n, true) ? GS_SORT_OK : GS_SORT_END;
}

static bool
count_in_store(const GsSort *sort, uint64 *count)
{
	*count = tuplestore_tuple_count(sort->tuplestore);
	return tuplestore_in_memory(sort->tuplestore);
}

static const GsSortSource store = {
	get_from_store, rescan_store, mark_store, restore_store, skip_in_store, count_in_store
};

static GsSortStatus
get_from_tuplesort(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	/* a window asks for one row more than it needs: the first that fails its run condition */
	if (sort->bound_left == 0)
		return GS_SORT_END;
	sort->bound_left--;
	return tuplesort_gettupleslot(sort->tuplesort, forward, false, slot, NULL) ?
		GS_SORT_OK : GS_SORT_END;
}

static void
rescan_tuplesort(GsSort *sort)
{
	tuplesort_rescan(sort->tuplesort);
}

static void
mark_in_tuplesort(GsSort *sort)
{
	tuplesort_markpos(sort->tuplesort);
}

static void
restore_in_tuplesort(GsSort *sort)
{
	tuplesort_restorepos(sort->tuplesort);
}

static GsSortStatus
skip_in_tuplesort(GsSort *sort, uint64 n)
{
	return tuplesort_skiptuples(sort->tuplesort, n, true) ? GS_SORT_OK : GS_SORT_END;
}

static const GsSortSource sorted_by_cpu = {
	get_from_tuplesort, rescan_tuplesort, mark_in_tuplesort, restore_in_tuplesort, skip_in_tuplesort, NULL
};


GsSortStatus
gs_output_begin(GsSort *sort)
{
	bool		inexact = false;

	sort->mark.rank = -1;
	sort->source = sort->place == GS_SORT_CPU ? &sorted_by_cpu : &pages;
	sort->direct = sort->place == GS_SORT_DEVICE && sort->aside == NULL;
	if (!sort->random_access || sort->place == GS_SORT_CPU)
		return GS_SORT_OK;
	if (sort->aside)
		inexact = true;
	else if (sort->place == GS_SORT_DEVICE)
		inexact = gs_client_session(sort->client)->inexact > 0;
	else
		for (int i = 0; i < sort->local.n_chunks; i++)
			inexact |= sort->local.chunks[i].inexact > 0;
	if (!inexact)
		return GS_SORT_OK;
	sort->direct = false;
	sort->source = &store;
	return fill_store(sort);
}

GsSortStatus
gs_sort_get(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	if (likely(sort->direct && forward && !sort->in_ties))
	{
		uint32		others = GS_ENTRY_EXTERNAL | GS_ENTRY_INEXACT | (sort->first_of_equal ? GS_ENTRY_TIE : 0);
		const char *row = gs_rows_next_in_page(sort->rows, others);

		if (likely(row != NULL))
		{
			sort->returned = true;
			ExecStoreMinimalTuple((MinimalTuple) row, slot, false);
			return GS_SORT_OK;
		}
	}
	return sort->source->get(sort, forward, slot);
}

bool
gs_sort_can_rescan(const GsSort *sort)
{
	return sort->source != NULL && sort->random_access;
}

void
gs_sort_rescan(GsSort *sort)
{
	sort->source->rescan(sort);
}

void
gs_sort_mark(GsSort *sort)
{
	sort->returned = true;
	sort->source->mark(sort);
}

void
gs_sort_restore(GsSort *sort)
{
	sort->source->restore(sort);
}

GsSortStatus
gs_sort_skip(GsSort *sort, uint64 n)
{
	Assert(sort->random_access);
	sort->returned = true;
	return sort->source->skip(sort, n);
}

bool
gs_sort_count_rows(const GsSort *sort, uint64 *count)
{
	Assert(sort->random_access);
	return sort->source->count != NULL && sort->source->count(sort, count);
}

void
gs_output_end(GsSort *sort)
{
	if (sort->settling)
		tuplesort_end(sort->settling);
	sort->settling = NULL;
	sort->in_ties = false;
	if (sort->tuplestore)
		tuplestore_end(sort->tuplestore);
	sort->tuplestore = NULL;
	gs_aside_end(sort);
	if (sort->rows)
		gs_rows_end(sort->rows);
	sort->rows = NULL;
	if (sort->big_row)
		pfree(sort->big_row);
	sort->big_row = NULL;
	sort->direct = false;
	sort->source = NULL;
}
