/*-------------------------------------------------------------------------
 *
 * test_key_icu_prove.c
 *	  The order of ICU's sort keys, where key_icu_prove.c trusts it, is that of ICU's comparison.
 *
 * Texts are random: marks of all classes, old and new, in and out of canonical order, Latin and contractions,
 * digits of all kinds, ignored characters, many scripts.  Two texts that have keys must be in the order of
 * ucol_strcollUTF8() and of ucol_strcoll().  Some collations must be refused, and others must not.
 *
 *	test_key_icu_prove PAIRS < locales
 *
 * compares so many pairs for each locale, or each line of rules, which begins with & or [.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if __has_include(<unicode/ucol.h>)
#include <unicode/ucol.h>
#include <unicode/ucoleitr.h>
#include <unicode/uchar.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include "key/key_icu_prove.h"
#include "test_key_icu.h"

#define MAX_CHARS	16
#define MAX_KEY		2048

typedef struct Text
{
	int			n;
	UChar32		chars[MAX_CHARS];
	size_t		len;
	uint8_t		bytes[MAX_CHARS * 4];
	size_t		key_len;
	uint8_t		key[MAX_KEY];
} Text;

static GsIcuMarks marks;
static UChar32 all_marks[2000];
static int	n_marks;
static GsIcuHabits habits;
static USet *contractions;

static int32_t
get_property(int32_t c, int property)
{
	return u_getIntPropertyValue(c, (UProperty) property);
}

static void *
open_elements(const void *collator, const uint16_t *chars, int32_t n, int *status)
{
	UErrorCode	code = U_ZERO_ERROR;
	void	   *elements = ucol_openElements(collator, (const UChar *) chars, n, &code);

	*status = code;
	return elements;
}

static void
close_elements(void *elements)
{
	ucol_closeElements(elements);
}

static void
set_offset(void *elements, int32_t offset, int *status)
{
	UErrorCode	code = U_ZERO_ERROR;

	ucol_setOffset(elements, offset, &code);
	*status = code;
}

static int32_t
get_offset(const void *elements)
{
	return ucol_getOffset(elements);
}

static const GsIcuCharacterCalls calls = {
	get_property, open_elements, close_elements, set_offset, get_offset
};

static bool
sort_key(void *arg, const uint8_t *text, size_t len, uint8_t *key, size_t room, size_t *key_len)
{
	UChar		chars[256];
	int32_t		n;
	UErrorCode	status = U_ZERO_ERROR;

	u_strFromUTF8(chars, COUNT(chars), &n, (const char *) text, (int32_t) len, &status);
	*key_len = (size_t) ucol_getSortKey(arg, chars, n, key, (int32_t) room);
	return U_SUCCESS(status) && *key_len > 0 && *key_len <= room;
}

static int
compare(void *arg, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	UErrorCode	status = U_ZERO_ERROR;

	return ucol_strcollUTF8(arg, (const char *) a, (int32_t) a_len, (const char *) b, (int32_t) b_len,
							&status);
}

/* ucol_strcoll(), which PostgreSQL calls where the database is not UTF-8 */
static int
compare_utf16(UCollator *collator, const Text *a, const Text *b)
{
	UChar		chars[2][MAX_CHARS * 4];
	int32_t		n[2];
	UErrorCode	status = U_ZERO_ERROR;

	u_strFromUTF8(chars[0], COUNT(chars[0]), &n[0], (const char *) a->bytes, (int32_t) a->len, &status);
	u_strFromUTF8(chars[1], COUNT(chars[1]), &n[1], (const char *) b->bytes, (int32_t) b->len, &status);
	return ucol_strcoll(collator, chars[0], n[0], chars[1], n[1]);
}

static bool
has_key(void *arg, const uint8_t *text, size_t len)
{
	(void) arg;
	return gs_icu_has_key(&marks, &calls, &habits, text, len);
}

