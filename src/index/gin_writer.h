/*-------------------------------------------------------------------------
 *
 * gin_writer.h
 *	  Writes a GIN index from entries that come in order.
 *
 * Calling protocol:
 *	  1. gs_gin_writer_begin
 *	  2. gs_gin_writer_add, for all tuples, by column, key and heap TID; of tuples without a key, by
 *		 column and heap TID, after the column's others
 *	  3. gs_gin_writer_finish, or gs_gin_writer_cancel
 *	  The relation then holds the index that ginbuild() would have made in one go, with enough
 *	  maintenance_work_mem to hold all entries: block by block and byte by byte, except for LSNs.  Of equal
 *	  keys whose bytes differ, such as the numerics 1.0 and 1.00, an entry may have another one.
 *
 * A tuple is what GinFormTuple() makes of one entry, without a posting list; its t_tid is the heap TID.
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

/* Metapage and WAL.  Frees the writer; answers how many TIDs all entries have together. */
extern double gs_gin_writer_finish(GsGinWriter *writer);

/* The relation may be truncated after this. */
extern void gs_gin_writer_cancel(GsGinWriter *writer);

#endif							/* GS_GIN_WRITER_H */
