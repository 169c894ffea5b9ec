/*-------------------------------------------------------------------------
 *
 * bad_rows.c
 *	  Values that only C functions make, and that devices cannot read.
 *
 * Tests: tap/fault_bad_rows, regress/keys_records
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_indirect);
PG_FUNCTION_INFO_V1(make_records);

/* A pointer to a text in this process's memory, as logical decoding has them. */
Datum
make_indirect(PG_FUNCTION_ARGS)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	struct varatt_indirect to = {(struct varlena *) PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0))};
	struct varlena *pointer = palloc0(VARHDRSZ_EXTERNAL + sizeof(to));

	SET_VARTAG_EXTERNAL(pointer, VARTAG_INDIRECT);
	memcpy(VARDATA_EXTERNAL(pointer), &to, sizeof(to));
	MemoryContextSwitchTo(old);
	PG_RETURN_POINTER(pointer);
}

/*
 * A value of composite type (int, int), whatever the function is declared to return: for odd numbers
 * of that type, for others with another column.
 */
Datum
make_records(PG_FUNCTION_ARGS)
{
	int32		i = PG_GETARG_INT32(0);
	int			n = i % 2 == 0 ? 3 : 2;
	Datum		values[3] = {Int32GetDatum(i), Int32GetDatum(-i), Int32GetDatum(0)};
	bool		isnull[3] = {false, false, false};
	Oid			type;
	TupleDesc	tupdesc;

	if (n == 2)
		get_call_result_type(fcinfo, &type, &tupdesc);
	else
	{
		tupdesc = CreateTemplateTupleDesc(n);
		for (int c = 1; c <= n; c++)
			TupleDescInitEntry(tupdesc, c, NULL, INT4OID, -1, 0);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, isnull)));
}
