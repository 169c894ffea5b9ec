/*-------------------------------------------------------------------------
 *
 * key_libc.c
 *	  Text under libc collations (key_libc.h).
 *
 * Building and proving a table takes some 50 ms, so processes share it (key_tables.h).
 *
 * Tests: regress/keys_libc, tap/order_sample
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <locale.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "fault.h"
#include "key/key.h"
#include "key/key_libc.h"
#include "key/key_libc_table.h"
#include "key/key_tables.h"

StaticAssertDecl(GS_KEY_MAX <= GS_TEXT_KEY_MAX, "a table writes all bytes of a key that are needed");

/* A collation, in this process. */
struct GsLibcCollation
{
	GsLibcCollation *next;
	Oid			oid;
	char	   *name;			/* of its LC_COLLATE */
	bool		refused;		/* in this process */
	GsTableEntry *entry;		/* in shared memory, or NULL */
	const GsLibcTable *table;	/* NULL: refused */
};

static GsLibcCollation *collations = NULL;
static GsLibcScratch *scratch = NULL;

/* Why a table does not serve in this database; NULL: it does. */
static const char *
find_fault(const GsLibcTable *table, locale_t locale, bool utf8)
{
	/* text may be of another encoding than the locale */
	if (table->text.levels > 0 && GetDatabaseEncoding() == PG_SQL_ASCII)
		return "the database has no encoding";
	return gs_libc_table_prove(table, locale, utf8, scratch) ? NULL : "its keys are not in the order of strcoll()";
}

/* Returns a proven table of a locale, from malloc().  NULL: the locale is refused, and the log says why. */
static void *
make_table(void *arg, Size *size)
{
	const char *name = arg;
	bool		utf8 = GetDatabaseEncoding() == PG_UTF8;
	locale_t	locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	GsLibcTable *table = NULL;
	const char *why = "the system does not have it";

	elog(DEBUG1, "gpusort makes the table of libc locale \"%s\"", name);
#ifdef GPUSORT_FAULTS
	while (GS_FAULT("libc_table"))
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
#endif

	if (scratch == NULL)
		why = "memory is short";
	else if (locale != (locale_t) 0)
		table = gs_libc_table_build(locale, utf8, &why);
	if (table != NULL && (why = find_fault(table, locale, utf8)) != NULL)
	{
		free(table);
		table = NULL;
	}
	if (locale != (locale_t) 0)
		freelocale(locale);
	if (table == NULL)
		ereport(LOG,
				(errmsg("gpusort does not sort text under the libc locale \"%s\": %s", name, why)));
#ifdef GPUSORT_FAULTS
	else if (GS_FAULT("libc_weight"))
		gs_libc_table_plant(table, 'm', 'n');
#endif
	if (table != NULL)
		*size = table->text.size;
	return table;
}

bool
gs_libc_lookup(Oid oid, const char *locale, const GsLibcCollation **libc)
{
	GsLibcCollation *collation;

	for (collation = collations; collation; collation = collation->next)
		if (collation->oid == oid)
			break;
	if (collation == NULL)
	{
		if (scratch == NULL)
			scratch = gs_libc_scratch_create();
		collation = MemoryContextAllocZero(TopMemoryContext, sizeof(GsLibcCollation));
		collation->oid = oid;
		collation->name = MemoryContextStrdup(TopMemoryContext, locale);
		collation->table = gs_tables_get(collation->name, false, make_table, collation->name,
										 &collation->entry);
		collation->next = collations;
		collations = collation;
	}
	*libc = NULL;
	if (collation->table == NULL || scratch == NULL || collation->refused ||
		gs_tables_are_refused(collation->entry))
		return false;
	if (collation->table->text.levels > 0)
		*libc = collation;
	return true;
}

bool
gs_libc_put(const GsLibcCollation *libc, uint8 *dst, size_t room, const uint8 *text, size_t len,
			size_t *written, bool *lacks)
{
	switch (gs_libc_table_put(libc->table, scratch, text, len, dst, room, written))
	{
		case GS_LIBC_PUT_ALL:
			return true;
		case GS_LIBC_PUT_CUT:
			break;
		case GS_LIBC_PUT_NONE:
			*written = 0;
			*lacks = true;
			break;
	}
	return false;
}

const GsTextTable *
gs_libc_device_table(const GsLibcCollation *libc)
{
	return gs_tables_are_shared(&libc->table->text) ? &libc->table->text : NULL;
}

void
gs_libc_distrust(const GsLibcCollation *libc)
{
	GsLibcCollation *collation = unconstify(GsLibcCollation *, libc);
	bool		known = collation->refused || gs_tables_are_refused(collation->entry);

	collation->refused = true;
	gs_tables_refuse(collation->entry);
	if (!known)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("gpusort does not sort text under the libc locale \"%s\" any more", libc->name),
				 errdetail("Sorted rows were not in the order of strcoll()."),
				 errhint("Check indexes on text that were built since the server started with bt_index_check().")));
}
