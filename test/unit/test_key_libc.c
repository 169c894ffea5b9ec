/*-------------------------------------------------------------------------
 *
 * test_key_libc.c
 *	  Keys of text under libc collations (key_libc_table.h) are in the order of strcoll().
 *
 * Random texts of many scripts, with combining marks, contractions, control characters and characters that
 * a locale does not know.  Most pairs differ in one place.  A table with a wrong weight must fail its
 * proof.  Locales that the system lacks are left out, except en_US.utf8 and de_DE.utf8.
 *
 * gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pedantic -Isrc
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/tuple_key.h"
#include "key/key_libc_table.h"

#define MAX_TEXT	256
#define MAX_ENDING	80
#define CANARY		0xa5
#define COUNT(a)	((int) (sizeof(a) / sizeof((a)[0])))

typedef struct Text
{
	size_t		len;
	char		bytes[MAX_TEXT];
} Text;

typedef struct Key
{
	size_t		len;
	uint8_t		bytes[GS_TEXT_KEY_MAX + 1];
} Key;

static int	n_passed;
static int	n_failed;
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static void
check(bool good, const char *locale, const char *what)
{
	if (good)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED: %s: %s\n", locale, what);
	}
}

static uint32_t
below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t) (random_state >> 20) % n;
}

static void
put_utf8(Text *text, uint32_t c)
{
	char	   *at = text->bytes + text->len;

	if (text->len + 5 > MAX_TEXT)
		return;
	if (c < 0x80)
		*at++ = (char) c;
	else if (c < 0x800)
	{
		*at++ = (char) (0xc0 | c >> 6);
		*at++ = (char) (0x80 | (c & 0x3f));
	}
	else if (c < 0x10000)
	{
		*at++ = (char) (0xe0 | c >> 12);
		*at++ = (char) (0x80 | (c >> 6 & 0x3f));
		*at++ = (char) (0x80 | (c & 0x3f));
	}
	else
	{
		*at++ = (char) (0xf0 | c >> 18);
		*at++ = (char) (0x80 | (c >> 12 & 0x3f));
		*at++ = (char) (0x80 | (c >> 6 & 0x3f));
		*at++ = (char) (0x80 | (c & 0x3f));
	}
	*at = '\0';
	text->len = (size_t) (at - text->bytes);
}

/* Locales order these ranges differently.  Characters of a narrow range make texts agree more often. */
static uint32_t
choose_character(int alphabet)
{
	static const uint32_t ranges[][2] = {
		{' ', '~'}, {'a', 'z'}, {'0', '9'}, {'!', '/'}, {0xa1, 0x17f}, {0x300, 0x304},
		{0x01, 0x1f}, {0x7f, 0xa0}, {0x180, 0x24f}, {0x300, 0x36f}, {0x370, 0x3ff}, {0x400, 0x52f},
		{0x590, 0x5f4}, {0x600, 0x6ff}, {0x900, 0x97f}, {0xe00, 0xe7f}, {0xe80, 0xeff}, {0xf00, 0xfff},
		{0x1000, 0x109f}, {0x1100, 0x11ff}, {0x1e00, 0x1fff}, {0x2000, 0x206f}, {0x20d0, 0x21ff},
		{0x3040, 0x30ff}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0xe000, 0xf8ff}, {0xfb00, 0xffff},
		{0x10000, 0x2ffff}, {0xe0100, 0xe01ef}
	};
	const uint32_t *range = ranges[below(alphabet == 0 ? 4 : alphabet == 1 ? 6 : COUNT(ranges))];
	uint32_t	n = range[1] - range[0] + 1;

	return range[0] + below(alphabet == 3 && n > 8 ? 8 : n);
}

static void
make_text(Text *text, int alphabet)
{
	text->len = 0;
	text->bytes[0] = '\0';
	for (uint32_t n = below(below(4) == 0 ? 40 : 7); n > 0; n--)
		put_utf8(text, choose_character(alphabet));
}

/* Makes a text that differs from another text at one place. */
static void
mutate(const Text *text, Text *other, int alphabet)
{
	size_t		at = below((uint32_t) text->len + 1);
	size_t		rest;

	while (at < text->len && (text->bytes[at] & 0xc0) == 0x80)
		at++;
	rest = at;
	memcpy(other->bytes, text->bytes, at);
	other->bytes[at] = '\0';
	other->len = at;
	if (below(3) > 0 && rest < text->len)
		do
			rest++;
		while (rest < text->len && (text->bytes[rest] & 0xc0) == 0x80);
	for (uint32_t n = below(3); n > 0; n--)
		put_utf8(other, choose_character(alphabet));
	if (other->len + text->len - rest < MAX_TEXT)
	{
		memcpy(other->bytes + other->len, text->bytes + rest, text->len - rest + 1);
		other->len += text->len - rest;
	}
}

