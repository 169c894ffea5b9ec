/*-------------------------------------------------------------------------
 *
 * key_collation.c
 *	  Which collations order text as its bytes.
 *
 * Under such a collation PostgreSQL compares text with memcmp and then by
 * length, and no two different strings are equal: C and POSIX under any name
 * (ucs_basic is one), the database's own collation where it is one of them,
 * and from PostgreSQL 17 those of the builtin provider.  The server's own
 * test decides, the same that its comparison functions ask, so that the
 * keys can never disagree with them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "key/key_types.h"

/*
 * A column without a collation is refused: comparing it is an error, which
 * is PostgreSQL's to report.
 */
bool
gs_key_collation_is_bytewise(Oid collation)
{
	if (!OidIsValid(collation))
		return false;
	return gs_compat_collation_is_c(collation);
}
