/*-------------------------------------------------------------------------
 *
 * service_role.c
 *	  What the sorts of one role may hold: gpusort.role_memory.
 *
 * The limit bounds the memory of all sorts of a role together, on all devices.  The role is the one
 * that the connection was made as, because its settings apply.  SET ROLE and SET SESSION AUTHORIZATION
 * change nothing.  A sort keeps the limit that was set when it began, so two sorts of a role may have
 * different limits.
 *
 * A sort without a limit is not counted and does not wait.  Either its connection is older than the
 * limit, or a superuser has lifted the limit there.
 *
 * A chunk is admitted if it fits below its sort's limit, together with the expected memory of jobs under
 * way.  A chunk that is not admitted waits, and so do all later chunks of the session, as if the device
 * had no room.  Later chunks of the role's other sorts wait as well, so that no chunk waits for ever.
 * Then a sort of the same role makes room, in the ways of service_memory.c.  If none can, PostgreSQL
 * sorts (GS_FALLBACK_ROLE).  Arrays do not wait, because the backend can sort them itself.
 *
 * Ranges that are read back are counted, and their size follows the role's share.  But they do not wait,
 * because the leader could not go on without them.  So a role may exceed its limit for a while, if it
 * begins sorts beside others that return ranges.
 *
 * Tests: tap/memory_role
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "service/service_private.h"

/* Device memory for sorting one row. */
#define ROW_WORK_BYTES	64

/* Each sort of a role may hold this part of the limit as a reserve, or a chunk if that is more. */
#define SPARE_PART		64

static inline bool
is_limited(int number)
{
	return gs_sessions[number].role_memory > 0;
}

bool
gs_role_is_same(int number, int other)
{
	return gs_served[other].phase != SERVED_FREE && is_limited(other) &&
		gs_sessions[other].role == gs_sessions[number].role;
}

uint64
gs_chunk_device_bytes(int chunk)
{
	const GsChunk *c = &gs_chunks[chunk];

	return c->data_bytes + c->key_bytes + (uint64) c->n_records * (sizeof(GsRecord) + ROW_WORK_BYTES);
}

uint64
gs_role_spare_bytes(int number)
{
	return is_limited(number) ? Max(gs_sessions[number].role_memory / SPARE_PART, GS_CHUNK_BYTES) : 0;
}

/* The device memory that a session holds, or will hold when its jobs have ended. */
static uint64
session_bytes(int number)
{
	const ServedSession *s = &gs_served[number];
	uint64		bytes = s->asked_bytes + gs_memory_held(s->sort) + gs_memory_held(s->load.sort);

	/* WRITE_PAGES: out.sort is sort, which was counted */
	if (s->out.sort && s->out.kind != WRITE_PAGES)
		bytes += gs_memory_held(s->out.sort);
	return bytes;
}

/* The bytes that are left of a session's limit. */
static uint64
room_of(int number)
{
	uint64		limit = gs_sessions[number].role_memory;
	uint64		bytes = 0;

	for (int i = 0; i < gs_n_served; i++)
		if (gs_role_is_same(number, i))
			bytes += session_bytes(i);
	return limit > bytes ? limit - bytes : 0;
}

bool
gs_role_is_waited_for(int number)
{
	const ServedSession *s = &gs_served[number];

	return s->phase == SERVED_FED && s->wait_for == WAIT_ROLE && s->appends == 0;
}

bool
gs_role_is_first(int number)
{
	TimestampTz since = gs_served[number].limited_since;

	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (i != number && gs_role_is_waited_for(i) && gs_role_is_same(number, i) &&
			(since == 0 || gs_served[i].limited_since < since))
			return false;
	return true;
}

bool
gs_role_admits(int chunk)
{
	int			number = gs_chunks[chunk].session;

	if (!is_limited(number))
		return true;
	return gs_chunk_device_bytes(chunk) <= room_of(number) &&
		(gs_sessions[number].spec.sort.elem != GS_ELEM_NONE || gs_role_is_first(number));
}

uint64
gs_role_share(int number)
{
	int			n = 0;

	if (!is_limited(number))
		return PG_UINT64_MAX;
	for (int i = 0; i < gs_n_served; i++)
		if (gs_role_is_same(number, i) &&
			(i == number || gs_served[i].waiting >= 0 || session_bytes(i) > 0))
			n++;
	return gs_sessions[number].role_memory / Max(n, 1);
}

bool
gs_role_has_room(int number, double part)
{
	return !is_limited(number) || room_of(number) >= gs_role_share(number) * part;
}

void
gs_role_note(int number)
{
	gs_lock();
	gs_sessions[number].outcome.limited = true;
	gs_unlock();
}

void
gs_role_wait(int number)
{
	ServedSession *s = &gs_served[number];

	s->wait_for = WAIT_ROLE;
	if (s->limited_since == 0)
		s->limited_since = GetCurrentTimestamp();
	s->waits_since = 0;			/* not for the device any more */
	gs_role_note(number);
}

bool
gs_role_is_short(int number)
{
	for (int i = -1; (i = gs_served_next(i)) >= 0;)
		if (gs_role_is_waited_for(i) && (number < 0 || gs_role_is_same(number, i)))
			return true;
	return false;
}
