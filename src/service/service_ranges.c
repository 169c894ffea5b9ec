/*-------------------------------------------------------------------------
 *
 * service_ranges.c
 *	  A session that was written out gives its rows back range by range.
 *
 * The leader asks for ranges by their number: state SORTING, range_wanted.  When
 * the range is on the device and in order, it becomes the session's sort, the
 * state SORTED, and pages are fetched from it as from any sort.  Meanwhile
 * the next range is read ahead.
 *
 * Tests: regress/spill, tap/spill_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "service/service_private.h"

/* A range is read ahead only if this part of the session's share of its role's memory is free. */
#define READ_AHEAD_ROOM	0.5

/* Hands over the range that the leader waits for. */
static void
take_over(int number)
{
	ServedSession *s = &gs_served[number];
	GsSession  *session = &gs_sessions[number];

	Assert(s->pending == 0 && s->sort == NULL && s->out.phase == OUT_NONE);
	s->sort = s->load.sort;
	s->load.sort = NULL;
	s->load.phase = LOAD_NONE;
	s->n_taken = Max(s->n_taken, s->load.range + 1);
	s->no_read_ahead = false;
	s->last_used = GetCurrentTimestamp();
	gs_lock();
	session->range = s->load.range;
	session->range_ties = s->load.ties;
	gs_unlock();
	gs_leader_answer(number);
	gs_served_mark_due(number);
}

void
gs_ranges_serve(int number, uint32 wanted)
{
	ServedSession *s = &gs_served[number];

	/* the leader does not need the pages of the range that it has left */
	if (s->phase == SERVED_RANGES && s->out.kind == WRITE_PAGES)
		gs_write_abandon_pages(number);
	if (s->pending > 0 || s->out.phase != OUT_NONE)
		return;
	if (s->phase == SERVED_FED)
	{
		/* the last run, then the index of all of them */
		(void) gs_write_begin(number, s->sort ? WRITE_RUN : WRITE_INDEX);
		return;
	}
	if (s->phase == SERVED_FILED)
	{
		gs_spill_forget_pages(s->spill);
		gs_served_enter(number, SERVED_RANGES);
	}

	/* the range that the leader has read makes room for the next one */
	if (s->sort)
	{
		gs_job_close_sort(number, s->sort);
		s->sort = NULL;
	}
	if (s->load.phase == LOAD_NONE)
		gs_load_begin(number, wanted, true);
	else if (s->load.range != wanted)
		gs_load_cancel(number);
	else if (s->load.phase == LOAD_READY)
		take_over(number);
	else
		s->load.wanted = true;
}

void
gs_ranges_read_ahead(int number)
{
	ServedSession *s = &gs_served[number];
	uint32		next = gs_sessions[number].range + 1;

	if (s->phase != SERVED_RANGES || s->no_read_ahead ||
		s->load.phase != LOAD_NONE || s->out.phase != OUT_NONE ||
		gs_memory_is_short(s->device) ||
		gs_role_is_short(number) || !gs_role_has_room(number, READ_AHEAD_ROOM))
		return;
	if (next < gs_spill_ranges(s->spill) || !gs_spill_planned(s->spill))
		gs_load_begin(number, next, false);
}
