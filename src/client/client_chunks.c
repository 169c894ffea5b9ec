/*-------------------------------------------------------------------------
 *
 * client_chunks.c
 *	  A session's chunks, from the backend's side: rows are fed in them, sorted, and fetched; arrays
 *	  are sorted in them.
 *
 * Tests: tap/fault_cancel, tap/memory_staging
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "client/client_private.h"
#include "compat.h"
#include "guc.h"

/* Raise the error that the session's files have met with, if any. */
static void
report_failure(const GsClient *client)
{
	GsSpillFailure failure = {0};

	gs_lock_shared();
	if (gs_client_is_mine(client))
		failure = client->session->failure;
	gs_unlock();
	if (failure.error_number == 0)
		return;
	errno = failure.error_number;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", gs_spill_action_names[failure.action], failure.path)));
}

/* With the lock held: may a feeder go on? */
static inline GsClientStatus
feeding_status(const GsClient *client)
{
	if (!gs_client_is_mine(client) || !gs_client_is_served(client) ||
		client->session->state == GS_SESSION_CLOSING ||
		client->session->failed)
		return GS_CLIENT_LOST;
	if (client->session->declined)
		return GS_CLIENT_DECLINED;
	if (client->session->overflow)
		return GS_CLIENT_OVERFLOW;
	return GS_CLIENT_OK;
}

/* A wait until a session or a chunk changes. */
typedef struct Wait
{
	ConditionVariable *cv;
	GsWait		event;
	bool		sleeping;
	instr_time	since;
	uint32		progress;		/* as it was last seen, and this number of times since */
	int			n_seen;
} Wait;

/*
 * If the service has not moved for gpusort.service_timeout, it counts as gone until it moves again
 * (service/README.md).  Its sessions are lost for good.
 */
static void
look_at_service(Wait *wait)
{
	uint32		progress = __atomic_load_n(&gs_shared->progress, __ATOMIC_RELAXED);
	bool		stuck = false;

	if (progress != wait->progress)
		wait->n_seen = 0;
	wait->progress = progress;
	if (gs_guc_service_timeout_s > 0 && wait->n_seen++ >= gs_guc_service_timeout_s * 1000 / GS_WAIT_MS)
	{
		gs_lock();
		stuck = gs_shared->alive && __atomic_load_n(&gs_shared->progress, __ATOMIC_RELAXED) == progress;
		if (stuck)
		{
			gs_shared->alive = false;
			gs_shared->stuck = true;
			gs_shared->generation++;
		}
		gs_unlock();
	}
	gs_client_wake_service();	/* if it is idle, it shows now that it moves */
	if (stuck)
		ereport(LOG,
				(errmsg("gpusort service (process %d) has made no progress for %d seconds", gs_shared->pid,
						gs_guc_service_timeout_s),
				 errdetail("Its sorts are lost. PostgreSQL does all sorts until the service goes on.")));
}

/* The caller tests its condition before and after this call, so no wake-up is lost. */
static void
wait_on(Wait *wait)
{
	if (wait->sleeping)
	{
		if (ConditionVariableTimedSleep(wait->cv, GS_WAIT_MS, gs_compat_wait_event(wait->event)))
			look_at_service(wait);
	}
	else
	{
		ConditionVariablePrepareToSleep(wait->cv);
		INSTR_TIME_SET_CURRENT(wait->since);
	}
	wait->sleeping = true;
}

static void
end_wait(Wait *wait)
{
	static const GsCounter counters[] = {
		[GS_WAIT_STAGING] = GS_COUNT_STAGING_WAIT_US,
		[GS_WAIT_FEED] = GS_COUNT_STAGING_WAIT_US,
		[GS_WAIT_SORT] = GS_COUNT_SORT_WAIT_US,
		[GS_WAIT_FETCH] = GS_COUNT_FETCH_WAIT_US
	};

	if (!wait->sleeping)
		return;
	ConditionVariableCancelSleep();
	gs_stats_count(counters[wait->event], (uint64) (gs_stats_lap_ms(&wait->since) * 1000));
}

GsClientStatus
gs_client_take_chunk(GsClient *client, bool for_page, int *chunk)
{
	GsClientStatus status;
	Wait		wait = {.cv = for_page ? &gs_shared->chunk_cv : &client->session->cv,
		.event = for_page ? GS_WAIT_STAGING : GS_WAIT_FEED};

	for (;;)
	{
		gs_lock();
		if (for_page)
			status = gs_client_is_mine(client) && gs_client_is_served(client) ? GS_CLIENT_OK : GS_CLIENT_LOST;
		else
			status = feeding_status(client);
		*chunk = -1;
		if (status == GS_CLIENT_OK)
			*chunk = for_page ? gs_chunk_take_for_page(client->session) : gs_chunk_take(client->session);
		gs_unlock();
		if (status != GS_CLIENT_OK || *chunk >= 0)
			break;
		wait_on(&wait);
	}
	end_wait(&wait);
	if (status == GS_CLIENT_LOST)
		report_failure(client);
	return status;
}

