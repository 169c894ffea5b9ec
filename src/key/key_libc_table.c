/*-------------------------------------------------------------------------
 *
 * key_libc_table.c
 *	  Building a table of a libc locale's characters (key_libc_table.h).
 *
 * Sequences
 *	  A trie holds characters, and contractions such as Czech "ch", as sequences of bytes.  The longest sequence
 *	  that matches counts.  In glibc's lists it is the first one that matches.
 *
 * Levels
 *	  Weights get new codes in the same order (key_libc_codes.h).  From level 2 on the most frequent weight
 *	  is the common weight.  A run of it is a count, as in ICU's sort keys.  Counts are bytes of a range.  If
 *	  a greater weight follows the run, the count goes down from the highest byte.  If a lesser weight or the
 *	  level's end follows, the count goes up from the lowest byte.
 *
 * The last level
 *	  Most locales of glibc have a fourth level.  There each character has a weight of its own, and
 *	  characters without a weight are counted.  This level would double the keys.  But it decides only
 *	  between texts that agree in the first three levels, and between these most letters' weights tell
 *	  nothing.  Such a weight is implied, and written as the common weight.  A weight is implied if
 *
 *		(a) the character has one weight at each level, and the common weight at level 2;
 *		(b) its last weight is the least of all characters with the same first weights of levels 1 and 3, and
 *			no other of these characters has that last weight;
 *		(c) its last weight is greater than the last weights of all characters without level 1.  The border is
 *			the least number above these.
 *
 *	  Let two texts agree in three levels, and let a and b be their first characters that differ.  From a and
 *	  b on, the texts still agree in levels 1 and 3, because both are read forward.  If both last weights
 *	  are implied, a and b have the same weights at levels 1 and 3, so by (b) they are the same character.
 *	  If only a's weight is implied, there are two cases.  If b has no level 1, b comes first by (c).  If b
 *	  has a's first weights of levels 1 and 3, a comes first by (b).  Codes of weights below the border are
 *	  less than the counts.  All other codes are greater.
 *
 *	  If a character has no last weight, the next weight becomes greater than any other weight (SKIPPED).
 *
 * Equal texts
 *	  A character is ambiguous if another sequence has the same weights, or if no weight is its own.  Two
 *	  texts have the same levels only if they are equal, or contain ambiguous characters.  If a text contains
 *	  one, its key ends with the text.  If the locale's last level has no positions, all keys do.
 *
 * Tests: unit/plain/test_key_libc, regress/keys_libc
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/string_sort.h"
#include "key/key_libc_codes.h"
#include "key/key_libc_glibc.h"
#include "key/key_libc_table.h"

#define NO_WEIGHT				UINT32_MAX
#define SEVERAL_WEIGHTS			(UINT32_MAX - 1)

/* Bytes of a level's counts.  A last level with positions has LEAST_COUNTS or more. */
#define COUNTS					65
#define LEAST_COUNTS			17

/* At the last level codes end at CODES_END; greater bytes have other uses (libc_put.c). */
#define CONTINUED				0xff
#define CODES_END				0xfd

/* An array that grows. */
typedef struct Array
{
	char	   *bytes;
	size_t		n;
	uint64_t	max;
} Array;

typedef struct Build
{
	GsGlibcTables glibc;
	const char *why;			/* why it has failed, or NULL */
	GsLibcTable table;
	Array		entries;		/* of GsLibcEntry */
	Array		indexes;		/* of uint32_t: each entry's index in glibc's tables */
	Array		nodes;
	Array		children;
	Array		pool;
	uint32_t   *found;			/* hash table: entries by index */
	uint32_t	n_found;
	uint32_t	common[GS_TEXT_LEVELS];
	uint32_t	border;
	bool	   *implied;		/* for each entry: is its last weight implied? */
	GsCodes		codes[GS_TEXT_LEVELS];
	GsCodes		low_codes;		/* of last weights below the border */
} Build;

/* A character with weights of levels 1 and 4. */
typedef struct Letter
{
	uint32_t	first;			/* its first weights of levels 1 and 3 */
	uint32_t	third;
	uint32_t	last;			/* its first weight of the last level */
	uint32_t	entry;
	bool		single;			/* (a) */
} Letter;

