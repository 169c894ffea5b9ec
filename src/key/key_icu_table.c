/*-------------------------------------------------------------------------
 *
 * key_icu_table.c
 *	  ICU's sort keys of plain texts, made from a table of characters.
 *
 * ucol_getSortKey() takes two microseconds for a path of 60 bytes.  The sort key of most texts is composed
 * of what each character contributes by itself.  The rules have been the same since ICU 53:
 *
 *		primary weights | 01 | secondary weights | 01 | tertiary weights | 00
 *
 * The collation's strength is the number of levels.  So a table of characters, learnt from ICU's keys of
 * single characters, replaces ICU.  It is four times as fast.
 *
 * Primary weights have 1 to 4 bytes, and are compressed.  ICU compresses weights of certain lead bytes.  If
 * such a weight has the lead byte of the weight before it, the lead byte is left out.  A run of such
 * weights ends with 03 if the next weight is less, or with FF if it is greater.  The key of a character
 * written twice shows whether its lead byte is compressed.  At the other levels, a count stands for a run
 * of the common weight.  If the next weight is less than the common weight, or the level ends, the count
 * goes up from the lowest byte of a range.  If it is greater, the count goes down from the highest byte.  A
 * weight other than the common one lies outside of the range, and is copied as it is.
 *
 * Why the keys are ICU's
 *	  What a character contributes depends on its neighbours in four cases:
 *	  - Contractions ("ch") and prefixes.  ICU lists them all.  A text that holds the first
 *		two characters of one, side by side, is left to ICU.
 *	  - Combining marks, which are reordered, and match contractions that they do not touch.
 *		The table has only characters whose canonical combining class is 0.  Unicode never
 *		changes the class of a character, so the ranges of may_be_learnt() stay right.
 *	  - Digits, if the collation is numeric.  The table has none then.
 *	  - Options that GsIcuOptions does not have: such collations have no table.
 *	  A character is learnt only if its key can be taken apart, and if what was learnt gives
 *	  ICU's key of the character among others.  Each table is tried on random texts, which
 *	  proves that this ICU library composes keys by these rules.
 *
 * Tests: unit/plain/test_key_icu, regress/keys_icu
 *
 *-------------------------------------------------------------------------
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "key/key_icu_table.h"
#include "key/key_prove.h"

/* The most common weights of a character at a level, before and after its other weights. */
#define MAX_COMMON				7

/* Sizes of the texts from which characters are learnt, and of their keys. */
#define SAMPLE_BYTES			1024
#define SAMPLE_KEY_BYTES		4096

/* Ways to read a key: is the lead byte compressed, and does each lower level end with a count? */
#define READING_WAYS			8

/* The proof. */
#define PROOF_CHARACTERS		300
#define PROOF_TEXTS				300

/* A table is of use only if it knows this many ASCII characters. */
#define MIN_ASCII				50

typedef enum LeadKind
{
	LEAD_UNKNOWN,
	LEAD_COMPRESSED,
	LEAD_WHOLE
} LeadKind;

/* A character is tried among these, which have weights of each kind. */
static const uint32_t companions[] = {
	'a', 'Z', '-', '/', ' ', '$', '5', 0xe9, 0xc4, 0x416, 0x3b1, 0x4e2d
};
#define N_COMPANIONS			(sizeof(companions) / sizeof(companions[0]))

struct GsIcuTable
{
	GsIcuOptions options;
	GsIcuSortKey sort_key;
	void	   *arg;
	uint8_t		lead_kinds[256];	/* a LeadKind for each lead byte of primary weights */
	uint32_t	companions[N_COMPANIONS];	/* those of the above that are learnt */
	int			n_companions;
	GsIcuCharacters *characters;	/* with all pages */
};

typedef struct Range
{
	uint32_t	first;
	uint32_t	last;
} Range;

static const GsTextCounts secondary_counts = {0x05, 0x45, 0x21};
static const GsTextCounts tertiary_counts[] = {
	[GS_ICU_CASE_OFF] = {0x05, 0xc5, 0x61},
	[GS_ICU_LOWER_FIRST] = {0x05, 0x45, 0x21},
	[GS_ICU_UPPER_FIRST] = {0x85, 0xc5, 0x21}
};

static bool is_learnt(GsIcuTable *table, uint32_t c);

