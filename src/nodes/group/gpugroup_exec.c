/*-------------------------------------------------------------------------
 *
 * gpugroup_exec.c
 *	  The executor node GpuAggregate.
 *
 * Groups are rows that come one after the other and are equal in the columns of GROUP BY, which a
 * GpuSort's keys may tell (row_match.h: a group is a partition).  When a group's values
 * are returned, the first row of the next group has been read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "compat.h"
#include "nodes/common/gpuaccumulator.h"
#include "nodes/group/gpugroup.h"
#include "nodes/sort/gpusort_reader.h"
#include "nodes/window/gpuwindow.h"
#include "nodes/common/row_match.h"

typedef struct Aggregate
{
	GsAccumulator accumulator;
	ExprState  *filter;			/* NULL: none */
	int			column;			/* of the scan tuple, from 0 */
} Aggregate;

typedef struct GpuAggregateState
{
	CustomScanState css;
	bool		grouped;
	int			n_columns;		/* of the scan tuple */
	AttrNumber *columns;		/* the child's; 0: an aggregate */
	AttrNumber	last_column;	/* of the child, of those that are returned */
	AttrNumber	last_argument;	/* of the child, of those that are compared or aggregated */
	int			n_aggregates;
	Aggregate  *aggregates;
	bool		have_filters;
	ExprContext *input_context; /* for one row of the input at a time */

	GsReader	reader;
	GsRelations *relations;
	TupleTableSlot *first;		/* a copy of the group's first row, if columns are returned */
	TupleTableSlot *next;		/* the next group's; NULL: it was not read yet */
	bool		done;			/* all rows were read */
} GpuAggregateState;

