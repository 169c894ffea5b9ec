/*-------------------------------------------------------------------------
 *
 * key_write.c
 *	  Writing one tuple's key: the way every row takes.
 *
 * Three ways, chosen once by gs_key_desc_create: keys of a fixed width, one
 * ascending text or bytea column, and everything else.  The first two check
 * the room once and hold no loop over columns that could stop in the middle;
 * with the third they share the encoders.
 *
 * A key is cut at GS_KEY_MAX, never elsewhere, and what is cut is exactly
 * the first GS_KEY_MAX bytes of the whole key.  That makes a cut key tie with
 * another only where both go on equally that far, and order rightly against
 * all others.  Where the room ends before GS_KEY_MAX the key is given up
 * instead: the caller has a larger buffer.
 *
 * Values in line are read where they are, with either length of header.
 * For others the length is known before they are fetched, so that what
 * cannot fit is not fetched at all, or only the slice that fits.  Of a bpchar
 * the whole value is needed: its end is where the trailing blanks begin.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "key/key.h"
#include "key/key_encode.h"

/* The widest fixed-width value that a column can have, in bytes. */
#define FIXED_VALUE_MAX		16

/* A varlena's contents, or their first bytes. */
typedef struct VarBytes
{
	const uint8 *data;
	uint32		len;
} VarBytes;

/*
 * Length of a varlena's contents, wherever they are.
 */
static inline uint32
var_length(const struct varlena *value)
{
	if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
		return toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	return VARSIZE_ANY_EXHDR(value);
}

/*
 * The first len bytes of a varlena's contents, where len is no more than
 * there are.
 */
static inline VarBytes
var_bytes(struct varlena *value, uint32 len)
{
	VarBytes	bytes;

	if (unlikely(VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value)))
	{
		if (len < var_length(value))
			value = detoast_attr_slice(value, 0, len);
		else
			value = detoast_attr(value);
	}
	Assert(VARSIZE_ANY_EXHDR(value) >= len);
	bytes.data = (const uint8 *) VARDATA_ANY(value);
	bytes.len = len;
	return bytes;
}

/*
 * The part of a bpchar that counts.
 */
static VarBytes
bpchar_bytes(struct varlena *value)
{
	VarBytes	bytes = var_bytes(value, var_length(value));

	while (bytes.len > 0 && bytes.data[bytes.len - 1] == ' ')
		bytes.len--;
	return bytes;
}

/*
 * Write a value of a fixed width: col->width bytes.
 */
static inline void
put_fixed(const GsKeyColumn *col, Datum value, uint8 *dst)
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
		case GS_KEY_TEXT:
		case GS_KEY_BPCHAR:
		case GS_KEY_BYTEA:
			Assert(false);
			break;
	}
	if (col->desc)
		gs_key_complement(dst, col->width);
}

/*
 * Write a value of a varying width, at most room bytes of it.  Returns
 * whether that was all.
 *
 * No encoding is shorter than its value, so bytes of the value beyond the room
 * have no part in what is written.
 */
static bool
put_varying(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room,
			size_t *written)
{
	struct varlena *var = (struct varlena *) DatumGetPointer(value);
	VarBytes	bytes;
	bool		cut = false;
	bool		all;

	if (col->kind == GS_KEY_BPCHAR)
		bytes = bpchar_bytes(var);
	else
	{
		uint32		len = var_length(var);

		cut = len > room;
		bytes = var_bytes(var, cut ? room : len);
	}

	if (col->last && !col->desc)
		all = gs_key_put_bytes(dst, room, bytes.data, bytes.len, written);
	else if (col->kind == GS_KEY_BYTEA)
		all = gs_key_put_escaped(dst, room, bytes.data, bytes.len, written);
	else
		all = gs_key_put_text(dst, room, bytes.data, bytes.len, written);
	if (col->desc)
		gs_key_complement(dst, *written);
	return all && !cut;
}

