/*-------------------------------------------------------------------------
 *
 * service_sort.c
 *	  The steps of a session: its rows are fed, sorted, checked, returned; or it
 *	  closes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "fault.h"
#include "key/key.h"
#include "service/service_private.h"

StaticAssertDecl(GS_KEY_CHECK_TEXT_BYTES > GS_KEY_MAX, "the order check has room for any key's text");

/* Nothing of a closing session may be under way any more, or it waits. */
static void
close_session(int number)
{
	ServedSession *s = &gs_served[number];

	s->closing = true;
	if (s->check)
		gs_order_check_cancel(s->check);
	if (s->sort)
		gs_ops->cancel(s->sort);
	if (s->out.sort)
		gs_ops->cancel(s->out.sort);
	gs_write_step(number);
	gs_load_step(number);
	if (s->pending > 0 || s->check || s->out.busy > 0 ||
		s->load.phase != LOAD_NONE)
		return;
	if (s->out.sort && s->out.sort != s->sort)
		gs_served_close(number, s->out.sort);
	memset(&s->out, 0, sizeof(s->out));
	if (s->sort)
		gs_served_close(number, s->sort);
	s->sort = NULL;
	if (s->spill)
		gs_spill_close(s->spill);
	if (s->device >= 0)
		gs_memory_freed(s->device);
	gs_served_reset(number);
	gs_lock();
	gs_session_free(number);
	gs_unlock();
	ConditionVariableBroadcast(&gs_shared->session_cv);
}

/* What the device refused, and had before, is to be taken back. */
static void
offer_images(int number)
{
	ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];
	ServedResult result;

	if (gs_write_is_busy(s))
		return;
	result = gs_served_result(number);
	gs_lock();
	gs_served_note(number, &result);
	session->n_images = (s->sealed ? 0 : result.now.n_images) +
		(s->spill ? gs_spill_images(s->spill) : 0) + (s->out.phase == OUT_STUCK ? s->out.n_pages : 0);
	if (session->state == GS_SESSION_SORTING)	/* not closed meanwhile */
		session->state = session->overflow ? GS_SESSION_OVERFLOW : GS_SESSION_SORTED;
	gs_unlock();
	ConditionVariableBroadcast(&session->cv);
}

bool
gs_sort_is_held_up(GsSessionState state)
{
	return state == GS_SESSION_SORTING && GS_FAULT("service_hold_sort");
}

/* All chunks have come: sort them, or, where some were written out, the range that is wanted. */
static void
sort_session(int number, uint32 wanted)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &gs_served[number];

	if (s->performing || s->appends > 0 || s->waiting >= 0 || s->write_out || s->failed)
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
	if (GS_FAULT("device_memory_sort"))
		session->overflow = true;
	if (session->overflow || (s->sort == NULL && s->spill == NULL))
	{
		if (s->pending == 0 && s->check == NULL)
			offer_images(number);
		return;
	}
	if (s->spill && !s->performed)
	{
		gs_ranges_serve(number, wanted);
		return;
	}
	if (s->pending > 0 || s->check || s->performed)
		return;
	s->performing = s->performed = true;
	s->pending++;
	gs_served_perform(number, s->sort, GS_FORMAT_ROWS, &s->perform_job);
}

/*
 * Take a session a step on its way.
 *
 * While a session is on the request list, so may be chunks of it on
 * theirs: rows that have to be appended before it is sorted, and chunks
 * that would be lost from the list if it were freed.  Its turn will come.
 *
 * What the session's backends ask for is read once, here: it may change at any time, and
 * a step that read it again could take chunks that it has not seen for all that there are.
 */
void
gs_sort_advance(int number)
{
	GsSession  *session = &gs_sessions[number];
	GsSessionState state;
	bool		queued;
	uint32		wanted;

	gs_lock_shared();
	state = session->state;
	queued = session->queued;
	wanted = session->range_wanted;
	gs_unlock();
	if (GS_FAULT("service_slow_step"))
		pg_usleep(30000);
	if (state == GS_SESSION_FREE)
		return;
	if (state == GS_SESSION_CLOSING)
	{
		if (!queued)
			close_session(number);
		return;
	}
	gs_write_step(number);
	gs_load_step(number);
	gs_memory_step(number);
	if (state == GS_SESSION_SORTED)
		gs_ranges_read_ahead(number);
	else if (state == GS_SESSION_SORTING && !queued)
		sort_session(number, wanted);
}

