/*-------------------------------------------------------------------------
 *
 * feeder.c
 *	  Feeding tuples to the device (feeder.h).
 *
 * The rows of the first chunk are written to memory of this process, and copied into a chunk when it is
 * complete.  So a feeder of few rows holds a chunk only for a copy's time.  A feeder of more rows fills
 * chunks in place if the session may hold more chunks (service/README.md).  Otherwise it goes on in its own
 * memory.
 *
 * Tests: regress/plans, tap/memory_staging
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "feed/feeder.h"
#include "feed/group_sample.h"

/* Each feeder searches its first GROUP_CHUNKS chunks for few groups. */
#define GROUP_CHUNKS	4

struct GsFeeder
{
	GsClient   *client;
	const GsSession *session;
	const GsKeyDesc *desc;
	MemoryContext context;
	MemoryContext fetched;		/* values fetched to make keys */
	GsPut		status;
	GsChunkWriter writer;		/* memory NULL: nothing is being written */
	int			chunk;			/* number of the chunk being written; -1: it is own memory */
	char	   *own;			/* NULL until needed */
	bool		sent;			/* a chunk has been handed over */
	uint32		taken_back;
	uint64		rows;
	GsGroupSample *groups;		/* NULL: groups are not, or no longer, searched */
	int			sampled;		/* chunks */
	uint32		looked;			/* the number of first rows of the chunk in work that are in the sample */
	uint32		first_look;		/* rows before the first look; 0: it is done */
};

GsFeeder *
gs_feeder_create(GsClient *client, const GsKeyDesc *desc)
{
	GsFeeder   *feeder;

	if (desc == NULL || desc->ncols != gs_client_session(client)->spec.key_columns)
		return NULL;
	feeder = palloc0(sizeof(GsFeeder));
	feeder->client = client;
	feeder->session = gs_client_session(client);
	feeder->desc = desc;
	feeder->context = CurrentMemoryContext;
	feeder->fetched = AllocSetContextCreate(CurrentMemoryContext, "gpusort feed",
											ALLOCSET_DEFAULT_SIZES);
	feeder->status = GS_PUT_OK;
	feeder->chunk = -1;
	if (feeder->session->spec.group_rows > 0)
	{
		feeder->groups = gs_groups_begin();
		feeder->first_look = GS_GROUPS_FIRST_LOOK(feeder->session->spec.group_rows);
	}
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
		case GS_CLIENT_DECLINED:
			feeder->status = GS_PUT_DECLINED;
			break;
	}
	return feeder->status;
}

/* Takes a sample of a chunk's rows, and tells the service if they have few groups. */
static GsPut
look_for_groups(GsFeeder *feeder, const GsChunkWriter *chunk, bool first)
{
	if (feeder->groups == NULL)
		return feeder->status;
	gs_groups_add(feeder->groups, chunk, feeder->looked);
	feeder->looked = chunk->n;
	feeder->first_look = 0;
	if (gs_groups_are_fewer(feeder->groups, feeder->session->spec.few_groups,
							feeder->session->spec.group_rows, first) &&
		gs_client_decline(feeder->client))
		feeder->status = GS_PUT_DECLINED;
	return feeder->status;
}

/* Looks for the first time, once there are enough rows.  Another feeder may have found few groups before. */
static inline GsPut
look_first(GsFeeder *feeder)
{
	if (unlikely(feeder->first_look > 0 && feeder->writer.n >= feeder->first_look))
		return look_for_groups(feeder, &feeder->writer, true);
	if (unlikely(feeder->session->declined) && gs_client_decline(feeder->client))
		feeder->status = GS_PUT_DECLINED;
	return feeder->status;
}

static void
stop_looking(GsFeeder *feeder)
{
	if (feeder->groups)
		pfree(feeder->groups);
	feeder->groups = NULL;
	feeder->first_look = 0;
}

/* Looks at a whole chunk, before it is handed over. */
static GsPut
look_at_chunk(GsFeeder *feeder, const GsChunkWriter *chunk)
{
	(void) look_for_groups(feeder, chunk, false);
	feeder->looked = 0;
	if (++feeder->sampled == GROUP_CHUNKS)
		stop_looking(feeder);
	return feeder->status;
}

/* Hands over a copy of rows in memory of this process. */
static GsPut
hand_copy_over(GsFeeder *feeder, const GsChunkWriter *from)
{
	int			chunk;
	GsPut		status;

	status = note_status(feeder, gs_client_take_chunk(feeder->client, false, &chunk));
	if (status != GS_PUT_OK)
		return status;
	gs_chunk_copy(from, gs_chunk_memory(chunk), GS_CHUNK_BYTES);
	status = note_status(feeder, gs_client_append(feeder->client, chunk, from));
	if (status != GS_PUT_OK)
		gs_client_give_chunk(feeder->client, chunk);
	return status;
}

/* Hands over the writer's rows.  If that fails, they stay with it. */
static GsPut
hand_over(GsFeeder *feeder)
{
	GsPut		status;

	if (feeder->status != GS_PUT_OK || feeder->writer.memory == NULL)
		return feeder->status;
	if (look_at_chunk(feeder, &feeder->writer) != GS_PUT_OK)
		return feeder->status;
	if (feeder->chunk < 0)
		status = hand_copy_over(feeder, &feeder->writer);
	else
		status = note_status(feeder, gs_client_append(feeder->client, feeder->chunk,
													  &feeder->writer));
	if (status == GS_PUT_OK)
	{
		feeder->chunk = -1;
		feeder->writer.memory = NULL;
		feeder->sent = true;
	}
	return status;
}

