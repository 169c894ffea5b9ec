/*-------------------------------------------------------------------------
 *
 * key_collation.c
 *	  How a collation's order is put into keys.
 *
 * Under some collations PostgreSQL compares text with memcmp and then by length, and no two different
 * strings are equal.  These are C and POSIX under any name (ucs_basic is one), the database's own collation
 * if it is one of them, and from PostgreSQL 17 on those of the builtin provider.  Their keys are the text's
 * bytes.  The server's own test decides, as it does for its comparison functions, so keys cannot disagree
 * with them.
 *
 * Collations of the ICU provider have sort keys (key_icu.c).  For collations of libc, key_libc.c makes keys
 * from a table of the locale, or finds that the locale orders by bytes.
 *
 * Tests: regress/keys_libc, regress/keys_icu
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "compat.h"
#include "key/key_types.h"
#include "key/key_value.h"

typedef struct Entry
{
	char		provider;
	bool		deterministic;
	char	   *locale;			/* of ICU or libc, or NULL */
	char	   *rules;			/* of ICU, or NULL */
} Entry;

/* Reads the catalogs' row of a collation, or of the database for its own. */
static bool
read_entry(Oid collation, Entry *entry)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(is_default ? MyDatabaseId : collation));
	AttrNumber	locale;
	Datum		name;
	bool		isnull;

	entry->rules = NULL;
	if (!HeapTupleIsValid(tuple))
		return false;
	if (is_default)
	{
		entry->provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
		entry->deterministic = true;
		locale = entry->provider == COLLPROVIDER_ICU ? Anum_pg_database_datlocale :
			Anum_pg_database_datcollate;
	}
	else
	{
		entry->provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		entry->deterministic = ((Form_pg_collation) GETSTRUCT(tuple))->collisdeterministic;
		locale = entry->provider == COLLPROVIDER_ICU ? Anum_pg_collation_colllocale :
			Anum_pg_collation_collcollate;
	}
#ifdef GS_COMPAT_COLLATION_RULES
	name = SysCacheGetAttr(cache, tuple,
						   is_default ? Anum_pg_database_daticurules : Anum_pg_collation_collicurules,
						   &isnull);
	if (!isnull)
		entry->rules = TextDatumGetCString(name);
#endif
	name = SysCacheGetAttr(cache, tuple, locale, &isnull);
	entry->locale = isnull ? NULL : TextDatumGetCString(name);
	ReleaseSysCache(tuple);
	return true;
}

/* A column without a collation is refused, as comparing it is an error, which PostgreSQL reports. */
bool
gs_key_collation_lookup(Oid collation, GsKeyCollator **collator, const GsLibcCollation **libc)
{
	Entry		entry;

	*collator = NULL;
	*libc = NULL;
	if (!OidIsValid(collation))
		return false;
	if (gs_compat_collation_is_c(collation))
		return true;
	if (!read_entry(collation, &entry))
		return false;
	if (entry.provider == COLLPROVIDER_ICU)
		*collator = gs_key_collator_open(collation, entry.locale, entry.rules, entry.deterministic);
	else if (entry.provider == COLLPROVIDER_LIBC && entry.locale != NULL)
		return gs_libc_lookup(collation, entry.locale, libc);
	return *collator != NULL;
}
