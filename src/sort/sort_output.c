/*-------------------------------------------------------------------------
 *
 * sort_output.c
 *	  The sort as its consumers see it: the way out.
 *
 * Calls sort_aside.c and sort_stored.c; sort.c alone calls it.
 *
 * Settling
 *	  A key longer than GS_KEY_MAX went to the device cut off; an abbreviated key, and one that
 *	  ends before the last column, tells only so much.  Rows whose inexact keys are equal come
 *	  as a run, every row of it marked inexact; a tuplesort with the columns' own operators puts
 *	  the run in order.  This works in forward direction only, so where random access is asked
 *	  for and any key is inexact, all rows are settled first and kept in a tuplestore.
 *
 * Rows put aside
 *	  Those without a key (sort_aside.c) are merged in, also in forward
 *	  direction only, and where random access is asked for beforehand.
 *
 * Equal rows
 *	  Where the caller needs the first one of equal rows only, the others are left
 *	  out here, too, if the keys tell them: one row comes of each group.
 *
 * Leaving out
 *	  After a restart (sort.h) the rows that were returned before must not be
 *	  returned again.  See GsSkip and gs_rows_track().  They must be among the new
 *	  rows, and stand where they stood: going on behind them is right then, whatever the
 *	  other rows are.  So the hashes of those before the last group must have the same
 *	  sum, and the last group all the rows that were returned of it: until the last
 *	  one is found none is returned.  Else the restart ends in an error.
 *	  Where one row came of each group of equal ones, as many groups are left out as
 *	  rows were returned; nothing tells whether they are the same ones, so the input
 *	  must be known to be.  Where some rows came of each group, the sort cannot tell which
 *	  they were, and the restart ends in an error.
 *
 * Tests: regress/plans, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "sort/sort_private.h"

gs_compat_noreturn static void
report_lost(const GsSort *sort)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("gpusort lost its device during a sort"),
			 sort->rerun ?
			 errdetail("Some sorted rows had been returned already, and cannot be told apart from the others.") :
			 errdetail("The sort's input cannot be computed a second time."),
			 errhint("Retry the query.")));
}

/* Put the current run into a tuplesort, when row is its first row. */
static GsSortStatus
settle_run(GsSort *sort, const char *row, uint32 flags)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	if (sort->settling == NULL)
		sort->settling = gs_stored_make_tuplesort(sort, TUPLESORT_NONE);
	else
		tuplesort_reset(sort->settling);
	MemoryContextSwitchTo(old);
	sort->collecting = true;
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
	sort->collecting = false;
	sort->in_run = true;
	return GS_SORT_OK;
}

/* Return the first row of a run to be settled. */
static GsSortStatus
get_settled_row(GsSort *sort, const char *row, uint32 flags, TupleTableSlot *slot)
{
	GsSortStatus status = settle_run(sort, row, flags);

	if (status != GS_SORT_OK)
		return status;
	if (!tuplesort_gettupleslot(sort->settling, true, false, slot, NULL))
		elog(ERROR, "run of equal keys is empty");
	return GS_SORT_OK;
}

static GsSortStatus
get_device_row(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	const char *row;
	uint32		flags;

	if (unlikely(sort->in_run))
	{
		if (tuplesort_gettupleslot(sort->settling, true, false, slot, NULL))
			return GS_SORT_OK;
		sort->in_run = false;
	}
	do
	{
		if (unlikely(gs_rows_move(sort->rows, forward, &row, &flags) != GS_CLIENT_OK))
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
		Assert(forward && !sort->settled);
		return get_settled_row(sort, row, flags, slot);
	}
	gs_stored_output(sort, row, flags, slot);
	return GS_SORT_OK;
}

/* The next row, of the device's as they are settled, or of those put aside. */
static GsSortStatus
merge_rows(GsSort *sort, TupleTableSlot *slot)
{
	TupleTableSlot *row = sort->ahead;

	if (TTS_EMPTY(row))
	{
		if (gs_aside_is_later(sort))
			row = slot;
		if (get_device_row(sort, true, row) == GS_SORT_LOST)
			return GS_SORT_LOST;
	}
	return gs_aside_get(sort, row, slot);
}

static GsSortStatus
get_row(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	if (likely(sort->aside == NULL))
		return get_device_row(sort, forward, slot);
	Assert(forward && !sort->settled);
	return merge_rows(sort, slot);
}

/* Does each row that is returned have another key than the one before? */
static bool
returns_each_key_once(const GsSort *sort)
{
	return sort->first_of_equal && !sort->drops_by_group && sort->layout.n_parts == 0 &&
		sort->report.session.n_runs == 0;
}

