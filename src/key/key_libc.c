/*-------------------------------------------------------------------------
 *
 * key_libc.c
 *	  Keys of text under libc collations (key_libc.h).
 *
 * strxfrm takes about two microseconds for a text of 64 bytes, as it computes
 * all levels, and only the first is wanted.  For texts of ASCII characters
 * it is the concatenation of the characters' own level-1 weights.  So a table
 * of these weights, learnt from strxfrm of single characters, replaces strxfrm.  Pairs
 * of letters that are one letter of their own (Czech "ch", Danish "aa") show
 * as pairs whose level 1 is not the concatenation; they are found by trying
 * all pairs once.  Texts with such a pair, and texts that are not ASCII, go to
 * strxfrm.
 *
 * Hangul, emoji and combining marks have no weight of level 1 at all.  If a
 * large part of a text is such characters, level 1 says too little: many
 * texts agree on it, and comparing them is expensive, as strcoll takes 7 to 50
 * microseconds for ten syllables.  Then the other levels follow in the key.
 *
 * A wrong guess here costs time, never correctness: see key_libc.h.
 *
 * Tests: regress/keys_libc, regress/libc_long
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <locale.h>
#include <string.h>

#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "key/key_encode.h"
#include "key/key_libc.h"

/* What ends level 1 in glibc's keys, and in ours. */
#define LEVEL_END		0x01

/*
 * Of longer texts the first bytes have to do for a guess.  What is cut off
 * there only makes texts equal that agree so far.
 */
#define LEVEL_MAX		1024
#define GUESS_TEXT		1024

/* The rest follows where one character in so many has no weight of level 1. */
#define WEIGHTLESS_SHARE 8

/* A character's level-1 weight in the table. */
#define WEIGHT_MAX		7

typedef struct Weight
{
	uint8		len;
	uint8		bytes[WEIGHT_MAX];
} Weight;

struct GsLibcCollation
{
	Oid			oid;
	bool		usable;
	locale_t	locale;
	char	   *name;
	bool		has_table;
	Weight		weights[128];
	/* bit b of pairs[a]: "ab" is not a's weight followed by b's */
	uint64		pairs[128][2];
	/* characters up to U+FFFF: is it known, and the answer */
	uint64	   *weightless_known;
	uint64	   *weightless;
	GsLibcCollation *next;
};

static GsLibcCollation *collations = NULL;

/* strxfrm's level 1 of a short string; false where there is no room for it. */
static bool
learn_level_1(locale_t locale, const char *string, Weight *weight)
{
	char		key[256];
	size_t		len = strxfrm_l(key, string, sizeof(key), locale);
	char	   *end;

	if (len >= sizeof(key))
		return false;
	end = memchr(key, LEVEL_END, len);
	len = end ? (size_t) (end - key) : len;
	if (len > 2 * WEIGHT_MAX)
		return false;
	weight->len = Min(len, WEIGHT_MAX);
	memcpy(weight->bytes, key, weight->len);
	return len <= WEIGHT_MAX;
}

/* Does a pair of characters have just the weights of both? */
static bool
is_concatenation(const GsLibcCollation *collation, int a, int b)
{
	char		pair[3] = {(char) a, (char) b, 0};
	char		key[256];
	size_t		len = strxfrm_l(key, pair, sizeof(key), collation->locale);
	const Weight *x = &collation->weights[a];
	const Weight *y = &collation->weights[b];
	char	   *end;

	if (len >= sizeof(key))
		return false;
	end = memchr(key, LEVEL_END, len);
	len = end ? (size_t) (end - key) : len;
	return len == (size_t) x->len + y->len &&
		memcmp(key, x->bytes, x->len) == 0 &&
		memcmp(key + x->len, y->bytes, y->len) == 0;
}

