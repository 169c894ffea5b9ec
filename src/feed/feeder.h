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
 * client is not closed by the feeder.  Allocates in CurrentMemoryContext;
 * desc must live as long.  Returns NULL if desc makes other keys than the session holds: a collation of the
 * leader's keys may be refused by the time that a worker begins.
 */
extern GsFeeder *gs_feeder_create(GsClient *client, const GsKeyDesc *desc);

/*
 * Feed a row.  OVERFLOW and LOST are final: later calls answer the same.  Rows
 * that are not tuples are read back by sort_rows.h, not through sort.h.
 */
extern GsPut gs_feeder_put(GsFeeder *feeder, const GsPutRow *row);

/* Feed tuples of a page, as gs_chunk_put_page() does.  After OVERFLOW or LOST some are not looked at. */
extern void gs_feeder_put_page(GsFeeder *feeder, GsTupleMap *map, GsPageItems *items);

/* Feed a whole chunk that was written elsewhere. */
extern GsPut gs_feeder_put_chunk(GsFeeder *feeder, const GsChunkWriter *chunk);

/* Go on where another writer ended; its memory is the feeder's from then on. */
extern void gs_feeder_go_on(GsFeeder *feeder, const GsChunkWriter *chunk);

/* Hand over the chunk in work.  After it, no row may be put. */
extern GsPut gs_feeder_finish(GsFeeder *feeder);

/*
 * After GS_PUT_OVERFLOW: the next row that was put but not handed over, in
 * memory that is valid until the next call; NULL when there are no more, and after any other answer.
 */
extern const char *gs_feeder_take_back(GsFeeder *feeder, bool *external);

/* Why PostgreSQL has to sort the rows, after this answer; GS_FALLBACK_NONE: it has not. */
extern GsFallback gs_put_fallback(const GsClient *client, GsPut put);

extern uint64 gs_feeder_rows(const GsFeeder *feeder);

#endif							/* GS_FEEDER_H */