static void *
grow(Build *build, Array *array, size_t bytes)
{
	if (!gs_grow((void **) &array->bytes, array->n + bytes, &array->max, 1))
	{
		build->why = "memory is short";
		return NULL;
	}
	array->n += bytes;
	return array->bytes + array->n - bytes;
}

static uint32_t
n_entries(const Build *build)
{
	return (uint32_t) (build->entries.n / sizeof(GsLibcEntry));
}

static GsLibcEntry *
entry_of(const Build *build, uint32_t i)
{
	return (GsLibcEntry *) build->entries.bytes + i;
}

static uint32_t
index_of(const Build *build, uint32_t i)
{
	return ((uint32_t *) build->indexes.bytes)[i];
}

static const uint8_t *
weights_of(const Build *build, uint32_t i, int level, int *n)
{
	return gs_glibc_weights(&build->glibc, index_of(build, i), level, n);
}

static uint32_t
first_weight(const Build *build, uint32_t i, int level)
{
	int			n;
	const uint8_t *at = weights_of(build, i, level, &n);

	return n > 0 ? gs_glibc_weight(&at) : NO_WEIGHT;
}

static uint32_t
single_weight(const Build *build, uint32_t i, int level)
{
	int			n;
	const uint8_t *at = weights_of(build, i, level, &n);
	const uint8_t *end = at + n;
	uint32_t	weight = n > 0 ? gs_glibc_weight(&at) : NO_WEIGHT;

	return at == end ? weight : SEVERAL_WEIGHTS;
}

static int
rule_of(const Build *build, uint32_t i, int level)
{
	return build->glibc.rules[(index_of(build, i) >> 24) * (uint32_t) build->glibc.levels + level];
}

/* ---- sequences ---- */

/* Returns the entry of an index.  If several sequences have the index, the entry becomes ambiguous. */
static uint32_t
find_entry(Build *build, uint32_t index)
{
	uint32_t	mask = build->n_found - 1;
	uint32_t	slot = index * 2654435761u & mask;
	uint32_t   *place;
	GsLibcEntry *entry;

	for (; build->found[slot] != GS_LIBC_NONE; slot = (slot + 1) & mask)
	{
		if (index_of(build, build->found[slot]) == index)
		{
			entry_of(build, build->found[slot])->ambiguous = true;
			return build->found[slot];
		}
	}
	place = grow(build, &build->indexes, sizeof(uint32_t));
	entry = grow(build, &build->entries, sizeof(GsLibcEntry));
	if (place == NULL || entry == NULL)
		return GS_LIBC_NONE;
	*place = index;
	memset(entry, 0, sizeof(*entry));
	build->found[slot] = n_entries(build) - 1;
	return build->found[slot];
}

static int
compare_sequences(const void *a, const void *b)
{
	const GsGlibcSequence *x = a;
	const GsGlibcSequence *y = b;
	int			order = memcmp(x->bytes, y->bytes, GS_GLIBC_SEQUENCE);

	/* they hold no byte 0, which follows the shorter one */
	return order != 0 ? order : x->order < y->order ? -1 : x->order > y->order;
}

/*
 * Builds the node of the sequences from first to end - 1, and returns its place.  They have their first
 * depth bytes in common.  glibc never finds a sequence that stands behind its own prefix in the list, so
 * such a sequence is left out.
 */
