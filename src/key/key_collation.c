/*-------------------------------------------------------------------------
 *
 * key_collation.c
 *	  How a collation's order is put into keys.
 *
 * Under some collations PostgreSQL compares text with memcmp and then by
 * length, and no two different strings are equal: C and POSIX under any name
 * (ucs_basic is one), the database's own collation where it is one of them,
 * and from PostgreSQL 17 those of the builtin provider.  The server's own
 * test decides, the same that its comparison functions ask, so that the
 * keys can never disagree with them.  For these the bytes are the key.
 *
 * Collations of the ICU provider have sort keys, key_icu.c.  Others are
 * libc's, whose sort keys differ from its order: key_libc.c makes keys that come
 * near it, and whoever sorts by them has to prove the order (src/order).
 *
 * Tests: regress/keys_libc, regress/keys_icu
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "key/key_types.h"
#include "key/key_value.h"

/*
 * A column without a collation is refused: comparing it is an error, which
 * is PostgreSQL's to report.
 */
bool
gs_key_collation_lookup(Oid collation, GsKeyCollator **collator, const GsLibcCollation **libc)
{
	*collator = NULL;
	*libc = NULL;
	if (!OidIsValid(collation))
		return false;
	if (gs_compat_collation_is_c(collation))
		return true;
	*collator = gs_key_collator_open(collation);
	if (*collator == NULL)
		*libc = gs_libc_collation(collation);
	return *collator != NULL || *libc != NULL;
}
