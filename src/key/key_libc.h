/*-------------------------------------------------------------------------
 *
 * key_libc.h
 *	  Text under libc collations: tables of locales (key_libc_table.h), shared by all processes.
 *
 * The first process that needs a locale builds its table and proves it.  If that fails, the locale is
 * refused.  If sorted rows are found to be out of order, it is refused from then on until the server
 * restarts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_LIBC_H
#define GS_KEY_LIBC_H

typedef struct GsLibcCollation GsLibcCollation;

/* When the server loads gpusort. */
extern void gs_libc_shmem_request(void);
extern void gs_libc_shmem_startup(void);

/*
 * Can text be sorted under the collation, whose LC_COLLATE is locale?  *libc lives as long as the
 * process; it is NULL if the order is that of the bytes.
 */
extern bool gs_libc_lookup(Oid collation, const char *locale, const GsLibcCollation **libc);

/*
 * Write a text's key, ascending, at most room bytes, which must not be more than GS_KEY_MAX.  False:
 * these are the first room bytes of it; or the text has no key, and *lacks is set.
 */
extern bool gs_libc_put(const GsLibcCollation *libc, uint8 *dst, size_t room, const uint8 *text, size_t len,
						size_t *written, bool *lacks);

/* Rows under the collation were out of order: warn, and refuse its locale from now on. */
extern void gs_libc_distrust(const GsLibcCollation *libc);

#endif							/* GS_KEY_LIBC_H */
