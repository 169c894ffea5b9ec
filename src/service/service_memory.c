/*-------------------------------------------------------------------------
 *
 * service_memory.c
 *	  Who waits for device memory, and who is to make room.
 *
 * If the device has no room for a chunk, the chunk waits, and so do all later chunks of the session
 * (service_feed.c).  Feeding then stops by itself, because waiting chunks cannot be filled again.
 * This file decides which session makes room, and how:
 *
 *	  1. A session gives up a range that it only read ahead.
 *	  2. Else, of the idle readers (nobody asked for rows for a second), the one that holds most is
 *		 written out as pages.
 *	  3. Else, of the sessions that are being fed, the one that holds most is written out as a run.
 *
 * After a second of waiting, readers that are not idle are written out, too.  The session that has
 * waited longest is helped first.
 *
 * Only one session at a time makes room, because its memory may be enough.  No backend takes part, so a
 * sort may wait here for memory that another sort holds, whatever their backends wait for.
 *
 * The sorts of a role with gpusort.role_memory make room for each other in the same ways
 * (service_role.c).
 *
 * No session may be able to make room: other programs may use the device's memory, or the limit may be
 * too low for a chunk.  Then the session overflows, and PostgreSQL sorts (GS_FALLBACK_MEMORY,
 * GS_FALLBACK_ROLE).
 *
 * Tests: tap/memory_device, tap/memory_role
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "service/service_private.h"

/* After pages could not be written, no pages are written for this time. */
#define PAGES_PAUSE_MS	60000

uint64
gs_memory_share(int device)
{
	GsDeviceInfo info;

	gs_ops->info(gs_devices[device].device, &info);
	return info.memory_limit / Max(gs_devices[device].n_users, 1);
}

/* A session waits from its first refusal until the device accepts a chunk or a piece again, or it fails. */
bool
gs_memory_is_short(int device)
{
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
	{
		const ServedSession *s = &gs_served[i];

		if (s->waits_since != 0 && s->phase != SERVED_FAILED && (device < 0 || s->device == device))
			return true;
	}
	return false;
}

/* ---- who waits ---- */

/* Did the device refuse chunks of the session?  Pieces of its range? */
static bool
is_feed_refused(const ServedSession *s)
{
	return s->wait_for == WAIT_DEVICE && s->appends == 0 && !gs_served_is_over(s);
}

static bool
is_load_refused(const ServedSession *s)
{
	return s->load.refused && s->load.appending == 0 && s->load.phase == LOAD_READING &&
		!gs_served_is_over(s);
}

/* Was memory of its device freed since the refusal? */
static bool
may_retry(const ServedSession *s)
{
	uint64		n_freed = gs_devices[s->device].n_freed;

	return (is_feed_refused(s) && s->asked_at != n_freed) ||
		(is_load_refused(s) && s->load.asked_at != n_freed);
}

/* Does a session wait for room on its device? */
static bool
is_waiting(const ServedSession *s)
{
	return (is_feed_refused(s) && s->waiting >= 0) ||
		(is_load_refused(s) && s->load.wanted);
}

/* The session that has waited for room on a device longest; -1: none does. */
static int
longest_waiting(int device)
{
	int			oldest = -1;

	for (int i = -1; (i = gs_served_next(i)) >= 0;)
	{
		ServedSession *s = &gs_served[i];

		if (s->device != device || !is_waiting(s))
			continue;
		if (s->waits_since == 0)
			s->waits_since = GetCurrentTimestamp();
		if (oldest < 0 || s->waits_since < gs_served[oldest].waits_since)
			oldest = i;
	}
	return oldest;
}

/* Is a range that waits for room larger than it should be? */
static bool
is_load_too_large(const ServedSession *s)
{
	return s->load.refused && s->load.range >= s->n_taken &&
		s->load.range + 1 == gs_spill_ranges(s->spill) &&
		gs_memory_held(s->load.sort) >= gs_memory_share(s->device) / 2;
}

/* Was the range loaded once?  Then it will fit again. */
static bool
fitted_before(const ServedSession *s)
{
	return s->load.refused &&
		(s->load.range < s->n_taken || s->load.range + 1 < gs_spill_ranges(s->spill));
}

/* Has the wait lasted so long that readers that ask for rows must make room, too? */
static bool
is_long_ago(TimestampTz since)
{
	return TimestampDifferenceExceeds(since, GetCurrentTimestamp(), GS_IDLE_READER_MS);
}

/* ---- how a session could make room ---- */

/* If the disk is full, one sort after the other would write its files in vain. */
static bool
are_pages_paused(void)
{
	return !TimestampDifferenceExceeds(gs_pages_failed_at, GetCurrentTimestamp(), PAGES_PAUSE_MS);
}

/*
 * How a session could make room with its sort on the device, and how many bytes.  idle_only: a reader that is
 * not idle need not.
 */
