/*-------------------------------------------------------------------------
 *
 * test_key_stored.c
 *	  The encoders of values that PostgreSQL stores in a form of its own:
 *	  numeric, inet, bit strings.
 *
 * As in test_key_encode.c: nasty values, then random ones; every pair compared
 * both ways, by the bytes and by the values, ascending, descending and with a
 * second column behind; every encoding cut to any room, and read to its end.  The comparisons share
 * nothing with the encoders: numerics are compared digit by digit at the same
 * place, addresses and bit strings bit by bit.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key_encode_numeric.h"
#include "test_key.h"

#define MAX_VALUES	900
#define MAX_DIGITS	12
#define MAX_STORED	64

/* What a numeric is, next to its digits. */
typedef enum Kind
{
	NEGATIVE_INFINITY,
	NUMBER,
	INFINITY_,
	NAN_
} Kind;

typedef struct Value
{
	/* numeric */
	Kind		kind;
	bool		negative;
	int			weight;
	int			n_digits;
	int			digits[MAX_DIGITS];
	/* inet, bits */
	int			family;
	int			n_bits;
	/* as stored */
	size_t		len;
	uint8_t		stored[MAX_STORED];
} Value;

typedef bool (*PutFunction) (uint8_t *dst, size_t room, const Value *value, size_t *written);
typedef int (*CompareFunction) (const Value *a, const Value *b);

static Value values[MAX_VALUES];
static int	n_values;

static uint32_t
random_below(uint32_t n)
{
	return (uint32_t) (random_bits() >> 33) % n;
}

static int
compare_int(int a, int b)
{
	return (a > b) - (a < b);
}

/*
 * numeric
 */
static void
store_uint16(Value *value, uint16_t word)
{
	memcpy(value->stored + value->len, &word, sizeof(word));
	value->len += sizeof(word);
}

/* The short form where it is wanted and will do; the scale is arbitrary. */
static void
store_numeric(Value *value, bool want_short)
{
	value->len = 0;
	if (value->kind != NUMBER)
	{
		store_uint16(value, value->kind == NAN_ ? 0xc000 : value->kind == INFINITY_ ? 0xd000 : 0xf000);
		return;
	}
	if (want_short && value->weight >= -64 && value->weight <= 63)
	{
		int			sign = value->negative ? 0x2000 : 0;
		int			scale = (int) random_below(64);

		store_uint16(value, (uint16_t) (0x8000 | sign | scale << 7 | (value->weight & 0x7f)));
	}
	else
	{
		store_uint16(value, (uint16_t) ((value->negative ? 0x4000 : 0) | random_below(0x4000)));
		store_uint16(value, (uint16_t) value->weight);
	}
	for (int i = 0; i < value->n_digits; i++)
		store_uint16(value, (uint16_t) value->digits[i]);
}

/* The digit that counts 10000^place. */
static int
digit_at(const Value *value, int place)
{
	int			i = value->weight - place;

	return i >= 0 && i < value->n_digits ? value->digits[i] : 0;
}

static int
compare_magnitudes(const Value *a, const Value *b)
{
	const Value *both[] = {a, b};
	int			result = 0;
	int			decided = INT32_MIN;

	/* the highest place at which they differ; each may have digits there */
	for (int v = 0; v < 2; v++)
	{
		for (int i = 0; i < both[v]->n_digits; i++)
		{
			int			place = both[v]->weight - i;

			if (place > decided && digit_at(a, place) != digit_at(b, place))
			{
				decided = place;
				result = compare_int(digit_at(a, place), digit_at(b, place));
			}
		}
	}
	return result;
}

static int
sign_of(const Value *value)
{
	for (int i = 0; i < value->n_digits; i++)
	{
		if (value->digits[i] != 0)
			return value->negative ? -1 : 1;
	}
	return 0;
}

static int
compare_numeric(const Value *a, const Value *b)
{
	int			sign_a = sign_of(a);

	if (a->kind != b->kind || a->kind != NUMBER)
		return compare_int((int) a->kind, (int) b->kind);
	if (sign_a != sign_of(b))
		return compare_int(sign_a, sign_of(b));
	return sign_a * compare_magnitudes(a, b);
}

