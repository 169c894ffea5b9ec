/*-------------------------------------------------------------------------
 *
 * gpuwindow_function.c
 *	  The window functions that GpuWindow computes (gpuwindow_function.h).
 *
 * PostgreSQL's functions (windowfuncs.c) may ask WindowAgg for any row of the partition.  Here each
 * function says beforehand which rows it needs (gs_window_needs()), and only these are held.  As in
 * PostgreSQL, an argument is evaluated when its value is needed, and only over the row
 * that the value belongs to.  An argument that fails must fail at the same row, or not at all.
 *
 * Tests: regress/windows, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "nodes/window/gpuwindow_function.h"

GsWindowKind
gs_window_kind(const WindowFunc *call)
{
	if (call->winagg)
		return GS_WINDOW_AGGREGATE;
	switch (call->winfnoid)
	{
		case F_ROW_NUMBER:
			return GS_WINDOW_ROW_NUMBER;
		case F_RANK_:
			return GS_WINDOW_RANK;
		case F_DENSE_RANK_:
			return GS_WINDOW_DENSE_RANK;
		case F_PERCENT_RANK_:
			return GS_WINDOW_PERCENT_RANK;
		case F_CUME_DIST_:
			return GS_WINDOW_CUME_DIST;
		case F_NTILE:
			return GS_WINDOW_NTILE;
		case F_LAG_ANYELEMENT:
		case F_LAG_ANYELEMENT_INT4:
		case F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE:
			return GS_WINDOW_LAG;
		case F_LEAD_ANYELEMENT:
		case F_LEAD_ANYELEMENT_INT4:
		case F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE:
			return GS_WINDOW_LEAD;
		case F_FIRST_VALUE:
			return GS_WINDOW_FIRST_VALUE;
		case F_LAST_VALUE:
			return GS_WINDOW_LAST_VALUE;
		default:
			return GS_WINDOW_UNKNOWN;
	}
}

bool
gs_window_uses_frame(GsWindowKind kind)
{
	return kind == GS_WINDOW_FIRST_VALUE || kind == GS_WINDOW_LAST_VALUE ||
		kind == GS_WINDOW_AGGREGATE;
}

int
gs_window_needs(const WindowFunc *call, GsWindowFrame frame)
{
	GsWindowKind kind = gs_window_kind(call);

	switch (kind)
	{
		case GS_WINDOW_RANK:
		case GS_WINDOW_DENSE_RANK:
			return GS_WINDOW_NEEDS_PEERS;
		case GS_WINDOW_PERCENT_RANK:
			return GS_WINDOW_NEEDS_PEERS | GS_WINDOW_NEEDS_PARTITION;
		case GS_WINDOW_CUME_DIST:
			return GS_WINDOW_NEEDS_PEERS | GS_WINDOW_NEEDS_PEERS_END | GS_WINDOW_NEEDS_PARTITION;
		case GS_WINDOW_NTILE:
			return GS_WINDOW_NEEDS_PARTITION;
		case GS_WINDOW_LAG:
		case GS_WINDOW_LEAD:
			return GS_WINDOW_NEEDS_ROWS;
		case GS_WINDOW_LAST_VALUE:
		case GS_WINDOW_AGGREGATE:
			if (frame == GS_FRAME_TO_PEERS)
				return GS_WINDOW_NEEDS_PEERS | GS_WINDOW_NEEDS_PEERS_END;
			return frame == GS_FRAME_TO_PARTITION ? GS_WINDOW_NEEDS_PARTITION : 0;
		default:
			return 0;
	}
}

static ExprState *
init_arg(const WindowFunc *call, int i, PlanState *parent)
{
	if (i >= list_length(call->args))
		return NULL;
	return ExecInitExpr(list_nth(call->args, i), parent);
}

void
gs_window_function_init(GsWindowFunction *function, WindowFunc *call, PlanState *parent)
{
	function->kind = gs_window_kind(call);
	function->arg = init_arg(call, 0, parent);
	function->offset_arg = init_arg(call, 1, parent);
	function->default_arg = init_arg(call, 2, parent);
	get_typlenbyval(call->wintype, &function->len, &function->byval);
	if (function->kind == GS_WINDOW_FIRST_VALUE)
		function->context = AllocSetContextCreate(CurrentMemoryContext, "GpuWindow Values",
												  ALLOCSET_SMALL_SIZES);
}

void
gs_window_function_begin_scan(GsWindowFunction *function, ExprContext *econtext)
{
	int32		offset = 1;

	if (function->kind != GS_WINDOW_LAG && function->kind != GS_WINDOW_LEAD)
		return;
	function->offset_isnull = false;
	if (function->offset_arg)
		offset = DatumGetInt32(ExecEvalExprSwitchContext(function->offset_arg, econtext,
														 &function->offset_isnull));
	if (function->offset_isnull)
		offset = 0;
	if (function->kind == GS_WINDOW_LAG)
		offset = -offset;		/* which may overflow, as in PostgreSQL */
	function->offset = offset;
}