static uint32_t
build_node(Build *build, GsGlibcSequence *first, GsGlibcSequence *end, int depth)
{
	GsLibcNode	node = {.entry = GS_LIBC_NONE};
	uint32_t	order = UINT32_MAX;
	GsGlibcSequence *kept;
	uint32_t	number;
	size_t		n_children;

	for (; first < end && first->len == depth; first++)
		if (node.entry == GS_LIBC_NONE)
		{
			node.entry = find_entry(build, first->index);
			order = first->order;
		}
	kept = first;
	for (GsGlibcSequence *s = first; s < end; s++)
		if (s->order < order)
			*kept++ = *s;
	end = kept;
	if (first == end || build->why != NULL)
		return node.entry;

	node.first = first->bytes[depth];
	node.last = end[-1].bytes[depth];
	node.children = (uint32_t) (build->children.n / sizeof(uint32_t));
	number = (uint32_t) (build->nodes.n / sizeof(GsLibcNode));
	n_children = (size_t) node.last - node.first + 1;
	if (grow(build, &build->nodes, sizeof(node)) == NULL ||
		grow(build, &build->children, n_children * sizeof(uint32_t)) == NULL)
		return GS_LIBC_NONE;
	((GsLibcNode *) build->nodes.bytes)[number] = node;
	for (size_t i = 0; i < n_children; i++)
		((uint32_t *) build->children.bytes)[node.children + i] = GS_LIBC_NONE;
	while (first < end)
	{
		uint8_t		byte = first->bytes[depth];
		GsGlibcSequence *next = first;
		uint32_t	place;

		while (next < end && next->bytes[depth] == byte)
			next++;
		place = build_node(build, first, next, depth + 1);
		((uint32_t *) build->children.bytes)[node.children + byte - node.first] = place;
		first = next;
	}
	return number | GS_LIBC_NODE;
}

static void
build_trie(Build *build)
{
	GsGlibcSequence *first = build->glibc.sequences;
	GsGlibcSequence *end = first + build->glibc.n_sequences;

	for (build->n_found = 1024; build->n_found < 2 * build->glibc.n_sequences;)
		build->n_found *= 2;
	build->found = malloc(build->n_found * sizeof(uint32_t));
	if (build->found == NULL)
	{
		build->why = "memory is short";
		return;
	}
	memset(build->found, 0xff, build->n_found * sizeof(uint32_t));
	memset(build->table.root, 0xff, sizeof(build->table.root));
	qsort(first, build->glibc.n_sequences, sizeof(GsGlibcSequence), compare_sequences);
	while (first < end && build->why == NULL)
	{
		GsGlibcSequence *next = first;

		while (next < end && next->bytes[0] == first->bytes[0])
			next++;
		build->table.root[first->bytes[0]] = build_node(build, first, next, 1);
		first = next;
	}
}

/* Returns the entry of an ASCII character, or NONE. */
static uint32_t
ascii_entry(const Build *build, int c)
{
	uint32_t	place = build->table.root[c];

	if (place != GS_LIBC_NONE && (place & GS_LIBC_NODE) != 0)
		place = ((GsLibcNode *) build->nodes.bytes)[place & ~GS_LIBC_NODE].entry;
	return place;
}

/* ---- levels ---- */

/* Accepts backward rules at level 2, and positions at the last of four levels. */
static void
check_rules(Build *build)
{
	int			last = build->glibc.levels - 1;
	uint32_t	n_positions = 0;

	for (uint32_t i = 0; i < n_entries(build); i++)
	{
		for (int level = 0; level <= last; level++)
		{
			int			rule = rule_of(build, i, level);

			if ((rule & GS_GLIBC_BACKWARD) != 0 && level == 1)
				entry_of(build, i)->backward = true;
			else if ((rule & GS_GLIBC_BACKWARD) != 0)
				build->why = "a level other than the second is read backward";
			if ((rule & GS_GLIBC_POSITION) != 0 && level == 3 && level == last)
				n_positions++;
			else if ((rule & GS_GLIBC_POSITION) != 0)
				build->why = "a level other than the fourth has positions";
		}
	}
	if (n_positions > 0 && n_positions < n_entries(build))
		build->why = "some characters have positions and some have none";
	build->table.position = n_positions > 0;
}

/* Returns the most frequent weight of a level. */
static uint32_t
choose_common(const Build *build, int level)
{
	uint32_t	counts[64] = {0};
	uint32_t	best = 0;

	for (uint32_t i = 0; i < n_entries(build); i++)
	{
		uint32_t	weight = single_weight(build, i, level);

		if (weight < 64 && ++counts[weight] > counts[best])
			best = weight;
	}
	return best;
}

