/*-------------------------------------------------------------------------
 *
 * key_value.h
 *	  Writing one value: the inside of key/.
 *
 * Inline code here writes values of a fixed width, and gs_key_put_varying() values of a varying width.
 * Arrays write their elements with both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_VALUE_H
#define GS_KEY_VALUE_H

#include "access/detoast.h"
#include "storage/itemptr.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "key/key.h"
#include "key/key_encode.h"

/* The widest fixed-width value that a column can have, in bytes. */
#define GS_KEY_VALUE_MAX	16

/* Describes the elements of an array, the bounds of a range, or the strings of jsonb. */
struct GsKeyElement
{
	struct TypeCacheEntry *range;	/* the range's type, else NULL */
	int16		typlen;
	bool		typbyval;
	char		typalign;
	GsKeyColumn column;			/* ascending, not last */
};

/* A composite type, and the fields of the value at hand. */
struct GsKeyRecord
{
	Oid			type;
	int32		typmod;
	TupleDesc	tupdesc;
	Datum	   *values;
	bool	   *isnull;
};

/* A varlena's contents, or their first bytes. */
typedef struct GsVarBytes
{
	const uint8 *data;
	uint32		len;
} GsVarBytes;

/*
 * key_value.c: writes a value of a varying width, at most room bytes of it, and sets *written to their
 * number.  Returns whether that was the whole value; if not, they are its first room bytes.  The encoding
 * is col's own, DESC included.  gs_key_put_fetched() is for ascending text that has been fetched.
 */
extern bool gs_key_put_varying(const GsKeyColumn *col, Datum value, uint8 *dst,
							   size_t room, size_t *written);

/* gs_key_put_varying() sets this, and returns false, if text under a libc or ICU collation has no key. */
extern bool gs_key_lacks_text;
extern bool gs_key_put_fetched(const GsKeyColumn *col, GsVarBytes text, uint8 *dst,
							   size_t room, size_t *written);

/*
 * key_array.c, key_range.c, key_jsonb.c: the same for values that contain other values, ascending.  They
 * call key_value.c for the inner values, which may contain others in turn.
 */
extern bool gs_key_put_array(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room,
							 size_t *written);
extern bool gs_key_put_range(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room,
							 size_t *written);
extern bool gs_key_put_jsonb(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room,
							 size_t *written);

/*
 * key_record.c: describes a composite type, in CurrentMemoryContext; NULL if its fields are not known.
 * gs_key_record_read() reads the fields of a value; false: the value is of another type.
 */
extern GsKeyRecord *gs_key_record_create(Oid type, int32 typmod);
extern bool gs_key_record_read(GsKeyRecord *record, Datum value, bool isnull);

/* key_enum.c: the order of the labels of a type. */
extern GsKeyLabels *gs_key_labels_create(Oid type);
extern float4 gs_key_label_order(GsKeyLabels *labels, Oid label);

/*
 * key_abbrev.c: the abbreviated keys of an operator class, in CurrentMemoryContext; NULL if it has none
 * that compare as unsigned integers.  gs_key_abbreviate() makes a key; false: the value has none.
 */
extern GsKeyAbbreviation *gs_key_abbreviation_create(Oid sort_operator, Oid opfamily, Oid opcintype,
													 Oid collation);
extern bool gs_key_abbreviate(GsKeyAbbreviation *abbreviation, Datum value, uint64 *key);

/*
 * key_icu.c: the collator of an ICU collation, which lives as long as the process; NULL if there is none.
 * rules are the collation's own, or NULL.  gs_key_put_icu() writes text like gs_key_put_varying(),
 * ascending.  Text that ends the key needs no end mark.  If the collation is deterministic, the text
 * follows its sort key.  *lacks is set, and false returned, if the text has no key.
 */
extern GsKeyCollator *gs_key_collator_open(Oid collation, const char *locale, const char *rules,
										   bool deterministic);
extern bool gs_key_collator_is_deterministic(const GsKeyCollator *collator);

/* The table by which devices make sort keys.  NULL: they make none. */
extern const struct GsTextTable *gs_key_collator_device_table(GsKeyCollator *collator);
extern bool gs_key_put_icu(GsKeyCollator *collator, GsVarBytes text, bool ends_key,
						   uint8 *dst, size_t room, size_t *written, bool *lacks);

/* Raises an error if a value is damaged. */
static inline void
gs_key_check_damage(bool good)
{
	if (unlikely(!good))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a value of a sort column is damaged")));
}

/*
 * Returns the length of a varlena's contents, wherever they are.  Raises an error if its header tells an
 * impossible length.
 */
static inline uint32
gs_var_length(const struct varlena *value)
{
	uint32		len;

	if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
		len = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	else
		len = VARSIZE_ANY_EXHDR(value);
	gs_key_check_damage(len <= MaxAllocSize);
	return len;
}

/*
 * Returns the first len bytes of a varlena's contents.  len is at most gs_var_length().  Returns fewer bytes
 * if a damaged header tells more than there are.
 */
