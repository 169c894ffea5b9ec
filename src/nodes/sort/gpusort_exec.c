/*-------------------------------------------------------------------------
 *
 * gpusort_exec.c
 *	  The executor node GpuSort: like Sort, but with gpusort's sort.
 *
 * Without feed nodes (gpusort.h), this process puts every tuple into the sort.  With feed
 * nodes, the session is opened here before Gather launches the workers.  The feed nodes hand
 * rows to the device, and only rows that they could not hand over arrive here.
 *
 * When the device is lost and the child may run again, it is rescanned.  The feed nodes then
 * return all rows, and the rows are sorted here.
 *
 * Below a GpuChoice the sort may decline its input.  Then the child is stopped, no row is returned,
 * and the GpuChoice goes on with its other plan.
 *
 * Tests: regress/plans, regress/windows_functions, isolation/for_update, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "feed/page_scan.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_exec.h"

/* Bytes of a row in a chunk, beside its values and a key that is as long. */
#define GS_ROW_BYTES	48.0

typedef struct GpuSortState
{
	CustomScanState css;
	GsColumns	keys;
	bool		random_access;
	GsSortKeep	keep;			/* rows that are needed */
	double		group_rows;		/* rows expected, if it declines few groups; else 0 */
	double		few_groups;
	bool		declined;
	ExprState  *limit;			/* count of the Limit above, for keep.limit; NULL: keep.limit is known */
	ExprState  *offset;			/* its offset; NULL with limit */
	TupleDesc	tupdesc;		/* describes the child's tuples, and ours */
	PlanState  *feed;			/* the leader's feed node, below a Gather; NULL: none */
	GsSort	   *sort;			/* NULL: not begun */
	MemoryContext sort_parent;
	bool		done;			/* sorted; rows can be fetched */
	bool		exhausted;		/* all rows were returned, and the sort has ended */

	GsSortReport report;		/* of the last sort */
	bool		reported;
} GpuSortState;

/* The rows that a plan needs of its sort. */
static void
read_keep(const CustomScan *plan, GsSortKeep *keep)
{
	keep->unique = *gs_plan_setting(plan, GS_PLAN_UNIQUE) != 0;
	keep->counted = *gs_plan_setting(plan, GS_PLAN_COUNTED) != 0;
	keep->limit = *gs_plan_setting(plan, GS_PLAN_BOUND);
	keep->group_cols = *gs_plan_setting(plan, GS_PLAN_GROUP_COLS);
	keep->group_first = *gs_plan_setting(plan, GS_PLAN_GROUP_FIRST);
	keep->group_ties = *gs_plan_setting(plan, GS_PLAN_GROUP_TIES) != 0;
	keep->group_several = *gs_plan_setting(plan, GS_PLAN_GROUP_SEVERAL) != 0;
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortState *state = (GpuSortState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	state->keys = gs_plan_read(plan);
	read_keep(plan, &state->keep);
	state->group_rows = *gs_plan_setting(plan, GS_PLAN_GROUPED_ROWS);
	state->few_groups = *gs_plan_setting(plan, GS_PLAN_FEW_GROUPS);
	state->random_access = (eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) != 0;

	if (plan->custom_exprs != NIL)
	{
		state->limit = ExecInitExpr(linitial(plan->custom_exprs), &node->ss.ps);
		state->offset = ExecInitExpr(lsecond(plan->custom_exprs), &node->ss.ps);
	}

	/* as in ExecInitSort: the sort shields its child from these */
	eflags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);

	if (gs_plan_feed(plan))
		state->feed = outerPlanState(outerPlanState(node));

	/*
	 * Rows are minimal tuples.  ExecInitCustomScan prepared for virtual ones,
	 * before PostgreSQL 16 in any case, so do that part anew.
	 */
	gs_node_type_records(node);
	state->tupdesc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	gs_compat_init_scan_slot(estate, &node->ss, state->tupdesc, &TTSOpsMinimalTuple);
	ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
	state->sort_parent = CurrentMemoryContext;
}

/*
 * How many rows the Limit above will ask for, by its count and offset; 0: any number.  The Limit has computed
 * both before it asked for the first row, so they will not change.
 */
static uint64
read_limit(GpuSortState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	bool		no_limit;
	bool		no_offset;
	int64		limit;
	int64		offset;

	limit = DatumGetInt64(ExecEvalExprSwitchContext(state->limit, econtext, &no_limit));
	offset = DatumGetInt64(ExecEvalExprSwitchContext(state->offset, econtext, &no_offset));
	if (no_limit || (!no_offset && pg_add_s64_overflow(limit, offset, &limit)))
		return 0;
	return Max(limit, 0);
}

