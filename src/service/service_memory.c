/*-------------------------------------------------------------------------
 *
 * service_memory.c
 *	  Who waits for device memory, and who makes room.
 *
 * A chunk that the device had no room for waits, and so do all that come after
 * it, in their order.  So feeding stops by itself: the chunks are not free to be
 * filled again.  If another device has much room, the session goes on there, and what it
 * has becomes a run that stays.  Else gs_memory_relieve() picks a session that makes room:
 *
 *	  - a range that was only read ahead is given up;
 *	  - else, of the sessions that are returning rows to somebody who has not asked
 *		for any for a second, the one that holds most is written out as pages;
 *	  - else the session that holds most, of those that are being fed, is
 *		written out as a run; of those with runs that have
 *		stayed on the device the largest one is moved to files.
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
 * other half can be filled while that is written.  Of several devices that is also when
 * it stays on the device, to be sorted while the rest is fed.
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

/* Of a device's memory so much must be free for a session to go on there. */
#define SPREAD_ROOM		0.25

/* And so much of one of them, after a run has stayed, for ranges. */
#define RANGE_ROOM		0.125

/* Of what a session may have of its role's memory so much must be free for a run to stay. */
#define ROLE_ROOM		0.5

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

/* How much of a device's memory is free; -1: so much of it is not. */
static int64
room_on(int device, double part)
{
	GsDeviceInfo info;
	uint64		room;

	if (gs_devices[device].state != DEVICE_READY)
		return -1;
	gs_ops->info(gs_devices[device].device, &info);
	room = info.memory_limit > info.memory_used ? info.memory_limit - info.memory_used : 0;
	return room >= (uint64) (info.memory_limit * part) ? (int64) room : -1;
}

/* The device with most room among those with this much of their memory free; -1: none has. */
static int
roomiest(int except, double part)
{
	int64		most = -1;
	int			best = -1;

	for (int i = 0; i < gs_n_devices; i++)
	{
		int64		room = i == except || gs_memory_is_short(i) ? -1 : room_on(i, part);

		if (room > most)
		{
			best = i;
			most = room;
		}
	}
	return best;
}

int
gs_memory_range_device(int number)
{
	int			device = gs_served[number].n_kept > 0 ? roomiest(-1, 0) : -1;

	return device >= 0 ? device : gs_served[number].device;
}

bool
gs_memory_fits_range(int number)
{
	if (!gs_role_has_room(number, ROLE_ROOM))
		return false;
	for (int i = 0; i < gs_n_devices; i++)
		if (room_on(i, RANGE_ROOM) >= 0)
			return true;
	return false;
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
	s->refused = s->write_out = s->keep = false;
	s->next_device = -1;
	s->needy_since = s->limited_since = 0;
}

/* Of several devices: may the run that is due stay where it is, and where are chunks to go? */
static void
plan_to_keep(int number)
{
	ServedSession *s = &gs_served[number];

	if (gs_n_devices == 1 || s->n_kept == GS_MAX_DEVICES || !gs_role_has_room(number, ROLE_ROOM))
		return;
	s->keep = room_on(s->device, SPREAD_ROOM) >= 0 && !gs_memory_is_short(s->device);
	if (s->keep)
		return;
	s->next_device = roomiest(s->device, SPREAD_ROOM);
	s->keep = s->next_device >= 0;
}

/* Begin with a run, and go on on the device that was chosen for what comes.  False: it has failed. */
static bool
write_run(int number)
{
	ServedSession *s = &gs_served[number];
	int			next_device = s->next_device;
	bool		keep = s->keep;

	s->write_out = s->refused = s->keep = false;
	s->next_device = -1;
	if (s->sort && !gs_write_begin(number, keep ? WRITE_KEPT : WRITE_RUN))
		return false;
	if (next_device >= 0 && gs_devices[next_device].state == DEVICE_READY)
	{
		s->needy_since = 0;
		s->moved = true;
		gs_served_use(number, next_device);
	}
	return true;
}

void
gs_memory_step(int number)
{
	ServedSession *s = &gs_served[number];

	if (s->failed && s->sort && s->pending == 0 && s->check == NULL && s->out.sort == NULL)
	{
		/* nobody will ask for its rows any more */
		gs_served_close(number, s->device, s->sort);
		s->sort = NULL;
	}
	if (s->failed)
		(void) gs_kept_close_all(number);
	if (s->failed || s->closing || s->performed || s->sealed)
		return;
	if (gs_sessions[number].overflow)
	{
		reject_waiting(number);
		return;
	}
	if (!s->write_out && is_run_due(number))
	{
		s->write_out = true;
		plan_to_keep(number);
	}
	if (s->appends > 0)
		return;
	if (s->write_out && s->out.sort == NULL && !write_run(number))
		return;
	if (s->waiting < 0 || s->refused || s->write_out ||
		(s->limited_since != 0 && !gs_role_admits(s->waiting)))
		return;
	if (s->sort == NULL)
		s->sort = gs_served_open(number, s->device);
	if (s->sort)
		append_waiting(number);
	else
		s->refused = true;
}

