/*-------------------------------------------------------------------------
 *
 * service_worker.c
 *	  The gpusort service: the background worker that owns the device.
 *
 * One thread, one loop: take the requests that backends left in shared
 * memory, start jobs on the device, note which jobs ended, wake those who
 * wait, sleep.  The device's calls are asynchronous, so no sort holds up
 * another one here.  The loop sleeps on its latch (set by backends) and on a
 * pipe (written to by the device's threads when a job ends).
 *
 * The end of the service
 *	  However the process exits, service_exit() first closes the device, which
 *	  ends all copies from and to the arena, and only then declares the
 *	  service gone; from then on backends may free the chunks themselves.  A
 *	  device that is lost ends the service with exit code 1, and the
 *	  postmaster starts it again; the sorts that were open find their
 *	  generation gone and go on without it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "fault.h"
#include "gpusort.h"
#include "guc.h"
#include "key/key.h"
#include "order/order_check.h"
#include "service/service_shmem.h"
#include "service/service_worker.h"

StaticAssertDecl(GS_KEY_CHECK_TEXT_BYTES > GS_KEY_MAX, "the order check has room for any key's text");

/* Idle for so long, the device gives its cached memory back. */
#define GS_TRIM_AFTER_MS	10000

/* Seconds until the postmaster starts a failed service again. */
#define GS_RESTART_S		2

/* A session as the service knows it, beside its GsSession. */
typedef struct ServedSession
{
	GsDeviceSort *sort;			/* NULL until the first chunk arrives */
	int			pending;		/* jobs of the session under way */
	bool		performing;
	GsJob		perform_job;
	GsOrderCheck *check;		/* NULL: none under way */
} ServedSession;

/* A chunk as the service knows it, beside its GsChunk. */
typedef struct ServedChunk
{
	GsJob		job;
	bool		started;		/* the device was given the job, and what became
								 * of it is not in the GsChunk yet */
} ServedChunk;

static const GsDeviceOps *ops = NULL;
static GsDevice *device = NULL;
static ServedSession *served = NULL;	/* by session number */
static ServedChunk *served_chunks = NULL;	/* by chunk number */
static int *pending_chunks = NULL;	/* chunks with a job under way */
static int	n_pending_chunks = 0;
static int	n_performing = 0;
static int	n_checking = 0;
static bool trimmed = true;

static int	notify_pipe[2] = {-1, -1};
static int	notified = 0;		/* a byte is in the pipe; atomic */

/* Called by threads of the device, and of the order check. */
static void
job_ended(void *arg)
{
	(void) arg;
	if (__atomic_exchange_n(&notified, 1, __ATOMIC_ACQ_REL) == 0)
	{
		ssize_t		written;

		do
			written = write(notify_pipe[1], "", 1);
		while (written < 0 && errno == EINTR);
	}
}

static void
drain_notify_pipe(void)
{
	char		buffer[16];

	/* first the pipe, then the flag: a job that ends in between writes again */
	while (read(notify_pipe[0], buffer, sizeof(buffer)) > 0)
		;
	__atomic_store_n(&notified, 0, __ATOMIC_RELEASE);
}

/* Is it a chunk whose arrays are to be sorted? */
static inline bool
holds_arrays(const GsChunk *c)
{
	return c->state == GS_CHUNK_FETCHING && c->fetch == GS_FETCH_ARRAYS;
}

/*
 * Give chunks of arrays back with what became of them.  The device is closed,
 * so all jobs have ended; a chunk that it never saw is as it was.
 */
static void
return_arrays(void)
{
	for (int i = 0; i < gs_shared->n_chunks; i++)
	{
		GsChunk    *c = &gs_chunks[i];

		if (!holds_arrays(c))
			continue;
		c->status = served_chunks[i].started ?
			gs_job_status(&served_chunks[i].job) : GS_CANCELLED;
		c->state = GS_CHUNK_FETCHED;
	}
}

static void
service_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (device)
	{
		gs_order_check_stop();
		ops->close(device);
		gs_order_check_free();
		device = NULL;
	}

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	gs_shared->alive = false;
	gs_shared->latch = NULL;
	gs_shared->pid = 0;
	gs_shared->device.memory_used = 0;
	gs_shared->chunk_queue_head = gs_shared->chunk_queue_tail = -1;
	gs_shared->session_queue_head = gs_shared->session_queue_tail = -1;
	return_arrays();
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		gs_sessions[i].queued = false;
		if (gs_sessions[i].state == GS_SESSION_CLOSING)
			gs_session_free(i);
	}
	if (gs_shared->state == GS_SERVICE_READY)
		gs_shared->state = GS_SERVICE_STARTING;
	LWLockRelease(gs_shared->lock);

	for (int i = 0; i < gs_shared->n_sessions; i++)
		ConditionVariableBroadcast(&gs_sessions[i].cv);
	ConditionVariableBroadcast(&gs_shared->session_cv);
}

