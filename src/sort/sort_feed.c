/*-------------------------------------------------------------------------
 *
 * sort_feed.c
 *	  Feeding tuples to the device (sort_feed.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "sort/sort_feed.h"

struct GsFeeder
{
	GsClient   *client;
	const GsKeyDesc *desc;
	MemoryContext fetched;		/* values fetched to make keys */
	GsPut		status;
	int			chunk;			/* being written; -1: none */
	GsChunkWriter writer;		/* of that chunk */
	uint32		taken_back;
	uint64		rows;
};

GsFeeder *
gs_feeder_create(GsClient *client, const GsKeyDesc *desc)
{
	GsFeeder   *feeder = palloc0(sizeof(GsFeeder));

	feeder->client = client;
	feeder->desc = desc;
	feeder->fetched = AllocSetContextCreate(CurrentMemoryContext, "gpusort feed",
											ALLOCSET_DEFAULT_SIZES);
	feeder->status = GS_PUT_OK;
	feeder->chunk = -1;
	return feeder;
}

static GsPut
note_status(GsFeeder *feeder, GsClientStatus status)
{
	switch (status)
	{
		case GS_CLIENT_OK:
			break;
		case GS_CLIENT_OVERFLOW:
			feeder->status = GS_PUT_OVERFLOW;
			break;
		case GS_CLIENT_LOST:
			feeder->status = GS_PUT_LOST;
			break;
	}
	return feeder->status;
}

static GsPut
hand_over(GsFeeder *feeder)
{
	GsPut		status;

	if (feeder->chunk < 0)
		return feeder->status;
	status = note_status(feeder, gs_client_append(feeder->client, feeder->chunk,
												  feeder->writer.used, feeder->writer.n,
												  feeder->writer.inexact));
	if (status == GS_PUT_OK)
		feeder->chunk = -1;
	return status;
}

static GsPut
next_chunk(GsFeeder *feeder)
{
	GsPut		status = hand_over(feeder);

	if (status != GS_PUT_OK)
		return status;
	status = note_status(feeder, gs_client_take_chunk(feeder->client, &feeder->chunk));
	if (status == GS_PUT_OK)
		gs_chunk_begin(&feeder->writer, gs_chunk_memory(feeder->chunk));
	return status;
}

GsPut
gs_feeder_put(GsFeeder *feeder, const GsPutRow *row)
{
	MemoryContext old;
	GsPut		put;

	if (unlikely(feeder->status != GS_PUT_OK))
		return feeder->status;
	if (unlikely(feeder->chunk < 0) && next_chunk(feeder) != GS_PUT_OK)
		return feeder->status;

	old = MemoryContextSwitchTo(feeder->fetched);
	put = gs_chunk_put(&feeder->writer, feeder->desc, row);
	if (unlikely(put == GS_PUT_FULL))
	{
		put = next_chunk(feeder);
		if (put == GS_PUT_OK)
			put = gs_chunk_put(&feeder->writer, feeder->desc, row);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(feeder->fetched);

	if (likely(put == GS_PUT_OK))
		feeder->rows++;
	else if (unlikely(put == GS_PUT_FULL))
		elog(ERROR, "row does not fit into an empty chunk");
	return put;
}

GsPut
gs_feeder_put_chunk(GsFeeder *feeder, const GsChunkWriter *chunk)
{
	if (feeder->status != GS_PUT_OK || next_chunk(feeder) != GS_PUT_OK)
		return feeder->status;
	memcpy(feeder->writer.memory, chunk->memory, chunk->used);
	memcpy(gs_chunk_record(feeder->writer.memory, GS_CHUNK_BYTES, chunk->n) + 1,
		   gs_chunk_record(chunk->memory, GS_CHUNK_BYTES, chunk->n) + 1,
		   chunk->n * sizeof(GsRecord));
	feeder->writer.used = chunk->used;
	feeder->writer.n = chunk->n;
	feeder->writer.inexact = chunk->inexact;
	feeder->rows += chunk->n;
	return feeder->status;
}

GsPut
gs_feeder_finish(GsFeeder *feeder)
{
	if (feeder->status != GS_PUT_OK)
		return feeder->status;
	if (feeder->chunk >= 0 && feeder->writer.n == 0)
	{
		gs_client_give_chunk(feeder->client, feeder->chunk);
		feeder->chunk = -1;
	}
	return hand_over(feeder);
}

bool
gs_feeder_overflowed(const GsFeeder *feeder)
{
	return feeder->status == GS_PUT_OVERFLOW;
}

const char *
gs_feeder_take_back(GsFeeder *feeder, bool *external)
{
	GsRecord   *record;

	Assert(feeder->status == GS_PUT_OVERFLOW);
	if (feeder->chunk < 0)
		return NULL;
	if (feeder->taken_back == feeder->writer.n)
	{
		gs_client_give_chunk(feeder->client, feeder->chunk);
		feeder->chunk = -1;
		return NULL;
	}
	record = gs_chunk_record(feeder->writer.memory, GS_CHUNK_BYTES, feeder->taken_back++);
	feeder->rows--;
	*external = (record->row_len & GS_ROW_EXTERNAL) != 0;
	return feeder->writer.memory + record->row_off;
}

uint64
gs_feeder_rows(const GsFeeder *feeder)
{
	return feeder->rows;
}