void
gs_window_function_begin_partition(GsWindowFunction *function)
{
	if (function->kind == GS_WINDOW_FIRST_VALUE)
		MemoryContextReset(function->context);
	function->bucket = 0;
}

static Datum
eval(ExprState *arg, TupleTableSlot *row, ExprContext *econtext, bool *isnull)
{
	econtext->ecxt_outertuple = row;
	return ExecEvalExprSwitchContext(arg, econtext, isnull);
}

static Datum
ntile(GsWindowFunction *function, const GsWindowRow *row, ExprContext *econtext, bool *isnull)
{
	if (function->bucket == 0)
	{
		int32		buckets = DatumGetInt32(eval(function->arg, row->slot, econtext, isnull));

		if (*isnull)
			return (Datum) 0;
		if (buckets <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_ARGUMENT_FOR_NTILE),
					 errmsg("argument of ntile must be greater than zero")));
		function->bucket = 1;
		function->bucket_rows = 0;
		function->bucket_size = Max(row->partition_end / buckets, 1);
		function->larger_buckets = row->partition_end < buckets ? 0 : row->partition_end % buckets;
		if (function->larger_buckets > 0)
			function->bucket_size++;
	}
	if (function->bucket_rows == function->bucket_size)
	{
		if (function->larger_buckets > 0 && function->bucket == function->larger_buckets)
		{
			function->larger_buckets = 0;
			function->bucket_size--;
		}
		function->bucket++;
		function->bucket_rows = 0;
	}
	function->bucket_rows++;
	return Int32GetDatum(function->bucket);
}

static Datum
lag_or_lead(GsWindowFunction *function, const GsWindowRow *row, GsHeldRows *held,
			ExprContext *econtext, bool *isnull)
{
	int64		position = row->position + function->offset;

	*isnull = true;
	if (function->offset_isnull)
		return (Datum) 0;
	if (position >= 0 && position < held->end)
	{
		TupleTableSlot *slot = function->offset == 0 ? row->slot :
			gs_held_row(held, function->reader, position);

		return eval(function->arg, slot, econtext, isnull);
	}
	return function->default_arg ? eval(function->default_arg, row->slot, econtext, isnull) :
		(Datum) 0;
}

static Datum
first_value(GsWindowFunction *function, const GsWindowRow *row, ExprContext *econtext,
			bool *isnull)
{
	if (row->position == 0)
	{
		Datum		value = eval(function->arg, row->slot, econtext, &function->isnull);
		MemoryContext old = MemoryContextSwitchTo(function->context);

		if (!function->isnull)
			function->value = datumCopy(value, function->byval, function->len);
		MemoryContextSwitchTo(old);
	}
	*isnull = function->isnull;
	return function->isnull ? (Datum) 0 : function->value;
}

static Datum
last_value(GsWindowFunction *function, const GsWindowRow *row, GsHeldRows *held,
		   ExprContext *econtext, bool *isnull)
{
	int64		position = row->frame_end - 1;

	return eval(function->arg,
				position == row->position ? row->slot : gs_held_row(held, function->reader, position),
				econtext, isnull);
}

Datum
gs_window_function_value(GsWindowFunction *function, const GsWindowRow *row, GsHeldRows *held,
						 ExprContext *econtext, bool *isnull)
{
	*isnull = false;
	switch (function->kind)
	{
		case GS_WINDOW_ROW_NUMBER:
			return Int64GetDatum(row->position + 1);
		case GS_WINDOW_RANK:
			return Int64GetDatum(row->rank);
		case GS_WINDOW_DENSE_RANK:
			return Int64GetDatum(row->dense_rank);
		case GS_WINDOW_PERCENT_RANK:
			if (row->partition_end <= 1)
				return Float8GetDatum(0.0);
			return Float8GetDatum((float8) (row->rank - 1) / (float8) (row->partition_end - 1));
		case GS_WINDOW_CUME_DIST:
			return Float8GetDatum((float8) row->peers_end / (float8) row->partition_end);
		case GS_WINDOW_NTILE:
			return ntile(function, row, econtext, isnull);
		case GS_WINDOW_LAG:
		case GS_WINDOW_LEAD:
			return lag_or_lead(function, row, held, econtext, isnull);
		case GS_WINDOW_FIRST_VALUE:
			return first_value(function, row, econtext, isnull);
		case GS_WINDOW_LAST_VALUE:
			return last_value(function, row, held, econtext, isnull);
		default:
			elog(ERROR, "unrecognized window function: %d", (int) function->kind);
	}
	return (Datum) 0;			/* keep compiler quiet */
}
