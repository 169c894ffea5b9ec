/*-------------------------------------------------------------------------
 *
 * service_requests.c
 *	  What backends ask for: chunks to be appended or fetched, sessions to be
 *	  sorted or closed.
 *
 * Tests: tap/fault_cancel, tap/sessions_many
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "fault.h"
#include "service/service_private.h"

/* Is it a chunk whose arrays are to be sorted? */
static inline bool
holds_arrays(const GsChunk *c)
{
	return c->state == GS_CHUNK_FETCHING && c->fetch == GS_FETCH_ARRAYS;
}

/* Fault points: does this request end the service? */
static bool
chunk_kills_service(const GsChunk *c)
{
	if (c->state == GS_CHUNK_APPENDING)
		return GS_FAULT("service_append");
	return holds_arrays(c) ? GS_FAULT("service_arrays") : GS_FAULT("service_fetch");
}

/* Fault points: is this request not served, so that a test finds its sort waiting? */
static bool
chunk_is_held_up(const GsChunk *c)
{
	if (c->state == GS_CHUNK_APPENDING)
		return GS_FAULT("service_hold_append");
	return holds_arrays(c) ? GS_FAULT("service_hold_arrays") : GS_FAULT("service_hold_fetch");
}

/* With the lock held: hand a fetched chunk to the backend. */
static void
give_fetched(GsChunk *c, GsStatus status)
{
	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(c->state == GS_CHUNK_FETCHING);
	c->status = status;
	if (c->fetch == GS_FETCH_PAGE)
		gs_page_leave(c - gs_chunks);
	else
		c->state = GS_CHUNK_FETCHED;
}

static void
refuse_fetch(GsChunk *c, GsStatus status)
{
	GsSession  *session = &gs_sessions[c->session];

	gs_lock();
	give_fetched(c, status);
	gs_unlock();

	/* from here on the backend may free the chunk */
	if (GS_FAULT("service_slow_refusal"))
		pg_usleep(200000);
	ConditionVariableBroadcast(&session->cv);
}

/* Refuse a chunk of arrays, for this reason: the backend sorts them itself. */
static void
refuse_arrays(GsChunk *c, GsFallback reason)
{
	gs_lock();
	gs_sessions[c->session].overflow_reason = reason;
	gs_unlock();
	refuse_fetch(c, GS_NO_MEMORY);
}

static void
request_arrays(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	ServedSession *s = &gs_served[c->session];

	gs_device_assign(c->session);
	if (s->sort == NULL && s->phase == SERVED_FED)
		s->sort = gs_job_open_sort(c->session, true);
	gs_served_mark_due(c->session);
	if (s->phase == SERVED_OVERFLOW)
	{
		refuse_arrays(c, GS_FALLBACK_REFUSED);
		return;
	}
	if (s->phase != SERVED_FED)
	{
		refuse_fetch(c, GS_CANCELLED);
		return;
	}
	if (s->sort == NULL || GS_FAULT("device_memory"))
	{
		refuse_arrays(c, GS_FALLBACK_MEMORY);
		return;
	}
	if (!gs_role_admits(chunk))
	{
		gs_role_note(c->session);
		refuse_arrays(c, GS_FALLBACK_ROLE);
		return;
	}
	s->asked_bytes += gs_chunk_device_bytes(chunk);
	gs_served_start(chunk);
	gs_ops->sort_arrays(s->sort, gs_chunk_memory(chunk), c->data_bytes, c->n_records,
						&gs_served_chunks[chunk].job);
}

/* Find the source of a requested page or image, and its number there. */
static FetchSource
find_source(const ServedSession *s, const GsChunk *c, uint64 *number)
{
	uint64		in_files = s->spill ? gs_spill_images(s->spill) : 0;
	uint64		in_out = s->out.phase == OUT_STUCK ? s->out.n_pages : 0;

	*number = c->number;
	if (c->fetch == GS_FETCH_PAGE)
		return s->phase == SERVED_FILED ? FROM_FILES : FROM_SORT;
	if (*number < in_files)
		return FROM_FILES;
	*number -= in_files;
	if (*number < in_out)
		return FROM_OUT;
	*number -= in_out;
	return FROM_SORT;
}

static void
request_fetch(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	ServedSession *s = &gs_served[c->session];
	ServedChunk *served = &gs_served_chunks[chunk];
	char	   *memory = gs_chunk_memory(chunk);
	bool		page = c->fetch == GS_FETCH_PAGE;

	s->last_used = GetCurrentTimestamp();
	if (s->phase == SERVED_FAILED)
	{
		refuse_fetch(c, GS_NO_MEMORY);
		return;
	}
	gs_served_start(chunk);
	served->source = find_source(s, c, &served->number);
	switch (served->source)
	{
		case FROM_SORT:
			if (page)
				gs_ops->fetch(s->sort, served->number, memory, &served->job);
			else
				gs_ops->fetch_image(s->sort, served->number, memory, &served->piece.n_records, &served->job);
			break;
		case FROM_OUT:
			gs_ops->fetch(s->out.sort, served->number, memory, &served->job);
			break;
		case FROM_FILES:
			if (page)
				gs_spill_read_page(s->spill, served->number, memory, &served->job);
			else
				gs_spill_read_image(s->spill, served->number, memory, &served->piece, &served->job);
			break;
	}
}