/* Adds a level's weights from least to most - 1.  Implied weights need no code. */
static void
add_weights(Build *build, GsCodes *codes, int level, uint32_t least, uint32_t most)
{
	for (uint32_t i = 0; i < n_entries(build); i++)
	{
		int			n;
		const uint8_t *at = weights_of(build, i, level, &n);
		const uint8_t *end = at + n;

		if (build->implied != NULL && build->implied[i] && level == build->glibc.levels - 1)
			continue;
		while (at < end)
		{
			uint32_t	weight = gs_glibc_weight(&at);

			if (weight >= least && weight < most && !gs_codes_add(codes, weight))
				build->why = "memory is short";
		}
	}
	gs_codes_sort(codes);
}

/* Gives the weights of ASCII characters codes of one byte. */
static void
shorten_ascii(const Build *build, GsCodes *codes, int level)
{
	for (int c = 1; c < 127; c++)
	{
		uint32_t	entry = c >= ' ' || c == '\t' || c == '\n' || c == '\r' ?
			ascii_entry(build, c) : GS_LIBC_NONE;

		if (entry != GS_LIBC_NONE)
			gs_codes_shorten(codes, single_weight(build, entry, level));
	}
}

static void
code_first_level(Build *build)
{
	add_weights(build, &build->codes[0], 0, 0, NO_WEIGHT);
	shorten_ascii(build, &build->codes[0], 0);
	if (!gs_codes_assign(&build->codes[0], GS_CODE_LEAST, 0xff))
		build->why = "it has too many weights of the first level";
}

/* Codes a level with counts: lesser weights get codes below the counts, greater weights above. */
static void
code_level(Build *build, int level)
{
	GsTextCounts *counts = &build->table.counts[level];
	GsCodes    *codes = &build->codes[level];
	uint32_t	common = choose_common(build, level);
	GsCodes		below = {0};
	int			n_below;
	uint32_t	n_short;

	build->common[level] = common;
	add_weights(build, &below, level, 0, common);
	n_below = gs_codes_count_leads(&below, 64);
	if (n_below > 0 && !gs_codes_assign(&below, GS_CODE_LEAST, GS_CODE_LEAST + n_below - 1))
		build->why = "it has too many weights of a level";
	counts->low = (uint8_t) (GS_CODE_LEAST + n_below);
	counts->high = (uint8_t) (counts->low + COUNTS - 1);
	counts->max = COUNTS / 2 + 1;

	/* of the greater weights, the lowest are the most frequent */
	add_weights(build, codes, level, common + 1, NO_WEIGHT);
	n_short = codes->n < 100 ? codes->n : 100;
	for (uint32_t i = 0; i < n_short; i++)
		codes->codes[i].is_short = true;
	if (!gs_codes_assign(codes, counts->high + 1, 0xff))
		build->why = "it has too many weights of a level";

	/* both become one table */
	for (uint32_t i = 0; i < below.n; i++)
		if (gs_codes_add(codes, below.codes[i].weight))
			codes->codes[codes->n - 1] = below.codes[i];
		else
			build->why = "memory is short";
	gs_codes_sort(codes);
	gs_codes_free(&below);
}

/* ---- the last level ---- */

static int
compare_letters(const void *a, const void *b)
{
	const Letter *x = a;
	const Letter *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->third != y->third)
		return x->third < y->third ? -1 : 1;
	return x->last < y->last ? -1 : x->last > y->last;
}

/* Finds equal weights among n pairs of a weight and an entry, and makes their entries ambiguous. */
static void
mark_repeated(Build *build, uint64_t *pairs, uint32_t n)
{
	qsort(pairs, n, sizeof(uint64_t), gs_string_compare_words);
	for (uint32_t i = 0; i + 1 < n; i++)
		if (pairs[i] >> 32 == pairs[i + 1] >> 32)
			entry_of(build, (uint32_t) pairs[i])->ambiguous =
				entry_of(build, (uint32_t) pairs[i + 1])->ambiguous = true;
}

/*
 * Decides which entries are ambiguous.  An entry is not if it has one last weight, and no other entry has
 * it.  An entry without a last weight is not if it has one weight of level 1, and no other entry without a
 * last weight has that.
 */
