/*-------------------------------------------------------------------------
 *
 * key_types.c
 *	  The table of types that gpusort sorts: how their values are written as
 *	  key bytes, and how devices sort them as elements of arrays.
 *
 * src/README.md tells how to add a type.  The operator class's comparison function decides whether a row is
 * right, not the type's looks.  Bytes must be equal exactly if it returns 0, and smaller exactly if it
 * returns less than 0.
 *
 *	  "char"	compared as unsigned bytes, although the type is signed
 *	  bpchar	trailing blanks do not count
 *	  money		the int64 it is
 *	  timetz	by the moment in UTC, then by the zone
 *	  interval	by its length with months of 30 days and days of 24 hours, so
 *				that '1 mon' = '30 days'
 *	  macaddr	the bytes a to f, macaddr8 a to h, unsigned
 *	  tid		block, then offset
 *	  enum		pg_enum's order, key_enum.c
 *	  name		like text, up to its first NUL
 *	  numeric	key_encode_numeric.h
 *	  inet		key_encode.h; cidr as well
 *	  oidvector	by length first, unlike arrays
 *	  arrays	by elements first, key_array.c; of elements of any type with a
 *				row here
 *	  ranges	the empty one first, then by bounds, key_range.c; of any type with a row here,
 *				but not of text, or jsonb, of a libc collation
 *	  jsonb		key_jsonb.c
 *	  composite types	by their fields, key_record.c; not inside of arrays
 *
 * A row is found by the operator class's input type.  That is the base type for domains, text for varchar,
 * oid for regclass and the like, and anyenum, anyarray, anyrange or record for every enum, array, range or
 * composite type.  Every type has one default btree operator class.  For built-in types it is pinned, so it
 * is the class that the row means.  The pattern classes are named.
 *
 * The element tells how devices sort such values in place, in an array (device.h).  Their order is the
 * operator class's, too.  GS_ELEM_NONE: devices do not sort them.
 *
 * Tests: regress/keys, regress/keys_types
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "key/key_encode.h"
#include "key/key_types.h"

static const GsKeyType key_types[] = {
	/* type, operator family, kind, width, collated, element */
	{BOOLOID, InvalidOid, GS_KEY_BOOL, 1, false, GS_ELEM_UINT1},
	{CHAROID, InvalidOid, GS_KEY_UINT8, 1, false, GS_ELEM_UINT1},
	{INT2OID, InvalidOid, GS_KEY_INT16, 2, false, GS_ELEM_INT2},
	{INT4OID, InvalidOid, GS_KEY_INT32, 4, false, GS_ELEM_INT4},
	{INT8OID, InvalidOid, GS_KEY_INT64, 8, false, GS_ELEM_INT8},
	{OIDOID, InvalidOid, GS_KEY_UINT32, 4, false, GS_ELEM_UINT4},
	{XID8OID, InvalidOid, GS_KEY_UINT64, 8, false, GS_ELEM_UINT8},
	{PG_LSNOID, InvalidOid, GS_KEY_UINT64, 8, false, GS_ELEM_UINT8},
	{FLOAT4OID, InvalidOid, GS_KEY_FLOAT4, 4, false, GS_ELEM_FLOAT4},
	{FLOAT8OID, InvalidOid, GS_KEY_FLOAT8, 8, false, GS_ELEM_FLOAT8},
	{MONEYOID, InvalidOid, GS_KEY_INT64, 8, false, GS_ELEM_INT8},
	{DATEOID, InvalidOid, GS_KEY_INT32, 4, false, GS_ELEM_INT4},
	{TIMEOID, InvalidOid, GS_KEY_INT64, 8, false, GS_ELEM_INT8},
	{TIMETZOID, InvalidOid, GS_KEY_TIMETZ, 12, false, GS_ELEM_NONE},
	{TIMESTAMPOID, InvalidOid, GS_KEY_INT64, 8, false, GS_ELEM_INT8},
	{TIMESTAMPTZOID, InvalidOid, GS_KEY_INT64, 8, false, GS_ELEM_INT8},
	{INTERVALOID, InvalidOid, GS_KEY_INTERVAL, GS_KEY_SPAN_BYTES, false, GS_ELEM_NONE},
	{TIDOID, InvalidOid, GS_KEY_TID, 6, false, GS_ELEM_NONE},
	{ANYENUMOID, InvalidOid, GS_KEY_ENUM, 4, false, GS_ELEM_NONE},
	{UUIDOID, InvalidOid, GS_KEY_RAW, 16, false, GS_ELEM_BYTES16},
	{MACADDROID, InvalidOid, GS_KEY_RAW, 6, false, GS_ELEM_NONE},
	{MACADDR8OID, InvalidOid, GS_KEY_RAW, 8, false, GS_ELEM_NONE},
	{TEXTOID, InvalidOid, GS_KEY_TEXT, 0, true, GS_ELEM_NONE},
	{TEXTOID, TEXT_PATTERN_BTREE_FAM_OID, GS_KEY_TEXT, 0, false, GS_ELEM_NONE},
	{BPCHAROID, InvalidOid, GS_KEY_BPCHAR, 0, true, GS_ELEM_NONE},
	{BPCHAROID, BPCHAR_PATTERN_BTREE_FAM_OID, GS_KEY_BPCHAR, 0, false, GS_ELEM_NONE},
	{NAMEOID, InvalidOid, GS_KEY_NAME, 0, true, GS_ELEM_NONE},
	{BYTEAOID, InvalidOid, GS_KEY_BYTEA, 0, false, GS_ELEM_NONE},
	{NUMERICOID, InvalidOid, GS_KEY_NUMERIC, 0, false, GS_ELEM_NONE},
	{INETOID, InvalidOid, GS_KEY_INET, 0, false, GS_ELEM_NONE},
	{BITOID, InvalidOid, GS_KEY_BITS, 0, false, GS_ELEM_NONE},
	{VARBITOID, InvalidOid, GS_KEY_BITS, 0, false, GS_ELEM_NONE},
	{OIDVECTOROID, InvalidOid, GS_KEY_OIDVECTOR, 0, false, GS_ELEM_NONE},
	{ANYARRAYOID, InvalidOid, GS_KEY_ARRAY, 0, false, GS_ELEM_NONE},
	{ANYRANGEOID, InvalidOid, GS_KEY_RANGE, 0, false, GS_ELEM_NONE},
	{JSONBOID, InvalidOid, GS_KEY_JSONB, 0, false, GS_ELEM_NONE},
	{RECORDOID, InvalidOid, GS_KEY_RECORD, 0, false, GS_ELEM_NONE},
};

