/*-------------------------------------------------------------------------
 *
 * key_libc.h
 *	  Keys of text under libc collations: a good guess of strcoll's order.
 *
 * The bytes of a column, or of an element of an array, are
 *
 *		level 1 | 01 | text | 00
 *
 * level 1 being the part of the text's strxfrm key before the first byte 01:
 * what remains of it when accents, case and punctuation do not count, or the
 * first bytes of that.  Where level 1 says little of the text, and where the
 * text begins with 01, the other levels stand between the two:
 *
 *		level 1 | 01 | 01 | rest | 01 | text | 00
 *
 * with rest's bytes 01 and 02 written as 02 02 and 02 03, so that it ends at
 * the first 01.  Texts that agree on level 1 are not yet in strcoll's order,
 * and glibc gives no promise for the others either: whoever sorts by these keys
 * compares all neighbours by strcoll afterwards (src/order).  For that the text
 * must be there as a whole: a key that would have to be cut is not made at all
 * (GS_KEY_TOO_LONG in key.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_H
#define GS_KEY_LIBC_H

typedef struct GsLibcCollation GsLibcCollation;

/*
 * The collation's generator of keys, made once in a process and kept; NULL
 * where its locale, the name of its LC_COLLATE, is not to be had.
 */
extern const GsLibcCollation *gs_libc_collation(Oid collation, const char *locale);

/* The name of its LC_COLLATE locale. */
extern const char *gs_libc_locale_name(const GsLibcCollation *collation);

/*
 * Write a text's bytes as above, at most room of them; false where that cuts
 * them short, and then they mean nothing.  May allocate in CurrentMemoryContext.
 */
extern bool gs_libc_put(const GsLibcCollation *collation, uint8 *dst, size_t room,
						const uint8 *text, size_t len, size_t *written);

#endif							/* GS_KEY_LIBC_H */