static void
find_ambiguous(Build *build)
{
	uint64_t   *with = malloc((n_entries(build) + 1) * sizeof(uint64_t));
	uint64_t   *without = malloc((n_entries(build) + 1) * sizeof(uint64_t));
	uint32_t	n_with = 0;
	uint32_t	n_without = 0;

	if (with == NULL || without == NULL)
		build->why = "memory is short";
	for (uint32_t i = 0; i < n_entries(build) && build->why == NULL; i++)
	{
		uint32_t	last = single_weight(build, i, 3);
		uint32_t	first = single_weight(build, i, 0);

		if (last < SEVERAL_WEIGHTS)
			with[n_with++] = (uint64_t) last << 32 | i;
		else if (last == NO_WEIGHT && first < SEVERAL_WEIGHTS)
			without[n_without++] = (uint64_t) first << 32 | i;
		else
			entry_of(build, i)->ambiguous = true;
	}
	if (build->why == NULL)
	{
		mark_repeated(build, with, n_with);
		mark_repeated(build, without, n_without);
	}
	free(with);
	free(without);
}

/* Collects all characters with weights of levels 1 and 4, and sets the border. */
static uint32_t
collect_letters(Build *build, Letter *letters)
{
	uint32_t	n = 0;

	build->border = 0;
	for (uint32_t i = 0; i < n_entries(build); i++)
	{
		Letter		letter = {first_weight(build, i, 0), first_weight(build, i, 2),
		first_weight(build, i, 3), i, false};

		if (letter.last == NO_WEIGHT)
			continue;
		if (letter.first == NO_WEIGHT)
		{
			if (letter.last >= build->border)
				build->border = letter.last + 1;
			continue;
		}
		letter.single = single_weight(build, i, 0) < SEVERAL_WEIGHTS &&
			single_weight(build, i, 1) == build->common[1] &&
			single_weight(build, i, 2) < SEVERAL_WEIGHTS &&
			single_weight(build, i, 3) < SEVERAL_WEIGHTS;
		letters[n++] = letter;
	}
	return n;
}

static void
find_implied(Build *build)
{
	Letter	   *letters = malloc((n_entries(build) + 1) * sizeof(Letter));
	uint32_t	n;
	uint32_t	start = 0;		/* the first letter with the same first weight */

	build->implied = calloc(n_entries(build) + 1, sizeof(bool));
	if (letters == NULL || build->implied == NULL)
	{
		build->why = "memory is short";
		free(letters);
		return;
	}
	n = collect_letters(build, letters);
	qsort(letters, n, sizeof(Letter), compare_letters);
	for (uint32_t i = 0; i < n; i++)
	{
		const Letter *letter = &letters[i];

		if (i > 0 && letter->first != letter[-1].first)
			start = i;
		/* a letter without level 3 may stand against any letter of its first weight */
		if (letter->third == NO_WEIGHT)
			for (uint32_t j = start; j < i; j++)
				build->implied[letters[j].entry] = false;
		else if (letter->single && letter->last >= build->border &&
				 (i == start || letter->third != letter[-1].third) &&
				 (i + 1 == n || letter[1].first != letter->first || letter[1].third != letter->third ||
				  letter[1].last != letter->last))
			build->implied[letter->entry] = true;
	}
	free(letters);
}

/* Codes the last level: weights below the border, then counts, then the other weights. */
static void
code_last_level(Build *build)
{
	GsTextCounts *counts = &build->table.counts[3];
	GsCodes    *low = &build->low_codes;
	GsCodes    *high = &build->codes[3];
	int			n_low;
	int			n_high;

	add_weights(build, low, 3, 0, build->border);
	shorten_ascii(build, low, 3);
	add_weights(build, high, 3, build->border, NO_WEIGHT);
	n_low = gs_codes_count_leads(low, 120);
	n_high = gs_codes_count_leads(high, 100);
	counts->low = (uint8_t) (GS_CODE_LEAST + n_low);
	counts->high = (uint8_t) (CODES_END - n_high);
	if (n_low > 120 || n_high > 100 || counts->high - counts->low + 1 < LEAST_COUNTS ||
		!gs_codes_assign(low, GS_CODE_LEAST, counts->low - 1) ||
		!gs_codes_assign(high, counts->high + 1, CODES_END))
	{
		build->why = "it has too many weights of the last level";
		return;
	}
	counts->max = (uint8_t) ((counts->high - counts->low) / 2 + 1);
}

