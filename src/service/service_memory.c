/*-------------------------------------------------------------------------
 *
 * service_memory.c
 *	  Who waits for device memory, and who makes room.
 *
 * A chunk that the device had no room for waits, and so do all that come after
 * it, in their order.  So feeding stops by itself: the chunks are not free to be
 * filled again.  gs_memory_relieve() picks a session that makes room:
 *
 *	  - a range that was only read ahead is given up;
 *	  - else, of the sessions that are returning rows to somebody who has not asked
 *		for any for a second, the one that holds most is written out as pages;
 *	  - else the session that holds most, of those that are being fed, is
 *		written out as a run.
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

uint64
gs_memory_share(int device)
{
	GsDeviceInfo info;
	int			n = 0;

	gs_ops->info(gs_devices[device].device, &info);
	for (int i = 0; i < gs_n_served; i++)
		if (gs_served_is_on(i, device))
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
is_run_due(int number)
{
	const ServedSession *s = &gs_served[number];

	return s->spill && s->sort && s->out.sort == NULL &&
		gs_served_held(s->sort) >= Min(gs_memory_share(s->device), gs_role_share(number)) / 2;
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

		if (!gs_role_admits(chunk))
		{
			gs_role_wait(number);
			return;
		}
		s->limited_since = 0;
		s->asked_bytes += gs_role_need(chunk);
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
	s->needy_since = s->limited_since = 0;
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
	}
	if (s->failed || s->closing || s->performed || s->sealed)
		return;
	if (gs_sessions[number].overflow)
	{
		reject_waiting(number);
		return;
	}
	if (is_run_due(number))
		s->write_out = true;
	if (s->appends > 0)
		return;
	if (s->write_out && s->out.sort == NULL)
	{
		s->write_out = s->refused = false;
		if (s->sort && !gs_write_begin(number, WRITE_RUN))
			return;
	}
	if (s->waiting < 0 || s->refused || s->write_out ||
		(s->limited_since != 0 && !gs_role_admits(s->waiting)))
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
	for (int i = 0; i < gs_n_served; i++)
	{
		ServedSession *s = &gs_served[i];

		if (s->failed || s->device != device)
			continue;
		if (s->refused && s->appends == 0)
		{
			s->refused = false;
			if (s->sort)
				gs_ops->resume(s->sort);
			gs_served_wake(i);
		}
		if (s->load.refused && s->load.appending == 0 &&
			s->load.phase == LOAD_READING)
		{
			s->load.refused = false;
			gs_ops->resume(s->load.sort);
			gs_served_wake(i);
		}
	}
}

/* Does it wait for room on this device? */
static bool
is_needy(const ServedSession *s, int device)
{
	if (s->device != device || s->closing || s->failed)
		return false;
	return (s->refused && s->appends == 0 && s->waiting >= 0 && !s->write_out) ||
		(s->load.refused && s->load.wanted && s->load.appending == 0 && s->load.phase == LOAD_READING);
}

typedef enum Relief
{
	RELIEF_NONE,
	RELIEF_LATER,				/* by waiting */
	RELIEF_LOAD,				/* give up what was read ahead */
	RELIEF_RUN,
	RELIEF_PAGES
} Relief;

/* Has its reader not asked for rows for a while? */
static bool
is_idle(const ServedSession *s)
{
	return TimestampDifferenceExceeds(s->last_used, GetCurrentTimestamp(), GS_IDLE_READER_MS);
}

/* How could a session make room with its sort, which is on the device, and how much? */
static Relief
relief_of_sort(int number, bool patient, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];

	*bytes = gs_served_held(s->sort);
	if (*bytes == 0 || !gs_write_allowed(number))
		return RELIEF_NONE;
	switch (gs_sessions[number].state)
	{
		case GS_SESSION_FEEDING:
			return RELIEF_RUN;
		case GS_SESSION_SORTING:
			/* all its chunks have come, but not all of them onto the device */
			return s->waiting >= 0 ? RELIEF_RUN : RELIEF_LATER;
		case GS_SESSION_SORTED:
			if (s->in_file || s->unwritable)
				return RELIEF_NONE;
			return patient && !is_idle(s) ? RELIEF_LATER : RELIEF_PAGES;
		case GS_SESSION_OVERFLOW:
		case GS_SESSION_CLOSING:
			return RELIEF_LATER;
		case GS_SESSION_ARRAYS:
		case GS_SESSION_FREE:
			break;
	}
	return RELIEF_NONE;
}

