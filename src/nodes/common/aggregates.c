/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  Aggregates over the rows that a node reads (aggregates.h).
 *
 * Some of PostgreSQL's own aggregates are computed here, because calling their functions takes many times
 * as long as the functions' work: count(), sum() of smallint, integer and double precision, avg() of smallint
 * and integer, min() and max() of integers, dates and timestamps, and string_agg() with a constant delimiter;
 * each of a plain column.  The results are those of int8inc(), int8inc_any(), int2_sum(), int4_sum(),
 * float8pl(), int4_avg_accum(), int8_avg(), int4smaller() and the like, and string_agg_transfn().  NULLs are
 * treated as nodeAgg.c does for strict functions.
 *
 * All others are computed by an Agg without groups, made by ExecInitAgg() with PostgreSQL's checks.  Nobody
 * asks this Agg for rows: its program for a row's transitions is run here for each row.  States begin with
 * their initial values, and final functions are called, as in nodeAgg.c, which exports no function for that.
 *
 * The aggregates' functions see the Agg as their caller.  In a window they see a WindowAggState, where
 * AggCheckCallContext() reads only curaggcontext.  There a state gets more rows after its value was
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
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "compat.h"
#include "nodes/common/aggregates.h"
#include "nodes/common/gpunode.h"
#include "plan/plan_walk.h"

typedef enum AccumulatorKind
{
	ACCUMULATE_NOTHING,		/* the aggregate's functions are called */
	ACCUMULATE_COUNT,
	ACCUMULATE_SUM,				/* of integers */
	ACCUMULATE_SUM_FLOAT8,
	ACCUMULATE_AVG,
	ACCUMULATE_MIN,
	ACCUMULATE_MAX,
	ACCUMULATE_CONCATENATE
} AccumulatorKind;

/* An aggregate that is computed here. */
typedef struct Accumulator
{
	AccumulatorKind kind;
	ExprState  *filter;			/* NULL: none */
	AttrNumber	column;			/* the argument; 0: there is none */
	int16		bytes;			/* of an integer, a date or a timestamp */
	Datum		value;			/* so far, 0 at first; not of ACCUMULATE_CONCATENATE */
	bool		isnull;
	int64		count;			/* of values, for averages, whose sum is in value */

	/*
	 * ACCUMULATE_CONCATENATE.  The text grows behind the room for its header, so that it is the result as it
	 * is.  Its memory is used again for the next group, unless it is large.
	 */
	const char *delimiter;
	int			delimiter_bytes;
	StringInfoData text;		/* a varlena whose length is not yet set */
} Accumulator;

typedef struct Call
{
	bool		accumulated;
	int			number;			/* among the accumulators, or the Agg's */
	int			column;			/* of the scan tuple, from 0 */
	Datum		value;
	bool		isnull;
} Call;

struct GsAggregates
{
	AttrNumber	last_column;	/* of the child that is used */
	int			n_accumulators;
	Accumulator *accumulators;
	ExprContext *filter_context;	/* NULL: no filter */
	AggState   *agg;			/* of the others; NULL: there is none */
	Node	   *caller;			/* that their functions see */
	MemoryContext results;		/* of values */
	int			n_calls;
	Call		calls[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * Aggregates that are computed here
 */

static AccumulatorKind
kind_of(Oid aggregate)
{
	switch (aggregate)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return ACCUMULATE_COUNT;
		case F_SUM_INT2:
		case F_SUM_INT4:
			return ACCUMULATE_SUM;
		case F_SUM_FLOAT8:
			return ACCUMULATE_SUM_FLOAT8;
		case F_AVG_INT2:
		case F_AVG_INT4:
			return ACCUMULATE_AVG;
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
			return ACCUMULATE_MIN;
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
			return ACCUMULATE_MAX;
		case F_STRING_AGG_TEXT_TEXT:
		case F_STRING_AGG_BYTEA_BYTEA:
			return ACCUMULATE_CONCATENATE;
		default:
			return ACCUMULATE_NOTHING;
	}
}

/* A call's n'th argument. */
static const Node *
argument(const Aggref *call, int n)
{
	return gs_plan_strip_relabel((Node *) list_nth_node(TargetEntry, call->args, n)->expr);
}

/* In CurrentMemoryContext; false: the call's functions have to be called. */
static bool
init_accumulator(Accumulator *accumulator, const Aggref *call)
{
	const Var  *column;
	const Const *delimiter;

	memset(accumulator, 0, sizeof(*accumulator));
	accumulator->kind = kind_of(call->aggfnoid);
	/* values of 8 bytes that are passed by reference would have to be copied */
	if (accumulator->kind == ACCUMULATE_NOTHING || call->aggdistinct != NIL || !FLOAT8PASSBYVAL)
		return false;
	if (call->aggfnoid == F_COUNT_)
		return true;
	column = (const Var *) argument(call, 0);
	if (!IsA(column, Var) || column->varno != OUTER_VAR || column->varattno < 1)
		return false;
	accumulator->column = column->varattno;
	accumulator->bytes = get_typlen(column->vartype);
	if (accumulator->kind != ACCUMULATE_CONCATENATE)
		return true;
	delimiter = (const Const *) argument(call, 1);
	if (!IsA(delimiter, Const))
		return false;
	accumulator->delimiter = "";
	if (!delimiter->constisnull)
	{
		struct varlena *value = PG_DETOAST_DATUM_PACKED(delimiter->constvalue);

		accumulator->delimiter = VARDATA_ANY(value);
		accumulator->delimiter_bytes = VARSIZE_ANY_EXHDR(value);
	}
	initStringInfo(&accumulator->text);
	return true;
}

/* Before the first row of a group. */
static void
begin_accumulator(Accumulator *accumulator)
{
	StringInfo	text = &accumulator->text;

	accumulator->value = (Datum) 0;
	accumulator->count = 0;
	accumulator->isnull = accumulator->kind != ACCUMULATE_COUNT;
	if (accumulator->kind != ACCUMULATE_CONCATENATE)
		return;
	if (text->maxlen > work_mem * (Size) 1024)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(text->data));

