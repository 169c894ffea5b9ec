/*-------------------------------------------------------------------------
 *
 * gpuwindow_exec.c
 *	  The executor node GpuWindow: row_number(), rank() and dense_rank() over
 *	  rows that come sorted.
 *
 * It counts rows as they go by.  Of the past it keeps one row: the first one of
 * the current group of peers, in a buffer of its own.  A row is first compared
 * with it by the columns of PARTITION BY and ORDER BY together, and only where
 * they differ by those of PARTITION BY alone.  The comparison is by the
 * equality operators that WindowAgg would use (nodeWindowAgg.c).
 *
 * The scan tuple is a virtual one: values of the functions, and of the child's
 * columns, which are good until the child is asked for its next row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "compat.h"
#include "nodes/gpuwindow.h"

typedef struct GpuWindowState
{
	CustomScanState css;
	int			n_columns;		/* of the scan tuple */
	AttrNumber *columns;		/* the child's; 0: a function */
	Oid		   *functions;		/* by column; InvalidOid: a column of the child */
	AttrNumber	last_column;	/* of the child that is used */
	ExprState  *same_peers;		/* NULL: all rows of a partition are */
	ExprState  *same_partition; /* NULL: there is one partition only */

	/* of the current row, in its partition */
	int64		row_number;		/* 0: before the first row */
	int64		rank;
	int64		dense_rank;

	TupleTableSlot *first_peer; /* in buffer */
	MinimalTuple buffer;
	Size		buffer_bytes;
	MemoryContext context;		/* the buffer's */
} GpuWindowState;

/* Compares the columns of two lists of custom_private; NULL: there are none. */
static ExprState *
make_comparison(GpuWindowState *state, List *attnos, List *operators, List *collations)
{
	int			n = list_length(attnos);
	AttrNumber *columns = palloc(n * sizeof(AttrNumber));
	Oid		   *equality = palloc(n * sizeof(Oid));
	Oid		   *collation = palloc(n * sizeof(Oid));

	if (n == 0)
		return NULL;
	for (int i = 0; i < n; i++)
	{
		columns[i] = list_nth_int(attnos, i);
		equality[i] = list_nth_oid(operators, i);
		collation[i] = list_nth_oid(collations, i);
	}
	return execTuplesMatchPrepare(ExecGetResultType(outerPlanState(state)), n, columns, equality,
								  collation, &state->css.ss.ps);
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuWindowState *state = (GpuWindowState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *lists[GS_WINDOW_Count];
	ListCell   *function;

	if (list_length(plan->custom_private) != GS_WINDOW_Count)
		elog(ERROR, "malformed %s plan", GS_WINDOW_NAME);
	for (int i = 0; i < GS_WINDOW_Count; i++)
		lists[i] = list_nth(plan->custom_private, i);
	function = list_head(lists[GS_WINDOW_FUNCTIONS]);
	state->n_columns = list_length(lists[GS_WINDOW_COLUMNS]);
	state->columns = palloc(state->n_columns * sizeof(AttrNumber));
	state->functions = palloc0(state->n_columns * sizeof(Oid));
	for (int i = 0; i < state->n_columns; i++)
	{
		state->columns[i] = list_nth_int(lists[GS_WINDOW_COLUMNS], i);
		state->last_column = Max(state->last_column, state->columns[i]);
		if (state->columns[i] == 0)
		{
			TargetEntry *tle = list_nth_node(TargetEntry, plan->custom_scan_tlist, i);

			/* it is not called, but checked as if it were: may the user call it? */
			(void) ExecInitExpr(tle->expr, &node->ss.ps);
			state->functions[i] = lfirst_oid(function);
			function = lnext(lists[GS_WINDOW_FUNCTIONS], function);
		}
	}

	/* as with WindowAgg, a rescan need not sort again */
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
	state->first_peer = ExecInitExtraTupleSlot(estate, ExecGetResultType(outerPlanState(node)),
											   &TTSOpsMinimalTuple);
	state->context = CurrentMemoryContext;

	state->same_partition = make_comparison(state, lists[GS_WINDOW_PART_ATTNOS],
											lists[GS_WINDOW_PART_OPERATORS],
											lists[GS_WINDOW_PART_COLLATIONS]);
	if (lists[GS_WINDOW_ORDER_ATTNOS] != NIL)
		state->same_peers =
			make_comparison(state,
							list_concat_copy(lists[GS_WINDOW_ORDER_ATTNOS],
											 lists[GS_WINDOW_PART_ATTNOS]),
							list_concat_copy(lists[GS_WINDOW_ORDER_OPERATORS],
											 lists[GS_WINDOW_PART_OPERATORS]),
							list_concat_copy(lists[GS_WINDOW_ORDER_COLLATIONS],
											 lists[GS_WINDOW_PART_COLLATIONS]));
}

static void
keep_first_peer(GpuWindowState *state, TupleTableSlot *slot)
{
	bool		must_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &must_free);

	ExecClearTuple(state->first_peer);
	if (tuple->t_len > state->buffer_bytes)
	{
		Size		bytes = Max((Size) tuple->t_len, Min(2 * state->buffer_bytes, MaxAllocSize));

		if (state->buffer)
			pfree(state->buffer);
		state->buffer = NULL;
		state->buffer_bytes = 0;
		state->buffer = MemoryContextAllocHuge(state->context, bytes);
		state->buffer_bytes = bytes;
	}
	memcpy(state->buffer, tuple, tuple->t_len);
	if (must_free)
		pfree(tuple);
	ExecStoreMinimalTuple(state->buffer, state->first_peer, false);
}

