/*-------------------------------------------------------------------------
 *
 * test_key_encode.c
 *	  For every encoder of key_encode.h: the order of the bytes is the order
 *	  of the values.
 *
 * Each test holds a set of values, nasty ones first and random ones after,
 * writes their keys, ascending and descending, and compares every pair both
 * ways: memcmp and then length on the keys, and a comparison on the values
 * that shares nothing with the encoders.  Equal values must have equal keys.
 *
 * gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pedantic -Isrc
 *
 *-------------------------------------------------------------------------
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "key/key_encode.h"
#include "test_key.h"

#define N_RANDOM	700
#define MAX_VALUES	1000
#define MAX_BYTES	40

/* A value of any of the types tested. */
typedef struct Value
{
	bool		isnull;
	int64_t		i;				/* also microseconds of a span */
	uint64_t	u;
	int64_t		days;
	float		f4;
	double		f8;
	size_t		len;
	uint8_t		bytes[MAX_BYTES];
} Value;

typedef void (*PutFunction) (Key *key, const Value *value);
typedef int (*CompareFunction) (const Value *a, const Value *b);

/* A type: how it is written, compared and made up. */
typedef struct Type
{
	const char *name;
	PutFunction put;
	CompareFunction compare;
	void		(*random) (Value *value);
} Type;

static Value values[MAX_VALUES];
static int	n_values;

/*
 * Comparing values.
 */
static int
compare_int(const Value *a, const Value *b)
{
	return (a->i > b->i) - (a->i < b->i);
}

static int
compare_uint(const Value *a, const Value *b)
{
	return (a->u > b->u) - (a->u < b->u);
}

/* NaN equals NaN and is above all else, as in PostgreSQL. */
static int
compare_double(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
	return (a > b) - (a < b);
}

static int
compare_float4(const Value *a, const Value *b)
{
	return compare_double(a->f4, b->f4);
}

static int
compare_float8(const Value *a, const Value *b)
{
	return compare_double(a->f8, b->f8);
}

static int
compare_span(const Value *a, const Value *b)
{
	__extension__ typedef __int128 Wide;
	Wide		wa = (Wide) a->days * 86400000000 + a->i;
	Wide		wb = (Wide) b->days * 86400000000 + b->i;

	return (wa > wb) - (wa < wb);
}

static int
compare_bytes(const Value *a, const Value *b)
{
	for (size_t i = 0; i < a->len && i < b->len; i++)
	{
		if (a->bytes[i] != b->bytes[i])
			return a->bytes[i] < b->bytes[i] ? -1 : 1;
	}
	return (a->len > b->len) - (a->len < b->len);
}

/*
 * Writing keys: the encoders behind one signature.
 */
#define FIXED_PUT(name, width, value_expression) \
static void \
put_##name(Key *key, const Value *value) \
{ \
	gs_key_put_##name(key->bytes + key->len, value_expression); \
	key->len += (width); \
}

FIXED_PUT(bool, 1, value->u != 0)
FIXED_PUT(uint8, 1, (uint8_t) value->u)
FIXED_PUT(uint16, 2, (uint16_t) value->u)
FIXED_PUT(uint32, 4, (uint32_t) value->u)
FIXED_PUT(uint40, 5, value->u)
FIXED_PUT(uint64, 8, value->u)
FIXED_PUT(int16, 2, (int16_t) value->i)
FIXED_PUT(int32, 4, (int32_t) value->i)
FIXED_PUT(int64, 8, value->i)
FIXED_PUT(float4, 4, value->f4)
FIXED_PUT(float8, 8, value->f8)

static void
put_span(Key *key, const Value *value)
{
	gs_key_put_span(key->bytes + key->len, value->days, value->i);
	key->len += GS_KEY_SPAN_BYTES;
}

typedef bool (*VaryingFunction) (uint8_t *dst, size_t room, const uint8_t *src, size_t len,
								 size_t *written);