static GsPut
next_chunk(GsFeeder *feeder)
{
	const GsTupleKeys *tuple_keys = NULL;
	GsPut		status = hand_over(feeder);

	if (status != GS_PUT_OK)
		return status;
	if (feeder->sent)
		feeder->chunk = gs_client_fill_chunk(feeder->client);
	if (feeder->chunk < 0 && feeder->own == NULL)
		feeder->own = MemoryContextAlloc(feeder->context, GS_CHUNK_BYTES);
	/* a sample of groups needs keys */
	if (feeder->groups == NULL && feeder->session->spec.sort.tuple_keys.n_columns > 0)
		tuple_keys = &feeder->session->spec.sort.tuple_keys;
	gs_chunk_begin(&feeder->writer,
				   feeder->chunk < 0 ? feeder->own : gs_chunk_memory(feeder->chunk), GS_CHUNK_BYTES,
				   tuple_keys);
	return GS_PUT_OK;
}

/* Is there a chunk to write to? */
static inline bool
can_put(GsFeeder *feeder)
{
	return likely(feeder->status == GS_PUT_OK) &&
		(likely(feeder->writer.memory != NULL) || next_chunk(feeder) == GS_PUT_OK);
}

GsPut
gs_feeder_put(GsFeeder *feeder, const GsPutRow *row)
{
	MemoryContext old;
	GsPut		put;

	if (unlikely(!can_put(feeder)))
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
	{
		feeder->rows++;
		return look_first(feeder);
	}
	else if (unlikely(put == GS_PUT_FULL))
		elog(ERROR, "row does not fit into an empty chunk");
	return put;
}

void
gs_feeder_put_page(GsFeeder *feeder, GsTupleMap *map, GsPageItems *items)
{
	MemoryContext old;
	bool		all;

	if (unlikely(!can_put(feeder)))
		return;
	old = MemoryContextSwitchTo(feeder->fetched);
	do
	{
		uint32		before = items->done - items->left;

		all = gs_chunk_put_page(&feeder->writer, feeder->desc, map, items);
		feeder->rows += items->done - items->left - before;
	} while (unlikely(!all) && next_chunk(feeder) == GS_PUT_OK);
	MemoryContextSwitchTo(old);
	MemoryContextReset(feeder->fetched);
	if (items->done > items->left)
		feeder->writer.pages++;
	if (likely(all))
		(void) look_first(feeder);
}

GsPut
gs_feeder_put_chunk(GsFeeder *feeder, const GsChunkWriter *chunk)
{
	Assert(feeder->writer.memory == NULL);
	if (feeder->status == GS_PUT_OK && look_at_chunk(feeder, chunk) == GS_PUT_OK &&
		hand_copy_over(feeder, chunk) == GS_PUT_OK)
		feeder->rows += chunk->n;
	return feeder->status;
}

void
gs_feeder_go_on(GsFeeder *feeder, const GsChunkWriter *chunk)
{
	Assert(feeder->status == GS_PUT_OK && feeder->writer.memory == NULL && feeder->own == NULL &&
		   chunk->bytes == GS_CHUNK_BYTES);
	feeder->own = chunk->memory;
	feeder->writer = *chunk;
	feeder->rows += chunk->n;
}

GsPut
gs_feeder_finish(GsFeeder *feeder)
{
	/* all rows are there, so another plan is no better */
	stop_looking(feeder);
	if (feeder->writer.memory != NULL && feeder->writer.n == 0)
	{
		if (feeder->chunk >= 0)
			gs_client_give_chunk(feeder->client, feeder->chunk);
		feeder->chunk = -1;
		feeder->writer.memory = NULL;
	}
	(void) hand_over(feeder);
	if (feeder->writer.memory == NULL && feeder->own)
	{
		pfree(feeder->own);
		feeder->own = NULL;
	}
	return feeder->status;
}

const char *
gs_feeder_take_back(GsFeeder *feeder, bool *external)
{
	GsRecord   *record;

	if (feeder->status != GS_PUT_OVERFLOW || feeder->writer.memory == NULL)
		return NULL;
	if (feeder->taken_back == feeder->writer.n)
	{
		if (feeder->chunk >= 0)
			gs_client_give_chunk(feeder->client, feeder->chunk);
		feeder->chunk = -1;
		feeder->writer.memory = NULL;
		return NULL;
	}
	record = gs_chunk_record(feeder->writer.memory, GS_CHUNK_BYTES, feeder->taken_back++);
	feeder->rows--;
	*external = (record->row_len & GS_ROW_EXTERNAL) != 0;
	return feeder->writer.memory + record->row_off;
}

GsFallback
gs_put_fallback(const GsClient *client, GsPut put)
{
	switch (put)
	{
		case GS_PUT_OK:
			return GS_FALLBACK_NONE;
		case GS_PUT_LEFT:
			return GS_FALLBACK_NO_KEY;
		case GS_PUT_OVERFLOW:
			return gs_client_fallback(client, GS_CLIENT_OVERFLOW);
		default:
			return GS_FALLBACK_LOST;
	}
}

uint64
gs_feeder_rows(const GsFeeder *feeder)
{
	return feeder->rows;
}