/* Returns the bytes of a table with n_pages. */
static size_t
table_bytes(uint32_t n_pages)
{
	return offsetof(GsIcuCharacters, pages) + n_pages * sizeof(GsIcuCharacter[GS_ICU_PAGE]);
}

GsIcuTable *
gs_icu_table_create(const GsIcuOptions *options, GsIcuSortKey sort_key, void *arg)
{
	GsIcuTable *table = calloc(1, sizeof(GsIcuTable));

	/* the system provides pages when they are used */
	if (table == NULL || (table->characters = calloc(1, table_bytes(GS_ICU_PAGES))) == NULL)
	{
		free(table);
		return NULL;
	}
	table->options = *options;
	table->sort_key = sort_key;
	table->arg = arg;
	table->characters->text.kind = GS_TEXT_ICU;
	table->characters->text.levels = (uint8_t) options->levels;
	table->characters->counts[0] = secondary_counts;
	table->characters->counts[1] = tertiary_counts[options->case_first];
	for (int i = 0; i < GS_ICU_PAGES; i++)
		table->characters->page_of[i] = (uint16_t) (i + 1);
	return table;
}

void
gs_icu_table_free(GsIcuTable *table)
{
	free(table->characters);
	free(table);
}

/*
 * May the table have the character?  Each range contains assigned characters of combining class 0 only, as
 * of Unicode 7.
 */