int
gs_client_fill_chunk(GsClient *client)
{
	int			chunk = -1;

	gs_lock();
	if (feeding_status(client) == GS_CLIENT_OK)
		chunk = gs_chunk_fill(client->session);
	gs_unlock();
	return chunk;
}

int
gs_client_try_chunk(GsClient *client)
{
	int			chunk = -1;

	gs_lock();
	if (gs_client_is_mine(client) && gs_client_is_served(client))
		chunk = gs_chunk_take(client->session);
	gs_unlock();
	return chunk;
}

void
gs_client_give_chunk(GsClient *client, int chunk)
{
	gs_lock();
	if (gs_client_is_mine(client))
	{
		Assert(gs_chunks[chunk].session == client->number);
		gs_chunk_free(chunk);
	}
	gs_unlock_and_wake();
	ConditionVariableBroadcast(&client->session->cv);
}

GsClientStatus
gs_client_append(GsClient *client, int chunk, const GsChunkWriter *written)
{
	GsClientStatus status;

	gs_lock();
	status = feeding_status(client);
	if (status == GS_CLIENT_OK)
	{
		GsChunk    *c = &gs_chunks[chunk];

		Assert(client->session->state == GS_SESSION_FEEDING);
		Assert(c->state == GS_CHUNK_HELD && c->session == client->number);
		gs_chunk_filled(chunk);
		c->state = GS_CHUNK_APPENDING;
		c->data_bytes = written->used;
		c->n_records = written->n;
		c->key_bytes = written->missing;
		client->session->inexact += written->inexact;
		client->session->outcome.table_pages += written->pages;
		gs_chunk_request(chunk);
	}
	gs_unlock();
	if (status == GS_CLIENT_OK)
		gs_client_wake_service();
	else if (status == GS_CLIENT_LOST)
		report_failure(client);
	return status;
}

/* Have a range sorted, and wait until it is. */
static GsClientStatus
sort_range(GsClient *client, uint32 range, bool none_aside)
{
	GsSession  *session = client->session;
	GsClientStatus status = GS_CLIENT_OK;
	Wait		wait = {&session->cv, GS_WAIT_SORT, false};

	Assert(client->leader);
	gs_lock();
	if (!gs_client_is_served(client))
		status = GS_CLIENT_LOST;
	else if (session->declined)
		status = GS_CLIENT_DECLINED;
	else
	{
		session->range_wanted = range;
		session->none_aside = none_aside;
		session->state = GS_SESSION_SORTING;
		gs_session_request(client->number);
	}
	gs_unlock();
	if (status != GS_CLIENT_OK)
		return status;
	gs_client_wake_service();

	for (;;)
	{
		GsSessionState state;
		bool		serves;

		gs_lock_shared();
		state = session->state;
		serves = gs_client_is_served(client) && !session->failed;
		if (state != GS_SESSION_SORTING)
			gs_client_count_temp_blocks(client);
		gs_unlock();
		if (!serves)
			status = GS_CLIENT_LOST;
		else if (state == GS_SESSION_OVERFLOW)
			status = GS_CLIENT_OVERFLOW;
		if (!serves || state != GS_SESSION_SORTING)
			break;
		wait_on(&wait);
	}
	end_wait(&wait);
	if (status == GS_CLIENT_LOST)
		report_failure(client);
	return status;
}

GsClientStatus
gs_client_perform(GsClient *client, bool none_aside)
{
	/* a sort that overflowed is asked again, for its images */
	Assert(client->session->state == GS_SESSION_FEEDING ||
		   client->session->state == GS_SESSION_OVERFLOW);
	return sort_range(client, 0, none_aside);
}

GsClientStatus
gs_client_open_range(GsClient *client, uint32 range)
{
	Assert(client->session->state == GS_SESSION_SORTED);
	return sort_range(client, range, false) == GS_CLIENT_OK ? GS_CLIENT_OK : GS_CLIENT_LOST;
}

/* With the lock held: turn a chunk of this backend into a request. */
static void
begin_fetch(GsClient *client, int chunk, GsFetchKind kind)
{
	GsChunk    *c = &gs_chunks[chunk];

	Assert(gs_client_is_mine(client) && c->session == client->number);
	Assert((kind == GS_FETCH_ARRAYS) == (client->session->state == GS_SESSION_ARRAYS));
	Assert(c->state == GS_CHUNK_HELD || c->state == GS_CHUNK_FETCHED);
	c->fetch = kind;
	c->key_bytes = 0;
	c->status = GS_PENDING;
	c->request = gs_shared->next_request++;
	c->state = GS_CHUNK_FETCHING;
}

