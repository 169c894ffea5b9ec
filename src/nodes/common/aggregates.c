/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  Aggregates over the rows that a node reads (aggregates.h).
 *
 * Some are computed here, without calling a function (gpuaccumulator.h).
 *
 * All others are those of an Agg without groups, which ExecInitAgg() makes, with all that PostgreSQL checks.
 * Nobody asks this Agg for rows.  Its program for a row's transitions is run for each row here.  States
 * begin with their initial values, and final functions are called, as in nodeAgg.c, which exports no function
 * for that.
 *
 * For the aggregates' functions the caller is the Agg; in a window it is a WindowAggState, of which
 * AggCheckCallContext() reads nothing but curaggcontext.  There a state gets more rows after its value was
 * asked for; the planner takes only final functions that leave the state as it is.
 *
 * The Agg begins and ends the child, because the program depends on the child's slots.  A row may come in
 * another kind of slot.  So its columns are deformed before the program runs.
 *
 * Tests: regress/aggregates_grouped, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"

#include "compat.h"
#include "nodes/common/aggregates.h"
#include "nodes/common/gpuaccumulator.h"
#include "nodes/common/gpunode.h"

/* One that is computed here. */
typedef struct Accumulated
{
	GsAccumulator accumulator;
	ExprState  *filter;			/* NULL: none */
} Accumulated;

typedef struct Call
{
	bool		accumulated;
	int			number;			/* among the accumulated, or the Agg's */
	int			column;			/* of the scan tuple, from 0 */
	Datum		value;
	bool		isnull;
} Call;

struct GsAggregates
{
	AttrNumber	last_column;	/* of the child that is used */
	int			n_accumulated;
	Accumulated *accumulated;
	ExprContext *filter_context;	/* NULL: no filter */
	AggState   *agg;			/* of the others; NULL: there is none */
	Node	   *caller;			/* that their functions see */
	MemoryContext results;		/* of values; NULL: none of them is allocated */
	int			n_calls;
	Call		calls[FLEXIBLE_ARRAY_MEMBER];
};

List *
gs_aggregate_args(const Aggref *call)
{
	List	   *args = NIL;
	ListCell   *lc;

	foreach(lc, call->args)
		if (!lfirst_node(TargetEntry, lc)->resjunk)
			args = lappend(args, lfirst_node(TargetEntry, lc)->expr);
	return args;
}

/* The last column of the child in an expression. */
static AttrNumber
last_column(Node *expr)
{
	Bitmapset  *columns = NULL;

	pull_varattnos(expr, OUTER_VAR, &columns);
	return columns ? bms_prev_member(columns, -1) + FirstLowInvalidHeapAttributeNumber : 0;
}

/*
 * An Agg has no room for numbers that none of its aggregates has.  States are shared as the planner has
 * decided.  n_states: so far.
 */
static Aggref *
renumber(const Aggref *call, const List *calls, const List *renumbered, int *n_states)
{
	Aggref	   *result = makeNode(Aggref);
	ListCell   *ours;
	ListCell   *theirs;

	*result = *call;
	result->aggno = list_length(renumbered);
	result->aggtransno = -1;
	forboth(theirs, calls, ours, renumbered)
		if (lfirst_node(Aggref, theirs)->aggtransno == call->aggtransno)
			result->aggtransno = lfirst_node(Aggref, ours)->aggtransno;
	if (result->aggtransno < 0)
		result->aggtransno = (*n_states)++;
	return result;
}

/* An Agg without groups.  calls: Aggref nodes. */
static AggState *
init_agg(Plan *plan, List *calls, EState *estate, int eflags)
{
	Agg		   *agg = makeNode(Agg);
	List	   *renumbered = NIL;
	int			n_states = 0;
	ListCell   *lc;

	foreach(lc, calls)
		renumbered = lappend(renumbered,
							 renumber(lfirst_node(Aggref, lc), calls, renumbered, &n_states));
	foreach(lc, renumbered)
		agg->plan.targetlist = gs_node_add_column(agg->plan.targetlist, lfirst(lc));
	agg->plan.lefttree = outerPlan(plan);
	agg->plan.plan_node_id = plan->plan_node_id;
	agg->aggstrategy = AGG_PLAIN;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->numGroups = 1;
	return ExecInitAgg(agg, estate, eflags);
}

