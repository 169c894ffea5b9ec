/*-------------------------------------------------------------------------
 *
 * gpuwindow_exec.c
 *	  The executor node GpuWindow: window functions over rows that come sorted.
 *
 * Where no function needs more than the rows that went by, rows are passed on as
 * they come.  Otherwise they are held (gpuwindow_rows.h): the current row comes
 * from there, after as many rows behind it have been read as its values need.
 * That is up to the end of its peers, so many rows as lead() looks ahead, or the
 * partition; and as many rows stay as lag() looks back.  Rows that lie in the page at
 * hand are looked at there instead; lag() of a column keeps its last values.
 *
 * Whether a row starts a new partition or a new group of peers is found out when it is
 * read (row_match.h).
 *
 * For each row the window functions are evaluated first, in their order, and then
 * the aggregates, as WindowAgg does: an error comes at the same row.
 *
 * Run conditions are WindowAgg's, too.  Once a row fails one, so would all that come
 * after it in the partition.  Then, of the topmost window, the rest of the partition is
 * skipped; if there is but one, the child is not asked for any more rows.  Below
 * other windows, rows go on without values.
 *
 * The scan tuple is a virtual one: values of the functions, and of the child's
 * columns, which are good until the next row is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "compat.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/window/gpuwindow_function.h"
#include "nodes/common/aggregates.h"
#include "nodes/common/row_match.h"
#include "nodes/window/gpuwindow_rows.h"

typedef enum WindowStatus
{
	WINDOW_RUNS,
	WINDOW_PASSES_ON,			/* the partition's other rows, without values */
	WINDOW_SKIPS,				/* the partition's other rows */
	WINDOW_IS_DONE
} WindowStatus;

/* Readers of held rows; those of functions follow. */
enum
{
	CURRENT_READER,
	AGGREGATE_READER,
	PEERS_READER,
	FIRST_FUNCTION_READER
};

typedef struct GpuWindowState
{
	CustomScanState css;
	int			n_columns;		/* of the scan tuple */
	AttrNumber *columns;		/* the child's; 0: a function */
	AttrNumber	last_column;	/* of the child that is used */
	GsReader	reader;			/* of the child's rows */
	GsRowMatcher *matcher;		/* of them */
	ExprState  *run_condition;	/* NULL: none */
	bool		is_top;
	GsWindowFrame frame;
	int			needs;			/* GS_WINDOW_NEEDS_ */

	int			n_functions;	/* but aggregates */
	GsWindowFunction *functions;
	GsAggregates *aggregates;
	int			n_aggregates;
	int		   *aggregate_columns;	/* of the scan tuple, from 0 */
	int64		aggregated;		/* so many rows of the partition are in the aggregates */

	bool		evaluates;		/* expressions, but those of aggregates, for each row */
	WindowStatus status;
	bool		started;		/* a row was read */
	GsWindowRow row;

	/* where rows are held */
	GsHeldRows *held;			/* NULL: they are not */
	int64		ahead;			/* how many rows to look ahead for lead() */
	int64		behind;			/* and to keep for lag() */
	TupleTableSlot *last;		/* the row that was read last; empty: the input has ended */
	bool		last_starts_peers;
	bool		partition_is_read;	/* last is the first row of the next one, if there is one */
} GpuWindowState;

/*
 * Begin and end
 */

/* Which column is the child's, which one a function's, and what functions need. */
static void
read_columns(GpuWindowState *state, List *columns, List *calls, int *function_columns)
{
	int			n = 0;

	state->n_columns = list_length(columns);
	state->columns = palloc(state->n_columns * sizeof(AttrNumber));
	for (int i = 0; i < state->n_columns; i++)
	{
		state->columns[i] = list_nth_int(columns, i);
		state->last_column = Max(state->last_column, state->columns[i]);
		if (state->columns[i] == 0)
		{
			const WindowFunc *call = list_nth_node(WindowFunc, calls, n);

			function_columns[n++] = i;
			state->needs |= gs_window_needs(call, state->frame);
		}
	}
}

/* Begins the child, too. */
static void
make_aggregates(GpuWindowState *state, List *calls, const int *columns, EState *estate, int eflags)
{
	const CustomScan *plan = (const CustomScan *) state->css.ss.ps.plan;
	List	   *aggregates = NIL;
	ListCell   *lc;

	state->aggregate_columns = palloc(list_length(calls) * sizeof(int));
	foreach(lc, calls)
	{
		const WindowFunc *call = lfirst_node(WindowFunc, lc);
		int			column = columns[foreach_current_index(lc)];

		gs_compat_check_execute(call->winfnoid, GetUserId(), OBJECT_FUNCTION);
		if (!call->winagg)
			continue;
		state->aggregate_columns[state->n_aggregates++] = column;
		aggregates = lappend(aggregates, list_nth_node(TargetEntry, plan->custom_scan_tlist, column)->expr);
	}
	state->aggregates = gs_aggregates_init(&state->css, aggregates, true, estate, eflags);
}

