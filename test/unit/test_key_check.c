/*-------------------------------------------------------------------------
 *
 * test_key_check.c
 *	  For keys of key_check.h's layouts: the order that is read out of them is
 *	  the order of the values.
 *
 * Each test makes rows of nasty and of random texts, writes their keys, and
 * compares every pair both ways: gs_key_check_compare() on the keys, and
 * strcoll() and then strcmp() on the values; for arrays as array_cmp() orders
 * by that.  Values of other kinds than LIBC are compared by their bytes, whose order
 * test_key_encode.c and test_key_stored.c are about.  What must hold of runs besides:
 * keys of one run begin with the same bytes and stand together in bytewise
 * order, two keys in different runs are ordered by their bytes, and keys of one
 * run are of one group.
 *
 *-------------------------------------------------------------------------
 */
#include "order/key_levels.h"
#include "test_key_libc.h"
#include "key/key_encode_numeric.h"

#define N_ROWS		600
#define MAX_COLUMNS 4
#define MAX_ELEMENTS 3
#define MAX_VALUES	40		/* two levels of objects of so many elements, and their keys */
#define TEST_ELEMENT_BYTES 16

typedef struct Array
{
	uint32_t	n;				/* elements */
	bool		isnull[MAX_ELEMENTS];
	char		text[MAX_ELEMENTS][TEST_ELEMENT_BYTES];
	uint32_t	n_dims;
	int32_t		bound;
} Array;

/* Arrays as elements of one. */
typedef struct Nested
{
	uint32_t	n;
	bool		isnull[MAX_ELEMENTS];
	Array		arrays[MAX_ELEMENTS];
} Nested;

/* What jsonb holds, in the order of its bytes: of a string its text, of all others what tells them apart. */
typedef struct Json
{
	uint32_t	n;
	struct
	{
		uint8_t		code;
		uint32_t	number;
		char		text[TEST_ELEMENT_BYTES];
	}			values[MAX_VALUES];
} Json;

/* A row: for each column NULL or not; a LIBC column has a text, or of some depth an array. */
typedef struct Row
{
	bool		isnull[MAX_COLUMNS];
	char		text[MAX_COLUMNS][TEST_TEXT_BYTES];
	Nested		nested[MAX_COLUMNS];	/* depth 1: the first array of it */
	Json		json[MAX_COLUMNS];
	uint32_t	end[MAX_COLUMNS];	/* offset behind the column in the key */
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

static uint32_t
put_array(uint8_t *dst, locale_t locale, const Array *array)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < array->n; i++)
		n += test_put_element(dst + n, locale, array->isnull[i] ? NULL : array->text[i]);
	return n + test_put_array_end(dst + n, array->n_dims, array->n, array->bound);
}

static uint32_t
put_nested(uint8_t *dst, locale_t locale, const Nested *nested)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < nested->n; i++)
	{
		dst[n++] = nested->isnull[i] ? GS_KEY_ARRAY_NULL : GS_KEY_ARRAY_VALUE;
		if (!nested->isnull[i])
			n += put_array(dst + n, locale, &nested->arrays[i]);
	}
	return n + test_put_array_end(dst + n, nested->n > 0, nested->n, 1);
}

static uint32_t
put_json(uint8_t *dst, locale_t locale, const Json *json)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < json->n; i++)
	{
		uint32_t	number = json->values[i].number;
		uint16_t	stored[3] = {0, 0, (uint16_t) number};
		size_t		written = 0;

		dst[n++] = json->values[i].code;
		if (json->values[i].code == GS_KEY_JSONB_STRING)
			n += test_put_text(dst + n, locale, json->values[i].text);
		else if (json->values[i].code == GS_KEY_JSONB_NUMBER)
			(void) gs_key_put_numeric(dst + n, TEST_KEY_BYTES, (uint8_t *) stored, number == 0 ? 4 : 6,
									  &written);
		else if (json->values[i].code >= GS_KEY_JSONB_ARRAY)
		{
			gs_key_put_uint32(dst + n, number);
			written = sizeof(uint32_t);
		}
		n += (uint32_t) written;
	}
	return n;
}

