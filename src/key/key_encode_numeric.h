/*-------------------------------------------------------------------------
 *
 * key_encode_numeric.h
 *	  numeric, as PostgreSQL stores it, to bytes of the values' order.
 *
 * The stored value, behind the varlena header, in the machine's byte order:
 *
 *		uint16 header				1100... special: NaN, Infinity, -Infinity
 *									10sd dddd dWww wwww short: sign, display
 *									scale, weight in two's complement
 *									0sdd dddd dddd dddd long: sign, display
 *									scale
 *		int16 weight				of the long form only
 *		int16 digits[]				base 10000, the first one times
 *									10000^weight
 *
 * The first and the last digit are not zero, but nothing here relies on that.  The display scale does not
 * matter to the order: 1.0 = 1.00.
 *
 * The bytes written, ascending:
 *
 *		80							zero
 *		82 .. fc					weight -61 .. 61, then the digits
 *		81, fd						int32 weight beyond those, then the digits
 *		fe							infinity
 *		ff							NaN, above all else
 *
 * A digit takes two bytes: it is doubled, and 1 is added if another digit follows.  So the digits end at
 * the first even one, and no encoding is a prefix of another.  If a value ends where another one goes on,
 * it is the smaller one.  A negative value is its magnitude's bytes complemented, from 7e down to 01 for
 * -infinity.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_ENCODE_NUMERIC_H
#define GS_KEY_ENCODE_NUMERIC_H

#include "key/key_encode.h"

/* Stored headers. */
#define GS_NUMERIC_FORM		0xc000
#define GS_NUMERIC_NEGATIVE	0x4000	/* long form's sign */
#define GS_NUMERIC_SHORT	0x8000
#define GS_NUMERIC_SPECIAL	0xc000
#define GS_NUMERIC_SPECIAL_MASK	0xf000
#define GS_NUMERIC_INFINITY	0xd000
#define GS_NUMERIC_NEGATIVE_INFINITY 0xf000
#define GS_NUMERIC_SHORT_NEGATIVE 0x2000
#define GS_NUMERIC_SHORT_WEIGHT_SIGN 0x0040
#define GS_NUMERIC_SHORT_WEIGHT 0x003f

/* First bytes that are written. */
#define GS_KEY_NUMERIC_ZERO	0x80
#define GS_KEY_NUMERIC_SMALL 0x81
#define GS_KEY_NUMERIC_LARGE 0xfd
#define GS_KEY_NUMERIC_INFINITY 0xfe
#define GS_KEY_NUMERIC_NAN	0xff
#define GS_KEY_NUMERIC_WEIGHT 61	/* largest that fits into the first byte */

static inline uint16_t
gs_key_numeric_digit(const uint8_t *digits, size_t i)
{
	uint16_t	digit;

	memcpy(&digit, digits + 2 * i, sizeof(digit));
	return digit;
}

/*
 * Writes a stored value of len bytes, at most room bytes of it, like the variable-length encoders of
 * key_encode.h.
 */
static inline bool
gs_key_put_numeric(uint8_t *dst, size_t room, const uint8_t *src, size_t len,
				   size_t *written)
{
	uint8_t		head[1 + sizeof(int32_t)];
	size_t		head_len = 1;
	uint16_t	header;
	uint16_t	flip;
	int32_t		weight = 0;
	size_t		n,
				n_whole,
				used;
	bool		negative = false;

	memcpy(&header, src, sizeof(header));
	src += sizeof(header);
	len -= sizeof(header);
	n = 0;
	if ((header & GS_NUMERIC_FORM) == GS_NUMERIC_SPECIAL)
	{
		header &= GS_NUMERIC_SPECIAL_MASK;
		negative = header == GS_NUMERIC_NEGATIVE_INFINITY;
		head[0] = negative || header == GS_NUMERIC_INFINITY ? GS_KEY_NUMERIC_INFINITY :
			GS_KEY_NUMERIC_NAN;
	}
	else
	{
		if (header & GS_NUMERIC_SHORT)
		{
			negative = (header & GS_NUMERIC_SHORT_NEGATIVE) != 0;
			weight = header & GS_NUMERIC_SHORT_WEIGHT;
			if (header & GS_NUMERIC_SHORT_WEIGHT_SIGN)
				weight -= GS_NUMERIC_SHORT_WEIGHT + 1;
		}
		else
		{
			int16_t		stored;

			negative = (header & GS_NUMERIC_NEGATIVE) != 0;
			memcpy(&stored, src, sizeof(stored));
			weight = stored;
			src += sizeof(stored);
			len -= sizeof(stored);
		}

		n = len / 2;
		while (n > 0 && gs_key_numeric_digit(src, 0) == 0)
		{
			src += 2;
			weight--;
			n--;
		}
		while (n > 0 && gs_key_numeric_digit(src, n - 1) == 0)
			n--;

		if (n == 0)
		{
			negative = false;
			head[0] = GS_KEY_NUMERIC_ZERO;
		}
		else if (weight >= -GS_KEY_NUMERIC_WEIGHT && weight <= GS_KEY_NUMERIC_WEIGHT)
			head[0] = (uint8_t) (GS_KEY_NUMERIC_SMALL + 1 + GS_KEY_NUMERIC_WEIGHT + weight);
		else
		{
			head[0] = weight < 0 ? GS_KEY_NUMERIC_SMALL : GS_KEY_NUMERIC_LARGE;
			gs_key_put_int32(head + 1, weight);
			head_len += sizeof(int32_t);
		}
	}

	flip = negative ? 0xffff : 0;
	if (negative)
		gs_key_complement(head, head_len);
	if (head_len > room)
	{
		gs_key_copy(dst, head, room);
		*written = room;
		return false;
	}
	gs_key_copy(dst, head, head_len);

	/* digits whose two bytes fit, then perhaps the first byte of one more */
	used = head_len;
	n_whole = n <= (room - used) / 2 ? n : (room - used) / 2;
	for (size_t i = 0; i < n_whole; i++)
	{
		uint16_t	digit = (uint16_t) (2 * gs_key_numeric_digit(src, i) + (i + 1 < n));

		gs_key_put_uint16(dst + used, digit ^ flip);
		used += 2;
	}
	if (n_whole < n && used < room)
	{
		uint16_t	digit = (uint16_t) (2 * gs_key_numeric_digit(src, n_whole));

		dst[used++] = (uint8_t) ((digit ^ flip) >> 8);
	}
	*written = used;
	return n_whole == n;
}

#endif							/* GS_KEY_ENCODE_NUMERIC_H */
