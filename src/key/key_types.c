/*-------------------------------------------------------------------------
 *
 * key_types.c
 *	  The table of types whose values can be written as key bytes.
 *
 * A type is supported by adding a row here, and where no kind of encoding
 * fits yet, a kind to GsKeyKind and its case to key_write.c.  What makes a row
 * right is the operator class's comparison function, not how the type looks:
 * the bytes must be equal exactly where it returns 0, and smaller exactly
 * where it returns less than 0.
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
 *
 * A row is found by the operator class's input type, which for domains is the
 * base type, for varchar is text, for regclass and the like oid, and for every
 * enum and array anyenum and anyarray.  Every type has one default btree
 * operator class, which is pinned for built-in types and so cannot be
 * another than the one meant here; the pattern classes are named.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/typcache.h"

#include "key/key_encode.h"
#include "key/key_types.h"

static const GsKeyType key_types[] = {
	/* type, operator family, kind, width, collated */
	{BOOLOID, InvalidOid, GS_KEY_BOOL, 1, false},
	{CHAROID, InvalidOid, GS_KEY_UINT8, 1, false},
	{INT2OID, InvalidOid, GS_KEY_INT16, 2, false},
	{INT4OID, InvalidOid, GS_KEY_INT32, 4, false},
	{INT8OID, InvalidOid, GS_KEY_INT64, 8, false},
	{OIDOID, InvalidOid, GS_KEY_UINT32, 4, false},
	{XID8OID, InvalidOid, GS_KEY_UINT64, 8, false},
	{PG_LSNOID, InvalidOid, GS_KEY_UINT64, 8, false},
	{FLOAT4OID, InvalidOid, GS_KEY_FLOAT4, 4, false},
	{FLOAT8OID, InvalidOid, GS_KEY_FLOAT8, 8, false},
	{MONEYOID, InvalidOid, GS_KEY_INT64, 8, false},
	{DATEOID, InvalidOid, GS_KEY_INT32, 4, false},
	{TIMEOID, InvalidOid, GS_KEY_INT64, 8, false},
	{TIMETZOID, InvalidOid, GS_KEY_TIMETZ, 12, false},
	{TIMESTAMPOID, InvalidOid, GS_KEY_INT64, 8, false},
	{TIMESTAMPTZOID, InvalidOid, GS_KEY_INT64, 8, false},
	{INTERVALOID, InvalidOid, GS_KEY_INTERVAL, GS_KEY_SPAN_BYTES, false},
	{TIDOID, InvalidOid, GS_KEY_TID, 6, false},
	{ANYENUMOID, InvalidOid, GS_KEY_ENUM, 4, false},
	{UUIDOID, InvalidOid, GS_KEY_RAW, 16, false},
	{MACADDROID, InvalidOid, GS_KEY_RAW, 6, false},
	{MACADDR8OID, InvalidOid, GS_KEY_RAW, 8, false},
	{TEXTOID, InvalidOid, GS_KEY_TEXT, 0, true},
	{TEXTOID, TEXT_PATTERN_BTREE_FAM_OID, GS_KEY_TEXT, 0, false},
	{BPCHAROID, InvalidOid, GS_KEY_BPCHAR, 0, true},
	{BPCHAROID, BPCHAR_PATTERN_BTREE_FAM_OID, GS_KEY_BPCHAR, 0, false},
	{NAMEOID, InvalidOid, GS_KEY_NAME, 0, true},
	{BYTEAOID, InvalidOid, GS_KEY_BYTEA, 0, false},
	{NUMERICOID, InvalidOid, GS_KEY_NUMERIC, 0, false},
	{INETOID, InvalidOid, GS_KEY_INET, 0, false},
	{BITOID, InvalidOid, GS_KEY_BITS, 0, false},
	{VARBITOID, InvalidOid, GS_KEY_BITS, 0, false},
	{OIDVECTOROID, InvalidOid, GS_KEY_OIDVECTOR, 0, false},
	{ANYARRAYOID, InvalidOid, GS_KEY_ARRAY, 0, false},
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