static void
begin_sort(GpuSortState *state)
{
	bool		rerun = *gs_plan_setting((CustomScan *) state->css.ss.ps.plan, GS_PLAN_RERUN) != 0;
	MemoryContext old = MemoryContextSwitchTo(state->sort_parent);

	if (state->limit)
		state->keep.limit = read_limit(state);

	state->sort = gs_sort_begin(&state->keys, state->tupdesc, work_mem, state->random_access, rerun,
								&state->keep);
	gs_sort_watch_groups(state->sort, state->group_rows, state->few_groups);
	MemoryContextSwitchTo(old);
}

static void
note_report(GpuSortState *state)
{
	gs_sort_report(state->sort, &state->report);
	state->reported = true;
}

/*
 * Log how a sort was done, to help find the cause of a wrong order.  It logs no numbers of rows, because the
 * rows may belong to a function that runs with the rights of another role.
 */
static void
log_sort(const GsSortReport *report)
{
	StringInfoData devices;

	if (!message_level_is_interesting(DEBUG1))
		return;
	initStringInfo(&devices);
	for (int i = 0; report->devices >> i != 0; i++)
		if (report->devices >> i & 1)
			appendStringInfo(&devices, "device %d, ", i);
	ereport(DEBUG1,
			(errmsg_internal("gpusort sorted: %sengine %s", devices.data, report->session.engine)));
	pfree(devices.data);
}

static void
end_sort(GpuSortState *state)
{
	if (state->sort == NULL)
		return;
	if (state->feed)
		gs_feed_set_sort(state->feed, NULL);
	note_report(state);
	if (state->done && state->report.place == GS_SORT_DEVICE)
		log_sort(&state->report);
	gs_sort_end(state->sort);
	state->sort = NULL;
	state->done = false;
}

static GsSortStatus
put_all(GpuSortState *state)
{
	PlanState  *child = outerPlanState(state);
	GsPageScan *pages = NULL;
	GsFeeder   *feeder = NULL;
	const GsKeyDesc *desc;

	for (;;)
	{
		TupleTableSlot *slot = pages ? gs_page_scan_next(pages, feeder) : ExecProcNode(child);
		GsSortStatus status;

		if (TupIsNull(slot))
			return gs_sort_perform(state->sort, gs_executor_runs_once(state->css.ss.ps.state));
		status = gs_sort_put(state->sort, slot);
		if (unlikely(status != GS_SORT_OK))
			return status;
		if (feeder != gs_sort_feeder(state->sort, &desc))
		{
			feeder = gs_sort_feeder(state->sort, &desc);
			if (feeder)
			{
				MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(feeder));

				pages = gs_page_scan_create(child, desc);
				MemoryContextSwitchTo(old);
			}
		}
	}
}