static bool
is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
learn_table(GsLibcCollation *collation)
{
	for (int c = 1; c < 128; c++)
	{
		char		string[2] = {(char) c, 0};

		if (!learn_level_1(collation->locale, string, &collation->weights[c]))
			return;
	}
	for (int a = 'A'; a <= 'z'; a++)
		for (int b = 'A'; b <= 'z'; b++)
			if (is_letter(a) && is_letter(b) && !is_concatenation(collation, a, b))
				collation->pairs[a][b >> 6] |= UINT64CONST(1) << (b & 63);

	/* in a locale without rules keys are the texts, where this is no end */
	for (int a = 0; a < 128; a++)
		collation->pairs[a][0] |= UINT64CONST(1) << LEVEL_END;
	collation->has_table = true;
}

const GsLibcCollation *
gs_libc_collation(Oid oid, const char *locale)
{
	GsLibcCollation *collation;

	for (collation = collations; collation; collation = collation->next)
		if (collation->oid == oid)
			return collation->usable ? collation : NULL;

	collation = MemoryContextAllocZero(TopMemoryContext, sizeof(GsLibcCollation));
	collation->oid = oid;
	collation->name = MemoryContextStrdup(TopMemoryContext, locale);
	collation->locale = newlocale(LC_COLLATE_MASK, locale, (locale_t) 0);
	collation->usable = collation->locale != (locale_t) 0;
	collation->next = collations;
	collations = collation;
	if (!collation->usable)
		return NULL;
	learn_table(collation);
	if (GetDatabaseEncoding() == PG_UTF8)
	{
		collation->weightless_known = MemoryContextAllocZero(TopMemoryContext, 0x10000 / 8);
		collation->weightless = MemoryContextAllocZero(TopMemoryContext, 0x10000 / 8);
	}
	return collation;
}

const char *
gs_libc_locale_name(const GsLibcCollation *collation)
{
	return collation->name;
}

/* Append bytes as far as there is room; false where they did not all fit. */
static inline bool
append(uint8 *dst, size_t room, size_t *used, const uint8 *bytes, size_t len)
{
	size_t		n = Min(len, room - *used);

	gs_key_copy(dst + *used, bytes, n);
	*used += n;
	return n == len;
}

static bool
append_byte(uint8 *dst, size_t room, size_t *used, uint8 byte)
{
	return append(dst, room, used, &byte, 1);
}

/* Goes before a text that begins with what a rest begins with. */
static bool
append_empty_rest(uint8 *dst, size_t room, size_t *used)
{
	return append_byte(dst, room, used, LEVEL_END) && append_byte(dst, room, used, LEVEL_END);
}

/*
 * Level 1 by the table, as far as there is room.  Returns false where the
 * text is not for the table.
 */
static inline bool
append_by_table(const GsLibcCollation *collation, uint8 *dst, size_t room, size_t *used,
				const uint8 *text, size_t len)
{
	size_t		at = *used;
	uint8		previous = 0;

	if (!collation->has_table)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		uint8		c = text[i];
		const Weight *weight;

		if (c >= 128 || (collation->pairs[previous][c >> 6] >> (c & 63)) & 1)
			return false;
		previous = c;
		weight = &collation->weights[c];
		if (likely(room - at >= 8))
			memcpy(dst + at, weight->bytes, 7);
		else if (room - at < weight->len)
			break;
		else
			memcpy(dst + at, weight->bytes, weight->len);
		at += weight->len;
	}
	*used = at;
	return true;
}

/* Has a character, len bytes of UTF-8, no weight of level 1? */
static bool
is_weightless(const GsLibcCollation *collation, const uint8 *character, int len)
{
	char		string[MAX_MULTIBYTE_CHAR_LEN + 1];
	char		key[256];
	uint32		c;
	uint64		bit;

	if (len > 3)
		return true;			/* mostly emoji; whoever asks goes by the share */
	c = utf8_to_unicode(character) & 0xffff;
	bit = UINT64CONST(1) << (c & 63);
	if (!(collation->weightless_known[c >> 6] & bit))
	{
		memcpy(string, character, len);
		string[len] = '\0';
		key[0] = LEVEL_END;
		if (strxfrm_l(key, string, sizeof(key), collation->locale) < sizeof(key) &&
			(key[0] == LEVEL_END || key[0] == '\0'))
			collation->weightless[c >> 6] |= bit;
		collation->weightless_known[c >> 6] |= bit;
	}
	return (collation->weightless[c >> 6] & bit) != 0;
}