/* A stored numeric: special, zero, or some digits in either form; returns its bytes. */
static uint32_t
make_numeric(uint8_t *stored)
{
	static const uint16_t specials[] = {
		GS_NUMERIC_SPECIAL, GS_NUMERIC_INFINITY, GS_NUMERIC_NEGATIVE_INFINITY
	};
	static const int16_t weights[] = {-200, -62, -61, 0, 1, 61, 62, 200};
	uint16_t	words[5];
	uint32_t	n = 1;

	if (test_below(4) == 0)
		words[0] = specials[test_below(3)];
	else
	{
		uint32_t	n_digits = test_below(3);

		words[0] = test_below(2) == 0 ? 0 : GS_NUMERIC_NEGATIVE;
		words[n++] = (uint16_t) weights[test_below(8)];
		while (n_digits-- > 0)
			words[n++] = (uint16_t) (1 + test_below(3) * 4999);
	}
	memcpy(stored, words, n * sizeof(uint16_t));
	return n * (uint32_t) sizeof(uint16_t);
}

/* Write a value of a kind that is in order by its bytes, one of few; returns its bytes. */
static uint32_t
put_value(const GsKeyPart *part, uint8_t *dst)
{
	static const double floats[] = {-1.0 / 0.0, -1, -0.0, 0, 2, 1.0 / 0.0};
	const char *text = nasty[test_below(N_NASTY)];
	uint8_t		stored[16] = {0};
	size_t		n = 0;
	size_t		written;

	switch ((GsKeyPartKind) part->kind)
	{
		case GS_PART_FIXED:
			gs_key_put_uint32(dst, test_below(3) * 0x01ff0001);
			return sizeof(uint32_t);
		case GS_PART_FLOAT:
			gs_key_put_float8(dst, floats[test_below(6)]);
			return sizeof(double);
		case GS_PART_ICU:
			(void) gs_key_put_text(dst, TEST_KEY_BYTES, (uint8_t *) "ab", test_below(3), &n);
			/* FALLTHROUGH */
		case GS_PART_TEXT:
			(void) gs_key_put_text(dst + n, TEST_KEY_BYTES, (uint8_t *) text, strlen(text), &written);
			return (uint32_t) (n + written);
		case GS_PART_ESCAPED:
			stored[1] = (uint8_t) test_below(2);
			(void) gs_key_put_escaped(dst, TEST_KEY_BYTES, stored, test_below(4), &n);
			return (uint32_t) n;
		case GS_PART_BITS:
			stored[0] = (uint8_t) (test_below(2) << 7);
			(void) gs_key_put_bits(dst, TEST_KEY_BYTES, stored, test_below(12), &n);
			return (uint32_t) n;
		case GS_PART_NUMERIC:
			(void) gs_key_put_numeric(dst, TEST_KEY_BYTES, stored, make_numeric(stored), &n);
			return (uint32_t) n;
		case GS_PART_INET:
			stored[0] = (uint8_t) test_below(3);
			n = test_below(2) == 0 ? 4 : 16;
			return (uint32_t) gs_key_put_inet(dst, n == 4 ? AF_INET : AF_INET + 1,
											  (uint8_t) (8 * n - test_below(4)), stored, n);
		case GS_PART_OIDVECTOR:
			gs_key_put_uint32(dst, test_below(3));
			for (n = 4; n < 4 + 4 * (size_t) dst[3]; n += 4)
				gs_key_put_uint32(dst + n, test_below(2) * 0x01ff0001);
			return (uint32_t) n;
		case GS_PART_REST:
			(void) gs_key_put_bytes(dst, TEST_KEY_BYTES, (uint8_t *) text, strlen(text), &n);
			return (uint32_t) n;
		case GS_PART_LIBC:
			break;
	}
	return 0;
}

/* Write an array of such values, so many deep. */
static uint32_t
put_values(const GsKeyPart *part, uint32_t depth, uint8_t *dst)
{
	uint32_t	length = test_below(MAX_ELEMENTS + 1);
	bool		marked = depth > 1 || part->kind != GS_PART_FLOAT;
	uint32_t	n = 0;

	if (depth == 0)
		return put_value(part, dst);
	for (uint32_t i = 0; i < length; i++)
	{
		bool		isnull = test_below(8) == 0;

		if (marked)
			dst[n++] = isnull ? GS_KEY_ARRAY_NULL : GS_KEY_ARRAY_VALUE;
		else if (isnull)
		{
			memset(dst + n, 0xff, part->width);
			n += part->width;
		}
		if (!isnull)
			n += put_values(part, depth - 1, dst + n);
	}
	if (!marked)
	{
		/* the end of one is as long as an element, and holds the usual one */
		memset(dst + n, 0, part->width);
		n += part->width - 1;
	}
	return n + test_put_array_end(dst + n, length > 0 ? 1 + test_below(2) : 0, length,
								  (int32_t) test_below(2));
}

