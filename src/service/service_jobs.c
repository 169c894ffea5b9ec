/*-------------------------------------------------------------------------
 *
 * service_jobs.c
 *	  A session's sorts on its device: opened, performed, checked, closed; their statistics, and
 *	  the outcome of jobs.
 *
 * Tests: tap/fault_cancel, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fault.h"
#include "service/service_private.h"

GsFallback
gs_job_fallback(GsStatus status)
{
	return status == GS_INVALID || status == GS_INTERNAL ? GS_FALLBACK_REFUSED : GS_FALLBACK_MEMORY;
}

/*
 * Note the outcome of a call for a session.  Some failures mean that the device is lost.  Others come from
 * the session's own rows, or from a defect, and concern no other session.
 */
static void
note_status(int number, GsStatus status, const GsError *error)
{
	ServedSession *s = &gs_served[number];

	if (status == GS_DEVICE_LOST || status == GS_NO_DEVICE)
		gs_device_failed(s->device, error, status);
	else if (gs_job_fallback(status) == GS_FALLBACK_REFUSED && !s->said_refused)
	{
		s->said_refused = true;
		ereport(LOG,
				(errmsg("gpusort cannot sort the rows of process %d: %s", gs_sessions[number].pid,
						error->message[0] ? error->message : gs_status_name(status)),
				 errdetail("PostgreSQL sorts them. The device and other sorts go on.")));
	}
}

GsStatus
gs_job_outcome(int number, const GsJob *job)
{
	const ServedSession *s = &gs_served[number];
	GsStatus	status = gs_job_status(job);
	GsError		error = job->error;

	Assert(status != GS_PENDING);
	if (s->device == 1 && GS_FAULT("device_lost"))
	{
		status = GS_DEVICE_LOST;
		strlcpy(error.message, "fault point device_lost", sizeof(error.message));
	}
	if ((s->phase == SERVED_WHOLE || s->phase == SERVED_RANGES ||
		 gs_sessions[number].spec.sort.elem != GS_ELEM_NONE) && GS_FAULT("device_refuses"))
		status = GS_INTERNAL;
	note_status(number, status, &error);
	return status;
}

GsDeviceSort *
gs_job_open_sort(int number, bool has_keys)
{
	int			device = gs_served[number].device;
	ServedDevice *d = &gs_devices[device];
	GsDeviceSort *sort = NULL;
	GsSortSpec	spec = gs_sessions[number].spec.sort;
	GsError		error = {{0}};
	GsStatus	status;

	spec.spare_bytes = gs_role_spare_bytes(number);
	if (has_keys)
		spec.tuple_keys = (GsTupleKeys){0};
	Assert(d->ready);
	status = gs_ops->sort_open(d->device, &spec, &sort, &error);
	if (status == GS_OK)
		return sort;

	/* a device may not be able to sort arrays of this type */
	if (status == GS_INVALID && spec.elem != GS_ELEM_NONE)
		return NULL;
	note_status(number, status, &error);
	if (gs_job_fallback(status) == GS_FALLBACK_REFUSED)
		gs_served_overflow(number, GS_FALLBACK_REFUSED);
	return NULL;
}

GsSortResult
gs_job_result(int number)
{
	const ServedSession *s = &gs_served[number];
	GsSortResult result = {0};
	GsSortResult stuck = {0};

	Assert(!LWLockHeldByMe(gs_shared->lock));
	if (s->sort)
		gs_ops->result(s->sort, &result);
	if (s->out.phase == OUT_STUCK)
		gs_ops->result(s->out.sort, &stuck);
	/* the images still hold the rows that sort dropped; those that a stuck run dropped are gone */
	if (s->phase == SERVED_OVERFLOW)
		result.n_dropped = stuck.n_dropped;
	return result;
}

void
gs_job_close_sort(int number, GsDeviceSort *sort)
{
	GsSortResult *done = &gs_served[number].done;
	GsSortResult result = {0};

	gs_ops->result(sort, &result);
	done->engine = result.engine;
	done->n_dropped += result.n_dropped;
	done->copy_in_ms += result.copy_in_ms;
	done->sort_ms += result.sort_ms;
	done->gather_ms += result.gather_ms;
	done->copy_out_ms += result.copy_out_ms;
	gs_ops->sort_close(sort);
	gs_memory_note_freed(gs_served[number].device);
}

