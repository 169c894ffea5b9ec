/*-------------------------------------------------------------------------
 *
 * sort_cpu.c
 *	  The rows of a sort that PostgreSQL's tuplesort has done.
 *
 * After a restart (sort.h) the rows that were returned before must not be returned again.  If the input is
 * the same the second time, these rows come first again, except that rows with equal keys may come in another
 * order.  So as many rows are skipped.  If the next row has the same key as the last skipped one, the restart
 * ends in an error.  If one row of each group of equal rows was returned, as many groups are skipped.
 *
 * Tests: regress/plans, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "sort/sort_private.h"

static const GsSortSource behind_others;

pg_noreturn static void
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

static GsSortStatus
get_row(GsSort *sort, bool forward, TupleTableSlot *slot)
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
rescan(GsSort *sort)
{
	tuplesort_rescan(sort->tuplesort);
}

static void
mark(GsSort *sort)
{
	tuplesort_markpos(sort->tuplesort);
}

static void
restore(GsSort *sort)
{
	tuplesort_restorepos(sort->tuplesort);
}

static GsSortStatus
skip(GsSort *sort, uint64 n)
{
	return tuplesort_skiptuples(sort->tuplesort, n, true) ? GS_SORT_OK : GS_SORT_END;
}

/* Gets the first row behind the groups that were returned before the restart. */
static GsSortStatus
get_behind_groups(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *last = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	uint64		groups = 0;
	GsSortStatus status;

	if (!forward)
		report_lost(sort);
	sort->source = &behind_others;
	while ((status = get_row(sort, true, slot)) == GS_SORT_OK)
	{
		if (groups > 0 && gs_stored_compare(sort, last, slot, NULL) == 0)
			continue;
		if (groups++ == sort->emitted)
			break;
		ExecCopySlot(last, slot);
	}
	ExecDropSingleTupleTableSlot(last);
	return status;
}

/* Gets the first row behind the rows that were returned before the restart. */
static GsSortStatus
get_behind_rows(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *last = MakeSingleTupleTableSlot(sort->tupdesc, &TTSOpsMinimalTuple);
	uint64		others = sort->emitted - 1;
	GsSortStatus status;

	if (!forward || others > sort->bound_left)
		report_lost(sort);
	sort->source = &behind_others;
	sort->bound_left -= others;
	if (!tuplesort_skiptuples(sort->tuplesort, others, true) || get_row(sort, true, last) != GS_SORT_OK)
		report_lost(sort);
	ExecMaterializeSlot(last);
	status = get_row(sort, true, slot);
	if (status == GS_SORT_OK && gs_stored_compare(sort, last, slot, NULL) == 0)
		report_lost(sort);
	ExecDropSingleTupleTableSlot(last);
	return status;
}

/* Moving backward would return skipped rows, whose order may differ from the first time. */
static GsSortStatus
get_forward(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	if (!forward)
		report_lost(sort);
	return get_row(sort, true, slot);
}

static const GsSortSource whole = {get_row, rescan, mark, restore, skip, NULL};
static const GsSortSource behind_rows = {get_behind_rows, NULL, NULL, NULL, NULL, NULL};
static const GsSortSource behind_groups = {get_behind_groups, NULL, NULL, NULL, NULL, NULL};
static const GsSortSource behind_others = {get_forward, NULL, mark, restore, skip, NULL};

const GsSortSource *
gs_cpu_source(const GsSort *sort)
{
	return sort->behind != NULL ? sort->behind : &whole;
}

void
gs_cpu_plan_skip(GsSort *sort, bool by_groups)
{
	if (!sort->rerun || sort->wandered)
		report_lost(sort);
	if (sort->emitted == 0)
		return;
	/* if rows or groups were dropped, the number of returned rows does not tell how many to skip */
	if (!sort->repeatable || sort->keep.group_first > 0 || (sort->keep.unique && !by_groups) ||
		(sort->report.session.counted && (sort->keep.max_count > 0 || sort->keep.limit > 0)))
		report_lost(sort);
	sort->behind = by_groups ? &behind_groups : &behind_rows;
}
