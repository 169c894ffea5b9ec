/*-------------------------------------------------------------------------
 *
 * key_tables.h
 *	  What processes share about collations: tables (device/text_key.h), and what else takes long to find out.
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
 * Returns the table of a name, in the database's encoding.  A table is any memory without pointers.
 *
 * The first caller's make(arg, &size) returns it, from malloc(), and its size.  Other callers wait meanwhile,
 * and can be cancelled.  make() may check for interrupts and raise errors; then the next caller makes the
 * table.  It must not ask for a table whose make() may ask for this one.  If it returns NULL, the name is
 * refused until the server restarts.
 *
 * Shared memory may be full, and a server may run without preloading gpusort.  Then each process makes a
 * table of its own, by malloc(), and should keep it.
 *
 * must_be_shared: no process makes its own, NULL is returned instead, and a make() that returns NULL is
 * called again by the next caller.
 *
 * *entry is NULL if shared memory does not know the name.
 */
extern const void *gs_tables_get(const char *name, bool must_be_shared,
								 void *(*make) (void *arg, Size *size), void *arg, GsTableEntry **entry);

/*
 * What a process has proven of a collation, by a hash of its name.  A process that finds no proof makes one,
 * and waits for no other process.
 */
typedef enum GsProof
{
	GS_PROOF_NONE,				/* nothing is known */
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
