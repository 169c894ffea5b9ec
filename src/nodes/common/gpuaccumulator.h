/*-------------------------------------------------------------------------
 *
 * gpuaccumulator.h
 *	  Aggregates that are computed here, without calling their functions.
 *
 * These are count(), sum() of smallint, integer and double precision, avg() of smallint and integer,
 * min() and max() of integers, dates and timestamps, and string_agg() with a constant delimiter; each of
 * them of a column as it is.
 * Calling a transition function takes many times as long as what these do.  PostgreSQL's own
 * aggregates only, so it is known what they do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUACCUMULATOR_H
#define GS_GPUACCUMULATOR_H

#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "utils/float.h"

typedef enum GsAccumulatorKind
{
	GS_ACCUMULATE_NOTHING,		/* not one of these aggregates */
	GS_ACCUMULATE_COUNT_ROWS,
	GS_ACCUMULATE_COUNT_VALUES,
	GS_ACCUMULATE_SUM_INT2,
	GS_ACCUMULATE_SUM_INT4,
	GS_ACCUMULATE_SUM_FLOAT8,
	GS_ACCUMULATE_AVG_INT2,
	GS_ACCUMULATE_AVG_INT4,
	GS_ACCUMULATE_MIN_INT2,
	GS_ACCUMULATE_MIN_INT4,
	GS_ACCUMULATE_MIN_INT8,
	GS_ACCUMULATE_MAX_INT2,
	GS_ACCUMULATE_MAX_INT4,
	GS_ACCUMULATE_MAX_INT8,
	GS_ACCUMULATE_CONCATENATE
} GsAccumulatorKind;

typedef struct GsAccumulator
{
	GsAccumulatorKind kind;
	AttrNumber	column;			/* the argument; 0: there is none */
	Datum		value;			/* so far, 0 at first; not of GS_ACCUMULATE_CONCATENATE */
	bool		isnull;
	int64		count;			/* of values, for averages, whose sum is in value */

	/* GS_ACCUMULATE_CONCATENATE */
	const char *delimiter;
	int			delimiter_bytes;
	StringInfoData text;		/* a varlena whose length is not yet set */
} GsAccumulator;

/* For a call of an aggregate with these arguments, columns of the child's output. */
extern GsAccumulatorKind gs_accumulator_kind(Oid aggregate, List *args);

/* In CurrentMemoryContext, which must live as long as the accumulator. */
extern void gs_accumulator_init(GsAccumulator *accumulator, Oid aggregate, List *args);

/* Before the first row of a group. */
extern void gs_accumulator_begin(GsAccumulator *accumulator);

/* Is the result made in CurrentMemoryContext? */
static inline bool
gs_accumulator_allocates(GsAccumulatorKind kind)
{
	return kind == GS_ACCUMULATE_AVG_INT2 || kind == GS_ACCUMULATE_AVG_INT4;
}

/* For the functions below. */
extern Datum gs_accumulator_text(GsAccumulator *accumulator);
extern Datum gs_accumulator_average(const GsAccumulator *accumulator);
extern void gs_accumulator_concatenate(GsAccumulator *accumulator, Datum value);
pg_noinline extern void gs_accumulator_overflow(void);

static inline void
gs_accumulator_set(GsAccumulator *accumulator, bool replaces, Datum value)
{
	if (accumulator->isnull || replaces)
		accumulator->value = value;
	accumulator->isnull = false;
}

/* Another row, whose columns up to the accumulator's have been deformed. */
static inline void
gs_accumulator_advance(GsAccumulator *accumulator, const TupleTableSlot *row)
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
		case GS_ACCUMULATE_NOTHING:
			break;
		case GS_ACCUMULATE_COUNT_ROWS:
		case GS_ACCUMULATE_COUNT_VALUES:
			if (unlikely(DatumGetInt64(old) == PG_INT64_MAX))
				gs_accumulator_overflow();
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + 1);
			break;
		case GS_ACCUMULATE_SUM_INT2:
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + DatumGetInt16(value));
			accumulator->isnull = false;
			break;
		case GS_ACCUMULATE_AVG_INT2:
			accumulator->count++;
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + DatumGetInt16(value));
			accumulator->isnull = false;
			break;
		case GS_ACCUMULATE_AVG_INT4:
			accumulator->count++;
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + DatumGetInt32(value));
			accumulator->isnull = false;
			break;
		case GS_ACCUMULATE_SUM_INT4:
			accumulator->value = Int64GetDatum(DatumGetInt64(old) + DatumGetInt32(value));
			accumulator->isnull = false;
			break;
		case GS_ACCUMULATE_SUM_FLOAT8:
			if (!accumulator->isnull)
				value = Float8GetDatum(float8_pl(DatumGetFloat8(old), DatumGetFloat8(value)));
			gs_accumulator_set(accumulator, true, value);
			break;
		case GS_ACCUMULATE_MIN_INT2:
			gs_accumulator_set(accumulator, DatumGetInt16(value) < DatumGetInt16(old), value);
			break;
		case GS_ACCUMULATE_MIN_INT4:
			gs_accumulator_set(accumulator, DatumGetInt32(value) < DatumGetInt32(old), value);
			break;
		case GS_ACCUMULATE_MIN_INT8:
			gs_accumulator_set(accumulator, DatumGetInt64(value) < DatumGetInt64(old), value);
			break;
		case GS_ACCUMULATE_MAX_INT2:
			gs_accumulator_set(accumulator, DatumGetInt16(value) > DatumGetInt16(old), value);
			break;
		case GS_ACCUMULATE_MAX_INT4:
			gs_accumulator_set(accumulator, DatumGetInt32(value) > DatumGetInt32(old), value);
			break;
		case GS_ACCUMULATE_MAX_INT8:
			gs_accumulator_set(accumulator, DatumGetInt64(value) > DatumGetInt64(old), value);
			break;
		case GS_ACCUMULATE_CONCATENATE:
			gs_accumulator_concatenate(accumulator, value);
			break;
	}
}

/* So many other values, of GS_ACCUMULATE_COUNT_ROWS and GS_ACCUMULATE_COUNT_VALUES. */
static inline void
gs_accumulator_count(GsAccumulator *accumulator, int64 n)
{
	accumulator->value = Int64GetDatum(DatumGetInt64(accumulator->value) + n);
}

/* Good until the accumulator begins again or is advanced. */
static inline Datum
gs_accumulator_result(GsAccumulator *accumulator, bool *isnull)
{
	*isnull = accumulator->isnull;
	if (accumulator->isnull)
		return (Datum) 0;
	if (accumulator->kind == GS_ACCUMULATE_CONCATENATE)
		return gs_accumulator_text(accumulator);
	if (gs_accumulator_allocates(accumulator->kind))
		return gs_accumulator_average(accumulator);
	return accumulator->value;
}

#endif							/* GS_GPUACCUMULATOR_H */