/* End the service, to be started again. */
static void
device_failed(const GsError *error, GsStatus status)
{
	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	strlcpy(gs_shared->message, error->message, sizeof(gs_shared->message));
	LWLockRelease(gs_shared->lock);
	ereport(LOG,
			(errmsg("gpusort service ends because its device failed: %s",
					error->message[0] ? error->message : gs_status_name(status)),
			 errhint("It will be started again; sorts that were running go on without it.")));
	proc_exit(1);
}

/* The device's limit that the settings ask for; 0: its default. */
static uint64
memory_limit(void)
{
	return (uint64) gs_guc_device_memory_mb * 1024 * 1024;
}

/*
 * Open the device that gpusort.device asks for.  Where there is none, say so
 * where users look for it, and end.
 */
static void
open_device(void)
{
	GsDeviceConfig config = {0};
	GsError		error = {{0}};
	GsStatus	status = GS_NO_DEVICE;
	bool		ran_before = gs_shared->generation > 0;
	bool		said_before;

	config.memory_limit = memory_limit();
	config.threads = gs_guc_host_threads;
	config.notify = job_ended;

	if (gs_guc_device == GS_CHOOSE_HOST)
		ops = &gs_device_host;
	else
	{
#ifdef GS_WITH_CUDA
		ops = &gs_device_cuda;
#else
		strlcpy(error.message, "gpusort was built without CUDA", sizeof(error.message));
#endif
	}
	if (ops)
		status = ops->open(&config, &device, &error);
	if (status == GS_OK)
		return;

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	said_before = ran_before && strcmp(gs_shared->message, error.message) == 0;
	strlcpy(gs_shared->message, error.message, sizeof(gs_shared->message));
	if (!ran_before)
		gs_shared->state = GS_SERVICE_OFF;
	LWLockRelease(gs_shared->lock);
	ereport(said_before ? DEBUG1 : gs_guc_device == GS_CHOOSE_AUTO ? LOG : WARNING,
			(errmsg("gpusort has no device: %s",
					error.message[0] ? error.message : gs_status_name(status)),
			 errdetail("PostgreSQL does all sorting itself.")));

	/* a device that was there once may come back */
	proc_exit(ran_before ? 1 : 0);
}

/*
 * Requests
 */

static ServedSession *
serve_session(int number)
{
	ServedSession *s = &served[number];

	if (s->sort == NULL)
	{
		GsSortSpec	spec = {0};
		GsError		error = {{0}};
		GsStatus	status;

		spec.chunk_bytes = GS_CHUNK_BYTES;
		spec.key_width = gs_sessions[number].key_width;
		spec.engine = gs_sessions[number].engine_wanted;
		spec.elem = gs_sessions[number].elem;
		spec.descending = gs_sessions[number].descending;
		status = ops->sort_open(device, &spec, &s->sort, &error);
		if (status != GS_OK)
		{
			s->sort = NULL;

			/* a device may not know how to sort arrays, or these */
			if (status != GS_NO_MEMORY && !(status == GS_INVALID && spec.elem != GS_ELEM_NONE))
				device_failed(&error, status);
		}
		trimmed = false;
	}
	return s;
}

/* For tests: how a request of this kind ends the service. */
static bool
chunk_kills_service(const GsChunk *c)
{
	if (c->state == GS_CHUNK_APPENDING)
		return GS_FAULT("service_append");
	return holds_arrays(c) ? GS_FAULT("service_arrays") : GS_FAULT("service_fetch");
}

/* For tests, which want to find sorts waiting: leave requests of a kind alone. */
static bool
chunk_is_held_up(const GsChunk *c)
{
	if (c->state == GS_CHUNK_APPENDING)
		return GS_FAULT("service_hold_append");
	return holds_arrays(c) ? GS_FAULT("service_hold_arrays") : GS_FAULT("service_hold_fetch");
}

/* With the lock held: the device has no room for a chunk's rows. */
static void
reject_chunk(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(c->state == GS_CHUNK_APPENDING);
	session->overflow = true;
	c->state = GS_CHUNK_REJECTED;
	c->next = session->rejected;
	session->rejected = chunk;
}

