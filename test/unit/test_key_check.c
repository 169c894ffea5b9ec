/*-------------------------------------------------------------------------
 *
 * test_key_check.c
 *	  For keys of key_check.h's layouts: the order that is read out of them is
 *	  the order of the values.
 *
 * Each test makes rows of nasty and of random texts, writes their keys, and
 * compares every pair both ways: gs_key_check_compare() on the keys, and
 * strcoll() and then strcmp() on the values.  What must hold of runs besides:
 * keys of one run begin with the same bytes and stand together in bytewise
 * order, and two keys in different runs are ordered by their bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "test_key_libc.h"

#define N_ROWS		600
#define MAX_COLUMNS 4

/* A row: a text for each column, NULL or not; FIXED columns have a number. */
typedef struct Row
{
	bool		isnull[MAX_COLUMNS];
	char		text[MAX_COLUMNS][TEST_TEXT_BYTES];
	uint32_t	number[MAX_COLUMNS];
	uint8_t		key[MAX_COLUMNS * TEST_KEY_BYTES];
	uint32_t	len;
} Row;

static Row	rows[N_ROWS];
static locale_t locales[2];
static const char *locale_name;
static int	n_passed;
static int	n_failed;

static const char *const nasty[] = {
	"", "111a", "11-1a", "111 c", "11 1c", "111 a", "-", "--", " ", "  ", " -", "a", "A", "a ",
	"e\xcc\x81", "\xc3\xa9", "\xcc\x81", "\xcc\x81\xcc\x88", "\xea\xb0\x80", "\xeb\x82\x98",
	"\xea\xb0\x80\xeb\x82\x98", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", "\x01", "\x02", "\x01\x01",
	"\x02\x02", "a\x01", "a\x01\x62", "\xea\xb0\x80\x01", "ab", "a b", "a-b", "a_b"
};

#define N_NASTY ((uint32_t) (sizeof(nasty) / sizeof(nasty[0])))

static void
report(const char *name, const char *what, bool ok)
{
	printf("%s - %s, %s\n", ok ? "ok" : "not ok", name, what);
	if (ok)
		n_passed++;
	else
		n_failed++;
}

static void
put_column(const GsKeyPart *part, Row *row, int c)
{
	uint8_t    *dst = row->key + row->len;
	size_t		len = strlen(row->text[c]);
	size_t		written = 0;
	uint32_t	n = 1;

	if (part->kind == GS_PART_LIBC)
	{
		row->len += test_put_libc(dst, locales[part->locale], row->isnull[c] ? NULL : row->text[c],
								  part->desc, part->nulls_first);
		return;
	}
	dst[0] = gs_key_null_byte(row->isnull[c], part->nulls_first);
	if (!row->isnull[c])
	{
		if (part->kind == GS_PART_FIXED)
			gs_key_put_uint32(dst + 1, row->number[c]);
		else if (part->kind == GS_PART_TEXT)
			(void) gs_key_put_text(dst + 1, TEST_KEY_BYTES, (uint8_t *) row->text[c], len, &written);
		else if (part->kind == GS_PART_ESCAPED)
			(void) gs_key_put_escaped(dst + 1, TEST_KEY_BYTES, (uint8_t *) row->text[c], len, &written);
		else
			(void) gs_key_put_bytes(dst + 1, TEST_KEY_BYTES, (uint8_t *) row->text[c], len, &written);
		n += part->kind == GS_PART_FIXED ? 4 : (uint32_t) written;
		if (part->desc)
			gs_key_complement(dst + 1, n - 1);
	}
	row->len += n;
}

/* Make rows of few enough texts that they agree in the first columns. */
static void
make_rows(const GsKeyLayout *layout)
{
	for (uint32_t i = 0; i < N_ROWS; i++)
	{
		Row		   *row = &rows[i];

		row->len = 0;
		for (int c = 0; c < layout->n_parts; c++)
		{
			row->isnull[c] = test_below(12) == 0;
			row->number[c] = test_below(3) * 0x01ff0001;
			if (layout->n_parts == 1 ? i < N_NASTY : test_below(2) == 0)
				strcpy(row->text[c], nasty[layout->n_parts == 1 ? i : test_below(N_NASTY)]);
			else
				test_make_text(row->text[c], layout->n_parts == 1 ? 6 : 2, TEST_N_PIECES);
			put_column(&layout->parts[c], row, c);
		}
	}
}

static int
compare_rows(const GsKeyLayout *layout, const Row *a, const Row *b)
{
	for (int c = 0; c < layout->n_parts; c++)
	{
		const GsKeyPart *part = &layout->parts[c];
		int			order;

		if (a->isnull[c] != b->isnull[c])
			return a->isnull[c] == part->nulls_first ? -1 : 1;
		if (a->isnull[c])
			continue;
		if (part->kind == GS_PART_FIXED)
			order = (a->number[c] > b->number[c]) - (a->number[c] < b->number[c]);
		else if (part->kind == GS_PART_LIBC)
			order = test_compare_texts(locales[part->locale], a->text[c], b->text[c]);
		else
		{
			order = strcmp(a->text[c], b->text[c]);
			order = (order > 0) - (order < 0);
		}
		if (order != 0)
			return part->desc ? -order : order;
	}
	return 0;
}

