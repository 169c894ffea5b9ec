/*-------------------------------------------------------------------------
 *
 * gpuarrays_exec.c
 *	  The executor node GpuArraySort: computes calls of gpu_sort_array() for many
 *	  rows at once.
 *
 * Rows of the child are taken in batches.  Of each, the arrays go into chunks
 * that the device sorts (array/array_batch.h), and the columns that are needed
 * above are copied into memory of the batch.  While the device sorts, further
 * batches are filled.  A row that is returned has its sorted arrays where the
 * device left them: no array is copied a second time.
 *
 * Reading ahead
 *	  It must have no effect but on time.  If all rows will be asked for, as many are read ahead as there
 *	  is room for.  Otherwise a row is read when it is asked for, and its arrays are sorted in the process.
 *	  Which of these holds may change while the node runs: a cursor fetches some rows, and then all others.
 *
 * Memory
 *	  GS_MAX_BATCHES batches, each with a chunk for each call, GS_BATCH_BYTES
 *	  of columns (or one row) and as much for their places.
 *
 * Tests: regress/arrays_plans, isolation/arrays_update
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/spin.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "compat.h"
#include "array/array_batch.h"
#include "nodes/arrays/gpuarrays.h"
#include "plan/array_calls.h"
#include "plan/plan_walk.h"
#include "service/service_shmem.h"

/* Batches under way: one that is read, one that is filled, two on the device. */
#define GS_MAX_BATCHES		4

/* Rows of the first batch. */
#define GS_FIRST_ROWS		64

/* Copies of columns in one batch; a batch with more is full. */
#define GS_BATCH_BYTES		((Size) 1 << 20)

/* Rows whose arrays are in one GsArrayBatch. */
typedef struct RowBatch
{
	GsArrayBatch *arrays;
	int			n_rows;
	Datum	   *values;			/* of the scan tuple, row after row; NULL: not needed yet */
	bool	   *nulls;
	char	   *copies;			/* of columns, GS_BATCH_BYTES; NULL: not needed yet */
	Size		copied;			/* bytes of all copies */
	MemoryContext large;		/* the last row's, that have no room there */
} RowBatch;

/* In the DSM segment of a parallel query: what the workers report, and must know. */
typedef struct GsArraysShared
{
	bool		to_end;			/* the leader runs the query to its end */
	slock_t		mutex;
	GsArrayReport report;
} GsArraysShared;

typedef struct GpuArraysState
{
	CustomScanState css;
	GsScanColumns columns;
	int			n_kept;			/* the child's columns: the scan tuple's first ones */
	int			n_calls;		/* the scan tuple's last columns */
	AttrNumber	max_attno;		/* of the child that is used */
	GsArrayCall *calls;
	AttrNumber *array_attnos;	/* of each call: the child's column, or 0 */
	ExprState **array_exprs;	/* where it is 0 */
	Datum	   *arrays;			/* of the row in work */
	bool	   *array_nulls;
	bool		to_end;			/* all rows are asked for only if the executor runs the query to its end */

	MemoryContext context;
	GsArrayStream *stream;		/* NULL: not begun */
	RowBatch	batches[GS_MAX_BATCHES];
	int			first;			/* the oldest one under way */
	int			n_batches;		/* under way */
	int			row;			/* of the oldest one that comes next; -1: not
								 * waited for yet */
	int			max_rows;		/* of a batch */
	uint64		n_read;			/* rows of the child */
	TupleTableSlot *pending;	/* a row of the child that is in no batch yet */
	bool		child_done;

	GsArraysShared *shared;		/* NULL: no parallel query under way */
	GsArrayReport report;		/* of what has ended */
} GpuArraysState;

/*
 * Setting up
 */

