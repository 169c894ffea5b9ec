/*-------------------------------------------------------------------------
 *
 * gpuwindow_agg.c
 *	  Aggregates as window functions (gpuwindow_agg.h).
 *
 * They are called as nodeWindowAgg.c calls them, and see the same: for their
 * functions fcinfo->context is a WindowAggState, of which AggCheckCallContext() reads
 * nothing but curaggcontext.  So there is one that has nothing else.
 *
 * Transition values live in a context of all aggregates, which is reset for each
 * partition.  Final functions run in another one, which is reset before they run: so
 * what they return need not be copied.
 *
 * Frames begin at the partition's first row, so nothing is ever taken out of a
 * transition value.
 *
 * Some aggregates are computed without any call (gpuaccumulator.h).
 *
 * A final function is called many times on the same one,
 * which it must leave as it is; the planner asks gs_window_agg_is_read_only().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_agg.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "compat.h"
#include "nodes/common/gpuaccumulator.h"
#include "nodes/window/gpuwindow_agg.h"

typedef struct WindowAggregate
{
	GsAccumulator accumulator;	/* if it is of no kind, by calls: */
	ExprState  *filter;			/* NULL: none */
	int			n_args;
	ExprState **args;

	FunctionCallInfo transition;	/* its first argument: the transition value */
	FmgrInfo	transition_function;
	FunctionCallInfo final;		/* NULL: there is none */
	FmgrInfo	final_function;

	Datum		initial;
	bool		initial_isnull;
	int16		transition_len;
	bool		transition_byval;
	int16		result_len;

	Datum		state;			/* the transition value */
	bool		state_isnull;
	bool		has_input;		/* a row went into it */
	Datum		value;
	bool		isnull;
} WindowAggregate;

struct GsWindowAggs
{
	WindowAggState *caller;		/* what functions see as who calls them */
	ExprContext *econtext;
	MemoryContext states;
	MemoryContext results;
	bool		have_final;		/* one of them a final function */
	bool		have_calls;
	AttrNumber	last_column;	/* of accumulators */
	int			n_aggs;
	WindowAggregate aggs[FLEXIBLE_ARRAY_MEMBER];
};

bool
gs_window_agg_is_read_only(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	bool		result = HeapTupleIsValid(tuple) &&
		((Form_pg_aggregate) GETSTRUCT(tuple))->aggfinalmodify == AGGMODIFY_READ_ONLY;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}

static Oid
function_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* As GetAggInitVal() in nodeWindowAgg.c. */
static void
read_initial_value(WindowAggregate *agg, HeapTuple tuple, Oid type)
{
	Datum		value = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval,
									   &agg->initial_isnull);
	Oid			input;
	Oid			param;

	if (agg->initial_isnull)
		return;
	getTypeInputInfo(type, &input, &param);
	agg->initial = OidInputFunctionCall(input, TextDatumGetCString(value), param, -1);
}

static FunctionCallInfo
make_call(FmgrInfo *function, int n_args, Oid collation, WindowAggState *caller)
{
	FunctionCallInfo fcinfo = palloc0(SizeForFunctionCallInfo(n_args));

	InitFunctionCallInfoData(*fcinfo, function, n_args, collation, (Node *) caller, NULL);
	return fcinfo;
}

static inline bool
is_called(const WindowAggregate *agg)
{
	return agg->accumulator.kind == GS_ACCUMULATE_NOTHING;
}

