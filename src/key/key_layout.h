/*-------------------------------------------------------------------------
 *
 * key_layout.h
 *	  What keys that hold text of a libc collation consist of: the inside of
 *	  key/ for those who read keys, which is src/order.
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
 * This header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LAYOUT_H
#define GS_KEY_LAYOUT_H

#include <stdbool.h>
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

#endif							/* GS_KEY_LAYOUT_H */