/* Those who were refused try again; a range that waits for its turn elsewhere may come here. */
static void
try_again(int device)
{
	for (int i = 0; i < gs_n_served; i++)
	{
		ServedSession *s = &gs_served[i];

		if (s->failed)
			continue;
		if (s->device == device && s->refused && s->appends == 0)
		{
			s->refused = false;
			if (s->sort)
				gs_ops->resume(s->sort);
			gs_served_wake(i);
		}
		if (s->load.device == device && s->load.refused && s->load.appending == 0 &&
			s->load.phase == LOAD_READING)
		{
			s->load.refused = false;
			gs_ops->resume(s->load.sort);
			gs_served_wake(i);
		}
		if (s->load.phase == LOAD_WAITING)
			gs_served_wake(i);
	}
}

/* Do chunks of the session wait for room on its device? */
static bool
feed_is_needy(const ServedSession *s)
{
	return !s->closing && !s->failed && s->refused && s->appends == 0 && s->waiting >= 0 &&
		!s->write_out;
}

/* Does it wait for room on this device? */
static bool
is_needy(const ServedSession *s, int device)
{
	return (s->device == device && feed_is_needy(s)) ||
		(!s->closing && !s->failed && s->load.device == device && s->load.refused &&
		 s->load.wanted && s->load.appending == 0 && s->load.phase == LOAD_READING);
}

typedef enum Relief
{
	RELIEF_NONE,
	RELIEF_LATER,				/* by waiting */
	RELIEF_LOAD,				/* give up what was read ahead */
	RELIEF_RUN,
	RELIEF_PAGES,
	RELIEF_KEPT					/* move a run that has stayed to files */
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
			if (s->in_file || s->out.given_up)
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

/* The same with a run that has stayed there. */
static Relief
relief_of_kept(int number, int device, uint64 *bytes)
{
	const KeptRun *kept = gs_kept_on(number, device);

	*bytes = kept ? gs_served_held(kept->sort) : 0;
	return *bytes > 0 && gs_write_allowed(number) ? RELIEF_KEPT : RELIEF_NONE;
}

/* How could a session make room on a device, and how much? */
static Relief
relief_of(int number, int device, bool patient, uint64 *bytes)
{
	const ServedSession *s = &gs_served[number];
	const GsSession *session = &gs_sessions[number];
	Relief		relief = RELIEF_NONE;
	Relief		kept;

	*bytes = 0;
	if (!gs_served_is_on(number, device))
		return RELIEF_NONE;
	if (s->closing || s->failed || s->performing || s->write_out || s->out.sort)
		return RELIEF_LATER;

	/* its rows go back when it is fed, which may take those of the one that waits */
	if (session->overflow && session->state == GS_SESSION_FEEDING)
		return RELIEF_NONE;
	if (s->load.phase > LOAD_WAITING && s->load.device == device)
	{
		if (s->load.phase == LOAD_ENDING)
			return RELIEF_LATER;
		if (!s->load.wanted)
		{
			*bytes = gs_served_held(s->load.sort);
			return RELIEF_LOAD;
		}
		/* it will be returned, and may be written out then */
		if (!s->load.refused)
			relief = RELIEF_LATER;
	}
	else if (s->sort && s->device == device)
		relief = relief_of_sort(number, patient, bytes);
	if (relief != RELIEF_NONE && relief != RELIEF_LATER)
		return relief;

	/* nobody waits for a run that has stayed, not even while its session's rows are read */
	kept = relief_of_kept(number, device, bytes);
	return kept != RELIEF_NONE ? kept : relief;
}

/* Who is to make room, and how. */
typedef struct Choice
{
	int			number;			/* -1: nobody yet */
	int			device;
	Relief		relief;
	uint64		bytes;
	bool		idle;			/* it returns rows that nobody asks for */
	bool		later;			/* somebody will have made some */
} Choice;

/* Is a session's relief on a device the best so far?  An idle reader's is, then the largest. */
static void
consider(Choice *best, int number, int device, bool patient)
{
	Choice		choice = {number, device, RELIEF_NONE, 0, false, best->later};

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
		gs_served_held(s->load.sort) >= gs_memory_share(s->load.device) / 2;
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
		case RELIEF_KEPT:
			gs_write_move(number, gs_kept_on(number, choice->device));
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

/*
 * Have a session that waits to be fed go on on another device; false: there is none.  One that
 * has just come, but was refused, stays: what seems to be room there may be none.
 */
static bool
spread(int number)
{
	ServedSession *s = &gs_served[number];
	int			device;

	if (!feed_is_needy(s) || s->moved || gs_sessions[number].overflow || s->n_kept == GS_MAX_DEVICES ||
		(s->sort && s->out.sort))
		return false;
	device = roomiest(s->device, SPREAD_ROOM);
	if (device < 0)
		return false;
	if (s->sort && gs_served_held(s->sort) == 0)
	{
		gs_served_close(number, s->device, s->sort);
		s->sort = NULL;
	}
	s->write_out = s->keep = true;
	s->next_device = device;
	gs_served_wake(number);
	return true;
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
	if (spread(needy))
		return true;
	for (int i = 0; i < gs_n_served; i++)
		if (gs_served[i].out.sort && gs_served[i].out.device == device)
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
		if (gs_served[i].out.sort)
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

		if (s->needy_since != 0 && !s->failed &&
			(s->load.phase != LOAD_NONE ? s->load.device : s->device) == device)
			return true;
	}
	return false;
}