static void
put_column(const GsKeyPart *part, Row *row, int c)
{
	uint8_t    *dst = row->key + row->len;
	uint32_t	n = 1;

	dst[0] = gs_key_null_byte(row->isnull[c], part->nulls_first);
	if (!row->isnull[c])
	{
		if (part->kind != GS_PART_LIBC)
			n += put_values(part, part->depth, dst + 1);
		else if (part->jsonb)
			n += put_json(dst + 1, locales[part->locale], &row->json[c]);
		else if (part->depth == 0)
			n += test_put_text(dst + 1, locales[part->locale], row->text[c]);
		else if (part->depth == 1)
			n += put_array(dst + 1, locales[part->locale], &row->nested[c].arrays[0]);
		else
			n += put_nested(dst + 1, locales[part->locale], &row->nested[c]);
		if (part->desc)
			gs_key_complement(dst + 1, n - 1);
	}
	row->len += n;
	row->end[c] = row->len;
}

/* Elements few enough that arrays agree in the first ones. */
static void
make_nested(Nested *nested)
{
	nested->n = test_below(MAX_ELEMENTS + 1);
	for (uint32_t j = 0; j < MAX_ELEMENTS; j++)
	{
		Array	   *array = &nested->arrays[j];

		nested->isnull[j] = test_below(8) == 0;
		array->n = test_below(MAX_ELEMENTS + 1);
		array->n_dims = array->n == 0 ? 0 : 1 + test_below(2);
		array->bound = (int32_t) test_below(3) - 1;
		for (uint32_t i = 0; i < MAX_ELEMENTS; i++)
		{
			array->isnull[i] = test_below(8) == 0;
			strcpy(array->text[i], nasty[test_below(N_NASTY)]);
		}
	}
}

/* Add a value that is so deep in others, and what it holds. */
static void
make_json(Json *json, uint32_t depth)
{
	static const uint8_t codes[] = {
		GS_KEY_JSONB_OBJECT, GS_KEY_JSONB_ARRAY, GS_KEY_JSONB_STRING, GS_KEY_JSONB_STRING,
		GS_KEY_JSONB_NUMBER, GS_KEY_JSONB_NULL, GS_KEY_JSONB_TRUE, GS_KEY_JSONB_FALSE
	};
	uint32_t	first = depth < 2 ? 0 : 2;
	uint8_t		code = codes[first + test_below(8 - first)];
	uint32_t	number = 0;

	if (code == GS_KEY_JSONB_NUMBER)
		number = test_below(3);
	else if (code == GS_KEY_JSONB_ARRAY)
		number = test_below(MAX_ELEMENTS + 1);
	else if (code == GS_KEY_JSONB_OBJECT)
		number = 2 * test_below(MAX_ELEMENTS);
	json->values[json->n].code = code;
	json->values[json->n].number = number;
	strcpy(json->values[json->n++].text, nasty[test_below(N_NASTY)]);
	if (code < GS_KEY_JSONB_ARRAY)
		return;
	for (uint32_t i = 0; i < number; i++)
	{
		make_json(json, code == GS_KEY_JSONB_OBJECT && i % 2 == 0 ? 3 : depth + 1);
		if (code == GS_KEY_JSONB_OBJECT && i % 2 == 0)
			json->values[json->n - 1].code = GS_KEY_JSONB_STRING;
	}
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
			if (layout->n_parts == 1 ? i < N_NASTY : test_below(2) == 0)
				strcpy(row->text[c], nasty[layout->n_parts == 1 ? i : test_below(N_NASTY)]);
			else
				test_make_text(row->text[c], layout->n_parts == 1 ? 6 : 2, TEST_N_PIECES);
			make_nested(&row->nested[c]);
			row->json[c] = (Json){.n = 1, .values = {{.code = GS_KEY_JSONB_EMPTY_ROOT}}};
			if (test_below(16) > 0)
			{
				row->json[c].n = 0;
				make_json(&row->json[c], 0);
			}
			put_column(&layout->parts[c], row, c);
		}
	}
}

static int
compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Two values one of which is NULL, as elements of arrays are ordered. */
static int
compare_nulls(bool a, bool b)
{
	return compare_numbers(a, b);
}