static void
put_varying(Key *key, const Value *value, VaryingFunction put)
{
	size_t		written;

	if (!put(key->bytes + key->len, MAX_KEY - key->len, value->bytes, value->len, &written))
	{
		printf("FAILED: no room in a key of the test\n");
		exit(1);
	}
	key->len += written;
}

static void
put_bytes(Key *key, const Value *value)
{
	put_varying(key, value, gs_key_put_bytes);
}

static void
put_text(Key *key, const Value *value)
{
	put_varying(key, value, gs_key_put_text);
}

static void
put_escaped(Key *key, const Value *value)
{
	put_varying(key, value, gs_key_put_escaped);
}

/*
 * Making up values.  Few distinct bytes and short strings, so that many
 * values are equal, or a prefix of another.
 */
static uint64_t
random_magnitude(void)
{
	return random_bits() >> (random_bits() % 64);
}

static void
random_bool(Value *value)
{
	value->u = random_bits() % 2;
}

static void
random_uint8(Value *value)
{
	value->u = random_bits() & UINT8_MAX;
}

static void
random_uint16(Value *value)
{
	value->u = random_magnitude() & UINT16_MAX;
}

static void
random_uint32(Value *value)
{
	value->u = random_magnitude() & UINT32_MAX;
}

static void
random_uint40(Value *value)
{
	value->u = random_magnitude() & UINT64_C(0xffffffffff);
}

static void
random_uint64(Value *value)
{
	value->u = random_magnitude();
}

static void
random_int16(Value *value)
{
	value->i = (int16_t) (random_magnitude() * (random_bits() % 2 ? 1 : -1));
}

static void
random_int32(Value *value)
{
	value->i = (int32_t) (random_magnitude() * (random_bits() % 2 ? 1 : -1));
}

static void
random_int64(Value *value)
{
	value->i = (int64_t) (random_magnitude() * (random_bits() % 2 ? 1 : -1));
}

/* any bits at all: NaNs with payloads, denormals and infinities with them */
static void
random_float4(Value *value)
{
	uint32_t	bits = (uint32_t) random_bits();

	if (random_bits() % 8 == 0)
		bits |= UINT32_C(0x7f800000);
	if (random_bits() % 8 == 0)
		bits &= UINT32_C(0x807fffff);
	memcpy(&value->f4, &bits, sizeof(bits));
}

static void
random_float8(Value *value)
{
	uint64_t	bits = random_bits();

	if (random_bits() % 8 == 0)
		bits |= UINT64_C(0x7ff0000000000000);
	if (random_bits() % 8 == 0)
		bits &= UINT64_C(0x800fffffffffffff);
	memcpy(&value->f8, &bits, sizeof(bits));
}

static void
random_span(Value *value)
{
	random_int64(value);
	value->days = (int32_t) random_bits() % 4;
	if (random_bits() % 4 == 0)
		value->days = (int64_t) (int32_t) random_bits() * 31;
	else if (random_bits() % 2 == 0)
		value->i = value->days * -86400000000 + (int64_t) (random_bits() % 3) - 1;
}

static void
random_string(Value *value, const char *alphabet, size_t n_letters)
{
	value->len = random_bits() % (random_bits() % 8 == 0 ? MAX_BYTES : 6);
	for (size_t i = 0; i < value->len; i++)
		value->bytes[i] = (uint8_t) alphabet[random_bits() % n_letters];
}

static void
random_text(Value *value)
{
	random_string(value, "\1\2ab\177\200\376\377", 8);
}

static void
random_bytea(Value *value)
{
	random_string(value, "\0\0\0\1\2a\376\377", 8);
}