/* ---- entries ---- */

/* Writes an entry's codes of a level. */
static uint8_t *
put_codes(Build *build, uint32_t i, int level, uint8_t *dst)
{
	bool		last = build->table.position && level == 3;
	int			n;
	const uint8_t *at = weights_of(build, i, level, &n);
	const uint8_t *end = at + n;
	uint8_t    *start = dst;

	while (at < end)
	{
		uint32_t	weight = gs_glibc_weight(&at);

		if (last && dst > start)
			*dst++ = CONTINUED;
		if (last ? build->implied[i] : level > 0 && weight == build->common[level])
			*dst++ = 0;
		else
			dst += gs_codes_put(last && weight < build->border ? &build->low_codes : &build->codes[level],
								weight, dst);
	}
	return dst;
}

/* Finds out whether an entry is of one of the two simple kinds, as most entries are. */
static void
find_kind(const Build *build, GsLibcEntry *entry, const uint8_t *codes)
{
	const uint8_t *second = codes + entry->n[0];
	const uint8_t *third = second + entry->n[1];
	const uint8_t *last = third + entry->n[2];

	if (!build->table.position || entry->ambiguous || entry->n[3] != 1)
		return;
	if (entry->n[0] >= 1 && entry->n[0] <= sizeof(entry->first) && entry->n[1] == 1 &&
		second[0] == 0 && entry->n[2] == 1 && last[0] == 0)
	{
		entry->kind = GS_LIBC_LETTER;
		memcpy(entry->first, codes, entry->n[0]);
		entry->last = third[0];
	}
	else if (entry->n[0] == 0 && entry->n[1] == 0 && entry->n[2] == 0)
	{
		entry->kind = GS_LIBC_MARK;
		entry->last = last[0];
	}
}

static void
write_entries(Build *build)
{
	for (uint32_t i = 0; i < n_entries(build) && build->why == NULL; i++)
	{
		GsLibcEntry *entry = entry_of(build, i);
		uint8_t		codes[GS_TEXT_LEVELS * 256 * (GS_CODE_BYTES + 1)];
		uint8_t    *end = codes;
		uint8_t    *copy;

		for (int level = 0; level < build->glibc.levels; level++)
		{
			uint8_t    *start = end;

			end = put_codes(build, i, level, end);
			if (end - start > 255)
				build->why = "a character has too many weights";
			entry->n[level] = (uint8_t) (end - start);
		}
		find_kind(build, entry, codes);
		entry->bytes = (uint32_t) build->pool.n;
		copy = grow(build, &build->pool, (size_t) (end - codes) + 1);
		if (copy != NULL)
			memcpy(copy, codes, (size_t) (end - codes));
	}
}

/*
 * Describes a byte.  Returns 0 if it is no such character, or if it may begin a longer character whose second
 * byte also is a character of one byte.  alone leaves out the second check.
 */
static GsLibcByte
describe_byte(const Build *build, int c, bool alone)
{
	uint32_t	place = build->table.root[c];
	bool		begins = place != GS_LIBC_NONE && (place & GS_LIBC_NODE) != 0;
	const GsLibcEntry *entry;

	if (begins)
	{
		const GsLibcNode *node = (const GsLibcNode *) build->nodes.bytes + (place & ~GS_LIBC_NODE);

		for (int next = node->first; next <= node->last && !alone; next++)
			if (describe_byte(build, next, true) != 0)
				return 0;
		place = node->entry;
	}
	if (place == GS_LIBC_NONE)
		return 0;
	entry = entry_of(build, place);
	if (entry->kind == GS_LIBC_LETTER ? entry->n[0] > 1 || (entry->backward && entry->last != 0) :
		entry->kind != GS_LIBC_MARK || !entry->backward)
		return 0;
	return entry->first[0] | (GsLibcByte) entry->last << 8 |
		(GsLibcByte) begins << GS_LIBC_BYTE_BEGINS |
		(GsLibcByte) (entry->last != 0) << GS_LIBC_BYTE_SPECIAL |
		(GsLibcByte) entry->backward << GS_LIBC_BYTE_BACKWARD;
}