/* As initialize_peragg() in nodeWindowAgg.c. */
static void
init_aggregate(GsWindowAggs *aggs, WindowAggregate *agg, WindowFunc *call, PlanState *parent)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(call->winfnoid));
	Oid			owner = function_owner(call->winfnoid);
	Oid			types[FUNC_MAX_ARGS];
	int			n_final_args = 1;
	Form_pg_aggregate form;
	Oid			transition_type;
	Expr	   *expr;
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", call->winfnoid);
	if (list_length(call->args) >= FUNC_MAX_ARGS)
		elog(ERROR, "aggregate %u has too many arguments", call->winfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	gs_compat_check_execute(form->aggtransfn, owner, OBJECT_FUNCTION);
	if (OidIsValid(form->aggfinalfn))
		gs_compat_check_execute(form->aggfinalfn, owner, OBJECT_FUNCTION);

	agg->args = palloc(list_length(call->args) * sizeof(ExprState *));
	foreach(lc, call->args)
	{
		types[agg->n_args] = exprType(lfirst(lc));
		agg->args[agg->n_args++] = ExecInitExpr(lfirst(lc), parent);
	}
	agg->filter = ExecInitExpr(call->aggfilter, parent);

	transition_type = resolve_aggregate_transtype(call->winfnoid, form->aggtranstype, types,
												  agg->n_args);
	build_aggregate_transfn_expr(types, agg->n_args, 0, false, transition_type,
								 call->inputcollid, form->aggtransfn, InvalidOid, &expr, NULL);
	fmgr_info(form->aggtransfn, &agg->transition_function);
	fmgr_info_set_expr((Node *) expr, &agg->transition_function);
	agg->transition = make_call(&agg->transition_function, agg->n_args + 1, call->inputcollid,
								aggs->caller);
	if (OidIsValid(form->aggfinalfn))
	{
		if (form->aggfinalextra)
			n_final_args = agg->n_args + 1;
		build_aggregate_finalfn_expr(types, n_final_args, transition_type, call->wintype,
									 call->inputcollid, form->aggfinalfn, &expr);
		fmgr_info(form->aggfinalfn, &agg->final_function);
		fmgr_info_set_expr((Node *) expr, &agg->final_function);
		agg->final = make_call(&agg->final_function, n_final_args, call->inputcollid,
							   aggs->caller);
	}
	get_typlenbyval(transition_type, &agg->transition_len, &agg->transition_byval);
	agg->result_len = get_typlen(call->wintype);
	read_initial_value(agg, tuple, transition_type);

	/* the first input is to be the first state: checked again, as a function may have changed */
	if (agg->transition_function.fn_strict && agg->initial_isnull &&
		(agg->n_args < 1 || !IsBinaryCoercible(types[0], transition_type)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("aggregate %u needs to have compatible input type and transition type",
						call->winfnoid)));
	if (agg->filter == NULL &&
		!gs_accumulator_allocates(gs_accumulator_kind(call->winfnoid, call->args)))
		gs_accumulator_init(&agg->accumulator, call->winfnoid, call->args);
	aggs->last_column = Max(aggs->last_column, agg->accumulator.column);
	if (is_called(agg))
	{
		aggs->have_calls = true;
		aggs->have_final |= agg->final != NULL;
	}
	ReleaseSysCache(tuple);
}

GsWindowAggs *
gs_window_aggs_create(List *calls, PlanState *parent, ExprContext *econtext)
{
	GsWindowAggs *aggs = palloc0(offsetof(GsWindowAggs, aggs) +
								 list_length(calls) * sizeof(WindowAggregate));
	ListCell   *lc;

	aggs->econtext = econtext;
	aggs->states = AllocSetContextCreate(CurrentMemoryContext, "GpuWindow Aggregates",
										 ALLOCSET_DEFAULT_SIZES);
	aggs->results = AllocSetContextCreate(CurrentMemoryContext, "GpuWindow Results",
										  ALLOCSET_DEFAULT_SIZES);
	aggs->caller = makeNode(WindowAggState);
	aggs->caller->ss.ps.state = parent->state;
	aggs->caller->curaggcontext = aggs->states;
	foreach(lc, calls)
		init_aggregate(aggs, &aggs->aggs[aggs->n_aggs++], lfirst_node(WindowFunc, lc), parent);
	return aggs;
}

void
gs_window_aggs_begin(GsWindowAggs *aggs)
{
	MemoryContext old;

	MemoryContextReset(aggs->states);
	old = MemoryContextSwitchTo(aggs->states);
	for (int i = 0; i < aggs->n_aggs; i++)
	{
		WindowAggregate *agg = &aggs->aggs[i];

		gs_accumulator_begin(&agg->accumulator);
		agg->state = agg->initial_isnull ? (Datum) 0 :
			datumCopy(agg->initial, agg->transition_byval, agg->transition_len);
		agg->state_isnull = agg->initial_isnull;
		agg->has_input = false;
	}
	MemoryContextSwitchTo(old);
}

static Datum
copy_state(const GsWindowAggs *aggs, const WindowAggregate *agg, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(aggs->states);

	value = datumCopy(value, agg->transition_byval, agg->transition_len);
	MemoryContextSwitchTo(old);
	return value;
}

/* Is it an expanded object that lives among the states already? */
static bool
is_adoptable(const GsWindowAggs *aggs, const WindowAggregate *agg, Datum value)
{
	return DatumIsReadWriteExpandedObject(value, false, agg->transition_len) &&
		MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) == aggs->states;
}

static void
free_state(const WindowAggregate *agg)
{
	if (agg->state_isnull)
		return;
	if (DatumIsReadWriteExpandedObject(agg->state, false, agg->transition_len))
		DeleteExpandedObject(agg->state);
	else
		pfree(DatumGetPointer(agg->state));
}

