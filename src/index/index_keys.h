/*-------------------------------------------------------------------------
 *
 * index_keys.h
 *	  The columns of a btree index as keys of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_KEYS_H
#define GS_INDEX_KEYS_H

#include "key/key.h"
#include "utils/rel.h"

/*
 * Keys whose order is the index's: its key columns, then the heap TID as a
 * last column of number (key columns + 1).  NULL and the reason where keys
 * cannot express it.  Allocates in CurrentMemoryContext.
 */
extern GsKeyDesc *gs_index_key_desc(Relation index, GsRefusal *refusal);

/* The first column, from 0, with which gs_index_key_desc() refuses an index. */
extern int	gs_index_refused_column(Relation index);

#endif							/* GS_INDEX_KEYS_H */