/*
 * Serve the request for a chunk, without the lock: a chunk in APPENDING or
 * FETCHING is the service's.
 */
static void
request_chunk(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];

	Assert(c->state == GS_CHUNK_APPENDING || c->state == GS_CHUNK_FETCHING);
	if (chunk_kills_service(c))
		proc_exit(1);
	if (c->state == GS_CHUNK_APPENDING)
		gs_feed_request(chunk);
	else if (holds_arrays(c))
		request_arrays(chunk);
	else
		request_fetch(chunk);
}

/* A request for a chunk; or for a session, chunk being -1. */
typedef struct Request
{
	int			chunk;
	int			session;
} Request;

/*
 * With the lock held: take the oldest requests, and return their number.
 *
 * All requests for chunks come before any for a session: when a session is
 * asked to close, none of its chunks is on the list any more.
 */
static int
take_requests(Request requests[GS_BATCH])
{
	int			n = 0;
	int			chunk;
	int			session;

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	while (n < GS_BATCH && (chunk = gs_shared->chunk_queue_head) >= 0)
	{
		const GsChunk *c = &gs_chunks[chunk];
		bool		closing = gs_sessions[c->session].state == GS_SESSION_CLOSING;

		if (!closing && chunk_is_held_up(c))
			return n;
		gs_shared->chunk_queue_head = c->next;
		if (!closing)			/* else it is freed with the session */
			requests[n++] = (Request){chunk, c->session};
	}
	while (n < GS_BATCH && (session = gs_shared->session_queue_head) >= 0 &&
		   !gs_sort_is_held_up(gs_sessions[session].state))
	{
		GsSession  *s = &gs_sessions[session];

		gs_shared->session_queue_head = s->next;
		s->queued = false;
		gs_served[session].state = s->state;
		gs_served[session].range_wanted = s->range_wanted;
		requests[n++] = (Request){-1, session};
	}
	return n;
}

/* The lock is held while requests are taken, not while they are served. */
bool
gs_requests_serve(void)
{
	Request		requests[GS_BATCH];
	bool		any = false;
	int			n;

	do
	{
		gs_lock();
		n = take_requests(requests);
		gs_unlock();
		for (int i = 0; i < n; i++)
		{
			gs_served_asked(requests[i].session);
			if (requests[i].chunk >= 0)
				request_chunk(requests[i].chunk);
			else
				gs_served_mark_due(requests[i].session);
		}
		any |= n > 0;
	} while (n == GS_BATCH);
	return any;
}

/*
 * Chunks whose jobs have ended
 */

/* Note how many rows a fetched chunk holds, while the chunk is still the service's. */
static void
describe_fetched(int chunk, const GsSortResult *result)
{
	GsChunk    *c = &gs_chunks[chunk];
	const ServedSession *s = &gs_served[c->session];
	const ServedChunk *served = &gs_served_chunks[chunk];
	const uint64 *page_first = result->page_first;
	GsSortResult out = {0};

	if (c->fetch == GS_FETCH_IMAGE && served->source != FROM_OUT)
	{
		c->n_records = served->piece.n_records;
		return;
	}
	if (served->source == FROM_OUT)
	{
		gs_ops->result(s->out.sort, &out);
		page_first = out.page_first;
	}
	else if (served->source == FROM_FILES)
		page_first = s->page_first;
	c->first_row = page_first[served->number];
	c->n_records = page_first[served->number + 1] - c->first_row;
}

/* With the lock held: note the outcome of a fetch, and hand the chunk to the backend. */
static void
note_fetch(GsChunk *c, GsStatus status, const GsSortResult *result)
{
	GsSession  *session = &gs_sessions[c->session];

	gs_job_note_fetches(c->session, result);
	if (c->fetch == GS_FETCH_ARRAYS)
	{
		gs_job_note(c->session, result);
		if (status != GS_OK)
			session->overflow_reason = gs_job_fallback(status);	/* an earlier chunk may have set the role */
		else
		{
			session->rows += c->n_records;
			session->bytes += c->data_bytes;
		}
	}
	give_fetched(c, status);
}

/* Fault point: the device was lost while it sorted a chunk of arrays, and one array is half written. */
static void
lose_arrays(int chunk)
{
	char	   *memory = gs_chunk_memory(chunk);
	const GsRecord *record = gs_chunk_record(memory, GS_CHUNK_BYTES, 0);

	memset(memory + record->row_off, 0, record->row_len / 2);
	gs_served_chunks[chunk].job.status = GS_DEVICE_LOST;
}

/* A job of a chunk that has ended. */
typedef struct Ended
{
	int			chunk;
	int			session;
	GsStatus	status;
	GsSortResult result;		/* of a fetch */
} Ended;

