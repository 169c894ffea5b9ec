/*-------------------------------------------------------------------------
 *
 * gpucount_exec.c
 *	  The executor node GpuCount.
 *
 * Without groups it returns one row.  The device knows how many different keys it has sorted, so in
 * most cases one row of the GpuSort is read: it tells whether there is a NULL.
 * Where keys were cut off, rows were not sorted by the device, or lie in temporary
 * files, all rows are read and each is compared with the one before it.
 *
 * With groups it returns the first row of each with the number of its rows.  The GpuSort
 * knows of most rows whether their key is that of the row before; the others are
 * compared.  A row is copied only if its group has another one, or may have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "compat.h"
#include "nodes/group/gpucount.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_reader.h"

typedef struct GpuCountState
{
	CustomScanState css;
	bool		grouped;
	AttrNumber	attno;			/* 0: rows with NULLs count */
	ExprState  *equal;			/* of two rows: ecxt_innertuple and ecxt_outertuple */
	GsReader	reader;
	TupleTableSlot *first;		/* of a group */
	TupleTableSlot *next;		/* of the next group; empty: it was not read yet */
	bool		done;
	const char *counted_by;		/* the last time, for EXPLAIN; NULL: not done, or no row */
} GpuCountState;

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuCountState *state = (GpuCountState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *lists[GS_COUNT_Count];
	TupleDesc	desc;

	if (list_length(plan->custom_private) != GS_COUNT_Count)
		elog(ERROR, "malformed %s plan", GS_COUNT_NAME);
	for (int i = 0; i < GS_COUNT_Count; i++)
		lists[i] = list_nth(plan->custom_private, i);

	/* as Agg would */
	gs_compat_check_execute(linitial_oid(lists[GS_COUNT_FUNCTION]), GetUserId(), OBJECT_AGGREGATE);
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	gs_reader_init(&state->reader, outerPlanState(node));
	desc = ExecGetResultType(outerPlanState(node));
	state->first = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	state->next = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);

	state->equal = gs_node_match_rows(node, lists[GS_COUNT_ATTNOS], lists[GS_COUNT_OPERATORS],
									  lists[GS_COUNT_COLLATIONS]);
	state->grouped = linitial_int(lists[GS_COUNT_GROUPED]) != 0;
	state->attno = linitial_int(lists[GS_COUNT_SKIPS_NULL]) != 0 ? linitial_int(lists[GS_COUNT_ATTNOS]) : 0;
}

static bool
rows_equal(GpuCountState *state, TupleTableSlot *a, TupleTableSlot *b)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	econtext->ecxt_innertuple = a;
	econtext->ecxt_outertuple = b;
	return ExecQualAndReset(state->equal, econtext);
}

/* Read all rows behind the first one, and count those that differ from the one before. */
static uint64
count_others(GpuCountState *state, TupleTableSlot *row)
{
	uint64		count = 0;

	ExecCopySlot(state->first, row);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		row = gs_reader_next(&state->reader);
		if (TupIsNull(row))
			break;
		if (!rows_equal(state, row, state->first))
		{
			count++;
			ExecCopySlot(state->first, row);
		}
	}
	ExecClearTuple(state->first);
	return count;
}

static int64
count_rows(GpuCountState *state)
{
	TupleTableSlot *first = gs_reader_next(&state->reader);
	bool		isnull = false;
	uint64		count;

	state->counted_by = NULL;
	if (TupIsNull(first))
		return 0;
	if (state->attno != 0)
		(void) slot_getattr(first, state->attno, &isnull);
	if (gs_sort_node_count_distinct(outerPlanState(state), &count))
		state->counted_by = "device";
	else
	{
		count = 1 + count_others(state, first);
		state->counted_by = "comparison";
	}
	gs_reader_reset(&state->reader);
	gs_sort_node_release(outerPlanState(state));
	return (int64) count - (isnull ? 1 : 0);
}