static int
compare_bytes(const void *x, const void *y)
{
	const Row  *a = x;
	const Row  *b = y;
	int			order = memcmp(a->key, b->key, a->len < b->len ? a->len : b->len);

	return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static uint32_t
run_prefix(const GsKeyLayout *layout, const Row *a, const Row *b)
{
	return gs_key_check_run_prefix(layout, a->key, a->len, b->key, b->len);
}

static void
test_layout(const char *name, const GsKeyPart *parts, uint8_t n_parts)
{
	static GsKeyCheckScratch scratch;
	GsKeyLayout layout = {0};
	bool		order_ok = true;
	bool		border_ok = true;
	bool		together_ok = true;

	layout.n_parts = n_parts;
	layout.n_locales = 2;
	strcpy(layout.locales[0], locale_name);
	strcpy(layout.locales[1], "C");
	memcpy(layout.parts, parts, n_parts * sizeof(GsKeyPart));
	make_rows(&layout);
	qsort(rows, N_ROWS, sizeof(Row), compare_bytes);
	scratch.malformed = false;
	for (uint32_t i = 0; i < N_ROWS; i++)
	{
		const Row  *a = &rows[i];

		for (uint32_t j = 0; j < N_ROWS; j++)
		{
			const Row  *b = &rows[j];
			int			wanted = compare_rows(&layout, a, b);
			int			order = gs_key_check_compare(&layout, locales, a->key, a->len,
													 b->key, b->len, &scratch);
			uint32_t	prefix = 0;

			order_ok &= (order > 0) - (order < 0) == wanted;
			if (compare_bytes(a, b) == 0)
				continue;
			prefix = run_prefix(&layout, a, b);
			border_ok &= prefix > 0 || (wanted < 0) == (i < j);

			/* all that stand between two of a run are in it */
			if (prefix > 0 && i < j)
				for (uint32_t k = i; k <= j; k++)
					together_ok &= rows[k].len >= prefix && memcmp(rows[k].key, a->key, prefix) == 0;
		}
	}
	report(name, "order", order_ok && !scratch.malformed);
	report(name, "order between runs", border_ok);
	report(name, "runs stand together", together_ok);
}

/* Keys cut short, or with bytes changed, are noticed or harmless. */
static void
test_malformed(void)
{
	static GsKeyCheckScratch scratch;
	const GsKeyPart parts[] = {
		{GS_PART_ESCAPED, false, false, 0, 0}, {GS_PART_LIBC, true, false, 0, 0},
		{GS_PART_LIBC, false, true, 0, 0}
	};
	GsKeyLayout layout = {0};
	bool		ok = true;

	layout.n_parts = 3;
	memcpy(layout.parts, parts, sizeof(parts));
	make_rows(&layout);
	for (uint32_t i = 1; i < N_ROWS; i++)
	{
		/* exactly as long as they are, so that a sanitizer sees a byte too far */
		uint32_t	a_len = test_below(rows[i].len + 1);
		uint32_t	b_len = test_below(rows[i - 1].len + 1);
		uint8_t    *a = malloc(a_len + 1);
		uint8_t    *b = malloc(b_len + 1);

		memcpy(a, rows[i].key, a_len);
		memcpy(b, rows[i - 1].key, b_len);
		if (a_len > 0 && test_below(2) == 0)
			a[test_below(a_len)] = (uint8_t) test_below(256);
		scratch.malformed = false;
		(void) gs_key_check_compare(&layout, locales, a, a_len, b, b_len, &scratch);
		(void) gs_key_check_run_prefix(&layout, a, a_len, b, b_len);
		memcpy(a, b, a_len < b_len ? a_len : b_len);
		scratch.malformed = false;
		(void) gs_key_check_compare(&layout, locales, a, a_len, b, b_len, &scratch);
		if (a_len != b_len && (a_len == rows[i - 1].len || b_len == rows[i - 1].len) &&
			a_len <= rows[i - 1].len)
			ok &= scratch.malformed;
		free(a);
		free(b);
	}
	report("malformed keys", "noticed", ok);
}

int
main(void)
{
	const GsKeyPart asc[] = {{GS_PART_LIBC, false, false, 0, 0}};
	const GsKeyPart desc[] = {{GS_PART_LIBC, true, true, 0, 0}};
	const GsKeyPart both[] = {{GS_PART_LIBC, false, true, 0, 0}, {GS_PART_LIBC, true, false, 0, 1}};
	const GsKeyPart mixed[] = {
		{GS_PART_FIXED, true, false, 4, 0}, {GS_PART_LIBC, false, false, 0, 0},
		{GS_PART_TEXT, true, true, 0, 0}, {GS_PART_REST, false, false, 0, 0}
	};
	const GsKeyPart strings[] = {
		{GS_PART_TEXT, false, true, 0, 0}, {GS_PART_ESCAPED, true, false, 0, 0},
		{GS_PART_LIBC, true, true, 0, 0}, {GS_PART_FIXED, false, true, 4, 0}
	};
	const GsKeyPart escaped[] = {
		{GS_PART_ESCAPED, false, true, 0, 0}, {GS_PART_LIBC, true, false, 0, 0},
		{GS_PART_LIBC, false, false, 0, 0}
	};

	locales[0] = test_open_locale(&locale_name);
	locales[1] = newlocale(LC_COLLATE_MASK, "C", (locale_t) 0);
	test_layout("ascending", asc, 1);
	test_layout("descending", desc, 1);
	test_layout("two texts", both, 2);
	test_layout("number, libc, text, rest", mixed, 4);
	test_layout("text, escaped, libc, number", strings, 4);
	test_layout("escaped, libc, libc", escaped, 3);
	test_malformed();

	freelocale(locales[0]);
	freelocale(locales[1]);
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