uint64
gs_client_request(GsClient *client, int chunk, GsFetchKind kind, uint64 number)
{
	uint64		request;

	Assert(kind == GS_FETCH_PAGE || kind == GS_FETCH_IMAGE);
	gs_lock();
	begin_fetch(client, chunk, kind);
	gs_chunks[chunk].number = number;
	request = gs_chunks[chunk].request;
	if (gs_client_is_served(client))
		gs_chunk_request(chunk);
	gs_unlock();
	gs_client_wake_service();
	return request;
}

/* Wait until a requested chunk is fetched, or was given up.  False: neither will happen. */
static bool
wait_fetched(GsClient *client, int chunk, uint64 request, GsWait event)
{
	const GsChunk *c = &gs_chunks[chunk];
	bool		over;
	Wait		wait = {&client->session->cv, event, false};

	for (;;)
	{
		bool		serves;

		gs_lock_shared();
		over = c->request != request || c->state != GS_CHUNK_FETCHING;
		serves = gs_client_is_served(client);
		if (over)
			gs_client_count_temp_blocks(client);
		gs_unlock();

		/* a fetched chunk is good even if the service has ended */
		if (over || !serves)
			break;
		wait_on(&wait);
	}
	end_wait(&wait);
	return over;
}

GsClientStatus
gs_client_wait(GsClient *client, int chunk)
{
	if (wait_fetched(client, chunk, gs_chunks[chunk].request, GS_WAIT_FETCH) &&
		gs_chunks[chunk].status == GS_OK)
		return GS_CLIENT_OK;
	report_failure(client);
	return GS_CLIENT_LOST;
}

bool
gs_client_try_page(GsClient *client, int *chunk, uint64 request)
{
	GsChunk    *c = &gs_chunks[*chunk];
	bool		taken = false;

	gs_lock();
	if (c->request != request || (c->state != GS_CHUNK_FETCHED && c->state != GS_CHUNK_FETCHING))
		*chunk = -1;
	else if (c->state == GS_CHUNK_FETCHED)
	{
		gs_page_take(*chunk);
		gs_client_count_temp_blocks(client);
		taken = true;
	}
	gs_unlock();
	return taken;
}

GsClientStatus
gs_client_wait_page(GsClient *client, int *chunk, uint64 request)
{
	/* mostly it has come */
	bool		taken = gs_client_try_page(client, chunk, request);

	if (!taken && *chunk >= 0 && wait_fetched(client, *chunk, request, GS_WAIT_FETCH))
		taken = gs_client_try_page(client, chunk, request);
	if (*chunk < 0 || (taken && gs_chunks[*chunk].status == GS_OK))
		return GS_CLIENT_OK;
	report_failure(client);
	return GS_CLIENT_LOST;
}

void
gs_client_leave_page(GsClient *client, int chunk)
{
	gs_lock();
	Assert(gs_chunks[chunk].session == client->number);
	gs_page_leave(chunk);
	gs_unlock();
	gs_client_wake_service();				/* so that it gives the page up after a second */
}

void
gs_client_sort_arrays(GsClient *client, int chunk, uint32 data_bytes, uint32 n_arrays)
{
	GsChunk    *c = &gs_chunks[chunk];

	gs_lock();
	begin_fetch(client, chunk, GS_FETCH_ARRAYS);
	c->data_bytes = data_bytes;
	c->n_records = n_arrays;
	if (gs_client_is_served(client))
		gs_chunk_request(chunk);
	else
	{
		c->state = GS_CHUNK_FETCHED;
		c->status = GS_CANCELLED;
	}
	gs_unlock();
	gs_client_wake_service();
}

GsArraysOutcome
gs_client_wait_arrays(GsClient *client, int chunk)
{
	if (!wait_fetched(client, chunk, gs_chunks[chunk].request, GS_WAIT_SORT))
		return GS_ARRAYS_LOST;
	switch (gs_chunks[chunk].status)
	{
		case GS_OK:
			return GS_ARRAYS_SORTED;
		case GS_NO_MEMORY:
		case GS_INVALID:
		case GS_INTERNAL:
			return GS_ARRAYS_REFUSED;
		case GS_CANCELLED:
			return GS_ARRAYS_NO_SERVICE;
		default:
			return GS_ARRAYS_LOST;
	}
}

int
gs_client_take_rejected(GsClient *client)
{
	int			chunk = -1;

	gs_lock();
	if (gs_client_is_mine(client) && client->session->rejected >= 0)
	{
		chunk = client->session->rejected;
		Assert(gs_chunks[chunk].state == GS_CHUNK_REJECTED);
		client->session->rejected = gs_chunks[chunk].next;
		gs_chunks[chunk].state = GS_CHUNK_HELD;
	}
	gs_unlock();
	return chunk;
}