static void
add_numeric(Value value)
{
	for (int form = 0; form < 2; form++)
	{
		if (n_values == MAX_VALUES)
			return;
		values[n_values] = value;
		store_numeric(&values[n_values], form == 0);
		n_values++;
	}
}

static void
make_numerics(void)
{
	static const int weights[] = {
		0, 1, -1, 2, -2, 60, 61, 62, 63, 64, -60, -61, -62, -63, -64, -65, 1000, -1000, 32767, -32768, -4096
	};
	static const int nasty[][3] = {
		{1, 0, 0}, {9999, 0, 0}, {9999, 9999, 9999}, {1, 0, 1}, {1, 1, 0}, {5000, 0, 5000}, {0, 0, 7},
		{0, 1, 0}, {255, 256, 257}, {4999, 0, 0}, {128, 0, 0}
	};
	Value		value = {0};

	n_values = 0;
	for (int kind = NEGATIVE_INFINITY; kind <= NAN_; kind++)
	{
		value.kind = (Kind) kind;
		add_numeric(value);
	}
	value.kind = NUMBER;
	add_numeric(value);
	for (int w = 0; w < COUNT(weights); w++)
	{
		for (int i = 0; i < (w < 3 ? COUNT(nasty) : 2); i++)
		{
			for (int negative = 0; negative < 2; negative++)
			{
				value.negative = negative != 0;
				value.weight = weights[w];
				value.n_digits = 3;
				for (int d = 0; d < 3; d++)
					value.digits[d] = nasty[i][d];
				add_numeric(value);
				value.n_digits = 1;
				add_numeric(value);
			}
		}
	}
	while (n_values < MAX_VALUES)
	{
		value.negative = random_below(2) == 0;
		value.weight = (int) random_below(3) - 1;
		if (random_below(4) == 0)
			value.weight = (int) random_below(200) - 100;
		value.n_digits = (int) random_below(MAX_DIGITS);
		for (int d = 0; d < value.n_digits; d++)
			value.digits[d] = (int) random_below(random_below(2) == 0 ? 2 : 10000);
		add_numeric(value);
	}
}

static bool
put_numeric(uint8_t *dst, size_t room, const Value *value, size_t *written)
{
	return gs_key_put_numeric(dst, room, value->stored, value->len, written);
}

/*
 * inet: stored is the address.
 */
static int
bit_at(const Value *value, int i)
{
	return value->stored[i / 8] >> (7 - i % 8) & 1;
}

static int
compare_bits_to(const Value *a, const Value *b, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (bit_at(a, i) != bit_at(b, i))
			return bit_at(a, i) - bit_at(b, i);
	}
	return 0;
}

static int
compare_inet(const Value *a, const Value *b)
{
	int			result;

	if (a->family != b->family)
		return compare_int(a->family, b->family);
	result = compare_bits_to(a, b, a->n_bits < b->n_bits ? a->n_bits : b->n_bits);
	if (result == 0)
		result = compare_int(a->n_bits, b->n_bits);
	if (result == 0)
		result = compare_bits_to(a, b, (int) a->len * 8);
	return result;
}

static void
make_inets(void)
{
	for (n_values = 0; n_values < MAX_VALUES; n_values++)
	{
		Value	   *value = &values[n_values];
		int			bits;

		memset(value, 0, sizeof(*value));
		value->family = 2 + (int) random_below(2);
		value->len = value->family == 2 ? 4 : 16;
		bits = (int) value->len * 8;
		value->n_bits = (int) random_below((uint32_t) bits + 1);
		if (random_below(3) == 0)
			value->n_bits = bits - (int) random_below(3);
		/* a few bits only, so that networks agree */
		for (int i = 0; i < 3; i++)
		{
			int			bit = (int) random_below(random_below(2) == 0 ? 12 : (uint32_t) bits);

			value->stored[bit / 8] |= (uint8_t) (0x80 >> bit % 8);
		}
	}
}