/* The scan tuple's columns. */
static void
read_columns(GpuAggregateState *state, const CustomScan *plan)
{
	ListCell   *lc;

	state->n_columns = list_length(plan->custom_scan_tlist);
	state->columns = palloc0(state->n_columns * sizeof(AttrNumber));
	state->aggregates = palloc0(state->n_columns * sizeof(Aggregate));
	foreach(lc, plan->custom_scan_tlist)
	{
		const Expr *expr = lfirst_node(TargetEntry, lc)->expr;
		int			column = foreach_current_index(lc);
		const Aggref *call = (const Aggref *) expr;
		Aggregate  *aggregate;

		if (IsA(expr, Var))
		{
			state->columns[column] = ((const Var *) expr)->varattno;
			state->last_column = Max(state->last_column, state->columns[column]);
			continue;
		}
		/* as Agg would */
		gs_compat_check_execute(call->aggfnoid, GetUserId(), OBJECT_AGGREGATE);
		aggregate = &state->aggregates[state->n_aggregates++];
		aggregate->column = column;
		gs_accumulator_init(&aggregate->accumulator, call->aggfnoid, gs_aggregate_args(call));
		aggregate->filter = ExecInitExpr(call->aggfilter, &state->css.ss.ps);
		state->have_filters |= aggregate->filter != NULL;
		state->last_argument = Max(state->last_argument, aggregate->accumulator.column);
	}
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggregateState *state = (GpuAggregateState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *lists[GS_WINDOW_Count] = {NIL};
	ListCell   *lc;

	if (list_length(plan->custom_private) != GS_AGGREGATE_Count)
		elog(ERROR, "malformed %s plan", GS_AGGREGATE_NAME);
	lists[GS_WINDOW_PART_ATTNOS] = list_nth(plan->custom_private, GS_AGGREGATE_ATTNOS);
	lists[GS_WINDOW_PART_OPERATORS] = list_nth(plan->custom_private, GS_AGGREGATE_OPERATORS);
	lists[GS_WINDOW_PART_COLLATIONS] = list_nth(plan->custom_private, GS_AGGREGATE_COLLATIONS);
	state->grouped = lists[GS_WINDOW_PART_ATTNOS] != NIL;
	foreach(lc, lists[GS_WINDOW_PART_ATTNOS])
		state->last_argument = Max(state->last_argument, lfirst_int(lc));

	/* as with Agg, a rescan need not sort again */
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate,
										eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	gs_reader_init(&state->reader, outerPlanState(node));
	state->relations = gs_relations_create(node, &state->reader, lists, false);
	state->input_context = CreateExprContext(estate);
	read_columns(state, plan);
	if (state->last_column > 0)
		state->first = ExecInitExtraTupleSlot(estate, ExecGetResultType(outerPlanState(node)),
											  &TTSOpsMinimalTuple);
}

static void
forget_rows(GpuAggregateState *state)
{
	if (state->first)
		ExecClearTuple(state->first);
	gs_reader_reset(&state->reader);
	gs_relations_reset(state->relations);
	state->next = NULL;
	state->done = false;
}

static void
end(CustomScanState *node)
{
	forget_rows((GpuAggregateState *) node);
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	forget_rows((GpuAggregateState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static bool
passes(GpuAggregateState *state, const Aggregate *aggregate, TupleTableSlot *row)
{
	bool		isnull;
	Datum		value;

	if (aggregate->filter == NULL)
		return true;
	state->input_context->ecxt_outertuple = row;
	value = ExecEvalExprSwitchContext(aggregate->filter, state->input_context, &isnull);
	return !isnull && DatumGetBool(value);
}

/* A row of the group, whose columns have been deformed. */
static void
advance(GpuAggregateState *state, TupleTableSlot *row)
{
	for (int i = 0; i < state->n_aggregates; i++)
	{
		Aggregate  *aggregate = &state->aggregates[i];

		if (!state->have_filters || passes(state, aggregate, row))
			gs_accumulator_advance(&aggregate->accumulator, row);
	}
	if (state->have_filters)
		ResetExprContext(state->input_context);
}

/* The next row and how it is related to the one before; NULL: there is none. */
static TupleTableSlot *
read_row(GpuAggregateState *state, GsRowRelation *relation)
{
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	row = gs_reader_next(&state->reader);
	if (TupIsNull(row))
	{
		state->done = true;
		return NULL;
	}
	slot_getsomeattrs(row, state->last_argument);
	*relation = gs_relations_read(state->relations, row);
	return row;
}

/* Aggregate the rows of the next group; false: there is none. */
static bool
read_group(GpuAggregateState *state)
{
	GsRowRelation relation;
	TupleTableSlot *row = state->next;

	if (state->done)
		return false;
	if (row == NULL)
		row = read_row(state, &relation);
	state->next = NULL;
	if (row == NULL && state->grouped)
		return false;
	for (int i = 0; i < state->n_aggregates; i++)
		gs_accumulator_begin(&state->aggregates[i].accumulator);
	if (row && state->first)
		ExecCopySlot(state->first, row);
	while (row)
	{
		advance(state, row);
		row = read_row(state, &relation);
		if (row && relation == GS_OTHER_PARTITION)
		{
			state->next = row;
			break;
		}
	}
	return true;
}

/* The scan tuple of the group that was read; in per-tuple memory. */
static void
set_values(GpuAggregateState *state, TupleTableSlot *scan)
{
	if (state->first)
		slot_getsomeattrs(state->first, state->last_column);
	for (int i = 0; i < state->n_columns; i++)
	{
		AttrNumber	attno = state->columns[i];

		if (attno == 0)
			continue;
		scan->tts_values[i] = state->first->tts_values[attno - 1];
		scan->tts_isnull[i] = state->first->tts_isnull[attno - 1];
	}
	for (int i = 0; i < state->n_aggregates; i++)
	{
		Aggregate  *aggregate = &state->aggregates[i];

		scan->tts_values[aggregate->column] =
			gs_accumulator_result(&aggregate->accumulator, &scan->tts_isnull[aggregate->column]);
	}
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuAggregateState *state = (GpuAggregateState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;

	for (;;)
	{
		MemoryContext old;

		ExecClearTuple(scan);
		ResetExprContext(econtext);
		if (!read_group(state))
			return projection ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : scan;
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		set_values(state, scan);
		MemoryContextSwitchTo(old);
		ExecStoreVirtualTuple(scan);
		econtext->ecxt_scantuple = scan;
		if (ExecQual(node->ss.ps.qual, econtext))
			return projection ? ExecProject(projection) : scan;
		InstrCountFiltered1(node, 1);
	}
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;

	if (((GpuAggregateState *) node)->grouped)
		gs_explain_group_key(node, ancestors, list_nth(plan->custom_private, GS_AGGREGATE_ATTNOS), es);
}

const GsNode gs_aggregate_node = {
	.scan = {
		.CustomName = GS_AGGREGATE_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_AGGREGATE_NAME,
		.BeginCustomScan = begin,
		.ExecCustomScan = exec,
		.EndCustomScan = end,
		.ReScanCustomScan = rescan,
		.ExplainCustomScan = explain,
	},
	.state_bytes = sizeof(GpuAggregateState),
};