static void
make_functions(GpuWindowState *state, List *calls, const int *columns)
{
	ListCell   *lc;

	state->functions = palloc0(list_length(calls) * sizeof(GsWindowFunction));
	foreach(lc, calls)
	{
		WindowFunc *call = lfirst_node(WindowFunc, lc);
		GsWindowFunction *function = &state->functions[state->n_functions];

		if (call->winagg)
			continue;
		gs_window_function_init(function, call, &state->css.ss.ps);
		function->column = columns[foreach_current_index(lc)];
		function->reader = FIRST_FUNCTION_READER + state->n_functions++;
	}
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuWindowState *state = (GpuWindowState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *calls = gs_window_functions(plan);
	int		   *function_columns = palloc(list_length(calls) * sizeof(int));
	List	   *private = gs_node_private(plan, GS_WINDOW_Count);
	List	   *options = list_nth(private, GS_WINDOW_OPTIONS);
	GsColumns	partition = gs_columns_read(list_nth(private, GS_WINDOW_PARTITION));
	GsColumns	order = gs_columns_read(list_nth(private, GS_WINDOW_ORDER));

	state->frame = list_nth_int(options, GS_WINDOW_FRAME);
	state->is_top = list_nth_int(options, GS_WINDOW_IS_TOP) != 0;
	read_columns(state, list_nth(private, GS_WINDOW_COLUMNS), calls, function_columns);

	/* as with WindowAgg, a rescan need not sort again */
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	make_aggregates(state, calls, function_columns, estate, eflags);
	gs_reader_init(&state->reader, outerPlanState(node));
	state->matcher = gs_row_matcher_create(node, &state->reader, &partition,
										   state->needs & GS_WINDOW_NEEDS_PEERS ? &order : NULL);
	if (state->needs & ~GS_WINDOW_NEEDS_PEERS)
	{
		bool		fixed;
		const TupleTableSlotOps *ops = ExecGetResultSlotOps(outerPlanState(node), &fixed);

		state->held = gs_held_create(estate, &state->reader,
									 FIRST_FUNCTION_READER + list_length(calls));

		/* arguments are evaluated over the child's tuples and those that are held */
		node->ss.ps.outeropsset = true;
		node->ss.ps.outeropsfixed = fixed && ops == &TTSOpsMinimalTuple;
		node->ss.ps.outerops = &TTSOpsMinimalTuple;
	}
	make_functions(state, calls, function_columns);
	state->run_condition = ExecInitQual(gs_window_run_condition(plan), &node->ss.ps);
	state->evaluates = state->run_condition || node->ss.ps.qual || node->ss.ps.ps_ProjInfo;
	for (int i = 0; i < state->n_functions; i++)
		state->evaluates |= gs_window_function_evaluates(&state->functions[i]);
}

static void
forget_rows(GpuWindowState *state)
{
	state->started = false;
	state->partition_is_read = false;
	gs_reader_reset(&state->reader);
	gs_row_matcher_reset(state->matcher);
	if (state->held)
		gs_held_clear(state->held);
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
	state->status = WINDOW_RUNS;
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
		state->ahead = state->behind = 0;
		for (int i = 0; i < state->n_functions; i++)
		{
			GsWindowFunction *function = &state->functions[i];

			gs_window_function_begin_scan(function, state->css.ss.ps.ps_ExprContext);
			if (!gs_window_function_needs_rows(function))
				continue;
			state->ahead = Max(state->ahead, function->offset);
			state->behind = Max(state->behind, -function->offset);
		}
	}
	for (int i = 0; i < state->n_functions; i++)
		gs_window_function_begin_partition(&state->functions[i]);
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
 * Rows that are passed on as they come
 */

/* Go on to the next row; false: there is none. */
static bool
next_passing_row(GpuWindowState *state)
{
	GsRowMatch match;

	do
	{
		CHECK_FOR_INTERRUPTS();
		state->row.slot = gs_reader_next(&state->reader);
		if (TupIsNull(state->row.slot))
			return false;
		match = gs_row_matcher_match(state->matcher, state->row.slot);
	} while (state->status == WINDOW_SKIPS && match != GS_OTHER_PARTITION);

	if (match == GS_OTHER_PARTITION)
		begin_partition(state);
	else
	{
		state->row.position++;
		if (match == GS_SAME_PARTITION)
			begin_peers(state);
	}
	return true;
}

/*
 * Rows that are held
 */

/* Read a row of the partition, which is not held then; false: there is no other one. */
static bool
read_row(GpuWindowState *state)
{
	GsRowMatch match;

	if (state->partition_is_read)
		return false;
	CHECK_FOR_INTERRUPTS();
	state->last = gs_reader_next(&state->reader);
	if (TupIsNull(state->last))
	{
		state->partition_is_read = true;
		return false;
	}
	match = gs_row_matcher_match(state->matcher, state->last);
	state->last_starts_peers = match != GS_SAME_PEERS;
	if (match == GS_OTHER_PARTITION)
	{
		state->partition_is_read = true;
		return false;
	}
	gs_held_note_read(state->held);
	return true;
}

/* Hold the rows of the partition up to a position. */
static void
hold_rows(GpuWindowState *state, int64 position)
{
	while (gs_held_end(state->held) <= position && read_row(state))
		gs_held_append(state->held, state->last, state->last_starts_peers);
}

/*
 * Where the peers of the current row end, which is the first one of them, as far as rows are
 * held.
 */
static int64
find_peers_end(GpuWindowState *state)
{
	int64		position = state->row.position + 1;

	while (position < gs_held_end(state->held) &&
		   !gs_held_starts_peers(state->held, PEERS_READER, position))
		position++;
	return position;
}

static void
hold_peers(GpuWindowState *state)
{
	int64		position = find_peers_end(state);

	if (position == gs_held_end(state->held))
		for (; read_row(state); position++)
		{
			gs_held_append(state->held, state->last, state->last_starts_peers);
			if (state->last_starts_peers)
				break;
		}
	state->row.peers_end = position;
}

/*
 * Rows that are at hand, without being read
 */

/* Are the rows that each lead() wants, of those that were not read yet and are in the partition? */
static bool
wanted_are_at_hand(const GpuWindowState *state)
{
	for (int i = 0; i < state->n_functions; i++)
	{
		const GsWindowFunction *function = &state->functions[i];
		int64		position = state->row.position + function->offset;

		if (gs_window_function_needs_rows(function) && position < state->row.reach &&
			position >= gs_held_read_end(state->held) &&
			!gs_reader_is_at_hand(&state->reader, position - gs_held_read_end(state->held) + 1))
			return false;
	}
	return true;
}

/* Are all those that lead() asks for?  If so, notes which these are. */
static bool
look_ahead(GpuWindowState *state)
{
	int64		read_end = gs_held_read_end(state->held);
	int64		n = state->row.position + state->ahead - read_end + 1;
	bool		same_partition = true;

	if (state->row.partition_end < 0 && n > 0)
	{
		if (!gs_row_matcher_look_ahead(state->matcher, n, &same_partition))
			return false;
		while (!same_partition && --n > 0)
			if (!gs_row_matcher_look_ahead(state->matcher, n, &same_partition))
				return false;
		if (n < state->row.position + state->ahead - read_end + 1)
			state->row.partition_end = read_end + n;
	}
	if (state->row.partition_end >= 0)
		state->row.reach = state->row.partition_end;
	else
		state->row.reach = read_end + Max(n, 0);

	/* the farthest one is */
	return state->n_functions == 1 || wanted_are_at_hand(state);
}

/* Are all that the values of the current row need? */
static bool
rows_are_at_hand(GpuWindowState *state)
{
	GsWindowRow *row = &state->row;
	int64		read_end = gs_held_read_end(state->held);
	uint64		peers = 0;

	if (state->behind > 0 || gs_held_in_file(state->held))
		return false;
	if (state->partition_is_read)
		row->partition_end = read_end;
	if ((state->needs & GS_WINDOW_NEEDS_PARTITION) && row->partition_end < 0)
	{
		if (gs_row_matcher_has_peers(state->matcher) ||
			!gs_row_matcher_count_peers(state->matcher, &peers))
			return false;
		row->partition_end = read_end + peers;
	}
	if ((state->needs & GS_WINDOW_NEEDS_PEERS_END) && row->peers_end <= row->position)
	{
		int64		end = row->position + 1;

		if (end < read_end)
			end = find_peers_end(state);
		if (end == read_end && !state->partition_is_read)
		{
			if (!gs_row_matcher_count_peers(state->matcher, &peers))
				return false;
			end += peers;
		}
		row->peers_end = end;
	}
	return look_ahead(state);
}

/* Read what the values of the current row need. */
static void
read_ahead(GpuWindowState *state)
{
	int64		position = state->row.position;

	if (rows_are_at_hand(state))
		return;
	gs_held_append(state->held, state->last, state->last_starts_peers);
	if (state->needs & GS_WINDOW_NEEDS_PARTITION)
	{
		hold_rows(state, PG_INT64_MAX);
		state->row.partition_end = gs_held_end(state->held);
	}
	hold_rows(state, position + state->ahead);
	if ((state->needs & GS_WINDOW_NEEDS_PEERS_END) && state->row.peers_end <= position)
		hold_peers(state);

	/* not to read from the file and write to it by turns */
	if (gs_held_in_file(state->held) && (state->needs & GS_WINDOW_NEEDS_ROWS))
		hold_rows(state, PG_INT64_MAX);
	state->row.reach = gs_held_end(state->held);
}

/* Make the current row the first one of the next partition; false: there is none. */
static bool
next_partition(GpuWindowState *state)
{
	if (TupIsNull(state->last))
		return false;
	gs_held_clear(state->held);
	gs_held_note_read(state->held);
	state->partition_is_read = false;
	begin_partition(state);
	return true;
}

/* Make the next row the current one, which is held or was read last. */
static bool
go_on(GpuWindowState *state)
{
	int64		position = ++state->row.position;

	if (state->status == WINDOW_SKIPS)
	{
		gs_held_clear(state->held);
		while (read_row(state))
			;
		return next_partition(state);
	}
	if (state->started)
	{
		gs_held_drop_before(state->held, state->status == WINDOW_RUNS ?
							position - state->behind : position);
		if (position < gs_held_end(state->held))
			return true;
	}
	return read_row(state) || next_partition(state);
}

static bool
next_held_row(GpuWindowState *state)
{
	bool		starts_peers;

	if (!go_on(state))
		return false;
	if (state->status == WINDOW_RUNS)
		read_ahead(state);
	if (state->row.position < gs_held_end(state->held))
	{
		state->row.slot = gs_held_row(state->held, CURRENT_READER, state->row.position);
		starts_peers = (state->needs & GS_WINDOW_NEEDS_PEERS) &&
			gs_held_starts_peers(state->held, CURRENT_READER, state->row.position);
	}
	else
	{
		state->row.slot = state->last;
		starts_peers = state->last_starts_peers;
	}
	if (starts_peers && state->row.position > 0)
		begin_peers(state);
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
compute_aggregates(GpuWindowState *state)
{
	if (state->aggregated == state->row.frame_end)
		return;
	while (state->aggregated < state->row.frame_end)
	{
		TupleTableSlot *slot = state->row.slot;

		CHECK_FOR_INTERRUPTS();
		if (state->aggregated != state->row.position)
			slot = gs_held_row(state->held, AGGREGATE_READER, state->aggregated);
		gs_aggregates_advance(state->aggregates, slot);
		state->aggregated++;
	}
	gs_aggregates_finish(state->aggregates);
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
	if (state->n_aggregates > 0)
		compute_aggregates(state);
	for (int i = 0; i < state->n_aggregates; i++)
	{
		int			column = state->aggregate_columns[i];

		scan->tts_values[column] = gs_aggregates_value(state->aggregates, i, &scan->tts_isnull[column]);
	}
}

/* The child's part of it; what functions there are is NULL. */
static void
set_columns(GpuWindowState *state, TupleTableSlot *scan)
{
	TupleTableSlot *slot = state->row.slot;

	slot_getsomeattrs(slot, state->last_column);
	for (int i = 0; i < state->n_columns; i++)
	{
		AttrNumber	attno = state->columns[i];

		scan->tts_values[i] = attno == 0 ? (Datum) 0 : slot->tts_values[attno - 1];
		scan->tts_isnull[i] = attno == 0 || slot->tts_isnull[attno - 1];
	}
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

	for (;;)
	{
		ExecClearTuple(scan);
		if (state->evaluates)
			ResetExprContext(econtext);
		if (state->status == WINDOW_IS_DONE ||
			!(state->held ? next_held_row(state) : next_passing_row(state)))
		{
			state->status = WINDOW_IS_DONE;
			return projection ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : scan;
		}
		set_columns(state, scan);
		if (state->status == WINDOW_RUNS)
			set_values(state, scan);
		ExecStoreVirtualTuple(scan);
		econtext->ecxt_scantuple = scan;
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
		return projection ? ExecProject(projection) : scan;
	}
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
		.ExplainCustomScan = gs_window_explain,
	},
	.state_bytes = sizeof(GpuWindowState),
};