static bool
put_inet(uint8_t *dst, size_t room, const Value *value, size_t *written)
{
	uint8_t		whole[GS_KEY_INET_MAX];
	size_t		len = gs_key_put_inet(whole, (uint8_t) value->family, (uint8_t) value->n_bits, value->stored,
									  value->len);

	*written = len < room ? len : room;
	gs_key_copy(dst, whole, *written);
	return len <= room;
}

/*
 * Bit strings: stored are the bits.
 */
static int
compare_bits(const Value *a, const Value *b)
{
	size_t		common = a->len < b->len ? a->len : b->len;
	int			result = memcmp(a->stored, b->stored, common);

	return result != 0 ? compare_int(result, 0) : compare_int(a->n_bits, b->n_bits);
}

static void
make_bits(void)
{
	for (n_values = 0; n_values < MAX_VALUES; n_values++)
	{
		Value	   *value = &values[n_values];

		memset(value, 0, sizeof(*value));
		value->n_bits = n_values < 100 ? n_values / 2 : (int) random_below(200);
		value->len = (size_t) (value->n_bits + 7) / 8;
		for (int i = 0; i < value->n_bits; i++)
		{
			bool		bit = n_values < 100 ? n_values % 2 != 0 : random_below(8) == 0;

			value->stored[i / 8] |= (uint8_t) (bit ? 0x80 >> i % 8 : 0);
		}
	}
}

static bool
put_bits(uint8_t *dst, size_t room, const Value *value, size_t *written)
{
	return gs_key_put_bits(dst, room, value->stored, (size_t) value->n_bits, written);
}

/*
 * Every pair of values.
 */
static void
test_order(const char *name, PutFunction put, CompareFunction compare)
{
	static Key	keys[MAX_VALUES];

	for (int desc = 0; desc < 2; desc++)
	{
		for (int second = 0; second < 2; second++)
		{
			char		variant[40];
			bool		ok = true;

			for (int i = 0; i < n_values; i++)
			{
				ok &= put(keys[i].bytes, MAX_KEY, &values[i], &keys[i].len);
				if (desc)
					gs_key_complement(keys[i].bytes, keys[i].len);
				if (second)
					keys[i].bytes[keys[i].len++] = (uint8_t) (i * 37 % 256);
			}
			for (int i = 0; i < n_values; i++)
			{
				for (int j = 0; j < n_values; j++)
				{
					int			wanted = compare(&values[i], &values[j]) * (desc ? -1 : 1);

					if (wanted == 0 && second)
						wanted = compare_int(i * 37 % 256, j * 37 % 256);
					ok &= compare_keys(&keys[i], &keys[j]) == wanted;
				}
			}
			snprintf(variant, sizeof(variant), "%s%s", desc ? "descending" : "ascending",
					 second ? ", second column" : "");
			report(name, variant, ok);
		}
	}
}

/* Cut to any room: the first bytes of the whole, and nothing behind them. */
static void
test_room(const char *name, PutFunction put)
{
	bool		ok = true;

	for (int i = 0; i < n_values; i++)
	{
		Key			whole;

		ok &= put(whole.bytes, MAX_KEY, &values[i], &whole.len);
		for (size_t room = 0; room <= whole.len + 1; room++)
		{
			Key			cut;
			bool		all;

			memset(cut.bytes, 0xee, sizeof(cut.bytes));
			all = put(cut.bytes, room, &values[i], &cut.len);
			ok &= is_cut_right(&cut, room, all, &whole);
		}
	}
	report(name, "cut to any room", ok);
}

int
main(void)
{
	make_numerics();
	test_order("numeric", put_numeric, compare_numeric);
	test_room("numeric", put_numeric);
	make_inets();
	test_order("inet", put_inet, compare_inet);
	test_room("inet", put_inet);
	make_bits();
	test_order("bits", put_bits, compare_bits);
	test_room("bits", put_bits);

	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed == 0 ? 0 : 1;
}
