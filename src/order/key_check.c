/*-------------------------------------------------------------------------
 *
 * key_check.c
 *	  The full order of keys that hold text of a libc collation.
 *
 * The first byte in which two keys differ decides: the column that it lies in
 * is the first one whose values differ, as equal values have equal bytes and
 * no column's encoding is a prefix of another one's.  So one key only has to
 * be read column by column, up to that byte.  The same holds of the elements of
 * arrays, and of the strings of jsonb: their order is that of the first ones that
 * differ, and where none do, what stands around them decides, by its bytes.
 *
 * Tests: unit/plain/test_key_check, unit/plain/test_key_order
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "key_check.c is plain C and must not see postgres.h"
#endif

#include <string.h>

#include "order/key_check.h"
#include "key/key_encode_numeric.h"

#define LEVEL_END	0x01
#define TEXT_END	0x00

/* In place of a byte's offset */
#define FIRST_TEXT	UINT32_MAX

/* What a byte of a key lies in. */
typedef struct Place
{
	const GsKeyPart *part;		/* the column */
	bool		in_text;		/* a text of a libc collation, whose bytes ... */
	uint32_t	mark;			/* ... follow this one: null byte, or mark of an element or a string */
} Place;

/* A text of a libc collation; offsets in the key. */
typedef struct LibcValue
{
	uint32_t	level_end;		/* of the byte that ends level 1 */
	uint32_t	text;
	uint32_t	text_end;		/* of the byte that ends the text */
} LibcValue;

