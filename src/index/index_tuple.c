/*-------------------------------------------------------------------------
 *
 * index_tuple.c
 *	  Forming the tuples of an index (index_tuple.h).
 *
 * Mirrors heap_fill_tuple() (access/common/heaptuple.c), with these differences: it measures and writes a
 * value at once, in memory that has room for any tuple, and leaves to index_form_tuple() what
 * that has to fetch, to compress, or to refuse.
 *
 * Tests: regress/index_builds, regress/index_page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type_d.h"
#include "utils/memutils.h"

#include "index/index_tuple.h"

typedef struct FormedColumn
{
	int16		len;			/* attlen */
	uint8		align;			/* in bytes */
	bool		byval;
	bool		packable;		/* short values may have short headers */
	bool		compressible;	/* long values are compressed */
} FormedColumn;

struct GsTupleFormer
{
	TupleDesc	tupdesc;
	MemoryContext scratch;		/* of tuples that PostgreSQL forms */
	IndexTuple	tuple;			/* room for the largest one */
	FormedColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

GsTupleFormer *
gs_tuple_former_create(TupleDesc tupdesc)
{
	GsTupleFormer *former = palloc0(offsetof(GsTupleFormer, columns) +
									tupdesc->natts * sizeof(FormedColumn));

	former->tupdesc = tupdesc;
	former->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	former->tuple = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(tupdesc, i);

		former->columns[i].len = attr->attlen;
		former->columns[i].align = att_align_nominal(1, attr->attalign);
		former->columns[i].byval = attr->attbyval;
		former->columns[i].packable = attr->attstorage != TYPSTORAGE_PLAIN;
		former->columns[i].compressible = attr->attstorage == TYPSTORAGE_EXTENDED ||
			attr->attstorage == TYPSTORAGE_MAIN;
	}
	return former;
}

static IndexTuple
form_by_postgres(GsTupleFormer *former, Datum *values, bool *isnull)
{
	MemoryContext old;
	IndexTuple	tuple;

	MemoryContextReset(former->scratch);
	old = MemoryContextSwitchTo(former->scratch);
	tuple = index_form_tuple(former->tupdesc, values, isnull);
	MemoryContextSwitchTo(old);
	return tuple;
}

/* Must a value be fetched or compressed before it is stored in an index? */
static inline bool
needs_toaster(const FormedColumn *column, const char *value)
{
	return VARATT_IS_EXTERNAL(value) ||
		(column->compressible && !VARATT_IS_EXTENDED(value) && VARSIZE(value) > TOAST_INDEX_TARGET);
}

/* Writes some bytes more, for which there is room. */
static inline char *
pad(char *at, uint32 align)
{
	memset(at, 0, MAXIMUM_ALIGNOF);
	return (char *) TYPEALIGN(align, at);
}

IndexTuple
gs_tuple_former_form(GsTupleFormer *former, Datum *values, bool *isnull)
{
	int			n = former->tupdesc->natts;
	IndexTuple	tuple = former->tuple;
	uint8	   *nulls = NULL;
	unsigned short info = 0;
	char	   *at;

	for (int i = 0; i < n && nulls == NULL; i++)
		if (unlikely(isnull[i]))
			nulls = (uint8 *) tuple + sizeof(IndexTupleData);
	if (nulls)
	{
		info = INDEX_NULL_MASK;
		memset(nulls, 0, IndexInfoFindDataOffset(info) - sizeof(IndexTupleData));
	}
	at = (char *) tuple + IndexInfoFindDataOffset(info);

	for (int i = 0; i < n; i++)
	{
		const FormedColumn *column = &former->columns[i];
		const char *value = DatumGetPointer(values[i]);
		bool		pack = false;
		Size		size = column->len;

		if (nulls)
		{
			if (isnull[i])
				continue;
			nulls[i / 8] |= 1 << i % 8;
		}
		if (column->len < 0)
			info |= INDEX_VAR_MASK;
		if (column->len == -1)
		{
			if (unlikely(needs_toaster(column, value)))
				return form_by_postgres(former, values, isnull);
			pack = column->packable && VARATT_CAN_MAKE_SHORT(value);
			size = pack ? VARATT_CONVERTED_SHORT_SIZE(value) : VARSIZE_ANY(value);
		}
		else if (column->len == -2)
			size = strlen(value) + 1;
		if (unlikely((at - (char *) tuple) + size > INDEX_SIZE_MASK - MAXIMUM_ALIGNOF))
			return form_by_postgres(former, values, isnull);

		if (column->len != -1 || !(pack || VARATT_IS_SHORT(value)))
			at = pad(at, column->align);
		if (column->byval)
			store_att_byval(at, values[i], column->len);
		else if (pack)
		{
			SET_VARSIZE_SHORT(at, size);
			memcpy(at + 1, VARDATA(value), size - 1);
		}
		else
			memcpy(at, value, size);
		at += size;
	}
	at = pad(at, MAXIMUM_ALIGNOF);
	tuple->t_info = info | (at - (char *) tuple);
	return tuple;
}
