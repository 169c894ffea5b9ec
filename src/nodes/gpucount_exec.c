/*-------------------------------------------------------------------------
 *
 * gpucount_exec.c
 *	  The executor node GpuCount.
 *
 * It returns one row.  The device knows how many different keys it has sorted, so in
 * most cases one row of the GpuSort is read: it tells whether there is a NULL.
 * Where keys were cut off, rows were not sorted by the device, or lie in temporary
 * files, all rows are read and each is compared with the one before it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "compat.h"
#include "nodes/gpucount.h"
#include "nodes/gpusort.h"

typedef struct GpuCountState
{
	CustomScanState css;
	AttrNumber	attno;			/* 0: rows with NULLs count */
	ExprState  *equal;			/* of a row and the one before it */
	TupleTableSlot *previous;
	bool		done;
	const char *counted_by;		/* the last time, for EXPLAIN; NULL: there was no row */
} GpuCountState;

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuCountState *state = (GpuCountState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *lists[GS_COUNT_Count];
	AttrNumber *columns;
	Oid		   *operators;
	Oid		   *collations;
	TupleDesc	desc;
	int			n;

	if (list_length(plan->custom_private) != GS_COUNT_Count)
		elog(ERROR, "malformed %s plan", GS_COUNT_NAME);
	for (int i = 0; i < GS_COUNT_Count; i++)
		lists[i] = list_nth(plan->custom_private, i);

	/* as Agg would */
	gs_compat_check_execute(linitial_oid(lists[GS_COUNT_FUNCTION]), GetUserId(), OBJECT_AGGREGATE);
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	desc = ExecGetResultType(outerPlanState(node));
	state->previous = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);

	n = list_length(lists[GS_COUNT_ATTNOS]);
	columns = palloc(n * sizeof(AttrNumber));
	operators = palloc(n * sizeof(Oid));
	collations = palloc(n * sizeof(Oid));
	for (int i = 0; i < n; i++)
	{
		columns[i] = list_nth_int(lists[GS_COUNT_ATTNOS], i);
		operators[i] = list_nth_oid(lists[GS_COUNT_OPERATORS], i);
		collations[i] = list_nth_oid(lists[GS_COUNT_COLLATIONS], i);
	}
	state->equal = execTuplesMatchPrepare(desc, n, columns, operators, collations, &node->ss.ps);
	state->attno = linitial_int(lists[GS_COUNT_SKIPS_NULL]) != 0 ? columns[0] : 0;
}

/* Read all rows behind the first one, and count those that differ from the one before. */
static uint64
count_others(GpuCountState *state, TupleTableSlot *first)
{
	PlanState  *child = outerPlanState(state);
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	uint64		count = 0;
	TupleTableSlot *slot;

	ExecCopySlot(state->previous, first);
	for (;;)
	{
		slot = ExecProcNode(child);
		if (TupIsNull(slot))
			break;
		econtext->ecxt_innertuple = slot;
		econtext->ecxt_outertuple = state->previous;
		if (!ExecQualAndReset(state->equal, econtext))
		{
			count++;
			ExecCopySlot(state->previous, slot);
		}
	}
	ExecClearTuple(state->previous);
	return count;
}

static int64
count_rows(GpuCountState *state)
{
	PlanState  *child = outerPlanState(state);
	TupleTableSlot *first = ExecProcNode(child);
	bool		isnull = false;
	uint64		count;

	state->counted_by = NULL;
	if (TupIsNull(first))
		return 0;
	if (state->attno != 0)
		(void) slot_getattr(first, state->attno, &isnull);
	if (gs_sort_node_count_distinct(child, &count))
		state->counted_by = "device";
	else
	{
		count = 1 + count_others(state, first);
		state->counted_by = "comparison";
	}
	return (int64) count - (isnull ? 1 : 0);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuCountState *state = (GpuCountState *) node;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	int64		count;

	ExecClearTuple(scan);
	if (state->done)
		return scan;
	state->done = true;
	count = count_rows(state);
	ResetExprContext(econtext);
	scan->tts_values[0] = Int64GetDatum(count);
	scan->tts_isnull[0] = false;
	econtext->ecxt_scantuple = ExecStoreVirtualTuple(scan);
	if (node->ss.ps.qual && !ExecQual(node->ss.ps.qual, econtext))
		return ExecClearTuple(node->ss.ps.ps_ProjInfo ? node->ss.ps.ps_ResultTupleSlot : scan);
	return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo) : scan;
}

static void
end(CustomScanState *node)
{
	ExecClearTuple(((GpuCountState *) node)->previous);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuCountState *state = (GpuCountState *) node;

	ExecClearTuple(state->previous);
	state->done = false;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuCountState *state = (GpuCountState *) node;

	(void) ancestors;
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