/* The number of groups; NULL: it was returned already. */
static TupleTableSlot *
return_number(GpuCountState *state)
{
	TupleTableSlot *scan = state->css.ss.ss_ScanTupleSlot;

	if (state->done)
		return NULL;
	scan->tts_values[0] = Int64GetDatum(count_rows(state));
	scan->tts_isnull[0] = false;
	state->done = true;
	return ExecStoreVirtualTuple(scan);
}

/* The first row of the next group, and how many it has; NULL: there is none. */
static TupleTableSlot *
next_group(GpuCountState *state, int64 *count)
{
	TupleTableSlot *row;
	TupleTableSlot *behind;
	GsNextRow	kind;

	*count = 1;
	if (state->done)
		return NULL;
	if (!TupIsNull(state->next))
	{
		row = state->next;
		state->next = state->first;
		state->first = row;
		ExecClearTuple(state->next);
	}
	else
		row = gs_reader_next(&state->reader);
	if (TupIsNull(row))
	{
		state->done = true;
		return NULL;
	}
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		kind = gs_reader_next_row(&state->reader);
		if (kind == GS_NEXT_ROW_OTHER)
			return row;
		if (row != state->first)
			row = ExecCopySlot(state->first, row);
		behind = gs_reader_next(&state->reader);
		if (TupIsNull(behind))
		{
			state->done = true;
			return row;
		}
		if (kind == GS_NEXT_ROW_UNKNOWN && !rows_equal(state, behind, row))
		{
			ExecCopySlot(state->next, behind);
			return row;
		}
		(*count)++;
	}
}

/* The scan tuple of the next group; NULL: there is none. */
static TupleTableSlot *
return_group(GpuCountState *state)
{
	TupleTableSlot *scan = state->css.ss.ss_ScanTupleSlot;
	int64		count;
	TupleTableSlot *row = next_group(state, &count);
	int			n;

	if (row == NULL)
		return NULL;
	n = row->tts_tupleDescriptor->natts;
	slot_getallattrs(row);
	memcpy(scan->tts_values, row->tts_values, n * sizeof(Datum));
	memcpy(scan->tts_isnull, row->tts_isnull, n * sizeof(bool));
	scan->tts_values[n] = Int64GetDatum(count);
	scan->tts_isnull[n] = false;
	return ExecStoreVirtualTuple(scan);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuCountState *state = (GpuCountState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *row;

	for (;;)
	{
		ExecClearTuple(node->ss.ss_ScanTupleSlot);
		row = state->grouped ? return_group(state) : return_number(state);
		if (row == NULL)
			return ExecClearTuple(projection ? node->ss.ps.ps_ResultTupleSlot :
								  node->ss.ss_ScanTupleSlot);
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = row;
		if (ExecQual(node->ss.ps.qual, econtext))
			return projection ? ExecProject(projection) : row;
		InstrCountFiltered1(node, 1);
	}
}

static void
end(CustomScanState *node)
{
	GpuCountState *state = (GpuCountState *) node;

	gs_reader_reset(&state->reader);
	ExecClearTuple(state->first);
	ExecClearTuple(state->next);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuCountState *state = (GpuCountState *) node;

	gs_reader_reset(&state->reader);
	ExecClearTuple(state->first);
	ExecClearTuple(state->next);
	state->done = false;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuCountState *state = (GpuCountState *) node;
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;

	if (state->grouped)
		gs_explain_group_key(node, ancestors, list_nth(plan->custom_private, GS_COUNT_ATTNOS), es);
	if (es->analyze && state->counted_by)
		ExplainPropertyText("Counted By", state->counted_by, es);
}

const GsNode gs_count_node = {
	.scan = {
		.CustomName = GS_COUNT_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_COUNT_NAME,
		.BeginCustomScan = begin,
		.ExecCustomScan = exec,
		.EndCustomScan = end,
		.ReScanCustomScan = rescan,
		.ExplainCustomScan = explain,
	},
	.state_bytes = sizeof(GpuCountState),
};