/*
 * As the session has failed, nothing more is begun, and its sorts are closed when
 * their jobs have ended.
 */
void
gs_sort_lost(int number)
{
	ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];

	if (!s->failed)
	{
		s->failed = true;
		gs_lock();
		session->trouble = GS_SPILL_LOST;
		gs_unlock();
		ConditionVariableBroadcast(&session->cv);
	}
	if (s->check)
		gs_order_check_cancel(s->check);
	if (s->sort)
		gs_ops->cancel(s->sort);
	if (s->out.sort)
		gs_ops->cancel(s->out.sort);
	gs_served_wake(number);
}

/* The order of a session's sort is known to be right, or not. */
static void
sort_checked(int number, const GsOrderOutcome *outcome)
{
	GsSession  *session = &gs_sessions[number];
	ServedResult result = gs_served_result(number);

	gs_served[number].last_used = GetCurrentTimestamp();
	gs_lock();
	gs_served_note(number, &result);
	session->checking = false;
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
	gs_unlock();
	ConditionVariableBroadcast(&session->cv);
}

static void
check_ended(int number, const GsOrderOutcome *outcome)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &gs_served[number];

	if (outcome->verdict == GS_ORDER_DEVICE_LOST)
		gs_device_failed(s->device, &outcome->reason, GS_DEVICE_LOST);
	if (!s->performed)
		gs_load_checked(number, outcome->verdict == GS_ORDER_PROVEN);
	if (s->check)
		gs_order_check_end(s->check);
	s->check = NULL;

	gs_lock();
	session->check_ms += outcome->ms;
	session->rows_repaired += outcome->rows_moved;
	gs_unlock();
	if (outcome->verdict != GS_ORDER_PROVEN)
		ereport(DEBUG1,
				(errmsg_internal("gpusort could not prove the order of a sort: %s",
								 outcome->reason.message)));
	if (s->performed)
		sort_checked(number, outcome);
	gs_served_wake(number);
}

/* Check the order of a performed sort before anybody sees its rows. */
static void
begin_check(int number)
{
	if (!gs_served_check(number, gs_served[number].sort, NULL))
	{
		GsOrderOutcome outcome = {GS_ORDER_NOT_PROVEN, {"out of memory"}, 0, 0};

		check_ended(number, &outcome);
	}
}

static void
perform_ended(int number)
{
	GsSession  *session = &gs_sessions[number];
	ServedSession *s = &gs_served[number];
	GsStatus	status = gs_served_end(s->device, &s->perform_job);
	ServedResult result = gs_served_result(number);
	bool		check = false;

	Assert(s->pending > 0);
	s->pending--;
	s->performing = false;
	s->last_used = GetCurrentTimestamp();

	gs_lock();
	gs_served_note(number, &result);
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
	gs_unlock();
	gs_served_wake(number);
	if (check)
		begin_check(number);
	else
		ConditionVariableBroadcast(&session->cv);
}

/* Take the checks a step further, and note those that have ended. */
static bool
work_on_checks(void)
{
	bool		any = gs_order_check_work();

	for (int i = 0; i < gs_n_served; i++)
		if (gs_served[i].check)
		{
			GsOrderOutcome outcome;

			gs_order_check_outcome(gs_served[i].check, &outcome);
			if (outcome.verdict == GS_ORDER_PENDING)
				continue;
			check_ended(i, &outcome);
			any = true;
		}
	return any;
}

bool
gs_sort_note_ended(void)
{
	bool		any = false;

	for (int i = 0; i < gs_n_served; i++)
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
			gs_served_wake(i);
			any = true;
		}
	}
	return work_on_checks() || any;
}