/* Does level 1 say too little of a text? */
static bool
is_mostly_weightless(const GsLibcCollation *collation, const uint8 *text, size_t len)
{
	size_t		n = 0;
	size_t		weightless = 0;

	if (collation->weightless_known == NULL)
		return false;
	for (size_t i = 0; i < len; n++)
	{
		int			bytes = pg_utf_mblen(text + i);

		if (bytes > 1 && i + bytes <= len && is_weightless(collation, text + i, bytes))
			weightless++;
		i += bytes;
	}
	return weightless * WEIGHTLESS_SHARE >= n;
}

/* Level 1 by strxfrm, and the rest where level 1 says too little. */
static bool
append_by_strxfrm(const GsLibcCollation *collation, uint8 *dst, size_t room, size_t *used,
				  const uint8 *text, size_t len)
{
	char		string[GUESS_TEXT + 1];
	char		stack_key[4096];
	char	   *key = stack_key;
	size_t		size = sizeof(stack_key);
	size_t		key_len;
	size_t		guess_len = len;
	char	   *end;
	size_t		level_1;
	bool		fits;

	if (len > GUESS_TEXT)
		guess_len = pg_mbcliplen((const char *) text, len, GUESS_TEXT);
	memcpy(string, text, guess_len);
	string[guess_len] = '\0';
	key_len = strxfrm_l(key, string, size, collation->locale);
	if (key_len >= size)
	{
		size = key_len + 1;
		key = palloc(size);
		key_len = strxfrm_l(key, string, size, collation->locale);
	}

	end = memchr(key, LEVEL_END, key_len);
	level_1 = end ? (size_t) (end - key) : key_len;
	fits = append(dst, room, used, (uint8 *) key, Min(level_1, LEVEL_MAX)) &&
		append_byte(dst, room, used, LEVEL_END);
	if (fits && len > 0 &&
		(level_1 == 0 || is_mostly_weightless(collation, text, guess_len)))
	{
		size_t		rest_end = Min(key_len, level_1 + 1 + LEVEL_MAX);

		fits = append_byte(dst, room, used, LEVEL_END);
		for (size_t i = level_1 + 1; i < rest_end && fits; i++)
		{
			uint8		byte = (uint8) key[i];

			if (byte <= 0x02)
				fits = append_byte(dst, room, used, 0x02) &&
					append_byte(dst, room, used, byte + 1);
			else
				fits = append_byte(dst, room, used, byte);
		}
		fits = fits && append_byte(dst, room, used, LEVEL_END);
	}
	else if (fits && len > 0 && text[0] == LEVEL_END)
		fits = append_empty_rest(dst, room, used);
	if (key != stack_key)
		pfree(key);
	return fits;
}

bool
gs_libc_put(const GsLibcCollation *collation, uint8 *dst, size_t room,
			const uint8 *text, size_t len, size_t *written)
{
	bool		fits;

	*written = 0;
	if (append_by_table(collation, dst, Min(room, LEVEL_MAX), written, text, len) &&
		(*written > 0 || len == 0))
	{
		fits = append_byte(dst, room, written, LEVEL_END);

		if (unlikely(len > 0 && text[0] == LEVEL_END))
			fits = fits && append_empty_rest(dst, room, written);
	}
	else
	{
		*written = 0;
		fits = append_by_strxfrm(collation, dst, room, written, text, len);
	}
	fits = fits && append(dst, room, written, text, len);
	return fits && append_byte(dst, room, written, 0);
}
