/*-------------------------------------------------------------------------
 *
 * gpuaccumulator.c
 *	  Aggregates that are computed here (gpuaccumulator.h).
 *
 * They do what int8inc(), int8inc_any(), int2_sum(), int4_sum(), float8pl(), int4_avg_accum(),
 * int8_avg(), int4smaller() and the like, and string_agg_transfn() do, with NULLs as nodeAgg.c has
 * them for strict functions.
 *
 * A text grows behind the room for its header, so that it is the result as it is.  Its memory is
 * used again for the next group, unless it is large.
 *
 * Tests: regress/aggregates_grouped, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "compat.h"
#include "nodes/common/gpuaccumulator.h"
#include "plan/plan_walk.h"

static GsAccumulatorKind
kind_of(Oid aggregate)
{
	switch (aggregate)
	{
		case F_COUNT_:
			return GS_ACCUMULATE_COUNT_ROWS;
		case F_COUNT_ANY:
			return GS_ACCUMULATE_COUNT_VALUES;
		case F_SUM_INT2:
			return GS_ACCUMULATE_SUM_INT2;
		case F_SUM_INT4:
			return GS_ACCUMULATE_SUM_INT4;
		case F_SUM_FLOAT8:
			return GS_ACCUMULATE_SUM_FLOAT8;
		case F_AVG_INT2:
			return GS_ACCUMULATE_AVG_INT2;
		case F_AVG_INT4:
			return GS_ACCUMULATE_AVG_INT4;
		case F_MIN_INT2:
			return GS_ACCUMULATE_MIN_INT2;
		case F_MIN_INT4:
		case F_MIN_DATE:
			return GS_ACCUMULATE_MIN_INT4;
		case F_MIN_INT8:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
			return GS_ACCUMULATE_MIN_INT8;
		case F_MAX_INT2:
			return GS_ACCUMULATE_MAX_INT2;
		case F_MAX_INT4:
		case F_MAX_DATE:
			return GS_ACCUMULATE_MAX_INT4;
		case F_MAX_INT8:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
			return GS_ACCUMULATE_MAX_INT8;
		case F_STRING_AGG_TEXT_TEXT:
		case F_STRING_AGG_BYTEA_BYTEA:
			return GS_ACCUMULATE_CONCATENATE;
		default:
			return GS_ACCUMULATE_NOTHING;
	}
}

GsAccumulatorKind
gs_accumulator_kind(Oid aggregate, List *args)
{
	/* values of 8 bytes that are passed by reference would have to be copied */
	GsAccumulatorKind kind = FLOAT8PASSBYVAL ? kind_of(aggregate) : GS_ACCUMULATE_NOTHING;
	const Var  *column;

	if (kind == GS_ACCUMULATE_NOTHING || kind == GS_ACCUMULATE_COUNT_ROWS)
		return kind;
	column = (const Var *) gs_plan_strip_relabel(linitial(args));
	if (!IsA(column, Var) || column->varno != OUTER_VAR || column->varattno < 1)
		return GS_ACCUMULATE_NOTHING;
	if (kind == GS_ACCUMULATE_CONCATENATE && !IsA(gs_plan_strip_relabel(lsecond(args)), Const))
		return GS_ACCUMULATE_NOTHING;
	return kind;
}

void
gs_accumulator_init(GsAccumulator *accumulator, Oid aggregate, List *args)
{
	memset(accumulator, 0, sizeof(*accumulator));
	accumulator->delimiter = "";
	accumulator->kind = gs_accumulator_kind(aggregate, args);
	if (accumulator->kind == GS_ACCUMULATE_NOTHING)
		return;
	if (accumulator->kind != GS_ACCUMULATE_COUNT_ROWS)
		accumulator->column = ((const Var *) gs_plan_strip_relabel(linitial(args)))->varattno;
	if (accumulator->kind == GS_ACCUMULATE_CONCATENATE)
	{
		const Const *delimiter = (const Const *) gs_plan_strip_relabel(lsecond(args));

		if (!delimiter->constisnull)
		{
			struct varlena *value = PG_DETOAST_DATUM_PACKED(delimiter->constvalue);

			accumulator->delimiter = VARDATA_ANY(value);
			accumulator->delimiter_bytes = VARSIZE_ANY_EXHDR(value);
		}
		initStringInfo(&accumulator->text);
	}
}

void
gs_accumulator_begin(GsAccumulator *accumulator)
{
	StringInfo	text = &accumulator->text;

	accumulator->value = (Datum) 0;
	accumulator->count = 0;
	accumulator->isnull = accumulator->kind != GS_ACCUMULATE_COUNT_ROWS &&
		accumulator->kind != GS_ACCUMULATE_COUNT_VALUES;
	if (accumulator->kind != GS_ACCUMULATE_CONCATENATE)
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

void
gs_accumulator_concatenate(GsAccumulator *accumulator, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

	if (!accumulator->isnull)
		append(&accumulator->text, accumulator->delimiter, accumulator->delimiter_bytes);
	accumulator->isnull = false;
	append(&accumulator->text, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
	if (unlikely(PointerGetDatum(packed) != value))
		pfree(packed);
}

void
gs_accumulator_overflow(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("bigint out of range")));
}

Datum
gs_accumulator_text(GsAccumulator *accumulator)
{
	SET_VARSIZE(accumulator->text.data, accumulator->text.len);
	return PointerGetDatum(accumulator->text.data);
}

Datum
gs_accumulator_average(const GsAccumulator *accumulator)
{
	return DirectFunctionCall2(numeric_div,
							   NumericGetDatum(int64_to_numeric(DatumGetInt64(accumulator->value))),
							   NumericGetDatum(int64_to_numeric(accumulator->count)));
}
