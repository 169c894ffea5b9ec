/*-------------------------------------------------------------------------
 *
 * text_key.h
 *	  The common part of collations' tables (libc_key.h, icu_key.h).
 *
 * A table is one block of memory without pointers, so processes share it, and a GPU has a copy.
 *
 * A device makes the keys of most texts.  A feeder finds out by a text's bytes whether it does, and how long
 * the key is at most: gs_text_key_bound().  The bound of a text is the sum of its characters' bounds, so a
 * byte of ASCII costs the feeder an addition.
 *
 * A key has levels.  A byte ends each level.  Behind the first level, counts stand for runs of the common
 * weight, as in ICU's sort keys.  A count goes down from the highest byte of a range if a greater weight
 * follows the run.  It goes up from the lowest byte if a lesser weight follows, or if the level ends.
 *
 * A GPU reads a text once to count the bytes of each level, and once more to write all levels.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TEXT_KEY_H
#define GS_TEXT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GS_TUPLE_INLINE static __host__ __device__ __forceinline__
#else
#define GS_TUPLE_INLINE static inline
#endif

/* The most levels of a key. */
#define GS_TEXT_LEVELS			4

/* The most bytes of a key.  A feeder cuts longer keys, and devices do not make them. */
#define GS_TEXT_KEY_MAX			8192

/* The most bytes that gs_icu_put() writes behind a key. */
#define GS_TEXT_SLACK			16

#define GS_TEXT_ASCII			128

/* Bytes that end a level and a key. */
#define GS_TEXT_LEVEL_END		0x01
#define GS_TEXT_KEY_END			0x00

/*
 * A character's bound: the most bytes that it adds to a key, times 16.  Flags:
 * FIRST and SECOND: a device may be unable to make the key of a text that has characters of both kinds;
 * TEXT: the key may end with the text; HARD: a device may be unable to make the key.
 */
#define GS_BOUND_BYTES			0x07ff
#define GS_BOUND_FIRST			0x0800
#define GS_BOUND_SECOND			0x1000
#define GS_BOUND_TEXT			0x4000
#define GS_BOUND_HARD			0x8000

/*
 * In GsTextTable.quick: a text must be looked at once more.  Bounds of other texts do not add up to it, if
 * these are in rows of GS_TUPLE_MAX_BYTES.
 */
#define GS_BOUND_WIDE			(1u << 24)

/* The greatest bound.  Characters that add more are HARD. */
#define GS_BOUND_MAX			(64 * 16)

typedef enum GsTextTableKind
{
	GS_TEXT_LIBC,
	GS_TEXT_ICU
} GsTextTableKind;

/* The first part of a table. */
typedef struct GsTextTable
{
	size_t		size;			/* bytes of the whole table */
	uint8_t		kind;			/* a GsTextTableKind */
	uint8_t		levels;			/* of keys */
	bool		for_devices;	/* bounds are set */
	uint16_t	max_bytes;		/* the most bytes of keys that devices make, without the text behind them */
	uint32_t	quick[256];		/* bounds of characters of one byte; with WIDE if they have flags other than
								 * SECOND.  It alone: the byte begins a longer character */
	uint16_t	narrow[256];	/* bounds of characters of one byte */
	uint16_t	wide[4096];		/* bounds of longer ones, by six bits of each of the first two bytes */

	/* Bit a of pairs[b]: a device may be unable to make the key of a text with "ab".  a is FIRST. */
	uint64_t	pairs[GS_TEXT_ASCII][2];
} GsTextTable;

/* The bytes of a key besides those of its characters: ends of levels, and a last run in each. */
#define GS_TEXT_KEY_ENDS		8

/* Are two characters a pair of the table's? */
GS_TUPLE_INLINE bool
gs_text_is_pair(const GsTextTable *table, uint32_t first, uint32_t second)
{
	return first < GS_TEXT_ASCII && second < GS_TEXT_ASCII &&
		((table->pairs[second][first >> 6] >> (first & 63)) & 1) != 0;
}

/* Where a character of several bytes has its bound. */
static inline uint32_t
gs_text_wide(uint8_t first, uint8_t second)
{
	return (first & 0x3fu) << 6 | (second & 0x3fu);
}

