/*-------------------------------------------------------------------------
 *
 * service_feed.c
 *	  Chunks of a session that is fed, on their way to its device.
 *
 * Chunks are appended to the session's sort in the order in which they came.  A chunk waits if the device
 * has no room for it, or its role's limit does not admit it.  All later chunks wait behind it, until room has
 * been made (service_memory.c).  Appends overlap.  But once a chunk waits, the next append starts after all
 * others have ended: resume() requires that.
 *
 * A session that was written out once does not fill the device again.  It begins its next run when it holds
 * half of its share, so that the other half can be filled while the run is written.
 *
 * Tests: tap/memory_device, tap/fault_cancel
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fault.h"
#include "service/service_private.h"

/* Add a chunk to the waiting chunks, in the order of their numbers. */
static void
queue_chunk(int chunk)
{
	int		   *link = &gs_served[gs_chunks[chunk].session].waiting;

	Assert(gs_chunks[chunk].state == GS_CHUNK_APPENDING);
	while (*link >= 0 && gs_served_chunks[*link].number < gs_served_chunks[chunk].number)
		link = &gs_chunks[*link].next;
	gs_chunks[chunk].next = *link;
	*link = chunk;
}

/* The session takes no more rows, for this reason.  The leader takes the rows of the chunk back. */
static void
reject_chunk(int chunk, GsFallback reason)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	gs_served_overflow(c->session, reason);
	gs_lock();
	Assert(c->state == GS_CHUNK_APPENDING);
	c->state = GS_CHUNK_REJECTED;
	c->next = session->rejected;
	session->rejected = chunk;
	gs_unlock();
	ConditionVariableBroadcast(&session->cv);
}

static void
reject_waiting(int number)
{
	ServedSession *s = &gs_served[number];

	while (s->waiting >= 0)
	{
		int			chunk = s->waiting;

		s->waiting = gs_chunks[chunk].next;
		reject_chunk(chunk, GS_FALLBACK_MEMORY);
	}
	s->wait_for = WAIT_NOTHING;
	s->waits_since = s->limited_since = 0;
}

void
gs_feed_request(int chunk)
{
	int			number = gs_chunks[chunk].session;
	ServedSession *s = &gs_served[number];

	gs_device_assign(number);
	gs_served_chunks[chunk].number = s->n_chunks++;
	if (s->phase != SERVED_FED || GS_FAULT("device_memory"))
	{
		reject_chunk(chunk, GS_FALLBACK_MEMORY);
		return;
	}
	queue_chunk(chunk);
	gs_served_mark_due(number);
}

bool
gs_feed_ended(int chunk, GsStatus status)
{
	ServedSession *s = &gs_served[gs_chunks[chunk].session];

	s->appends--;
	if (status == GS_NO_MEMORY && s->phase == SERVED_FED)
	{
		if (s->wait_for != WAIT_RUN)
			s->wait_for = WAIT_DEVICE;
		queue_chunk(chunk);
		return false;
	}
	if (status != GS_OK)
	{
		reject_chunk(chunk, gs_job_fallback(status));
		return false;
	}
	s->waits_since = 0;
	return true;
}

void
gs_feed_note(int chunk)
{
	const GsChunk *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	session->rows += c->n_records;
	session->bytes += c->data_bytes;
	gs_chunk_free(chunk);
}

void
gs_feed_retry(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->wait_for != WAIT_DEVICE)
		return;
	s->wait_for = WAIT_NOTHING;
	if (s->sort)
		gs_ops->resume(s->sort);
	gs_served_mark_due(number);
}

/* Is it time for the session's next run? */
static bool
is_run_due(int number)
{
	const ServedSession *s = &gs_served[number];

	return s->spill && s->sort && !gs_write_is_busy(s) &&
		gs_memory_held(s->sort) >= Min(gs_memory_share(s->device), gs_role_share(number)) / 2;
}

/* May the role of the first waiting chunk hold it?  If not, it waits for that. */
static bool
is_admitted(int number)
{
	ServedSession *s = &gs_served[number];

	if (!gs_role_admits(s->waiting))
	{
		gs_role_wait(number);
		return false;
	}
	s->wait_for = WAIT_NOTHING;
	s->limited_since = 0;
	return true;
}

static void
append_first(int number)
{
	ServedSession *s = &gs_served[number];
	int			chunk = s->waiting;
	GsChunk    *c = &gs_chunks[chunk];

	s->asked_bytes += gs_chunk_device_bytes(chunk);
	s->waiting = c->next;
	s->appends++;
	gs_served_start(chunk);
	gs_ops->append(s->sort, gs_chunk_memory(chunk), c->data_bytes,
				   c->n_records - (GS_FAULT("service_lose_row") ? 1 : 0), c->key_bytes, &gs_served_chunks[chunk].job);
}

void
gs_feed_step(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->phase == SERVED_OVERFLOW)
		reject_waiting(number);
	if (s->phase != SERVED_FED)
		return;
	if (is_run_due(number))
		s->wait_for = WAIT_RUN;
	if (s->appends > 0 && s->wait_for != WAIT_NOTHING)
		return;
	if (s->wait_for == WAIT_RUN && !gs_write_is_busy(s))
	{
		s->wait_for = WAIT_NOTHING;
		if (s->sort && !gs_write_begin(number, WRITE_RUN))
			return;
	}
	if (s->waiting < 0 || s->wait_for == WAIT_DEVICE || s->wait_for == WAIT_RUN)
		return;

	/*
	 * A chunk under way may be counted twice for a moment, in asked_bytes and as held.  So while appends are
	 * under way, a refusal may be wrong, and wait_for stays as it is.
	 */
	if (s->appends > 0 ? !gs_role_admits(s->waiting) : !is_admitted(number))
		return;
	if (s->appends == 0)
		s->asked_at = gs_devices[s->device].n_freed;
	if (s->sort == NULL)
	{
		s->wait_for = WAIT_DEVICE;	/* cleared if the device is lost, and the session moves to another */
		s->sort = gs_job_open_sort(number, false);
		if (s->sort == NULL)
			return;
		s->wait_for = WAIT_NOTHING;
	}
	do
		append_first(number);
	while (s->waiting >= 0 && gs_role_admits(s->waiting));
}
