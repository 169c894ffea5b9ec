/*-------------------------------------------------------------------------
 *
 * sort_sample.c
 *	  Comparing a sample of a sort's rows with their neighbours.
 *
 * Keys of text under a libc collation come from glibc's tables, and are proven before use
 * (key/key_libc_table.h).  In addition the columns' operators compare some rows of each page with the rows
 * before them.  This is done before a row of the page is returned.  If a row is out of order, its collation
 * is distrusted.  If no row was returned yet, PostgreSQL sorts instead, as if the device were lost.
 *
 * Tests: tap/order_sample
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "sort/sort_private.h"

/* Does a row belong behind the next one?  Sets *column, from 0, to the column that tells. */
static bool
is_behind(GsSort *sort, const char *row, const char *next, int *column)
{
	TupleTableSlot *slots[2];
	int			order;

	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < 2; i++)
	{
		slots[i] = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
		ExecStoreMinimalTuple((MinimalTuple) unconstify(char *, i == 0 ? row : next), slots[i], false);
	}
	order = gs_stored_compare(sort, slots[0], slots[1], column);
	ExecDropSingleTupleTableSlot(slots[0]);
	ExecDropSingleTupleTableSlot(slots[1]);
	return order > 0;
}

/* Can a row be compared with the row before it?  Rows with the same inexact key are not settled yet. */
static bool
is_comparable(uint32 before, uint32 flags)
{
	return ((before | flags) & GS_ENTRY_EXTERNAL) == 0 &&
		!((flags & GS_ENTRY_INEXACT) != 0 && (flags & GS_ENTRY_TIE) != 0);
}

static void
distrust(GsSort *sort, int column)
{
	sort->distrusted = true;
	gs_key_distrust(sort->desc, column);
}

bool
gs_sample_page(GsSort *sort)
{
	int			n = gs_rows_new_page(sort->rows);

	for (int i = 0; (i = gs_key_sample(&sort->sampled, i + 1, n)) < n;)
	{
		uint32		before;
		uint32		flags;
		int			column;
		const char *row;
		const char *next;

		row = gs_rows_of_page(sort->rows, i - 1, &before);
		next = gs_rows_of_page(sort->rows, i, &flags);
		if (!is_comparable(before, flags) || !is_behind(sort, row, next, &column))
			continue;
		distrust(sort, column);
		if (sort->emitted > 0 || sort->wandered || !sort->rerun)
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("gpusort found rows out of order under a libc collation"),
					 errdetail("Rows had been returned already, or the sort's input cannot be computed a second time."),
					 errhint("Retry the query.  PostgreSQL will sort.")));
		return false;
	}
	return true;
}

bool
gs_sample_local(GsSort *sort, const GsLocalRow *rows, uint64 n)
{
	/* a process sorts few rows by itself */
	for (int i = 0; (i = gs_key_sample(&sort->sampled, i + 1, (int) n)) < (int) n;)
	{
		const char *row = (const char *) (rows[i - 1] & ~(GsLocalRow) GS_ENTRY_FLAGS);
		const char *next = (const char *) (rows[i] & ~(GsLocalRow) GS_ENTRY_FLAGS);
		int			column;

		if (!is_comparable((uint32) rows[i - 1] & GS_ENTRY_FLAGS, (uint32) rows[i] & GS_ENTRY_FLAGS) ||
			!is_behind(sort, row, next, &column))
			continue;
		distrust(sort, column);
		return false;
	}
	return true;
}
