/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  Writing tuples into chunks, in the form that devices take (device.h).
 *
 * A record's row is a minimal tuple, as PostgreSQL stores sorted tuples: it
 * begins with its own length, and a slot can point at it in place.  A caller may
 * also write rows of another form.  The key follows the row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_CHUNK_H
#define GS_CHUNK_H

#include "chunk/tuple_map.h"
#include "device/device.h"
#include "executor/tuptable.h"
#include "gpusort.h"
#include "key/key.h"
#include "storage/bufpage.h"

typedef struct GsChunkWriter
{
	char	   *memory;			/* aligned to 8 */
	uint32		bytes;			/* of memory: GS_CHUNK_BYTES, or less for a process's own rows */
	uint32		used;			/* bytes of rows and keys */
	uint32		n;				/* records */
	uint32		inexact;		/* of them: with an inexact key */
	uint32		pages;			/* of tables, whose rows were put at once */
	uint32		missing;		/* bytes of the keys that are left to the device */
	const GsTupleKeys *tuple_keys;	/* that device's; NULL: none is left to it */
} GsChunkWriter;

/*
 * What became of a row that was to be put somewhere.  gs_chunk_put() answers
 * the first four; who feeds (feeder.h), all but FULL.
 */
typedef enum GsPut
{
	GS_PUT_OK,
	GS_PUT_FULL,				/* does not fit into what is left: try again
								 * in an empty chunk */
	GS_PUT_BIG,					/* the row is too large for any chunk */
	GS_PUT_NO_KEY,				/* the row has no key (GS_KEY_NONE), so it
								 * cannot be put as a stub either */
	GS_PUT_OVERFLOW,			/* no device memory: this row and all later
								 * ones are the caller's, and those that
								 * gs_feeder_take_back returns */
	GS_PUT_LOST,				/* all rows fed so far are gone */
	GS_PUT_DECLINED				/* the rows have few groups, and the leader another plan for that:
								 * what was fed is not wanted any more */
} GsPut;

/*
 * A row to be put: a slot's tuple with the key of its columns, unless the
 * fields below say otherwise.
 */
typedef struct GsPutRow
{
	TupleTableSlot *slot;
	const Datum *values;		/* where slot is NULL: the key's columns, */
	const bool *isnull;			/* indexed by attno - 1 */
	const void *bytes;			/* not NULL: stored in place of the tuple */
	uint32		n_bytes;
	uint32		flags;			/* GS_ROW_EXTERNAL where bytes are a stub */
} GsPutRow;

extern void gs_chunk_begin(GsChunkWriter *writer, char *memory, uint32 bytes, const GsTupleKeys *tuple_keys);

/* Copy what is written to other memory, of as many bytes or more. */
extern void gs_chunk_copy(const GsChunkWriter *writer, char *memory, uint32 bytes);

/*
 * Write a row and its key.  Values that must be fetched to make the key go into
 * CurrentMemoryContext, which the caller resets now and then.
 */
extern GsPut gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row);

/* A page's tuples that become rows: items[0 .. n - 1], their line pointers. */
typedef struct GsPageItems
{
	Page		page;
	BlockNumber block;
	uint32		n;
	uint32		done;			/* the number of first ones that were looked at */
	uint32		left;			/* the number of these that cannot be put.  Their numbers come first */
	OffsetNumber items[MaxHeapTuplesPerPage];
} GsPageItems;

/*
 * The same for rows made of a page's tuples, from items->done on.  If rows are the tuples, and take at
 * least half of the page, it is copied as a whole.  A row that has no key, is too large or damaged gets no
 * record.  False: the chunk is full, and items->done is less than n.  CurrentMemoryContext may be reset.
 */
extern bool gs_chunk_put_page(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map,
							  GsPageItems *items);

#endif							/* GS_CHUNK_H */
