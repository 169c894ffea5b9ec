/*-------------------------------------------------------------------------
 *
 * gpuwindow_exec.c
 *	  The executor node GpuWindow: window functions over rows that come sorted.
 *
 * A row becomes the current one.  It is returned when all rows that its values need have been read, and
 * is kept as long as lag() may look back at it (gpuwindow_rows.h).  Values need only the row itself, its
 * peers, the rows behind it that lead() looks ahead to, or the partition:
 *
 *		0 ............ position - max_lag .......... position .......... end
 *		not needed		  kept for lag()			current		 read ahead
 *
 * Whether a row starts a new partition or a new group of peers is found out when it is read
 * (row_match.h).
 *
 * For each row the window functions are evaluated first, in their order, and then
 * the aggregates, as WindowAgg does: an error comes at the same row.
 *
 * States (WindowStatus).  Run conditions are those of WindowAgg.  If a row fails one, all later rows of the
 * partition would fail, too:
 *
 *		RUNS		rows get values
 *		PASSES_ON	the partition's other rows are returned without values
 *		SKIPS		the partition's other rows are read, but not returned
 *		IS_DONE		no row is asked for any more
 *
 *		RUNS		-> PASSES_ON	a row fails, and a window above may need the rows
 *					-> SKIPS		a row fails in the topmost window
 *					-> IS_DONE		the same, and there is one partition only
 *		PASSES_ON	-> RUNS			the next partition begins
 *		SKIPS		-> RUNS			the next partition begins
 *		all			-> IS_DONE		the input has ended
 *
 * The scan tuple is virtual.  Its values are valid until the next row is requested.
 *
 * Tests: regress/windows_functions, regress/windows
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "nodes/common/aggregates.h"
#include "nodes/read/row_match.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/window/gpuwindow_function.h"
#include "nodes/window/gpuwindow_rows.h"

typedef enum WindowStatus
{
	WINDOW_RUNS,
	WINDOW_PASSES_ON,
	WINDOW_SKIPS,
	WINDOW_IS_DONE
} WindowStatus;

/* Readers of held rows; those of functions follow. */
enum
{
	CURRENT_READER,
	AGGREGATE_READER,
	FIRST_FUNCTION_READER
};

typedef struct GpuWindowState
{
	CustomScanState css;
	GsScanColumns columns;
	GsReader	reader;			/* of the child's rows */
	GsRowMatcher *matcher;		/* of them */
	GsHeldRows *held;			/* those of the partition that are needed */
	ExprState  *run_condition;	/* NULL: none */
	bool		is_top;
	GsWindowFrame frame;
	int			needs;			/* GS_WINDOW_NEEDS_ */

	int			n_functions;	/* without aggregates */
	GsWindowFunction *functions;
	GsAggregates *aggregates;	/* NULL: none */
	int64		aggregated;		/* rows of the partition that are in the aggregates */

	WindowStatus status;
	bool		started;		/* offsets are known */
	GsWindowRow row;
	int64		max_lead;		/* the most rows that a lead() looks ahead */
	int64		max_lag;		/* ... and a lag() looks back */
} GpuWindowState;

/*
 * Begin and end
 */

/* Find what functions need, and whether they may be called. */
static void
look_at_functions(GpuWindowState *state, const List *calls, bool checks)
{
	ListCell   *lc;

	foreach(lc, calls)
	{
		const WindowFunc *call = lfirst_node(WindowFunc, lc);

		if (checks)
			gs_compat_check_execute(call->winfnoid, GetUserId(), OBJECT_FUNCTION);
		state->needs |= gs_window_needs(call, state->frame);
	}
}

/* Those other than aggregates. */
static void
make_functions(GpuWindowState *state, const List *calls)
{
	int			n = 0;

	state->functions = palloc0(list_length(calls) * sizeof(GsWindowFunction));
	for (int column = 0; column < state->columns.n; column++)
	{
		GsWindowFunction *function = &state->functions[state->n_functions];
		WindowFunc *call;

		if (state->columns.attnos[column] != 0)
			continue;
		call = list_nth_node(WindowFunc, calls, n++);
		if (call->winagg)
			continue;
		gs_window_function_init(function, call, &state->css.ss.ps);
		function->column = column;
		function->reader = FIRST_FUNCTION_READER + state->n_functions++;
	}
}

