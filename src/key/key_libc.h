/*-------------------------------------------------------------------------
 *
 * key_libc.h
 *	  Text under libc collations: tables of locales (key_libc_table.h).
 *
 * The first process that needs a locale builds its table and proves it.  If that fails, the locale is
 * refused.  If the sample of a sort (sort_sample.c) is out of order, the locale is refused until the server
 * restarts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_H
#define GS_KEY_LIBC_H

typedef struct GsLibcCollation GsLibcCollation;

/*
 * Returns whether text can be sorted under a collation whose LC_COLLATE is locale.  If so, *libc is NULL
 * for a locale that orders by bytes.  Else *libc lives as long as the process.
 */
extern bool gs_libc_lookup(Oid collation, const char *locale, const GsLibcCollation **libc);

/*
 * Writes a text's key, ascending, at most room bytes.  room is at most GS_KEY_MAX.  Returns false if the
 * key is longer, and was cut; or if the text has no key: then *lacks is set.
 */
extern bool gs_libc_put(const GsLibcCollation *libc, uint8 *dst, size_t room, const uint8 *text, size_t len,
						size_t *written, bool *lacks);

/* The table that devices make keys by, in shared memory.  NULL: they make none. */
extern const struct GsTextTable *gs_libc_device_table(const GsLibcCollation *libc);

/* Warns that rows under the collation were out of order, and refuses its locale from now on. */
extern void gs_libc_distrust(const GsLibcCollation *libc);

#endif							/* GS_KEY_LIBC_H */