/* Count one more row. */
static void
advance(GpuWindowState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	bool		same_partition = state->row_number > 0;

	if (same_partition)
	{
		econtext->ecxt_innertuple = state->first_peer;
		if (state->same_peers && ExecQual(state->same_peers, econtext))
		{
			state->row_number++;
			return;
		}
		same_partition = state->same_partition == NULL ||
			ExecQual(state->same_partition, econtext);
		if (same_partition && state->same_peers == NULL)
		{
			state->row_number++;
			return;
		}
	}
	if (same_partition)
	{
		state->row_number++;
		state->rank = state->row_number;
		state->dense_rank++;
	}
	else
		state->row_number = state->rank = state->dense_rank = 1;
	keep_first_peer(state, slot);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;
	TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

	ExecClearTuple(scan);
	if (TupIsNull(slot))
		return projection ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : scan;
	ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	advance(state, slot);

	slot_getsomeattrs(slot, state->last_column);
	for (int i = 0; i < state->n_columns; i++)
	{
		scan->tts_isnull[i] = false;
		switch (state->functions[i])
		{
			case InvalidOid:
				scan->tts_values[i] = slot->tts_values[state->columns[i] - 1];
				scan->tts_isnull[i] = slot->tts_isnull[state->columns[i] - 1];
				break;
			case F_ROW_NUMBER:
				scan->tts_values[i] = Int64GetDatum(state->row_number);
				break;
			case F_RANK_:
				scan->tts_values[i] = Int64GetDatum(state->rank);
				break;
			case F_DENSE_RANK_:
				scan->tts_values[i] = Int64GetDatum(state->dense_rank);
				break;
		}
	}
	ExecStoreVirtualTuple(scan);
	if (projection == NULL)
		return scan;
	econtext->ecxt_scantuple = scan;
	return ExecProject(projection);
}

static void
end(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;

	ExecClearTuple(state->first_peer);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;

	ExecClearTuple(state->first_peer);
	state->row_number = 0;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuWindowState *state = (GpuWindowState *) node;
	List	   *names = NIL;

	(void) ancestors;
	for (int i = 0; i < state->n_columns; i++)
		if (OidIsValid(state->functions[i]))
			names = lappend(names, psprintf("%s()", get_func_name(state->functions[i])));
	ExplainPropertyList("Window Functions", names, es);
}

const GsNode gs_window_node = {
	.scan = {
		.CustomName = GS_WINDOW_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_WINDOW_NAME,
		.BeginCustomScan = begin,
		.ExecCustomScan = exec,
		.EndCustomScan = end,
		.ReScanCustomScan = rescan,
		.ExplainCustomScan = explain,
	},
	.state_bytes = sizeof(GpuWindowState),
};
