/*-------------------------------------------------------------------------
 *
 * service_served.c
 *	  Sessions, chunks and devices as the gpusort service knows them.
 *
 * A session is in one of these phases (ServedPhase).  Its backends see and change GsSession.state, which
 * says what they want.  The phase says what the service has done.
 *
 *	  FREE
 *	   | asked for something
 *	  FED ------------------------.
 *	   | all rows are in sort	  | the last of them is in a run
 *	  WHOLE						RANGES <--.
 *	   | pages at hand are		  |		  | the leader wants another range
 *	   | in files				  |		  |
 *	   '--------> FILED <---------'		  |
 *				   '----------------------'
 *
 *	  FED, WHOLE, RANGES -> OVERFLOW	no room, or no files: rows go back
 *	  all but FREE, CLOSING -> FAILED	a file or the device failed
 *	  all but FREE -> CLOSING -> FREE	the leader has closed it
 *
 *	  FED		sort receives chunks (service_feed.c), or sorts arrays; some rows may be in runs.
 *	  WHOLE		sort is performed, and pages are fetched from it.  If there
 *				were no rows, there is no sort.
 *	  RANGES	service_ranges.c: sort is the range that the leader reads, if any; load is the
 *				next range.
 *	  FILED		there is no sort, except until the fetches from it have ended.
 *	  OVERFLOW	sort, the runs, and a run that could not be written hold the rows.
 *
 * Only active sessions take steps.  A session is active if it is due, is being performed, written out or
 * loaded, or waits for memory.  gs_served_update_active() puts a session on the list of active ones when it
 * is marked as due, and takes it off after a step.  So code that makes a session active must mark it as due,
 * except in the session's own step.
 *
 * Tests: tap/sessions_many, tap/devices_several
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "fault.h"
#include "service/service_private.h"

const GsDeviceOps *gs_ops = NULL;
ServedDevice *gs_devices = NULL;
int			gs_n_devices = 0;
GsSpillIo  *gs_served_io = NULL;
ServedSession *gs_served = NULL;
int			gs_n_served = 0;
ServedChunk *gs_served_chunks = NULL;

static dlist_head active = DLIST_STATIC_INIT(active);	/* the newest first */

static int *running = NULL;		/* chunks with a job under way */
static int	n_running = 0;

/* The state of a session without requests. */
static void
clear(int number)
{
	ServedSession *s = &gs_served[number];

	memset(s, 0, offsetof(ServedSession, active));
	s->waiting = s->device = -1;
}

void
gs_served_init(void)
{
	gs_served = MemoryContextAllocZero(TopMemoryContext,
									   gs_shared->n_sessions * sizeof(ServedSession));
	gs_served_chunks = MemoryContextAllocZero(TopMemoryContext,
											  gs_shared->n_chunks * sizeof(ServedChunk));
	running = MemoryContextAllocZero(TopMemoryContext, gs_shared->n_chunks * sizeof(int));
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		clear(i);
		gs_served[i].user_of = -1;
	}
}

/*
 * Phases
 */

#define BIT(phase)	(1u << (phase))

/* The phases that may follow each phase. */
static const uint32 next_phases[] = {
	[SERVED_FREE] = BIT(SERVED_FED),
	[SERVED_FED] = BIT(SERVED_WHOLE) | BIT(SERVED_RANGES) | BIT(SERVED_OVERFLOW) |
	BIT(SERVED_FAILED) | BIT(SERVED_CLOSING),
	[SERVED_WHOLE] = BIT(SERVED_FILED) | BIT(SERVED_OVERFLOW) | BIT(SERVED_FAILED) | BIT(SERVED_CLOSING),
	[SERVED_RANGES] = BIT(SERVED_FILED) | BIT(SERVED_OVERFLOW) | BIT(SERVED_FAILED) | BIT(SERVED_CLOSING),
	[SERVED_FILED] = BIT(SERVED_RANGES) | BIT(SERVED_FAILED) | BIT(SERVED_CLOSING),
	[SERVED_OVERFLOW] = BIT(SERVED_FAILED) | BIT(SERVED_CLOSING),
	[SERVED_FAILED] = BIT(SERVED_CLOSING),
	[SERVED_CLOSING] = BIT(SERVED_FREE)
};

static bool
may_enter(int number, ServedPhase phase)
{
	return (next_phases[gs_served[number].phase] & BIT(phase)) != 0;
}

void
gs_served_enter(int number, ServedPhase phase)
{
	/* going on could harm other sessions, too: the service ends, and starts again */
	if (!may_enter(number, phase) || GS_FAULT("service_phase"))
		elog(FATAL, "gpusort session %d cannot change from phase %d to %d", number,
			 (int) gs_served[number].phase, (int) phase);
	gs_served[number].phase = phase;
}