/* With the lock held: the backend may look at what it asked for. */
static void
give_fetched(GsChunk *c, GsStatus status)
{
	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(c->state == GS_CHUNK_FETCHING);
	c->status = status;
	c->state = GS_CHUNK_FETCHED;
}

/* Is the device not to be given the chunk?  Pages and images it has already. */
static bool
is_refused(const GsChunk *c, const ServedSession *s)
{
	if (c->state == GS_CHUNK_FETCHING && !holds_arrays(c))
		return false;
	return s->sort == NULL || gs_sessions[c->session].overflow || GS_FAULT("device_memory");
}

static void
refuse_chunk(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	if (c->state == GS_CHUNK_APPENDING)
		reject_chunk(chunk);
	else
		give_fetched(c, GS_NO_MEMORY);
	LWLockRelease(gs_shared->lock);
	ConditionVariableBroadcast(&session->cv);
}

/* Give the device the job that a chunk's state and kind tell. */
static void
start_job(const GsChunk *c, GsDeviceSort *sort, GsJob *job)
{
	char	   *memory = gs_chunk_memory(c - gs_chunks);

	memset(job, 0, sizeof(*job));
	job->status = GS_PENDING;
	if (c->state == GS_CHUNK_APPENDING)
	{
		ops->append(sort, memory, c->data_bytes, c->n_records, job);
		return;
	}
	switch (c->fetch)
	{
		case GS_FETCH_PAGE:
			ops->fetch(sort, c->number, memory, job);
			break;
		case GS_FETCH_IMAGE:
			ops->fetch_image(sort, c->number, memory, job);
			break;
		case GS_FETCH_ARRAYS:
			ops->sort_arrays(sort, memory, c->data_bytes, c->n_records, job);
			break;
	}
}

/*
 * Serve the request for a chunk, without the lock: a chunk in APPENDING or
 * FETCHING is the service's.
 */
static void
start_chunk(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	ServedSession *s;

	Assert(c->state == GS_CHUNK_APPENDING || c->state == GS_CHUNK_FETCHING);
	Assert(!served_chunks[chunk].started);
	if (chunk_kills_service(c))
		proc_exit(1);
	s = serve_session(c->session);
	if (is_refused(c, s))
	{
		refuse_chunk(chunk);
		return;
	}
	served_chunks[chunk].started = true;
	start_job(c, s->sort, &served_chunks[chunk].job);
	s->pending++;
	Assert(n_pending_chunks < gs_shared->n_chunks);
	pending_chunks[n_pending_chunks++] = chunk;
}

static void
note_result(GsSession *session, const GsSortResult *result)
{
	session->n_rows = result->n_rows;
	session->n_pages = result->n_pages;
	session->n_images = result->n_images;
	session->row_bytes = result->row_bytes;
	session->key_bytes = result->key_bytes;
	session->rounds = result->rounds;
	strlcpy(session->engine, result->engine ? result->engine : "", sizeof(session->engine));
	session->copy_in_ms = result->copy_in_ms;
	session->sort_ms = result->sort_ms;
	session->gather_ms = result->gather_ms;
	session->copy_out_ms = result->copy_out_ms;
}

/* For tests, which want to find sorts waiting: leave requests alone. */
static bool
session_is_held_up(const GsSession *session)
{
	return session->state == GS_SESSION_SORTING && GS_FAULT("service_hold_sort");
}

/*
 * Take a session a step on its way: begin to sort when all its chunks have
 * arrived, free it when nothing of it is under way any more.
 */