/* Put all that the child returns, and sort it. */
static GsSortStatus
sort_all(GpuSortState *state)
{
	bool		entered = state->feed && gs_gather_enter_parallel_mode(outerPlanState(state));
	GsSortStatus status;

	PG_TRY();
	{
		status = put_all(state);
	}
	PG_CATCH();
	{
		gs_sort_lower_limit(state->sort);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (entered)
		gs_gather_leave_parallel_mode(outerPlanState(state));
	return status;
}

/* Sort the child's rows on the CPU after the device was lost. */
static void
sort_again(GpuSortState *state)
{
	if (state->feed)
		gs_feed_set_sort(state->feed, NULL);

	/* ends workers that still write into the session's chunks */
	ExecReScan(outerPlanState(state));
	gs_sort_restart(state->sort);	/* raises an error if that cannot be */
	if (sort_all(state) != GS_SORT_OK)
		elog(ERROR, "gpusort lost rows that it sorted on the CPU");
}

/*
 * How many processes will fill chunks, by estimate: no more than there are chunks to fill.  If rows are
 * dropped, the plan's estimate is of the rows that are left, and cannot be used.
 */
static int
count_feeders(const GpuSortState *state)
{
	const Plan *plan = state->css.ss.ps.plan;
	double		bytes = plan->plan_rows * (2.0 * plan->plan_width + GS_ROW_BYTES);
	int			feeders = 1 + ((Gather *) outerPlan(plan))->num_workers;

	if (state->keep.unique || state->keep.counted || state->keep.group_first > 0 || state->keep.limit > 0)
		return feeders;
	return Min(bytes / GS_CHUNK_BYTES, feeders);
}

/* The other plan will be executed: stop the child, and end the sort. */
static void
decline(GpuSortState *state)
{
	if (state->group_rows == 0)
		elog(ERROR, "gpusort declined a sort that has no other plan");
	/* its workers must be gone before their session is */
	(void) ExecShutdownNode(outerPlanState(state));
	end_sort(state);
	state->reported = false;
	state->declined = state->exhausted = true;
}

static void
sort_rows(GpuSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	GsSortStatus status;

	estate->es_direction = ForwardScanDirection;
	begin_sort(state);
	if (state->feed)
	{
		if (!gs_sort_open_device(state->sort, count_feeders(state)) && state->group_rows > 0)
		{
			estate->es_direction = direction;
			decline(state);
			return;
		}
		gs_feed_set_sort(state->feed, state->sort);
	}
	status = sort_all(state);
	if (status == GS_SORT_LOST)
		sort_again(state);
	estate->es_direction = direction;
	if (status == GS_SORT_DECLINED)
		decline(state);
	else
		state->done = true;
}

void
gs_sort_node_release(PlanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	if (!state->done)
		return;
	end_sort(state);
	state->exhausted = true;
}

/*
 * The last row was returned.  If no row can be requested again, free their memory now, because a plan may
 * have many sorts, one after the other.
 */
static TupleTableSlot *
return_end(GpuSortState *state)
{
	CustomScanState *node = &state->css;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	if (!state->random_access)
		gs_sort_node_release(&node->ss.ps);
	return node->ss.ps.ps_ProjInfo ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) :
		node->ss.ss_ScanTupleSlot;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	bool		forward = ScanDirectionIsForward(node->ss.ps.state->es_direction);
	GsSortStatus status;

	if (unlikely(!state->done))
	{
		if (state->exhausted)
			return return_end(state);
		sort_rows(state);
		if (state->declined)
			return return_end(state);
	}
	status = gs_sort_get(state->sort, forward, slot);
	if (unlikely(status == GS_SORT_LOST))
	{
		ExecClearTuple(slot);
		sort_again(state);
		status = gs_sort_get(state->sort, forward, slot);
	}
	if (unlikely(status == GS_SORT_END))
		return return_end(state);
	if (node->ss.ps.ps_ProjInfo)
	{
		node->ss.ps.ps_ExprContext->ecxt_scantuple = slot;
		ResetExprContext(node->ss.ps.ps_ExprContext);
		return ExecProject(node->ss.ps.ps_ProjInfo);
	}
	return slot;
}

void
gs_sort_node_keep_counts(PlanState *node, uint32 min_count, uint32 max_count)
{
	GpuSortState *state = (GpuSortState *) node;

	Assert(state->keep.counted && !state->done);
	state->keep.min_count = min_count;
	state->keep.max_count = max_count;
}

bool
gs_sort_node_declined(const PlanState *node)
{
	return ((const GpuSortState *) node)->declined;
}

GsSort *
gs_sort_node_sort(const PlanState *node)
{
	const GpuSortState *state = (const GpuSortState *) node;

	Assert(gs_node_is(node->plan, &gs_sort_node));
	return state->done ? state->sort : NULL;
}

void
gs_sort_node_skip(PlanState *node, uint64 n)
{
	GpuSortState *state = (GpuSortState *) node;

	Assert(state->done);
	if (gs_sort_skip(state->sort, n) == GS_SORT_LOST)
		sort_again(state);		/* raises an error, as the place is lost */
}

static void
end(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);

	/* first the child: its workers must be gone before their session is */
	ExecEndNode(outerPlanState(node));
	state->feed = NULL;
	end_sort(state);
}

static void
rescan(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;
	PlanState  *child = outerPlanState(node);

	/* as in ExecReScanSort */
	if (!state->done && !state->exhausted)
		return;
	state->exhausted = state->declined = false;
	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	if (state->done && child->chgParam == NULL && gs_sort_can_rescan(state->sort))
	{
		gs_sort_rescan(state->sort);
		return;
	}
	end_sort(state);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
mark(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	if (state->done)
		gs_sort_mark(state->sort);
}

static void
restore(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	if (state->done)
		gs_sort_restore(state->sort);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortState *state = (GpuSortState *) node;

	gs_explain_sort_keys(node, ancestors, &state->keys, es);
	gs_explain_sort_keep(node, ancestors, &state->keep, es);
	if (!es->analyze)
		return;
	if (state->sort && state->done)
		note_report(state);
	if (state->reported)
		gs_explain_sort_report(&state->report, es);
}

const GsNode gs_sort_node = {
	GS_NODE(GS_SORT_NAME, GpuSortState),
	.exec.MarkPosCustomScan = mark,
	.exec.RestrPosCustomScan = restore,
};