static void
begin_calls(GpuArraysState *state, List *scan_tlist)
{
	state->calls = palloc0(state->n_calls * sizeof(GsArrayCall));
	state->array_attnos = palloc0(state->n_calls * sizeof(AttrNumber));
	state->array_exprs = palloc0(state->n_calls * sizeof(ExprState *));
	state->arrays = palloc0(state->n_calls * sizeof(Datum));
	state->array_nulls = palloc0(state->n_calls * sizeof(bool));
	for (int i = 0; i < state->n_calls; i++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, scan_tlist, state->n_kept + i);
		FuncExpr   *call = castNode(FuncExpr, tle->expr);
		Expr	   *array = (Expr *) gs_plan_strip_relabel((Node *) gs_array_call_array(call));

		/* it is not called, but checked as if it were: may the user call it? */
		(void) ExecInitExpr((Expr *) call, &state->css.ss.ps);

		state->calls[i] = gs_array_call_read(call);
		if (IsA(array, Var))
		{
			state->array_attnos[i] = ((Var *) array)->varattno;
			state->max_attno = Max(state->max_attno, state->array_attnos[i]);
		}
		else
			state->array_exprs[i] = ExecInitExpr(array, &state->css.ss.ps);
	}
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuArraysState *state = (GpuArraysState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *private = gs_node_private(plan, GS_ARRAYS_Count);
	Size		row_bytes;

	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);

	state->n_calls = list_nth_int(private, GS_ARRAYS_CALLS);
	state->to_end = list_nth_int(private, GS_ARRAYS_TO_END);
	gs_scan_columns_read(&state->columns, plan);
	state->n_kept = state->columns.n - state->n_calls;
	state->max_attno = state->columns.last;
	begin_calls(state, plan->custom_scan_tlist);

	row_bytes = state->columns.n * (sizeof(Datum) + sizeof(bool));
	state->max_rows = Max(GS_FIRST_ROWS, GS_BATCH_BYTES / row_bytes);
	state->context = AllocSetContextCreate(CurrentMemoryContext, "GpuArraySort",
										   ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < GS_MAX_BATCHES; i++)
		state->batches[i].large = AllocSetContextCreate(state->context, "GpuArraySort large values",
														ALLOCSET_SMALL_SIZES);
	state->row = -1;
	state->report.fallback = GS_FALLBACK_NONE;
}

/*
 * Reading ahead
 */

/* Will all rows of the child be asked for? */
static bool
reads_ahead(const GpuArraysState *state)
{
	if (!state->to_end)
		return true;
	return state->shared && IsParallelWorker() ? state->shared->to_end :
		gs_executor_runs_to_end(state->css.ss.ps.state);
}

/*
 * How many rows may the next batch have, if any?  Batches grow, because the
 * first arrays of a query are sorted in the process.
 */
static int
rows_to_read(const GpuArraysState *state)
{
	if (!reads_ahead(state))
		return state->n_batches == 0 ? 1 : 0;
	return (int) Min(Max(state->n_read, GS_FIRST_ROWS), (uint64) state->max_rows);
}

/*
 * Filling batches
 */

/* Returns memory for a copy in a batch. */
static char *
copy_space(GpuArraysState *state, RowBatch *batch, Size bytes)
{
	Size		before = batch->copied;

	batch->copied += MAXALIGN(bytes);
	if (batch->copied > GS_BATCH_BYTES)
		return MemoryContextAlloc(batch->large, bytes);
	if (batch->copies == NULL)
		batch->copies = MemoryContextAlloc(state->context, GS_BATCH_BYTES);
	return batch->copies + before;
}

