/*-------------------------------------------------------------------------
 *
 * key_libc_bound.c
 *	  How long keys of text under a libc collation are at most (device/libc_key.h).
 *
 * A text's bound is the sum of its characters' bounds.  A contraction counts at its last character, which is
 * often a rare one.  Characters of several bytes share a bound if their first two bytes are the same.
 *
 * Tests: unit/plain/test_key_libc
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "key/key_libc_glibc.h"
#include "key/key_libc_table.h"

typedef struct Bounds
{
	GsLibcTable *table;
	const GsLibcEntry *entries;
	const GsLibcNode *nodes;
	const uint32_t *children;
	bool		utf8;
	uint8_t		sequence[GS_GLIBC_SEQUENCE];
} Bounds;

static uint32_t
entry_bound(const Bounds *b, const GsLibcEntry *entry)
{
	const uint8_t *bytes = (const uint8_t *) b->table + b->table->pool + entry->bytes + entry->n[0];
	uint32_t	bound = 16u * entry->n[0];

	/* put_second_level(): also if a text has both kinds below */
	if (entry->backward && entry->n[1] > 0 && (entry->n[1] > 1 || bytes[0] != 0))
		return GS_BOUND_HARD;
	for (int level = 1; level < GS_TEXT_LEVELS; bytes += entry->n[level++])
	{
		uint32_t	max = b->table->counts[level].max;

		/* a run of common weights takes a byte for each max of them, and one before another weight */
		for (int i = 0; i < entry->n[level]; i++)
			bound += bytes[i] == 0 ? (16 + max - 1) / max : i == 0 || bytes[i - 1] == 0 ? 32 : 16;
	}

	/* a run, GS_LIBC_SKIPPED, and the number */
	if (entry->n[3] == 0)
		bound += 48;

	if (bound > GS_BOUND_MAX)
		return GS_BOUND_HARD;
	if (entry->backward)
		bound |= GS_BOUND_SECOND;
	else if (entry->n[1] == 0)
		bound |= GS_BOUND_FIRST;
	return bound | (entry->ambiguous ? GS_BOUND_TEXT : 0);
}

/* Adds an entry's bound to that of its last character. */
static void
add_entry(Bounds *b, uint32_t entry, int len)
{
	int			at = len - 1;

	while (b->utf8 && at > 0 && (b->sequence[at] & 0xc0) == 0x80)
		at--;
	gs_text_add_bound(&b->table->text, b->sequence + at, (size_t) (len - at),
					  entry_bound(b, &b->entries[entry]));
}

static void
add_place(Bounds *b, uint32_t place, int len)
{
	const GsLibcNode *node;

	if (place == GS_LIBC_NONE)
		return;
	if ((place & GS_LIBC_NODE) == 0)
	{
		add_entry(b, place, len);
		return;
	}
	node = &b->nodes[place & ~GS_LIBC_NODE];
	if (node->entry != GS_LIBC_NONE)
		add_entry(b, node->entry, len);
	for (uint32_t byte = node->first; byte <= node->last; byte++)
	{
		b->sequence[len] = (uint8_t) byte;
		add_place(b, b->children[node->children + byte - node->first], len + 1);
	}
}

/* The place behind a byte. */
static uint32_t
child(const Bounds *b, uint32_t place, uint32_t byte)
{
	const GsLibcNode *node = &b->nodes[place & ~GS_LIBC_NODE];

	if (place == GS_LIBC_NONE || (place & GS_LIBC_NODE) == 0 || byte < node->first || byte > node->last)
		return GS_LIBC_NONE;
	return b->children[node->children + byte - node->first];
}

/* Are all characters with n more bytes behind a place characters of the locale? */
static bool
is_complete(const Bounds *b, uint32_t place, int n)
{
	if (place == GS_LIBC_NONE)
		return false;
	if (n == 0)
		return (place & GS_LIBC_NODE) == 0 || b->nodes[place & ~GS_LIBC_NODE].entry != GS_LIBC_NONE;
	for (uint32_t byte = 0x80; byte < 0xc0; byte++)
		if (!is_complete(b, child(b, place, byte), n - 1))
			return false;
	return true;
}

void
gs_libc_table_bound(GsLibcTable *table, bool utf8)
{
	Bounds		b = {
		.table = table,
		.entries = (const GsLibcEntry *) ((const char *) table + table->entries),
		.nodes = (const GsLibcNode *) ((const char *) table + table->nodes),
		.children = (const uint32_t *) ((const char *) table + table->children),
		.utf8 = utf8
	};

	memset(table->text.wide, 0xff, sizeof(table->text.wide));
	for (uint32_t byte = 0; byte < 256; byte++)
	{
		int			more = byte < 0xe0 ? 0 : byte < 0xf0 ? 1 : 2;

		table->text.narrow[byte] = is_complete(&b, table->root[byte], 0) ? 0 : GS_BOUND_HARD;
		for (uint32_t next = 0x80; utf8 && byte >= 0xc2 && byte < 0xf5 && next < 0xc0; next++)
			if (is_complete(&b, child(&b, table->root[byte], next), more))
				table->text.wide[gs_text_wide((uint8_t) byte, (uint8_t) next)] = 0;
	}
	for (uint32_t byte = 0; byte < 256; byte++)
	{
		b.sequence[0] = (uint8_t) byte;
		add_place(&b, table->root[byte], 1);
	}
	gs_text_offer(&table->text, utf8, GS_TEXT_KEY_MAX);
}