static int
compare_arrays(locale_t locale, const Array *a, const Array *b)
{
	int			order = 0;

	for (uint32_t i = 0; i < a->n && i < b->n && order == 0; i++)
	{
		order = compare_nulls(a->isnull[i], b->isnull[i]);
		if (order == 0 && !a->isnull[i])
			order = test_compare_texts(locale, a->text[i], b->text[i]);
	}
	if (order == 0)
		order = compare_numbers(a->n, b->n);
	if (order == 0)
		order = compare_numbers(a->n_dims, b->n_dims);
	return order != 0 || a->n == 0 ? order : compare_numbers(a->bound, b->bound);
}

static int
compare_nested(locale_t locale, const Nested *a, const Nested *b)
{
	int			order = 0;

	for (uint32_t i = 0; i < a->n && i < b->n && order == 0; i++)
	{
		order = compare_nulls(a->isnull[i], b->isnull[i]);
		if (order == 0 && !a->isnull[i])
			order = compare_arrays(locale, &a->arrays[i], &b->arrays[i]);
	}
	return order != 0 ? order : compare_numbers(a->n, b->n);
}

static int
compare_json(locale_t locale, const Json *a, const Json *b)
{
	int			order = 0;

	for (uint32_t i = 0; i < a->n && i < b->n && order == 0; i++)
	{
		order = compare_numbers(a->values[i].code, b->values[i].code);
		if (order == 0 && a->values[i].code == GS_KEY_JSONB_STRING)
			order = test_compare_texts(locale, a->values[i].text, b->values[i].text);
		else if (order == 0)
			order = compare_numbers(a->values[i].number, b->values[i].number);
	}
	return order;
}

static int
compare_spans(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	int			order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? compare_numbers(order, 0) : compare_numbers(a_len, b_len);
}

/* Two columns by their bytes, complemented ones included. */
static int
compare_columns(const Row *a, const Row *b, int c)
{
	uint32_t	a_at = c > 0 ? a->end[c - 1] : 0;
	uint32_t	b_at = c > 0 ? b->end[c - 1] : 0;

	return compare_spans(a->key + a_at, a->end[c] - a_at, b->key + b_at, b->end[c] - b_at);
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
		if (part->kind != GS_PART_LIBC)
			order = compare_columns(a, b, c);
		else if (part->jsonb)
			order = compare_json(locales[part->locale], &a->json[c], &b->json[c]);
		else if (part->depth == 1)
			order = compare_arrays(locales[part->locale], &a->nested[c].arrays[0],
								   &b->nested[c].arrays[0]);
		else if (part->depth == 2)
			order = compare_nested(locales[part->locale], &a->nested[c], &b->nested[c]);
		else
			order = test_compare_texts(locales[part->locale], a->text[c], b->text[c]);
		if (order != 0)
			return part->desc && part->kind == GS_PART_LIBC ? -order : order;
	}
	return 0;
}

static int
compare_bytes(const void *x, const void *y)
{
	const Row  *a = x;
	const Row  *b = y;

	return compare_spans(a->key, a->len, b->key, b->len);
}

static uint32_t
run_prefix(const GsKeyLayout *layout, const Row *a, const Row *b)
{
	return gs_key_check_run_prefix(layout, a->key, a->len, b->key, b->len);
}

/*
 * Keys without level 1 are shorter, and made again as they were.  Most texts of one level 1 or another have
 * characters that it is not made of one by one; but some do not.
 */
static void
test_levels(const char *name, const GsKeyLayout *layout)
{
	static uint8_t shortened[sizeof(rows[0].key)];
	static uint8_t made[sizeof(rows[0].key)];
	GsKeyLevels *levels = gs_key_levels_open(layout);
	bool		has_text = layout->parts[0].kind == GS_PART_LIBC && layout->parts[0].depth == 0 &&
		!layout->parts[0].jsonb;
	uint32_t	n_shortened = 0;
	bool		ok = true;

	for (uint32_t i = 0; i < N_ROWS && levels != NULL; i++)
	{
		uint32_t	len = gs_key_levels_shorten(levels, rows[i].key, rows[i].len, shortened);
		uint32_t	damaged = test_below(rows[i].len + 1);

		if (len > 0)
		{
			n_shortened++;
			ok &= len < rows[i].len &&
				gs_key_levels_remake(levels, shortened, len, made, rows[i].len) == rows[i].len &&
				memcmp(made, rows[i].key, rows[i].len) == 0 &&
				gs_key_levels_remake(levels, shortened, len, made, rows[i].len - 1) == 0;
			(void) gs_key_levels_remake(levels, shortened, test_below(len + 1), made, sizeof(made));
			shortened[test_below(len)] = (uint8_t) test_below(256);
			(void) gs_key_levels_remake(levels, shortened, len, made, test_below(sizeof(made)));
		}
		(void) gs_key_levels_shorten(levels, rows[i].key, damaged, shortened);
	}
	gs_key_levels_close(levels);
	report(name, "keys without level 1", ok && (!has_text || n_shortened > 50));
}