bool
gs_sort_page(const GsSort *sort, GsSortPage *page)
{
	if (sort->place != GS_SORT_DEVICE || sort->aside || sort->settled ||
		(sort->first_of_equal && !returns_each_key_once(sort)) ||
		gs_client_session(sort->client)->inexact > 0)
		return false;
	page->page = gs_rows_page(sort->rows, &page->first);
	page->n = gs_rows_left_in_page(sort->rows);

	/* keys with parts do not tell which rows are equal */
	page->ties_are_equal = sort->layout.n_parts == 0;
	return true;
}

void
gs_sort_take(GsSort *sort, uint32 n)
{
	if (sort->rerun && !sort->repeatable)
		for (uint32 i = 1; i <= n; i++)
		{
			uint32		flags;
			const char *row = gs_rows_in_page(sort->rows, i, &flags);

			Assert(!(flags & GS_ENTRY_EXTERNAL));
			sort->emitted_sum += gs_tuple_hash((const MinimalTupleData *) row);
		}
	gs_rows_advance(sort->rows, n);
	sort->emitted += n;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

static uint64
slot_hash(TupleTableSlot *slot)
{
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	uint64		hash = gs_tuple_hash(tuple);

	if (should_free)
		heap_free_minimal_tuple(tuple);
	return hash;
}

/* Is this a row that was returned before the restart?  Once for each. */
static bool
leave_out(GsSkip *skip, TupleTableSlot *slot)
{
	uint64		hash = slot_hash(slot);
	uint64	   *found = bsearch(&hash, skip->hashes, skip->n, sizeof(uint64), compare_hashes);

	if (found == NULL || skip->counts[found - skip->hashes] == 0)
		return false;
	skip->counts[found - skip->hashes]--;
	skip->left--;
	return true;
}

/* Leave out all rows that were returned before the restart. */
static void
skip_rows(GsSort *sort, TupleTableSlot *slot)
{
	GsSkip	   *skip = &sort->skip;
	MemoryContext old;
	SortSupport comparison;
	TupleTableSlot *first;

	for (; skip->before > 0; skip->before--)
	{
		CHECK_FOR_INTERRUPTS();
		if (!tuplesort_gettupleslot(sort->tuplesort, true, false, slot, NULL))
			report_lost(sort);
		if (!sort->repeatable)
			skip->sum -= slot_hash(slot);
	}
	if (skip->sum != 0)
		report_lost(sort);
	if (skip->left == 0)
		return;

	old = MemoryContextSwitchTo(sort->context);
	comparison = gs_stored_comparison(sort);
	first = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	skip->held = tuplestore_begin_heap(false, false, sort->work_mem_kb);
	MemoryContextSwitchTo(old);
	while (skip->left > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!tuplesort_gettupleslot(sort->tuplesort, true, false, slot, NULL))
			report_lost(sort);
		if (TTS_EMPTY(first))
			ExecCopySlot(first, slot);
		else if (gs_stored_compare(comparison, sort->keys->ncols, first, slot) != 0)
			report_lost(sort);
		if (!leave_out(skip, slot))
			tuplestore_puttupleslot(skip->held, slot);
	}
	ExecDropSingleTupleTableSlot(first);
}

/*
 * Get the first row behind so many groups of equal rows, each of which one row was
 * returned of before the restart.
 */
static GsSortStatus
skip_groups(GsSort *sort, TupleTableSlot *slot)
{
	GsSkip	   *skip = &sort->skip;
	SortSupport comparison = gs_stored_comparison(sort);
	TupleTableSlot *last = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	uint64		begun = 0;
	bool		found;

	while ((found = tuplesort_gettupleslot(sort->tuplesort, true, true, slot, NULL)))
	{
		CHECK_FOR_INTERRUPTS();
		if (TTS_EMPTY(last) || gs_stored_compare(comparison, skip->group_cols, last, slot) != 0)
		{
			if (begun++ == skip->groups)
				break;
			ExecCopySlot(last, slot);
		}
	}
	ExecDropSingleTupleTableSlot(last);
	pfree(comparison);

	/* the input was another one the second time */
	if (begun < skip->groups)
		report_lost(sort);
	skip->groups = 0;
	return found ? GS_SORT_OK : GS_SORT_END;
}

static GsSortStatus
get_cpu(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	GsSkip	   *skip = &sort->skip;

	/* backward, the rows left out would have to come up again */
	if (unlikely(!forward && (skip->before > 0 || skip->n > 0 || skip->groups > 0)))
		report_lost(sort);
	if (unlikely(skip->groups > 0))
		return skip_groups(sort, slot);
	if (unlikely(skip->before > 0 || skip->left > 0))
		skip_rows(sort, slot);
	if (unlikely(skip->held != NULL))
	{
		if (tuplestore_gettupleslot(skip->held, true, false, slot))
			return GS_SORT_OK;
		tuplestore_end(skip->held);
		skip->held = NULL;
	}
	CHECK_FOR_INTERRUPTS();
	/* a window asks for the row behind those that pass its run condition, too */
	if (sort->bound_left == 0)
		return GS_SORT_END;
	sort->bound_left--;
	return tuplesort_gettupleslot(sort->tuplesort, forward, false, slot, NULL) ?
		GS_SORT_OK : GS_SORT_END;
}

