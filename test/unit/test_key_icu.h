/*-------------------------------------------------------------------------
 *
 * test_key_icu.h
 *	  What the tests of ICU's sort keys share: random numbers, counting what passed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TEST_KEY_ICU_H
#define GS_TEST_KEY_ICU_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define COUNT(a)	((int) (sizeof(a) / sizeof((a)[0])))

static int	n_passed;
static int	n_failed;

static void
report(const char *name, const char *what, bool ok)
{
	printf("%s - %s: %s\n", ok ? "ok" : "not ok", name, what);
	if (ok)
		n_passed++;
	else
		n_failed++;
}

/* xorshift: the same texts in every run */
static uint32_t
random_below(uint32_t n)
{
	static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t) (state >> 32) % n;
}

#endif							/* GS_TEST_KEY_ICU_H */