static void
init_accumulated(GsAggregates *aggregates, Accumulated *accumulated, const Aggref *call,
				 CustomScanState *node)
{
	gs_compat_check_execute(call->aggfnoid, GetUserId(), OBJECT_AGGREGATE);
	gs_accumulator_init(&accumulated->accumulator, call->aggfnoid, gs_aggregate_args(call));
	accumulated->filter = ExecInitExpr(call->aggfilter, &node->ss.ps);
	if (accumulated->filter && aggregates->filter_context == NULL)
		aggregates->filter_context = CreateExprContext(node->ss.ps.state);
}

/* What WindowAgg's functions see. */
static Node *
call_from_window(AggState *agg)
{
	WindowAggState *window = makeNode(WindowAggState);

	window->ss.ps.state = agg->ss.ps.state;
	window->curaggcontext = agg->aggcontexts[0]->ecxt_per_tuple_memory;
	for (int i = 0; i < agg->numtrans; i++)
		agg->pertrans[i].transfn_fcinfo->context = (Node *) window;
	return (Node *) window;
}

/* aggregates: of as many calls as there are columns, at most. */
static void
init_call(GsAggregates *aggregates, CustomScanState *node, Aggref *aggref, int column, List **others)
{
	Call	   *call = &aggregates->calls[aggregates->n_calls++];

	aggregates->last_column = Max(aggregates->last_column, last_column((Node *) aggref));
	call->column = column;
	call->accumulated = aggref->aggdistinct == NIL &&
		gs_accumulator_kind(aggref->aggfnoid, gs_aggregate_args(aggref)) != GS_ACCUMULATE_NOTHING;
	if (call->accumulated)
	{
		call->number = aggregates->n_accumulated++;
		init_accumulated(aggregates, &aggregates->accumulated[call->number], aggref, node);
	}
	else
	{
		call->number = list_length(*others);
		*others = lappend(*others, aggref);
	}
}

static bool
takes_memory(const GsAggregates *aggregates)
{
	for (int i = 0; i < aggregates->n_accumulated; i++)
		if (gs_accumulator_allocates(aggregates->accumulated[i].accumulator.kind))
			return true;
	return aggregates->agg != NULL;
}

GsAggregates *
gs_aggregates_init(CustomScanState *node, GsAggregated what, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	int			n = list_length(plan->custom_scan_tlist);
	GsAggregates *aggregates = palloc0(offsetof(GsAggregates, calls) + n * sizeof(Call));
	List	   *others = NIL;
	ListCell   *lc;

	aggregates->accumulated = palloc0(n * sizeof(Accumulated));
	foreach(lc, plan->custom_scan_tlist)
	{
		Aggref	   *aggref = (Aggref *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(aggref, Aggref))
			continue;
		if (what == GS_AGGREGATED_DIFFERENT)
		{
			aggref = copyObject(aggref);
			aggref->aggdistinct = NIL;
		}
		init_call(aggregates, node, aggref, foreach_current_index(lc), &others);
	}
	if (others != NIL)
	{
		aggregates->agg = init_agg(&plan->scan.plan, others, estate, eflags);
		outerPlanState(node) = outerPlanState(aggregates->agg);
		aggregates->caller = what == GS_AGGREGATED_FRAME ? call_from_window(aggregates->agg) :
			(Node *) aggregates->agg;
	}
	else
		outerPlanState(node) = ExecInitNode(outerPlan(plan), estate, eflags);
	if (aggregates->n_calls == 0)
		return NULL;
	if (takes_memory(aggregates))
		aggregates->results = AllocSetContextCreate(CurrentMemoryContext, "gpusort aggregates",
													ALLOCSET_SMALL_SIZES);
	return aggregates;
}

void
gs_aggregates_end(GsAggregates *aggregates, CustomScanState *node)
{
	if (aggregates && aggregates->agg)
		ExecEndAgg(aggregates->agg);
	else
		ExecEndNode(outerPlanState(node));
}

/* As initialize_aggregates() in nodeAgg.c. */
static void
begin_agg(AggState *agg)
{
	MemoryContext old;

	/* not only reset: functions may have asked to be called then */
	ReScanExprContext(agg->aggcontexts[0]);
	agg->curaggcontext = agg->aggcontexts[0];
	old = MemoryContextSwitchTo(agg->curaggcontext->ecxt_per_tuple_memory);
	for (int i = 0; i < agg->numtrans; i++)
	{
		AggStatePerTrans trans = &agg->pertrans[i];
		AggStatePerGroup state = &agg->pergroups[0][i];

		state->transValue = trans->initValueIsNull ? trans->initValue :
			datumCopy(trans->initValue, trans->transtypeByVal, trans->transtypeLen);
		state->transValueIsNull = trans->initValueIsNull;
		state->noTransValue = trans->initValueIsNull;
		gs_compat_forget_last_input(trans);
	}
	MemoryContextSwitchTo(old);
}