static const Type type_bool = {"bool", put_bool, compare_uint, random_bool};
static const Type type_uint8 = {"uint8", put_uint8, compare_uint, random_uint8};
static const Type type_uint16 = {"uint16", put_uint16, compare_uint, random_uint16};
static const Type type_uint32 = {"uint32", put_uint32, compare_uint, random_uint32};
static const Type type_uint40 = {"uint40", put_uint40, compare_uint, random_uint40};
static const Type type_uint64 = {"uint64", put_uint64, compare_uint, random_uint64};
static const Type type_int16 = {"int16", put_int16, compare_int, random_int16};
static const Type type_int32 = {"int32", put_int32, compare_int, random_int32};
static const Type type_int64 = {"int64", put_int64, compare_int, random_int64};
static const Type type_float4 = {"float4", put_float4, compare_float4, random_float4};
static const Type type_float8 = {"float8", put_float8, compare_float8, random_float8};
static const Type type_span = {"span", put_span, compare_span, random_span};
static const Type type_bytes = {"bytes", put_bytes, compare_bytes, random_bytea};
static const Type type_text = {"text", put_text, compare_bytes, random_text};
static const Type type_bytea = {"bytea", put_escaped, compare_bytes, random_bytea};

/* A new value to fill in. */
static Value *
add(void)
{
	Value	   *value;

	if (n_values == MAX_VALUES)
	{
		printf("FAILED: too many values in a test\n");
		exit(1);
	}
	value = &values[n_values++];
	memset(value, 0, sizeof(*value));
	return value;
}

static void
add_string(const char *bytes, size_t len)
{
	Value	   *value = add();

	memcpy(value->bytes, bytes, len);
	value->len = len;
}

/* Every pair of the values gathered, in one direction. */
static bool
pairs_agree(const Type *type, bool desc)
{
	static Key	keys[MAX_VALUES];

	for (int i = 0; i < n_values; i++)
	{
		keys[i].len = 0;
		type->put(&keys[i], &values[i]);
		if (desc)
			gs_key_complement(keys[i].bytes, keys[i].len);
	}
	for (int i = 0; i < n_values; i++)
	{
		for (int j = 0; j < n_values; j++)
		{
			int			wanted = type->compare(&values[i], &values[j]);

			if (compare_keys(&keys[i], &keys[j]) != (desc ? -wanted : wanted))
			{
				printf("values %d and %d: ", i, j);
				return false;
			}
		}
	}
	return true;
}

/* Add random values to those there, test, and forget them. */
static void
finish(const Type *type, bool has_desc)
{
	for (int i = 0; i < N_RANDOM; i++)
		type->random(add());
	report(type->name, "ascending", pairs_agree(type, false));
	if (has_desc)
		report(type->name, "descending", pairs_agree(type, true));
	n_values = 0;
}

static void
test_integers(void)
{
	static const Type *const unsigned_types[] = {
		&type_bool, &type_uint8, &type_uint16, &type_uint32, &type_uint40, &type_uint64
	};
	static const uint64_t maxima[] = {
		1, UINT8_MAX, UINT16_MAX, UINT32_MAX, UINT64_C(0xffffffffff), UINT64_MAX
	};
	static const Type *const signed_types[] = {&type_int16, &type_int32, &type_int64};
	static const int64_t minima[] = {INT16_MIN, INT32_MIN, INT64_MIN};

	for (int t = 0; t < COUNT(unsigned_types); t++)
	{
		for (uint64_t power = 1; power != 0 && power <= maxima[t]; power <<= 1)
		{
			add()->u = power;
			add()->u = power - 1;
		}
		add()->u = maxima[t];
		add()->u = maxima[t] - 1;
		finish(unsigned_types[t], true);
	}
	for (int t = 0; t < COUNT(signed_types); t++)
	{
		int64_t		min = minima[t];
		int64_t		max = -(min + 1);

		for (int64_t at = max; at > 0; at /= 2)
		{
			add()->i = at;
			add()->i = -at;
			add()->i = -at - 1;
		}
		add()->i = 0;
		add()->i = min;
		add()->i = min + 1;
		finish(signed_types[t], true);
	}
}

