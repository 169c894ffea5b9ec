/*-------------------------------------------------------------------------
 *
 * tuple_form.h
 *	  Writing values of columns as the data of a tuple.
 *
 * Makes the same bytes as heap_fill_tuple() (access/common/heaptuple.c), which needs a first pass over the
 * values for their sizes.  Here each value is measured and written at once.  The caller handles values that
 * do not fit, or that must be fetched, flattened or compressed first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TUPLE_FORM_H
#define GS_TUPLE_FORM_H

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "access/tupmacs.h"
#include "catalog/pg_type_d.h"

#include "compat.h"

typedef struct GsFormColumn
{
	int16		len;			/* attlen */
	uint8		align;			/* in bytes */
	bool		byval;
	bool		packable;		/* short values get short headers */
	bool		compressible;	/* long values are compressed in an index */
} GsFormColumn;

static inline GsFormColumn
gs_form_column(TupleDesc tupdesc, int i)
{
	Form_pg_attribute attr = TupleDescAttr(tupdesc, i);

	return (GsFormColumn){
		.len = attr->attlen,
		.align = att_align_nominal(1, attr->attalign),
		.byval = attr->attbyval,
		.packable = attr->attstorage != TYPSTORAGE_PLAIN,
		.compressible = attr->attstorage == TYPSTORAGE_EXTENDED || attr->attstorage == TYPSTORAGE_MAIN,
	};
}

static inline GsFormColumn *
gs_form_columns(TupleDesc tupdesc)
{
	GsFormColumn *columns = palloc(Max(tupdesc->natts, 1) * sizeof(GsFormColumn));

	for (int i = 0; i < tupdesc->natts; i++)
		columns[i] = gs_form_column(tupdesc, i);
	return columns;
}

/* Aligns a position.  Writes MAXIMUM_ALIGNOF zeroes from it on, for which there must be room. */
static inline char *
gs_form_pad(char *at, uint32 align)
{
	memset(at, 0, MAXIMUM_ALIGNOF);
	return (char *) TYPEALIGN(align, at);
}

/*
 * Returns the bytes that a value of varying width takes; 0: the caller must handle it.  *pack: the value
 * gets a short header.  *pads: it is aligned.
 */
static inline Size
gs_form_varlena(const GsFormColumn *column, const char *value, bool for_index, bool *pack, bool *pads,
				uint16 *infomask)
{
	*pack = *pads = false;
	if (unlikely(VARATT_IS_EXTERNAL(value)))
	{
		if (for_index || VARATT_IS_EXTERNAL_EXPANDED(value))
			return 0;
		*infomask |= HEAP_HASEXTERNAL;
		return VARSIZE_EXTERNAL(value);
	}
	if (VARATT_IS_SHORT(value))
		return VARSIZE_SHORT(value);
	if (column->packable && VARATT_CAN_MAKE_SHORT(value))
	{
		*pack = true;
		return VARATT_CONVERTED_SHORT_SIZE(value);
	}
	if (for_index && column->compressible && !VARATT_IS_EXTENDED(value) &&
		VARSIZE(value) > TOAST_INDEX_TARGET)
		return 0;
	*pads = true;
	return VARSIZE(value);
}

/*
 * Writes values from `at`, which is aligned to MAXALIGN(), up to `end` at most.  Adds the flags of the
 * values in a heap tuple's header to *infomask.  nulls: the tuple's bitmap, which is zero; NULL: no value
 * is NULL.  columns: of tupdesc; NULL: they are looked up there.  Returns the end of the data, behind which
 * some bytes may have become zero.  NULL: the values may not fit, or a value is not stored as it is.
 */
static inline char *
gs_form_data(TupleDesc tupdesc, const GsFormColumn *columns, const Datum *values, const bool *isnull,
			 uint8 *nulls, bool for_index, char *at, const char *end, uint16 *infomask)
{
	for (int i = 0; i < tupdesc->natts; i++)
	{
		GsFormColumn column = columns ? columns[i] : gs_form_column(tupdesc, i);
		const char *value = DatumGetPointer(values[i]);
		bool		pack = false;
		bool		pads = true;
		Size		size = column.len;

		if (nulls)
		{
			if (isnull[i])
				continue;
			nulls[i / 8] |= 1 << i % 8;
		}
		if (column.len < 0)
		{
			*infomask |= HEAP_HASVARWIDTH;
			size = column.len == -2 ? strlen(value) + 1 :
				gs_form_varlena(&column, value, for_index, &pack, &pads, infomask);
			if (unlikely(size == 0))
				return NULL;
		}
		if (unlikely(at + 2 * MAXIMUM_ALIGNOF > end || size > (Size) (end - at) - 2 * MAXIMUM_ALIGNOF))
			return NULL;
		if (pads)
			at = gs_form_pad(at, column.align);
		if (column.byval)
			store_att_byval(at, values[i], column.len);
		else if (pack)
		{
			SET_VARSIZE_SHORT(at, size);
			memcpy(at + 1, VARDATA(value), size - 1);
		}
		else
			memcpy(at, value, size);
		at += size;
	}
	return at;
}

#endif							/* GS_TUPLE_FORM_H */
