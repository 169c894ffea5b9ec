/*-------------------------------------------------------------------------
 *
 * key_libc_table.h
 *	  Exact sort keys of text under a libc collation, from a table of its characters.
 *
 * A table is built from glibc's tables of a locale, and proven against strcoll_l().  Then it is only read.
 * memcmp() orders keys as strcoll_l() orders the texts.  Texts that strcoll_l() finds equal are ordered by
 * their bytes.
 *
 * A key is
 *
 *		level 1 | 01 | level 2 | 01 | ... | last level | 00
 *
 * with as many levels as the locale has.  Bytes of levels are 02 and more.  If another text may have the
 * same levels, the text's bytes follow:
 *
 *		level 1 | 01 | ... | last level | 01 | text | 00
 *
 * Texts with equal keys are equal.  key_libc_table.c explains the levels.
 *
 * A table is one block of memory without pointers, so processes can share it.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_TABLE_H
#define GS_KEY_LIBC_TABLE_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GS_LIBC_LEVELS			4

/* Keys are cut after so many bytes. */
#define GS_LIBC_KEY_MAX			8192

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
	uint8_t		n[GS_LIBC_LEVELS];	/* bytes in the pool, level by level; a byte 0 is a common or implied
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

/* Bytes that stand for runs of the common weight (put_common() in key_libc_put.c). */
typedef struct GsLibcCounts
{
	uint8_t		low;
	uint8_t		high;
	uint8_t		max;			/* the longest run that one byte stands for */
} GsLibcCounts;

typedef struct GsLibcTable
{
	size_t		size;			/* bytes of the whole table */
	uint8_t		levels;			/* 0: the locale orders by bytes, and the table is empty */
	bool		position;		/* the last level counts the characters that have no weight there */
	bool		adds_text;		/* all keys end with the text */
	GsLibcCounts counts[GS_LIBC_LEVELS];
	uint8_t		letters[256];	/* by byte: level 1 of a forward LETTER that has one byte there, and the
								 * common weight of level 3; 0: the byte is no such character */
	uint8_t		digits[256];	/* the same for backward LETTERs */
	uint8_t		marks[256];		/* by byte: level 4 of a backward MARK, or 0 */
	uint32_t	root[256];
	uint32_t	entries;		/* offsets from the table's start */
	uint32_t	nodes;
	uint32_t	children;
	uint32_t	pool;
} GsLibcTable;

typedef enum GsLibcPut
{
	GS_LIBC_PUT_ALL,
	GS_LIBC_PUT_CUT,			/* the first room bytes of the key */
	GS_LIBC_PUT_NONE			/* no key: the text is not of the locale's encoding, or too long */
} GsLibcPut;

/* Working memory of gs_libc_table_put(). */
typedef struct GsLibcScratch GsLibcScratch;

/* Returns a table, which the caller frees by free(), or NULL; *why then is a constant string. */
extern GsLibcTable *gs_libc_table_build(locale_t locale, bool utf8, const char **why);

/* Compares the keys of many texts with strcoll_l().  Returns false if one pair differs. */
extern bool gs_libc_table_prove(const GsLibcTable *table, locale_t locale, bool utf8,
								GsLibcScratch *scratch);

/* Returns NULL if memory is short.  The caller frees it by free(). */
extern GsLibcScratch *gs_libc_scratch_create(void);

/* Writes a text's key, at most room bytes.  room is at most GS_LIBC_KEY_MAX. */
extern GsLibcPut gs_libc_table_put(const GsLibcTable *table, GsLibcScratch *scratch,
								   const uint8_t *text, size_t len, uint8_t *dst, size_t room,
								   size_t *written);

#ifdef GPUSORT_FAULTS
/* For tests: exchanges the weights of two characters of one byte. */
extern void gs_libc_table_plant(GsLibcTable *table, uint8_t a, uint8_t b);
#endif

/* Returns the first entry of a text, and moves *text behind it.  NULL: the text is empty, or has none. */
static inline const GsLibcEntry *
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

#endif							/* GS_KEY_LIBC_TABLE_H */