/* Copy a value that is passed by reference. */
static Datum
copy_value(GpuArraysState *state, RowBatch *batch, Datum value, int16 typlen)
{
	Size		bytes;
	char	   *copy;

	if (typlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
	{
		ExpandedObjectHeader *header = DatumGetEOHP(value);

		bytes = EOH_get_flat_size(header);
		copy = copy_space(state, batch, bytes);
		EOH_flatten_into(header, copy, bytes);
		return PointerGetDatum(copy);
	}
	bytes = datumGetSize(value, false, typlen);
	copy = copy_space(state, batch, bytes);
	memcpy(copy, DatumGetPointer(value), bytes);
	return PointerGetDatum(copy);
}

/* Get the arrays of a row of the child. */
static void
get_arrays(GpuArraysState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	slot_getsomeattrs(slot, state->max_attno);
	for (int i = 0; i < state->n_calls; i++)
	{
		int			column = state->array_attnos[i] - 1;

		if (likely(column >= 0))
		{
			state->arrays[i] = slot->tts_values[column];
			state->array_nulls[i] = slot->tts_isnull[column];
		}
		else
		{
			econtext->ecxt_outertuple = slot;
			state->arrays[i] = ExecEvalExprSwitchContext(state->array_exprs[i], econtext,
														 &state->array_nulls[i]);
		}
	}
}

/* Add a row to a batch; false: it has no room for its arrays. */
static bool
put_row(GpuArraysState *state, RowBatch *batch, TupleTableSlot *slot)
{
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	int			width = state->columns.n;
	Datum	   *values = batch->values + batch->n_rows * width;
	bool	   *nulls = batch->nulls + batch->n_rows * width;

	get_arrays(state, slot);
	if (!gs_array_batch_put(batch->arrays, state->arrays, state->array_nulls, values + state->n_kept))
		return false;
	memcpy(nulls + state->n_kept, state->array_nulls, state->n_calls * sizeof(bool));
	for (int i = 0; i < state->n_kept; i++)
	{
		AttrNumber	attno = state->columns.attnos[i];
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Datum		value = slot->tts_values[attno - 1];

		nulls[i] = slot->tts_isnull[attno - 1];
		if (att->attbyval || nulls[i])
			values[i] = value;
		else
			values[i] = copy_value(state, batch, value, att->attlen);
	}
	batch->n_rows++;
	return true;
}

static void
begin_rows(GpuArraysState *state, RowBatch *batch)
{
	Size		n = (Size) state->max_rows * state->columns.n;

	batch->n_rows = 0;
	batch->copied = 0;
	if (batch->values)
		return;
	batch->values = MemoryContextAlloc(state->context, n * sizeof(Datum));
	batch->nulls = MemoryContextAlloc(state->context, n * sizeof(bool));
}

static void
drop_batch(GpuArraysState *state, RowBatch *batch)
{
	gs_array_batch_end(batch->arrays);
	batch->arrays = NULL;
	MemoryContextReset(batch->large);
	state->n_batches--;
}

/* Fill one more batch and hand it over; false where no row could be had. */
static bool
fill_batch(GpuArraysState *state, int rows)
{
	PlanState  *child = outerPlanState(state);
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	RowBatch   *batch = &state->batches[(state->first + state->n_batches) % GS_MAX_BATCHES];

	batch->arrays = gs_array_batch_begin(state->stream, rows > 1);
	if (batch->arrays == NULL)
		return false;
	begin_rows(state, batch);
	state->n_batches++;
	while (batch->n_rows < rows && batch->copied < GS_BATCH_BYTES)
	{
		TupleTableSlot *slot = state->pending ? state->pending : ExecProcNode(child);
		bool		put;

		if (TupIsNull(slot))
		{
			state->child_done = true;
			break;
		}
		put = put_row(state, batch, slot);
		ResetExprContext(econtext);
		state->pending = put ? NULL : slot;
		if (!put)
			break;
	}
	if (batch->n_rows == 0)
	{
		drop_batch(state, batch);
		return false;
	}
	gs_array_batch_submit(batch->arrays);
	state->n_read += batch->n_rows;
	return true;
}

/* Fill as many batches as it is good to have under way. */
static void
fill_batches(GpuArraysState *state)
{
	while (!state->child_done && state->n_batches < GS_MAX_BATCHES)
	{
		int			rows = rows_to_read(state);

		if (rows == 0 || !fill_batch(state, rows))
			return;

		/* what is sorted already need not wait */
		if (!gs_array_batch_on_device(
				state->batches[(state->first + state->n_batches - 1) % GS_MAX_BATCHES].arrays))
			return;
	}
}

static void
end_batch(GpuArraysState *state)
{
	drop_batch(state, &state->batches[state->first]);
	state->first = (state->first + 1) % GS_MAX_BATCHES;
	state->row = -1;
}

/*
 * Returning rows
 */

/* The next row, as a scan tuple; false where there are no more. */
static bool
next_row(GpuArraysState *state)
{
	int			width = state->columns.n;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	RowBatch   *batch;

	ExecClearTuple(slot);
	for (;;)
	{
		batch = &state->batches[state->first];
		if (state->row >= 0 && state->row < batch->n_rows)
			break;
		if (state->row >= 0)
			end_batch(state);
		fill_batches(state);
		if (state->n_batches == 0)
			return false;
		batch = &state->batches[state->first];
		gs_array_batch_finish(batch->arrays);
		state->row = 0;
	}
	memcpy(slot->tts_values, batch->values + state->row * width, width * sizeof(Datum));
	memcpy(slot->tts_isnull, batch->nulls + state->row * width, width * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	state->row++;
	return true;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuArraysState *state = (GpuArraysState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	if (unlikely(state->stream == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		state->stream = gs_array_stream_begin(state->n_calls, state->calls);
		MemoryContextSwitchTo(old);
	}
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		if (!next_row(state))
			return ExecClearTuple(projection ? node->ss.ps.ps_ResultTupleSlot :
								  node->ss.ss_ScanTupleSlot);
		econtext->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
		if (!ExecQual(node->ss.ps.qual, econtext))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		return projection ? ExecProject(projection) : node->ss.ss_ScanTupleSlot;
	}
}

/* Let all batches go, finished or not. */
static void
end_stream(GpuArraysState *state)
{
	if (state->stream)
	{
		gs_array_stream_report(state->stream, &state->report);
		gs_array_stream_end(state->stream);
		state->stream = NULL;
	}
	for (int i = 0; i < GS_MAX_BATCHES; i++)
	{
		state->batches[i].arrays = NULL;
		MemoryContextReset(state->batches[i].large);
	}
	state->first = 0;
	state->n_batches = 0;
	state->row = -1;
	state->n_read = 0;
	state->pending = NULL;
	state->child_done = false;
}

static void
end(CustomScanState *node)
{
	GpuArraysState *state = (GpuArraysState *) node;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	end_stream(state);
	state->shared = NULL;
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	GpuArraysState *state = (GpuArraysState *) node;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	end_stream(state);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/*
 * What the workers did
 */

static Size
estimate_dsm(CustomScanState *node, ParallelContext *pcxt)
{
	return sizeof(GsArraysShared);
}

static void
initialize_dsm(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuArraysState *state = (GpuArraysState *) node;

	state->shared = (GsArraysShared *) coordinate;
	state->shared->to_end = gs_executor_runs_to_end(node->ss.ps.state);
	SpinLockInit(&state->shared->mutex);
	memset(&state->shared->report, 0, sizeof(GsArrayReport));
	state->shared->report.fallback = GS_FALLBACK_NONE;
}

static void
reinitialize_dsm(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuArraysState *state = (GpuArraysState *) node;

	state->shared = (GsArraysShared *) coordinate;
	state->shared->to_end = gs_executor_runs_to_end(node->ss.ps.state);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	((GpuArraysState *) node)->shared = (GsArraysShared *) coordinate;
}

/* The DSM segment is about to go; a worker tells, the leader takes note. */
static void
shutdown(CustomScanState *node)
{
	GpuArraysState *state = (GpuArraysState *) node;
	GsArrayReport report = state->report;

	if (state->shared == NULL)
		return;
	if (IsParallelWorker())
	{
		if (state->stream)
			gs_array_stream_report(state->stream, &report);
		SpinLockAcquire(&state->shared->mutex);
		gs_array_report_add(&state->shared->report, &report);
		SpinLockRelease(&state->shared->mutex);
	}
	else
	{
		SpinLockAcquire(&state->shared->mutex);
		report = state->shared->report;
		memset(&state->shared->report, 0, sizeof(GsArrayReport));
		state->shared->report.fallback = GS_FALLBACK_NONE;
		SpinLockRelease(&state->shared->mutex);
		gs_array_report_add(&state->report, &report);
	}
	state->shared = NULL;
}

/*
 * EXPLAIN
 */

/* Where the arrays were sorted, and how many. */
static void
explain_report(const GsArrayReport *report, ExplainState *es)
{
	const char *device = "none (few arrays)";

	if (report->device_batches > 0)
		device = gs_shared->device_kind;
	else if (report->fallback != GS_FALLBACK_NONE)
		device = "none (fallback)";
	gs_explain_device(device, report->device_batches > 0 ? report->devices : 0, es);
	if (report->fallback != GS_FALLBACK_NONE)
		ExplainPropertyText("Fallback Reason", gs_fallback_name(report->fallback), es);
	ExplainPropertyInteger("Arrays Sorted", NULL, report->arrays, es);
	if (gs_explain_details(es))
		ExplainPropertyInteger("Batches", NULL, report->batches, es);
	if (report->device_batches == 0)
		return;
	ExplainPropertyInteger("Arrays on Device", NULL, report->device_arrays, es);
	if (gs_explain_details(es))
	{
		ExplainPropertyInteger("Batches on Device", NULL, report->device_batches, es);
		ExplainPropertyText("Engine", report->engine, es);
	}
	if (!es->timing)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Device Time",
							psprintf("copy in %.3f ms, sort %.3f ms, copy out %.3f ms",
									 report->copy_in_ms, report->sort_ms, report->copy_out_ms), es);
	else
	{
		ExplainPropertyFloat("Copy In Time", "ms", report->copy_in_ms, 3, es);
		ExplainPropertyFloat("Sort Time", "ms", report->sort_ms, 3, es);
		ExplainPropertyFloat("Copy Out Time", "ms", report->copy_out_ms, 3, es);
	}
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuArraysState *state = (GpuArraysState *) node;
	GsArrayReport report = state->report;

	gs_explain_computed("Array Sort", node, ancestors, es);
	if (!es->analyze)
		return;
	if (state->stream)
		gs_array_stream_report(state->stream, &report);
	explain_report(&report, es);
}

const GsNode gs_arrays_node = {
	GS_NODE(GS_ARRAYS_NAME, GpuArraysState),
	.exec.EstimateDSMCustomScan = estimate_dsm,
	.exec.InitializeDSMCustomScan = initialize_dsm,
	.exec.ReInitializeDSMCustomScan = reinitialize_dsm,
	.exec.InitializeWorkerCustomScan = initialize_worker,
	.exec.ShutdownCustomScan = shutdown,
};