		pfree(text->data);
		initStringInfo(text);
		MemoryContextSwitchTo(old);
	}
	text->len = VARHDRSZ;
}

static inline void
append(StringInfo text, const char *data, int bytes)
{
	if (likely(bytes < text->maxlen - text->len))
	{
		memcpy(text->data + text->len, data, bytes);
		text->len += bytes;
	}
	else
		appendBinaryStringInfo(text, data, bytes);
}

static void
concatenate(Accumulator *accumulator, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

	if (!accumulator->isnull)
		append(&accumulator->text, accumulator->delimiter, accumulator->delimiter_bytes);
	accumulator->isnull = false;
	append(&accumulator->text, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
	if (unlikely(PointerGetDatum(packed) != value))
		pfree(packed);
}

static pg_noinline void
overflow(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("bigint out of range")));
}

static inline void
set_value(Accumulator *accumulator, bool replaces, Datum value)
{
	if (accumulator->isnull || replaces)
		accumulator->value = value;
	accumulator->isnull = false;
}

static inline int64
integer(const Accumulator *accumulator, Datum value)
{
	switch (accumulator->bytes)
	{
		case sizeof(int16):
			return DatumGetInt16(value);
		case sizeof(int32):
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

/* Another row, whose columns up to the accumulator's have been deformed. */
static inline void
advance_accumulator(Accumulator *accumulator, const TupleTableSlot *row)
{
	Datum		value = (Datum) 0;
	Datum		old = accumulator->value;

	if (accumulator->column > 0)
	{
		if (row->tts_isnull[accumulator->column - 1])
			return;
		value = row->tts_values[accumulator->column - 1];
	}
	switch (accumulator->kind)
	{
		case ACCUMULATE_NOTHING:
			break;
		case ACCUMULATE_COUNT:
			if (unlikely(DatumGetInt64(old) == PG_INT64_MAX))
				overflow();
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + 1);
			break;
		case ACCUMULATE_SUM:
		case ACCUMULATE_AVG:
			accumulator->count++;
			set_value(accumulator, true, Int64GetDatum(DatumGetInt64(old) + integer(accumulator, value)));
			break;
		case ACCUMULATE_SUM_FLOAT8:
			if (!accumulator->isnull)
				value = Float8GetDatum(float8_pl(DatumGetFloat8(old), DatumGetFloat8(value)));
			set_value(accumulator, true, value);
			break;
		case ACCUMULATE_MIN:
			set_value(accumulator, integer(accumulator, value) < integer(accumulator, old), value);
			break;
		case ACCUMULATE_MAX:
			set_value(accumulator, integer(accumulator, value) > integer(accumulator, old), value);
			break;
		case ACCUMULATE_CONCATENATE:
			concatenate(accumulator, value);
			break;
	}
}

/* In CurrentMemoryContext, or good until the accumulator begins again or is advanced. */
static Datum
accumulator_result(Accumulator *accumulator, bool *isnull)
{
	*isnull = accumulator->isnull;
	if (accumulator->isnull)
		return (Datum) 0;
	if (accumulator->kind == ACCUMULATE_CONCATENATE)
	{
		SET_VARSIZE(accumulator->text.data, accumulator->text.len);
		return PointerGetDatum(accumulator->text.data);
	}
	if (accumulator->kind == ACCUMULATE_AVG)
		return DirectFunctionCall2(numeric_div,
								   NumericGetDatum(int64_to_numeric(DatumGetInt64(accumulator->value))),
								   NumericGetDatum(int64_to_numeric(accumulator->count)));
	return accumulator->value;
}

/*
 * Aggregates that an Agg computes
 */

/* The last column of the child in an expression. */
static AttrNumber
last_column(Node *expr)
{
	Bitmapset  *columns = NULL;

	pull_varattnos(expr, OUTER_VAR, &columns);
	return columns ? bms_prev_member(columns, -1) + FirstLowInvalidHeapAttributeNumber : 0;
}

/* The place of a number in a list of different ones, to which it is added. */
static int
place_of(List **numbers, int number)
{
	ListCell   *lc;

	foreach(lc, *numbers)
		if (lfirst_int(lc) == number)
			return foreach_current_index(lc);
	*numbers = lappend_int(*numbers, number);
	return list_length(*numbers) - 1;
}

void
gs_aggregates_renumber(const Agg *agg)
{
	List	   *numbers = NIL;
	List	   *states = NIL;
	ListCell   *lc;

	foreach(lc, gs_plan_aggregates(agg))
	{
		Aggref	   *call = lfirst_node(Aggref, lc);

		call->aggno = place_of(&numbers, call->aggno);
		call->aggtransno = place_of(&states, call->aggtransno);
	}
}

/* An Agg without groups.  calls: Aggref nodes. */
static AggState *
init_agg(Plan *plan, List *calls, EState *estate, int eflags)
{
	Agg		   *agg = makeNode(Agg);
	ListCell   *lc;

	foreach(lc, calls)
	{
		Aggref	   *call = makeNode(Aggref);

		*call = *lfirst_node(Aggref, lc);
		agg->plan.targetlist = gs_node_add_column(agg->plan.targetlist, (Expr *) call);
	}
	gs_aggregates_renumber(agg);
	agg->plan.lefttree = outerPlan(plan);
	agg->plan.plan_node_id = plan->plan_node_id;
	agg->aggstrategy = AGG_PLAIN;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->numGroups = 1;
	return ExecInitAgg(agg, estate, eflags);
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
	Accumulator *accumulator = &aggregates->accumulators[aggregates->n_accumulators];

	aggregates->last_column = Max(aggregates->last_column, last_column((Node *) aggref));
	call->column = column;
	call->accumulated = init_accumulator(accumulator, aggref);
	if (!call->accumulated)
	{
		call->number = list_length(*others);
		*others = lappend(*others, aggref);
		return;
	}
	call->number = aggregates->n_accumulators++;
	gs_compat_check_execute(aggref->aggfnoid, GetUserId(), OBJECT_AGGREGATE);
	accumulator->filter = ExecInitExpr(aggref->aggfilter, &node->ss.ps);
	if (accumulator->filter && aggregates->filter_context == NULL)
		aggregates->filter_context = CreateExprContext(node->ss.ps.state);
}

GsAggregates *
gs_aggregates_init(CustomScanState *node, GsAggregated what, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	int			n = list_length(plan->custom_scan_tlist);
	GsAggregates *aggregates = palloc0(offsetof(GsAggregates, calls) + n * sizeof(Call));
	List	   *others = NIL;
	ListCell   *lc;

	aggregates->accumulators = palloc(n * sizeof(Accumulator));
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
	for (int i = 0; i < aggregates->n_accumulators; i++)
		begin_accumulator(&aggregates->accumulators[i]);
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
	for (int i = 0; i < aggregates->n_accumulators; i++)
	{
		Accumulator *accumulator = &aggregates->accumulators[i];

		if (accumulator->filter == NULL || passes(aggregates, accumulator->filter, row))
			advance_accumulator(accumulator, row);
	}
	if (aggregates->filter_context)
		ResetExprContext(aggregates->filter_context);
	if (agg)
	{
		agg->tmpcontext->ecxt_outertuple = row;
		ExecEvalExprNoReturnSwitchContext(agg->phase->evaltrans, agg->tmpcontext);
		ResetExprContext(agg->tmpcontext);
	}
}

void
gs_aggregates_count(GsAggregates *aggregates, int64 n)
{
	for (int i = 0; i < aggregates->n_accumulators; i++)
	{
		Accumulator *count = &aggregates->accumulators[i];

		count->value = Int64GetDatum(DatumGetInt64(count->value) + n);
	}
}

void
gs_aggregates_set_count(const GsAggregates *aggregates, int64 n, TupleTableSlot *scan)
{
	for (int i = 0; i < aggregates->n_calls; i++)
	{
		int			column = aggregates->calls[i].column;

		scan->tts_values[column] = Int64GetDatum(n);
		scan->tts_isnull[column] = false;
	}
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
	MemoryContext old = MemoryContextSwitchTo(aggregates->results);

	MemoryContextReset(aggregates->results);
	for (int i = 0; i < aggregates->n_calls; i++)
	{
		Call	   *call = &aggregates->calls[i];

		if (call->accumulated)
			call->value = accumulator_result(&aggregates->accumulators[call->number], &call->isnull);
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
