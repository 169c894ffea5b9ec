/*-------------------------------------------------------------------------
 *
 * key_prove.h
 *	  Making random texts, by which keys of collations are proven.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_PROVE_H
#define GS_KEY_PROVE_H

#include <stddef.h>
#include <stdint.h>

/* The next random number below n.  *state determines all further ones, so each proof has the same texts. */
static inline uint32_t
gs_prove_random(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) (*state >> 33) % n;
}

/* Writes a character in UTF-8, up to four bytes; returns how many. */
static inline size_t
gs_prove_put_utf8(uint8_t *dst, uint32_t c)
{
	size_t		n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		dst[i] = (uint8_t) (0x80 | (c & 0x3f));
	dst[0] = (uint8_t) (n == 1 ? c : (0xf00u >> n & 0xff) | c);
	return n;
}

#endif							/* GS_KEY_PROVE_H */
