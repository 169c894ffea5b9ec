/*-------------------------------------------------------------------------
 *
 * key_libc_table.h
 *	  Exact sort keys of text under a libc collation, from a table of its characters.
 *
 * A table is built from what glibc knows of a locale, proven against strcoll_l(), and
 * then only read.  memcmp() of two keys is strcoll_l() of the texts, and if that is 0 the
 * order of their bytes.
 *
 * A key is
 *
 *		level 1 | 01 | level 2 | 01 | ... | last level | 00
 *
 * with as many levels as the locale has.  Bytes of levels are 02 and more.  If texts may be
 * equal in all levels, their bytes follow:
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

/* The longest key; the first bytes of longer ones are written. */
#define GS_LIBC_KEY_MAX			8192

/* A place in the trie: an entry, or a node with GS_LIBC_NODE. */
#define GS_LIBC_NONE			UINT32_MAX
#define GS_LIBC_NODE			0x80000000u

/* What a character, or a contraction, contributes. */
typedef enum GsLibcKind
{
	GS_LIBC_OTHER,
	GS_LIBC_LETTER,				/* level 1: n1 bytes; 2: the common weight; 3: one byte, or 0: the common one;
								 * 4: implied */
	GS_LIBC_MARK				/* level 4: one byte; others: nothing */
} GsLibcKind;

typedef struct GsLibcEntry
{
	uint8_t		kind;			/* a GsLibcKind */
	bool		backward;		/* at level 2 */
	bool		ambiguous;		/* another one may have equal levels */
	uint8_t		first[2];		/* LETTER: level 1 */
	uint8_t		last;			/* LETTER: level 3; MARK: level 4 */
	uint8_t		n[GS_LIBC_LEVELS];	/* bytes in the pool, level by level; 0 stands for a common weight, or
									 * an implied one */
	uint32_t	bytes;			/* where they begin */
} GsLibcEntry;

/* A sequence of bytes that others begin with.  Its children are the bytes from first to last. */
typedef struct GsLibcNode
{
	uint32_t	entry;			/* of the sequence itself, or NONE */
	uint32_t	children;		/* the first one's place */
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
	uint8_t		levels;			/* 0: the order is that of the bytes, and there is no more */
	bool		position;		/* the last level also counts characters without a weight of it */
	bool		adds_text;		/* to all keys */
	GsLibcCounts counts[GS_LIBC_LEVELS];
	uint8_t		letters[256];	/* bytes that are forward LETTERs with one byte of level 1 and the common
								 * weight of level 3: that byte; 0: others */
	uint8_t		digits[256];	/* the same of backward ones */
	uint8_t		marks[256];		/* bytes that are backward MARKs: the byte of level 4 */
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

/*
 * A new table, to be freed by free(); NULL, and *why a constant string: there is none.
 */
extern GsLibcTable *gs_libc_table_build(locale_t locale, bool utf8, const char **why);

/* Compare the keys of many texts with strcoll_l().  False: some differ. */
extern bool gs_libc_table_prove(const GsLibcTable *table, locale_t locale, bool utf8,
								GsLibcScratch *scratch);

/* NULL: memory is short.  To be freed by free(). */
extern GsLibcScratch *gs_libc_scratch_create(void);

/* Write a text's key, at most room bytes, which must not be more than GS_LIBC_KEY_MAX. */
extern GsLibcPut gs_libc_table_put(const GsLibcTable *table, GsLibcScratch *scratch,
								   const uint8_t *text, size_t len, uint8_t *dst, size_t room,
								   size_t *written);

#ifdef GPUSORT_FAULTS
/* For tests: two single bytes exchange what they contribute. */
extern void gs_libc_table_plant(GsLibcTable *table, uint8_t a, uint8_t b);
#endif

/*
 * The entry that a text begins with, which it moves behind; NULL: none, or the text has ended.
 */
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
