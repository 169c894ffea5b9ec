/*-------------------------------------------------------------------------
 *
 * service_memory.c
 *	  Who waits for device memory, and who makes room.
 *
 * A chunk that the device had no room for waits, and so do all that come after
 * it, in their order.  So feeding stops by itself: the chunks are not free to be
 * filled again.  Then gs_memory_relieve() picks a session that makes room:
 *
 *	  - a range that was only read ahead is given up;
 *	  - else the session that holds most, of those that are being fed, is
 *		written out as a run, or, of those that are returning rows to somebody
 *		who has not asked for any for a while, as pages.
 *
 * When somebody has waited that long, a reader that does ask for rows has its pages
 * written, too.  Whoever has waited longest is helped first.
 *
 * One at a time makes room, for what it gives back may be enough.  Nothing
 * of this needs a backend, so a sort may wait here for memory that another one
 * holds, whatever their backends wait for.
 *
 * A session that has been written out once does not wait for the device to be
 * full: it begins its next run when it holds half of its share, so that the
 * other half can be filled while that is written.
 *
 * Where nobody can make room, since others than gpusort use the device's memory, or
 * the limit is lower than what a chunk takes, the session is told to stop, as a sort that
 * PostgreSQL has to do (GS_FALLBACK_MEMORY).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "fault.h"
#include "service/service_private.h"

void
gs_memory_freed(int device)
{
	gs_devices[device].freed = true;
	gs_devices[device].n_freed++;
}

uint64
gs_memory_asked(int device)
{
	return gs_devices[device].n_freed;
}

void
gs_memory_refused(int device, uint64 asked)
{
	if (asked != gs_devices[device].n_freed)
		gs_devices[device].freed = true;
}

static bool
uses_device(const ServedSession *s)
{
	return s->sort || s->out.sort || s->load.sort || s->waiting >= 0;
}

uint64
gs_memory_share(int device)
{
	GsDeviceInfo info;
	int			n = 0;

	gs_ops->info(gs_devices[device].device, &info);
	for (int i = 0; i < gs_shared->n_sessions; i++)
		if (gs_served[i].device == device && uses_device(&gs_served[i]))
			n++;
	return info.memory_limit / Max(n, 1);
}

void
gs_memory_queue(int chunk)
{
	ServedSession *s = &gs_served[gs_chunks[chunk].session];
	int		   *link = &s->waiting;

	Assert(gs_chunks[chunk].state == GS_CHUNK_APPENDING);
	while (*link >= 0 && gs_served_chunks[*link].number < gs_served_chunks[chunk].number)
		link = &gs_chunks[*link].next;
	gs_chunks[chunk].next = *link;
	*link = chunk;
}

/* Is it time for the session's next run? */
static bool
is_run_due(const ServedSession *s)
{
	return s->spill && s->sort && s->out.sort == NULL &&
		gs_served_held(s->sort) >= gs_memory_share(s->device) / 2;
}

static void
append_waiting(int number)
{
	ServedSession *s = &gs_served[number];

	s->memory_asked = gs_memory_asked(s->device);
	while (s->waiting >= 0)
	{
		int			chunk = s->waiting;
		GsChunk    *c = &gs_chunks[chunk];

		s->waiting = c->next;
		c->next = -1;
		s->appends++;
		gs_served_start(chunk);
		gs_ops->append(s->sort, gs_chunk_memory(chunk), c->data_bytes, c->n_records,
					   &gs_served_chunks[chunk].job);
	}
}

/* The session takes no more rows: its chunks wait for nothing. */
static void
reject_waiting(int number)
{
	ServedSession *s = &gs_served[number];

	while (s->waiting >= 0)
	{
		int			chunk = s->waiting;

		s->waiting = gs_chunks[chunk].next;
		gs_requests_reject(chunk);
	}
	s->refused = s->write_out = false;
	s->needy_since = 0;
}