void
gs_aggregates_begin(GsAggregates *aggregates)
{
	for (int i = 0; i < aggregates->n_accumulated; i++)
		gs_accumulator_begin(&aggregates->accumulated[i].accumulator);
	if (aggregates->agg)
		begin_agg(aggregates->agg);
}

static bool
passes(const GsAggregates *aggregates, ExprState *filter, TupleTableSlot *row)
{
	bool		isnull;
	Datum		value;

	aggregates->filter_context->ecxt_outertuple = row;
	value = ExecEvalExprSwitchContext(filter, aggregates->filter_context, &isnull);
	return !isnull && DatumGetBool(value);
}

void
gs_aggregates_advance(GsAggregates *aggregates, TupleTableSlot *row)
{
	AggState   *agg = aggregates->agg;

	slot_getsomeattrs(row, aggregates->last_column);
	for (int i = 0; i < aggregates->n_accumulated; i++)
	{
		Accumulated *accumulated = &aggregates->accumulated[i];

		if (accumulated->filter == NULL || passes(aggregates, accumulated->filter, row))
			gs_accumulator_advance(&accumulated->accumulator, row);
	}
	if (aggregates->filter_context)
		ResetExprContext(aggregates->filter_context);
	if (agg)
	{
		agg->tmpcontext->ecxt_outertuple = row;
		gs_compat_run_program(agg->phase->evaltrans, agg->tmpcontext);
		ResetExprContext(agg->tmpcontext);
	}
}

void
gs_aggregates_count(GsAggregates *aggregates, int64 n)
{
	for (int i = 0; i < aggregates->n_accumulated; i++)
		gs_accumulator_count(&aggregates->accumulated[i].accumulator, n);
}

/* As finalize_aggregate() in nodeAgg.c. */
static void
finish_call(AggState *agg, Node *caller, AggStatePerAgg call, Datum *value, bool *isnull)
{
	const AggStatePerTransData *trans = &agg->pertrans[call->transno];
	const AggStatePerGroupData *state = &agg->pergroups[0][call->transno];
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);

	*value = MakeExpandedObjectReadOnly(state->transValue, state->transValueIsNull, trans->transtypeLen);
	*isnull = state->transValueIsNull;
	if (!OidIsValid(call->finalfn_oid))
		return;
	InitFunctionCallInfoData(*fcinfo, &call->finalfn, call->numFinalArgs, trans->aggCollation, caller,
							 NULL);
	fcinfo->args[0].value = *value;
	fcinfo->args[0].isnull = *isnull;
	for (int i = 1; i < call->numFinalArgs; i++)
	{
		fcinfo->args[i].value = (Datum) 0;
		fcinfo->args[i].isnull = true;
	}
	*value = (Datum) 0;
	if (call->finalfn.fn_strict && (*isnull || call->numFinalArgs > 1))
	{
		*isnull = true;
		return;
	}
	agg->curperagg = call;
	*value = FunctionCallInvoke(fcinfo);
	agg->curperagg = NULL;
	*isnull = fcinfo->isnull;
	*value = MakeExpandedObjectReadOnly(*value, *isnull, call->resulttypeLen);
}

void
gs_aggregates_finish(GsAggregates *aggregates, TupleTableSlot *scan)
{
	MemoryContext old = CurrentMemoryContext;

	if (aggregates->results)
	{
		MemoryContextReset(aggregates->results);
		MemoryContextSwitchTo(aggregates->results);
	}
	for (int i = 0; i < aggregates->n_calls; i++)
	{
		Call	   *call = &aggregates->calls[i];

		if (call->accumulated)
			call->value = gs_accumulator_result(&aggregates->accumulated[call->number].accumulator,
												&call->isnull);
		else
			finish_call(aggregates->agg, aggregates->caller, &aggregates->agg->peragg[call->number],
						&call->value, &call->isnull);
		scan->tts_values[call->column] = call->value;
		scan->tts_isnull[call->column] = call->isnull;
	}
	MemoryContextSwitchTo(old);
}

void
gs_aggregates_set(const GsAggregates *aggregates, TupleTableSlot *scan)
{
	for (int i = 0; i < aggregates->n_calls; i++)
	{
		const Call *call = &aggregates->calls[i];

		scan->tts_values[call->column] = call->value;
		scan->tts_isnull[call->column] = call->isnull;
	}
}
