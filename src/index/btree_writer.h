/*-------------------------------------------------------------------------
 *
 * btree_writer.h
 *	  Writes a btree from index tuples that come in order.
 *
 * Calling protocol:
 *	  1. gs_btree_writer_begin
 *	  2. gs_btree_writer_add, for all tuples, by the key columns and then by heap
 *		 TID
 *	  3. gs_btree_writer_finish
 *	  The relation then holds the btree that btbuild() would have made of these
 *	  tuples, block by block and byte by byte, except for LSNs.
 *
 * Raises errors as btbuild() does, with its text for tuples that are too large.
 * The caller checks whether keys are unique.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BTREE_WRITER_H
#define GS_BTREE_WRITER_H

#include "access/itup.h"
#include "index/page_output.h"
#include "utils/relcache.h"

typedef struct GsBtreeWriter GsBtreeWriter;

/*
 * The index must be empty.  "unique" is IndexInfo.ii_Unique, which is not
 * always what the index's catalog entry says: some rebuilds do not check, and
 * PostgreSQL then makes posting lists in unique indexes too.
 *
 * finish ends the output.  The writer's memory is in a context below the
 * current one.
 */
extern GsBtreeWriter *gs_btree_writer_begin(Relation heap, Relation index, bool unique,
											GsPageOutput *output);

/* The next n tuples, plain ones as index_form_tuple() makes them; they are copied. */
extern void gs_btree_writer_add(GsBtreeWriter *writer, IndexTuple *tuples, int n);

/* Writes upper levels and metapage, and ends the output.  Frees the writer. */
extern void gs_btree_writer_finish(GsBtreeWriter *writer);

#endif							/* GS_BTREE_WRITER_H */
