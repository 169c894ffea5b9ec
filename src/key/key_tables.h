/*-------------------------------------------------------------------------
 *
 * key_tables.h
 *	  Tables of collations (device/text_key.h) that all processes share.
 *
 * The first process that needs a table makes it.  A table never changes, so no lock guards readers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_TABLES_H
#define GS_KEY_TABLES_H

#include "device/text_key.h"

/* A table in shared memory, or why there is none. */
typedef struct GsTableEntry GsTableEntry;

/* The server's start calls these. */
extern void gs_tables_shmem_request(void);
extern void gs_tables_shmem_startup(void);

/*
 * Returns the table of a name, in the database's encoding.  The first caller's make(arg) returns it, from
 * malloc(), or NULL.  make() may raise an error.  Shared memory may be full, and a server may run without
 * preloading gpusort.  Then each process makes a table of its own, and a table that must be shared is NULL.
 * If make() returns NULL, the name is refused for all processes, unless the table must be shared.  *entry is
 * NULL if shared memory does not know the name.
 */
extern const GsTextTable *gs_tables_get(const char *name, bool must_be_shared,
										GsTextTable *(*make) (void *arg), void *arg, GsTableEntry **entry);

/*
 * What a process has proven of a collation, by a hash of its name.  Each process that finds nothing proves it
 * itself, and waits for no other one.
 */
typedef enum GsProof
{
	GS_PROOF_NONE, /* nothing is known */
	GS_PROOF_RIGHT,
	GS_PROOF_WRONG
} GsProof;

extern GsProof gs_tables_find_proof(const uint64_t name[2]);
extern void gs_tables_add_proof(const uint64_t name[2], GsProof proof);

/* Can a device make keys by a table: is it in shared memory, and made for that? */
extern bool gs_tables_are_shared(const GsTextTable *table);

/* Is a name refused until the server restarts?  entry may be NULL. */
extern bool gs_tables_are_refused(const GsTableEntry *entry);
extern void gs_tables_refuse(GsTableEntry *entry);

#endif							/* GS_KEY_TABLES_H */