static GsLibcPut
make_key(const GsLibcTable *table, GsLibcScratch *scratch, const char *text, size_t len, Key *key,
		 size_t room)
{
	GsLibcPut	put;

	key->bytes[room] = CANARY;
	put = gs_libc_table_put(table, scratch, (const uint8_t *) text, len, key->bytes, room, &key->len);
	if (key->bytes[room] != CANARY)
	{
		printf("FAILED: a key is longer than its room\n");
		exit(1);
	}
	return put;
}

static int
compare_keys(const Key *a, const Key *b)
{
	int			order = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);

	return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static bool
is_same_sign(int a, int b)
{
	return (a > 0) == (b > 0) && (a < 0) == (b < 0);
}

static int
compare_texts(const char *a, const char *b, locale_t locale)
{
	int			order = strcoll_l(a, b, locale);

	return order != 0 ? order : strcmp(a, b);
}

static void
print_text(const Text *text)
{
	for (size_t i = 0; i < text->len; i++)
		printf(" %02x", (unsigned char) text->bytes[i]);
}

static void
test_random_texts(const GsLibcTable *table, GsLibcScratch *scratch, locale_t locale, const char *name)
{
	bool		ordered = true;
	bool		well_formed = true;
	bool		cut = true;

	for (int i = 0; i < 40000; i++)
	{
		int			alphabet = i % 4;
		Text		a;
		Text		b;
		Key			x;
		Key			y;
		Key			part;

		make_text(&a, alphabet);
		if (i % 3 == 0)
			make_text(&b, alphabet);
		else
			mutate(&a, &b, alphabet);
		well_formed &= make_key(table, scratch, a.bytes, a.len, &x, GS_TEXT_KEY_MAX) == GS_LIBC_PUT_ALL &&
			make_key(table, scratch, b.bytes, b.len, &y, GS_TEXT_KEY_MAX) == GS_LIBC_PUT_ALL &&
			memchr(x.bytes, 0, x.len) == x.bytes + x.len - 1;
		if (!is_same_sign(compare_keys(&x, &y), compare_texts(a.bytes, b.bytes, locale)) && ordered)
		{
			ordered = false;
			printf("out of order under %s:", name);
			print_text(&a);
			printf(" |");
			print_text(&b);
			printf("\n");
		}
		if (i % 16 == 0)
		{
			size_t		room = below((uint32_t) x.len);

			cut &= make_key(table, scratch, a.bytes, a.len, &part, room) == GS_LIBC_PUT_CUT &&
				part.len == room && memcmp(part.bytes, x.bytes, room) == 0;
		}
	}
	check(well_formed, name, "texts have keys that end at their only 0");
	check(ordered, name, "keys are in the order of strcoll()");
	check(cut, name, "a key without room for all of it is cut");
}

/* Devices write the same keys, within their bounds, and know most texts of usual characters. */
static void
test_device_keys(const GsLibcTable *table, GsLibcScratch *scratch, const char *name)
{
	int			n_known = 0;
	bool		good = true;

	for (int i = 0; i < 40000; i++)
	{
		Text		text;
		Key			x;
		uint8_t		device[GS_TEXT_KEY_MAX];
		uint16_t	level_bytes[GS_TEXT_LEVELS];
		uint32_t	bound;
		uint32_t	len;

		make_text(&text, i % 4);
		bound = gs_text_key_bound(&table->text, (const uint8_t *) text.bytes, (uint32_t) text.len);
		if (bound == 0)
			continue;
		n_known += text.len > 0;
		(void) make_key(table, scratch, text.bytes, text.len, &x, GS_TEXT_KEY_MAX);
		len = gs_text_key_find(&table->text, (const uint8_t *) text.bytes, (uint32_t) text.len, level_bytes);
		if (len == 0 || len > bound || len != x.len ||
			gs_text_key_write(&table->text, (const uint8_t *) text.bytes, (uint32_t) text.len, level_bytes,
							  device) != len || memcmp(device, x.bytes, len) != 0)
		{
			if (good)
			{
				printf("another key of a device under %s, %u of at most %u bytes:", name, len, bound);
				print_text(&text);
				printf("\n");
			}
			good = false;
		}
	}
	check(good, name, "devices write the same keys");
	check(n_known > 5000, name, "devices know most usual texts");
}

/* Texts of all lengths at the end of readable memory have the bound that they have elsewhere. */
static void
test_ends_of_memory(const GsLibcTable *table, const char *name)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);
	uint8_t    *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool		good = memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0;

	for (uint32_t len = 0; good && len <= MAX_ENDING; len++)
		for (uint32_t before = 0; good && before < 32; before++)
		{
			uint8_t    *text = memory + page - before - len;
			uint8_t		copy[MAX_ENDING];

			memset(memory, 0xff, page);
			for (uint32_t i = 0; i < len; i++)
				text[i] = (uint8_t) (' ' + below('~' - ' ' + 1));
			if (len > 0 && below(4) == 0)
				text[below(len)] = '\t';
			if (len > 0)
				memcpy(copy, text, len);
			good = gs_text_key_bound(&table->text, text, len) == gs_text_key_bound(&table->text, copy, len);
		}
	check(good, name, "texts at the end of memory");
	if (memory != MAP_FAILED)
		munmap(memory, 2 * page);
}

