/*-------------------------------------------------------------------------
 *
 * text_bound.c
 *	  The most bytes of a text's key (text_key.h).
 *
 * Feeders ask this of each text, so texts of printable ASCII are read 16 bytes at once.  Their characters
 * fall into three classes.  Vector comparisons find the characters of a class, and lanes count them.  The
 * bound of a class is that of its greatest character: in glibc's and ICU's tables nearly all have it.
 * Other texts are read character by character.
 *
 * Tests: unit/plain/test_key_libc, unit/plain/test_key_icu, unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "device/text_key.h"

#define LANES		16

/* Longer texts might overflow a lane's count. */
#define MAX_PLAIN	(LANES * 127)

/* No page of memory is smaller. */
#define MEMORY_PAGE	4096

/* The vectors of GCC and clang.  A comparison sets a lane to -1 where it holds, and to 0 elsewhere. */
typedef int8_t Lanes __attribute__((vector_size(LANES)));
typedef uint64_t Halves __attribute__((vector_size(LANES)));

/* From &first_lanes[LANES - n] on: the first n lanes are set. */
static const int8_t first_lanes[2 * LANES] = {
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
};

typedef struct Counts
{
	Lanes		small;
	Lanes		capital;
	Lanes		other;			/* a lane is not 0: there is a character that is not printable ASCII */
} Counts;

/* Counts the characters in the lanes that are set in counted. */
static inline void
count_lanes(Counts *counts, Lanes lanes, Lanes counted)
{
	Lanes		small = ((lanes >= 'a') & (lanes <= 'z')) | ((lanes >= '0') & (lanes <= '9'));
	Lanes		capital = (lanes >= 'A') & (lanes <= 'Z');

	counts->small -= small & counted;
	counts->capital -= capital & counted;
	counts->other |= ((lanes < ' ') | (lanes > '~')) & counted;
}

/* Reads up to LANES bytes.  Other lanes have any value. */
__attribute__((no_sanitize_address)) static inline Lanes
read_lanes(const uint8_t *text, uint32_t n)
{
	Lanes		lanes = {0};

	/* bytes behind the text can be read if they are in the same page of memory */
	if (n > 0 && (uintptr_t) text % MEMORY_PAGE <= MEMORY_PAGE - LANES)
		memcpy(&lanes, text, LANES);
	else
		memcpy(&lanes, text, n);
	return lanes;
}

/* Counts the characters of a text, up to MAX_PLAIN. */
static inline Counts
count_characters(const uint8_t *text, uint32_t len)
{
	Counts		counts = {{0}, {0}, {0}};
	Lanes		lanes;
	Lanes		counted;

	for (; len > LANES; text += LANES, len -= LANES)
	{
		memcpy(&lanes, text, LANES);
		count_lanes(&counts, lanes, ~(Lanes){0});
	}
	memcpy(&counted, first_lanes + LANES - len, LANES);
	count_lanes(&counts, read_lanes(text, len), counted);
	return counts;
}

static inline uint32_t
sum_of_lanes(Lanes lanes)
{
	const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
	Halves		halves = (Halves) lanes;
	uint64_t	sum = (halves[0] & even) + (halves[0] >> 8 & even) +
		(halves[1] & even) + (halves[1] >> 8 & even);
	return (uint32_t) (sum * UINT64_C(0x0001000100010001) >> 48);
}

/* Adds n characters of a class to a bound. */
static inline void
add_class(const GsTextTable *table, GsTextClass class, uint32_t n, uint32_t *sum, uint32_t *flags)
{
	*sum += n * (table->classes[class] & GS_BOUND_BYTES);
	*flags |= table->classes[class];
}

/* Sets the sum of bounds, times 16, and the flags.  Returns false if a text is not all printable ASCII. */
static inline bool
read_plain(const GsTextTable *table, const uint8_t *text, uint32_t len, uint32_t *sum, uint32_t *flags)
{
	Counts		counts = count_characters(text, len);
	uint32_t	n_small = sum_of_lanes(counts.small);
	uint32_t	n_capital = sum_of_lanes(counts.capital);
	Halves		other = (Halves) counts.other;

	if ((other[0] | other[1]) != 0)
		return false;
	add_class(table, GS_TEXT_SMALL, n_small, sum, flags);
	add_class(table, GS_TEXT_CAPITAL, n_capital, sum, flags);
	add_class(table, GS_TEXT_SIGN, len - n_small - n_capital, sum, flags);
	return true;
}

/* The same of any text, character by character.  Returns false if a device may be unable to make the key. */
static bool
read_characters(const GsTextTable *table, const uint8_t *text, uint32_t len, uint32_t *sum, uint32_t *flags)
{
	uint8_t		last = 0;

	for (uint32_t at = 0; at < len;)
	{
		uint8_t		byte = text[at];
		uint32_t	bound = table->narrow[byte];

		if (gs_text_is_pair(table, last, byte))
			return false;
		last = byte;
		if (byte < GS_TEXT_ASCII || !table->utf8)
			at++;
		else if (at + 1 < len)
		{
			bound = table->wide[gs_text_wide(byte, text[at + 1])];
			at += byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
		}
		else
			return false;
		*sum += bound & GS_BOUND_BYTES;
		*flags |= bound;
	}
	return true;
}

uint32_t
gs_text_key_bound(const GsTextTable *table, const uint8_t *text, uint32_t len)
{
	uint32_t	sum = 0;
	uint32_t	flags = 0;

	if (!(table->plain && len <= MAX_PLAIN && read_plain(table, text, len, &sum, &flags)) &&
		!read_characters(table, text, len, &sum, &flags))
		return 0;
	sum = sum / 16 + GS_TEXT_KEY_ENDS;
	if ((flags & GS_BOUND_HARD) != 0 || sum > table->max_bytes ||
		((flags & GS_BOUND_FIRST) != 0 && (flags & GS_BOUND_SECOND) != 0))
		return 0;
	return sum + (flags & GS_BOUND_TEXT ? len + 1 : 0);
}

/* The greater one of two bounds, with the flags of both. */
static uint16_t
greater_bound(uint32_t a, uint32_t b)
{
	uint32_t	bytes_a = a & GS_BOUND_BYTES;
	uint32_t	bytes_b = b & GS_BOUND_BYTES;

	return (uint16_t) (((a | b) & ~(uint32_t) GS_BOUND_BYTES) | (bytes_a > bytes_b ? bytes_a : bytes_b));
}

void
gs_text_add_bound(GsTextTable *table, const uint8_t *character, size_t len, uint32_t bound)
{
	uint16_t   *at = len > 1 ? &table->wide[gs_text_wide(character[0], character[1])] :
		&table->narrow[character[0]];

	*at = greater_bound(*at, bound);
}

void
gs_text_offer(GsTextTable *table, bool utf8, uint16_t max_bytes)
{
	uint32_t	flags = 0;

	memset(table->classes, 0, sizeof(table->classes));
	for (uint32_t byte = ' '; byte <= '~'; byte++)
	{
		bool		capital = byte >= 'A' && byte <= 'Z';
		bool		small = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
		uint16_t   *class = &table->classes[capital ? GS_TEXT_CAPITAL : small ? GS_TEXT_SMALL : GS_TEXT_SIGN];

		*class = greater_bound(*class, table->narrow[byte]);
		flags |= table->narrow[byte];
	}

	/* the first character of a pair is FIRST */
	table->plain = (flags & ~(uint32_t) (GS_BOUND_BYTES | GS_BOUND_SECOND)) == 0;
	table->utf8 = utf8;
	table->for_devices = true;
	table->max_bytes = max_bytes;
}