/*
 * Inexact keys do not tell which rows are equal, so none are dropped then.  Equal rows are counted, and
 * groups of one row dropped, only if all rows are sorted at once: other rows of a group may be in other runs
 * or ranges, or put aside.
 */
void
gs_job_perform(int number, GsDeviceSort *sort, GsPageFormat format, GsJob *job)
{
	GsSession  *session = &gs_sessions[number];
	bool		whole;
	GsKeep		keep;

	gs_lock();
	whole = session->none_aside && gs_served[number].phase == SERVED_WHOLE;
	keep = session->spec.keep;
	if (session->inexact > 0)
		memset(&keep, 0, sizeof(keep));
	keep.group.several &= whole;
	/* that was the only condition, so there are no groups to look at */
	if (!keep.group.several && keep.group.first == PG_UINT32_MAX)
		keep.group.first = 0;
	keep.counted &= whole;
	keep.unique |= keep.counted;
	session->outcome.counted = keep.counted;
	gs_unlock();
	gs_job_begin(job);
	gs_ops->perform(sort, format, &keep, job);
}

void
gs_job_note_files(int number)
{
	const GsSpill *spill = gs_served[number].spill;
	GsSession  *session = &gs_sessions[number];

	if (spill == NULL)
		return;
	/* files do not get shorter when their contents are no longer needed */
	session->outcome.temp_bytes = Max(session->outcome.temp_bytes, gs_spill_bytes(spill));
	session->temp_written = gs_spill_bytes_written(spill);
	session->temp_read = gs_spill_bytes_read(spill);
}

void
gs_job_note_fetches(int number, const GsSortResult *now)
{
	const GsSortResult *done = &gs_served[number].done;

	gs_sessions[number].outcome.gather_ms = done->gather_ms + now->gather_ms;
	gs_sessions[number].outcome.copy_out_ms = done->copy_out_ms + now->copy_out_ms;
	gs_job_note_files(number);
}

/*
 * If the session was written out, its pages and engine are those of the current range.  Rows, bytes and
 * times are sums over all its sorts.
 */
void
gs_job_note(int number, const GsSortResult *now)
{
	const ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];
	const GsSortResult *done = &s->done;
	bool		in_runs = s->phase == SERVED_RANGES || s->phase == SERVED_FILED;
	const char *engine = now->engine ? now->engine : done->engine;

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	session->n_pages = s->phase == SERVED_FILED ? s->n_pages : now->n_pages;
	session->outcome.n_rows = in_runs ? gs_spill_rows(s->spill) : now->n_rows;
	session->outcome.n_images = (in_runs ? 0 : now->n_images) + (s->spill ? gs_spill_images(s->spill) : 0) +
		(s->out.phase == OUT_STUCK ? s->out.n_pages : 0);
	session->outcome.n_ranges = s->spill ? gs_spill_ranges(s->spill) : 0;
	session->outcome.n_dropped = done->n_dropped + now->n_dropped;
	session->outcome.row_bytes = in_runs ? done->row_bytes : now->row_bytes;
	session->outcome.key_bytes = in_runs ? done->key_bytes : now->key_bytes;
	strlcpy(session->outcome.engine, engine ? engine : "", sizeof(session->outcome.engine));
	session->outcome.copy_in_ms = done->copy_in_ms + now->copy_in_ms;
	session->outcome.sort_ms = done->sort_ms + now->sort_ms;
	gs_job_note_fetches(number, now);
}

/* Checks that no row was lost: each appended row is returned, or was dropped. */
void
gs_leader_answer(int number)
{
	GsSession  *session = &gs_sessions[number];
	GsSortResult result = gs_job_result(number);
	uint64		rows;
	bool		complete;

	gs_lock();
	gs_job_note(number, &result);
	rows = session->outcome.n_rows + session->outcome.n_dropped;
	complete = session->overflow || rows == session->rows;
	if (session->state == GS_SESSION_SORTING && complete)	/* not closed meanwhile */
	{
		gs_served[number].state = session->state =
			session->overflow ? GS_SESSION_OVERFLOW : GS_SESSION_SORTED;
		/* a session that returns rows needs no promise */
		if (!session->overflow)
			gs_session_reserve(session, 0);
	}
	gs_unlock_and_wake();
	if (!complete)
	{
		elog(LOG, "gpusort gives up a sort of process %d: the device has " UINT64_FORMAT " of " UINT64_FORMAT " rows",
			 session->pid, rows, session->rows);
		gs_served_fail(number);
	}
	ConditionVariableBroadcast(&session->cv);
}
