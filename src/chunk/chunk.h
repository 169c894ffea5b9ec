/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  Writing tuples into chunks, in the form that devices take (device.h).
 *
 * A record's row is a minimal tuple, as PostgreSQL stores sorted tuples.  It begins with its own length,
 * and a slot can point to it in place.  A caller may also write rows of another form.  The key is behind
 * the row.
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
	uint32		inexact;		/* records with an inexact key */
	uint32		pages;			/* pages of tables whose rows were put together */
	uint32		missing;		/* bytes of the keys that the device makes */
	const GsTupleKeys *tuple_keys;	/* how the device makes keys; NULL: it makes none */
} GsChunkWriter;

/*
 * The outcome of putting a row.  gs_chunk_put() returns the first four; a feeder (feeder.h) returns all but
 * FULL.
 */
typedef enum GsPut
{
	GS_PUT_OK,
	GS_PUT_FULL,				/* no room is left: try again in an empty chunk */
	GS_PUT_BIG,					/* the row is too large for any chunk */
	GS_PUT_LEFT,				/* the row has no key (GS_KEY_NONE), so a stub of it cannot be put either */
	GS_PUT_OVERFLOW,			/* no device memory: the caller keeps this row, all later ones, and those
								 * that gs_feeder_take_back returns */
	GS_PUT_LOST,				/* all rows fed so far are gone */
	GS_PUT_DECLINED				/* the rows have few groups, and the leader has another plan for that: the
								 * rows fed are dropped */
} GsPut;

/* A row to put: a slot's tuple with the key of its columns, unless the fields below tell otherwise. */
typedef struct GsPutRow
{
	TupleTableSlot *slot;
	const Datum *values;		/* slot NULL: the key's columns, */
	const bool *isnull;			/* indexed by attno - 1 */
	const void *bytes;			/* not NULL: stored instead of the tuple */
	uint32		n_bytes;
	uint32		flags;			/* GS_ROW_EXTERNAL: bytes are a stub */
} GsPutRow;

extern void gs_chunk_begin(GsChunkWriter *writer, char *memory, uint32 bytes, const GsTupleKeys *tuple_keys);

/* Copies what is written to other memory, which has as many bytes or more. */
extern void gs_chunk_copy(const GsChunkWriter *writer, char *memory, uint32 bytes);

/*
 * Writes a row and its key.  Values are fetched into CurrentMemoryContext, which the caller resets now and
 * then.
 */
extern GsPut gs_chunk_put(GsChunkWriter *writer, const GsKeyDesc *desc, const GsPutRow *row);

/* The tuples of a page that become rows.  items[0 .. n - 1] are their line pointers. */
typedef struct GsPageItems
{
	Page		page;
	BlockNumber block;
	uint32		n;
	uint32		done;			/* the number of first items that were looked at */
	uint32		left;			/* the number of these that cannot be put; they are moved to the front of
								 * items */
	OffsetNumber items[MaxHeapTuplesPerPage];
} GsPageItems;

/*
 * The same for rows made of a page's tuples, from items->done on.  If rows are the tuples themselves, and
 * take at least half of the page, the page is copied as a whole.  A row gets no record if it has no key, is
 * too large, or damaged.  False: the chunk is full, and items->done is less than n.  May reset
 * CurrentMemoryContext.
 */
extern bool gs_chunk_put_page(GsChunkWriter *writer, const GsKeyDesc *desc, GsTupleMap *map,
							  GsPageItems *items);

#endif							/* GS_CHUNK_H */
