/*-------------------------------------------------------------------------
 *
 * sort_aside.c
 *	  Rows that have no key, among those that the device sorts.
 *
 * These rows have no key: rows with a value that has no abbreviated key (key_abbrev.c), with a very long
 * text of marks under a libc collation, with some texts under ICU collations (key_icu_prove.c), and damaged
 * rows.  Such a row is put aside, into a tuplesort of the leader.  The columns' own operators merge these
 * rows into the rows that come back from the device.
 *
 * Merging compares little.  Rows of the device come in pages.  A search finds the rows of a page that come
 * before the next row put aside.  The search begins at the distance that the last search found, doubles it,
 * and then halves the rest.  If few rows were put aside, nearly all pages take one comparison.  If most rows
 * were put aside, each of them takes one or two.  Rows with equal inexact keys have yet to be settled, so
 * with such keys rows are compared one by one, until no row is left aside.  PostGIS's rows without a key
 * sort first.
 *
 * No row put aside is equal to one of the device's rows: equal values have equal
 * keys, or both have none.  Damaged rows are an exception, and text under nondeterministic ICU collations:
 * nobody takes rows of a sort with rows put aside for different ones.
 *
 * If the sort goes to the CPU before it is performed, the rows put aside
 * become the first rows of its input: the sort takes over the tuplesort.
 *
 * Tests: regress/libc_long, tap/order_long_text, tap/fault_bad_rows
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "sort/sort_private.h"

struct GsAside
{
	Tuplesortstate *tuplesort;
	uint64		rows;

	/* while merging */
	TupleTableSlot *head;		/* the next row put aside; empty: not fetched yet */
	bool		ended;			/* there is no next row put aside */
	int64		head_rank;		/* the device's rows of lower ranks come before head */
	uint64		stride;			/* rows of a page that came before the last head */
};

void
gs_aside_put(GsSort *sort, TupleTableSlot *slot)
{
	if (sort->aside == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->context);

		sort->aside = palloc0(sizeof(GsAside));
		sort->aside->tuplesort = gs_stored_make_tuplesort(sort, sort->access);
		MemoryContextSwitchTo(old);
	}
	tuplesort_puttupleslot(sort->aside->tuplesort, slot);
	sort->aside->rows++;
}

Tuplesortstate *
gs_aside_take(GsSort *sort)
{
	Tuplesortstate *tuplesort = sort->aside ? sort->aside->tuplesort : NULL;

	if (sort->aside)
		pfree(sort->aside);
	sort->aside = NULL;
	return tuplesort;
}

uint64
gs_aside_rows(const GsSort *sort)
{
	return sort->aside ? sort->aside->rows : 0;
}

void
gs_aside_perform(GsSort *sort)
{
	GsAside    *aside = sort->aside;
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	aside->head = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	sort->ahead = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
	tuplesort_performsort(aside->tuplesort);
}

/* Does a row of the device come before the head, or is it equal? */
static bool
is_before_head(GsSort *sort, TupleTableSlot *row)
{
	return gs_stored_compare(sort, row, sort->aside->head, NULL) <= 0;
}

/* How many rows come before the head, from the device's current row to the end of its page? */
static uint64
count_before_head(GsSort *sort)
{
	uint64		low = 0;
	uint64		left = gs_rows_left_in_page(sort->rows);
	uint64		high = left;
	uint64		at = Min(sort->aside->stride, high - 1);

	Assert(high > 0);
	while (low < high)
	{
		uint32		flags;
		const char *row = gs_rows_in_page(sort->rows, at, &flags);

		CHECK_FOR_INTERRUPTS();
		if (is_before_head(sort, gs_stored_slot(sort, row, (flags & GS_ENTRY_EXTERNAL) != 0)))
			low = at + 1;
		else
			high = at;
		at = high < left ? low + (high - low) / 2 : Min(2 * at + 1, high - 1);
	}
	sort->aside->stride = low < left ? low : UINT32_MAX;
	return low;
}

static GsSortStatus
return_head(GsSort *sort, TupleTableSlot *slot)
{
	GsAside    *aside = sort->aside;

	/* the tuple is valid until the next row put aside is fetched */
	ExecStoreMinimalTuple(((MinimalTupleTableSlot *) aside->head)->mintuple, slot, false);
	ExecClearTuple(aside->head);
	return GS_SORT_OK;
}

/* Does the device's current row come before the head? */
static bool
comes_first(GsSort *sort, TupleTableSlot *row)
{
	GsAside    *aside = sort->aside;

	if (gs_client_session(sort->client)->inexact > 0)
		return is_before_head(sort, row);
	Assert(sort->settling == NULL);
	if (sort->rows->rank >= aside->head_rank)
		aside->head_rank = sort->rows->rank + count_before_head(sort);
	return sort->rows->rank < aside->head_rank;
}

GsSortStatus
gs_aside_get(GsSort *sort, TupleTableSlot *slot)
{
	GsAside    *aside = sort->aside;
	TupleTableSlot *row = sort->ahead;

	if (TTS_EMPTY(aside->head) && !aside->ended)
		aside->ended = !tuplesort_gettupleslot(aside->tuplesort, true, false, aside->head, NULL);
	if (!aside->ended && (TTS_EMPTY(row) || !comes_first(sort, row)))
		return return_head(sort, slot);
	if (TTS_EMPTY(row))
	{
		ExecClearTuple(slot);
		return GS_SORT_END;
	}
	ExecStoreMinimalTuple(((MinimalTupleTableSlot *) row)->mintuple, slot, false);
	ExecClearTuple(row);
	return GS_SORT_OK;
}

void
gs_aside_end(GsSort *sort)
{
	GsAside    *aside = sort->aside;

	if (aside == NULL)
		return;
	tuplesort_end(aside->tuplesort);
	if (aside->head)
	{
		ExecDropSingleTupleTableSlot(aside->head);
		ExecDropSingleTupleTableSlot(sort->ahead);
	}
	pfree(aside);
	sort->aside = NULL;
}