/* A chunk's job has ended.  False: the lock need not be taken for it any more. */
static bool
chunk_ended(int chunk, Ended *ended)
{
	const GsChunk *c = &gs_chunks[chunk];
	ServedChunk *served = &gs_served_chunks[chunk];
	int			number = c->session;
	ServedSession *s = &gs_served[number];
	bool		from_files = c->state == GS_CHUNK_FETCHING && !holds_arrays(c) &&
		served->source == FROM_FILES;
	GsStatus	status;

	if (c->state == GS_CHUNK_APPENDING || holds_arrays(c))
		s->asked_bytes -= gs_chunk_device_bytes(chunk);
	if (holds_arrays(c) && GS_FAULT("service_lose_arrays"))
		lose_arrays(chunk);
	gs_served_mark_due(number);
	status = from_files ? gs_job_status(&served->job) : gs_job_outcome(number, &served->job);
	ended->chunk = chunk;
	ended->session = number;
	ended->status = status;
	if (c->state == GS_CHUNK_APPENDING)
	{
		served->started = false;
		return gs_feed_ended(chunk, status);
	}
	if (from_files && status != GS_OK)
		gs_served_fail(number);
	ended->result = gs_job_result(number);
	if (status == GS_OK && c->fetch != GS_FETCH_ARRAYS)
		describe_fetched(chunk, &ended->result);
	return true;
}

/* With the lock held: note it.  Returns whether the chunk is free now. */
static bool
note_ended(const Ended *ended)
{
	GsChunk    *c = &gs_chunks[ended->chunk];
	bool		appended = c->state == GS_CHUNK_APPENDING;

	/* only now: gs_job_outcome() may end the service, and return_arrays() then reads the job */
	gs_served_chunks[ended->chunk].started = false;
	if (appended)
		gs_feed_note(ended->chunk);
	else
		note_fetch(c, ended->status, &ended->result);
	return appended;
}

/* Note what has ended with chunks, and wake their backends. */
static void
note_batch(const Ended *ended, int n)
{
	bool		freed = false;

	gs_lock();
	for (int i = 0; i < n; i++)
		freed |= note_ended(&ended[i]);
	if (freed)
		gs_unlock_and_wake();
	else
		gs_unlock();
	for (int i = 0; i < n; i++)
		ConditionVariableBroadcast(&gs_sessions[ended[i].session].cv);
}

static bool
note_chunks(void)
{
	Ended		ended[GS_BATCH];
	bool		any = false;
	int			chunk;
	int			n = 0;

	while ((chunk = gs_served_ended()) >= 0)
	{
		any = true;
		n += chunk_ended(chunk, &ended[n]);
		if (n == GS_BATCH)
		{
			note_batch(ended, n);
			n = 0;
		}
	}
	if (n > 0)
		note_batch(ended, n);
	return any;
}

static void
buffer_ended(int buffer)
{
	const ServiceBuffer *b = gs_buffer(buffer);

	switch (b->use)
	{
		case BUFFER_FETCHING:
			gs_write_buffer_ended(buffer, gs_job_outcome(b->session, &b->job));
			break;
		case BUFFER_WRITING:
			gs_write_buffer_ended(buffer, gs_job_status(&b->job));
			break;
		case BUFFER_READING:
			gs_load_buffer_ended(buffer, gs_job_status(&b->job));
			break;
		case BUFFER_APPENDING:
			gs_load_buffer_ended(buffer, gs_job_outcome(b->session, &b->job));
			break;
		case BUFFER_FREE:
		case BUFFER_READ:
			break;
	}
}

bool
gs_requests_note_ended(void)
{
	bool		any = note_chunks();

	for (int i = 0; i < gs_shared->n_buffers; i++)
	{
		const ServiceBuffer *b = gs_buffer(i);

		if (b->use == BUFFER_FREE || b->use == BUFFER_READ ||
			gs_job_status(&b->job) == GS_PENDING)
			continue;
		buffer_ended(i);
		any = true;
	}
	return any;
}

/*
 * Free chunks of pages that nobody has taken for a second.  Their readers are idle, and run no code that
 * could free them.  The pages stay on the device, or in files.
 */
bool
gs_requests_give_up_pages(void)
{
	static TimestampTz looked = 0;
	TimestampTz now;
	bool		any = false;

	/* read without the lock: a backend that changes it wakes the service */
	if (gs_shared->n_idle_pages == 0)
		return false;
	now = GetCurrentTimestamp();
	if (!TimestampDifferenceExceeds(looked, now, GS_IDLE_READER_MS))
		return false;
	looked = now;
	gs_lock();
	for (int i = 0; i < gs_shared->n_chunks && gs_shared->n_idle_pages > 0; i++)
	{
		const GsChunk *c = &gs_chunks[i];

		if (c->state != GS_CHUNK_FETCHED || c->fetch != GS_FETCH_PAGE ||
			!TimestampDifferenceExceeds(c->fetched, now, GS_IDLE_READER_MS))
			continue;
		gs_chunk_free(i);
		any = true;
	}
	gs_unlock_and_wake();
	return any;
}
