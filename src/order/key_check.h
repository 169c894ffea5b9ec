/*-------------------------------------------------------------------------
 *
 * key_check.h
 *	  The full order of keys that hold text of a libc collation.
 *
 * Bytes cannot express the order of such text: strcoll() is the only judge,
 * and no key is known that agrees with it on all strings.  Keys therefore
 * hold a coarse guess (level 1 of what strxfrm() gives) and the text itself
 * (key/key_layout.h).  A device orders by the bytes; the functions here read
 * the texts back out of the keys, tell the true order of two of them, and
 * which keys the guess may have put in the wrong order among each other.
 *
 * Runs
 *	  Two keys are in one run if their bytes agree up to and including level 1
 *	  of a text in which they differ: the order between them is then the text's
 *	  to tell.
 *	  In a device's order a run's keys stand together, as they begin with the
 *	  same bytes.  Runs of one sort are nested or disjoint.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.  All functions may
 * be called by several threads at once, each with a scratch of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_CHECK_H
#define GS_KEY_CHECK_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

#include "key/key_layout.h"

/* The longest text that a complemented key may hold, and its NUL. */
#define GS_KEY_CHECK_TEXT_BYTES 16384

/* Large, and needs no initialization except of malformed. */
typedef struct GsKeyCheckScratch
{
	bool		malformed;		/* set where a key was not as its layout says;
								 * what was answered means nothing then */
	char		a[GS_KEY_CHECK_TEXT_BYTES];
	char		b[GS_KEY_CHECK_TEXT_BYTES];
} GsKeyCheckScratch;

/*
 * < 0, 0, > 0 as PostgreSQL orders a before, with, or after b; locales are
 * those of the layout, opened.
 */
extern int	gs_key_check_compare(const GsKeyLayout *layout, const locale_t *locales,
								 const uint8_t *a, uint32_t a_len,
								 const uint8_t *b, uint32_t b_len,
								 GsKeyCheckScratch *scratch);

/*
 * Where two different keys are in one run: how many first bytes all keys of
 * the smallest such run share; else, or where a key is malformed, 0.
 */
extern uint32_t gs_key_check_run_prefix(const GsKeyLayout *layout,
										const uint8_t *a, uint32_t a_len,
										const uint8_t *b, uint32_t b_len);

/*
 * How many first bytes of a key the largest run shares that it may be in: up to level 1
 * of its first text.  Its length where it holds no text, or is malformed.
 */
extern uint32_t gs_key_check_group(const GsKeyLayout *layout, const uint8_t *key, uint32_t len);

/* Offset behind a value that is neither libc's text nor an array, and begins at `at`; > len: malformed. */
extern uint32_t gs_key_check_plain_end(const GsKeyPart *part, const uint8_t *key, uint32_t len,
									   uint32_t at);

/* Do two keys hold the same texts in every LIBC column?  If in doubt, no. */
extern bool gs_key_check_same_texts(const GsKeyLayout *layout,
									const uint8_t *a, uint32_t a_len,
									const uint8_t *b, uint32_t b_len);

#endif							/* GS_KEY_CHECK_H */