static void
advance_session(int number)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &served[number];
	GsSessionState state;
	bool		queued;

	/*
	 * While a session is on the request list, so may be chunks of it on
	 * theirs: rows that have to be appended before it is sorted, and chunks
	 * that would be lost from the list if it were freed.  Its turn will come.
	 */
	LWLockAcquire(gs_shared->lock, LW_SHARED);
	state = session->state;
	queued = session->queued;
	LWLockRelease(gs_shared->lock);
	if (queued)
		return;

	if (state == GS_SESSION_CLOSING)
	{
		if (s->pending > 0 || s->check)
		{
			if (s->check)
				gs_order_check_cancel(s->check);
			if (s->sort)
				ops->cancel(s->sort);
			return;
		}
		if (s->sort)
			ops->sort_close(s->sort);
		memset(s, 0, sizeof(*s));
		LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
		gs_session_free(number);
		LWLockRelease(gs_shared->lock);
		ConditionVariableBroadcast(&gs_shared->session_cv);
		return;
	}

	if (state != GS_SESSION_SORTING || s->pending > 0 || s->performing || s->check)
		return;
	if (session_is_held_up(session))
	{
		LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
		gs_session_request(number);
		LWLockRelease(gs_shared->lock);
		return;
	}
	if (GS_FAULT("service_sort"))
		proc_exit(1);
	if (s->sort == NULL || session->overflow || GS_FAULT("device_memory_sort"))
	{
		GsSortResult result = {0};

		if (s->sort)
			ops->result(s->sort, &result);
		LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
		session->overflow |= GS_FAULT("device_memory_sort");
		note_result(session, &result);
		if (session->state == GS_SESSION_SORTING)	/* not closed meanwhile */
			session->state = session->overflow ? GS_SESSION_OVERFLOW : GS_SESSION_SORTED;
		LWLockRelease(gs_shared->lock);
		ConditionVariableBroadcast(&session->cv);
		return;
	}
	memset(&s->perform_job, 0, sizeof(GsJob));
	s->perform_job.status = GS_PENDING;
	s->performing = true;
	s->pending++;
	n_performing++;
	ops->perform(s->sort, GS_FORMAT_ROWS, &s->perform_job);
}

typedef enum RequestKind
{
	REQUEST_NONE,
	REQUEST_CHUNK,
	REQUEST_SESSION
} RequestKind;

/* With the lock held: the first chunk is off the request list then. */
static int
pop_chunk(void)
{
	int			chunk = gs_shared->chunk_queue_head;

	gs_shared->chunk_queue_head = gs_chunks[chunk].next;
	if (gs_shared->chunk_queue_head < 0)
		gs_shared->chunk_queue_tail = -1;
	gs_chunks[chunk].next = -1;
	return chunk;
}

static int
pop_session(void)
{
	int			session = gs_shared->session_queue_head;

	gs_shared->session_queue_head = gs_sessions[session].next;
	if (gs_shared->session_queue_head < 0)
		gs_shared->session_queue_tail = -1;
	gs_sessions[session].next = -1;
	gs_sessions[session].queued = false;
	return session;
}

/*
 * With the lock held: take the next request, and tell whose it is.
 *
 * All requests for chunks come before any for a session: when a session is
 * asked to close, none of its chunks is on the list any more.
 */
static RequestKind
next_request(int *number)
{
	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	while (gs_shared->chunk_queue_head >= 0)
	{
		const GsChunk *c = &gs_chunks[gs_shared->chunk_queue_head];
		bool		closing = gs_sessions[c->session].state == GS_SESSION_CLOSING;

		if (!closing && chunk_is_held_up(c))
			return REQUEST_NONE;
		*number = pop_chunk();
		if (!closing)			/* else freed with the session */
			return REQUEST_CHUNK;
	}
	if (gs_shared->session_queue_head < 0 ||
		session_is_held_up(&gs_sessions[gs_shared->session_queue_head]))
		return REQUEST_NONE;
	*number = pop_session();
	return REQUEST_SESSION;
}

/* The lock is held while a request is taken, not while it is served. */
static bool
serve_requests(void)
{
	for (bool any = false;; any = true)
	{
		int			number;
		RequestKind kind;

		LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
		kind = next_request(&number);
		LWLockRelease(gs_shared->lock);

		switch (kind)
		{
			case REQUEST_NONE:
				return any;
			case REQUEST_CHUNK:
				start_chunk(number);
				break;
			case REQUEST_SESSION:
				advance_session(number);
				break;
		}
	}
}

/*
 * Ended jobs
 */

/* With the lock held: a chunk was appended, or not. */
static void
note_append(int chunk, GsStatus status)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	if (status != GS_OK)
	{
		reject_chunk(chunk);
		return;
	}
	session->rows += c->n_records;
	session->bytes += c->data_bytes;
	gs_chunk_free(chunk);
}

/* With the lock held: what was asked for has come, or not. */
static void
note_fetch(int chunk, GsStatus status, const GsSortResult *result)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	session->gather_ms = result->gather_ms;
	session->copy_out_ms = result->copy_out_ms;
	if (c->fetch == GS_FETCH_ARRAYS)
		note_result(session, result);
	if (status == GS_OK)
		switch (c->fetch)
		{
			case GS_FETCH_PAGE:
				c->n_records = result->page_first[c->number + 1] - result->page_first[c->number];
				break;
			case GS_FETCH_IMAGE:
				c->n_records = result->image_records[c->number];
				c->data_bytes = result->image_bytes[c->number];
				break;
			case GS_FETCH_ARRAYS:
				session->rows += c->n_records;
				session->bytes += c->data_bytes;
				break;
		}
	give_fetched(c, status);
}

