/*-------------------------------------------------------------------------
 *
 * feeder.h
 *	  Feeding tuples to the device, in the leader and in parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_FEEDER_H
#define GS_FEEDER_H

#include "chunk/chunk.h"
#include "client/client.h"

typedef struct GsFeeder GsFeeder;

/*
 * Makes a feeder in CurrentMemoryContext.  It does not close client.  desc must live as long.  NULL: desc
 * makes other keys than the session has, as a collation of the leader's keys may be refused by the time
 * that a worker begins.
 */
extern GsFeeder *gs_feeder_create(GsClient *client, const GsKeyDesc *desc);

/*
 * Feeds a row.  OVERFLOW and LOST are final: later calls return the same.  sort_rows.h, and not sort.h,
 * reads rows back that are not tuples.
 */
extern GsPut gs_feeder_put(GsFeeder *feeder, const GsPutRow *row);

/* Feeds the tuples of a page, as gs_chunk_put_page() does.  After OVERFLOW or LOST some are not looked at. */
extern void gs_feeder_put_page(GsFeeder *feeder, GsTupleMap *map, GsPageItems *items);

/* Feeds a whole chunk that was written elsewhere. */
extern GsPut gs_feeder_put_chunk(GsFeeder *feeder, const GsChunkWriter *chunk);

/* Goes on where another writer ended.  Its memory becomes the feeder's. */
extern void gs_feeder_go_on(GsFeeder *feeder, const GsChunkWriter *chunk);

/* Hands over the chunk in work.  No row may be put afterwards. */
extern GsPut gs_feeder_finish(GsFeeder *feeder);

/*
 * Returns the next row that was put but not handed over, after GS_PUT_OVERFLOW.  The row is valid until the
 * next call.  NULL: there are no more, or GS_PUT_OVERFLOW was not returned.
 */
extern const char *gs_feeder_take_back(GsFeeder *feeder, bool *external);

/* Returns the reason to fall back after this answer, or GS_FALLBACK_NONE. */
extern GsFallback gs_put_fallback(const GsClient *client, GsPut put);

extern uint64 gs_feeder_rows(const GsFeeder *feeder);

#endif							/* GS_FEEDER_H */