static inline GsVarBytes
gs_var_bytes(struct varlena *value, uint32 len)
{
	GsVarBytes	bytes;

	if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
	{
		if (len < gs_var_length(value))
			value = detoast_attr_slice(value, 0, len);
		else
			value = detoast_attr(value);
	}
	bytes.data = (const uint8 *) VARDATA_ANY(value);
	bytes.len = Min(len, VARSIZE_ANY_EXHDR(value));
	return bytes;
}

/* A numeric's contents, header and weight checked. */
extern GsVarBytes gs_numeric_contents(struct varlena *value);

/* Does the column's encoding contain all bytes of the value, so that it is never shorter? */
static inline bool
gs_key_is_plain(const GsKeyColumn *col)
{
	return col->kind == GS_KEY_BYTEA ||
		(col->kind == GS_KEY_TEXT && col->collator == NULL && col->libc == NULL);
}

/* Adds len bytes at *at, or as many as fit before end.  Returns whether all did. */
static inline bool
gs_key_append(uint8 **at, const uint8 *end, const uint8 *bytes, size_t len)
{
	size_t		n = Min(len, (size_t) (end - *at));

	gs_key_copy(*at, bytes, n);
	*at += n;
	return n == len;
}

/*
 * Write a value of a fixed width: col->width bytes.
 */
static pg_attribute_always_inline void
gs_key_put_fixed(const GsKeyColumn *col, Datum value, uint8 *dst)
{
	switch (col->kind)
	{
		case GS_KEY_BOOL:
			gs_key_put_bool(dst, DatumGetBool(value));
			break;
		case GS_KEY_UINT8:
			gs_key_put_uint8(dst, DatumGetUInt8(value));
			break;
		case GS_KEY_INT16:
			gs_key_put_int16(dst, DatumGetInt16(value));
			break;
		case GS_KEY_INT32:
			gs_key_put_int32(dst, DatumGetInt32(value));
			break;
		case GS_KEY_INT64:
			gs_key_put_int64(dst, DatumGetInt64(value));
			break;
		case GS_KEY_UINT32:
			gs_key_put_uint32(dst, DatumGetUInt32(value));
			break;
		case GS_KEY_UINT64:
			gs_key_put_uint64(dst, (uint64) DatumGetInt64(value));
			break;
		case GS_KEY_FLOAT4:
			gs_key_put_float4(dst, DatumGetFloat4(value));
			break;
		case GS_KEY_FLOAT8:
			gs_key_put_float8(dst, DatumGetFloat8(value));
			break;
		case GS_KEY_TIMETZ:
			{
				const TimeTzADT *time = DatumGetTimeTzADTP(value);

				gs_key_put_int64(dst, time->time + time->zone * USECS_PER_SEC);
				gs_key_put_int32(dst + sizeof(int64), time->zone);
				break;
			}
		case GS_KEY_INTERVAL:
			{
				const Interval *span = DatumGetIntervalP(value);

				gs_key_put_span(dst, span->month * INT64CONST(30) + span->day, span->time);
				break;
			}
		case GS_KEY_RAW:
			memcpy(dst, DatumGetPointer(value), col->width);
			break;
		case GS_KEY_TID:
			{
				const ItemPointerData *tid = (ItemPointer) DatumGetPointer(value);

				gs_key_put_uint32(dst, ItemPointerGetBlockNumberNoCheck(tid));
				gs_key_put_uint16(dst + sizeof(uint32), ItemPointerGetOffsetNumberNoCheck(tid));
				break;
			}
		case GS_KEY_ENUM:
			gs_key_put_float4(dst, gs_key_label_order(col->labels, DatumGetObjectId(value)));
			break;
		case GS_KEY_TEXT:
		case GS_KEY_BPCHAR:
		case GS_KEY_NAME:
		case GS_KEY_BYTEA:
		case GS_KEY_NUMERIC:
		case GS_KEY_INET:
		case GS_KEY_BITS:
		case GS_KEY_OIDVECTOR:
		case GS_KEY_ARRAY:
		case GS_KEY_RANGE:
		case GS_KEY_JSONB:
		case GS_KEY_RECORD:
		case GS_KEY_ABBREVIATED:
			Assert(false);
			break;
	}
	if (col->desc)
		gs_key_complement(dst, col->width);
}

/*
 * Add a value at *at, or as much of it as fits before end.  Returns whether all did.
 */
static inline bool
gs_key_put_value(const GsKeyColumn *col, Datum value, uint8 **at, const uint8 *end)
{
	size_t		room = end - *at;
	size_t		written;
	bool		all;

	if (col->width == 0)
	{
		all = gs_key_put_varying(col, value, *at, room, &written);
		*at += written;
		return all;
	}
	if (room < col->width)
	{
		uint8		whole[GS_KEY_VALUE_MAX];

		gs_key_put_fixed(col, value, whole);
		return gs_key_append(at, end, whole, col->width);
	}
	gs_key_put_fixed(col, value, *at);
	*at += col->width;
	return true;
}

#endif							/* GS_KEY_VALUE_H */
