/*-------------------------------------------------------------------------
 *
 * key_libc.c
 *	  Text under libc collations (key_libc.h).
 *
 * Building and proving a table takes some 50 ms.  A lock of its own lets only one process do this.  A table
 * never changes, so no lock guards it when it is read.  Each process builds tables of its own if shared
 * memory has no room for them, or if the server has not preloaded gpusort.
 *
 * Tests: regress/keys_libc, tap/order_sample
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <locale.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

#include "fault.h"
#include "gpusort.h"
#include "key/key.h"
#include "key/key_libc.h"
#include "key/key_libc_table.h"

/* A table of a UTF-8 locale has 1.3 MB. */
#define TABLES				64
#define TABLE_BYTES			((Size) 8 << 20)

#define TRANCHE				GPUSORT_NAME "_locales"

StaticAssertDecl(GS_KEY_MAX <= GS_LIBC_KEY_MAX, "a table writes all bytes of a key that are needed");

/* A locale, in shared memory.  The lock protects all fields except refused, which only changes to true. */
typedef struct Locale
{
	char		name[NAMEDATALEN];	/* of its LC_COLLATE */
	int			encoding;
	bool		refused;
	Size		table;			/* offset in LocaleShared.tables; TABLE_BYTES: there was no room */
} Locale;

typedef struct LocaleShared
{
	LWLock	   *lock;
	int			n;
	Locale		locales[TABLES];
	Size		used;			/* bytes of tables */
	char		tables[TABLE_BYTES] pg_attribute_aligned(8);
} LocaleShared;

/* A collation, in this process. */
struct GsLibcCollation
{
	GsLibcCollation *next;
	Oid			oid;
	char	   *name;			/* of its LC_COLLATE */
	bool		refused;		/* in this process */
	Locale	   *locale;			/* in shared memory, or NULL */
	const GsLibcTable *table;	/* NULL: refused */
};

static LocaleShared *shared = NULL;
static GsLibcCollation *collations = NULL;
static GsLibcScratch *scratch = NULL;

void
gs_libc_shmem_request(void)
{
	RequestAddinShmemSpace(sizeof(LocaleShared));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
gs_libc_shmem_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpusort locales", sizeof(LocaleShared), &found);
	if (!found)
	{
		memset(shared, 0, offsetof(LocaleShared, tables));
		shared->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
	}
	LWLockRelease(AddinShmemInitLock);
}

/* Why a table does not serve in this database; NULL: it does. */
static const char *
find_fault(const GsLibcTable *table, locale_t locale, bool utf8)
{
	/* text may be of another encoding than the locale */
	if (table->levels > 0 && GetDatabaseEncoding() == PG_SQL_ASCII)
		return "the database has no encoding";
	return gs_libc_table_prove(table, locale, utf8, scratch) ? NULL : "its keys are not in the order of strcoll()";
}

/* Returns a proven table of a locale, from malloc().  NULL: the locale is refused, and the log says why. */
static GsLibcTable *
make_table(const char *name)
{
	bool		utf8 = GetDatabaseEncoding() == PG_UTF8;
	locale_t	locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	GsLibcTable *table = NULL;
	const char *why = "the system does not have it";

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
	return table;
}

static Locale *
find_locale(const char *name)
{
	for (int i = 0; i < shared->n; i++)
		if (strcmp(shared->locales[i].name, name) == 0 &&
			shared->locales[i].encoding == GetDatabaseEncoding())
			return &shared->locales[i];
	return NULL;
}

/* Adds a locale to shared memory, with its table if there is room.  Without a table it is refused. */
static Locale *
add_locale(const char *name, const GsLibcTable *table)
{
	Locale	   *locale;

	if (shared->n == TABLES || strlen(name) >= NAMEDATALEN)
		return NULL;
	locale = &shared->locales[shared->n];
	strlcpy(locale->name, name, NAMEDATALEN);
	locale->encoding = GetDatabaseEncoding();
	locale->refused = table == NULL;
	locale->table = TABLE_BYTES;
	if (table != NULL && table->size <= TABLE_BYTES - shared->used)
	{
		memcpy(shared->tables + shared->used, table, table->size);
		locale->table = shared->used;
		shared->used += table->size;
	}
	shared->n++;
	return locale;
}

static void
find_table(GsLibcCollation *collation)
{
	GsLibcTable *table = NULL;

	if (shared == NULL)
	{
		collation->table = make_table(collation->name);
		return;
	}
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	collation->locale = find_locale(collation->name);
	if (collation->locale == NULL)
	{
		table = make_table(collation->name);
		collation->locale = add_locale(collation->name, table);
	}
	LWLockRelease(shared->lock);
	if (collation->locale != NULL && collation->locale->table < TABLE_BYTES)
	{
		collation->table = (GsLibcTable *) (shared->tables + collation->locale->table);
		free(table);
	}
	else if (table != NULL)
		collation->table = table;
	else if (collation->locale != NULL && !collation->locale->refused)
		collation->table = make_table(collation->name);
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
		find_table(collation);
		collation->next = collations;
		collations = collation;
	}
	*libc = NULL;
	if (collation->table == NULL || scratch == NULL || collation->refused ||
		(collation->locale && collation->locale->refused))
		return false;
	if (collation->table->levels > 0)
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

const GsLibcTable *
gs_libc_device_table(const GsLibcCollation *libc)
{
	bool		is_shared = libc->locale != NULL && libc->locale->table < TABLE_BYTES;

	return is_shared && gs_libc_for_devices(libc->table) ? libc->table : NULL;
}

void
gs_libc_distrust(const GsLibcCollation *libc)
{
	GsLibcCollation *collation = unconstify(GsLibcCollation *, libc);
	bool		known = collation->refused || (collation->locale && collation->locale->refused);

	collation->refused = true;
	if (collation->locale)
		collation->locale->refused = true;
	if (!known)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("gpusort does not sort text under the libc locale \"%s\" any more", libc->name),
				 errdetail("Sorted rows were not in the order of strcoll()."),
				 errhint("Check indexes on text that were built since the server started with bt_index_check().")));
}
