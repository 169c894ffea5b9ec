/*-------------------------------------------------------------------------
 *
 * libc_key.h
 *	  A table of a libc locale's characters, and the keys that devices make by it.
 *
 * key/key_libc_table.h explains the keys, and builds tables.  The host device calls gs_libc_table_put(); a
 * GPU writes the same bytes in its own way (text_key.h).  A device does not make the key if level 2 may need
 * put_second_level() of libc_put.c, or if a character is not the locale's.
 *
 * Tests: unit/plain/test_device, unit/plain/test_key_libc
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_LIBC_KEY_H
#define GS_LIBC_KEY_H

#include "device/text_key.h"

/* Bytes of the last level: SKIPPED, then a number of characters without a weight, at most MOST a byte. */
#define GS_LIBC_SKIPPED			0xfe
#define GS_LIBC_SKIPPED_MOST	0xf0

/* A place in the trie is the number of an entry, or GS_LIBC_NODE and the number of a node. */
#define GS_LIBC_NONE			UINT32_MAX
#define GS_LIBC_NODE			0x80000000u

/* How an entry's weights are stored. */
typedef enum GsLibcKind
{
	GS_LIBC_OTHER,
	GS_LIBC_LETTER,				/* level 1: n[0] bytes; 2: the common weight; 3: one byte, 0 for the common
								 * weight; 4: implied */
	GS_LIBC_MARK				/* level 4: one byte; others: nothing */
} GsLibcKind;

typedef struct GsLibcEntry
{
	uint8_t		kind;			/* a GsLibcKind */
	bool		backward;		/* at level 2 */
	bool		ambiguous;		/* another entry may have the same weights */
	uint8_t		first[2];		/* LETTER: level 1 */
	uint8_t		last;			/* LETTER: level 3; MARK: level 4 */
	uint8_t		n[GS_TEXT_LEVELS];	/* bytes in the pool, level by level; a byte 0 is a common or implied
									 * weight */
	uint32_t	bytes;			/* where they begin */
} GsLibcEntry;

/* A prefix of longer sequences.  Its children are numbered by their next byte, from first to last. */
typedef struct GsLibcNode
{
	uint32_t	entry;			/* of the prefix itself, or NONE */
	uint32_t	children;		/* number of the first child */
	uint8_t		first;
	uint8_t		last;
} GsLibcNode;

/*
 * A character of one byte: a LETTER that has one byte at level 1, and the common weight at level 3 if it is
 * backward; or a backward MARK.  0 stands for all other bytes.  A byte whose place in the trie is a node may
 * also begin a longer character, but only if the next byte is one of the others.
 *
 * libc_put.c shifts each of GS_LIBC_BYTES characters by its number and combines them by or.
 */
typedef uint64_t GsLibcByte;

#define GS_LIBC_BYTES			16
#define GS_LIBC_BYTE_FIRST(byte) ((uint8_t) (byte))	/* LETTER: level 1, never 0; MARK: 0 */
#define GS_LIBC_BYTE_LAST(byte) ((uint8_t) ((byte) >> 8))	/* LETTER: level 3; MARK: level 4 */
#define GS_LIBC_BYTE_BEGINS		16	/* bit: the byte may also begin a longer character */
#define GS_LIBC_BYTE_SPECIAL	32	/* bit: LAST is not 0 */
#define GS_LIBC_BYTE_BACKWARD	48	/* bit */

typedef struct GsLibcTable
{
	GsTextTable text;			/* levels 0: the locale orders by bytes, and the table is empty */
	bool		position;		/* the last level counts the characters that have no weight there; false: all
								 * keys end with the text */
	GsTextCounts counts[GS_TEXT_LEVELS];
	GsLibcByte	bytes[256];
	uint32_t	root[256];
	uint32_t	entries;		/* offsets from the table's start */
	uint32_t	nodes;
	uint32_t	children;
	uint32_t	pool;
} GsLibcTable;

/* Returns the first entry of a text, and moves *text behind it.  NULL: the text is empty, or has none. */
GS_TUPLE_INLINE const GsLibcEntry *
gs_libc_next(const GsLibcTable *table, const uint8_t **text, const uint8_t *end)
{
	const GsLibcEntry *entries = (const GsLibcEntry *) ((const char *) table + table->entries);
	const GsLibcNode *nodes = (const GsLibcNode *) ((const char *) table + table->nodes);
	const uint32_t *children = (const uint32_t *) ((const char *) table + table->children);
	const uint8_t *at = *text;
	uint32_t	found = GS_LIBC_NONE;
	uint32_t	place;

	if (at == end)
		return NULL;
	place = table->root[*at++];
	while (place != GS_LIBC_NONE)
	{
		const GsLibcNode *node;

		if (!(place & GS_LIBC_NODE))
		{
			*text = at;
			return &entries[place];
		}
		node = &nodes[place & ~GS_LIBC_NODE];
		if (node->entry != GS_LIBC_NONE)
		{
			found = node->entry;
			*text = at;
		}
		if (at == end || *at < node->first || *at > node->last)
			break;
		place = children[node->children + *at++ - node->first];
	}
	return found == GS_LIBC_NONE ? NULL : &entries[found];
}

