/*-------------------------------------------------------------------------
 *
 * gin_writer.h
 *	  Writes a GIN index from entries that come in order.
 *
 * Calling protocol:
 *	  1. gs_gin_writer_begin
 *	  2. gs_gin_writer_add, for all tuples, ordered by column, key and heap TID.  A column's tuples
 *		 without a key come after its others, ordered by heap TID
 *	  3. gs_gin_writer_finish, or gs_gin_writer_cancel
 *	  The relation then holds the index that ginbuild() would have made in one go, with enough
 *	  maintenance_work_mem to hold all entries: block by block and byte by byte, except for LSNs.  Equal
 *	  keys may differ in bytes, such as the numerics 1.0 and 1.00; then the entry may have the other one.
 *
 * GinFormTuple() makes such a tuple of one entry, without a posting list; its t_tid is the heap TID.
 * The same entry with the same TID may come more than once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GIN_WRITER_H
#define GS_GIN_WRITER_H

#include "access/gin_private.h"

typedef struct GsGinWriter GsGinWriter;

/* The index must be empty.  Allocates in a context below the current one. */
extern GsGinWriter *gs_gin_writer_begin(Relation index);

/*
 * Raises the errors of ginbuild() for keys that are too large.  Returns false if a key is less than the key
 * before it.
 */
extern bool gs_gin_writer_add(GsGinWriter *writer, IndexTuple *tuples, int n);

/* Writes metapage and WAL, and frees the writer.  Returns the number of TIDs in all entries. */
extern double gs_gin_writer_finish(GsGinWriter *writer);

/* The relation may be truncated after this. */
extern void gs_gin_writer_cancel(GsGinWriter *writer);

#endif							/* GS_GIN_WRITER_H */