static void
chunk_job_ended(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsJob	   *job = &served_chunks[chunk].job;
	GsStatus	status = gs_job_status(job);
	int			number = c->session;
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &served[number];
	GsSortResult result = {0};

	if (status != GS_OK && status != GS_NO_MEMORY && status != GS_CANCELLED)
		device_failed(&job->error, status);
	Assert(s->pending > 0);
	s->pending--;
	ops->result(s->sort, &result);

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	if (c->state == GS_CHUNK_APPENDING)
		note_append(chunk, status);
	else
		note_fetch(chunk, status, &result);
	served_chunks[chunk].started = false;
	LWLockRelease(gs_shared->lock);
	ConditionVariableBroadcast(&session->cv);

	if (s->pending == 0)
		advance_session(number);
}

/* The order of a sort is known to be right, or not. */
static void
check_ended(int number, const GsOrderOutcome *outcome)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &served[number];
	GsSortResult result = {0};

	if (outcome->verdict == GS_ORDER_DEVICE_LOST)
		device_failed(&outcome->reason, GS_DEVICE_LOST);
	if (s->check)
	{
		gs_order_check_end(s->check);
		s->check = NULL;
		n_checking--;
	}
	ops->result(s->sort, &result);

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	note_result(session, &result);
	session->checking = false;
	session->check_ms = outcome->ms;
	session->rows_repaired = outcome->rows_moved;
	if (session->state == GS_SESSION_SORTING)
	{
		if (outcome->verdict == GS_ORDER_PROVEN)
			session->state = GS_SESSION_SORTED;
		else
		{
			session->error = outcome->reason;
			session->overflow = true;
			session->overflow_reason = GS_FALLBACK_ORDER;
			session->state = GS_SESSION_OVERFLOW;
		}
	}
	LWLockRelease(gs_shared->lock);
	ConditionVariableBroadcast(&session->cv);
	if (outcome->verdict != GS_ORDER_PROVEN)
		ereport(DEBUG1,
				(errmsg_internal("gpusort could not prove the order of a sort: %s",
								 outcome->reason.message)));
	advance_session(number);
}

/* Check the order of a performed sort before anybody sees its rows. */
static void
begin_check(int number)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &served[number];

	s->check = gs_order_check_begin(s->sort, &session->layout);
	if (s->check == NULL)
	{
		GsOrderOutcome outcome = {GS_ORDER_NOT_PROVEN, {"out of memory"}, 0, 0};

		check_ended(number, &outcome);
		return;
	}
	n_checking++;
#ifdef GPUSORT_FAULTS
	if (GS_FAULT("order_check_plant"))
		gs_order_check_plant(s->check, false);
	if (GS_FAULT("order_check_border"))
		gs_order_check_plant(s->check, true);
#endif
}

/* Take the checks a step further, and note those that have ended. */
static bool
work_on_checks(void)
{
	bool		any = gs_order_check_work();

	for (int i = 0; i < gs_shared->n_sessions; i++)
		if (served[i].check)
		{
			GsOrderOutcome outcome;

			gs_order_check_outcome(served[i].check, &outcome);
			if (outcome.verdict == GS_ORDER_PENDING)
				continue;
			check_ended(i, &outcome);
			any = true;
		}
	return any;
}

static void
perform_ended(int number)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &served[number];
	GsStatus	status = gs_job_status(&s->perform_job);
	GsSortResult result = {0};
	bool		check = false;

	if (status != GS_OK && status != GS_NO_MEMORY && status != GS_CANCELLED)
		device_failed(&s->perform_job.error, status);
	Assert(s->pending > 0);
	s->pending--;
	s->performing = false;
	n_performing--;
	ops->result(s->sort, &result);

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	note_result(session, &result);
	session->error = s->perform_job.error;
	if (session->state == GS_SESSION_SORTING)
	{
		session->overflow = status != GS_OK;
		check = status == GS_OK && session->layout.n_parts > 0;
		if (check)
			session->checking = true;
		else
			session->state = status == GS_OK ? GS_SESSION_SORTED : GS_SESSION_OVERFLOW;
	}
	LWLockRelease(gs_shared->lock);
	if (check)
	{
		begin_check(number);
		return;
	}
	ConditionVariableBroadcast(&session->cv);
	advance_session(number);
}

