/*-------------------------------------------------------------------------
 *
 * libc_put.c
 *	  Writing keys of text under a libc collation by a table (key_libc_table.h).
 *
 * A text is read once.  Level 1 goes to its place in the key, and the other levels to working memory.
 *
 * Level 2 of runs of backward characters
 *	  Digits, signs and combining marks have a backward rule.  At level 2 a run of such characters is read
 *	  from its end.  If a forward character ends the run, strcoll() leaves out the run's last but one
 *	  character (get_next_seq() in string/strcoll_l.c, since 2.18).  If characters before the run have no
 *	  weight of level 2, strcoll() also reads characters outside of the run.  strxfrm() does neither, so its
 *	  keys have another order.  Under en_US.utf8 "4~w" comes before "4~.w", and by strxfrm() after it.
 *	  PostgreSQL compares by strcoll(), so keys follow strcoll().  put_second_level() reads a text's level 2
 *	  exactly as strcoll() does.  Texts need it only if a run has weights other than the common weight, or
 *	  if a forward character has no weight.
 *
 * Tests: unit/plain/test_key_libc, regress/keys_libc
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "libc_put.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "device/libc_key.h"

#define KEY_END					0x00
#define LEVEL_END				0x01

/* Bytes of the last level: a number of characters without a weight follows; a character's next weight. */
#define SKIPPED					0xfe
#define CONTINUED				0xff

/* The longest text that put_second_level() reads. */
#define MAX_ENTRIES				16384

struct GsLibcScratch
{
	uint32_t	entries[MAX_ENTRIES];
	uint8_t		levels[GS_LIBC_LEVELS][GS_LIBC_KEY_MAX + 16];
};

/* A level from 2 on, while a key is written.  Bytes beyond GS_LIBC_KEY_MAX are never needed. */
typedef struct Level
{
	size_t		n;
	uint32_t	common;			/* common weights not yet written */
	GsLibcCounts counts;
	uint8_t    *bytes;
} Level;

GsLibcScratch *
gs_libc_scratch_create(void)
{
	return malloc(sizeof(GsLibcScratch));
}

static inline void
put_byte(Level *level, uint8_t byte)
{
	if (level->n < GS_LIBC_KEY_MAX)
		level->bytes[level->n++] = byte;
}

/*
 * Writes the common weights counted so far.  less tells whether the next weight is less than the common
 * weight.  The longer of two runs comes first if the next weight is greater, and last if it is less.
 */
static inline void
put_common(Level *level, bool less)
{
	uint32_t	n = level->common;
	const GsLibcCounts *counts = &level->counts;

	if (n == 0)
		return;
	level->common = 0;
	for (; n > counts->max; n -= counts->max)
		put_byte(level, (uint8_t) (counts->low + counts->max - 1));
	put_byte(level, (uint8_t) (less ? counts->low + n - 1 : counts->high - (n - 1)));
}

/* Writes a code's byte.  0 is a common weight. */
static inline void
put_weight(Level *level, uint8_t byte)
{
	if (byte == 0)
	{
		level->common++;
		return;
	}
	put_common(level, byte < level->counts.low);
	put_byte(level, byte);
}

static inline void
put_weights(Level *level, const uint8_t *bytes, int n)
{
	for (int i = 0; i < n; i++)
		put_weight(level, bytes[i]);
}

/* Characters without a weight at the last level make the next weight greater, by their number. */
static void
put_skipped(Level *level, uint32_t *skipped)
{
	const uint32_t most = 0xf0;

	put_common(level, false);
	put_byte(level, SKIPPED);
	for (; *skipped >= most; *skipped -= most)
		put_byte(level, 0xff);
	put_byte(level, (uint8_t) (0x02 + *skipped));
	*skipped = 0;
}