/* How could a session make room on a device, and how much? */
static Relief
relief_of(int number, int device, bool patient, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];
	const GsSession *session = &gs_sessions[number];

	*bytes = 0;
	if (!gs_served_is_on(number, device))
		return RELIEF_NONE;
	if (s->closing || s->failed || s->performing || s->write_out || gs_write_is_busy(s))
		return RELIEF_LATER;

	/* its rows go back when it is fed, which may take those of the one that waits */
	if (session->overflow && session->state == GS_SESSION_FEEDING)
		return RELIEF_NONE;
	if (s->load.phase > LOAD_WAITING)
	{
		if (s->load.phase == LOAD_ENDING)
			return RELIEF_LATER;
		if (!s->load.wanted)
		{
			*bytes = gs_served_held(s->load.sort);
			return RELIEF_LOAD;
		}
		/* it will be returned, and may be written out then */
		return s->load.refused ? RELIEF_NONE : RELIEF_LATER;
	}
	return s->sort ? relief_of_sort(number, patient, bytes) : RELIEF_NONE;
}

/* Who is to make room, and how. */
typedef struct Choice
{
	int			number;			/* -1: nobody yet */
	Relief		relief;
	uint64		bytes;
	bool		idle;			/* it returns rows that nobody asks for */
	bool		later;			/* somebody will have made some */
} Choice;

/* Is a session's relief on a device the best so far?  An idle reader's is, then the largest. */
static void
consider(Choice *best, int number, int device, bool patient)
{
	Choice		choice = {number, RELIEF_NONE, 0, false, best->later};

	choice.relief = relief_of(number, device, patient, &choice.bytes);
	choice.idle = choice.relief == RELIEF_LOAD ||
		(choice.relief == RELIEF_PAGES && is_idle(&gs_served[number]));
	if (choice.relief == RELIEF_LATER)
		best->later = true;
	else if (choice.relief != RELIEF_NONE &&
			 (best->number < 0 || (choice.idle != best->idle ? choice.idle : choice.bytes > best->bytes)))
		*best = choice;
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
	gs_lock();
	gs_sessions[number].overflow = true;
	gs_unlock();
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
make_room(const Choice *choice)
{
	int			number = choice->number;
	ServedSession *s = &gs_served[number];

	switch (choice->relief)
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

	for (int i = 0; i < gs_n_served; i++)
	{
		ServedSession *s = &gs_served[i];

		if (!is_needy(s, device))
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
	Choice		best = {.number = -1};
	int			needy;
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
	for (int i = 0; i < gs_n_served; i++)
		if (gs_write_is_busy(&gs_served[i]) && gs_served[i].device == device)
			return false;		/* room is being made */
	if (is_load_too_large(&gs_served[needy]))
	{
		give_up(needy);
		return true;
	}
	for (int i = 0; i < gs_n_served; i++)
		consider(&best, i, device, patient);
	if (best.number >= 0)
		make_room(&best);
	else if (best.later || (patient && fitted_before(&gs_served[needy])))
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

RoomMade
gs_memory_make_room_of_role(int needy, bool patient)
{
	Choice		best = {.number = -1};

	for (int i = 0; i < gs_n_served; i++)
	{
		if (!gs_role_is_same(needy, i))
			continue;
		if (gs_write_is_busy(&gs_served[i]))
			return ROOM_LATER;
		if (gs_served[i].asked_bytes > 0)
			best.later = true;	/* it may have more to write, or less, then */
		for (int device = 0; device < gs_n_devices; device++)
			consider(&best, i, device, patient);
	}
	if (best.number < 0)
		return best.later ? ROOM_LATER : ROOM_NONE;
	gs_role_note(best.number);
	make_room(&best);
	return ROOM_BEGUN;
}

/*
 * A session waits from its first refusal until something of it is taken again, or
 * it fails.
 */
bool
gs_memory_is_short(int device)
{
	for (int i = 0; i < gs_n_served; i++)
	{
		const ServedSession *s = &gs_served[i];

		if (s->needy_since != 0 && !s->failed && s->device == device)
			return true;
	}
	return false;
}
