/*-------------------------------------------------------------------------
 *
 * key_icu_prove.c
 *	  Are the sort keys of an ICU collation in the order of ICU's comparison?
 *
 * Both read the same collation elements.  But ICU's comparison takes four short cuts:
 *
 *	  - It compares characters up to U+017F, and from U+2000 to U+203F, by tables of its own.  If scripts or
 *		signs are reordered, some of these tables are wrong (kr-currency).  They have one entry a character.
 *		So all pairs of these characters are compared.
 *	  - It skips the common prefix of the texts, and steps back in front of characters that belong to what is
 *		before them.  Behind ignored signs, with backward accents, and in numbers of tailored languages it
 *		steps back too little: such collations are refused.  It also does not step back in front of marks
 *		that are newer than its list.  ucol_setOffset() steps back by the same list, so it tells which marks
 *		are lost.  A text with a lost mark has no key, also without normalization: a contraction may reach
 *		over the mark.
 *	  - In numbers, it steps back in front of ASCII digits, but not of all others.  If numbers are compared,
 *		a text with other digits has no key.
 *	  - With normalization, it puts marks into canonical order only in parts of a text that need it.  Such a
 *		part may begin behind the common prefix.  A text that needs it has no key.
 *
 * Sort keys write a run of characters without an accent, or in lower case, as its length.  With a case level
 * and upper case first some of these lengths are wrong.  So the proof compares texts that differ behind runs
 * of all lengths.
 *
 * Nothing here assumes that the comparison is transitive: each pair is compared by itself.  Random pairs come
 * last: Latin texts, contractions, marks, numbers, ignored characters and other scripts.
 *
 * Tests: unit/plain/test_key_icu_prove, regress/keys_icu_proof
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "key/key_icu_prove.h"
#include "key/key_prove.h"

/* UProperty: the combining classes that a character's decomposition begins and ends with, and digits */
#define LEADING_CLASS			0x1010
#define TRAILING_CLASS			0x1011
#define NUMERIC_TYPE			0x1009
#define DECIMAL_DIGIT			1

/* Marks begin here, and bytes less than this begin no mark. */
#define FIRST_MARK				0x300
#define FIRST_MARK_BYTE			0xcc

/* A mark of the highest class, 240. */
#define LAST_MARK				0x345

/* The characters that ICU compares by tables of its own. */
#define LATIN_END				0x180
#define SIGNS					0x2000
#define SIGNS_END				0x2040
#define N_FAST					(LATIN_END - 1 + SIGNS_END - SIGNS)
#define FAST_KEY_BYTES			48

/* Runs are written in bytes for up to 13, 33 or 42 characters. */
#define RUN_BYTES				140

/* Each random pair takes some 4 microseconds. */
#define PAIRS					8000
#define PART_CHARACTERS			3
#define TEXT_BYTES				(3 * PART_CHARACTERS * 4)
#define KEY_BYTES				1024

/* ---- marks ---- */

static bool
is_among(const uint64_t *set, uint32_t c)
{
	return c < GS_ICU_MARKS && ((set[c / 64] >> (c % 64)) & 1) != 0;
}

/* Offset 2 lies between two characters that canonical ordering exchanges, so ICU does not stay there. */
static bool
steps_back(const GsIcuCharacterCalls *calls, const void *root, uint32_t mark)
{
	uint16_t	chars[4] = {'a', LAST_MARK, (uint16_t) mark, 0};
	int			status = 0;
	void	   *elements;
	int32_t		offset;

	if (mark >= 0x10000)
	{
		chars[2] = (uint16_t) (0xd7c0 + (mark >> 10));
		chars[3] = (uint16_t) (0xdc00 | (mark & 0x3ff));
	}
	elements = calls->open_elements(root, chars, chars[3] != 0 ? 4 : 3, &status);
	if (elements == NULL)
		return false;
	calls->set_offset(elements, 2, &status);
	offset = calls->get_offset(elements);
	calls->close_elements(elements);
	return status <= 0 && offset < 2;
}

void
gs_icu_find_marks(GsIcuMarks *marks, const GsIcuCharacterCalls *calls, const void *root)
{
	memset(marks, 0, sizeof(*marks));
	for (uint32_t c = FIRST_MARK; c < GS_ICU_MARKS; c++)
	{
		uint64_t	bit = UINT64_C(1) << (c % 64);

		if (calls->get_property((int32_t) c, NUMERIC_TYPE) == DECIMAL_DIGIT)
			marks->digits[c / 64] |= bit;
		if (calls->get_property((int32_t) c, LEADING_CLASS) == 0)
			continue;
		marks->marks[c / 64] |= bit;
		if (c != LAST_MARK && !steps_back(calls, root, c))
			marks->lost[c / 64] |= bit;
	}
}

