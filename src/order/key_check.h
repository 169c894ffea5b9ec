/*-------------------------------------------------------------------------
 *
 * key_check.h
 *	  The full order of keys that hold text of a libc collation.
 *
 * Bytes cannot express the order of such text: strcoll() is the only judge,
 * and no key is known that agrees with it on all strings.  Keys therefore
 * hold a coarse guess (level 1 of what strxfrm() gives) and the text itself.
 * A device orders by the bytes; the functions here read the texts back out of
 * the keys, tell the true order of two of them, and which keys the guess may
 * have put in the wrong order among each other.
 *
 * A column's bytes, by kind; the null byte is that of gs_key_null_byte(), and
 * a NULL is its null byte alone
 *	  FIXED		null byte, width bytes
 *	  TEXT		null byte, bytes without NUL, 00
 *	  ESCAPED	null byte, bytes with each NUL written as 00 01, 00 00
 *	  LIBC		null byte, level 1, 01, text, 00; or, and so where the text
 *				itself begins with 01: null byte, level 1, 01, 01, further
 *				levels, 01, text, 00 (key_libc.h).  No level holds 00 or 01.
 *				In an array: null byte; for each element either 01 and the
 *				bytes from level 1 to 00, or 02 for NULL; 00; number of
 *				dimensions; lengths and lower bounds (key_array.c).  Elements
 *				of arrays of arrays are arrays, without a null byte
 *	  REST		the rest of the key
 *	  For DESC all but the null byte is complemented, except in REST.
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
#include <stddef.h>
#include <stdint.h>

typedef enum GsKeyPartKind
{
	GS_PART_FIXED,
	GS_PART_TEXT,
	GS_PART_ESCAPED,
	GS_PART_LIBC,
	GS_PART_REST
} GsKeyPartKind;

typedef struct GsKeyPart
{
	uint8_t		kind;			/* a GsKeyPartKind */
	bool		desc;
	bool		nulls_first;
	uint16_t	width;			/* FIXED: bytes, without the null byte */
	uint8_t		locale;			/* LIBC: which of the layout's */
	uint8_t		depth;			/* LIBC: of arrays that the text is inside of */
} GsKeyPart;

#define GS_KEY_MAX_PARTS	16
#define GS_KEY_MAX_LOCALES	4
#define GS_KEY_LOCALE_BYTES 64
#define GS_KEY_MAX_DEPTH	8

/* What keys consist of; plain data.  n_parts 0: their bytes are the order. */
typedef struct GsKeyLayout
{
	uint8_t		n_parts;
	uint8_t		n_locales;
	char		locales[GS_KEY_MAX_LOCALES][GS_KEY_LOCALE_BYTES];	/* for newlocale() */
	GsKeyPart	parts[GS_KEY_MAX_PARTS];
} GsKeyLayout;

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

/* Do two keys hold the same texts in every LIBC column?  If in doubt, no. */
extern bool gs_key_check_same_texts(const GsKeyLayout *layout,
									const uint8_t *a, uint32_t a_len,
									const uint8_t *b, uint32_t b_len);

#endif							/* GS_KEY_CHECK_H */