static void
test_floats(void)
{
	static const uint32_t bits4[] = {
		0x00000000, 0x80000000,				/* zeroes */
		0x7fc00000, 0xffc00000,				/* quiet NaNs of both signs */
		0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff, 0x7fc12345, 0xffabcdef,
		0x00000001, 0x80000001, 0x007fffff, 0x807fffff	/* denormals */
	};
	static const uint64_t bits8[] = {
		0, UINT64_C(0x8000000000000000),
		UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000),
		UINT64_C(0x7ff0000000000001), UINT64_C(0xfff0000000000001),
		UINT64_C(0x7fffffffffffffff), UINT64_C(0xffffffffffffffff),
		UINT64_C(0x7ff8123456789abc), UINT64_C(0xfff8fedcba987654),
		1, UINT64_C(0x8000000000000001),
		UINT64_C(0x000fffffffffffff), UINT64_C(0x800fffffffffffff)
	};
	static const double both[] = {
		1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 0.1, -0.1, FLT_MIN, -FLT_MIN, FLT_MAX, -FLT_MAX,
		FLT_EPSILON, INFINITY, -INFINITY
	};
	static const double wide[] = {
		DBL_MIN, -DBL_MIN, DBL_MAX, -DBL_MAX, DBL_EPSILON, 1.0 + DBL_EPSILON
	};

	for (int i = 0; i < COUNT(bits4); i++)
		memcpy(&add()->f4, &bits4[i], sizeof(bits4[i]));
	for (int i = 0; i < COUNT(both); i++)
		add()->f4 = (float) both[i];
	finish(&type_float4, true);

	for (int i = 0; i < COUNT(bits8); i++)
		memcpy(&add()->f8, &bits8[i], sizeof(bits8[i]));
	for (int i = 0; i < COUNT(both); i++)
		add()->f8 = both[i];
	for (int i = 0; i < COUNT(wide); i++)
		add()->f8 = wide[i];
	finish(&type_float8, true);
}

/* The largest days that an interval's months and days can make, and around. */
static void
test_spans(void)
{
	static const int64_t days[] = {
		0, 1, -1, 30, -30, INT64_C(2147483647) * 31, INT64_C(-2147483648) * 31
	};
	static const int64_t usecs[] = {
		0, 1, -1, 86400000000, -86400000000, 86399999999, -86399999999, 86400000001,
		INT64_MAX, INT64_MIN, 30 * INT64_C(86400000000)
	};

	for (int d = 0; d < COUNT(days); d++)
	{
		for (int u = 0; u < COUNT(usecs); u++)
		{
			Value	   *value = add();

			value->days = days[d];
			value->i = usecs[u];
		}
	}
	finish(&type_span, true);
}

static void
add_common_strings(void)
{
	add_string("", 0);
	add_string("a", 1);
	add_string("ab", 2);
	add_string("abc", 3);
	add_string("abd", 3);
	add_string("b", 1);
	add_string("\1", 1);
	add_string("\1\1", 2);
	add_string("a\1", 2);
	add_string("\377", 1);
	add_string("\377\377", 2);
	add_string("\376\377", 2);
	add_string("\177", 1);
	add_string("\200", 1);
}

static void
add_nul_strings(void)
{
	add_string("\0", 1);
	add_string("\0\0", 2);
	add_string("\0\0\0", 3);
	add_string("\0\1", 2);
	add_string("\0\1\0", 3);
	add_string("\0\377", 2);
	add_string("a\0", 2);
	add_string("a\0\0", 3);
	add_string("a\0b", 3);
	add_string("a\0\1", 3);
	add_string("\1\0", 2);
	add_string("\377\0", 2);
}

/* Unended bytes are for ascending columns only. */
static void
test_strings(void)
{
	add_common_strings();
	finish(&type_text, true);
	add_common_strings();
	add_nul_strings();
	finish(&type_bytea, true);
	add_common_strings();
	add_nul_strings();
	finish(&type_bytes, false);
}

/*
 * Whatever the room, what is written is the beginning of the whole encoding,
 * nothing beyond it is touched, and the answer says whether it is all.
 */
