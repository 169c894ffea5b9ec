/*-------------------------------------------------------------------------
 *
 * service_staging.c
 *	  Who may have how much of staging memory: sessions, their chunks and promises,
 *	  roles, and the queue of backends that wait for a session.
 *
 * README.md has the rules that these functions keep.  In all of them the caller holds the lock.
 *
 * Tests: tap/memory_staging, tap/memory_idle_cursors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "service/service_shmem.h"

/* How many chunks the session's promise still covers. */
static inline int
session_promise(const GsSession *session)
{
	return Max(session->reserved - session->held, 0);
}

/* Change what a session holds, and what it was promised. */
static void
session_claim(GsSession *session, int held, int reserved)
{
	GsStagingRole *role = &gs_roles[session->role_number];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(held >= 0 && reserved >= 0);
	gs_shared->promised -= session_promise(session);
	role->chunks -= Max(session->reserved, session->held);
	session->held = held;
	session->reserved = reserved;
	gs_shared->promised += session_promise(session);
	role->chunks += Max(session->reserved, session->held);
	Assert(gs_shared->promised >= 0 && gs_shared->promised <= gs_shared->n_free);
	Assert(role->chunks >= 0);
}

/*
 * Free chunks that are neither promised nor headroom, which is never promised; negative while part of the
 * headroom is in use.
 */
static inline int
unclaimed(void)
{
	return gs_shared->n_free - gs_shared->promised - Max(gs_shared->n_chunks / 16, 1);
}

static int
take_chunk(GsSession *session)
{
	int			chunk = gs_shared->free_chunk;

	Assert(chunk >= 0);
	gs_shared->free_chunk = gs_chunks[chunk].next;
	gs_shared->n_free--;
	session_claim(session, session->held + 1, session->reserved);
	gs_chunks[chunk].state = GS_CHUNK_HELD;
	gs_chunks[chunk].session = session - gs_sessions;
	gs_chunks[chunk].filling = false;
	return chunk;
}

/*
 * A session may exceed its promise while more than twice its role's chunks are unclaimed.  Giving more idle
 * chunks away made single sorts with many workers take 1.1 to 1.4 times as long, because the workers touched
 * more new memory.
 */
int
gs_chunk_take(GsSession *session)
{
	if (session_promise(session) == 0 && 2 * gs_roles[session->role_number].chunks >= unclaimed())
		return -1;
	return take_chunk(session);
}

int
gs_chunk_take_for_page(GsSession *session)
{
	if (session_promise(session) == 0 && gs_shared->n_free <= gs_shared->promised)
		return -1;
	return take_chunk(session);
}

int
gs_chunk_fill(GsSession *session)
{
	int			chunk = session->filling < session->reserved - 1 ? gs_chunk_take(session) : -1;

	if (chunk >= 0)
	{
		gs_chunks[chunk].filling = true;
		session->filling++;
	}
	return chunk;
}

/* Is it a page that its reader has not taken yet, or has left? */
static inline bool
is_idle_page(const GsChunk *c)
{
	return c->state == GS_CHUNK_FETCHED && c->fetch == GS_FETCH_PAGE;
}

void
gs_page_leave(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(c->fetch == GS_FETCH_PAGE && (c->state == GS_CHUNK_HELD || c->state == GS_CHUNK_FETCHING));
	c->state = GS_CHUNK_FETCHED;
	c->fetched = GetCurrentTimestamp();
	gs_shared->n_idle_pages++;
}

void
gs_page_take(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(is_idle_page(c));
	c->state = GS_CHUNK_HELD;
	gs_shared->n_idle_pages--;
}

void
gs_chunk_filled(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	if (c->filling)
		gs_sessions[c->session].filling--;
	c->filling = false;
}

void
gs_chunk_free(int chunk)
{
	GsChunk    *c = &gs_chunks[chunk];
	GsSession  *session = &gs_sessions[c->session];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(c->state != GS_CHUNK_FREE);
	gs_chunk_filled(chunk);
	if (is_idle_page(c))
		gs_shared->n_idle_pages--;
	c->state = GS_CHUNK_FREE;
	c->session = -1;
	c->next = gs_shared->free_chunk;
	gs_shared->free_chunk = chunk;
	gs_shared->n_free++;
	session_claim(session, session->held - 1, session->reserved);
}

void
gs_session_reserve(GsSession *session, int reserved)
{
	const GsStagingRole *role = &gs_roles[session->role_number];

	if (reserved < session->reserved)
		session_claim(session, session->held, reserved);
	while (session->reserved < reserved)
	{
		/* a held chunk is counted already */
		bool		held = session->reserved < session->held;

		if (held ? unclaimed() < 0 : role->chunks >= unclaimed())
			break;
		session_claim(session, session->held, session->reserved + 1);
	}
}