/* Adds to the bound of a character, or of all that share it: the greater one, and all flags. */
static inline void
gs_text_add_bound(GsTextTable *table, const uint8_t *character, size_t len, uint32_t bound)
{
	uint16_t   *at = len > 1 ? &table->wide[gs_text_wide(character[0], character[1])] :
		&table->narrow[character[0]];
	uint32_t	bytes = *at & GS_BOUND_BYTES;

	if (bytes < (bound & GS_BOUND_BYTES))
		bytes = bound & GS_BOUND_BYTES;
	*at = (uint16_t) (((*at | bound) & ~(uint32_t) GS_BOUND_BYTES) | bytes);
}

/* Once all bounds are set: devices may make keys.  utf8: no byte from 80 on is a character. */
static inline void
gs_text_offer(GsTextTable *table, bool utf8, uint16_t max_bytes)
{
	const uint32_t plain = GS_BOUND_BYTES | GS_BOUND_SECOND;

	for (uint32_t byte = 0; byte < 256; byte++)
	{
		uint32_t	bound = table->narrow[byte];

		if (utf8 && byte >= 0x80)
			table->quick[byte] = GS_BOUND_WIDE;
		else
			table->quick[byte] = (bound & ~plain) == 0 ? bound & GS_BOUND_BYTES : bound | GS_BOUND_WIDE;
	}
	table->for_devices = true;
	table->max_bytes = max_bytes;
}

/* The same as gs_text_key_bound(), of any text. */
static inline uint32_t
gs_text_key_bound_wide(const GsTextTable *table, const uint8_t *text, uint32_t len)
{
	uint32_t	sum = 0;
	uint32_t	flags = 0;
	uint8_t		last = 0;

	for (uint32_t at = 0; at < len;)
	{
		uint8_t		byte = text[at];
		uint32_t	bound = table->narrow[byte];

		if (gs_text_is_pair(table, last, byte))
			return 0;
		last = byte;
		if (table->quick[byte] != GS_BOUND_WIDE)
			at++;
		else if (at + 1 < len)
		{
			bound = table->wide[gs_text_wide(byte, text[at + 1])];
			at += byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
		}
		else
			return 0;
		sum += bound & GS_BOUND_BYTES;
		flags |= bound;
	}
	sum = sum / 16 + GS_TEXT_KEY_ENDS;
	if ((flags & GS_BOUND_HARD) != 0 || sum > table->max_bytes ||
		((flags & GS_BOUND_FIRST) != 0 && (flags & GS_BOUND_SECOND) != 0))
		return 0;
	return sum + (flags & GS_BOUND_TEXT ? len + 1 : 0);
}

/* The most bytes of a text's key, by a table for devices.  0: a device may be unable to make it. */
static inline uint32_t
gs_text_key_bound(const GsTextTable *table, const uint8_t *text, uint32_t len)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += table->quick[text[i]];
	if (sum >= GS_BOUND_WIDE)
		return gs_text_key_bound_wide(table, text, len);
	sum = sum / 16 + GS_TEXT_KEY_ENDS;
	return sum <= table->max_bytes ? (uint32_t) sum : 0;
}

/* Bytes that stand for runs of the common weight. */
typedef struct GsTextCounts
{
	uint8_t		low;
	uint8_t		high;
	uint8_t		max;			/* the longest run that one byte stands for */
} GsTextCounts;

/* A level of a key that is counted or written. */
typedef struct GsTextLevel
{
	uint8_t    *dst;
	uint32_t	room;			/* bytes behind these are counted, and not written */
	uint32_t	n;
	uint32_t	common;			/* common weights that are not in n */
} GsTextLevel;

GS_TUPLE_INLINE void
gs_text_level_byte(GsTextLevel *level, uint8_t byte)
{
	if (level->n < level->room)
		level->dst[level->n] = byte;
	level->n++;
}

/*
 * Writes the run of the common weight so far.  less: the next weight is less, or there is none.  The longer
 * of two runs comes first if the next weight is greater, and last if it is less.
 */
GS_TUPLE_INLINE void
gs_text_level_common(GsTextLevel *level, GsTextCounts counts, bool less)
{
	uint32_t	n = level->common;

	if (n == 0)
		return;
	level->common = 0;
	for (; n > counts.max; n -= counts.max)
		gs_text_level_byte(level, (uint8_t) (counts.low + counts.max - 1));
	gs_text_level_byte(level, (uint8_t) (less ? counts.low + n - 1 : counts.high - (n - 1)));
}

#endif							/* GS_TEXT_KEY_H */