static bool
may_be_learnt(const GsIcuTable *table, uint32_t c)
{
	static const Range ranges[] = {
		{0x0001, 0x02ff},		/* Latin, phonetics */
		{0x0370, 0x0377}, {0x037a, 0x037e}, {0x0384, 0x038a}, {0x038e, 0x03a1},
		{0x03a3, 0x0482},		/* Greek, Cyrillic */
		{0x048a, 0x052f}, {0x0531, 0x0556}, {0x0561, 0x0587},	/* Armenian */
		{0x05d0, 0x05ea},		/* Hebrew letters */
		{0x0620, 0x064a}, {0x0660, 0x066f}, {0x0671, 0x06d3},	/* Arabic letters */
		{0x10d0, 0x10ff},		/* Georgian */
		{0x1e00, 0x1f15},		/* Latin, Greek */
		{0x2000, 0x205e}, {0x20a0, 0x20ba}, {0x2100, 0x2189},
		{0x2190, 0x23f3}, {0x2460, 0x26ff},
		{0x3000, 0x3029}, {0x3041, 0x3096}, {0x30a0, 0x30ff},	/* kana */
		{0x3105, 0x312d}, {0x3131, 0x318e},
		{0x3400, 0x4db5}, {0x4e00, 0x9fcc}, /* ideographs */
		{0xac00, 0xd7a3},		/* Hangul syllables */
		{0xff01, 0xff9d}		/* fullwidth and halfwidth forms */
	};

	if (table->options.numeric &&
		((c >= '0' && c <= '9') || (c >= 0x0660 && c <= 0x0669) || (c >= 0xff10 && c <= 0xff19)))
		return false;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* Returns a character's place in the table; NULL: it cannot have one. */
static GsIcuCharacter *
find_character(GsIcuTable *table, uint32_t c)
{
	if (c >= GS_ICU_PAGES * GS_ICU_PAGE || !may_be_learnt(table, c))
		return NULL;
	if (c < GS_TEXT_ASCII)
		return &table->characters->bytes[c];
	return &table->characters->pages[c / GS_ICU_PAGE][c % GS_ICU_PAGE];
}

/*
 * Pairs of ASCII characters are kept.  Of other pairs, one character that is not ASCII is refused,
 * preferably the second, which mostly is rarer.  Pairs need no refusal if one of their characters is never
 * learnt.  Most such pairs contain combining marks, or U+FDD1, which begins the contractions of the
 * scripts' index characters.
 */
bool
gs_icu_table_forbid(GsIcuTable *table, uint32_t first, uint32_t second)
{
	uint32_t	refused = second >= GS_TEXT_ASCII ? second : first;
	GsIcuCharacter  *character;

	if (!may_be_learnt(table, first) || !may_be_learnt(table, second))
		return true;
	if (first < GS_TEXT_ASCII && second < GS_TEXT_ASCII)
	{
		table->characters->text.pairs[second][first >> 6] |= UINT64_C(1) << (first & 63);
		return true;
	}
	character = find_character(table, refused);
	if (character == NULL)
		return false;
	character->state = GS_ICU_REFUSED;
	return true;
}

bool
gs_icu_table_put(GsIcuTable *table, const uint8_t *text, size_t len, uint8_t *dst, size_t room,
				 size_t *written)
{
	uint32_t	unknown;
	uint32_t	learnt = 0;

	while (!gs_icu_put(table->characters, text, len, dst, room, written, &unknown))
	{
		if (unknown == 0 || unknown == learnt || !is_learnt(table, unknown))
			return false;
		learnt = unknown;
	}
	return true;
}

/* ---- learning ---- */

static inline bool
is_count(const GsTextCounts *counts, uint8_t byte)
{
	return byte >= counts->low && byte <= counts->high;
}

/*
 * Takes apart what a character contributes to a level.  If the last byte behind other weights may be a
 * count or a weight, counted_end tells which it is.
 */
static bool
read_weights(GsIcuWeights *weights, const GsTextCounts *counts, const uint8_t *bytes, size_t n,
			 bool counted_end)
{
	uint32_t	before = 0;
	uint32_t	after = 0;

	memset(weights, 0, sizeof(*weights));
	if (n > 0 && is_count(counts, bytes[0]))
	{
		if (n == 1 || bytes[1] < counts->low)
			before = bytes[0] - counts->low + 1u;
		else
			before = counts->high - bytes[0] + 1u;
		bytes++;
		n--;
	}
	if (n > 0 && is_count(counts, bytes[0]))
		return false;
	if (n > 1 && is_count(counts, bytes[n - 1]) && counted_end)
		after = bytes[--n] - counts->low + 1u;
	if (n > GS_ICU_MAX_WEIGHTS || before > MAX_COMMON || after > MAX_COMMON)
		return false;
	weights->before = (uint8_t) before;
	weights->after = (uint8_t) after;
	weights->n = (uint8_t) n;
	weights->less = n > 0 && bytes[0] < counts->low;
	memcpy(weights->bytes, bytes, n);
	return true;
}

static bool
is_common(const GsIcuWeights *weights)
{
	return weights->before == 1 && weights->n == 0;
}

/* A text with ICU's key of it. */
typedef struct Sample
{
	size_t		len;
	size_t		key_len;
	uint32_t	last;			/* the last character; 0: there is none */
	uint8_t		text[SAMPLE_BYTES];
	uint8_t		key[SAMPLE_KEY_BYTES];
} Sample;

/* Appends a character, unless there is no room, or a contraction would begin. */
static void
append_character(const GsIcuTable *table, Sample *sample, uint32_t c)
{
	if (SAMPLE_BYTES - sample->len < 3 || gs_text_is_pair(&table->characters->text, sample->last, c))
		return;
	sample->len += gs_prove_put_utf8(sample->text + sample->len, c);
	sample->last = c;
}

static bool
ask_icu(const GsIcuTable *table, Sample *sample)
{
	return table->sort_key(table->arg, sample->text, sample->len, sample->key, sizeof(sample->key),
						   &sample->key_len);
}

/* Does the table give ICU's key? */
static bool
is_same_key(GsIcuTable *table, const Sample *sample)
{
	uint8_t		key[SAMPLE_KEY_BYTES];
	size_t		len;

	return gs_icu_table_put(table, sample->text, sample->len, key, sizeof(key), &len) &&
		len == sample->key_len && memcmp(key, sample->key, len) == 0;
}

/* Takes a character's key apart in one of the ways to read it.  False: the key cannot be read so. */
static bool
read_character(const GsIcuTable *table, const Sample *alone, int way, GsIcuCharacter *character)
{
	const uint8_t *at = alone->key;
	const uint8_t *end = alone->key + alone->key_len;
	int			levels = table->options.levels;

	memset(character, 0, sizeof(*character));
	character->state = GS_ICU_LEARNT;
	for (int i = 0; i < levels; i++)
	{
		const uint8_t *bytes = at;
		size_t		n;

		for (n = 0; at < end && at[0] > GS_TEXT_LEVEL_END; n++)
			at++;
		if (at == end || *at++ != (i + 1 < levels ? GS_TEXT_LEVEL_END : GS_TEXT_KEY_END))
			return false;
		if (i == 0)
		{
			if (n > GS_ICU_MAX_PRIMARY)
				return false;
			memcpy(character->primary, bytes, n);
			character->n_primary = (uint8_t) n;
			if (n > 0 && (way & 1))
				character->compressed = bytes[0];
			continue;
		}
		if (!read_weights(&character->lower[i - 1], &table->characters->counts[i - 1], bytes, n,
						  (way >> i) & 1))
			return false;
	}

	/* levels that are not written need any value */
	for (int i = GS_ICU_LOWER_LEVELS; i >= levels; i--)
		character->lower[i - 1].before = 1;
	return at == end;
}

/*
 * Learns a character from ICU's key of it, by trying the ways to read the key.  The right way gives ICU's
 * keys of the character twice in a row, and of the character among others.  All of ICU's keys are requested
 * first.  So if a request fails, even by longjmp(), the character stays refused.
 */
static bool
learn(GsIcuTable *table, GsIcuCharacter *character, uint32_t c)
{
	Sample		alone;
	Sample		twice;
	Sample		among;
	uint8_t    *kind;
	const uint64_t *pairs = table->characters->text.pairs[c % GS_TEXT_ASCII];

	if (character->state == GS_ICU_REFUSED)
		return false;
	character->state = GS_ICU_REFUSED;
	if (!may_be_learnt(table, c))
		return false;
	alone.len = alone.last = twice.len = twice.last = among.len = among.last = 0;
	append_character(table, &alone, c);
	append_character(table, &twice, c);
	append_character(table, &twice, c);
	for (int i = 0; i < table->n_companions; i++)
	{
		append_character(table, &among, table->companions[i]);
		append_character(table, &among, c);
	}
	if (!ask_icu(table, &alone) || !ask_icu(table, &twice) || !ask_icu(table, &among))
		return false;

	for (int way = 0; way < READING_WAYS; way++)
	{
		GsIcuCharacter	learnt;

		if (!read_character(table, &alone, way, &learnt))
			continue;
		*character = learnt;
		if (is_same_key(table, &twice) && is_same_key(table, &among))
			break;
		character->state = GS_ICU_REFUSED;
	}
	if (character->state == GS_ICU_REFUSED || character->n_primary == 0)
		return character->state != GS_ICU_REFUSED;

	/* all weights of a lead byte are compressed, or none is */
	kind = &table->lead_kinds[character->primary[0]];
	if (*kind == LEAD_UNKNOWN)
		*kind = character->compressed != 0 ? LEAD_COMPRESSED : LEAD_WHOLE;
	else if (*kind != (character->compressed != 0 ? LEAD_COMPRESSED : LEAD_WHOLE))
	{
		character->state = GS_ICU_REFUSED;
		return false;
	}

	if (c < GS_TEXT_ASCII && (pairs[0] | pairs[1]) == 0 &&
		is_common(&character->lower[0]) && is_common(&character->lower[1]))
		character->state = GS_ICU_PLAIN;
	return true;
}

/* ---- the proof ---- */

/* Is the character in the table? */
static bool
is_learnt(GsIcuTable *table, uint32_t c)
{
	GsIcuCharacter  *character = find_character(table, c);

	return character != NULL &&
		(character->state >= GS_ICU_LEARNT || learn(table, character, c));
}

/* Every other text has runs of up to 200 of one character, so that counts reach the ends of their ranges. */
bool
gs_icu_table_prove(GsIcuTable *table)
{
	static const Range ranges[] = {
		{0x20, 0x7e}, {0xc0, 0xff}, {0x3b1, 0x3c9}, {0x410, 0x44f}, {0x3042, 0x304f},
		{0x4e00, 0x4e0f}, {0xac00, 0xac0f}
	};
	uint32_t	alphabet[PROOF_CHARACTERS];
	uint32_t	n_ascii = 0;
	uint32_t	n = 0;
	uint64_t	random = 1;

	for (size_t i = 0; i < N_COMPANIONS; i++)
		if (is_learnt(table, companions[i]))
			table->companions[table->n_companions++] = companions[i];
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
	{
		for (uint32_t c = ranges[i].first; c <= ranges[i].last && n < PROOF_CHARACTERS; c++)
			if (is_learnt(table, c))
				alphabet[n++] = c;
		if (i == 0)
			n_ascii = n;
	}
	if (n_ascii < MIN_ASCII)
		return false;

	for (int i = 0; i < PROOF_TEXTS; i++)
	{
		Sample		sample = {0};
		uint32_t	n_used = i % 4 < 2 ? n_ascii : n;

		for (uint32_t parts = gs_prove_random(&random, 24); parts > 0; parts--)
		{
			uint32_t	c = alphabet[gs_prove_random(&random, n_used)];
			uint32_t	run = i % 2 == 0 || gs_prove_random(&random, 8) > 0 ? 1 :
				gs_prove_random(&random, 200);

			for (; run > 0; run--)
				append_character(table, &sample, c);
		}
		if (!ask_icu(table, &sample) || !is_same_key(table, &sample))
			return false;
	}
	return true;
}

/* ---- for devices ---- */

/* Returns a character's bound (text_key.h). */
static uint32_t
character_bound(const GsIcuCharacters *characters, const GsIcuCharacter *character)
{
	uint32_t	bound;

	if (character->state < GS_ICU_LEARNT)
		return GS_BOUND_HARD;

	/* a byte ends a run of weights with a compressed lead byte */
	bound = 16u * (character->n_primary + (character->compressed != 0));
	for (int i = 0; i < GS_ICU_LOWER_LEVELS; i++)
	{
		const GsIcuWeights *weights = &character->lower[i];
		uint32_t	max = characters->counts[i].max;

		bound += (weights->before + weights->after) * ((16 + max - 1) / max);
		bound += weights->n > 0 ? 16u + 16u * weights->n : 0;
	}
	return bound;
}

void
gs_icu_set_bounds(GsIcuCharacters *characters)
{
	memset(characters->text.narrow, 0xff, sizeof(characters->text.narrow));
	memset(characters->text.wide, 0xff, sizeof(characters->text.wide));
	for (uint32_t c = 1; c < GS_TEXT_ASCII; c++)
	{
		bool		first = false;

		for (uint32_t second = 0; second < GS_TEXT_ASCII; second++)
			first |= gs_text_is_pair(&characters->text, c, second);
		characters->text.narrow[c] =
			(uint16_t) (character_bound(characters, &characters->bytes[c]) | (first ? GS_BOUND_FIRST : 0));
	}
	for (uint32_t c = GS_TEXT_ASCII; c < GS_ICU_PAGES * GS_ICU_PAGE; c++)
	{
		uint32_t	page = characters->page_of[c / GS_ICU_PAGE];
		uint8_t		text[4];
		size_t		len = gs_prove_put_utf8(text, c);
		uint16_t   *wide = &characters->text.wide[gs_text_wide(text[0], text[1])];

		/* the first character of a bound resets HARD */
		if (len == 2 || (c & 0x3f) == 0)
			*wide = 0;
		gs_text_add_bound(&characters->text, text, len, page == 0 ? GS_BOUND_HARD :
						  character_bound(characters, &characters->pages[page - 1][c % GS_ICU_PAGE]));
	}
	gs_text_offer(&characters->text, true, GS_ICU_MAX_BYTES);
}

GsIcuCharacters *
gs_icu_table_offer(GsIcuTable *table)
{
	const GsIcuCharacters *from = table->characters;
	bool		used[GS_ICU_PAGES] = {false};
	uint32_t	n_pages = 0;
	GsIcuCharacters *characters;

	/* ideographs and Hangul syllables are too many to be learnt in advance */
	for (uint32_t c = 1; c < 0x3400; c++)
		if (is_learnt(table, c) && c >= GS_TEXT_ASCII && !used[c / GS_ICU_PAGE])
		{
			used[c / GS_ICU_PAGE] = true;
			n_pages++;
		}
	characters = calloc(1, table_bytes(n_pages));
	if (characters == NULL)
		return NULL;
	memcpy(characters, from, offsetof(GsIcuCharacters, pages));
	memset(characters->page_of, 0, sizeof(characters->page_of));
	n_pages = 0;
	for (uint32_t i = 0; i < GS_ICU_PAGES; i++)
		if (used[i])
		{
			memcpy(characters->pages[n_pages++], from->pages[i], sizeof(from->pages[i]));
			characters->page_of[i] = (uint16_t) n_pages;
		}
	characters->text.size = table_bytes(n_pages);
	gs_icu_set_bounds(characters);
	return characters;
}
