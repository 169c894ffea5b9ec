/*-------------------------------------------------------------------------
 *
 * service_sort.c
 *	  The steps of a session: its rows are fed, sorted, checked, returned; it makes room for
 *	  others; or it closes.
 *
 * Tests: tap/fault_service_lost, tap/sessions_many
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "fault.h"
#include "key/key.h"
#include "service/service_private.h"

/* A failed session's rows leave the device and the disk when its jobs have ended: nobody needs them. */
static void
drop_rows_of_failed(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->pending > 0 || s->out.phase != OUT_NONE)
		return;
	if (s->sort)
		gs_job_close_sort(number, s->sort);
	s->sort = NULL;
	if (s->spill && s->load.phase == LOAD_NONE)
	{
		gs_spill_close(s->spill);
		s->spill = NULL;
	}
}

/* Close a session as soon as none of its jobs is under way. */
static void
close_session(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->phase != SERVED_CLOSING)
		gs_served_enter(number, SERVED_CLOSING);
	gs_served_cancel(number);
	gs_write_step(number);
	gs_load_step(number);
	if (s->pending > 0 || s->out.busy > 0 || s->load.phase != LOAD_NONE)
		return;
	if (s->out.sort && s->out.sort != s->sort)
		gs_job_close_sort(number, s->out.sort);
	memset(&s->out, 0, sizeof(s->out));
	if (s->sort)
		gs_job_close_sort(number, s->sort);
	s->sort = NULL;
	if (s->spill)
		gs_spill_close(s->spill);
	if (s->device >= 0)
		gs_memory_note_freed(s->device);
	gs_served_reset(number);
	gs_lock();
	gs_session_free(number);
	gs_unlock_and_wake();
}

bool
gs_sort_is_held_up(GsSessionState state)
{
	return state == GS_SESSION_SORTING && (GS_FAULT("service_hold_sort") || GS_FAULT("device_hangs"));
}

/* All chunks are on the device: sort them. */
static void
perform(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->pending > 0)
		return;
	gs_served_enter(number, SERVED_WHOLE);
	if (s->sort == NULL)
	{
		gs_leader_answer(number);
		return;
	}
	s->performing = true;
	s->pending++;
	gs_job_perform(number, s->sort, GS_FORMAT_ROWS, &s->perform_job);
}

/* Serve the leader, which waits for its sorted rows, for a range, or to take its rows back. */
static void
sort_session(int number)
{
	ServedSession *s = &gs_served[number];

	if (gs_served_is_over(s) || s->performing || s->appends > 0 || s->waiting >= 0 || s->wait_for == WAIT_RUN)
		return;
	if (gs_sort_is_held_up(GS_SESSION_SORTING))
	{
		gs_lock();
		gs_session_request(number);
		gs_unlock();
		return;
	}
	if (GS_FAULT("service_sort"))
		proc_exit(1);
	if (s->phase == SERVED_FED && GS_FAULT("device_memory_sort"))
		gs_served_overflow(number, GS_FALLBACK_MEMORY);
	switch (s->phase)
	{
		case SERVED_FED:
			if (s->spill)
				gs_ranges_serve(number, s->range_wanted);
			else
				perform(number);
			break;
		case SERVED_RANGES:
		case SERVED_FILED:
			gs_ranges_serve(number, s->range_wanted);
			break;
		case SERVED_OVERFLOW:
			if (s->pending == 0 && !gs_write_is_busy(s))
				gs_leader_answer(number);
			break;
		case SERVED_WHOLE:
		case SERVED_FREE:
		case SERVED_FAILED:
		case SERVED_CLOSING:
			break;
	}
}

/*
 * While a session is on the request list, its chunks may still be on theirs.  They must be appended before
 * the session is sorted, and leave the list before it is freed.  So a step looks at the state that the
 * request had, not at GsSession.state, which backends may change at any time.
 */
void
gs_sort_advance(int number)
{
	const ServedSession *s = &gs_served[number];

	if (GS_FAULT("service_slow_step"))
		pg_usleep(30000);
	if (s->phase == SERVED_FREE)
		return;
	if (s->state == GS_SESSION_CLOSING)
	{
		close_session(number);
		return;
	}
	gs_write_step(number);
	gs_load_step(number);
	if (s->phase == SERVED_FAILED)
		drop_rows_of_failed(number);
	gs_feed_step(number);
	if (s->state == GS_SESSION_SORTED)
		gs_ranges_read_ahead(number);
	else if (s->state == GS_SESSION_SORTING)
		sort_session(number);
}

static void
perform_ended(int number)
{
	ServedSession *s = &gs_served[number];
	GsStatus	status = gs_job_outcome(number, &s->perform_job);

	Assert(s->pending > 0);
	s->pending--;
	s->performing = false;
	s->last_used = GetCurrentTimestamp();
	if (status != GS_OK)
		gs_served_overflow(number, gs_job_fallback(status));
	if (!gs_served_is_over(s))
		gs_leader_answer(number);
	gs_served_mark_due(number);
}

/*
 * Making room
 */

/* Carry out a decision.  False: nothing was done. */
static bool
carry_out(Decision decision)
{
	int			number = decision.session;

	switch (decision.relief)
	{
		case RELIEF_NONE:
		case RELIEF_WAIT:
			return false;
		case RELIEF_RETRY:
			gs_feed_retry(number);
			gs_load_retry(number);
			break;
		case RELIEF_LOAD:
			gs_served[number].no_read_ahead = true;
			gs_load_cancel(number);
			break;
		case RELIEF_RUN:
			gs_served[number].wait_for = WAIT_RUN;
			break;
		case RELIEF_PAGES:
			(void) gs_write_begin(number, WRITE_PAGES);
			break;
		case RELIEF_GIVE_UP:
			if (gs_served[number].load.refused)
				gs_load_shrink(number);
			else
				gs_served_overflow(number, decision.of_role ? GS_FALLBACK_ROLE : GS_FALLBACK_MEMORY);
			break;
	}
	if (decision.of_role && decision.relief != RELIEF_RETRY)
		gs_role_note(number);
	gs_served_mark_due(number);
	return true;
}

bool
gs_sort_make_room(void)
{
	bool		any = false;

	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
			any |= carry_out(gs_memory_decide(i));
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_role_is_waited_for(i) && gs_role_is_first(i))
			any |= carry_out(gs_memory_decide_role(i));
	return any;
}

/*
 * Jobs that have ended
 */

bool
gs_sort_note_ended(void)
{
	bool		any = false;

	for (int i = -1; (i = gs_served_next(i)) >= 0;)
	{
		ServedSession *s = &gs_served[i];

		if (s->performing && gs_job_status(&s->perform_job) != GS_PENDING)
		{
			perform_ended(i);
			any = true;
		}
		if ((s->out.phase == OUT_PERFORMING && gs_job_status(&s->out.job) != GS_PENDING) ||
			(s->load.performing && gs_job_status(&s->load.job) != GS_PENDING))
		{
			gs_served_mark_due(i);
			any = true;
		}
	}
	return any;
}
