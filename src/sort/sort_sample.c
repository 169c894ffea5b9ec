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

/*
 * Are a row and the next one in a wrong order?  Then the collation is distrusted.  Rows with the same inexact
 * key are not settled yet, so they are not compared.
 */
static bool
is_wrong(GsSort *sort, const char *row, uint32 flags, const char *next, uint32 next_flags)
{
	TupleTableSlot *slots[2];
	int			column;
	int			order;

	if (((flags | next_flags) & GS_ENTRY_EXTERNAL) != 0 ||
		((next_flags & GS_ENTRY_INEXACT) != 0 && (next_flags & GS_ENTRY_TIE) != 0))
		return false;
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < 2; i++)
	{
		slots[i] = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
		ExecStoreMinimalTuple((MinimalTuple) unconstify(char *, i == 0 ? row : next), slots[i], false);
	}
	order = gs_stored_compare(sort, slots[0], slots[1], &column);
	ExecDropSingleTupleTableSlot(slots[0]);
	ExecDropSingleTupleTableSlot(slots[1]);
	if (order <= 0)
		return false;
	sort->distrusted = true;
	gs_key_distrust(sort->desc, column);
	return true;
}

bool
gs_sample_page(GsSort *sort)
{
	int			n = gs_rows_new_page(sort->rows);

	for (int i = 0; (i = gs_key_sample(&sort->sampled, i + 1, n)) < n;)
	{
		uint32		flags;
		uint32		next_flags;
		const char *row;
		const char *next;

		row = gs_rows_of_page(sort->rows, i - 1, &flags);
		next = gs_rows_of_page(sort->rows, i, &next_flags);
		if (!is_wrong(sort, row, flags, next, next_flags))
			continue;
		if (sort->returned || !sort->rerun)
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
	const GsLocalRow flags = GS_ENTRY_FLAGS;

	/* a process sorts few rows by itself */
	for (int i = 0; (i = gs_key_sample(&sort->sampled, i + 1, (int) n)) < (int) n;)
		if (is_wrong(sort, (const char *) (rows[i - 1] & ~flags), (uint32) (rows[i - 1] & flags),
					 (const char *) (rows[i] & ~flags), (uint32) (rows[i] & flags)))
			return false;
	return true;
}
