/*-------------------------------------------------------------------------
 *
 * gpuunique_exec.c
 *	  The executor node GpuUnique.
 *
 * A row of the GpuSort is returned as it was read, unless it is equal to the row before.
 * Of most rows the GpuSort's page tells that, when the row before was read
 * (gpusort_reader.h).  Others, such as the first of each page, are compared; only the
 * rows before those are copied.
 *
 * If the GpuSort loses its device, what it said of the next row stays right: behind rows that were
 * returned it goes on with the group, or the first row of the next one (sort_output.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "compat.h"
#include "nodes/sort/gpusort_reader.h"
#include "nodes/group/gpuunique.h"

typedef struct GpuUniqueState
{
	CustomScanState css;
	GsReader	reader;
	ExprState  *equal;			/* of two rows: ecxt_innertuple and ecxt_outertuple */
	GsNextRow	next;			/* is the next row equal to the one before? */
	TupleTableSlot *last;		/* the one before; GS_NEXT_ROW_UNKNOWN only */
} GpuUniqueState;

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuUniqueState *state = (GpuUniqueState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child;

	if (list_length(plan->custom_private) != GS_UNIQUE_Count)
		elog(ERROR, "malformed %s plan", GS_UNIQUE_NAME);
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	child = outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
	gs_reader_init(&state->reader, child);
	state->last = ExecInitExtraTupleSlot(estate, ExecGetResultType(child), &TTSOpsMinimalTuple);
	state->next = GS_NEXT_ROW_OTHER;
	state->equal = gs_node_match_rows(node, list_nth(plan->custom_private, GS_UNIQUE_ATTNOS),
									  list_nth(plan->custom_private, GS_UNIQUE_OPERATORS),
									  list_nth(plan->custom_private, GS_UNIQUE_COLLATIONS));

	/* rows are in slots like the child's */
	node->ss.ps.resultops = ExecGetResultSlotOps(child, &node->ss.ps.resultopsfixed);
	node->ss.ps.resultopsset = true;
}

static bool
rows_equal(GpuUniqueState *state, TupleTableSlot *a, TupleTableSlot *b)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	econtext->ecxt_innertuple = a;
	econtext->ecxt_outertuple = b;
	return ExecQualAndReset(state->equal, econtext);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuUniqueState *state = (GpuUniqueState *) node;

	for (;;)
	{
		TupleTableSlot *row = gs_reader_next(&state->reader);
		bool		other;

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(row))
			return row;
		other = state->next == GS_NEXT_ROW_OTHER ||
			(state->next == GS_NEXT_ROW_UNKNOWN && !rows_equal(state, row, state->last));
		state->next = gs_reader_next_row(&state->reader);
		if (unlikely(state->next == GS_NEXT_ROW_UNKNOWN))
			ExecCopySlot(state->last, row);
		if (other)
			return row;
	}
}

static void
end(CustomScanState *node)
{
	gs_reader_reset(&((GpuUniqueState *) node)->reader);
	ExecClearTuple(((GpuUniqueState *) node)->last);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuUniqueState *state = (GpuUniqueState *) node;

	gs_reader_reset(&state->reader);
	ExecClearTuple(state->last);
	state->next = GS_NEXT_ROW_OTHER;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* A Group's key, as EXPLAIN shows it; it shows none of a Unique. */
static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	List	   *lists = ((CustomScan *) node->ss.ps.plan)->custom_private;

	if (linitial_int(list_nth(lists, GS_UNIQUE_GROUPS)) != 0)
		gs_explain_group_key(node, ancestors, list_nth(lists, GS_UNIQUE_ATTNOS), es);
}

const GsNode gs_unique_node = {
	.scan = {
		.CustomName = GS_UNIQUE_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_UNIQUE_NAME,
		.BeginCustomScan = begin,
		.ExecCustomScan = exec,
		.EndCustomScan = end,
		.ReScanCustomScan = rescan,
		.ExplainCustomScan = explain,
	},
	.state_bytes = sizeof(GpuUniqueState),
};
