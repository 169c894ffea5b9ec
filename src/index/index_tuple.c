/*-------------------------------------------------------------------------
 *
 * index_tuple.c
 *	  Forming the tuples of an index (index_tuple.h).
 *
 * Tuples with values that have to be fetched or compressed, and tuples that may be too large, are left to
 * index_form_tuple().
 *
 * Tests: regress/index_builds, regress/index_page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "chunk/tuple_form.h"
#include "index/index_tuple.h"

struct GsTupleFormer
{
	TupleDesc	tupdesc;
	MemoryContext scratch;		/* of the last tuple that PostgreSQL formed */
	IndexTuple	tuple;			/* room for the largest tuple */
	GsFormColumn *columns;
};

GsTupleFormer *
gs_tuple_former_create(TupleDesc tupdesc)
{
	GsTupleFormer *former = palloc(sizeof(GsTupleFormer));

	former->tupdesc = tupdesc;
	former->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort index tuple",
											ALLOCSET_DEFAULT_SIZES);
	former->tuple = palloc(MAXALIGN(INDEX_SIZE_MASK + 1));
	former->columns = gs_form_columns(tupdesc);
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

IndexTuple
gs_tuple_former_form(GsTupleFormer *former, Datum *values, bool *isnull)
{
	IndexTuple	tuple = former->tuple;
	uint8	   *nulls = NULL;
	unsigned short info = 0;
	uint16		infomask = 0;
	char	   *at;

	for (int i = 0; i < former->tupdesc->natts && nulls == NULL; i++)
		if (unlikely(isnull[i]))
			nulls = (uint8 *) tuple + sizeof(IndexTupleData);
	if (nulls)
	{
		info = INDEX_NULL_MASK;
		memset(nulls, 0, IndexInfoFindDataOffset(info) - sizeof(IndexTupleData));
	}
	at = gs_form_data(former->tupdesc, former->columns, values, isnull, nulls, true,
					  (char *) tuple + IndexInfoFindDataOffset(info),
					  (char *) tuple + INDEX_SIZE_MASK, &infomask);
	if (unlikely(at == NULL))
		return form_by_postgres(former, values, isnull);
	if (infomask & HEAP_HASVARWIDTH)
		info |= INDEX_VAR_MASK;
	at = gs_form_pad(at, MAXIMUM_ALIGNOF);
	tuple->t_info = info | (at - (char *) tuple);
	return tuple;
}

bool
gs_index_equal_image(Oid opfamily, Oid type, Oid collation)
{
	Oid			function = get_opfamily_proc(opfamily, type, type, BTEQUALIMAGE_PROC);

	/* bpchar's says so wrongly: blanks at the end do not count, and there may be any number of them */
	return OidIsValid(function) && type != BPCHAROID &&
		DatumGetBool(OidFunctionCall1Coll(function, collation, ObjectIdGetDatum(type)));
}