/* Keys of texts of 200,000 characters are cut.  They are the first bytes of the whole keys. */
static void
test_long_texts(const GsLibcTable *table, GsLibcScratch *scratch, const char *name)
{
	const size_t len = 200000;
	char	   *text = malloc(len + 1);
	bool		good = true;

	if (text == NULL)
		exit(1);
	for (const char *c = "a-1/~"; *c != '\0'; c++)
	{
		Key			x;
		Key			y;

		memset(text, *c, len);
		good &= make_key(table, scratch, text, len, &x, GS_TEXT_KEY_MAX) != GS_LIBC_PUT_NONE;
		text[0] = 'b';
		good &= make_key(table, scratch, text, len, &y, GS_TEXT_KEY_MAX) != GS_LIBC_PUT_NONE;
		good &= x.len <= GS_TEXT_KEY_MAX && compare_keys(&x, &y) != 0;
	}
	free(text);
	check(good, name, "long texts have keys");
}

/* A table fails its proof if two characters have exchanged their weights. */
static void
test_wrong_weight(GsLibcTable *table, GsLibcScratch *scratch, locale_t locale, const char *name,
				  const char *pair)
{
	gs_libc_table_plant(table, (uint8_t) pair[0], (uint8_t) pair[1]);
	check(!gs_libc_table_prove(table, locale, true, scratch), name, "a wrong weight is found");
	gs_libc_table_plant(table, (uint8_t) pair[0], (uint8_t) pair[1]);
}

/* strcoll() reads level 2 of digits before a letter in its own way (libc_put.c). */
static void
test_backward_runs(const GsLibcTable *table, GsLibcScratch *scratch, locale_t locale, const char *name)
{
	static const char *const texts[] = {
		"4~w", "4~.w", "T1(Q", "T1#(Q", "12a", "1-2a", "12-a", "\u0301-12-a", "1\u0301-2a",
		"a1\u0301\u0302-b", "\u4e00-12\u4e00", "\u4e00-1\u0301\u4e00"
	};
	bool		good = true;

	for (int i = 0; i < COUNT(texts); i++)
		for (int j = 0; j < COUNT(texts); j++)
		{
			Key			x;
			Key			y;

			good &= make_key(table, scratch, texts[i], strlen(texts[i]), &x, GS_TEXT_KEY_MAX) ==
				GS_LIBC_PUT_ALL &&
				make_key(table, scratch, texts[j], strlen(texts[j]), &y, GS_TEXT_KEY_MAX) ==
				GS_LIBC_PUT_ALL &&
				is_same_sign(compare_keys(&x, &y), compare_texts(texts[i], texts[j], locale));
		}
	check(good, name, "backward runs are as strcoll() reads them");
}

static void
test_locale(const char *name, bool must_exist)
{
	locale_t	locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	GsLibcScratch *scratch = gs_libc_scratch_create();
	GsLibcTable *table = NULL;
	const char *why = NULL;

	if (locale != (locale_t) 0)
		table = gs_libc_table_build(locale, true, &why);
	if (locale == (locale_t) 0)
	{
		if (must_exist)
			check(false, name, "the locale exists");
	}
	else if (table == NULL)
		check(false, name, why);
	else
	{
		check(gs_libc_table_prove(table, locale, true, scratch), name, "its table is proven");
		if (table->text.levels > 0)
		{
			test_random_texts(table, scratch, locale, name);
			test_backward_runs(table, scratch, locale, name);
			if (table->text.for_devices)
			{
				test_device_keys(table, scratch, name);
				test_ends_of_memory(table, name);
			}
			test_long_texts(table, scratch, name);
			test_wrong_weight(table, scratch, locale, name, "mn");
			test_wrong_weight(table, scratch, locale, name, "-/");
			test_wrong_weight(table, scratch, locale, name, "aA");
		}
	}
	free(table);
	free(scratch);
	if (locale != (locale_t) 0)
		freelocale(locale);
}

int
main(int argc, char **argv)
{
	static const char *const others[] = {
		"C.utf8", "cs_CZ.utf8", "da_DK.utf8", "hu_HU.utf8", "cy_GB.utf8", "fr_CA.utf8", "tr_TR.utf8",
		"pl_PL.utf8", "th_TH.utf8", "lo_LA.utf8", "bo_CN.utf8", "ja_JP.utf8", "ko_KR.utf8", "zh_CN.utf8"
	};

	if (argc > 1)
		for (int i = 1; i < argc; i++)
			test_locale(argv[i], true);
	else
	{
		test_locale("en_US.utf8", true);
		test_locale("de_DE.utf8", true);
		for (int i = 0; i < COUNT(others); i++)
			test_locale(others[i], false);
	}
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