/* Most texts consist of such bytes. */
static void
collect_bytes(Build *build)
{
	GsLibcTable *table = &build->table;

	for (int c = 1; c < 256; c++)
		table->bytes[c] = describe_byte(build, c, false);
}

static uint32_t
place_array(GsLibcTable *table, const Array *array)
{
	uint32_t	offset = (uint32_t) table->text.size;

	table->text.size += (array->n + 7) & ~(size_t) 7;
	return offset;
}

/* Copies all arrays into one block. */
static GsLibcTable *
pack(Build *build, bool utf8)
{
	GsLibcTable *table = &build->table;
	char	   *block;

	table->text.size = (sizeof(GsLibcTable) + 7) & ~(size_t) 7;
	table->text.levels = (uint8_t) build->glibc.levels;
	table->entries = place_array(table, &build->entries);
	table->nodes = place_array(table, &build->nodes);
	table->children = place_array(table, &build->children);
	table->pool = place_array(table, &build->pool);
	block = calloc(1, table->text.size);
	if (block == NULL)
	{
		build->why = "memory is short";
		return NULL;
	}
	memcpy(block, table, sizeof(*table));
	if (build->entries.n > 0)
	{
		memcpy(block + table->entries, build->entries.bytes, build->entries.n);
		memcpy(block + table->pool, build->pool.bytes, build->pool.n);
	}
	if (build->nodes.n > 0)
	{
		memcpy(block + table->nodes, build->nodes.bytes, build->nodes.n);
		memcpy(block + table->children, build->children.bytes, build->children.n);
	}
	table = (GsLibcTable *) block;
	if (table->position)
		gs_libc_table_bound(table, utf8);
	return table;
}

static void
build_levels(Build *build)
{
	build_trie(build);
	if (build->why == NULL)
		check_rules(build);
	if (build->why != NULL)
		return;
	code_first_level(build);
	for (int level = 1; level < build->glibc.levels && build->why == NULL; level++)
		if (level < 3 || !build->table.position)
			code_level(build, level);
	if (build->table.position && build->why == NULL)
	{
		find_ambiguous(build);
		if (build->why == NULL)
			find_implied(build);
		if (build->why == NULL)
			code_last_level(build);
	}
	if (build->why == NULL)
		write_entries(build);
	if (build->why == NULL)
		collect_bytes(build);
}

GsLibcTable *
gs_libc_table_build(locale_t locale, bool utf8, const char **why)
{
	Build		build;
	GsLibcTable *table = NULL;

	memset(&build, 0, sizeof(build));
	(void) gs_glibc_read(&build.glibc, locale, utf8, &build.why);
	if (build.why == NULL && build.glibc.levels > GS_TEXT_LEVELS)
		build.why = "it has more than four levels";
	if (build.why == NULL && build.glibc.levels > 0)
		build_levels(&build);
	if (build.why == NULL)
		table = pack(&build, utf8);
	*why = build.why;
	free(build.glibc.sequences);
	free(build.entries.bytes);
	free(build.indexes.bytes);
	free(build.nodes.bytes);
	free(build.children.bytes);
	free(build.pool.bytes);
	free(build.found);
	free(build.implied);
	for (int level = 0; level < GS_TEXT_LEVELS; level++)
		gs_codes_free(&build.codes[level]);
	gs_codes_free(&build.low_codes);
	return table;
}

#ifdef GPUSORT_FAULTS
void
gs_libc_table_plant(GsLibcTable *table, uint8_t a, uint8_t b)
{
	uint32_t	place = table->root[a];
	GsTextTable *text = &table->text;
	GsLibcByte	byte = table->bytes[a];

	table->root[a] = table->root[b];
	table->root[b] = place;
	text->for_devices = false;	/* its bounds are of the other characters */
	table->bytes[a] = table->bytes[b];
	table->bytes[b] = byte;
}
#endif