static void
forget_rows(GpuWindowState *state)
{
	gs_reader_reset(&state->reader);
	gs_row_matcher_reset(state->matcher);
	gs_held_reset(state->held);
	state->status = WINDOW_RUNS;
	state->started = false;
	state->row.position = -1;
	state->max_lead = state->max_lag = 0;
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuWindowState *state = (GpuWindowState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *calls = linitial(plan->custom_exprs);
	List	   *private = gs_node_private(plan, GS_WINDOW_Count);
	List	   *options = list_nth(private, GS_WINDOW_OPTIONS);
	GsColumns	partition = gs_columns_read(list_nth(private, GS_WINDOW_PARTITION));
	GsColumns	order = gs_columns_read(list_nth(private, GS_WINDOW_ORDER));
	bool		checks = list_nth_int(options, GS_WINDOW_IS_CHECKED) != 0;

	state->frame = list_nth_int(options, GS_WINDOW_FRAME);
	state->is_top = list_nth_int(options, GS_WINDOW_IS_TOP) != 0;
	gs_scan_columns_read(&state->columns, plan);
	look_at_functions(state, calls, checks);
	if (checks)
	{
		gs_columns_check(&partition);
		gs_columns_check(&order);
	}

	/* as with WindowAgg, a rescan need not sort again */
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	state->aggregates = gs_aggregates_init(node, GS_AGGREGATED_FRAME, estate, eflags);
	gs_reader_init(&state->reader, outerPlanState(node));
	state->matcher = gs_row_matcher_create(node, &state->reader, &partition,
										   state->needs & GS_WINDOW_NEEDS_PEERS ? &order : NULL);
	state->held = gs_held_create(estate, &state->reader, state->matcher,
								 FIRST_FUNCTION_READER + list_length(calls));
	if (state->needs & ~GS_WINDOW_NEEDS_PEERS)
	{
		bool		fixed;
		const TupleTableSlotOps *ops = ExecGetResultSlotOps(outerPlanState(node), &fixed);

		/* arguments are evaluated over the child's tuples and those that are held */
		node->ss.ps.outeropsset = true;
		node->ss.ps.outeropsfixed = fixed && ops == &TTSOpsMinimalTuple;
		node->ss.ps.outerops = &TTSOpsMinimalTuple;
	}
	make_functions(state, calls);
	state->run_condition = ExecInitQual(gs_window_run_condition(plan), &node->ss.ps);
	forget_rows(state);
}

static void
end(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;

	forget_rows(state);
	gs_aggregates_end(state->aggregates, node);
}

static void
rescan(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;

	forget_rows(state);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/*
 * Partitions and peers
 */

/* The current row is the first one of a partition. */
static void
begin_partition(GpuWindowState *state)
{
	if (!state->started)
	{
		state->started = true;
		for (int i = 0; i < state->n_functions; i++)
		{
			GsWindowFunction *function = &state->functions[i];

			gs_window_function_begin_scan(function, state->css.ss.ps.ps_ExprContext);
			state->max_lead = Max(state->max_lead, function->offset);
			state->max_lag = Max(state->max_lag, -function->offset);
		}
	}
	for (int i = 0; i < state->n_functions; i++)
		gs_window_function_begin_partition(&state->functions[i]);
	if (state->aggregates)
		gs_aggregates_begin(state->aggregates);
	state->aggregated = 0;
	state->status = WINDOW_RUNS;
	state->row.position = 0;
	state->row.rank = state->row.dense_rank = 1;
	state->row.peers_end = 0;
	state->row.partition_end = -1;
}

static void
begin_peers(GpuWindowState *state)
{
	state->row.rank = state->row.position + 1;
	state->row.dense_rank++;
}

/*
 * Rows
 */

/* Is the row behind a position a peer?  Reads it if it must; not if the keys tell that it is none. */
static bool
next_is_peer(GpuWindowState *state, int64 position)
{
	GsHeldRows *held = state->held;

	if (position + 1 == held->end &&
		(gs_row_matcher_knows_peers_end(state->matcher) || !gs_held_read(held)))
		return false;
	return !gs_held_starts_peers(held, position + 1);
}

/* Read the rows that the values of the current one need. */
static void
read_ahead(GpuWindowState *state)
{
	GsHeldRows *held = state->held;
	int64		position = state->row.position;

	if (state->needs & GS_WINDOW_NEEDS_PARTITION)
	{
		while (gs_held_read(held))
			CHECK_FOR_INTERRUPTS();
		state->row.partition_end = held->end;
	}
	while (held->end <= position + state->max_lead && gs_held_read(held))
		CHECK_FOR_INTERRUPTS();
	if ((state->needs & GS_WINDOW_NEEDS_PEERS_END) && state->row.peers_end <= position)
	{
		while (next_is_peer(state, position))
		{
			CHECK_FOR_INTERRUPTS();
			position++;
		}
		state->row.peers_end = position + 1;
	}
}

/* Read on in the partition, to its end. */
static void
skip_partition(GsHeldRows *held)
{
	do
	{
		CHECK_FOR_INTERRUPTS();
		gs_held_drop_before(held, held->end);
	} while (gs_held_read(held));
}

/* Go on to the next row; false: there is none. */
static bool
next_row(GpuWindowState *state)
{
	GsHeldRows *held = state->held;
	GsWindowRow *row = &state->row;

	CHECK_FOR_INTERRUPTS();
	row->position++;
	gs_held_drop_before(held, row->position - (state->status == WINDOW_RUNS ? state->max_lag : 0));
	if (state->status == WINDOW_SKIPS)
		skip_partition(held);
	if (state->status == WINDOW_SKIPS || (row->position >= held->end && !gs_held_read(held)))
	{
		if (!gs_held_begin_partition(held))
			return false;
		begin_partition(state);
	}
	else if (gs_held_starts_peers(held, row->position))
		begin_peers(state);
	if (state->status == WINDOW_RUNS)
		read_ahead(state);
	row->slot = gs_held_row(held, CURRENT_READER, row->position);
	return true;
}

/*
 * Values
 */

static void
set_frame_end(GpuWindowState *state)
{
	switch (state->frame)
	{
		case GS_FRAME_TO_PEERS:
			state->row.frame_end = state->row.peers_end;
			break;
		case GS_FRAME_TO_PARTITION:
			state->row.frame_end = state->row.partition_end;
			break;
		default:
			state->row.frame_end = state->row.position + 1;
			break;
	}
}

static void
set_aggregates(GpuWindowState *state, TupleTableSlot *scan)
{
	if (state->aggregated == state->row.frame_end)
	{
		gs_aggregates_set(state->aggregates, scan);
		return;
	}
	while (state->aggregated < state->row.frame_end)
	{
		TupleTableSlot *slot = state->row.slot;

		CHECK_FOR_INTERRUPTS();
		if (state->aggregated != state->row.position)
			slot = gs_held_row(state->held, AGGREGATE_READER, state->aggregated);
		gs_aggregates_advance(state->aggregates, slot);
		state->aggregated++;
	}
	gs_aggregates_finish(state->aggregates, scan);
}

/* The functions' part of the scan tuple. */
static void
set_values(GpuWindowState *state, TupleTableSlot *scan)
{
	set_frame_end(state);
	for (int i = 0; i < state->n_functions; i++)
	{
		GsWindowFunction *function = &state->functions[i];

		scan->tts_values[function->column] =
			gs_window_function_value(function, &state->row, state->held,
									 state->css.ss.ps.ps_ExprContext,
									 &scan->tts_isnull[function->column]);
	}
	if (state->aggregates)
		set_aggregates(state, scan);
}

static void
stop_running(GpuWindowState *state)
{
	if (!state->is_top)
		state->status = WINDOW_PASSES_ON;
	else
		state->status = gs_row_matcher_has_partitions(state->matcher) ? WINDOW_SKIPS : WINDOW_IS_DONE;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuWindowState *state = (GpuWindowState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;
	TupleTableSlot *result;

	for (;;)
	{
		ExecClearTuple(scan);
		ResetExprContext(econtext);
		if (state->status == WINDOW_IS_DONE || !next_row(state))
		{
			state->status = WINDOW_IS_DONE;
			return projection ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : scan;
		}
		gs_scan_columns_set(&state->columns, state->row.slot, scan);
		if (state->status == WINDOW_RUNS)
			set_values(state, scan);
		ExecStoreVirtualTuple(scan);
		econtext->ecxt_scantuple = scan;
		/* before the conditions, as WindowAgg does */
		result = projection ? ExecProject(projection) : scan;
		if (state->run_condition && state->status == WINDOW_RUNS &&
			!ExecQual(state->run_condition, econtext))
		{
			stop_running(state);
			if (state->status != WINDOW_PASSES_ON)
				continue;
		}
		if (node->ss.ps.qual && !ExecQual(node->ss.ps.qual, econtext))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		return result;
	}
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *conditions = gs_window_run_condition(plan);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);

	gs_explain_computed("Window Functions", node, ancestors, es);
	if (conditions != NIL)
		ExplainPropertyText("Run Condition",
							deparse_expression((Node *) make_ands_explicit(conditions), context,
											   gs_compat_explain_prefix(es), false), es);
}

const GsNode gs_window_node = {
	GS_NODE(GS_WINDOW_NAME, GpuWindowState),
};
