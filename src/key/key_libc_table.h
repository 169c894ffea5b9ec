/*-------------------------------------------------------------------------
 *
 * key_libc_table.h
 *	  Exact sort keys of text under a libc collation, from a table of its characters.
 *
 * A table is built from glibc's tables of a locale, and proven against strcoll_l().  Then it is only read.
 * memcmp() orders keys as strcoll_l() orders the texts.  Texts that strcoll_l() finds equal are ordered by
 * their bytes.
 *
 * A key is
 *
 *		level 1 | 01 | level 2 | 01 | ... | last level | 00
 *
 * with as many levels as the locale has.  Bytes of levels are 02 and more.  If another text may have the
 * same levels, the text's bytes follow:
 *
 *		level 1 | 01 | ... | last level | 01 | text | 00
 *
 * Texts with equal keys are equal.  key_libc_table.c explains the levels.
 *
 * Nothing here knows PostgreSQL; this header is plain C11.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_TABLE_H
#define GS_KEY_LIBC_TABLE_H

#include <locale.h>

#include "device/libc_key.h"

/* Returns a table, which the caller frees by free(), or NULL; *why then is a constant string. */
extern GsLibcTable *gs_libc_table_build(locale_t locale, bool utf8, const char **why);

/* Fills a table's bounds (key_libc_bound.c). */
extern void gs_libc_table_bound(GsLibcTable *table, bool utf8);

/* Compares the keys of many texts with strcoll_l().  Returns false if one pair differs. */
extern bool gs_libc_table_prove(const GsLibcTable *table, locale_t locale, bool utf8,
								GsLibcScratch *scratch);

#ifdef GPUSORT_FAULTS
/* For tests: exchanges the weights of two characters of one byte. */
extern void gs_libc_table_plant(GsLibcTable *table, uint8_t a, uint8_t b);
#endif

#endif							/* GS_KEY_LIBC_TABLE_H */