/* As advance_windowaggregate() in nodeWindowAgg.c; in per-tuple memory. */
static void
advance(const GsWindowAggs *aggs, WindowAggregate *agg)
{
	FunctionCallInfo call = agg->transition;
	Datum		value;

	if (agg->filter)
	{
		bool		isnull;
		Datum		passes = ExecEvalExpr(agg->filter, aggs->econtext, &isnull);

		if (isnull || !DatumGetBool(passes))
			return;
	}
	for (int i = 0; i < agg->n_args; i++)
		call->args[i + 1].value = ExecEvalExpr(agg->args[i], aggs->econtext,
											   &call->args[i + 1].isnull);
	if (agg->transition_function.fn_strict)
	{
		for (int i = 0; i < agg->n_args; i++)
			if (call->args[i + 1].isnull)
				return;
		if (agg->state_isnull && !agg->has_input)
		{
			agg->state = copy_state(aggs, agg, call->args[1].value);
			agg->state_isnull = false;
			agg->has_input = true;
			return;
		}
		if (agg->state_isnull)	/* the function returned NULL */
			return;
	}
	call->args[0].value = agg->state;
	call->args[0].isnull = agg->state_isnull;
	call->isnull = false;
	value = FunctionCallInvoke(call);
	agg->has_input = true;
	if (!agg->transition_byval && DatumGetPointer(value) != DatumGetPointer(agg->state))
	{
		if (!call->isnull && !is_adoptable(aggs, agg, value))
			value = copy_state(aggs, agg, value);
		free_state(agg);
	}
	agg->state = value;
	agg->state_isnull = call->isnull;
}

/* In the order of the aggregates, so that errors come in it. */
static void
advance_with_calls(GsWindowAggs *aggs, TupleTableSlot *row)
{
	MemoryContext old = MemoryContextSwitchTo(aggs->econtext->ecxt_per_tuple_memory);

	aggs->econtext->ecxt_outertuple = row;
	for (int i = 0; i < aggs->n_aggs; i++)
	{
		WindowAggregate *agg = &aggs->aggs[i];

		if (is_called(agg))
			advance(aggs, agg);
		else
			gs_accumulator_advance(&agg->accumulator, row);
	}
	MemoryContextSwitchTo(old);
	ResetExprContext(aggs->econtext);
}

void
gs_window_aggs_advance(GsWindowAggs *aggs, TupleTableSlot *row)
{
	slot_getsomeattrs(row, aggs->last_column);
	if (aggs->have_calls)
		advance_with_calls(aggs, row);
	else
		for (int i = 0; i < aggs->n_aggs; i++)
			gs_accumulator_advance(&aggs->aggs[i].accumulator, row);
}

/* As finalize_windowaggregate() in nodeWindowAgg.c. */
static void
finish(WindowAggregate *agg)
{
	FunctionCallInfo call = agg->final;
	Datum		state = MakeExpandedObjectReadOnly(agg->state, agg->state_isnull,
												   agg->transition_len);

	agg->value = state;
	agg->isnull = agg->state_isnull;
	if (call == NULL)
		return;
	for (int i = 1; i < call->nargs; i++)
	{
		call->args[i].value = (Datum) 0;
		call->args[i].isnull = true;
	}
	agg->value = (Datum) 0;
	agg->isnull = true;
	if (agg->final_function.fn_strict && (agg->state_isnull || call->nargs > 1))
		return;
	call->args[0].value = state;
	call->args[0].isnull = agg->state_isnull;
	call->isnull = false;
	agg->value = FunctionCallInvoke(call);
	agg->isnull = call->isnull;
	agg->value = MakeExpandedObjectReadOnly(agg->value, agg->isnull, agg->result_len);
}

void
gs_window_aggs_finish(GsWindowAggs *aggs)
{
	MemoryContext old = CurrentMemoryContext;

	if (!aggs->have_calls)
		return;
	if (aggs->have_final)
	{
		MemoryContextReset(aggs->results);
		MemoryContextSwitchTo(aggs->results);
	}
	for (int i = 0; i < aggs->n_aggs; i++)
		if (is_called(&aggs->aggs[i]))
			finish(&aggs->aggs[i]);
	MemoryContextSwitchTo(old);
}

Datum
gs_window_aggs_value(GsWindowAggs *aggs, int i, bool *isnull)
{
	WindowAggregate *agg = &aggs->aggs[i];

	if (!is_called(agg))
		return gs_accumulator_result(&agg->accumulator, isnull);
	*isnull = agg->isnull;
	return agg->value;
}
