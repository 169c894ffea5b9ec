/*-------------------------------------------------------------------------
 *
 * key_tables.c
 *	  Tables of collations that all processes share (key_tables.h).
 *
 * A lock of its own lets only one process make a table.
 *
 * Tests: regress/keys_libc, regress/keys_icu, tap/order_sample
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "gpusort.h"
#include "key/key_tables.h"

/* The table of a UTF-8 locale of libc has 1.3 MB, that of an ICU collation 0.15 MB. */
#define TABLES				64
#define TABLE_BYTES			((Size) 8 << 20)

/* ICU has some 800 locales. */
#define PROOFS 2048

#define TRANCHE				GPUSORT_NAME "_locales"

/* The lock protects all fields except refused, which only changes to true. */
struct GsTableEntry
{
	char		name[NAMEDATALEN];
	int			encoding;
	bool		refused;
	Size		table;			/* offset in TablesShared.tables; TABLE_BYTES: there was no room */
};

typedef struct Proof
{
	uint64		name[2];
	GsProof		proof;
} Proof;

typedef struct TablesShared
{
	LWLock	   *lock;
	LWLock	   *proofs_lock; /* nobody holds it for long */
	int			n_proofs;
	Proof		proofs[PROOFS];
	int			n;
	GsTableEntry entries[TABLES];
	Size		used;			/* bytes of tables */
	char		tables[TABLE_BYTES] pg_attribute_aligned(8);
} TablesShared;

static TablesShared *shared = NULL;

void
gs_tables_shmem_request(void)
{
	RequestAddinShmemSpace(sizeof(TablesShared));
	RequestNamedLWLockTranche(TRANCHE, 2);
}

void
gs_tables_shmem_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpusort locales", sizeof(TablesShared), &found);
	if (!found)
	{
		memset(shared, 0, offsetof(TablesShared, tables));
		shared->lock = &GetNamedLWLockTranche(TRANCHE)[0].lock;
		shared->proofs_lock = &GetNamedLWLockTranche(TRANCHE)[1].lock;
	}
	LWLockRelease(AddinShmemInitLock);
}

static GsTableEntry *
find_entry(const char *name)
{
	for (int i = 0; i < shared->n; i++)
		if (strcmp(shared->entries[i].name, name) == 0 &&
			shared->entries[i].encoding == GetDatabaseEncoding())
			return &shared->entries[i];
	return NULL;
}

static bool
has_room(const char *name)
{
	return shared->n < TABLES && strlen(name) < NAMEDATALEN;
}

/* Adds a name to shared memory, with its table if there is room.  Without a table it is refused. */
static GsTableEntry *
add_entry(const char *name, const GsTextTable *table)
{
	GsTableEntry *entry;

	if (!has_room(name))
		return NULL;
	entry = &shared->entries[shared->n];
	strlcpy(entry->name, name, NAMEDATALEN);
	entry->encoding = GetDatabaseEncoding();
	entry->refused = table == NULL;
	entry->table = TABLE_BYTES;
	if (table != NULL && table->size <= TABLE_BYTES - shared->used)
	{
		memcpy(shared->tables + shared->used, table, table->size);
		entry->table = shared->used;
		shared->used += MAXALIGN(table->size);
	}
	shared->n++;
	return entry;
}

const GsTextTable *
gs_tables_get(const char *name, bool must_be_shared, GsTextTable *(*make) (void *arg), void *arg,
			  GsTableEntry **entry)
{
	GsTextTable *table = NULL;

	*entry = NULL;
	if (shared == NULL)
		return must_be_shared ? NULL : make(arg);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	*entry = find_entry(name);
	if (*entry == NULL && (!must_be_shared || has_room(name)))
	{
		table = make(arg);
		if (table != NULL || !must_be_shared)
			*entry = add_entry(name, table);
	}
	LWLockRelease(shared->lock);
	if (*entry != NULL && (*entry)->table < TABLE_BYTES)
	{
		free(table);
		return (GsTextTable *) (shared->tables + (*entry)->table);
	}
	if (must_be_shared)
	{
		free(table);
		return NULL;
	}
	if (table == NULL && *entry != NULL && !(*entry)->refused)
		table = make(arg);
	return table;
}

bool
gs_tables_are_shared(const GsTextTable *table)
{
	return shared != NULL && (const char *) table >= shared->tables &&
		(const char *) table < shared->tables + TABLE_BYTES && table->for_devices;
}

bool
gs_tables_are_refused(const GsTableEntry *entry)
{
	return entry != NULL && entry->refused;
}

void
gs_tables_refuse(GsTableEntry *entry)
{
	if (entry != NULL)
		entry->refused = true;
}

GsProof
gs_tables_find_proof(const uint64 name[2])
{
	GsProof		proof = GS_PROOF_NONE;

	if (shared == NULL)
		return GS_PROOF_NONE;
	LWLockAcquire(shared->proofs_lock, LW_SHARED);
	for (int i = 0; i < shared->n_proofs && proof == GS_PROOF_NONE; i++)
		if (shared->proofs[i].name[0] == name[0] && shared->proofs[i].name[1] == name[1])
			proof = shared->proofs[i].proof;
	LWLockRelease(shared->proofs_lock);
	return proof;
}

/* Two processes may add the same name, with the same proof. */
void
gs_tables_add_proof(const uint64 name[2], GsProof proof)
{
	if (shared == NULL)
		return;
	LWLockAcquire(shared->proofs_lock, LW_EXCLUSIVE);
	if (shared->n_proofs < PROOFS)
		shared->proofs[shared->n_proofs++] = (Proof){{name[0], name[1]}, proof};
	LWLockRelease(shared->proofs_lock);
}