static void
test_room(void)
{
	static const struct
	{
		const char *name;
		VaryingFunction put;
		void		(*random) (Value *value);
	}			encoders[] = {
		{"bytes", gs_key_put_bytes, random_bytea},
		{"text", gs_key_put_text, random_text},
		{"bytea", gs_key_put_escaped, random_bytea},
	};

	for (int e = 0; e < COUNT(encoders); e++)
	{
		bool		ok = true;

		for (int i = 0; i < N_RANDOM; i++)
		{
			Value		value = {0};
			Key			whole;

			encoders[e].random(&value);
			ok &= encoders[e].put(whole.bytes, MAX_KEY, value.bytes, value.len, &whole.len);
			for (size_t room = 0; room <= whole.len + 1; room++)
			{
				Key			cut;
				bool		all;

				memset(cut.bytes, 0xee, sizeof(cut.bytes));
				all = encoders[e].put(cut.bytes, room, value.bytes, value.len, &cut.len);
				ok &= is_cut_right(&cut, room, all, &whole);
			}
		}
		report(encoders[e].name, "cut to any room", ok);
	}
}

/*
 * Keys of several columns, with NULLs, in every combination of directions and
 * places of NULLs.
 */
#define MAX_COLUMNS	3

static void
test_columns(const char *name, const Type *const *types, int n_columns)
{
	static Value rows[MAX_COLUMNS][MAX_VALUES];
	static Key	keys[MAX_VALUES];
	const int	n_rows = 300;
	bool		ok = true;

	/* few distinct values in a column, so that the next one decides */
	for (int c = 0; c < n_columns; c++)
	{
		for (int i = 0; i < n_rows; i++)
		{
			Value	   *value = &rows[c][i];

			if (i >= 12)
			{
				*value = rows[c][random_bits() % 12];
				continue;
			}
			memset(value, 0, sizeof(*value));
			types[c]->random(value);
			value->isnull = i < 2;
		}
	}

	for (int options = 0; options < 1 << (2 * n_columns); options++)
	{
		for (int i = 0; i < n_rows; i++)
		{
			keys[i].len = 0;
			for (int c = 0; c < n_columns; c++)
			{
				bool		desc = options >> (2 * c) & 1;
				bool		nulls_first = options >> (2 * c + 1) & 1;
				size_t		start;

				keys[i].bytes[keys[i].len++] = gs_key_null_byte(rows[c][i].isnull, nulls_first);
				if (rows[c][i].isnull)
					continue;
				start = keys[i].len;
				types[c]->put(&keys[i], &rows[c][i]);
				if (desc)
					gs_key_complement(keys[i].bytes + start, keys[i].len - start);
			}
		}
		for (int i = 0; i < n_rows; i++)
		{
			for (int j = 0; j < n_rows; j++)
			{
				int			wanted = 0;

				for (int c = 0; c < n_columns && wanted == 0; c++)
				{
					const Value *a = &rows[c][i];
					const Value *b = &rows[c][j];
					bool		desc = options >> (2 * c) & 1;
					bool		nulls_first = options >> (2 * c + 1) & 1;

					if (a->isnull || b->isnull)
					{
						if (a->isnull != b->isnull)
							wanted = a->isnull == nulls_first ? -1 : 1;
					}
					else
						wanted = types[c]->compare(a, b) * (desc ? -1 : 1);
				}
				ok &= compare_keys(&keys[i], &keys[j]) == wanted;
			}
		}
	}
	report(name, "several columns", ok);
}

int
main(void)
{
	test_integers();
	test_floats();
	test_spans();
	test_strings();
	test_room();
	test_columns("text, text", (const Type *const[]) {&type_text, &type_text}, 2);
	test_columns("bytea, bytea, bytea",
				 (const Type *const[]) {&type_bytea, &type_bytea, &type_bytea}, 3);
	test_columns("text, int32, text",
				 (const Type *const[]) {&type_text, &type_int32, &type_text}, 3);
	test_columns("float8, bytea, bool",
				 (const Type *const[]) {&type_float8, &type_bytea, &type_bool}, 3);
	test_columns("int64, int16, uint8",
				 (const Type *const[]) {&type_int64, &type_int16, &type_uint8}, 3);

	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
