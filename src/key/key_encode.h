/*-------------------------------------------------------------------------
 *
 * key_encode.h
 *	  Values to bytes whose memcmp order is the values' order.
 *
 * Every encoder writes the ascending form of one value.  For a descending column, gs_key_complement()
 * complements the bytes afterwards, which reverses the order byte by byte.  No encoding is a prefix of
 * another one of its column, as widths are fixed or a terminator follows.  So the complement reverses the
 * order of whole values, too.
 *
 * For the same reason columns are written one after the other: the first byte in which two keys differ is
 * in the same column of both.
 *
 *	  integers	big-endian, the sign bit flipped
 *	  floats	the IEEE bits big-endian; negative values complemented,
 *				others with the sign bit set.  -0 is written as +0, and every
 *				NaN as one quiet NaN, which comes out above +infinity
 *	  text		its bytes, then 0; smaller than any byte a text may hold
 *	  bytea		each byte 0 becomes 00 01, the end is 00 00.  A value that
 *				ends where another goes on has 00 00 there against 00 01 or a
 *				byte > 0, and so comes first
 *	  bits		the bytes as for bytea, then how many bits of the last one
 *				count
 *	  inet		family, network with zeroes behind it, number of the network's bits, then the
 *				address's bits behind the network
 *	  numeric	see key_encode_numeric.h
 *
 * The variable-length encoders write at most the room left: exactly the first bytes of the whole encoding.
 * So a key cut short is a prefix of the true one.  It may tie, but is never in a wrong order.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_ENCODE_H
#define GS_KEY_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/*
 * The null byte that stands before every column's value.  It is never
 * complemented: NULLS FIRST and LAST are independent of ASC and DESC.
 */
static inline uint8_t
gs_key_null_byte(bool isnull, bool nulls_first)
{
	return (uint8_t) (isnull != nulls_first);
}

/* Turn an ascending encoding into a descending one, or back. */
static inline void
gs_key_complement(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t) ~bytes[i];
}

/*
 * Unsigned integers, big-endian.
 */
static inline void
gs_key_put_uint8(uint8_t *dst, uint8_t value)
{
	dst[0] = value;
}

static inline void
gs_key_put_uint16(uint8_t *dst, uint16_t value)
{
	dst[0] = (uint8_t) (value >> 8);
	dst[1] = (uint8_t) value;
}

static inline void
gs_key_put_uint32(uint8_t *dst, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	memcpy(dst, &value, sizeof(value));
}

static inline void
gs_key_put_uint64(uint8_t *dst, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	memcpy(dst, &value, sizeof(value));
}

/* The low five bytes of a value below 2^40. */
static inline void
gs_key_put_uint40(uint8_t *dst, uint64_t value)
{
	dst[0] = (uint8_t) (value >> 32);
	gs_key_put_uint32(dst + 1, (uint32_t) value);
}

static inline void
gs_key_put_bool(uint8_t *dst, bool value)
{
	dst[0] = value ? 1 : 0;
}

/*
 * Signed integers.
 */
static inline void
gs_key_put_int16(uint8_t *dst, int16_t value)
{
	gs_key_put_uint16(dst, (uint16_t) ((uint16_t) value ^ UINT16_C(0x8000)));
}

static inline void
gs_key_put_int32(uint8_t *dst, int32_t value)
{
	gs_key_put_uint32(dst, (uint32_t) value ^ UINT32_C(0x80000000));
}

static inline void
gs_key_put_int64(uint8_t *dst, int64_t value)
{
	gs_key_put_uint64(dst, (uint64_t) value ^ UINT64_C(0x8000000000000000));
}

/* Floats.  The tests look at bits, so no compiler option for fast floating point can remove them. */
static inline void
gs_key_put_float4(uint8_t *dst, float value)
{
	uint32_t	bits;
	uint32_t	magnitude;

	memcpy(&bits, &value, sizeof(bits));
	magnitude = bits & UINT32_C(0x7fffffff);
	if (magnitude > UINT32_C(0x7f800000))
		bits = UINT32_C(0x7fc00000);
	else if (magnitude == 0)
		bits = 0;

	if (bits & UINT32_C(0x80000000))
		bits = ~bits;
	else
		bits |= UINT32_C(0x80000000);
	gs_key_put_uint32(dst, bits);
}

static inline void
gs_key_put_float8(uint8_t *dst, double value)
{
	uint64_t	bits;
	uint64_t	magnitude;

	memcpy(&bits, &value, sizeof(bits));
	magnitude = bits & UINT64_C(0x7fffffffffffffff);
	if (magnitude > UINT64_C(0x7ff0000000000000))
		bits = UINT64_C(0x7ff8000000000000);
	else if (magnitude == 0)
		bits = 0;

	if (bits & UINT64_C(0x8000000000000000))
		bits = ~bits;
	else
		bits |= UINT64_C(0x8000000000000000);
	gs_key_put_uint64(dst, bits);
}

/*
 * A span of time in days and microseconds of any sign, ordered by days * 86400000000 + usecs.  Whole days
 * of the microseconds are carried over to the days.  That makes the pair unique for its sum, without
 * 128-bit arithmetic.  The days must be less than 2^38 in magnitude.
 */