static void
test_layout(const char *name, const GsKeyPart *parts, uint8_t n_parts)
{
	static GsKeyCheckScratch scratch;
	GsKeyLayout layout = {0};
	bool		order_ok = true;
	bool		border_ok = true;
	bool		together_ok = true;
	bool		group_ok = true;

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
			group_ok &= prefix == 0 || gs_key_check_group(&layout, a->key, a->len) <= prefix;

			/* all that stand between two of a run are in it */
			if (prefix > 0 && i < j)
				for (uint32_t k = i; k <= j; k++)
					together_ok &= rows[k].len >= prefix && memcmp(rows[k].key, a->key, prefix) == 0;
		}
	}
	report(name, "order", order_ok && !scratch.malformed);
	report(name, "order between runs", border_ok);
	report(name, "runs stand together", together_ok);
	report(name, "groups hold runs", group_ok);
	test_levels(name, &layout);
}

/* Keys cut short, or with bytes changed, are noticed or harmless. */
static void
test_malformed(const char *name, const GsKeyPart *parts, uint8_t n_parts)
{
	static GsKeyCheckScratch scratch;
	GsKeyLayout layout = {0};
	bool		ok = true;

	layout.n_parts = n_parts;
	memcpy(layout.parts, parts, n_parts * sizeof(GsKeyPart));
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
	report(name, "malformed keys are noticed", ok);
}

