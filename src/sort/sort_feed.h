/*-------------------------------------------------------------------------
 *
 * sort_feed.h
 *	  Feeding tuples to the device, in the leader and in parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_FEED_H
#define GS_SORT_FEED_H

#include "chunk/chunk.h"
#include "service/service_client.h"

typedef enum GsFeedStatus
{
	GS_FEED_OK,
	GS_FEED_BIG,				/* this row is too large to be fed */
	GS_FEED_NO_KEY,				/* this row cannot be fed, not as a stub
								 * either */
	GS_FEED_OVERFLOW,			/* no device memory: this row and all later
								 * ones are the caller's, and those that
								 * gs_feeder_take_back returns */
	GS_FEED_LOST				/* all rows fed so far are gone */
} GsFeedStatus;

typedef struct GsFeeder GsFeeder;

/*
 * client is not closed by the feeder.  Allocates in CurrentMemoryContext;
 * desc must live as long.
 */
extern GsFeeder *gs_feeder_create(GsClient *client, const GsKeyDesc *desc);

/* Statuses other than OK, BIG and NO_KEY are final: later calls return them again. */
extern GsFeedStatus gs_feeder_put(GsFeeder *feeder, TupleTableSlot *slot);
extern GsFeedStatus gs_feeder_put_stub(GsFeeder *feeder, TupleTableSlot *slot,
									   const void *stub, uint32 stub_bytes);

/*
 * A row of any bytes with the key of values and isnull (gs_chunk_put_bytes).
 * Such rows are read back by sort_rows.h, not through sort.h.
 */
extern GsFeedStatus gs_feeder_put_bytes(GsFeeder *feeder, const Datum *values, const bool *isnull,
										const void *row, uint32 row_bytes);

/* Feed a whole chunk that was written elsewhere. */
extern GsFeedStatus gs_feeder_put_chunk(GsFeeder *feeder, const GsChunkWriter *chunk);

/* Hand over the chunk in work.  After it, no row may be put. */
extern GsFeedStatus gs_feeder_finish(GsFeeder *feeder);

/* Has a call answered GS_FEED_OVERFLOW? */
extern bool gs_feeder_overflowed(const GsFeeder *feeder);

/*
 * After GS_FEED_OVERFLOW: the next row that was put but not handed over, in
 * memory that is valid until the next call; NULL when there are no more.
 */
extern const char *gs_feeder_take_back(GsFeeder *feeder, bool *external);

extern uint64 gs_feeder_rows(const GsFeeder *feeder);

#endif							/* GS_SORT_FEED_H */
