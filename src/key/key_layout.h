/*-------------------------------------------------------------------------
 *
 * key_layout.h
 *	  The parts of keys that hold text of a libc collation, for src/order, which
 *	  reads keys.
 *
 * A column's bytes are a null byte, that of gs_key_null_byte(), and unless that
 * says NULL a value; for DESC all but the null byte is complemented, except in
 * REST.  A value's bytes, by kind
 *	  FIXED		width bytes
 *	  FLOAT		the same, of a float
 *	  TEXT		bytes without NUL, 00
 *	  ICU		a sort key like TEXT, and the text like TEXT
 *	  ESCAPED	bytes with each NUL written as 00 01, 00 00
 *	  BITS		the same, and one byte
 *	  NUMERIC	see key_encode_numeric.h
 *	  INET		see key_encode.h
 *	  OIDVECTOR number of OIDs, OIDs; 4 bytes each
 *	  LIBC		level 1, 01, text, 00; or, and so where the text itself begins with
 *				01: level 1, 01, 01, further levels, 01, text, 00 (key_libc.h).
 *				No level holds 00 or 01
 *	  REST		the rest of the key
 *
 * Where the value is jsonb, it is a byte for each value in it, keys of objects among them.  The bytes of a
 * string or of a number follow it, or how many values belong to an array or an object (key_jsonb.c).
 *
 * With a depth the value is an array of so many levels: arrays, whose elements
 * are arrays, whose elements are of the kind.  An array is for each element
 * either 01 and its value or 02 for NULL; then 00; number of dimensions; lengths
 * and lower bounds (key_array.c).  An array of FLOAT has no bytes 01, all ones in
 * place of 02, and as many zeroes as an element has bytes in place of 00.
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
	GS_PART_FLOAT,
	GS_PART_TEXT,
	GS_PART_ICU,
	GS_PART_ESCAPED,
	GS_PART_BITS,
	GS_PART_NUMERIC,
	GS_PART_INET,
	GS_PART_OIDVECTOR,
	GS_PART_LIBC,
	GS_PART_REST
} GsKeyPartKind;

typedef struct GsKeyPart
{
	uint8_t		kind;			/* a GsKeyPartKind */
	bool		desc;
	bool		nulls_first;
	uint8_t		width;			/* FIXED and FLOAT: bytes of a value */
	uint8_t		locale;			/* LIBC: which of the layout's */
	uint8_t		depth;			/* of arrays that the value is inside of */
	bool		jsonb;			/* the value is, and the kind is that of its strings */
} GsKeyPart;

#define GS_KEY_MAX_PARTS	64
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