#ifdef __cplusplus
extern "C"
{
#endif

typedef enum GsLibcPut
{
	GS_LIBC_PUT_ALL,
	GS_LIBC_PUT_CUT,			/* the first room bytes of the key */
	GS_LIBC_PUT_NONE			/* no key: the text is not of the locale's encoding, or too long */
} GsLibcPut;

/* Working memory of gs_libc_table_put(). */
typedef struct GsLibcScratch GsLibcScratch;

/* Returns NULL if memory is short.  The caller frees it by free(). */
extern GsLibcScratch *gs_libc_scratch_create(void);

/* Writes a text's key, at most room bytes.  room is at most GS_TEXT_KEY_MAX. */
extern GsLibcPut gs_libc_table_put(const GsLibcTable *table, GsLibcScratch *scratch,
								   const uint8_t *text, size_t len, uint8_t *dst, size_t room,
								   size_t *written);

#ifdef __cplusplus
}
#endif

/* Writes a weight.  0 is the common weight. */
GS_TUPLE_INLINE void
gs_libc_level_weight(GsTextLevel *level, GsTextCounts counts, uint8_t byte)
{
	if (byte == 0)
	{
		level->common++;
		return;
	}
	gs_text_level_common(level, counts, byte < counts.low);
	gs_text_level_byte(level, byte);
}

/* Writes, before the next weight of the last level, how many characters without one precede it. */
GS_TUPLE_INLINE void
gs_libc_level_skipped(GsTextLevel *level, GsTextCounts counts, uint32_t *skipped)
{
	gs_text_level_common(level, counts, false);
	gs_text_level_byte(level, GS_LIBC_SKIPPED);
	for (; *skipped >= GS_LIBC_SKIPPED_MOST; *skipped -= GS_LIBC_SKIPPED_MOST)
		gs_text_level_byte(level, 0xff);
	gs_text_level_byte(level, (uint8_t) (0x02 + *skipped));
	*skipped = 0;
}

/*
 * Counts or writes the levels of a text's key.  Returns false if a sequence is none of the locale.  Sets
 * *ambiguous if the key ends with the text.
 */
GS_TUPLE_INLINE bool
gs_libc_key_read(const GsLibcTable *table, const uint8_t *text, uint32_t len, GsTextLevel *levels,
				 bool *ambiguous)
{
	const uint8_t *pool = (const uint8_t *) table + table->pool;
	const uint8_t *end = text + len;
	uint32_t	run = 1;		/* as in look_at_second() of libc_put.c */
	uint32_t	skipped = 0;	/* characters without a weight of the last level */

	while (text < end)
	{
		GsLibcByte	byte = table->bytes[*text];
		const GsLibcEntry *entry = NULL;
		bool		backward = (byte >> GS_LIBC_BYTE_BACKWARD & 1) != 0;
		bool		has_second = GS_LIBC_BYTE_FIRST(byte) != 0;

		if ((byte >> GS_LIBC_BYTE_BEGINS & 1) != 0 && text + 1 < end && table->bytes[text[1]] == 0)
			byte = 0;
		if (byte != 0)
			text++;
		else
		{
			entry = gs_libc_next(table, &text, end);
			if (entry == NULL)
				return false;
			backward = entry->backward;
			has_second = entry->n[1] > 0;
			*ambiguous |= entry->ambiguous;
		}

		/* the second level loses the last but one of a backward run's characters */
		if (backward)
		{
			run = run << 1 | (has_second ? 1 : 0);
			if (run >= 8)
				run = 4 | (run & 3);
		}
		else
		{
			if (run >= 4 && (run & 2) != 0 && levels[1].common > 0)
				levels[1].common--;
			run = 1;
		}

		if (entry != NULL && entry->n[3] == 0)
			skipped++;
		else if (skipped > 0)
			gs_libc_level_skipped(&levels[3], table->counts[3], &skipped);
		if (entry != NULL)
		{
			const uint8_t *bytes = pool + entry->bytes;

			for (uint32_t i = 0; i < entry->n[0]; i++)
				gs_text_level_byte(&levels[0], *bytes++);
			for (int level = 1; level < GS_TEXT_LEVELS; level++)
				for (uint32_t i = 0; i < entry->n[level]; i++)
					gs_libc_level_weight(&levels[level], table->counts[level], *bytes++);
		}
		else if (has_second)
		{
			gs_text_level_byte(&levels[0], GS_LIBC_BYTE_FIRST(byte));
			levels[1].common++;
			gs_libc_level_weight(&levels[2], table->counts[2], GS_LIBC_BYTE_LAST(byte));
			levels[3].common++;
		}
		else
			gs_libc_level_weight(&levels[3], table->counts[3], GS_LIBC_BYTE_LAST(byte));
	}
	for (int level = 1; level < GS_TEXT_LEVELS; level++)
		gs_text_level_common(&levels[level], table->counts[level], true);
	return true;
}

#endif							/* GS_LIBC_KEY_H */