/* The first of n bytes in which a and b differ; n if there is none. */
static inline uint32_t
first_difference(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t	i = 0;

	for (; n - i >= 8; i += 8)
	{
		uint64_t	x;
		uint64_t	y;

		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			break;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

static inline uint32_t
min_len(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The offset of a byte at or behind from; len if there is none. */
static inline uint32_t
find_byte(const uint8_t *key, uint32_t from, uint32_t len, uint8_t byte)
{
	const uint8_t *found = from < len ? memchr(key + from, byte, len - from) : NULL;

	return found != NULL ? (uint32_t) (found - key) : len;
}

/* Read the text that follows a mark; false where it is malformed. */
static bool
read_libc(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t mark, LibcValue *value)
{
	uint8_t		flip = part->desc ? 0xff : 0;

	value->level_end = find_byte(key, mark + 1, len, LEVEL_END ^ flip);
	value->text = value->level_end + 1;
	if (value->text < len && key[value->text] == (LEVEL_END ^ flip))
		value->text = find_byte(key, value->text + 1, len, LEVEL_END ^ flip) + 1;
	value->text_end = find_byte(key, value->text, len, TEXT_END ^ flip);
	return value->text_end < len;
}

/* Offset behind bytes that end with 00 00, of which at is the first; > len: malformed. */
static uint32_t
escaped_end(const uint8_t *key, uint32_t len, uint32_t at, uint8_t flip)
{
	do
		at = find_byte(key, at, len, flip) + 2;
	while (at <= len && key[at - 1] != flip);
	return at;
}

static uint32_t
read_uint32(const uint8_t *bytes, uint8_t flip)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < sizeof(n); i++)
		n = n << 8 | (uint8_t) (bytes[i] ^ flip);
	return n;
}

uint32_t
gs_key_check_plain_end(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t at)
{
	uint8_t		flip = part->desc ? 0xff : 0;
	uint32_t	n;

	switch ((GsKeyPartKind) part->kind)
	{
		case GS_PART_FIXED:
		case GS_PART_FLOAT:
			return at + part->width;
		case GS_PART_TEXT:
			return find_byte(key, at, len, TEXT_END ^ flip) + 1;
		case GS_PART_ICU:
			at = find_byte(key, at, len, TEXT_END ^ flip) + 1;
			return find_byte(key, at, len, TEXT_END ^ flip) + 1;
		case GS_PART_ESCAPED:
			return escaped_end(key, len, at, flip);
		case GS_PART_BITS:
			return escaped_end(key, len, at, flip) + 1;
		case GS_PART_NUMERIC:
			return at + (uint32_t) gs_key_numeric_bytes(key + at, len - at, flip);
		case GS_PART_INET:
			return at + (uint32_t) gs_key_inet_bytes(key + at, len - at, flip);
		case GS_PART_OIDVECTOR:
			if (len - at < sizeof(n))
				return len + 1;
			n = read_uint32(key + at, flip);
			at += sizeof(n);
			return n <= (len - at) / sizeof(n) ? at + n * (uint32_t) sizeof(n) : len + 1;
		case GS_PART_LIBC:
		case GS_PART_REST:
			break;
	}
	return len + 1;
}

/* Offset behind an array whose end mark ends before at; > len: malformed. */
static uint32_t
array_end(const uint8_t *key, uint32_t len, uint32_t at, uint8_t flip)
{
	return at < len ? at + (uint32_t) gs_key_array_tail(key[at] ^ flip) : len + 1;
}

/* Offset behind an array of floats; > len: malformed. */
static uint32_t
floats_end(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t at)
{
	uint8_t		flip = part->desc ? 0xff : 0;
	uint32_t	zeroes;

	do
	{
		if (part->width > len - at)
			return len + 1;
		for (zeroes = 0; zeroes < part->width && key[at + zeroes] == flip; zeroes++)
			;
		at += part->width;
	} while (zeroes < part->width);
	return array_end(key, len, at, flip);
}

/*
 * Offset behind the value, no array nor jsonb, that follows a mark; > len: malformed.  *place becomes
 * what byte d lies in, if that is this value's text, or for FIRST_TEXT the first text that is seen.
 */
static uint32_t
simple_end(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t mark, uint32_t d,
		   Place *place)
{
	LibcValue	value;

	if (part->kind != GS_PART_LIBC)
		return gs_key_check_plain_end(part, key, len, mark + 1);
	if (!read_libc(part, key, len, mark, &value))
		return len + 1;
	if (d == FIRST_TEXT ? !place->in_text : d > mark && d <= value.text_end)
	{
		place->in_text = true;
		place->mark = mark;
	}
	return value.text_end + 1;
}

/* The same for jsonb, which is read no further than byte d. */
static uint32_t
jsonb_end(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t mark, uint32_t d,
		  Place *place)
{
	uint8_t		flip = part->desc ? 0xff : 0;
	uint32_t	at = mark + 1;

	for (uint64_t left = 1; left > 0 && at <= d; left--)
	{
		if (at >= len)
			return len + 1;
		switch (key[at] ^ flip)
		{
			case GS_KEY_JSONB_EMPTY_ROOT:
			case GS_KEY_JSONB_NULL:
			case GS_KEY_JSONB_FALSE:
			case GS_KEY_JSONB_TRUE:
				at++;
				break;
			case GS_KEY_JSONB_STRING:
				at = simple_end(part, key, len, at, d, place);
				break;
			case GS_KEY_JSONB_NUMBER:
				at++;
				at += (uint32_t) gs_key_numeric_bytes(key + at, len - at, flip);
				break;
			case GS_KEY_JSONB_ARRAY:
			case GS_KEY_JSONB_OBJECT:
				if (len - at < 1 + sizeof(uint32_t))
					return len + 1;
				left += read_uint32(key + at + 1, flip);
				at += 1 + sizeof(uint32_t);
				break;
			default:
				return len + 1;
		}
	}
	return at;
}

/*
 * The same for an array so many deep, which is read no further than the element that byte d lies in, or
 * for any value.
 */
static uint32_t
value_end(const GsKeyPart *part, uint32_t depth, const uint8_t *key, uint32_t len, uint32_t mark,
		  uint32_t d, Place *place)
{
	uint8_t		flip = part->desc ? 0xff : 0;
	uint32_t	at = mark + 1;

	if (depth == 0)
		return part->jsonb ? jsonb_end(part, key, len, mark, d, place) :
			simple_end(part, key, len, mark, d, place);
	if (depth == 1 && part->kind == GS_PART_FLOAT)
		return floats_end(part, key, len, at);
	while (at < len)
		switch (key[at] ^ flip)
		{
			case GS_KEY_ARRAY_VALUE:
				at = value_end(part, depth - 1, key, len, at, d, place);
				if (d < at)
					return at;
				break;
			case GS_KEY_ARRAY_NULL:
				at++;
				break;
			case GS_KEY_ARRAY_END:
				return array_end(key, len, at + 1, flip);
			default:
				return len + 1;
		}
	return len + 1;
}

/* Offset behind the column whose null byte is at, and more, as value_end() has it. */
static uint32_t
column_end(const GsKeyPart *part, const uint8_t *key, uint32_t len, uint32_t at, uint32_t d,
		   Place *place)
{
	if (key[at] == gs_key_null_byte(true, part->nulls_first))
		return at + 1;
	return value_end(part, part->depth, key, len, at, d, place);
}

/*
 * Find what byte d of a key lies in; false where the key is malformed.  REST
 * holds all bytes, also those that the key does not have.
 */
static bool
find_place(const GsKeyLayout *layout, const uint8_t *key, uint32_t len, uint32_t d, Place *place)
{
	uint32_t	at = 0;

	place->in_text = false;
	for (uint32_t i = 0; i < layout->n_parts; i++)
	{
		const GsKeyPart *part = &layout->parts[i];
		uint32_t	end;

		place->part = part;
		if (part->kind == GS_PART_REST)
			return true;
		if (at >= len || key[at] > 1)
			return false;
		end = column_end(part, key, len, at, d, place);
		if (end > len)
			return false;
		if (d < end)
			return true;
		at = end;
	}
	return false;
}

/* A text that ends in NUL: the key's own bytes, or a copy in room. */
static const char *
read_text(const GsKeyPart *part, const uint8_t *key, const LibcValue *value, char *room,
		  bool *malformed)
{
	uint32_t	len = value->text_end - value->text;

	if (!part->desc)
		return (const char *) key + value->text;
	if (len >= GS_KEY_CHECK_TEXT_BYTES)
	{
		*malformed = true;
		len = 0;
	}
	for (uint32_t i = 0; i < len; i++)
		room[i] = (char) ~key[value->text + i];
	room[len] = '\0';
	return room;
}

int
gs_key_check_compare(const GsKeyLayout *layout, const locale_t *locales, const uint8_t *a,
					 uint32_t a_len, const uint8_t *b, uint32_t b_len,
					 GsKeyCheckScratch *scratch)
{
	uint32_t	n = min_len(a_len, b_len);
	uint32_t	d = first_difference(a, b, n);
	Place		place;
	LibcValue	a_value;
	LibcValue	b_value;
	const char *a_text;
	const char *b_text;
	int			result;

	if (d == n && a_len == b_len)
		return 0;
	if (!find_place(layout, a, a_len, d, &place))
	{
		scratch->malformed = true;
		return 0;
	}
	if (!place.in_text)
	{
		if (d < n)
			return a[d] < b[d] ? -1 : 1;
		if (place.part->kind != GS_PART_REST)
			scratch->malformed = true;
		return a_len < b_len ? -1 : 1;
	}

	/* both have the mark before byte d, and so a text */
	if (!read_libc(place.part, a, a_len, place.mark, &a_value) ||
		!read_libc(place.part, b, b_len, place.mark, &b_value))
	{
		scratch->malformed = true;
		return 0;
	}
	a_text = read_text(place.part, a, &a_value, scratch->a, &scratch->malformed);
	b_text = read_text(place.part, b, &b_value, scratch->b, &scratch->malformed);
	result = strcoll_l(a_text, b_text, locales[place.part->locale]);
	if (result == 0)
		result = strcmp(a_text, b_text);

	/* equal texts have equal bytes before them */
	if (result == 0)
		scratch->malformed = true;
	return place.part->desc ? (result < 0) - (result > 0) : result;
}

uint32_t
gs_key_check_run_prefix(const GsKeyLayout *layout, const uint8_t *a, uint32_t a_len,
						const uint8_t *b, uint32_t b_len)
{
	uint32_t	d = first_difference(a, b, min_len(a_len, b_len));
	Place		place;
	LibcValue	value;

	if (!find_place(layout, a, a_len, d, &place) || !place.in_text ||
		!read_libc(place.part, a, a_len, place.mark, &value) || d <= value.level_end)
		return 0;
	return value.level_end + 1;
}

uint32_t
gs_key_check_group(const GsKeyLayout *layout, const uint8_t *key, uint32_t len)
{
	uint32_t	at = 0;

	for (uint32_t i = 0; i < layout->n_parts; i++)
	{
		const GsKeyPart *part = &layout->parts[i];
		Place		place = {part, false, 0};
		LibcValue	value;
		uint32_t	end;

		if (part->kind == GS_PART_REST || at >= len || key[at] > 1)
			break;
		end = column_end(part, key, len, at, FIRST_TEXT, &place);
		if (end > len)
			break;
		if (place.in_text)
			return read_libc(part, key, len, place.mark, &value) ? value.level_end + 1 : len;
		/* NULL, and arrays and jsonb without texts, have none: go on with the next column */
		at = end;
	}
	return len;
}

bool
gs_key_check_same_texts(const GsKeyLayout *layout, const uint8_t *a, uint32_t a_len,
						const uint8_t *b, uint32_t b_len)
{
	uint32_t	d = first_difference(a, b, min_len(a_len, b_len));
	Place		place;

	if (d == a_len && d == b_len)
		return true;
	if (!find_place(layout, a, a_len, d, &place))
		return false;
	for (const GsKeyPart *part = place.part; part < layout->parts + layout->n_parts; part++)
		if (part->kind == GS_PART_LIBC)
			return false;
	return true;
}
