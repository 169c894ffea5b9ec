/*-------------------------------------------------------------------------
 *
 * test_key.h
 *	  What the tests of encoders share: random numbers, keys, counting what passed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TEST_KEY_H
#define GS_TEST_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_KEY		256
#define COUNT(a)	((int) (sizeof(a) / sizeof((a)[0])))

typedef struct Key
{
	size_t		len;
	uint8_t		bytes[MAX_KEY];
} Key;

static int	n_passed;
static int	n_failed;

/* xorshift: the same values in every run */
static uint64_t
random_bits(void)
{
	static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static void
report(const char *name, const char *variant, bool ok)
{
	if (ok)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED: %s, %s\n", name, variant);
	}
}

/* memcmp on the common length, then the length: how a device compares. */
static int
compare_keys(const Key *a, const Key *b)
{
	size_t		common = a->len < b->len ? a->len : b->len;
	int			result = memcmp(a->bytes, b->bytes, common);

	if (result == 0)
		result = (a->len > b->len) - (a->len < b->len);
	return (result > 0) - (result < 0);
}

/* Is what an encoder wrote into this room the first bytes of the whole, with nothing behind them? */
static bool
is_cut_right(const Key *cut, size_t room, bool all, const Key *whole)
{
	bool		ok = all == (room >= whole->len) && cut->len == (all ? whole->len : room) &&
		memcmp(cut->bytes, whole->bytes, cut->len) == 0;

	for (size_t at = cut->len; at < sizeof(cut->bytes); at++)
		ok &= cut->bytes[at] == 0xee;
	return ok;
}

#endif							/* GS_TEST_KEY_H */
