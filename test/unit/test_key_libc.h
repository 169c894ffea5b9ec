/*-------------------------------------------------------------------------
 *
 * test_key_libc.h
 *	  Keys of text under a libc collation, as key_libc.h describes them, and
 *	  the texts to make them of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KEY_LIBC_H
#define TEST_KEY_LIBC_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "order/key_check.h"
#include "key/key_encode.h"

#define TEST_TEXT_BYTES 64
#define TEST_KEY_BYTES	2048

/* xorshift: the same values in every run */
static uint64_t test_random_state = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t
test_random_bits(void)
{
	test_random_state ^= test_random_state << 13;
	test_random_state ^= test_random_state >> 7;
	test_random_state ^= test_random_state << 17;
	return test_random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t
test_below(uint32_t limit)
{
	return (uint32_t) ((test_random_bits() >> 32) * limit >> 32);
}

/* Pieces on which strxfrm's order and strcoll's differ, or level 1 is empty. */
static const char *const test_pieces[] = {
	"1", "11", "111", "a", "b", "A", "c", "-", "_", " ", "  ", ",", ".", "/", "9", "ch", "aa",
	"\xc3\xa9", "e\xcc\x81", "\xcc\x81", "\xcc\x88", "\xc3\xb6", "o\xcc\x88", "\xc3\x9f",
	"\xea\xb0\x80", "\xeb\x82\x98", "\xed\x95\x9c\xea\xb8\x80", "\xf0\x9f\x98\x80",
	"\xf0\x9f\x98\x81", "\xe2\x80\x8b", "\xd0\x90", "\xd1\x8f", "\x01", "\x02\x01", "\x7f"
};

#define TEST_N_PIECES ((uint32_t) (sizeof(test_pieces) / sizeof(test_pieces[0])))

/* A text of up to that many pieces, the first of them being the first n. */
static inline void
test_make_text(char *text, uint32_t pieces, uint32_t n)
{
	size_t		len = 0;

	for (uint32_t left = test_below(pieces + 1); left > 0; left--)
	{
		const char *piece = test_pieces[test_below(n)];

		if (len + strlen(piece) >= TEST_TEXT_BYTES)
			break;
		memcpy(text + len, piece, strlen(piece));
		len += strlen(piece);
	}
	text[len] = '\0';
}

/* Write a text, ascending.  Returns its bytes. */
static inline uint32_t
test_put_text(uint8_t *dst, locale_t locale, const char *text)
{
	char		whole[TEST_KEY_BYTES];
	size_t		len;
	size_t		level_1 = 0;
	uint32_t	n = 0;

	len = strxfrm_l(whole, text, sizeof(whole), locale);
	if (len >= sizeof(whole) / 2)
	{
		printf("a test's key is too long\n");
		exit(1);
	}
	while (level_1 < len && whole[level_1] != 0x01)
		dst[n++] = (uint8_t) whole[level_1++];
	dst[n++] = 0x01;

	/* texts of an odd length too have a rest */
	if ((level_1 == 0 && text[0] != '\0') || text[0] == 0x01 || strlen(text) % 2 != 0)
	{
		dst[n++] = 0x01;
		for (size_t i = level_1 + 1; i < len; i++)
		{
			uint8_t		byte = (uint8_t) whole[i];

			if (byte <= 2)
				dst[n++] = 2;
			dst[n++] = byte <= 2 ? byte + 1 : byte;
		}
		dst[n++] = 0x01;
	}
	memcpy(dst + n, text, strlen(text) + 1);
	return n + (uint32_t) strlen(text) + 1;
}

/* Write a column; NULL: text is NULL.  Returns its bytes. */
static inline uint32_t
test_put_libc(uint8_t *dst, locale_t locale, const char *text, bool desc, bool nulls_first)
{
	uint32_t	n = 1;

	dst[0] = gs_key_null_byte(text == NULL, nulls_first);
	if (text != NULL)
		n += test_put_text(dst + 1, locale, text);
	if (desc)
		gs_key_complement(dst + 1, n - 1);
	return n;
}

/* Write an element of an array, with its mark; NULL: text is NULL. */
static inline uint32_t
test_put_element(uint8_t *dst, locale_t locale, const char *text)
{
	dst[0] = text == NULL ? GS_KEY_ARRAY_NULL : GS_KEY_ARRAY_VALUE;
	return text == NULL ? 1 : 1 + test_put_text(dst + 1, locale, text);
}

/*
 * Write what follows an array's elements: it has one dimension of so many, or
 * two, the outer one of length 1; all bounds are the same.
 */
static inline uint32_t
test_put_array_end(uint8_t *dst, uint32_t n_dims, uint32_t length, int32_t bound)
{
	uint32_t	n = 0;

	dst[n++] = GS_KEY_ARRAY_END;
	dst[n++] = (uint8_t) n_dims;
	for (uint32_t i = 0; n_dims > 1 && i < n_dims; i++, n += 4)
		gs_key_put_uint32(dst + n, i + 1 < n_dims ? 1 : length);
	for (uint32_t i = 0; i < n_dims; i++, n += 4)
		gs_key_put_int32(dst + n, bound);
	return n;
}

/* As PostgreSQL compares texts of a deterministic collation. */
static inline int
test_compare_texts(locale_t locale, const char *a, const char *b)
{
	int			order = strcoll_l(a, b, locale);

	if (order == 0)
		order = strcmp(a, b);
	return (order > 0) - (order < 0);
}

/* The locale to test with, and its name; a poorer one where it is missing. */
static inline locale_t
test_open_locale(const char **name)
{
	locale_t	locale;

	*name = "en_US.UTF-8";
	locale = newlocale(LC_COLLATE_MASK, *name, (locale_t) 0);
	if (locale == (locale_t) 0)
	{
		printf("skipped: no locale %s on this machine, C.UTF-8 serves\n", *name);
		*name = "C.UTF-8";
		locale = newlocale(LC_COLLATE_MASK, *name, (locale_t) 0);
	}
	if (locale == (locale_t) 0)
	{
		*name = "C";
		locale = newlocale(LC_COLLATE_MASK, *name, (locale_t) 0);
	}
	return locale;
}

#endif							/* TEST_KEY_LIBC_H */
