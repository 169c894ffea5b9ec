/*-------------------------------------------------------------------------
 *
 * gpugroupingsets_exec.c
 *	  The executor nodes GpuGroupingSets and GpuSpool.
 *
 * The first Agg reads the input to its end through the GpuSpool that keeps the rows.  Only then does
 * the second one begin, which by its GpuSort reads all rows that were kept, and so on.  So there is
 * one reader at any time.  A GpuSort whose device is lost begins its input again; that reads the
 * kept rows from the first one on.
 *
 * There may be hundreds of Aggs (CUBE), and a GpuSort holds staging and device memory until it is ended or
 * rescanned.  So an Agg but the first is rescanned as soon as it has ended, and is not told that this may
 * happen: otherwise its GpuSort would keep the rows.
 *
 * The rows are kept in a tuplestore, in work_mem, then in a temporary file: as long as the
 * node, since an Agg further up may be rescanned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/tuplestore.h"

#include "nodes/group/gpugroupingsets.h"

typedef struct GpuGroupingSetsState
{
	CustomScanState css;		/* custom_ps: the Aggs */
	int			current;		/* the Agg whose rows are returned */
	Tuplestorestate *rows;		/* of the input; NULL: there was none yet */
	bool		have_all;		/* the input has ended */
} GpuGroupingSetsState;

typedef struct GpuSpoolState
{
	CustomScanState css;
	GpuGroupingSetsState *sets; /* set when that one begins */
	TupleTableSlot *slot;		/* for rows that were kept */
	bool		reading;		/* kept rows, and not from the first one on any more */
} GpuSpoolState;

/* Let the GpuSpools below know who owns the rows.  Those of other GpuGroupingSets know it already. */
static bool
adopt_spools(PlanState *node, void *sets)
{
	if (gs_node_is(node->plan, &gs_spool_node) && ((GpuSpoolState *) node)->sets == NULL)
		((GpuSpoolState *) node)->sets = sets;
	return planstate_tree_walker(node, adopt_spools, sets);
}

static void
begin_sets(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	ListCell   *lc;

	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	foreach(lc, plan->custom_plans)
	{
		PlanState  *agg = ExecInitNode((Plan *) lfirst(lc), estate, eflags);

		(void) adopt_spools(agg, node);
		node->custom_ps = lappend(node->custom_ps, agg);
		eflags &= ~EXEC_FLAG_REWIND;	/* for all but the first */
	}

	/* rows are in the Aggs' slots */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
}

static void
forget_rows(GpuGroupingSetsState *state)
{
	if (state->rows)
		tuplestore_end(state->rows);
	state->rows = NULL;
	state->have_all = false;
}

static TupleTableSlot *
exec_sets(CustomScanState *node)
{
	GpuGroupingSetsState *state = (GpuGroupingSetsState *) node;

	for (; state->current < list_length(node->custom_ps); state->current++)
	{
		PlanState  *agg = list_nth(node->custom_ps, state->current);
		TupleTableSlot *row = ExecProcNode(agg);

		if (!TupIsNull(row))
			return row;
		if (state->current > 0)
			ExecReScan(agg);	/* its GpuSort lets go what it holds */
		CHECK_FOR_INTERRUPTS();
	}
	return NULL;
}

static void
rescan_sets(CustomScanState *node)
{
	GpuGroupingSetsState *state = (GpuGroupingSetsState *) node;
	ListCell   *lc;

	state->current = 0;
	forget_rows(state);
	foreach(lc, node->custom_ps)
	{
		PlanState  *agg = lfirst(lc);

		if (node->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(agg, node->ss.ps.chgParam);
		if (agg->chgParam == NULL)
			ExecReScan(agg);
	}
}

static void
end_sets(CustomScanState *node)
{
	ListCell   *lc;

	foreach(lc, node->custom_ps)
		ExecEndNode((PlanState *) lfirst(lc));
	forget_rows((GpuGroupingSetsState *) node);
}

static void
begin_spool(CustomScanState *node, EState *estate, int eflags)
{
	GpuSpoolState *state = (GpuSpoolState *) node;
	Plan	   *plan = node->ss.ps.plan;

	node->ss.ps.resultopsset = true;
	if (outerPlan(plan))
	{
		outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
		node->ss.ps.resultops = ExecGetResultSlotOps(outerPlanState(node), &node->ss.ps.resultopsfixed);
		return;
	}
	state->slot = ExecInitExtraTupleSlot(estate, node->ss.ps.ps_ResultTupleDesc, &TTSOpsMinimalTuple);
	node->ss.ps.resultops = &TTSOpsMinimalTuple;
	node->ss.ps.resultopsfixed = true;
}

/* The child's next row, which is kept. */
static TupleTableSlot *
keep_row(GpuSpoolState *state)
{
	GpuGroupingSetsState *sets = state->sets;
	TupleTableSlot *row = ExecProcNode(outerPlanState(state));

	if (TupIsNull(row))
	{
		sets->have_all = true;
		return row;
	}
	if (sets->rows == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

		sets->rows = tuplestore_begin_heap(false, false, work_mem);
		tuplestore_set_eflags(sets->rows, EXEC_FLAG_REWIND);
		MemoryContextSwitchTo(old);
	}
	tuplestore_puttupleslot(sets->rows, row);
	return row;
}

static TupleTableSlot *
exec_spool(CustomScanState *node)
{
	GpuSpoolState *state = (GpuSpoolState *) node;
	Tuplestorestate *rows = state->sets->rows;

	CHECK_FOR_INTERRUPTS();
	if (outerPlanState(node))
		return keep_row(state);
	if (!state->sets->have_all)
		elog(ERROR, "rows of grouping sets are read before all were kept");
	if (rows == NULL)
		return NULL;
	if (!state->reading)
		tuplestore_rescan(rows);
	state->reading = true;
	(void) tuplestore_gettupleslot(rows, true, false, state->slot);
	return state->slot;
}

static void
rescan_spool(CustomScanState *node)
{
	GpuSpoolState *state = (GpuSpoolState *) node;

	state->reading = false;
	if (outerPlanState(node) == NULL)
	{
		ExecClearTuple(state->slot);
		return;
	}
	forget_rows(state->sets);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static void
end_spool(CustomScanState *node)
{
	if (outerPlanState(node))
		ExecEndNode(outerPlanState(node));
}

const GsNode gs_grouping_sets_node = {
	.scan = {
		.CustomName = GS_GROUPING_SETS_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_GROUPING_SETS_NAME,
		.BeginCustomScan = begin_sets,
		.ExecCustomScan = exec_sets,
		.EndCustomScan = end_sets,
		.ReScanCustomScan = rescan_sets,
	},
	.state_bytes = sizeof(GpuGroupingSetsState),
};

const GsNode gs_spool_node = {
	.scan = {
		.CustomName = GS_SPOOL_NAME,
		.CreateCustomScanState = gs_node_create_state,
	},
	.exec = {
		.CustomName = GS_SPOOL_NAME,
		.BeginCustomScan = begin_spool,
		.ExecCustomScan = exec_spool,
		.EndCustomScan = end_spool,
		.ReScanCustomScan = rescan_spool,
	},
	.state_bytes = sizeof(GpuSpoolState),
};
