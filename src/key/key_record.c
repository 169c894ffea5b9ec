/*-------------------------------------------------------------------------
 *
 * key_record.c
 *	  The fields of values of composite types.
 *
 * record_cmp() compares the fields one after the other, each by its type's default operator class and its
 * own collation.  NULL is above all else.  So the fields are columns of the key.  The column before them
 * only tells whether the value itself is NULL.  If it is, all fields are.  Dropped fields are left out.
 *
 * record_cmp() goes by the type that is named in a value.  That is the column's type, as PostgreSQL
 * converts values of other types.  Values of ROW(...) are of type record, and their typmod is the process's
 * number for the fields' types and names.  A value of another type has no key.  The typmod of other types
 * is ignored: it may be a part of the type's version.
 *
 * Tests: regress/keys_records
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "utils/typcache.h"

#include "key/key_value.h"

GsKeyRecord *
gs_key_record_create(Oid type, int32 typmod)
{
	GsKeyRecord *record;
	TupleDesc	tupdesc;

	if (type != RECORDOID)
		typmod = -1;
	else if (typmod < 0)
		return NULL;
	tupdesc = lookup_rowtype_tupdesc_copy(type, typmod);
	record = palloc(sizeof(GsKeyRecord));
	record->type = type;
	record->typmod = typmod;
	record->tupdesc = tupdesc;
	record->values = palloc(Max(tupdesc->natts, 1) * sizeof(Datum));
	record->isnull = palloc(Max(tupdesc->natts, 1) * sizeof(bool));
	return record;
}

bool
gs_key_record_read(GsKeyRecord *record, Datum value, bool isnull)
{
	HeapTupleData tuple;

	if (isnull)
	{
		memset(record->isnull, true, record->tupdesc->natts * sizeof(bool));
		return true;
	}
	tuple.t_data = gs_compat_record(value);
	tuple.t_len = HeapTupleHeaderGetDatumLength(tuple.t_data);
	if (unlikely(HeapTupleHeaderGetTypeId(tuple.t_data) != record->type ||
				 (record->type == RECORDOID &&
				  HeapTupleHeaderGetTypMod(tuple.t_data) != record->typmod)))
		return false;
	heap_deform_tuple(&tuple, record->tupdesc, record->values, record->isnull);
	return true;
}
