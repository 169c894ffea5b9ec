/*-------------------------------------------------------------------------
 *
 * test_key_icu.c
 *	  Sort keys from a table (key_icu_table.h) are ICU's, byte by byte.
 *
 * For all locales that ICU has, and for many options, tables are made as
 * key_icu_library.c makes them.  Then random texts, with what is awkward in
 * them: the collation's own contractions and parts of them, combining marks, digits of
 * all kinds, scripts with rules of their own, characters that are ignored.  A key that the
 * table gives must be that of ucol_getSortKey(), and the order of keys that of
 * ucol_strcollUTF8().  Collations that no table can be made for must fail the proof.
 *
 * For each option the comparison of texts is compared with ICU's own sort keys.  If they disagree,
 * key_icu.c refuses the collation.
 *
 * gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pedantic -Isrc, and -licui18n -licuuc
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<unicode/ucol.h>)
#include <unicode/ucol.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include "device/tuple_key.h"
#include "key/key_icu_table.h"
#include "test_key_icu.h"

#define MAX_TEXT	1200
#define MAX_KEY		16384
#define CANARY		0xa5

typedef struct Text
{
	size_t		len;
	uint8_t		bytes[MAX_TEXT];
} Text;

typedef struct Key
{
	size_t		len;
	uint8_t		bytes[MAX_KEY];
} Key;

/* A collation, its table, and its contractions. */
typedef struct Collation
{
	const char *locale;
	UCollator  *collator;
	USet	   *contractions;
	GsIcuTable *table;
	GsIcuCharacters *offered;	/* to devices, or NULL */
	bool		same;			/* all keys so far were ICU's */
	long		n_keys;
	long		n_texts;
	long		n_offered;		/* texts whose keys devices make */
} Collation;

static bool
icu_sort_key(void *arg, const uint8_t *text, size_t len, uint8_t *key, size_t room, size_t *key_len)
{
	UChar		chars[MAX_TEXT];
	int32_t		n;
	UErrorCode	status = U_ZERO_ERROR;

	u_strFromUTF8(chars, MAX_TEXT, &n, (const char *) text, (int32_t) len, &status);
	if (U_FAILURE(status))
		return false;
	*key_len = (size_t) ucol_getSortKey(arg, chars, n, key, (int32_t) room);
	return *key_len > 0 && *key_len <= room;
}

static void
append(Text *text, UChar32 c)
{
	int32_t		at = 0;
	UBool		failed = false;

	if (text->len + 4 > MAX_TEXT)
		return;
	U8_APPEND(text->bytes + text->len, at, 4, c, failed);
	if (!failed)
		text->len += (size_t) at;
}

/* An item of the set of contractions, from one of its characters on. */
static void
append_contraction(Text *text, const Collation *collation)
{
	UChar		string[64];
	UChar32		first;
	UChar32		last;
	UErrorCode	status = U_ZERO_ERROR;
	int32_t		n = uset_getItemCount(collation->contractions);
	int32_t		len;
	int32_t		at = 0;
	int32_t		end;

	if (n == 0)
		return;
	len = uset_getItem(collation->contractions, (int32_t) random_below((uint32_t) n), &first, &last,
					   string, COUNT(string), &status);
	if (U_FAILURE(status) || len < 2)
		return;
	end = random_below(4) == 0 ? 1 + (int32_t) random_below((uint32_t) len) : len;
	while (at < end)
	{
		UChar32		c;

		U16_NEXT(string, at, len, c);
		if (!U_IS_SURROGATE(c))
			append(text, c);
	}
}

