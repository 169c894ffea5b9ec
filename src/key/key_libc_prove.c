/*-------------------------------------------------------------------------
 *
 * key_libc_prove.c
 *	  Comparing the keys of a libc locale's table with strcoll_l() (key_libc_table.h).
 *
 * The texts consist of the table's own characters and contractions.  Half of the texts are ASCII, as most
 * texts of users are.  Most pairs differ in one or two characters, so that each level decides some pairs.
 *
 * Tests: unit/plain/test_key_libc
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "key/key_libc_table.h"
#include "key/key_prove.h"

/* Each pair takes some 2 microseconds. */
#define PAIRS					20000
#define CHARACTERS				12
#define CHARACTER_BYTES			24
#define TEXT_BYTES				(CHARACTERS * CHARACTER_BYTES + 1)

typedef struct Text
{
	int			n;				/* characters */
	int			len[CHARACTERS];
	uint8_t		characters[CHARACTERS][CHARACTER_BYTES];
} Text;

typedef struct Proof
{
	const GsLibcTable *table;
	locale_t	locale;
	bool		utf8;
	GsLibcScratch *scratch;
	uint64_t	random;
} Proof;

/* Writes a random sequence of the table.  Under UTF-8 it is a character or a contraction. */
static int
choose_character(Proof *proof, bool ascii, uint8_t *dst)
{
	const GsLibcTable *table = proof->table;
	const GsLibcNode *nodes = (const GsLibcNode *) ((const char *) table + table->nodes);
	const uint32_t *children = (const uint32_t *) ((const char *) table + table->children);
	uint32_t	place;
	int			n;

	if (ascii || table->text.levels == 0)
	{
		dst[0] = (uint8_t) (' ' + gs_prove_random(&proof->random, 95));
		return 1;
	}
	do
	{
		dst[0] = (uint8_t) (1 + gs_prove_random(&proof->random, 255));
		place = table->root[dst[0]];
		for (n = 1; place != GS_LIBC_NONE && (place & GS_LIBC_NODE) != 0 && n < CHARACTER_BYTES; n++)
		{
			const GsLibcNode *node = &nodes[place & ~GS_LIBC_NODE];
			uint32_t	child = gs_prove_random(&proof->random, (uint32_t) node->last - node->first + 1);

			if (node->entry != GS_LIBC_NONE && (!proof->utf8 || n > 1 || dst[0] < 0x80) &&
				gs_prove_random(&proof->random, 4) == 0)
				return n;
			dst[n] = (uint8_t) (node->first + child);
			place = children[node->children + child];
		}
	} while (place == GS_LIBC_NONE || (place & GS_LIBC_NODE) != 0 ||
			 (proof->utf8 && n == 1 && dst[0] >= 0x80));
	return n;
}

static size_t
join(const Text *text, char *dst)
{
	size_t		n = 0;

	for (int i = 0; i < text->n; i++)
	{
		memcpy(dst + n, text->characters[i], (size_t) text->len[i]);
		n += (size_t) text->len[i];
	}
	dst[n] = '\0';
	return n;
}

static int
sign(int order)
{
	return (order > 0) - (order < 0);
}

/* Does the table order two texts as PostgreSQL orders them? */
static bool
is_right(Proof *proof, const Text *a, const Text *b)
{
	const Text *texts[2] = {a, b};
	char		strings[2][TEXT_BYTES];
	uint8_t		keys[2][GS_TEXT_KEY_MAX];
	size_t		lens[2];
	int			order;
	int			expected;

	for (int i = 0; i < 2; i++)
	{
		size_t		len = join(texts[i], strings[i]);

		lens[i] = len;
		if (proof->table->text.levels == 0)
			memcpy(keys[i], strings[i], len + 1);
		else if (gs_libc_table_put(proof->table, proof->scratch, (uint8_t *) strings[i], len, keys[i],
								   sizeof(keys[i]), &lens[i]) != GS_LIBC_PUT_ALL)
			return false;
	}
	order = memcmp(keys[0], keys[1], lens[0] < lens[1] ? lens[0] : lens[1]);
	if (order == 0)
		order = (lens[0] > lens[1]) - (lens[0] < lens[1]);
	expected = strcoll_l(strings[0], strings[1], proof->locale);
	if (expected == 0)
		expected = strcmp(strings[0], strings[1]);
	return sign(order) == sign(expected);
}

/* Replaces, removes, or inserts some characters. */
static void
mutate(Proof *proof, Text *text, bool ascii)
{
	for (uint32_t times = 1 + gs_prove_random(&proof->random, 2); times > 0; times--)
	{
		int			at = (int) gs_prove_random(&proof->random, (uint32_t) text->n + 1);
		int			action = (int) gs_prove_random(&proof->random, 3);

		if (action == 0 && text->n < CHARACTERS)
		{
			for (int i = text->n++; i > at; i--)
			{
				text->len[i] = text->len[i - 1];
				memcpy(text->characters[i], text->characters[i - 1], CHARACTER_BYTES);
			}
		}
		else if (at == text->n)
			continue;
		else if (action == 1)
		{
			for (int i = at + 1; i < text->n; i++)
			{
				text->len[i - 1] = text->len[i];
				memcpy(text->characters[i - 1], text->characters[i], CHARACTER_BYTES);
			}
			text->n--;
			continue;
		}
		text->len[at] = choose_character(proof, ascii, text->characters[at]);
	}
}

bool
gs_libc_table_prove(const GsLibcTable *table, locale_t locale, bool utf8, GsLibcScratch *scratch)
{
	Proof		proof = {table, locale, utf8, scratch, 1};
	Text		a;
	Text		b;

	a.n = b.n = 1;
	a.len[0] = b.len[0] = 1;
	for (int x = 1; x < 127; x++)
		for (int y = 1; y < 127; y++)
		{
			a.characters[0][0] = (uint8_t) x;
			b.characters[0][0] = (uint8_t) y;
			if (!is_right(&proof, &a, &b))
				return false;
		}
	for (int i = 0; i < PAIRS; i++)
	{
		bool		ascii = i % 2 == 0;

		a.n = (int) gs_prove_random(&proof.random, i % 8 < 6 ? 7 : CHARACTERS + 1);
		for (int j = 0; j < a.n; j++)
			a.len[j] = choose_character(&proof, ascii, a.characters[j]);
		b = a;
		mutate(&proof, &b, ascii);
		if (!is_right(&proof, &a, &b))
			return false;
	}
	return true;
}
