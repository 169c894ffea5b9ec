/*-------------------------------------------------------------------------
 *
 * key_write.c
 *	  Writing one tuple's key: the way every row takes.
 *
 * Keys of a fixed width have a function of their own.  It checks the room once, as such keys are never cut.
 *
 * A key is cut at GS_KEY_MAX and nowhere else, and then is exactly the first GS_KEY_MAX bytes of the whole
 * key.  So a cut key ties with another only if both agree up to there, and is in the right order with all
 * other keys.  If the room ends before GS_KEY_MAX, the key is given up, as the caller has a larger buffer.
 *
 * A value that is not in line is not fetched if its length alone shows that the room is too small.
 *
 * Tests: regress/keys, regress/keys_libc_behind
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_value.h"

/* Writes columns of a fixed width.  Zeroes stand for a NULL. */
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
			gs_key_put_fixed(col, values[at], dst);
		dst += col->width;
	}
	return desc->fixed_width;
}

/* Writes any columns. */
static uint32
write_general(const GsKeyDesc *desc, const Datum *row_values, const bool *row_isnull,
			  uint8 *dst, uint32 capacity, bool *inexact)
{
	uint8	   *start = dst;
	uint8	   *end = dst + Min(capacity, GS_KEY_MAX);

	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		const Datum *values = col->parent ? col->parent->values : row_values;
		const bool *isnull = col->parent ? col->parent->isnull : row_isnull;
		int			at = col->attno - 1;

		if (dst == end)
			goto full;
		*dst++ = gs_key_null_byte(isnull[at], col->nulls_first);
		if (unlikely(col->record != NULL))
		{
			if (!gs_key_record_read(col->record, values[at], isnull[at]))
				return GS_KEY_NONE;
			continue;
		}
		if (isnull[at])
			continue;

		if (unlikely(col->kind == GS_KEY_ABBREVIATED))
		{
			uint64		key;
			uint8		whole[sizeof(key)];

			if (!gs_key_abbreviate(col->abbreviation, values[at], &key))
				return GS_KEY_NONE;
			gs_key_put_uint64(whole, key);
			if (col->desc)
				gs_key_complement(whole, sizeof(key));
			if (!gs_key_append(&dst, end, whole, sizeof(key)))
				goto full;
			*inexact = true;
			return dst - start;
		}

		/* do not fetch a value whose key is given up anyway */
		if (gs_key_is_plain(col) && capacity < GS_KEY_MAX &&
			gs_var_length((struct varlena *) DatumGetPointer(values[at])) > end - dst)
			return GS_KEY_NO_ROOM;
		if (!gs_key_put_value(col, values[at], &dst, end))
			goto full;
	}
	return dst - start;

full:
	if (unlikely(gs_key_lacks_text))
	{
		gs_key_lacks_text = false;
		return GS_KEY_NONE;
	}
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
	*inexact = desc->ended;
	if (desc->fixed_width > 0)
		return write_fixed(desc, values, isnull, dst, capacity);
	return write_general(desc, values, isnull, dst, capacity, inexact);
}