#define GS_KEY_SPAN_BYTES 10

static inline void
gs_key_put_span(uint8_t *dst, int64_t days, int64_t usecs)
{
	const int64_t usecs_per_day = INT64_C(86400000000);

	days += usecs / usecs_per_day;
	usecs %= usecs_per_day;
	if (usecs < 0)
	{
		usecs += usecs_per_day;
		days--;
	}
	gs_key_put_uint40(dst, (uint64_t) (days + (INT64_C(1) << 39)));
	gs_key_put_uint40(dst + 5, (uint64_t) usecs);
}

/*
 * Variable-length values.  Each encoder writes at most room bytes, sets *written to their number, and
 * returns whether that was the whole encoding.
 */

/*
 * A memcpy() for short pieces.  If gcc can prove that a length is less than 8 kB, as all lengths here are,
 * it replaces memcpy() by "rep movs".  To start that costs more than copying a short value.
 */
static inline void
gs_key_copy(uint8_t *dst, const uint8_t *src, size_t len)
{
	if (len <= 16)
	{
		if (len >= 8)
		{
			uint64_t	head,
						tail;

			memcpy(&head, src, 8);
			memcpy(&tail, src + len - 8, 8);
			memcpy(dst, &head, 8);
			memcpy(dst + len - 8, &tail, 8);
		}
		else
			for (size_t i = 0; i < len; i++)
				dst[i] = src[i];
		return;
	}
#if defined(__GNUC__)
	__asm__("" : "+r"(len));
#endif
	memcpy(dst, src, len);
}

/*
 * Bytes as they are, NUL included, without an end mark.  Only for the last column of a key, ascending:
 * there the key's length is the end.
 */
static inline bool
gs_key_put_bytes(uint8_t *dst, size_t room, const uint8_t *src, size_t len,
				 size_t *written)
{
	size_t		n = len < room ? len : room;

	gs_key_copy(dst, src, n);
	*written = n;
	return n == len;
}

/* Bytes without NUL, and then a NUL. */
static inline bool
gs_key_put_text(uint8_t *dst, size_t room, const uint8_t *src, size_t len,
				size_t *written)
{
	if (!gs_key_put_bytes(dst, room, src, len, written) || len == room)
		return false;
	dst[len] = 0;
	*written = len + 1;
	return true;
}

/* Bytes that may contain NUL: escaped and ended as described above. */
static inline bool
gs_key_put_escaped(uint8_t *dst, size_t room, const uint8_t *src, size_t len,
				   size_t *written)
{
	size_t		used = 0;

	for (;;)
	{
		const uint8_t *nul = len > 0 ? (const uint8_t *) memchr(src, 0, len) : NULL;
		size_t		run = nul != NULL ? (size_t) (nul - src) : len;

		if (run > room - used)
		{
			gs_key_copy(dst + used, src, room - used);
			*written = room;
			return false;
		}
		if (run > 0)
			gs_key_copy(dst + used, src, run);
		used += run;

		/* 00, then 01 for a NUL of the value and 00 for its end */
		if (used < room)
			dst[used] = 0;
		if (used + 1 < room)
			dst[used + 1] = nul != NULL ? 1 : 0;
		if (nul == NULL || used + 2 > room)
		{
			*written = used + 2 < room ? used + 2 : room;
			return used + 2 <= room;
		}
		used += 2;
		src += run + 1;
		len -= run + 1;
	}
}

/*
 * A string of bits, whose last byte is filled up with zeroes: the bytes, then how many bits of the last
 * byte count.  If the bytes are equal, the lengths differ in the last byte alone.
 */
static inline bool
gs_key_put_bits(uint8_t *dst, size_t room, const uint8_t *src, size_t n_bits,
				size_t *written)
{
	if (!gs_key_put_escaped(dst, room, src, (n_bits + 7) / 8, written) || *written == room)
		return false;
	dst[(*written)++] = (uint8_t) ((n_bits + 7) % 8);
	return true;
}

/*
 * A network address: family, n_bits of network in address_len bytes.  Returns the bytes written, at most
 * GS_KEY_INET_MAX.
 *
 * Addresses are ordered by family, by the bits of the network that both have, by the length of the network,
 * and by all other bits.  With zeroes behind the network, the shorter network comes first if only the
 * length decides.
 */
#define GS_KEY_INET_MAX		34

static inline size_t
gs_key_put_inet(uint8_t *dst, uint8_t family, uint8_t n_bits, const uint8_t *address,
				size_t address_len)
{
	size_t		whole = n_bits / 8;

	dst[0] = family;
	memcpy(dst + 1, address, whole);
	memset(dst + 1 + whole, 0, address_len - whole);
	if (whole < address_len)
		dst[1 + whole] = (uint8_t) (address[whole] & ~(0xff >> n_bits % 8));
	dst[1 + address_len] = n_bits;
	memcpy(dst + 2 + address_len, address + whole, address_len - whole);
	return 2 + address_len + address_len - whole;
}

/* Bytes of an address, by its family.  PostgreSQL's number for IPv4 is the system's. */
static inline size_t
gs_key_inet_address_len(uint8_t family)
{
	return family == AF_INET ? 4 : 16;
}

#endif							/* GS_KEY_ENCODE_H */
