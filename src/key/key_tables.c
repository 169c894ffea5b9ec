/*-------------------------------------------------------------------------
 *
 * key_tables.c
 *	  What processes share about collations (key_tables.h).
 *
 * A lock guards the list of names.  It is not held while a table is made: the entry says that a process
 * makes it, and others that need the table sleep on a condition variable.
 *
 * Tests: regress/keys_libc, regress/keys_icu, tap/order_tables
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "compat.h"
#include "gpusort.h"
#include "guc.h"
#include "key/key_tables.h"

/*
 * The table of a UTF-8 locale of libc has 1.3 MB, that of an ICU collation 0.15 MB.  docs/sorts.md names the
 * limit.  Memory that no table needs is never touched, so the system does not provide it.
 */
#define TABLES				256
#define TABLE_BYTES			((Size) 32 << 20)

/* ICU has some 800 locales. */
#define PROOFS				2048

#define TRANCHE				GPUSORT_NAME "_locales"

typedef enum TableState
{
	TABLE_NONE,					/* also after an error: the next process makes it */
	TABLE_MAKING,
	TABLE_MADE
} TableState;

/* The lock protects all fields except refused, which only changes to true.  name, encoding are constant. */
struct GsTableEntry
{
	char		name[NAMEDATALEN];
	int			encoding;
	TableState	state;
	bool		refused;
	const void *table;			/* MADE; NULL: refused, or there was no room */
};

typedef struct Proof
{
	uint64		name[2];
	GsProof		proof;
} Proof;

typedef struct TablesShared
{
	LWLock	   *lock;
	ConditionVariable made;		/* an entry is not MAKING any more */
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
	if (gs_guc_device == GS_CHOOSE_OFF)
		return;
	RequestAddinShmemSpace(sizeof(TablesShared));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
gs_tables_shmem_startup(void)
{
	bool		found;

	if (gs_guc_device == GS_CHOOSE_OFF)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("gpusort locales", sizeof(TablesShared), &found);
	if (!found)
	{
		memset(shared, 0, offsetof(TablesShared, tables));
		shared->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		ConditionVariableInit(&shared->made);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* With the lock held: the entry of a name, added if there is none.  NULL: there is no room for it. */
static GsTableEntry *
find_entry(const char *name)
{
	GsTableEntry *entry = shared->entries;

	for (; entry < shared->entries + shared->n; entry++)
		if (strcmp(entry->name, name) == 0 && entry->encoding == GetDatabaseEncoding())
			return entry;
	if (shared->n == TABLES || strlen(name) >= NAMEDATALEN)
		return NULL;
	strlcpy(entry->name, name, NAMEDATALEN);
	entry->encoding = GetDatabaseEncoding();
	shared->n++;
	return entry;
}

/*
 * Returns the entry of a name as soon as no other process makes its table.  *mine: this process now is the
 * one that makes it.  NULL: there is no room for the name.
 */
static GsTableEntry *
claim_entry(const char *name, bool *mine)
{
	GsTableEntry *entry;
	bool		busy;

	for (;;)
	{
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		entry = find_entry(name);
		busy = entry != NULL && entry->state == TABLE_MAKING;
		*mine = entry != NULL && entry->state == TABLE_NONE;
		if (*mine)
			entry->state = TABLE_MAKING;
		LWLockRelease(shared->lock);
		if (!busy)
			break;
		ConditionVariableSleep(&shared->made, gs_compat_wait_event(GS_WAIT_TABLE));
	}
	ConditionVariableCancelSleep();
	return entry;
}

static void
end_making(GsTableEntry *entry, TableState state, const void *table, Size size)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry->state = state;
	if (table != NULL && size <= TABLE_BYTES - shared->used)
	{
		entry->table = memcpy(shared->tables + shared->used, table, size);
		shared->used += MAXALIGN(size);
	}
	LWLockRelease(shared->lock);
	ConditionVariableBroadcast(&shared->made);
}

/* The process ends, or an error ended its make(). */
static void
give_up(int code, Datum entry)
{
	end_making((GsTableEntry *) DatumGetPointer(entry), TABLE_NONE, NULL, 0);
}

const void *
gs_tables_get(const char *name, bool must_be_shared, void *(*make) (void *arg, Size *size), void *arg,
			  GsTableEntry **entry)
{
	void	   *table = NULL;
	Size		size = 0;
	bool		mine = false;

	*entry = shared ? claim_entry(name, &mine) : NULL;
	if (mine)
	{
		PG_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(*entry));
		{
			table = make(arg, &size);
		}
		PG_END_ENSURE_ERROR_CLEANUP(give_up, PointerGetDatum(*entry));
		(*entry)->refused = table == NULL && !must_be_shared;
		end_making(*entry, table == NULL && must_be_shared ? TABLE_NONE : TABLE_MADE, table, size);
	}
	if (must_be_shared || (*entry != NULL && (*entry)->table != NULL))
	{
		free(table);
		return *entry == NULL ? NULL : (*entry)->table;
	}
	if (table == NULL && (*entry == NULL || !(*entry)->refused))
		table = make(arg, &size);
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
	LWLockAcquire(shared->lock, LW_SHARED);
	for (int i = 0; i < shared->n_proofs && proof == GS_PROOF_NONE; i++)
		if (shared->proofs[i].name[0] == name[0] && shared->proofs[i].name[1] == name[1])
			proof = shared->proofs[i].proof;
	LWLockRelease(shared->lock);
	return proof;
}

/* Two processes may add the same name, with the same proof. */
void
gs_tables_add_proof(const uint64 name[2], GsProof proof)
{
	if (shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (shared->n_proofs < PROOFS)
		shared->proofs[shared->n_proofs++] = (Proof){{name[0], name[1]}, proof};
	LWLockRelease(shared->lock);
}
