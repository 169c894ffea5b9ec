/*-------------------------------------------------------------------------
 *
 * sort_big.h
 *	  Rows too large for a chunk: a temporary file holds them, and a stub with
 *	  their place in it travels through the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_BIG_H
#define GS_SORT_BIG_H

#include "executor/tuptable.h"
#include "storage/buffile.h"

typedef struct GsBigRows GsBigRows;

typedef struct GsBigStub
{
	off_t		offset;
	int			fileno;
	uint32		len;			/* bytes of the minimal tuple */
	uint64		hash;			/* gs_tuple_hash() of it */
} GsBigStub;

/* A hash of the tuple's contents: the same in another run of the same plan. */
extern uint64 gs_tuple_hash(const MinimalTupleData *tuple);

/* The file lives as long as the current transaction, or until the end. */
extern GsBigRows *gs_big_begin(void);
extern void gs_big_write(GsBigRows *big, TupleTableSlot *slot, GsBigStub *stub);

/* The tuple, palloc'd in CurrentMemoryContext. */
extern MinimalTuple gs_big_read(GsBigRows *big, const GsBigStub *stub);
extern void gs_big_end(GsBigRows *big);

#endif							/* GS_SORT_BIG_H */