static UChar32
random_character(bool latin)
{
	static const UChar32 ranges[][2] = {
		{'a', 'z'}, {'A', 'Z'}, {' ', '~'}, {1, 0x17f}, {0x2000, 0x203f},
		{0x300, 0x345}, {0x483, 0x489}, {0x591, 0x5ea}, {0x610, 0x6ff}, {0x898, 0x8ff}, {0x900, 0xdff},
		{0xe00, 0xeff}, {0xf40, 0xfbc}, {0x1000, 0x104f}, {0x1100, 0x11ff}, {0x1ab0, 0x1ace},
		{0x1dc0, 0x1dff}, {0x1e00, 0x1fff},
		{0x20d0, 0x20f0}, {0x3041, 0x30ff}, {0x4e00, 0x4eff}, {0xac00, 0xd7a3}, {0xf900, 0xffff},
		{0x10000, 0x11fff}, {0x1d100, 0x1d1ff}, {0x1d7ce, 0x1d7ff}, {0x1e000, 0x1e95f},
		{0x1f300, 0x1f6ff}, {1, 0x3400}, {'0', '1'}, {0x660, 0x661}, {0x966, 0x967}, {0xff10, 0xff11},
		{0xad, 0xad}, {0x34f, 0x34f}
	};
	int			kind = (int) random_below(8);
	const UChar32 *range = ranges[random_below(latin ? 5 : COUNT(ranges))];

	if (!latin && kind < 3)
		return all_marks[random_below((uint32_t) n_marks)];
	if (kind == 3 && uset_getItemCount(contractions) > 0)
	{
		UChar		string[64];
		UChar32		first;
		UChar32		last;
		UErrorCode	status = U_ZERO_ERROR;
		int32_t		item = (int32_t) random_below((uint32_t) uset_getItemCount(contractions));
		int32_t		len = uset_getItem(contractions, item, &first, &last, string, COUNT(string), &status);

		if (len > 0)
		{
			item = (int32_t) random_below((uint32_t) len);
			U16_GET(string, 0, item, len, first);
			if (first > 0 && !U_IS_SURROGATE(first))
				return first;
		}
	}
	return range[0] + (UChar32) random_below((uint32_t) (range[1] - range[0] + 1));
}

static void
write_text(Text *text)
{
	int32_t		len = 0;
	UBool		failed = false;

	for (int i = 0; i < text->n; i++)
		if (!U_IS_SURROGATE(text->chars[i]))
			U8_APPEND(text->bytes, len, COUNT(text->bytes), text->chars[i], failed);
	text->len = failed ? 0 : (size_t) len;
}

static int
sign(int order)
{
	return (order > 0) - (order < 0);
}

/* Returns the number of pairs that differ.  *n_keyless counts the texts without a key. */
static int
compare_random(UCollator *collator, const char *name, int pairs, int *n_keyless)
{
	static Text texts[2];
	int			n_differ = 0;

	for (int i = 0; i < pairs; i++)
	{
		bool		latin = i % 4 == 0;
		bool		all = true;
		int			order;

		texts[0].n = 1 + (int) random_below(6);
		for (int j = 0; j < texts[0].n; j++)
			texts[0].chars[j] = random_character(latin);
		memcpy(&texts[1], &texts[0], sizeof(Text));
		for (uint32_t times = 1 + random_below(2); times > 0; times--)
		{
			Text	   *text = &texts[1];
			int			at = (int) random_below((uint32_t) text->n + 1);
			size_t		behind = (size_t) (text->n - at) * sizeof(UChar32);

			if (random_below(2) == 0)
			{
				memmove(text->chars + at + 1, text->chars + at, behind);
				text->n++;
				text->chars[at] = random_character(latin);
			}
			else if (at < text->n && random_below(2) == 0)
				memmove(text->chars + at, text->chars + at + 1, (size_t) (--text->n - at) * sizeof(UChar32));
			else if (at < text->n)
				text->chars[at] = random_character(latin);
		}
		for (int j = 0; j < 2; j++)
		{
			write_text(&texts[j]);
			/* ICU 72 never returns from some texts that it normalizes */
			all = all && has_key(NULL, texts[j].bytes, texts[j].len) &&
				sort_key(collator, texts[j].bytes, texts[j].len, texts[j].key, MAX_KEY, &texts[j].key_len);
		}
		*n_keyless += !all;
		if (!all)
			continue;
		/* a sort key ends with its only 0 */
		order = sign(strcmp((const char *) texts[0].key, (const char *) texts[1].key));
		if ((order == sign(compare(collator, texts[0].bytes, texts[0].len, texts[1].bytes, texts[1].len)) &&
			 order == sign(compare_utf16(collator, &texts[0], &texts[1]))) ||
			n_differ++ > 0)
			continue;
		printf("# %s:", name);
		for (int j = 0; j < 2; j++)
		{
			for (int k = 0; k < texts[j].n; k++)
				printf(" %04X", (unsigned) texts[j].chars[k]);
			printf(j == 0 ? " and" : "\n");
		}
	}
	return n_differ;
}