GsSortStatus
gs_sort_get(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	GsSortStatus status;

	Assert(sort->performed);
	if (likely(sort->direct && forward && !sort->in_run))
	{
		uint32		others = GS_ENTRY_EXTERNAL | GS_ENTRY_INEXACT | (sort->first_of_equal ? GS_ENTRY_TIE : 0);
		const char *row = gs_rows_next_in_page(sort->rows, others);

		if (likely(row != NULL))
		{
			sort->emitted++;
			ExecStoreMinimalTuple((MinimalTuple) row, slot, false);
			return GS_SORT_OK;
		}
	}
	if (sort->place == GS_SORT_CPU)
		return get_cpu(sort, forward, slot);
	if (sort->settled)
		return tuplestore_gettupleslot(sort->settled, forward, false, slot) ?
			GS_SORT_OK : GS_SORT_END;
	if (unlikely(!forward))
		sort->wandered = true;
	status = get_row(sort, forward, slot);
	if (likely(status == GS_SORT_OK && forward))
	{
		sort->emitted++;
		if (sort->rerun && !sort->repeatable && sort->place == GS_SORT_DEVICE)
			sort->emitted_sum += slot_hash(slot);
	}
	return status;
}

/* Settle everything now, as random access needs. */
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
	sort->settled = store;
	if (status == GS_SORT_LOST)
		return GS_SORT_LOST;
	tuplestore_select_read_pointer(store, 0);
	tuplestore_rescan(store);
	return GS_SORT_OK;
}

GsSortStatus
gs_output_begin(GsSort *sort)
{
	bool		inexact = false;

	sort->mark.rank = -1;
	sort->direct = sort->place == GS_SORT_DEVICE && sort->aside == NULL &&
		(!sort->rerun || sort->repeatable);
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
	return fill_store(sort);
}

bool
gs_sort_can_rescan(const GsSort *sort)
{
	return sort->performed && sort->random_access && sort->skip.before == 0 &&
		sort->skip.n == 0 && sort->skip.groups == 0;
}

void
gs_sort_rescan(GsSort *sort)
{
	GsRowsPlace start = {.rank = -1};

	Assert(sort->performed);
	sort->wandered = true;
	if (sort->place == GS_SORT_CPU)
		tuplesort_rescan(sort->tuplesort);
	else if (sort->settled)
		tuplestore_rescan(sort->settled);
	else
		gs_rows_seek(sort->rows, &start);
}

/* Which rows are still to be left out is not part of a mark, nor counted. */
static void
begin_wandering(GsSort *sort)
{
	sort->wandered = true;
	if (sort->skip.before > 0 || sort->skip.left > 0 || sort->skip.held != NULL ||
		sort->skip.groups > 0)
		report_lost(sort);
}

void
gs_sort_mark(GsSort *sort)
{
	begin_wandering(sort);
	if (sort->place == GS_SORT_CPU)
		tuplesort_markpos(sort->tuplesort);
	else if (sort->settled)
		tuplestore_copy_read_pointer(sort->settled, 0, 1);
	else
		gs_rows_tell(sort->rows, &sort->mark);
}

GsSortStatus
gs_sort_skip(GsSort *sort, uint64 n)
{
	bool		found;

	Assert(sort->performed && sort->random_access);
	begin_wandering(sort);
	if (sort->place == GS_SORT_CPU)
		found = tuplesort_skiptuples(sort->tuplesort, n, true);
	else if (sort->settled)
		found = tuplestore_skiptuples(sort->settled, n, true);
	else if (gs_rows_skip(sort->rows, n, &found) != GS_CLIENT_OK)
		return GS_SORT_LOST;
	return found ? GS_SORT_OK : GS_SORT_END;
}

bool
gs_sort_count_rows(const GsSort *sort, uint64 *count)
{
	Assert(sort->performed && sort->random_access);
	if (sort->place == GS_SORT_CPU)
		return false;
	if (sort->settled)
	{
		*count = tuplestore_tuple_count(sort->settled);
		return tuplestore_in_memory(sort->settled);
	}
	*count = sort->rows->n;
	return gs_rows_is_one_range(sort->rows);
}

void
gs_sort_restore(GsSort *sort)
{
	if (sort->place == GS_SORT_CPU)
		tuplesort_restorepos(sort->tuplesort);
	else if (sort->settled)
		tuplestore_copy_read_pointer(sort->settled, 1, 0);
	else
		gs_rows_seek(sort->rows, &sort->mark);
}