/* Reads a character that ends before len, in valid UTF-8. */
static uint32_t
read_utf8(const uint8_t *text, size_t len)
{
	uint32_t	c = text[0] < 0x80 ? text[0] : text[0] < 0xe0 ? text[0] & 0x1fu :
		text[0] < 0xf0 ? text[0] & 0x0fu : text[0] & 0x07u;

	for (size_t i = 1; i < len && (text[i] & 0xc0) == 0x80; i++)
		c = c << 6 | (text[i] & 0x3fu);
	return c;
}

/* Marks are in canonical order if none is behind a character of a greater class. */
bool
gs_icu_has_key(const GsIcuMarks *marks, const GsIcuCharacterCalls *calls, const GsIcuHabits *habits,
			   const uint8_t *text, size_t len)
{
	for (size_t at = 0; at < len; at++)
	{
		size_t		before = at;
		uint32_t	c;

		if (text[at] < FIRST_MARK_BYTE)
			continue;
		c = read_utf8(text + at, len - at);
		if (is_among(marks->lost, c) || (habits->numeric && is_among(marks->digits, c)))
			return false;
		if (!habits->normalizes || at == 0 || !is_among(marks->marks, c))
			continue;
		while (--before > 0 && (text[before] & 0xc0) == 0x80)
			;
		if (calls->get_property((int32_t) read_utf8(text + before, at - before), TRAILING_CLASS) >
			calls->get_property((int32_t) c, LEADING_CLASS))
			return false;
	}
	return true;
}

/* ---- pairs ---- */

static int
compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	int			order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

/* Do keys order two texts as the comparison does? */
static bool
agree(const GsIcuProof *proof, const uint8_t *const texts[2], const size_t lens[2],
	  const uint8_t *const keys[2], const size_t key_lens[2])
{
	int			order = compare_bytes(keys[0], key_lens[0], keys[1], key_lens[1]);
	int			expected = proof->compare(proof->arg, texts[0], lens[0], texts[1], lens[1]);

	if (order == 0 && proof->deterministic)
		order = compare_bytes(texts[0], lens[0], texts[1], lens[1]);
	return (order < 0) == (expected < 0) && (order > 0) == (expected > 0);
}

static bool
texts_agree(const GsIcuProof *proof, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	uint8_t		keys[2][KEY_BYTES];
	size_t		key_lens[2];

	return proof->sort_key(proof->arg, a, a_len, keys[0], KEY_BYTES, &key_lens[0]) &&
		proof->sort_key(proof->arg, b, b_len, keys[1], KEY_BYTES, &key_lens[1]) &&
		agree(proof, (const uint8_t *const[]){a, b}, (const size_t[]){a_len, b_len},
			  (const uint8_t *const[]){keys[0], keys[1]}, key_lens);
}

/* The order of the sort keys of two short texts. */
static int
compare_keys(const GsIcuProof *proof, const char *a, const char *b)
{
	uint8_t		keys[2][KEY_BYTES];
	size_t		lens[2] = {0, 0};

	(void) proof->sort_key(proof->arg, (const uint8_t *) a, strlen(a), keys[0], KEY_BYTES, &lens[0]);
	(void) proof->sort_key(proof->arg, (const uint8_t *) b, strlen(b), keys[1], KEY_BYTES, &lens[1]);
	return compare_bytes(keys[0], lens[0], keys[1], lens[1]);
}

/* Keys of U+0301 and U+0323, in both orders, and of numbers. */
void
gs_icu_find_habits(const GsIcuProof *proof, GsIcuHabits *habits)
{
	habits->normalizes = compare_keys(proof, "a\xcc\x81\xcc\xa3", "a\xcc\xa3\xcc\x81") == 0;
	habits->numeric = compare_keys(proof, "9", "10") < 0;
}

static bool
fast_characters_agree(const GsIcuProof *proof)
{
	uint8_t		texts[N_FAST][4];
	uint8_t		keys[N_FAST][FAST_KEY_BYTES];
	size_t		lens[N_FAST];
	size_t		key_lens[N_FAST];

	for (uint32_t i = 0; i < N_FAST; i++)
	{
		lens[i] = gs_prove_put_utf8(texts[i], i < LATIN_END - 1 ? i + 1 : i - (LATIN_END - 1) + SIGNS);
		if (!proof->sort_key(proof->arg, texts[i], lens[i], keys[i], FAST_KEY_BYTES, &key_lens[i]))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (!agree(proof, (const uint8_t *const[]){texts[i], texts[j]},
					   (const size_t[]){lens[i], lens[j]}, (const uint8_t *const[]){keys[i], keys[j]},
					   (const size_t[]){key_lens[i], key_lens[j]}))
				return false;
	}
	return true;
}