/* Proves a locale or rules, and compares.  Returns why it is refused, or "differs"; NULL: all is right. */
static const char *
test_collation(const char *name, int pairs, bool list)
{
	UErrorCode	status = U_ZERO_ERROR;
	UChar		rules[1024];
	int32_t		n = 0;
	UCollator  *collator;
	GsIcuProof	proof = {sort_key, compare, has_key, NULL, false};
	const char *why;
	int			n_keyless = 0;
	int			n_differ = 0;
	clock_t		start;
	double		ms;

	if (name[0] == '&' || name[0] == '[')
	{
		u_strFromUTF8(rules, COUNT(rules), &n, name, -1, &status);
		collator = ucol_openRules(rules, n, UCOL_DEFAULT, UCOL_DEFAULT_STRENGTH, NULL, &status);
	}
	else
		collator = ucol_open(name, &status);
	if (U_FAILURE(status))
	{
		printf("# %s: %s\n", name, u_errorName(status));
		return "it cannot be opened";
	}
	proof.arg = collator;
	contractions = uset_openEmpty();
	ucol_getContractionsAndExpansions(collator, contractions, NULL, true, &status);
	start = clock();
	gs_icu_find_habits(&proof, &habits);
	why = gs_icu_prove(&proof);
	ms = (double) (clock() - start) * 1000 / CLOCKS_PER_SEC;
	if (why == NULL && (n_differ = compare_random(collator, name, pairs, &n_keyless)) > 0)
		why = "differs";
	if (list)
		printf("%s: %s, %d of %d differ, %d without a key, proof %.1f ms%s\n", name, why == NULL ? "right" : why,
			   n_differ, pairs, n_keyless, ms, habits.normalizes ? ", normalizes" : "");
	uset_close(contractions);
	ucol_close(collator);
	return why;
}

static void
find_marks(void)
{
	UErrorCode	status = U_ZERO_ERROR;
	UCollator  *root = ucol_open("@colNormalization=yes", &status);
	int			n_lost = 0;

	gs_icu_find_marks(&marks, &calls, root);
	ucol_close(root);
	for (UChar32 c = 0; c < GS_ICU_MARKS; c++)
	{
		n_lost += (int) (marks.lost[c / 64] >> (c % 64) & 1);
		if ((marks.marks[c / 64] >> (c % 64)) & 1)
			all_marks[n_marks++] = c;
		else if (u_getIntPropertyValue(c, UCHAR_LEAD_CANONICAL_COMBINING_CLASS) != 0)
			report("marks", "all are found", false);
	}
	printf("# ICU %s: %d marks, %d of them lost\n", U_ICU_VERSION, n_marks, n_lost);
	report("marks", "most are not lost", n_marks > 800 && n_lost < n_marks / 4);
}

int
main(int argc, char **argv)
{
	static const char *const right[] = {
		"und", "da", "ja", "zh", "ko", "ar", "hi", "hu", "my", "vi", "el", "he", "fa", "bn", "te", "bo", "nb", "yi", "ig", "cs-u-kk",
		"und-u-ks-level1", "da-u-ks-level2", "und-u-ks-level4", "ja-u-ks-level4", "und-u-kc",
		"und-u-kf-upper", "da-u-kf-lower-kc", "und-u-kn", "en-u-kn-ks-level1", "und-u-kk", "vi-u-kk-ks-level4",
		"und-u-ka-noignore", "und-u-kr-grek-latn-digit-cyrl-symbol", "und-u-kn-kr-digit-latn", "und-u-kv-space",
		"da-u-kv-punct", "und-u-kb-ks-level1", "und-u-ks-level1-kc-true", "und-u-kn-true-kf-upper-ks-level4",
		"&a < b << c", "[import vi]"
	};
	static const char *const refused[] = {
		"fr-CA", "und-u-kb", "und-u-kb-ks-level2", "en-u-ka-shifted", "en-u-ka-shifted-ks-level4", "th", "und-u-ks-identic",
		"da-u-kn", "ja-u-kn", "ar-u-kn", "hi-u-kn-ks-level1", "de-u-co-phonebk-kn", "en-u-kr-latn-digit", "en-u-kr-currency",
		"[reorder currency]", "[backwards 2]", "und-u-kc-kf-upper", "da-u-kc-ks-level1"
	};
	int			pairs = argc > 1 ? atoi(argv[1]) : 0;
	char		line[1024];

	find_marks();
	while (pairs > 0 && fgets(line, sizeof(line), stdin) != NULL)
	{
		line[strcspn(line, "\n")] = '\0';
		(void) test_collation(line, pairs, true);
	}
	if (pairs > 0)
		return 0;
	for (int i = 0; i < COUNT(right); i++)
		report(right[i], "the comparison is the order of keys", test_collation(right[i], 10000, false) == NULL);
	for (int i = 0; i < COUNT(refused); i++)
	{
		const char *why = test_collation(refused[i], 0, false);

		report(refused[i], why == NULL ? "is not refused" : why, why != NULL);
	}
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
