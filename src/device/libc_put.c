/*-------------------------------------------------------------------------
 *
 * libc_put.c
 *	  Writing keys of text under a libc collation by a table (key_libc_table.h).
 *
 * A text is read once.  Level 1 goes to its place in the key, and the other levels to working memory.
 *
 * Characters of one byte
 *	  Most texts are letters, digits and marks of one byte each.  Runs of each kind are short, so a branch at
 *	  a run's end would be mispredicted.  read_chunk() reads such characters without branches between kinds.
 *	  It writes level 1, and collects a bit for each character that does more at other levels than a common
 *	  weight.  put_chunk() writes these levels from the bits.  If a whole text is of this kind, put_chunk()
 *	  writes them to their places in the key.
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
#include <stdlib.h>
#include <string.h>

#include "device/libc_key.h"

/* The longest text that put_second_level() reads. */
#define MAX_ENTRIES				16384

/* The most characters of a chunk: bits of a word, less two for the characters before. */
#define CHUNK					62

/* The most chunks of a text that needs no working memory. */
#define CHUNKS					8

struct GsLibcScratch
{
	uint32_t	entries[MAX_ENTRIES];
	uint8_t		levels[GS_TEXT_LEVELS][GS_TEXT_KEY_MAX];
};

GsLibcScratch *
gs_libc_scratch_create(void)
{
	return malloc(sizeof(GsLibcScratch));
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
put_entry_second(const GsLibcTable *table, GsTextLevel *level, const GsLibcEntry *entry)
{
	const uint8_t *bytes = (const uint8_t *) table + table->pool + entry->bytes + entry->n[0];

	for (int i = 0; i < entry->n[1]; i++)
		gs_libc_level_weight(level, table->counts[1], bytes[i]);
}

/*
 * Writes level 2 as strcoll() reads it.  Returns false if the text is too long.
 *
 * read_from is where strcoll() last began to look for a weight.  strcoll() counts a run's characters from
 * there, which is not the run's start if characters before the run have no weight.
 */
static bool
put_second_level(const GsLibcTable *table, GsLibcScratch *scratch, const uint8_t *text,
				 const uint8_t *end, GsTextLevel *level)
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
	uint64_t	backward;		/* bit 1 is the last character's, bit 0 that of the one before: backward? */
	uint64_t	weight;			/* do they have a weight? */
	bool		other_backward; /* a backward character has weights other than the common weight */
	bool		any_backward;
	bool		empty_forward;
} Second;

/* A piece of text that is characters of one byte (GsLibcByte).  Bit 0 is the first one's. */
typedef struct Chunk
{
	const uint8_t *text;
	size_t		len;
	size_t		n;				/* letters */
	size_t		n_second;		/* letters whose weight of level 2 strcoll() reads */
	uint64_t	upper;			/* letters that have another than the common weight at level 3 */
	uint64_t	marks;
} Chunk;

static inline uint64_t
low_bits(size_t n)
{
	return (UINT64_C(1) << n) - 1;
}

/*
 * Counts n characters.  Returns a bit for each character that ends a run if the run's last but one character
 * has a weight.  strcoll() leaves that weight out.
 */
static inline uint64_t
look_at_second(Second *second, size_t n, uint64_t backward, uint64_t weight)
{
	uint64_t	lost;

	second->any_backward |= backward != 0;
	second->backward |= backward << 2;
	second->weight |= weight << 2;
	lost = ~second->backward & second->backward << 1 & (second->backward & second->weight) << 2;
	second->backward = second->backward >> n & 3;
	second->weight = second->weight >> n & 3;
	return lost >> 2 & low_bits(n);
}

static inline void
look_at_entry(Second *second, const GsLibcEntry *entry, bool has_weight, GsTextLevel *level)
{
	if ((entry->backward || second->backward != 0) &&
		look_at_second(second, 1, entry->backward, has_weight) != 0 && level->common > 0)
		level->common--;
	second->empty_forward |= !entry->backward && !has_weight;
}