/* Appends bytes as far as there is room.  Returns false if they did not all fit. */
static inline bool
append(uint8_t *dst, size_t room, size_t *used, const uint8_t *bytes, size_t len)
{
	size_t		n = len < room - *used ? len : room - *used;

	memcpy(dst + *used, bytes, n);
	*used += n;
	return n == len;
}

static inline bool
append_byte(uint8_t *dst, size_t room, size_t *used, uint8_t byte)
{
	return append(dst, room, used, &byte, 1);
}

static inline void
put_entry_second(const GsLibcTable *table, Level *level, const GsLibcEntry *entry)
{
	const uint8_t *bytes = (const uint8_t *) table + table->pool + entry->bytes;

	put_weights(level, bytes + entry->n[0], entry->n[1]);
}

/*
 * Writes level 2 as strcoll() reads it.  Returns false if the text is too long.
 *
 * read_from is where strcoll() last began to look for a weight.  strcoll() counts a run's characters from
 * there, which is not the run's start if characters before the run have no weight.
 */
static bool
put_second_level(const GsLibcTable *table, GsLibcScratch *scratch, const uint8_t *text,
				 const uint8_t *end, Level *level)
{
	const GsLibcEntry *entries = (const GsLibcEntry *) ((const char *) table + table->entries);
	const GsLibcEntry *entry;
	uint32_t	n = 0;
	uint32_t	at = 0;
	uint32_t	read_from = 0;

	level->n = level->common = 0;
	while ((entry = gs_libc_next(table, &text, end)) != NULL)
	{
		if (n == MAX_ENTRIES)
			return false;
		scratch->entries[n++] = (uint32_t) (entry - entries);
	}
	while (at < n)
	{
		uint32_t	run = at;
		uint32_t	left = 0;

		while (at < n && entries[scratch->entries[at]].backward)
			at++;
		run = at - run;
		if (run > 0)
		{
			put_entry_second(table, level, &entries[scratch->entries[at - 1]]);
			if (at == n)
				left = run - 1;
			else if (run > 2)
				left = run - 2;
			while (left-- > 0)
				put_entry_second(table, level, &entries[scratch->entries[read_from + left]]);
		}
		if (at < n)
		{
			entry = &entries[scratch->entries[at++]];
			put_entry_second(table, level, entry);
			if (run > 0 || entry->n[1] > 0)
				read_from = at;
		}
	}
	return true;
}

/* Collects whether a text needs put_second_level(). */
typedef struct Second
{
	uint32_t	run;			/* the current backward run: a bit 1, and then a bit for each of its last two
								 * characters: does it have a weight? */
	bool		other_backward; /* a backward character has weights other than the common weight */
	bool		any_backward;
	bool		empty_forward;
} Second;

/* Counts a character.  If it ends a run, strcoll() leaves out the run's last but one character. */
static inline void
look_at_second(Second *second, bool backward, bool has_weight, Level *level)
{
	if (backward)
	{
		second->any_backward = true;
		second->run = second->run << 1 | (has_weight ? 1 : 0);
		if (second->run >= 8)
			second->run = 4 | (second->run & 3);
		return;
	}
	if (second->run >= 4 && (second->run & 2) != 0 && level->common > 0)
		level->common--;
	second->run = 1;
	second->empty_forward |= !has_weight;
}

/* Counts letters whose first level was written. */
static inline void
put_run(Level *levels, uint32_t n)
{
	levels[1].common += n;
	levels[2].common += n;
	levels[3].common += n;
}

