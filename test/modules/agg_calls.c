/*-------------------------------------------------------------------------
 *
 * agg_calls.c
 *	  For tests: an aggregate's functions that ask everything that PostgreSQL tells them of their caller.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(agg_calls_step);
PG_FUNCTION_INFO_V1(agg_calls_text);
PG_FUNCTION_INFO_V1(agg_calls_rows);
PG_FUNCTION_INFO_V1(agg_calls_ended);

typedef struct State
{
	int64		rows;
	bool		shared;
	int			args;
} State;

static int64 ended = 0;			/* states whose memory was to be freed, since it was asked for */

static void
count_end(Datum state)
{
	ended += DatumGetPointer(state) != NULL;
}

static void
ask_caller(FunctionCallInfo fcinfo, State *state)
{
	const Aggref *call = AggGetAggref(fcinfo);

	if (call == NULL)
		elog(ERROR, "the aggregate's call is not known");
	state->shared |= AggStateIsShared(fcinfo);
	state->args = list_length(call->args);
}

Datum
agg_calls_step(PG_FUNCTION_ARGS)
{
	MemoryContext context;
	State	   *state;

	if (AggCheckCallContext(fcinfo, &context) != AGG_CONTEXT_AGGREGATE)
		elog(ERROR, "not called by an aggregate");
	if (PG_ARGISNULL(0))
	{
		state = MemoryContextAllocZero(context, sizeof(State));
		AggRegisterCallback(fcinfo, count_end, PointerGetDatum(state));
	}
	else
		state = (State *) PG_GETARG_POINTER(0);
	ask_caller(fcinfo, state);
	state->rows++;
	PG_RETURN_POINTER(state);
}

Datum
agg_calls_text(PG_FUNCTION_ARGS)
{
	State	   *state;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (State *) PG_GETARG_POINTER(0);
	ask_caller(fcinfo, state);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%d rows%s, %d arguments", (int) state->rows,
											  state->shared ? ", shared" : "", state->args)));
}

Datum
agg_calls_rows(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	ask_caller(fcinfo, (State *) PG_GETARG_POINTER(0));
	PG_RETURN_INT64(((State *) PG_GETARG_POINTER(0))->rows);
}

Datum
agg_calls_ended(PG_FUNCTION_ARGS)
{
	int64		result = ended;

	ended = 0;
	PG_RETURN_INT64(result);
}