static bool
note_ended_jobs(void)
{
	bool		any = false;

	for (int i = 0; i < n_pending_chunks;)
	{
		int			chunk = pending_chunks[i];

		if (gs_job_status(&served_chunks[chunk].job) == GS_PENDING)
			i++;
		else
		{
			/* keep the order, which is the order in which jobs end */
			memmove(&pending_chunks[i], &pending_chunks[i + 1],
					(n_pending_chunks - i - 1) * sizeof(int));
			n_pending_chunks--;
			chunk_job_ended(chunk);
			any = true;
		}
	}
	if (n_performing > 0)
		for (int i = 0; i < gs_shared->n_sessions; i++)
			if (served[i].performing &&
				gs_job_status(&served[i].perform_job) != GS_PENDING)
			{
				perform_ended(i);
				any = true;
			}
	if (n_checking > 0)
		any |= work_on_checks();
	return any;
}

static void
publish_device(bool first)
{
	GsDeviceInfo info;

	ops->info(device, &info);
	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	gs_shared->device = info;
	if (first)
	{
		gs_shared->generation++;
		gs_shared->alive = true;
		gs_shared->state = GS_SERVICE_READY;
		gs_shared->pid = MyProcPid;
		gs_shared->latch = MyLatch;
		gs_shared->started = GetCurrentTimestamp();
		gs_shared->message[0] = '\0';
		strlcpy(gs_shared->kind, ops->name, sizeof(gs_shared->kind));
	}
	LWLockRelease(gs_shared->lock);
	if (first)
		ereport(LOG,
				(errmsg("gpusort sorts on %s", info.name),
				 errdetail("Device memory: %llu MB of %llu MB; staging memory: %llu MB.",
						   (unsigned long long) (info.memory_limit >> 20),
						   (unsigned long long) (info.memory_total >> 20),
						   (unsigned long long) (gs_shared->arena_bytes >> 20))));
}

static void
open_notify_pipe(void)
{
	if (pipe(notify_pipe) != 0 ||
		fcntl(notify_pipe[0], F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(notify_pipe[1], F_SETFL, O_NONBLOCK) < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not create pipe: %m")));
	(void) fcntl(notify_pipe[0], F_SETFD, FD_CLOEXEC);
	(void) fcntl(notify_pipe[1], F_SETFD, FD_CLOEXEC);
}

void
gpusort_service_main(Datum arg)
{
	WaitEventSet *events;
	GsError		error = {{0}};

	(void) arg;
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	open_notify_pipe();
	served = MemoryContextAllocZero(TopMemoryContext, gs_shared->n_sessions * sizeof(ServedSession));
	served_chunks = MemoryContextAllocZero(TopMemoryContext,
										   gs_shared->n_chunks * sizeof(ServedChunk));
	pending_chunks = MemoryContextAllocZero(TopMemoryContext, gs_shared->n_chunks * sizeof(int));

	before_shmem_exit(service_exit, 0);
	open_device();
	gs_order_check_init(ops, device, job_ended, NULL);
	if (ops->pin(device, gs_arena, gs_shared->arena_bytes, &error) != GS_OK)
		ereport(LOG,
				(errmsg("gpusort could not pin its staging memory: %s", error.message),
				 errdetail("Copies to and from the device will be slower.")));
	publish_device(true);

	events = gs_compat_create_wait_event_set(3);
	AddWaitEventToSet(events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(events, WL_SOCKET_READABLE, notify_pipe[0], NULL, NULL);

	for (;;)
	{
		WaitEvent	occurred[3];
		bool		worked;

		ResetLatch(MyLatch);
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			uint64		limit = memory_limit();

			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			if (memory_limit() != limit)
			{
				ops->set_memory_limit(device, memory_limit());
				publish_device(false);
			}
		}

		drain_notify_pipe();
		worked = serve_requests();
		worked |= note_ended_jobs();
		if (worked)
		{
			publish_device(false);
			continue;
		}

		if (WaitEventSetWait(events, trimmed || gs_shared->n_open > 0 ? -1 : GS_TRIM_AFTER_MS,
							 occurred, 3,
							 gs_compat_wait_event(GS_WAIT_SERVICE_MAIN)) == 0)
		{
			ops->trim(device);
			trimmed = true;
			publish_device(false);
		}
	}
}

void
gs_service_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = GS_RESTART_S;
	strlcpy(worker.bgw_library_name, GPUSORT_NAME, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gpusort_service_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "gpusort service", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "gpusort service", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