const GsKeyType *
gs_key_type_lookup(Oid type, Oid opfamily, GsRefusal *refusal)
{
	*refusal = GS_REFUSE_TYPE;
	for (size_t i = 0; i < lengthof(key_types); i++)
	{
		const GsKeyType *row = &key_types[i];
		Oid			wanted = row->opfamily;

		if (row->type != type)
			continue;
		if (!OidIsValid(wanted))
			wanted = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
		if (opfamily == wanted)
		{
			*refusal = GS_REFUSE_NONE;
			return row;
		}
		*refusal = GS_REFUSE_OPCLASS;
	}
	return NULL;
}

bool
gs_key_equal_image(Oid opfamily, Oid type, Oid collation)
{
	Oid			function = get_opfamily_proc(opfamily, type, type, BTEQUALIMAGE_PROC);

	/*
	 * Trailing blanks of bpchar do not count, and oidvector has no such function in PostgreSQL 19.  Before
	 * 15.5 and 16.1, btequalimage() is true of interval, where '1 day' and '24:00:00' are equal.
	 */
	return OidIsValid(function) && type != BPCHAROID && type != OIDVECTOROID && type != INTERVALOID &&
		DatumGetBool(OidFunctionCall1Coll(function, collation, ObjectIdGetDatum(type)));
}
