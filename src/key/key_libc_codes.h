/*-------------------------------------------------------------------------
 *
 * key_libc_codes.h
 *	  Short codes for the weights of a level, in the weights' order.
 *
 * glibc's weights have 1 to 3 bytes.  A locale has up to 46,000 at its first level, so most fit into two
 * bytes, and the frequent ones into one.  No code is the beginning of another one, so strings of codes
 * compare as strings of weights do.
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
	bool		is_short;		/* of one byte */
	uint8_t		n;
	uint8_t		bytes[GS_CODE_BYTES];
} GsCode;

/* Zero it before use. */
typedef struct GsCodes
{
	GsCode	   *codes;
	uint32_t	n;
	uint32_t	max;
} GsCodes;

/* False: memory is short. */
extern bool gs_codes_add(GsCodes *codes, uint32_t weight);

/* Sort the weights, and leave out repeated ones. */
extern void gs_codes_sort(GsCodes *codes);
extern void gs_codes_shorten(GsCodes *codes, uint32_t weight);

/*
 * How many first bytes the codes will have, if there may be so many; 0 if there are none, or more than
 * that at least.
 */
extern int	gs_codes_count_leads(const GsCodes *codes, int most);

/* Give each weight a code whose first byte is between least and most.  False: there are too many weights. */
extern bool gs_codes_assign(GsCodes *codes, int least, int most);

/* Write a weight's code, up to GS_CODE_BYTES bytes.  Returns how many. */
extern int	gs_codes_put(const GsCodes *codes, uint32_t weight, uint8_t *dst);
extern void gs_codes_free(GsCodes *codes);

#endif							/* GS_KEY_LIBC_CODES_H */