/* Reads characters of one byte until another one.  Writes their level 1: at most max bytes. */
static inline void
read_chunk(const GsLibcTable *table, const uint8_t *text, size_t len, size_t max, uint8_t *dst,
		   Chunk *chunk, Second *look)
{
	const GsLibcByte *bytes = table->bytes;
	uint64_t	special = 0;
	uint64_t	backward = 0;
	size_t		n = 0;
	size_t		i = 0;

	max = max < len ? max : len;
	max = max < CHUNK ? max : CHUNK;
	while (i < max)
	{
		size_t		most = max - i < GS_LIBC_BYTES ? max - i : GS_LIBC_BYTES;
		uint64_t	flags = 0;
		size_t		k;

#pragma GCC unroll 16
		for (k = 0; k < most; k++)
		{
			GsLibcByte	byte = bytes[text[i + k]];

			if (byte == 0)
			{
				max = 0;
				break;
			}
			flags |= byte << k;
			dst[n] = GS_LIBC_BYTE_FIRST(byte);
			n += GS_LIBC_BYTE_FIRST(byte) != 0;
		}
		special |= (flags >> GS_LIBC_BYTE_SPECIAL & 0xffff) << i;
		backward |= (flags >> GS_LIBC_BYTE_BACKWARD) << i;
		i += k;
	}
	if (i > 0 && i < len && bytes[text[i]] == 0 && (table->root[text[i - 1]] & GS_LIBC_NODE) != 0)
	{
		/* the last byte may begin a longer character */
		n -= GS_LIBC_BYTE_FIRST(bytes[text[--i]]) != 0;
		special &= low_bits(i);
		backward &= low_bits(i);
	}
	*chunk = (Chunk){text, i, n, n, special & ~backward, special & backward};
	if ((backward | look->backward) != 0)
	{
		uint64_t	lost = look_at_second(look, i, backward, low_bits(i) & ~chunk->marks);

		for (; lost != 0; lost &= lost - 1)
			chunk->n_second--;
	}
}

/* Reads chunks, and moves *text and *n behind them.  Returns their number. */
static inline int
read_chunks(const GsLibcTable *table, const uint8_t **text, const uint8_t *end, uint8_t *dst, size_t room,
			size_t *n, Chunk *chunks, Second *look)
{
	int			k = 0;

	while (k < CHUNKS && *text < end && *n < room && table->bytes[**text] != 0)
	{
		Chunk	   *chunk = &chunks[k++];

		read_chunk(table, *text, (size_t) (end - *text), room - *n, dst + *n, chunk, look);
		*text += chunk->len;
		*n += chunk->n;
		if (chunk->len < CHUNK)
			break;
	}
	return k;
}

/* Writes level i + 1 of a chunk. */
static inline void
put_chunk(const GsLibcTable *table, const Chunk *chunk, int i, GsTextLevel *level)
{
	size_t		from = 0;

	if (i == 1)
	{
		level->common += (uint32_t) chunk->n_second;
		return;
	}
	for (uint64_t rest = i == 2 ? chunk->upper : chunk->marks; rest != 0;)
	{
		size_t		at = (size_t) __builtin_ctzll(rest);
		uint8_t		weight = GS_LIBC_BYTE_LAST(table->bytes[chunk->text[at]]);

		rest &= rest - 1;
		if (i == 2)
			at -= (size_t) __builtin_popcountll(chunk->marks & low_bits(at));
		level->common += (uint32_t) (at - from);
		from = at + 1;
		gs_text_level_common(level, table->counts[i], weight < table->counts[i].low);
		gs_text_level_byte(level, weight);
	}
	level->common += (uint32_t) ((i == 2 ? chunk->n : chunk->len) - from);
}

/* Writes level i + 1 of a text that is chunks only.  There is room.  Returns the number of bytes. */
static inline size_t
put_level(const GsLibcTable *table, const Chunk *chunks, int n_chunks, int i, uint8_t *dst)
{
	GsTextLevel level = {dst + 1, UINT32_MAX, 0, 0};

	dst[0] = GS_TEXT_LEVEL_END;
	for (int k = 0; k < n_chunks; k++)
		put_chunk(table, &chunks[k], i, &level);
	/* GS_TEXT_LEVEL_END is less than the common weight */
	gs_text_level_common(&level, table->counts[i], true);
	return 1 + level.n;
}