/* Free sessions are taken last in, first out, so the numbers in use are low. */
void
gs_served_asked(int number)
{
	if (gs_served[number].phase == SERVED_FREE)
		gs_served_enter(number, SERVED_FED);
	gs_n_served = Max(gs_n_served, number + 1);
}

void
gs_served_reset(int number)
{
	ServedSession *s = &gs_served[number];

	gs_served_enter(number, SERVED_FREE);
	free(s->page_first);
	clear(number);
	(void) gs_served_update_active(number);
	while (gs_n_served > 0 && gs_served[gs_n_served - 1].phase == SERVED_FREE)
		gs_n_served--;
}

void
gs_served_overflow(int number, GsFallback reason)
{
	GsSession  *session = &gs_sessions[number];

	if (!may_enter(number, SERVED_OVERFLOW))
		return;
	gs_served_enter(number, SERVED_OVERFLOW);
	gs_lock();
	session->overflow = true;
	session->overflow_reason = reason;
	gs_unlock();
	ConditionVariableBroadcast(&session->cv);
	gs_served_mark_due(number);
}

void
gs_served_cancel(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->sort)
		gs_ops->cancel(s->sort);
	if (s->out.sort)
		gs_ops->cancel(s->out.sort);
}

void
gs_served_fail(int number)
{
	ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];
	const GsSpillFailure *failure = s->spill ? gs_spill_failure(s->spill) : NULL;
	bool		in_file = failure && failure->error_number != 0;

	if (!may_enter(number, SERVED_FAILED))
		return;
	gs_served_enter(number, SERVED_FAILED);
	gs_lock();
	session->failed = true;
	if (in_file)
		session->failure = *failure;
	gs_unlock();
	ConditionVariableBroadcast(&session->cv);
	gs_served_cancel(number);
	gs_served_mark_due(number);
	ereport(DEBUG1,
			(errmsg_internal("gpusort gives up a sort: %s, %u runs, range %u of %u, load %d",
							 in_file ? "file" : "no memory or no device", session->outcome.n_runs, s->load.range,
							 s->spill ? gs_spill_ranges(s->spill) : 0, (int) s->load.phase)));
}

/*
 * Active sessions, and jobs of chunks
 */

void
gs_served_mark_due(int number)
{
	gs_served[number].due = true;
	(void) gs_served_update_active(number);
}

int
gs_served_next(int number)
{
	dlist_node *node = number < 0 ? &active.head : &gs_served[number].active;

	if (!dlist_has_prev(&active, node))
		return -1;
	return dlist_container(ServedSession, active, dlist_prev_node(&active, node)) - gs_served;
}

bool
gs_served_update_active(int number)
{
	ServedSession *s = &gs_served[number];
	int			device = gs_served_is_on(number, s->device) ? s->device : -1;
	bool		is_active = s->due || s->performing || gs_write_is_busy(s) ||
		(s->load.phase != LOAD_NONE && s->load.phase != LOAD_READY) ||
		s->wait_for != WAIT_NOTHING || s->load.refused || s->waits_since != 0;
	bool		listed = s->active.next != NULL;

	if (is_active == listed && device == s->user_of)
		return true;
	if (is_active && !listed)
		dlist_push_head(&active, &s->active);
	else if (!is_active && listed)
	{
		dlist_delete(&s->active);
		s->active.next = NULL;
	}
	if (s->user_of >= 0)
		gs_devices[s->user_of].n_users--;
	if (device >= 0)
		gs_devices[device].n_users++;
	s->user_of = device;
	return false;
}

void
gs_served_start(int chunk)
{
	Assert(n_running < gs_shared->n_chunks && !gs_served_chunks[chunk].started);
	gs_job_begin(&gs_served_chunks[chunk].job);
	gs_served_chunks[chunk].started = true;
	gs_served[gs_chunks[chunk].session].pending++;
	running[n_running++] = chunk;
}

int
gs_served_ended(void)
{
	static int	i = 0;			/* a call goes on where the last one stopped, until one finds no more */

	for (; i < n_running; i++)
	{
		int			chunk = running[i];

		if (gs_job_status(&gs_served_chunks[chunk].job) == GS_PENDING)
			continue;
		memmove(&running[i], &running[i + 1], (n_running - i - 1) * sizeof(int));
		n_running--;
		gs_served[gs_chunks[chunk].session].pending--;
		return chunk;
	}
	i = 0;
	return -1;
}

bool
gs_served_has_sort(int number)
{
	const ServedSession *s = &gs_served[number];

	return s->sort || s->out.sort || s->load.sort;
}

bool
gs_served_is_on(int number, int device)
{
	const ServedSession *s = &gs_served[number];

	return s->device == device && (s->waiting >= 0 || gs_served_has_sort(number));
}