/*
 * All columns of a fixed width; NULLs are filled up with zeroes.
 */
static inline uint32
write_fixed(const GsKeyDesc *desc, const Datum *values, const bool *isnull,
			uint8 *dst, uint32 capacity)
{
	if (capacity < desc->fixed_width)
		return GS_KEY_NO_ROOM;

	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			at = col->attno - 1;

		*dst++ = gs_key_null_byte(isnull[at], col->nulls_first);
		if (isnull[at])
			memset(dst, 0, col->width);
		else
			put_fixed(col, values[at], dst);
		dst += col->width;
	}
	return desc->fixed_width;
}

/*
 * One ascending text or bytea column: its bytes behind the null byte.
 */
static inline uint32
write_bytes(const GsKeyColumn *col, Datum value, bool isnull, uint8 *dst,
			uint32 capacity, bool *inexact)
{
	struct varlena *var;
	uint32		len;

	if (unlikely(capacity == 0))
		return GS_KEY_NO_ROOM;
	dst[0] = gs_key_null_byte(isnull, col->nulls_first);
	if (isnull)
		return 1;

	var = (struct varlena *) DatumGetPointer(value);
	len = var_length(var);
	if (unlikely(len >= Min(capacity, GS_KEY_MAX)))
	{
		if (capacity < GS_KEY_MAX)
			return GS_KEY_NO_ROOM;
		*inexact = true;
		len = GS_KEY_MAX - 1;
	}
	gs_key_copy(dst + 1, (const uint8 *) var_bytes(var, len).data, len);
	return 1 + len;
}

/*
 * Any columns.
 */
static uint32
write_general(const GsKeyDesc *desc, const Datum *values, const bool *isnull,
			  uint8 *dst, uint32 capacity, bool *inexact)
{
	uint8	   *start = dst;
	uint8	   *end = dst + Min(capacity, GS_KEY_MAX);

	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		int			at = col->attno - 1;

		if (dst == end)
			goto full;
		*dst++ = gs_key_null_byte(isnull[at], col->nulls_first);
		if (isnull[at])
			continue;

		if (col->width > 0)
		{
			size_t		room = end - dst;

			if (likely(room >= col->width))
			{
				put_fixed(col, values[at], dst);
				dst += col->width;
			}
			else
			{
				uint8		whole[FIXED_VALUE_MAX];

				Assert(col->width <= FIXED_VALUE_MAX);
				put_fixed(col, values[at], whole);
				gs_key_copy(dst, (const uint8 *) whole, room);
				dst = end;
				goto full;
			}
		}
		else
		{
			size_t		written;
			bool		all;

			/* spare the fetching of what is given up anyway */
			if (capacity < GS_KEY_MAX && col->kind != GS_KEY_BPCHAR &&
				var_length((struct varlena *) DatumGetPointer(values[at])) > end - dst)
				return GS_KEY_NO_ROOM;

			all = put_varying(col, values[at], dst, end - dst, &written);
			dst += written;
			if (!all)
				goto full;
		}
	}
	return dst - start;

full:
	if (capacity < GS_KEY_MAX)
		return GS_KEY_NO_ROOM;
	Assert(dst == end);
	*inexact = true;
	return GS_KEY_MAX;
}

uint32
gs_key_write(const GsKeyDesc *desc, const Datum *values, const bool *isnull,
			 uint8 *dst, uint32 capacity, bool *inexact)
{
	*inexact = false;
	switch (desc->shape)
	{
		case GS_KEY_SHAPE_FIXED:
			return write_fixed(desc, values, isnull, dst, capacity);
		case GS_KEY_SHAPE_BYTES:
			{
				int			at = desc->cols[0].attno - 1;

				return write_bytes(&desc->cols[0], values[at], isnull[at], dst,
								   capacity, inexact);
			}
		case GS_KEY_SHAPE_GENERAL:
			break;
	}
	return write_general(desc, values, isnull, dst, capacity, inexact);
}
