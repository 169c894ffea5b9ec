/*-------------------------------------------------------------------------
 *
 * key_libc_codes.h
 *	  Short codes for the weights of a level, in the weights' order.
 *
 * glibc's weights have 1 to 3 bytes.  The first level of a locale has up to 46,000 weights.  So two bytes
 * are enough for most weights, and the frequent weights have codes of one byte.  No code is a prefix of
 * another code.  So strings of codes compare as strings of weights do.
 *
 * Protocol
 *	  1. gs_codes_add for each weight; gs_codes_sort
 *	  2. gs_codes_shorten for the frequent ones
 *	  3. gs_codes_assign
 *	  4. gs_codes_put; gs_codes_free
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_CODES_H
#define GS_KEY_LIBC_CODES_H

#include <stdbool.h>
#include <stdint.h>

/* The least byte of a code. */
#define GS_CODE_LEAST			0x02
#define GS_CODE_BYTES			3

typedef struct GsCode
{
	uint32_t	weight;
	bool		is_short;		/* its code has one byte */
	uint8_t		n;
	uint8_t		bytes[GS_CODE_BYTES];
} GsCode;

/* Zero it before use. */
typedef struct GsCodes
{
	GsCode	   *codes;
	uint32_t	n;
	uint64_t	max;
} GsCodes;

/* False: memory is short. */
extern bool gs_codes_add(GsCodes *codes, uint32_t weight);

/* Sorts the weights, and drops duplicates. */
extern void gs_codes_sort(GsCodes *codes);
extern void gs_codes_shorten(GsCodes *codes, uint32_t weight);

/*
 * Returns how many first bytes the codes will have.  If that is more than most, the number returned is
 * only known to be greater than most.
 */
extern int	gs_codes_count_leads(const GsCodes *codes, int most);

/* Gives each weight a code with a first byte from least to most.  Returns false for too many weights. */
extern bool gs_codes_assign(GsCodes *codes, int least, int most);

/* Writes a weight's code, at most GS_CODE_BYTES bytes, and returns its length. */
extern int	gs_codes_put(const GsCodes *codes, uint32_t weight, uint8_t *dst);
extern void gs_codes_free(GsCodes *codes);

#endif							/* GS_KEY_LIBC_CODES_H */