/* What was returned of the rows that are equal in so many first columns. */
typedef enum Returned
{
	RETURNED_ALL,				/* of those that came before the last ones */
	RETURNED_FIRST,				/* one row of each group */
	RETURNED_SOME				/* the sort cannot tell */
} Returned;

/*
 * The device may drop rows, of groups (keep.group_cols) or of equal rows (keep.unique):
 *
 *		it drops by		one row came of each group if
 *		groups			only the first of equal ones comes, or the first of each group, and no key was
 *						cut; and all rows are in one range, since other ranges have groups in common with it
 *		equal rows		only the first of equal ones comes, also where ranges meet
 *
 * Rows put aside are of no group.  If one row came of each, their number tells which, unless the
 * input may be another one the second time.  If none was dropped, all were returned.
 */
static Returned
what_was_returned(const GsSort *sort, int *group_cols)
{
	bool		one_each = sort->first_of_equal;

	*group_cols = sort->keys->ncols;
	if (sort->place != GS_SORT_DEVICE || !(sort->drops_by_group || sort->keep.unique))
		return RETURNED_ALL;
	if (sort->drops_by_group)
	{
		*group_cols = sort->keep.group_cols;
		one_each |= sort->keep.group_first == 1 && !sort->keep.group_ties &&
			gs_client_session(sort->client)->inexact == 0;
		one_each &= sort->report.session.n_runs == 0;
	}
	if (one_each && sort->aside == NULL && sort->repeatable)
		return RETURNED_FIRST;
	return sort->first_of_equal || sort->report.session.n_dropped > 0 ? RETURNED_SOME : RETURNED_ALL;
}

/* Of the last group of equal keys, the rows with these hashes are left out. */
static void
plan_skip_of_group(GsSort *sort, const GsRowHashes *latest)
{
	GsSkip	   *skip = &sort->skip;
	uint64		n = latest->n;

	skip->hashes = MemoryContextAlloc(sort->context, Max(n, 1) * sizeof(uint64));
	skip->counts = MemoryContextAllocZero(sort->context, Max(n, 1) * sizeof(uint64));
	memcpy(skip->hashes, latest->hashes, n * sizeof(uint64));
	qsort(skip->hashes, n, sizeof(uint64), compare_hashes);
	for (uint64 i = 0; i < n; i++)
	{
		if (!sort->repeatable)
			skip->sum -= skip->hashes[i];
		if (skip->n == 0 || skip->hashes[i] != skip->hashes[skip->n - 1])
			skip->hashes[skip->n++] = skip->hashes[i];
		skip->counts[skip->n - 1]++;
	}
	skip->left = n;
}

/*
 * The rows of the device are lost: find out which rows the repeated sort must
 * leave out.  Reports the loss as an error where that cannot be told.
 */
void
gs_output_plan_skip(GsSort *sort)
{
	GsSkip	   *skip = &sort->skip;
	const GsRowHashes *latest;
	uint64		aside = 0;

	if (!sort->rerun || sort->wandered || skip->before > 0 || skip->n > 0 || skip->groups > 0)
		report_lost(sort);
	if (!sort->performed || sort->emitted == 0)
		return;
	skip->sum = sort->emitted_sum;
	switch (what_was_returned(sort, &skip->group_cols))
	{
		case RETURNED_FIRST:
			skip->groups = sort->emitted;
			return;
		case RETURNED_SOME:
			report_lost(sort);
			break;
		case RETURNED_ALL:
			break;
	}
	if (sort->collecting)
	{
		/* all groups before the one being collected were returned in full */
		skip->before = sort->emitted;
		return;
	}
	if (sort->aside && !gs_aside_track(sort, &aside, &latest))
		report_lost(sort);
	if (sort->aside && latest->n > 0)
		skip->before = sort->emitted - latest->n;
	else
	{
		/* no row put aside is part of the group, so all stand before it */
		if (!gs_rows_track(sort->rows, &skip->before, &latest))
			report_lost(sort);
		skip->before += aside;
	}
	Assert(skip->before + latest->n == sort->emitted);
	plan_skip_of_group(sort, latest);
}

void
gs_output_end(GsSort *sort)
{
	if (sort->settling)
		tuplesort_end(sort->settling);
	sort->settling = NULL;
	sort->collecting = false;
	sort->in_run = false;
	if (sort->settled)
		tuplestore_end(sort->settled);
	sort->settled = NULL;
	gs_aside_end(sort);
	if (sort->rows)
		gs_rows_end(sort->rows);
	sort->rows = NULL;
	if (sort->big_row)
		pfree(sort->big_row);
	sort->big_row = NULL;
	if (sort->skip.held)
		tuplestore_end(sort->skip.held);
	sort->skip.held = NULL;
	sort->direct = false;
	sort->emitted = 0;
	sort->emitted_sum = 0;
}
