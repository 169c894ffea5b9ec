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
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_indirect);
PG_FUNCTION_INFO_V1(make_row);

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

/* A value of any composite type of numbers and bytea, whatever the function is declared to return. */
Datum
make_row(PG_FUNCTION_ARGS)
{
	int32		number = PG_GETARG_INT32(0);
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(PG_GETARG_OID(1), -1);
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc0(tupdesc->natts * sizeof(bool));

	for (int i = 0; i < tupdesc->natts; i++)
		switch (TupleDescAttr(tupdesc, i)->attlen)
		{
			case 4:
				values[i] = Int32GetDatum(i == 0 ? number / 4 : -number);
				break;
			case 8:
				values[i] = Int64GetDatum(number);
				break;
			default:
				values[i] = PointerGetDatum(cstring_to_text("gone"));
		}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, isnull)));
}