/* Texts that differ in a letter, its accent or its case, behind a run. */
static bool
runs_agree(const GsIcuProof *proof)
{
	static const char *const runs[] = {"a", "-", "\xc3\xa4"};
	static const char *const ends[][2] = {{"ox", "Ox"}, {"ox", "\xc3\xb6x"}, {"ox", "px"}};

	for (size_t run = 0; run < sizeof(runs) / sizeof(runs[0]); run++)
		for (size_t end = 0; end < sizeof(ends) / sizeof(ends[0]); end++)
		{
			uint8_t		texts[2][RUN_BYTES];
			size_t		len = 0;
			size_t		one = strlen(runs[run]);

			for (; len + one + 3 <= RUN_BYTES; len += one)
			{
				for (int i = 0; i < 2; i++)
					memcpy(texts[i] + len, ends[end][i], strlen(ends[end][i]));
				if (!texts_agree(proof, texts[0], len + strlen(ends[end][0]),
								 texts[1], len + strlen(ends[end][1])))
					return false;
				for (int i = 0; i < 2; i++)
					memcpy(texts[i] + len, runs[run], one);
			}
		}
	return true;
}

/* Writes random characters.  The first ranges are Latin. */
static size_t
put_random(uint64_t *random, bool latin, uint8_t *dst)
{
	static const uint32_t ranges[][2] = {
		{'a', 'z'}, {'A', 'Z'}, {1, LATIN_END - 1}, {' ', '~'}, {SIGNS, SIGNS_END - 1},
		{FIRST_MARK, LAST_MARK}, {FIRST_MARK, 0x36f}, {0x370, 0x52f}, {0x591, 0x6ff}, {0x900, 0xfff},
		{0x1000, 0x1fff}, {0x20a0, 0x20f0}, {1, 0x33ff}, {0x3041, 0x30ff}, {0x4e00, 0x4eff},
		{0xac00, 0xacff}, {0xff01, 0xff9d}, {0x1d160, 0x1d1ad}, {0x1f600, 0x1f64f}
	};
	size_t		len = 0;

	for (uint32_t n = gs_prove_random(random, PART_CHARACTERS + 1); n > 0; n--)
	{
		uint32_t	n_ranges = latin ? 5 : sizeof(ranges) / sizeof(ranges[0]);
		const uint32_t *range = ranges[gs_prove_random(random, n_ranges)];

		len += gs_prove_put_utf8(dst + len, range[0] + gs_prove_random(random, range[1] - range[0] + 1));
	}
	return len;
}

/* The texts of a pair begin and end with the same characters.  Half of them is Latin. */
static bool
random_texts_agree(const GsIcuProof *proof)
{
	uint64_t	random = 1;

	for (int i = 0; i < PAIRS; i++)
	{
		uint8_t		texts[2][TEXT_BYTES];
		uint8_t		end[TEXT_BYTES];
		size_t		begin_len = put_random(&random, i % 2 == 0, texts[0]);
		size_t		end_len = put_random(&random, i % 2 == 0, end);
		size_t		lens[2];

		memcpy(texts[1], texts[0], begin_len);
		for (int j = 0; j < 2; j++)
		{
			lens[j] = begin_len + put_random(&random, i % 2 == 0, texts[j] + begin_len);
			memcpy(texts[j] + lens[j], end, end_len);
			lens[j] += end_len;
		}
		if (proof->has_key(proof->arg, texts[0], lens[0]) && proof->has_key(proof->arg, texts[1], lens[1]) &&
			!texts_agree(proof, texts[0], lens[0], texts[1], lens[1]))
			return false;
	}
	return true;
}

const char *
gs_icu_prove(const GsIcuProof *proof)
{
	/* marks; 101 and 12 in digits of Arabic, Devanagari, full width */
	static const char *const pairs[][3] = {
		{"\xe2\x83\x9c\xe2\x83\x9e", "\xe2\x83\x9c", "it compares accents backward"},
		{"\xd9\xa1\xd9\xa0\xd9\xa1", "\xd9\xa1\xd9\xa2", NULL},
		{"\xe0\xa5\xa7\xe0\xa5\xa6\xe0\xa5\xa7", "\xe0\xa5\xa7\xe0\xa5\xa8", NULL},
		{"\xef\xbc\x91\xef\xbc\x90\xef\xbc\x91", "\xef\xbc\x91\xef\xbc\x92", NULL}
	};
	uint8_t		blank[KEY_BYTES];
	size_t		len;

	/* a blank that is ignored has nothing at the first level */
	if (!proof->sort_key(proof->arg, (const uint8_t *) " ", 1, blank, KEY_BYTES, &len) ||
		blank[0] <= GS_TEXT_LEVEL_END)
		return "it ignores punctuation";
	if (compare_keys(proof, "a", "a\x01") != 0)
		return "it compares code points";
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (!texts_agree(proof, (const uint8_t *) pairs[i][0], strlen(pairs[i][0]),
						 (const uint8_t *) pairs[i][1], strlen(pairs[i][1])))
			return pairs[i][2] != NULL ? pairs[i][2] : "ICU compares numbers in another order than sort keys";
	if (!fast_characters_agree(proof))
		return "ICU compares Latin letters, digits and signs in another order than sort keys";
	if (!runs_agree(proof))
		return "ICU compares texts behind long runs in another order than sort keys";
	return random_texts_agree(proof) ? NULL : "ICU compares texts in another order than sort keys";
}
