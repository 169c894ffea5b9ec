/*-------------------------------------------------------------------------
 *
 * text_key.h
 *	  The common part of collations' tables (libc_key.h, icu_key.h).
 *
 * A table is one block of memory without pointers, so processes share it, and a GPU has a copy.
 *
 * A device makes the keys of most texts.  A feeder finds out by a text's bytes whether it does, and how long
 * the key is at most: gs_text_key_bound().  The bound of a text is at least the sum of its characters'
 * bounds.  It may be greater, because text_bound.c counts printable ASCII by class, 16 characters at once.
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

/* The greatest bound.  Characters that add more are HARD. */
#define GS_BOUND_MAX			(64 * 16)

typedef enum GsTextTableKind
{
	GS_TEXT_LIBC,
	GS_TEXT_ICU
} GsTextTableKind;

/* Classes of printable ASCII whose bounds are about the same in most tables. */
typedef enum GsTextClass
{
	GS_TEXT_SMALL,				/* letters and digits */
	GS_TEXT_CAPITAL,
	GS_TEXT_SIGN,				/* all others */
	GS_TEXT_CLASSES
} GsTextClass;

/* The first part of a table. */
typedef struct GsTextTable
{
	size_t		size;			/* bytes of the whole table */
	uint8_t		kind;			/* a GsTextTableKind */
	uint8_t		levels;			/* of keys */
	bool		for_devices;	/* bounds are set */
	bool		utf8;			/* no byte from 80 on is a character */
	bool		plain;			/* classes are set: printable ASCII has no flags but SECOND, and no pairs */
	uint16_t	max_bytes;		/* the most bytes of keys that devices make, without the text behind them */
	uint16_t	classes[GS_TEXT_CLASSES];	/* the greatest bound of printable ASCII in each class */
	uint16_t	narrow[256];	/* bounds of characters of one byte */
	uint16_t	wide[4096];		/* bounds of longer ones, by six bits of each of the first two bytes */

	/* Bit a of pairs[b]: a device may be unable to make the key of a text with "ab".  a is FIRST. */
	uint64_t	pairs[GS_TEXT_ASCII][2];
} GsTextTable;

/* The most bytes of a key besides its characters' weights: for each level its end, and a last count. */
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

#ifdef __cplusplus
extern "C"
{
#endif

/* Adds to the bound of a character, or of all that share it: the greater one, and all flags. */
extern void gs_text_add_bound(GsTextTable *table, const uint8_t *character, size_t len, uint32_t bound);

/* Once all bounds are set: devices may make keys. */
extern void gs_text_offer(GsTextTable *table, bool utf8, uint16_t max_bytes);

/*
 * The most bytes of a text's key, by a table for devices.  len is at most GS_TUPLE_MAX_BYTES.
 * 0: a device may be unable to make the key.  Up to 15 bytes behind the text may be read, in the same page
 * of memory; the result does not depend on them.
 */
extern uint32_t gs_text_key_bound(const GsTextTable *table, const uint8_t *text, uint32_t len);

#ifdef __cplusplus
}
#endif

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