GsLibcPut
gs_libc_table_put(const GsLibcTable *table, GsLibcScratch *scratch, const uint8_t *text, size_t len,
				  uint8_t *dst, size_t room, size_t *written)
{
	const uint8_t *end = text + len;
	const uint8_t *at = text;
	const int	levels = table->text.levels;
	GsTextLevel levels_of[GS_TEXT_LEVELS];
	GsTextLevel *second = &levels_of[1];
	GsTextLevel *third = &levels_of[2];
	GsTextLevel *fourth = &levels_of[3];
	Second		look = {0};
	Chunk		chunks[CHUNKS];
	bool		adds_text = !table->position;
	uint32_t	skipped = 0;
	size_t		n = 0;
	int			n_chunks;

	n_chunks = read_chunks(table, &at, end, dst, room, &n, chunks, &look);
	if (at == end && table->position && room - n > 3 * len + GS_TEXT_LEVELS)
	{
		/* there is room, as no level has more bytes than the text */
		n += put_level(table, chunks, n_chunks, 1, dst + n);
		n += put_level(table, chunks, n_chunks, 2, dst + n);
		n += put_level(table, chunks, n_chunks, 3, dst + n);
		dst[n++] = GS_TEXT_KEY_END;
		*written = n;
		return GS_LIBC_PUT_ALL;
	}

	for (int i = 1; i < levels; i++)
		levels_of[i] = (GsTextLevel){scratch->levels[i], GS_TEXT_KEY_MAX, 0, 0};
	for (;; n_chunks = skipped > 0 ? 0 : read_chunks(table, &at, end, dst, room, &n, chunks, &look))
	{
		const GsLibcEntry *entry;
		const uint8_t *bytes;

		for (int k = 0; k < n_chunks; k++)
			for (int i = 1; i < levels; i++)
				put_chunk(table, &chunks[k], i, &levels_of[i]);
		if (at == end)
			break;

		entry = gs_libc_next(table, &at, end);
		if (entry == NULL)
			return GS_LIBC_PUT_NONE;
		if (entry->kind == GS_LIBC_LETTER && room - n >= sizeof(entry->first))
		{
			look_at_entry(&look, entry, true, second);
			memcpy(dst + n, entry->first, sizeof(entry->first));
			n += entry->n[0];
			second->common++;
			gs_libc_level_weight(third, table->counts[2], entry->last);
			if (skipped > 0)
				gs_libc_level_skipped(fourth, table->counts[3], &skipped);
			fourth->common++;
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
			look_at_entry(&look, entry, entry->n[1] > 0, second);
			look.other_backward |= entry->backward && entry->n[1] > 0 &&
				(entry->n[1] > 1 || bytes[0] != 0);
		}
		for (int i = 1; i < levels; i++)
		{
			if (table->position && i == levels - 1)
			{
				if (entry->n[i] == 0)
					skipped++;
				else if (skipped > 0)
					gs_libc_level_skipped(&levels_of[i], table->counts[i], &skipped);
			}
			for (uint32_t k = 0; k < entry->n[i]; k++)
				gs_libc_level_weight(&levels_of[i], table->counts[i], *bytes++);
		}
	}
	if ((look.other_backward || (look.any_backward && look.empty_forward)) &&
		!put_second_level(table, scratch, text, end, second))
		return GS_LIBC_PUT_NONE;

	*written = room;
	for (int i = 1; i < levels; i++)
	{
		/* GS_TEXT_LEVEL_END is less than the common weight */
		gs_text_level_common(&levels_of[i], table->counts[i], true);
		if (!append_byte(dst, room, &n, GS_TEXT_LEVEL_END) ||
			!append(dst, room, &n, levels_of[i].dst, levels_of[i].n))
			return GS_LIBC_PUT_CUT;
	}
	if (adds_text && (!append_byte(dst, room, &n, GS_TEXT_LEVEL_END) || !append(dst, room, &n, text, len)))
		return GS_LIBC_PUT_CUT;
	if (!append_byte(dst, room, &n, GS_TEXT_KEY_END))
		return GS_LIBC_PUT_CUT;
	*written = n;
	return GS_LIBC_PUT_ALL;
}
