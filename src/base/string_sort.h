/*-------------------------------------------------------------------------
 *
 * string_sort.h
 *	  A fast stable sort of byte strings on one CPU core.
 *
 * The order is that of device.h: unsigned bytes, a prefix before the longer
 * string, NUL a byte like any other, equal keys in their order in the array.
 * Nothing here allocates memory, takes locks or keeps state: any thread of
 * any process may call it, and a PostgreSQL backend does for small inputs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_SORT_H
#define GS_STRING_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A key on its way through the sort.  `word` caches the eight bytes at the
 * depth that the sort has reached for this key, the first one highest, zeros
 * after the key's end.  The key's bytes must stay where they are.
 */
typedef struct GsStringKey
{
	uint64_t	word;
	const uint8_t *key;
	uint32_t	len;			/* bytes */
	uint32_t	row;			/* the caller's number */
} GsStringKey;

/* Compares two words, for qsort(). */
static inline int
gs_string_compare_words(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* The word at `depth` bytes into a key; depth <= len. */
static inline uint64_t
gs_string_key_word(const uint8_t *key, uint32_t len, uint32_t depth)
{
	uint32_t	left = len - depth;
	uint64_t	word = 0;

	if (left >= 8)
	{
		memcpy(&word, key + depth, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		return word;
	}
	for (uint32_t i = 0; i < left; i++)
		word |= (uint64_t) key[depth + i] << (56 - 8 * i);
	return word;
}

static inline void
gs_string_key_init(GsStringKey *k, const void *key, uint32_t len, uint32_t row)
{
	k->key = (const uint8_t *) key;
	k->len = len;
	k->row = row;
	k->word = gs_string_key_word(k->key, len, 0);
}

/*
 * Keys of one depth are ordered by word, then by class.  The class of a key that ends within its word is
 * the number of its bytes there (0..8); the class of all others is 9.  Ended keys of one class with equal
 * words are equal.
 */
#define GS_STRING_GOES_ON 9

static inline uint32_t
gs_string_key_class(const GsStringKey *k, uint32_t depth)
{
	uint32_t	left = k->len - depth;

	return left > 8 ? GS_STRING_GOES_ON : left;
}

/* Are two keys equal?  Both must come from one finished sort. */
static inline bool
gs_string_key_equal(const GsStringKey *a, const GsStringKey *b)
{
	/* The sort leaves equal keys at equal depths, so their words are equal. */
	return a->word == b->word && a->len == b->len &&
		(a->key == b->key || memcmp(a->key, b->key, a->len) == 0);
}

/*
 * Sorts n keys whose words gs_string_key_init() has set.  scratch has room for n more.  pause may be NULL;
 * otherwise it is called now and then, and need not return.
 */
extern void gs_string_sort(GsStringKey *keys, GsStringKey *scratch, size_t n, void (*pause) (void));

/*
 * The same for keys that agree on their first `depth` bytes.  Their words are those at that depth, or
 * `stale`: not read yet.  *cancel is read now and then.  Once it is not 0, the sort ends soon and returns
 * false, and the keys are in no particular order.
 */
extern bool gs_string_sort_at(GsStringKey *keys, GsStringKey *scratch, size_t n, uint32_t depth,
							bool stale, const int *cancel);

/* Returns how many of their first n bytes two byte strings have in common. */
static inline uint32_t
gs_string_common_bytes(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t	i = 0;

	for (; n - i >= 8; i += 8)
	{
		uint64_t	x;
		uint64_t	y;

		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return i + ((uint32_t) __builtin_ctzll(x ^ y) >> 3);
#else
			break;
#endif
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/*
 * Returns the length of the prefix that n keys share with the pivot, at most `limit`. All agree on their
 * first `depth` bytes.
 */
extern uint32_t gs_string_common_prefix(const GsStringKey *keys, size_t n, const GsStringKey *pivot,
									  uint32_t depth, uint32_t limit);

/* Reads the words of n keys at a depth.  No key is shorter. */
extern void gs_string_read_words(GsStringKey *keys, size_t n, uint32_t depth);

#endif							/* GS_STRING_SORT_H */