void
gs_memory_step(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->failed && s->sort && s->pending == 0 && s->check == NULL && s->out.sort == NULL)
	{
		/* nobody will ask for its rows any more */
		gs_served_close(number, s->sort);
		s->sort = NULL;
		gs_memory_freed(s->device);
	}
	if (s->failed || s->closing || s->performed || s->sealed)
		return;
	if (gs_sessions[number].overflow)
	{
		reject_waiting(number);
		return;
	}
	if (is_run_due(s))
		s->write_out = true;
	if (s->appends > 0)
		return;
	if (s->write_out && s->out.sort == NULL)
	{
		s->write_out = false;
		s->refused = false;
		if (s->sort && !gs_write_begin(number, WRITE_RUN))
			return;
	}
	if (s->waiting < 0 || s->refused || s->write_out)
		return;
	if (s->sort == NULL)
		s->sort = gs_served_open(number);
	if (s->sort)
		append_waiting(number);
	else
		s->refused = true;
}

/* Those who were refused try again. */
static void
try_again(int device)
{
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		ServedSession *s = &gs_served[i];

		if (s->device != device || s->failed)
			continue;
		if (s->refused && s->appends == 0)
		{
			s->refused = false;
			if (s->sort)
				gs_ops->resume(s->sort);
			gs_served_wake(i);
		}
		if (s->load.refused && s->load.appending == 0 && s->load.phase == LOAD_READING)
		{
			s->load.refused = false;
			gs_ops->resume(s->load.sort);
			gs_served_wake(i);
		}
	}
}

static bool
is_needy(const ServedSession *s)
{
	if (s->closing || s->failed)
		return false;
	return (s->refused && s->appends == 0 && s->waiting >= 0 && !s->write_out) ||
		(s->load.refused && s->load.wanted && s->load.appending == 0 &&
		 s->load.phase == LOAD_READING);
}

typedef enum Relief
{
	RELIEF_NONE,
	RELIEF_LATER,				/* by waiting */
	RELIEF_LOAD,				/* give up what was read ahead */
	RELIEF_RUN,
	RELIEF_PAGES
} Relief;

/* How could a session make room, and how much? */
static Relief
relief_of(int number, bool patient, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];
	const GsSession *session = &gs_sessions[number];

	*bytes = 0;
	if (!uses_device(s))
		return RELIEF_NONE;
	if (s->closing || s->failed || s->performing || s->write_out)
		return RELIEF_LATER;

	/* its rows go back when it is fed, which may take those of the one that waits */
	if (session->overflow && session->state == GS_SESSION_FEEDING)
		return RELIEF_NONE;
	if (s->load.phase > LOAD_WAITING && !s->load.wanted)
	{
		if (s->load.phase == LOAD_ENDING)
			return RELIEF_LATER;
		*bytes = gs_served_held(s->load.sort);
		return RELIEF_LOAD;
	}
	/* it will be returned, and may be written out then */
	if (s->load.phase == LOAD_ENDING || (s->load.phase > LOAD_WAITING && !s->load.refused))
		return RELIEF_LATER;
	if (s->sort == NULL)
		return RELIEF_NONE;
	*bytes = gs_served_held(s->sort);
	if (*bytes == 0 || !gs_write_allowed(number, *bytes))
		return RELIEF_NONE;
	switch (session->state)
	{
		case GS_SESSION_FEEDING:
			return RELIEF_RUN;
		case GS_SESSION_SORTING:
			/* all its chunks have come, but not all of them onto the device */
			return s->waiting >= 0 ? RELIEF_RUN : RELIEF_LATER;
		case GS_SESSION_SORTED:
			if (s->in_file || s->out.given_up)
				return RELIEF_NONE;
			return patient &&
				!TimestampDifferenceExceeds(s->last_used, GetCurrentTimestamp(), GS_IDLE_READER_MS) ?
				RELIEF_LATER : RELIEF_PAGES;
		case GS_SESSION_OVERFLOW:
		case GS_SESSION_CLOSING:
			return RELIEF_LATER;
		case GS_SESSION_ARRAYS:
		case GS_SESSION_FREE:
			break;
	}
	return RELIEF_NONE;
}