GsLibcPut
gs_libc_table_put(const GsLibcTable *table, GsLibcScratch *scratch, const uint8_t *text, size_t len,
				  uint8_t *dst, size_t room, size_t *written)
{
	const uint8_t *end = text + len;
	const uint8_t *at = text;
	const int	levels = table->levels;
	Level		levels_of[GS_LIBC_LEVELS];
	Level	   *second = &levels_of[1];
	Level	   *third = &levels_of[2];
	Level	   *fourth = &levels_of[3];
	Second		look = {.run = 1};
	bool		adds_text = table->adds_text;
	uint32_t	skipped = 0;
	size_t		n = 0;

	for (int i = 1; i < levels; i++)
		levels_of[i] = (Level){0, 0, table->counts[i], scratch->levels[i]};
	for (;;)
	{
		const uint8_t *start = at;
		const uint8_t *stop = (size_t) (end - at) < room - n ? end : at + (room - n);
		const GsLibcEntry *entry;
		const uint8_t *bytes;

		/* texts are mostly letters, digits, and marks between them */
		if (skipped == 0)
		{
			while (at < stop && table->letters[*at] != 0)
				dst[n++] = table->letters[*at++];
			if (at > start)
			{
				look_at_second(&look, false, true, second);
				put_run(levels_of, (uint32_t) (at - start));
				start = at;
			}
			while (at < stop && table->digits[*at] != 0)
				dst[n++] = table->digits[*at++];
			if (at > start)
			{
				look_at_second(&look, true, true, second);
				if (at - start > 1)
					look_at_second(&look, true, true, second);
				put_run(levels_of, (uint32_t) (at - start));
			}
			while (at < end && table->marks[*at] != 0)
			{
				look_at_second(&look, true, false, second);
				put_weight(fourth, table->marks[*at++]);
			}
		}
		if (at == end)
			break;
		if (at > start && table->letters[*at] != 0)
			continue;

		entry = gs_libc_next(table, &at, end);
		if (entry == NULL)
			return GS_LIBC_PUT_NONE;
		if (entry->kind == GS_LIBC_LETTER && room - n >= sizeof(entry->first))
		{
			look_at_second(&look, entry->backward, true, second);
			memcpy(dst + n, entry->first, sizeof(entry->first));
			n += entry->n[0];
			second->common++;
			put_weight(third, entry->last);
			if (skipped > 0)
				put_skipped(fourth, &skipped);
			fourth->common++;
			continue;
		}
		if (entry->kind == GS_LIBC_MARK)
		{
			look_at_second(&look, entry->backward, false, second);
			if (skipped > 0)
				put_skipped(fourth, &skipped);
			put_weight(fourth, entry->last);
			continue;
		}
		bytes = (const uint8_t *) table + table->pool + entry->bytes;
		adds_text |= entry->ambiguous;
		if (!append(dst, room, &n, bytes, entry->n[0]))
		{
			*written = n;
			return GS_LIBC_PUT_CUT;
		}
		bytes += entry->n[0];
		if (levels > 1)
		{
			look_at_second(&look, entry->backward, entry->n[1] > 0, second);
			look.other_backward |= entry->backward && entry->n[1] > 0 &&
				(entry->n[1] > 1 || bytes[0] != 0);
		}
		for (int i = 1; i < levels; bytes += entry->n[i++])
		{
			if (table->position && i == levels - 1)
			{
				if (entry->n[i] == 0)
					skipped++;
				else if (skipped > 0)
					put_skipped(&levels_of[i], &skipped);
			}
			put_weights(&levels_of[i], bytes, entry->n[i]);
		}
	}
	if ((look.other_backward || (look.any_backward && look.empty_forward)) &&
		!put_second_level(table, scratch, text, end, second))
		return GS_LIBC_PUT_NONE;

	*written = room;
	for (int i = 1; i < levels; i++)
	{
		/* LEVEL_END is less than the common weight */
		put_common(&levels_of[i], true);
		if (!append_byte(dst, room, &n, LEVEL_END) ||
			!append(dst, room, &n, levels_of[i].bytes, levels_of[i].n))
			return GS_LIBC_PUT_CUT;
	}
	if (adds_text && (!append_byte(dst, room, &n, LEVEL_END) || !append(dst, room, &n, text, len)))
		return GS_LIBC_PUT_CUT;
	if (!append_byte(dst, room, &n, KEY_END))
		return GS_LIBC_PUT_CUT;
	*written = n;
	return GS_LIBC_PUT_ALL;
}