static Relief
relief_of_sort(int number, bool idle_only, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];

	*bytes = gs_memory_held(s->sort);
	if (*bytes == 0 || !gs_write_is_allowed(s))
		return RELIEF_NONE;
	switch (gs_sessions[number].state)
	{
		case GS_SESSION_FEEDING:
			return RELIEF_RUN;
		case GS_SESSION_SORTING:
			/* all its chunks have come, but not all of them onto the device */
			return s->waiting >= 0 ? RELIEF_RUN : RELIEF_WAIT;
		case GS_SESSION_SORTED:
			if (s->phase == SERVED_FILED || s->unwritable || are_pages_paused())
				return RELIEF_NONE;
			return idle_only && !is_long_ago(s->last_used) ? RELIEF_WAIT : RELIEF_PAGES;
		case GS_SESSION_OVERFLOW:
		case GS_SESSION_CLOSING:
			return RELIEF_WAIT;
		case GS_SESSION_ARRAYS:
		case GS_SESSION_FREE:
			break;
	}
	return RELIEF_NONE;
}

static Relief
relief_of(int number, bool idle_only, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];

	*bytes = 0;
	if (gs_served_is_over(s) || s->performing || s->wait_for == WAIT_RUN || gs_write_is_busy(s))
		return RELIEF_WAIT;

	/* its rows stay until its input has ended, and that may depend on the session that waits */
	if (s->phase == SERVED_OVERFLOW && gs_sessions[number].state == GS_SESSION_FEEDING)
		return RELIEF_NONE;
	if (s->load.phase == LOAD_ENDING)
		return RELIEF_WAIT;
	if (s->load.phase > LOAD_WAITING)
	{
		/* the leader waits for the range: it will be returned, and can be written out then */
		if (s->load.wanted)
			return s->load.refused ? RELIEF_NONE : RELIEF_WAIT;
		*bytes = gs_memory_held(s->load.sort);
		return RELIEF_LOAD;
	}
	return s->sort ? relief_of_sort(number, idle_only, bytes) : RELIEF_NONE;
}

/* The best decision so far.  Idle readers come first, then the session that holds most. */
typedef struct Choice
{
	Decision	decision;		/* RELIEF_NONE or RELIEF_WAIT: no session yet */
	uint64		bytes;
	bool		idle;			/* nobody asks for its rows now */
} Choice;

static void
consider(Choice *best, int number, bool idle_only)
{
	Choice		choice = {{.session = number}};
	Relief	   *relief = &choice.decision.relief;

	*relief = relief_of(number, idle_only, &choice.bytes);
	choice.idle = *relief == RELIEF_LOAD ||
		(*relief == RELIEF_PAGES && is_long_ago(gs_served[number].last_used));
	if (*relief == RELIEF_NONE)
		return;
	if (best->decision.relief <= RELIEF_WAIT ||
		(*relief != RELIEF_WAIT &&
		 (choice.idle != best->idle ? choice.idle : choice.bytes > best->bytes)))
		*best = choice;
}

/* ---- decisions ---- */

Decision
gs_memory_decide(int device)
{
	Decision	decision = {RELIEF_NONE, -1, false};
	Choice		best = {{RELIEF_NONE, -1, false}, 0, false};
	int			number;
	bool		idle_only;

	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_served[i].device == device && may_retry(&gs_served[i]))
			return (Decision){RELIEF_RETRY, i, false};
	number = longest_waiting(device);
	if (number < 0)
		return decision;
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_write_is_busy(&gs_served[i]) && gs_served[i].device == device)
			return decision;	/* room is being made */
	decision.session = number;
	decision.relief = RELIEF_GIVE_UP;
	if (is_load_too_large(&gs_served[number]))
		return decision;
	idle_only = !is_long_ago(gs_served[number].waits_since);
	for (int i = 0; i < gs_n_served; i++)
		if (gs_served_is_on(i, device))
			consider(&best, i, idle_only);
	if (best.decision.relief != RELIEF_NONE)
		return best.decision;
	if (idle_only && fitted_before(&gs_served[number]))
		decision.relief = RELIEF_WAIT;
	return decision;
}

Decision
gs_memory_decide_role(int number)
{
	const ServedSession *s = &gs_served[number];
	Decision	decision = {RELIEF_RETRY, number, true};
	Choice		best = {{RELIEF_NONE, -1, false}, 0, false};
	bool		idle_only = !is_long_ago(s->limited_since);

	if (gs_role_admits(s->waiting))
		return decision;
	decision.relief = RELIEF_GIVE_UP;
	if (gs_chunk_device_bytes(s->waiting) > gs_sessions[number].role_memory)
		return decision;
	for (int i = 0; i < gs_n_served; i++)
	{
		if (!gs_role_is_same(number, i))
			continue;
		if (gs_write_is_busy(&gs_served[i]))
		{
			decision.relief = RELIEF_WAIT;
			return decision;
		}
		/* jobs under way change how much it can write out */
		if (gs_served[i].asked_bytes > 0 && best.decision.relief == RELIEF_NONE)
			best.decision.relief = RELIEF_WAIT;
		if (gs_served_is_on(i, gs_served[i].device))
			consider(&best, i, idle_only);
	}
	if (best.decision.relief != RELIEF_NONE)
		decision = best.decision;
	decision.of_role = true;
	return decision;
}
