/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  Writing tuples into chunks, in the form that devices take (device.h).
 *
 * A record's row is a minimal tuple, as PostgreSQL stores sorted tuples: it
 * begins with its own length, and a slot can point at it where it lies.  Or it
 * is whatever the caller makes of it.  The key follows the row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CHUNK_H
#define GS_CHUNK_H

#include "device/device.h"
#include "executor/tuptable.h"
#include "gpusort.h"
#include "key/key.h"

typedef struct GsChunkWriter
{
	char	   *memory;			/* GS_CHUNK_BYTES bytes, aligned to 8 */
	uint32		used;			/* bytes of rows and keys */
	uint32		n;				/* records */
	uint32		inexact;		/* of them: with a key that was cut off */
} GsChunkWriter;

typedef enum GsChunkPut
{
	GS_CHUNK_PUT_OK,
	GS_CHUNK_PUT_FULL,			/* does not fit into what is left: try again
								 * in an empty chunk */
	GS_CHUNK_PUT_BIG,			/* the row is too large for any chunk */
	GS_CHUNK_PUT_NO_KEY			/* the row has no key: GS_KEY_TOO_LONG */
} GsChunkPut;

extern void gs_chunk_begin(GsChunkWriter *writer, char *memory);

/*
 * Write a slot's tuple and key.  Values that must be fetched to make the key
 * go into CurrentMemoryContext, which the caller resets now and then.
 */
extern GsChunkPut gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc,
							   TupleTableSlot *slot);

/*
 * Write a slot's key with these bytes in place of its tuple; the record is
 * marked GS_ROW_EXTERNAL.
 */
extern GsChunkPut gs_chunk_put_stub(GsChunkWriter *writer, const GsKeyDesc *desc,
									TupleTableSlot *slot, const void *stub, uint32 stub_bytes);

/*
 * Write any bytes as the row, with the key of values and isnull, which are
 * indexed by attno - 1.
 */
extern GsChunkPut gs_chunk_put_bytes(GsChunkWriter *writer, const GsKeyDesc *desc,
									 const Datum *values, const bool *isnull, const void *row,
									 uint32 row_bytes);

#endif							/* GS_CHUNK_H */