int
main(void)
{
	/* kind, desc, nulls_first, width, locale, depth, jsonb */
	const GsKeyPart asc[] = {{GS_PART_LIBC, false, false, 0, 0, 0, false}};
	const GsKeyPart desc[] = {{GS_PART_LIBC, true, true, 0, 0, 0, false}};
	const GsKeyPart both[] = {
		{GS_PART_LIBC, false, true, 0, 0, 0, false}, {GS_PART_LIBC, true, false, 0, 1, 0, false}
	};
	const GsKeyPart mixed[] = {
		{GS_PART_FIXED, true, false, 4, 0, 0, false}, {GS_PART_LIBC, false, false, 0, 0, 0, false},
		{GS_PART_TEXT, true, true, 0, 0, 0, false}, {GS_PART_REST, false, false, 0, 0, 0, false}
	};
	const GsKeyPart strings[] = {
		{GS_PART_TEXT, false, true, 0, 0, 0, false}, {GS_PART_ESCAPED, true, false, 0, 0, 0, false},
		{GS_PART_LIBC, true, true, 0, 0, 0, false}, {GS_PART_FIXED, false, true, 4, 0, 0, false}
	};
	const GsKeyPart escaped[] = {
		{GS_PART_ESCAPED, false, true, 0, 0, 0, false}, {GS_PART_LIBC, true, false, 0, 0, 0, false},
		{GS_PART_LIBC, false, false, 0, 0, 0, false}
	};
	const GsKeyPart array[] = {{GS_PART_LIBC, false, false, 0, 0, 1, false}};
	const GsKeyPart array_desc[] = {{GS_PART_LIBC, true, true, 0, 0, 1, false}};
	const GsKeyPart arrays[] = {
		{GS_PART_LIBC, true, false, 0, 0, 1, false}, {GS_PART_LIBC, false, true, 0, 1, 1, false},
		{GS_PART_LIBC, false, false, 0, 0, 0, false}, {GS_PART_REST, false, false, 0, 0, 0, false}
	};
	const GsKeyPart nested[] = {
		{GS_PART_FIXED, false, false, 4, 0, 0, false}, {GS_PART_LIBC, false, true, 0, 0, 2, false},
		{GS_PART_LIBC, true, false, 0, 0, 1, false}
	};
	const GsKeyPart nested_desc[] = {{GS_PART_LIBC, true, false, 0, 0, 2, false}};
	const GsKeyPart stored[] = {
		{GS_PART_NUMERIC, true, false, 0, 0, 0, false}, {GS_PART_LIBC, false, true, 0, 0, 0, false},
		{GS_PART_NUMERIC, false, true, 0, 0, 0, false}, {GS_PART_LIBC, true, false, 0, 1, 0, false}
	};
	const GsKeyPart icu[] = {
		{GS_PART_ICU, false, false, 0, 0, 0, false}, {GS_PART_ICU, true, true, 0, 0, 0, false},
		{GS_PART_LIBC, false, false, 0, 0, 1, false}
	};
	const GsKeyPart others[] = {
		{GS_PART_BITS, false, true, 0, 0, 0, false}, {GS_PART_INET, true, false, 0, 0, 0, false},
		{GS_PART_OIDVECTOR, true, true, 0, 0, 0, false}, {GS_PART_LIBC, true, false, 0, 0, 0, false}
	};
	const GsKeyPart others_desc[] = {
		{GS_PART_BITS, true, false, 0, 0, 0, false}, {GS_PART_INET, false, true, 0, 0, 0, false},
		{GS_PART_OIDVECTOR, false, false, 0, 0, 0, false}, {GS_PART_LIBC, false, false, 0, 0, 0, false}
	};
	const GsKeyPart value_arrays[] = {
		{GS_PART_NUMERIC, true, true, 0, 0, 1, false}, {GS_PART_FLOAT, true, false, 8, 0, 1, false},
		{GS_PART_LIBC, true, false, 0, 0, 0, false}, {GS_PART_REST, false, false, 0, 0, 0, false}
	};
	const GsKeyPart value_arrays_asc[] = {
		{GS_PART_FIXED, false, false, 4, 0, 2, false}, {GS_PART_FLOAT, false, true, 8, 0, 2, false},
		{GS_PART_ICU, false, false, 0, 0, 1, false}, {GS_PART_LIBC, false, true, 0, 0, 0, false}
	};

	const GsKeyPart json[] = {{GS_PART_LIBC, false, false, 0, 0, 0, true}};
	const GsKeyPart jsons[] = {
		{GS_PART_LIBC, true, true, 0, 0, 0, true}, {GS_PART_LIBC, false, false, 0, 0, 1, false},
		{GS_PART_LIBC, true, false, 0, 1, 0, true}, {GS_PART_REST, false, false, 0, 0, 0, false}
	};

	locales[0] = test_open_locale(&locale_name);
	locales[1] = newlocale(LC_COLLATE_MASK, "C", (locale_t) 0);
	test_layout("ascending", asc, 1);
	test_layout("descending", desc, 1);
	test_layout("two texts", both, 2);
	test_layout("number, libc, text, rest", mixed, 4);
	test_layout("text, escaped, libc, number", strings, 4);
	test_layout("escaped, libc, libc", escaped, 3);
	test_layout("array", array, 1);
	test_layout("array, descending", array_desc, 1);
	test_layout("array, array, libc, rest", arrays, 4);
	test_layout("number, array of arrays, array", nested, 3);
	test_layout("array of arrays, descending", nested_desc, 1);
	test_layout("numeric, libc, numeric, libc", stored, 4);
	test_layout("icu, icu, array", icu, 3);
	test_layout("bits, inet, oidvector, libc", others, 4);
	test_layout("bits, inet, oidvector, libc, the other way", others_desc, 4);
	test_layout("arrays of numerics and of floats, libc, rest", value_arrays, 4);
	test_layout("arrays of arrays and of text, libc", value_arrays_asc, 4);
	test_layout("jsonb", json, 1);
	test_layout("jsonb, array, jsonb, rest", jsons, 4);
	test_malformed("jsonb, array, jsonb", jsons, 3);
	test_malformed("escaped, libc, libc", escaped, 3);
	test_malformed("numeric, libc, numeric, libc", stored, 4);
	test_malformed("bits, inet, oidvector, libc", others, 4);
	test_malformed("icu, icu, array", icu, 3);
	test_malformed("arrays of arrays and of text, libc", value_arrays_asc, 4);
	test_malformed("array, array, libc", arrays, 3);
	test_malformed("number, array of arrays, array", nested, 3);

	freelocale(locales[0]);
	freelocale(locales[1]);
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