static int
role_enter(Oid role)
{
	int			found = -1;

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	for (int i = 0; i < gs_shared->n_roles_used; i++)
	{
		if (gs_roles[i].users > 0 && gs_roles[i].role == role)
		{
			found = i;
			break;
		}
		if (gs_roles[i].users == 0 && found < 0)
			found = i;
	}
	if (found < 0)
		found = gs_shared->n_roles_used++;
	gs_roles[found].role = role;
	gs_roles[found].users++;
	return found;
}

static void
role_leave(int number)
{
	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(gs_roles[number].users > 0);
	gs_roles[number].users--;
	Assert(gs_roles[number].users > 0 || (gs_roles[number].sessions == 0 && gs_roles[number].chunks == 0));
	while (gs_shared->n_roles_used > 0 && gs_roles[gs_shared->n_roles_used - 1].users == 0)
		gs_shared->n_roles_used--;
}

static bool
role_may_open(const GsStagingRole *role)
{
	return role->sessions < gs_shared->n_sessions - gs_shared->n_open && role->chunks < unclaimed();
}

int
gs_session_alloc(int feeders)
{
	int			number = gs_shared->free_session;
	int			role = role_enter(GetAuthenticatedUserId());
	GsSession  *session;

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	if (!role_may_open(&gs_roles[role]))
	{
		role_leave(role);
		return -1;
	}
	session = &gs_sessions[number];
	gs_shared->free_session = session->next;
	gs_shared->n_open++;
	gs_roles[role].sessions++;

	/* its condition variable stays as it is */
	memset(session, 0, offsetof(GsSession, cv));
	session->id = gs_shared->next_session_id++;
	session->state = GS_SESSION_FEEDING;
	session->generation = gs_shared->generation;
	session->opened = GetCurrentTimestamp();
	session->pid = MyProcPid;
	session->database = MyDatabaseId;
	session->user = GetUserId();
	session->role = gs_roles[role].role;
	session->role_number = role;
	session->overflow_reason = GS_FALLBACK_MEMORY;
	session->temp_limit = -1;
	session->device = session->next = session->rejected = -1;
	gs_session_reserve(session, 1 + feeders);
	Assert(session->reserved >= 1);
	return number;
}

void
gs_session_free(int number)
{
	GsSession  *session = &gs_sessions[number];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	if (session->held > 0)
		for (int i = 0; i < gs_shared->n_chunks; i++)
			if (gs_chunks[i].state != GS_CHUNK_FREE && gs_chunks[i].session == number)
				gs_chunk_free(i);
	Assert(session->held == 0);
	gs_session_reserve(session, 0);
	gs_roles[session->role_number].sessions--;
	role_leave(session->role_number);
	session->id = 0;
	session->state = GS_SESSION_FREE;
	session->rejected = -1;
	session->next = gs_shared->free_session;
	gs_shared->free_session = number;
	gs_shared->n_open--;
}

GsTicket *
gs_my_ticket(void)
{
	int			number = MyProc - ProcGlobal->allProcs;

	Assert(number >= 0 && number < MaxBackends);
	return &gs_tickets[number];
}

/* The oldest ticket whose role could get a session now; NULL: there is none. */
static GsTicket *
next_ticket(void)
{
	GsTicket   *next = NULL;

	Assert(LWLockHeldByMe(gs_shared->lock));
	for (int i = 0; gs_shared->n_waiting > 0 && i < gs_shared->n_roles_used; i++)
	{
		GsStagingRole *role = &gs_roles[i];
		GsTicket   *first;

		if (dlist_is_empty(&role->queue) || !role_may_open(role))
			continue;
		first = dlist_head_element(GsTicket, node, &role->queue);
		if (next == NULL || first->number < next->number)
			next = first;
	}
	return next;
}

void
gs_queue_enter(void)
{
	GsTicket   *ticket = gs_my_ticket();

	if (ticket->number != 0)
		return;
	ticket->number = gs_shared->next_ticket++;
	ticket->role_number = role_enter(GetAuthenticatedUserId());
	dlist_push_tail(&gs_roles[ticket->role_number].queue, &ticket->node);
	gs_shared->n_waiting++;
}

bool
gs_queue_first(void)
{
	const GsTicket *next = next_ticket();

	return next == NULL || next == gs_my_ticket();
}

bool
gs_queue_leave(void)
{
	GsTicket   *ticket = gs_my_ticket();

	if (ticket->number == 0)
		return false;
	ticket->number = 0;
	dlist_delete(&ticket->node);
	role_leave(ticket->role_number);
	gs_shared->n_waiting--;
	return true;
}

/* Wakes one backend of the queue.  That backend wakes the next one when it has left the queue. */
void
gs_unlock_and_wake(void)
{
	GsTicket   *next = next_ticket();
	bool		unpromised = gs_shared->n_free > gs_shared->promised;

	gs_unlock();
	if (next)
		ConditionVariableBroadcast(&next->cv);
	if (unpromised)
		ConditionVariableBroadcast(&gs_shared->chunk_cv);
}