/* Nobody can make room for it. */
static void
give_up(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->load.refused)
	{
		gs_load_shrink(number);
		return;
	}
	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	gs_sessions[number].overflow = true;
	LWLockRelease(gs_shared->lock);
	reject_waiting(number);
	gs_served_wake(number);
}

/* Is a range that waits for room larger than it should be? */
static bool
is_load_too_large(const ServedSession *s)
{
	return s->load.refused && s->load.range >= s->n_taken &&
		s->load.range + 1 == gs_spill_ranges(s->spill) &&
		gs_served_held(s->load.sort) >= gs_memory_share(s->device) / 2;
}

/*
 * A range that the leader has had, or that is not the last one, has been on the device
 * before: it must fit, as soon as memory that was given back can be had.
 */
static bool
fitted_before(const ServedSession *s)
{
	return s->load.refused &&
		(s->load.range < s->n_taken || s->load.range + 1 < gs_spill_ranges(s->spill));
}

static void
make_room(int number, Relief relief)
{
	ServedSession *s = &gs_served[number];

	switch (relief)
	{
		case RELIEF_LOAD:
			s->no_read_ahead = true;
			gs_load_cancel(number);
			break;
		case RELIEF_RUN:
			s->write_out = true;
			break;
		case RELIEF_PAGES:
			(void) gs_write_begin(number, WRITE_PAGES);
			break;
		case RELIEF_NONE:
		case RELIEF_LATER:
			break;
	}
	gs_served_wake(number);
}

/* The session that has waited for room on the device longest; -1: none does. */
static int
find_needy(int device)
{
	int			oldest = -1;

	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		ServedSession *s = &gs_served[i];

		if (s->device != device || !is_needy(s))
			continue;
		if (s->needy_since == 0)
			s->needy_since = GetCurrentTimestamp();
		if (oldest < 0 || s->needy_since < gs_served[oldest].needy_since)
			oldest = i;
	}
	return oldest;
}

/* Make room on a device. */
static bool
relieve(int device)
{
	ServedDevice *d = &gs_devices[device];
	int			needy;
	int			best = -1;
	Relief		best_relief = RELIEF_NONE;
	uint64		best_bytes = 0;
	bool		later = false;
	bool		patient;

	if (d->freed)
	{
		d->freed = false;
		try_again(device);
		return true;
	}
	needy = find_needy(device);
	if (needy < 0)
		return false;
	patient = !TimestampDifferenceExceeds(gs_served[needy].needy_since, GetCurrentTimestamp(),
										  GS_IDLE_READER_MS);
	for (int i = 0; i < gs_shared->n_sessions; i++)
		if (gs_served[i].device == device && gs_served[i].out.sort)
			return false;		/* room is being made */
	if (is_load_too_large(&gs_served[needy]))
	{
		give_up(needy);
		return true;
	}
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		uint64		bytes;
		Relief		relief;

		if (gs_served[i].device != device)
			continue;
		relief = relief_of(i, patient, &bytes);
		if (relief == RELIEF_LATER)
			later = true;
		else if (relief != RELIEF_NONE && (best < 0 || bytes > best_bytes))
		{
			best = i;
			best_relief = relief;
			best_bytes = bytes;
		}
	}
	if (best >= 0)
		make_room(best, best_relief);
	else if (later || (patient && fitted_before(&gs_served[needy])))
		return false;
	else
		give_up(needy);
	return true;
}

bool
gs_memory_relieve(void)
{
	bool		any = false;

	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].state == DEVICE_READY)
			any |= relieve(i);
	return any;
}

/*
 * A session waits from its first refusal until something of it is taken again, or
 * it fails.
 */
bool
gs_memory_is_short(int device)
{
	for (int i = 0; i < gs_shared->n_sessions; i++)
		if (gs_served[i].device == device && gs_served[i].needy_since != 0 && !gs_served[i].failed)
			return true;
	return false;
}
