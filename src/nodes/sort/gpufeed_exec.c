/*-------------------------------------------------------------------------
 *
 * gpufeed_exec.c
 *	  The executor node GpuSortFeed: hands a partial plan's rows to the device,
 *	  in parallel workers and the leader.
 *
 * It returns only rows that it could not hand over, which then reach GpuSort
 * through Gather:
 *	  - all rows, if there is no session (GsFeedShared.session names none), or if this process cannot
 *		make its keys;
 *	  - rows that are too large for a chunk, or that have no key;
 *	  - after the device's memory is full, the rows of the current chunk and all rows behind them.
 * The node ends at once if the service is lost: GpuSort will notice, and run the child again.  It also ends
 * if a feeder has found few groups (group_sample.h).
 *
 * Tests: regress/plans, tap/fault_cancel
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "port/atomics.h"
#include "storage/shm_toc.h"
#include "utils/memutils.h"

#include "feed/page_scan.h"
#include "nodes/sort/gpusort.h"

/* In the DSM segment of the parallel query. */
typedef struct GsFeedShared
{
	GsSessionHandle session;
	pg_atomic_uint64 rows;		/* handed over by the workers */
} GsFeedShared;

typedef struct GpuFeedState
{
	CustomScanState css;
	GsColumns	keys;
	GsFeedShared *shared;		/* NULL: no parallel query under way */
	GsSort	   *sort;			/* leader: where to feed; NULL: nowhere */
	GsSessionHandle session;	/* where this process feeds */
	bool		begun;			/* since the last rescan */
	bool		passing;		/* rows are passed on */
	bool		child_done;
	MemoryContext context;		/* of the feeder, reset with each rescan */
	GsFeeder   *feeder;			/* NULL: feeding nowhere */
	GsPageScan *pages;			/* NULL: the child returns each row */
	TupleTableSlot *returned;	/* rows taken back */
	uint64		rows;			/* handed over; in the leader, by all */
} GpuFeedState;

void
gs_feed_set_sort(PlanState *state, GsSort *sort)
{
	GpuFeedState *feed = (GpuFeedState *) state;

	Assert(gs_node_is(state->plan, &gs_feed_node));
	feed->sort = sort;
	/* Gather passes the session on to the workers, when it launches them */
	feed->session = gs_client_handle(sort ? gs_sort_client(sort) : NULL);
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuFeedState *state = (GpuFeedState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	state->keys = gs_plan_read(plan);
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
	gs_node_type_records(node);
	state->session.number = -1;
	state->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort feed node",
										   ALLOCSET_DEFAULT_SIZES);
	state->returned = ExecInitExtraTupleSlot(estate,
											 node->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
											 &TTSOpsMinimalTuple);

	/* what is returned is a slot of the child's, or the one above */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	node->ss.ps.resultops = NULL;
	node->ss.ps.ps_ProjInfo = NULL;
}

static void
begin_feeding(GpuFeedState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);
	GsClient   *client = NULL;

	if (state->sort)
		client = gs_sort_client(state->sort);
	else if (state->session.number >= 0)
		client = gs_client_attach(state->session);
	if (client)
	{
		GsRefusal	refusal;
		GsKeyDesc  *desc = gs_sort_key_desc(&state->keys, state->returned->tts_tupleDescriptor, &refusal);

		state->feeder = gs_feeder_create(client, desc);
		if (state->feeder)
			state->pages = gs_page_scan_create(outerPlanState(state), desc);
	}
	MemoryContextSwitchTo(old);
	state->passing = state->feeder == NULL;
	state->begun = true;
}

/* The child has no more rows, or the service is gone. */
static void
finish_feeding(GpuFeedState *state)
{
	uint64		rows;

	state->child_done = true;
	if (state->feeder == NULL)
		return;
	if (!state->passing)
		state->passing = gs_feeder_finish(state->feeder) == GS_PUT_OVERFLOW;
	rows = gs_feeder_rows(state->feeder);
	if (IsParallelWorker())
		pg_atomic_fetch_add_u64(&state->shared->rows, rows);
	else
		state->rows += rows;
}

/* After overflow: a row that was fed but not handed over. */
static TupleTableSlot *
taken_back(GpuFeedState *state)
{
	const char *row;
	bool		external;

	if (state->feeder == NULL)
		return NULL;
	row = gs_feeder_take_back(state->feeder, &external);
	if (row == NULL)
		return NULL;
	Assert(!external);
	return ExecStoreMinimalTuple((MinimalTuple) row, state->returned, false);
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuFeedState *state = (GpuFeedState *) node;
	PlanState  *child = outerPlanState(node);

	if (unlikely(!state->begun))
		begin_feeding(state);
	while (!state->child_done)
	{
		TupleTableSlot *slot;
		GsPut		status;

		if (unlikely(state->passing))
		{
			slot = taken_back(state);
			if (slot)
				return slot;
		}
		slot = state->pages ? gs_page_scan_next(state->pages, state->passing ? NULL : state->feeder) :
			ExecProcNode(child);
		if (TupIsNull(slot))
		{
			finish_feeding(state);
			break;
		}
		if (state->passing)
			return slot;
		status = gs_feeder_put(state->feeder, &(GsPutRow){.slot = slot});
		if (likely(status == GS_PUT_OK))
			continue;
		if (status == GS_PUT_LOST || status == GS_PUT_DECLINED)
		{
			finish_feeding(state);
			break;
		}
		state->passing = status == GS_PUT_OVERFLOW;
		return slot;
	}
	return state->passing ? taken_back(state) : NULL;
}

static void
end(CustomScanState *node)
{
	((GpuFeedState *) node)->shared = NULL;
	ExecEndNode(outerPlanState(node));
}

/* The DSM segment is about to be removed. */
static void
shutdown(CustomScanState *node)
{
	GpuFeedState *state = (GpuFeedState *) node;

	if (state->shared && !IsParallelWorker())
		state->rows += pg_atomic_exchange_u64(&state->shared->rows, 0);
	state->shared = NULL;
}

static void
rescan(CustomScanState *node)
{
	GpuFeedState *state = (GpuFeedState *) node;

	ExecClearTuple(state->returned);
	MemoryContextReset(state->context);
	state->feeder = NULL;
	state->pages = NULL;
	state->begun = false;
	state->passing = false;
	state->child_done = false;
	state->rows = 0;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static Size
estimate_dsm(CustomScanState *node, ParallelContext *pcxt)
{
	return sizeof(GsFeedShared);
}

/* Before workers are launched, each time. */
static void
initialize_dsm(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuFeedState *state = (GpuFeedState *) node;

	state->shared = (GsFeedShared *) coordinate;
	pg_atomic_init_u64(&state->shared->rows, 0);
	state->shared->session = state->session;
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuFeedState *state = (GpuFeedState *) node;

	state->shared = (GsFeedShared *) coordinate;
	state->session = state->shared->session;
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuFeedState *state = (GpuFeedState *) node;

	if (es->analyze)
		ExplainPropertyInteger("Rows Fed", NULL, state->rows, es);
}

const GsNode gs_feed_node = {
	GS_NODE(GS_FEED_NAME, GpuFeedState),
	.exec.EstimateDSMCustomScan = estimate_dsm,
	.exec.InitializeDSMCustomScan = initialize_dsm,
	.exec.ReInitializeDSMCustomScan = initialize_dsm,
	.exec.InitializeWorkerCustomScan = initialize_worker,
	.exec.ShutdownCustomScan = shutdown,
};