/* Characters of one of the ranges. */
static UChar32
random_character(void)
{
	static const UChar32 ranges[][2] = {
		{'a', 'z'}, {'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {0x20, 0x7e}, {0x20, 0x7e}, {0x01, 0x7f},
		{0x80, 0xff}, {0xc0, 0x17f}, {0x100, 0x24f}, {0x250, 0x2ff}, {0x300, 0x345}, {0x370, 0x3ff},
		{0x400, 0x52f}, {0x483, 0x489}, {0x5b0, 0x5ea}, {0x600, 0x6ff}, {0x900, 0x97f},
		{0xe00, 0xe4f},
		{0xe80, 0xedf}, {0xf40, 0xfbc}, {0x1000, 0x104f}, {0x10a0, 0x10ff}, {0x1100, 0x11ff},
		{0x1e00, 0x1eff}, {0x1f00, 0x1fff}, {0x2000, 0x206f}, {0x2070, 0x20cf}, {0x2100, 0x218f},
		{0x2190, 0x26ff}, {0x3000, 0x30ff}, {0x3041, 0x30fe}, {0x3100, 0x318f}, {0x3400, 0x4dbf},
		{0x4e00, 0x9fff}, {0xac00, 0xd7ff}, {0xf900, 0xfaff}, {0xfb00, 0xfdff}, {0xfe00, 0xffef},
		{0xfff0, 0xffff}, {0x20d0, 0x20f0}, {0x1f300, 0x1f6ff}, {0x20000, 0x2a6df}, {0x10000, 0x10fff}
	};
	const UChar32 *range = ranges[random_below(COUNT(ranges))];

	return range[0] + (UChar32) random_below((uint32_t) (range[1] - range[0] + 1));
}

/* Mostly short; some of one range, some mixed, some with long runs of one character. */
static void
random_text(Text *text, const Collation *collation)
{
	int			kind = (int) random_below(6);
	uint32_t	n = random_below(random_below(8) == 0 ? 100 : 12);

	text->len = 0;
	for (; n > 0; n--)
	{
		UChar32		c = kind < 3 ? (UChar32) (0x20 + random_below(0x5f)) : random_character();
		uint32_t	run = kind % 3 == 1 && random_below(10) == 0 ? random_below(250) : 1;

		if (kind % 3 == 2 && random_below(10) == 0)
			append_contraction(text, collation);
		for (; run > 0; run--)
			append(text, c);
	}
}

/* The key that a GPU writes of a text, if feeders leave it to devices: is it ICU's, and within its bound? */
static void
check_offered(Collation *collation, const Text *text)
{
	static Key	icus;
	static Key	key;
	const GsTextTable *table = &collation->offered->text;
	uint16_t	level_bytes[GS_TEXT_LEVELS];
	uint32_t	bound = gs_text_key_bound(table, text->bytes, (uint32_t) text->len);
	uint32_t	len;

	if (bound == 0)
		return;
	collation->n_offered++;
	len = gs_text_key_find(table, text->bytes, (uint32_t) text->len, level_bytes);
	if (len == 0 || len > bound ||
		gs_text_key_write(table, text->bytes, (uint32_t) text->len, level_bytes,
						 key.bytes) != len ||
		!icu_sort_key(collation->collator, text->bytes, text->len, icus.bytes, MAX_KEY, &icus.len) ||
		icus.len != len || memcmp(icus.bytes, key.bytes, len) != 0)
	{
		if (collation->same)
			printf("# device, %s: \"%.*s\", %u bytes of %u\n", collation->locale, (int) text->len,
				   (const char *) text->bytes, len, bound);
		collation->same = false;
	}
}

/* The table's key of a text, if it gives one: is it ICU's, and is nothing written beyond its room? */
static bool
check_text(Collation *collation, const Text *text, Key *key)
{
	static Key	icus;
	bool		fits;

	collation->n_texts++;
	if (collation->offered != NULL)
		check_offered(collation, text);
	if (!gs_icu_table_put(collation->table, text->bytes, text->len, key->bytes, MAX_KEY, &key->len))
		return false;
	collation->n_keys++;
	if (!icu_sort_key(collation->collator, text->bytes, text->len, icus.bytes, MAX_KEY, &icus.len) ||
		icus.len != key->len || memcmp(icus.bytes, key->bytes, key->len) != 0)
	{
		if (collation->same)
			printf("# %s: \"%.*s\"\n", collation->locale, (int) text->len, (const char *) text->bytes);
		collation->same = false;
	}
	if (random_below(16) == 0)
	{
		size_t		room = random_below((uint32_t) key->len + 12);
		size_t		len;

		memset(icus.bytes, CANARY, room + 32);
		fits = gs_icu_table_put(collation->table, text->bytes, text->len, icus.bytes, room, &len);
		if (fits && (len != key->len || len > room || memcmp(icus.bytes, key->bytes, len) != 0))
			collation->same = false;
		for (size_t i = room; i < room + 32; i++)
			if (icus.bytes[i] != CANARY)
				collation->same = false;
	}
	return true;
}

/* A table, made as key_icu_library.c makes it.  False where it cannot be proven. */
static bool
open_collation(Collation *collation, const char *locale, const GsIcuOptions *other_options)
{
	UErrorCode	status = U_ZERO_ERROR;
	GsIcuOptions options;
	UColAttributeValue case_first;

	memset(collation, 0, sizeof(*collation));
	collation->locale = locale;
	collation->same = true;
	collation->collator = ucol_open(locale, &status);
	collation->contractions = uset_openEmpty();
	ucol_getContractionsAndExpansions(collation->collator, collation->contractions, NULL, true,
									  &status);
	case_first = ucol_getAttribute(collation->collator, UCOL_CASE_FIRST, &status);
	options.levels = (int) ucol_getStrength(collation->collator) + 1;
	options.case_first = case_first == UCOL_LOWER_FIRST ? GS_ICU_LOWER_FIRST :
		case_first == UCOL_UPPER_FIRST ? GS_ICU_UPPER_FIRST : GS_ICU_CASE_OFF;
	options.numeric =
		ucol_getAttribute(collation->collator, UCOL_NUMERIC_COLLATION, &status) == UCOL_ON;
	if (other_options != NULL)
		options = *other_options;
	collation->table = gs_icu_table_create(&options, icu_sort_key, collation->collator);
	if (U_FAILURE(status) || collation->table == NULL)
	{
		printf("%s: %s\n", locale, u_errorName(status));
		exit(1);
	}
	for (int32_t i = 0; i < uset_getItemCount(collation->contractions); i++)
	{
		UChar		string[64];
		UChar32		first;
		UChar32		last;
		int32_t		at = 0;
		int32_t		len = uset_getItem(collation->contractions, i, &first, &last, string,
									   COUNT(string), &status);

		if (len < 2)
			return false;
		U16_NEXT(string, at, len, first);
		U16_NEXT(string, at, len, last);
		if (!gs_icu_table_forbid(collation->table, (uint32_t) first, (uint32_t) last))
			return false;
	}
	if (!gs_icu_table_prove(collation->table))
		return false;
	collation->offered = gs_icu_table_offer(collation->table);
	return collation->offered != NULL;
}

static void
close_collation(Collation *collation)
{
	gs_icu_table_free(collation->table);
	free(collation->offered);
	uset_close(collation->contractions);
	ucol_close(collation->collator);
}

static void
check_random_texts(Collation *collation, int n)
{
	static Text texts[2];
	static Key	keys[2];
	bool		last = false;

	for (int i = 0; i < n; i++)
	{
		Text	   *text = &texts[i & 1];
		Key		   *key = &keys[i & 1];
		const Text *other = &texts[~i & 1];
		const Key  *other_key = &keys[~i & 1];
		UErrorCode	status = U_ZERO_ERROR;
		bool		given;

		random_text(text, collation);
		given = check_text(collation, text, key);
		if (given && last)
		{
			size_t		both = key->len < other_key->len ? key->len : other_key->len;
			int			order = memcmp(key->bytes, other_key->bytes, both);

			if (ucol_strcollUTF8(collation->collator, (const char *) text->bytes, (int32_t) text->len,
								 (const char *) other->bytes, (int32_t) other->len, &status) !=
				(order < 0 ? UCOL_LESS : order > 0 ? UCOL_GREATER : UCOL_EQUAL))
				collation->same = false;
		}
		last = given;
	}
}

static void
check_text_of(Collation *collation, const UChar32 *characters, int n)
{
	static Text text;
	static Key	key;

	text.len = 0;
	for (int i = 0; i < n; i++)
		append(&text, characters[i]);
	(void) check_text(collation, &text, &key);
}

/* All pairs of ASCII characters, and triples of those in letters. */
static void
check_ascii(Collation *collation, const char *letters)
{
	for (UChar32 a = 1; a < 128; a++)
		for (UChar32 b = 1; b < 128; b++)
			check_text_of(collation, (const UChar32[]) {a, b}, 2);
	for (const char *a = letters; *a != 0; a++)
		for (const char *b = letters; *b != 0; b++)
			for (const char *c = letters; *c != 0; c++)
				check_text_of(collation, (const UChar32[]) {*a, *b, *c, 'x'}, 4);
}

/* Each character of the first plane, among a few others. */
static void
check_characters(Collation *collation)
{
	for (UChar32 c = 1; c < 0x10000; c++)
		if (!U_IS_SURROGATE(c))
		{
			check_text_of(collation, (const UChar32[]) {c}, 1);
			check_text_of(collation, (const UChar32[]) {'a', c, c, '-', c, 'A', c, 0xe9, c, '1'}, 10);
			check_text_of(collation, (const UChar32[]) {0x3b1, c, 0x4e2d, 0x4e00, c}, 5);
		}
}

/* Any bytes: nothing is read or written out of bounds. */
static void
check_bytes(Collation *collation)
{
	bool		ok = true;

	for (int i = 0; i < 20000; i++)
	{
		size_t		n = random_below(12);
		uint8_t    *bytes = malloc(n + 1);
		uint8_t		key[128];
		size_t		len;

		for (size_t j = 0; j < n; j++)
			bytes[j] = (uint8_t) (random_below(2) ? 'a' : random_below(256));
		bytes = realloc(bytes, n > 0 ? n : 1);
		if (gs_icu_table_put(collation->table, bytes, n, key, sizeof(key), &len))
			ok = ok && len <= sizeof(key);
		free(bytes);
	}
	report("any bytes", "within bounds", ok);
}

static void
test_locale(const char *locale, int n, const char *letters, bool characters)
{
	Collation	collation;
	bool		proven = open_collation(&collation, locale, NULL);

	report(locale, "proven", proven);
	if (proven)
	{
		check_random_texts(&collation, n);
		if (letters != NULL)
			check_ascii(&collation, letters);
		if (characters)
			check_characters(&collation);
		report(locale, "keys are ICU's", collation.same);
		report(locale, "the table is used", collation.n_keys > collation.n_texts / 20);
		report(locale, "devices make keys", collation.n_offered > collation.n_texts / 40);
		if (strcmp(locale, "cs") == 0)
			report(locale, "devices make keys of \"c\" and \"h\", but not of \"ch\"",
				   gs_text_key_bound(&collation.offered->text, (const uint8_t *) "cvhcc", 5) > 0 &&
				   gs_text_key_bound(&collation.offered->text, (const uint8_t *) "avchc", 5) == 0);
	}
	close_collation(&collation);
}

/* Two texts of few characters, most of them marks, digits or ignored, which begin alike. */
static void
random_pair(Text *left, Text *right)
{
	static const UChar32 ranges[][2] = {
		{'a', 'c'}, {'A', 'B'}, {'0', '2'}, {0x20, 0x20}, {'-', '.'}, {0x01, 0x02}, {0x09, 0x0a},
		{0x1f, 0x1f}, {0xad, 0xad}, {0x300, 0x304}, {0x316, 0x317}, {0x327, 0x328}, {0x34f, 0x34f},
		{0x488, 0x489},
		{0x64b, 0x64c}, {0x20d0, 0x20f0}, {0x200b, 0x200d}, {0xfe20, 0xfe28}, {0xfffe, 0xffff},
		{0xe9, 0xe9},
		{0x660, 0x662}, {0x966, 0x968}, {0xff10, 0xff12}, {0x1d7ce, 0x1d7d0}, {0x1100, 0x1101},
		{0xac00, 0xac01}, {0x3042, 0x3043}, {0x30a2, 0x30a2}, {0x30fc, 0x30fc}, {0x3099, 0x309a},
		{0x4e00, 0x4e01},
		{0xe40, 0xe41}, {0xe01, 0xe02}, {0x430, 0x431}, {0x627, 0x628}, {0x1f600, 0x1f600},
		{0x10ffff, 0x10ffff}
	};
	UChar32		few[6];

	for (int i = 0; i < COUNT(few); i++)
	{
		const UChar32 *range = ranges[random_below(COUNT(ranges))];

		few[i] = range[0] + (UChar32) random_below((uint32_t) (range[1] - range[0] + 1));
	}
	left->len = 0;
	for (uint32_t n = random_below(4); n > 0; n--)
		append(left, few[random_below(COUNT(few))]);
	memcpy(right, left, sizeof(*left));
	for (uint32_t n = random_below(5); n > 0; n--)
		append(left, few[random_below(COUNT(few))]);
	for (uint32_t n = random_below(5); n > 0; n--)
		append(right, few[random_below(COUNT(few))]);
}

/* Is the comparison the order of sort keys?  Both are ICU's. */
static void
test_comparison(const char *locale, bool agrees)
{
	static Text left;
	static Text right;
	static Key	left_key;
	static Key	right_key;
	UErrorCode	status = U_ZERO_ERROR;
	UCollator  *collator = ucol_open(locale, &status);
	int			n_differ = 0;

	for (int i = 0; i < 50000; i++)
	{
		int			order;
		UCollationResult result;

		random_pair(&left, &right);
		result = ucol_strcollUTF8(collator, (const char *) left.bytes, (int32_t) left.len,
								  (const char *) right.bytes, (int32_t) right.len, &status);
		if (!icu_sort_key(collator, left.bytes, left.len, left_key.bytes, MAX_KEY, &left_key.len) ||
			!icu_sort_key(collator, right.bytes, right.len, right_key.bytes, MAX_KEY, &right_key.len))
			n_differ = -1000000;
		order = strcmp((const char *) left_key.bytes, (const char *) right_key.bytes);
		if (result != (order < 0 ? UCOL_LESS : order > 0 ? UCOL_GREATER : UCOL_EQUAL) &&
			n_differ++ == 0 && agrees)
			printf("# %s: \"%.*s\" and \"%.*s\"\n", locale, (int) left.len, (const char *) left.bytes,
				   (int) right.len, (const char *) right.bytes);
	}
	report(locale, agrees ? "the comparison is the order of sort keys" : "the comparison is another order",
		   U_SUCCESS(status) && (agrees ? n_differ == 0 : n_differ > 0));
	ucol_close(collator);
}

static void
test_comparisons(void)
{
	static const char *const same[] = {
		"und", "da", "ja", "zh", "ko", "ar", "hi", "hu", "my", "vi", "und-u-ks-level1", "da-u-ks-level2", "und-u-ks-level4",
		"ja-u-ks-level4", "und-u-kc", "da-u-kc-ks-level1", "und-u-kf-upper", "da-u-kf-lower-kc", "und-u-kn", "en-u-kn-ks-level1",
		"und-u-kk", "vi-u-kk-ks-level4", "und-u-ka-noignore", "und-u-kr-grek-latn-digit-cyrl-symbol", "und-u-kn-kr-digit-latn",
		"und-u-kv-space", "da-u-kv-punct", "und-u-kv-symbol", "und-u-kv-currency", "und-u-kb-ks-level1",
		"und-u-kf-lower", "und-u-kk-true", "und-u-kr-cyrl-digit-latn", "und-u-ks-level2", "und-u-ks-level3",
		"und-u-ks-level1-kc-true", "und-u-kn-true-kf-upper-ks-level4"
	};
	static const char *const others[] = {
		"fr-CA", "und-u-kb", "und-u-kb-ks-level2", "en-u-ka-shifted", "en-u-ka-shifted-ks-level4", "th", "und-u-ks-identic",
		"da-u-kn", "ja-u-kn", "ar-u-kn", "hi-u-kn-ks-level1", "de-u-co-phonebk-kn"
	};

	for (int i = 0; i < COUNT(same); i++)
		test_comparison(same[i], true);
	for (int i = 0; i < COUNT(others); i++)
		test_comparison(others[i], false);
}

static void
test_refused(const char *locale, const GsIcuOptions *options, const char *why)
{
	Collation	collation;

	report(locale, why, !open_collation(&collation, locale, options));
	close_collation(&collation);
}

/* Paths and words of several languages: these must not be left to ICU. */
static void
test_use(void)
{
	static const char *const texts[] = {
		"/usr/share/doc/libfoo-1.2_3/changelog.Debian.gz", "Hello, World! (100%) [a+b=c] {x} <y> #1 @2 $3 ^ & * ~ `",
		"Grüße aus Österreich, Straße", "L'été à Nîmes, ça va très bien", "Привет, мир",
		"Καλημέρα", "漢字と仮名", "안녕하세요", ""
	};
	Collation	collation;
	Key			key;
	bool		ok = open_collation(&collation, "en", NULL);

	for (int i = 0; i < COUNT(texts); i++)
	{
		Text		text;

		text.len = strlen(texts[i]);
		memcpy(text.bytes, texts[i], text.len + 1);
		if (!check_text(&collation, &text, &key))
		{
			printf("# \"%s\"\n", texts[i]);
			ok = false;
		}
	}
	report("en", "plain texts are made from the table", ok && collation.same);
	check_bytes(&collation);
	close_collation(&collation);
}

int
main(void)
{
	static const char *const bases[] = {
		"en", "de-u-co-phonebk", "sv", "da", "cs", "hu", "es-u-co-trad", "zh", "zh-u-co-stroke", "ja", "th",
		"ko", "tr", "br", "cy", "vi", "hi", "my", "ar", "fr", "lt"
	};
	static const char *const options[] = {
		"kn-true", "kf-upper", "kf-lower", "ks-level1", "ks-level2", "kk-true", "kn-true-ks-level2",
		"kf-upper-ks-level3-kn-true"
	};
	static const char *const all[] = {
		"en", "ja", "zh", "ko", "hu", "und-u-kr-grek-latn-digit-cyrl-symbol", "und-u-kf-upper"
	};
	GsIcuOptions plain = {3, GS_ICU_CASE_OFF, false};
	GsIcuOptions upper_first = {3, GS_ICU_UPPER_FIRST, false};

	test_use();
	for (int i = 0; i < COUNT(bases); i++)
	{
		test_locale(bases[i], 5000, "ac'hdzsgylntu", false);
		for (int j = 0; j < COUNT(options); j++)
		{
			char		locale[100];

			snprintf(locale, sizeof(locale), strstr(bases[i], "-u-") != NULL ? "%s-%s" : "%s-u-%s",
					 bases[i], options[j]);
			test_locale(locale, 1000, NULL, false);
		}
	}
	for (int i = 0; i < COUNT(all); i++)
		test_locale(all[i], 20000, NULL, true);
	for (int32_t i = 0; i < ucol_countAvailable(); i++)
		test_locale(ucol_getAvailable(i), 300, NULL, false);

	test_comparisons();

	test_refused("und-u-kc-true", &plain, "a case level is noticed");
	test_refused("und-u-ks-level4", &plain, "a fourth level is noticed");
	test_refused("und-u-ks-identic", &plain, "strength identical is noticed");
	test_refused("und-u-ks-level2", &plain, "fewer levels are noticed");
	test_refused("und-u-kf-upper", &plain, "upper case first is noticed");
	test_refused("und", &upper_first, "no upper case first is noticed");

	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}

#else

int
main(void)
{
	printf("ICU's headers are not installed\n");
	return 0;
}
#endif
