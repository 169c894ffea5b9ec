/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A backend's side of the gpusort service (client.h).
 *
 * Closing
 *	  A session is closed when its memory goes, and when the resource owner that
 *	  it was opened under is released by an error.  Mostly the memory goes first.
 *	  But a portal that fails in a subtransaction, and is older than that, keeps
 *	  its memory until the user closes it or the transaction ends; its resource
 *	  owner is released with the subtransaction.
 *
 * Tests: tap/fault_cancel, tap/memory_staging
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_tablespace_d.h"
#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "client/client_private.h"
#include "compat.h"
#include "fault.h"
#include "guc.h"

/* A plan is not given up any more when this part of its rows was fed. */
#define MAX_DECLINED_PART	0.125

/* Sessions that this process leads. */
static dlist_head open_sessions = DLIST_STATIC_INIT(open_sessions);

/* This process is a parallel worker that feeds a session of its leader. */
static bool feeds_leader = false;

bool
gs_client_service_ready(void)
{
	/* a single word, and only a hint: no lock */
	return gs_shared != NULL && gs_shared->state == GS_SERVICE_READY && gs_shared->alive;
}

static void
close_callback(void *arg)
{
	gs_client_close((GsClient *) arg);
}

/* A resource owner is released: after an error, close the sessions that were opened under it. */
static void
release_owner(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg)
{
	dlist_mutable_iter iter;

	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	dlist_foreach_modify(iter, &open_sessions)
	{
		GsClient   *client = dlist_container(GsClient, node, iter.cur);

		if (client->owner != CurrentResourceOwner)
			continue;
		if (is_commit)
			client->owner = NULL;
		else
			gs_client_close(client);
	}
}

/* Where a sort's temporary files go, as PostgreSQL's own would. */
static Oid
choose_tablespace(void)
{
	Oid			tablespace;

	PrepareTempTablespaces();
	tablespace = GetNextTempTableSpace();
	if (!OidIsValid(tablespace))
		tablespace = MyDatabaseTableSpace;
	return OidIsValid(tablespace) ? tablespace : DEFAULTTABLESPACE_OID;
}

/*
 * With the lock held: the bytes that temp_file_limit leaves; -1: no limit.  The limit is for each process,
 * and without gpusort this number of processes would sort.
 */
static int64
temp_bytes_left(int processes)
{
	int64		left = (int64) temp_file_limit * 1024 * Max(processes, 1);
	dlist_iter	iter;

	if (temp_file_limit < 0)
		return -1;
	dlist_foreach(iter, &open_sessions)
	{
		const GsClient *client = dlist_container(GsClient, node, iter.cur);

		if (gs_client_is_mine(client))
			left -= client->session->outcome.temp_bytes;
	}
	return Max(left, 0);
}

void
gs_client_count_temp_blocks(GsClient *client)
{
	uint64		written;
	uint64		read;

	if (!client->leader || !gs_client_is_mine(client))
		return;
	written = client->session->temp_written / BLCKSZ;
	read = client->session->temp_read / BLCKSZ;
	pgBufferUsage.temp_blks_written += written - client->written_blocks;
	pgBufferUsage.temp_blks_read += read - client->read_blocks;
	client->written_blocks = written;
	client->read_blocks = read;
}

/* Does a sort of this process hold chunks that nobody else can have? */
static bool
holds_promise(void)
{
	bool		holds = false;
	dlist_iter	iter;

	gs_lock_shared();
	dlist_foreach(iter, &open_sessions)
	{
		const GsClient *client = dlist_container(GsClient, node, iter.cur);

		holds |= gs_client_is_mine(client) && client->session->reserved > 0;
	}
	gs_unlock();
	return holds;
}

/* Count temporary files as fd.c does when it removes one. */
static void
report_temp_files(Oid tablespace, uint64 id, uint64 bytes)
{
	char		path[GS_SPILL_PATH_BYTES];

	if (bytes == 0 || proc_exit_inprogress)
		return;
	pgstat_report_tempfile(bytes);
	if (log_temp_files >= 0 && bytes / 1024 >= (uint64) log_temp_files &&
		gs_session_temp_path(path, tablespace, MyProcPid, id))
		ereport(LOG,
				(errmsg("temporary file: path \"%s\", size " UINT64_FORMAT, path, bytes)));
}

/* With the lock held: fill in a session that was allocated, and make it the client's. */
static void
take_session(GsClient *client, int number, const GsSessionSpec *spec, Oid tablespace, int feeders)
{
	GsSession  *session = &gs_sessions[number];

	session->spec = *spec;
	session->spec.sort.chunk_bytes = GS_CHUNK_BYTES;
	session->spec.sort.engine = (GsEngine) gs_guc_engine;
	if (spec->sort.elem != GS_ELEM_NONE)
		session->state = GS_SESSION_ARRAYS;
	session->temp_tablespace = tablespace;
	session->temp_limit = temp_bytes_left(feeders);
	session->role_memory = (uint64) gs_guc_role_memory_kb * 1024;

	/* from here on the callback must give the session back, so registering it must not fail: no allocation */
	client->number = number;
	client->session = session;
	client->id = session->id;
	client->generation = session->generation;
	client->closed = false;
	dlist_push_head(&open_sessions, &client->node);
	client->callback.func = close_callback;
	client->callback.arg = client;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &client->callback);
}

/*
 * How long a wait for a session may still last, in ms: gpusort.wait_timeout since it began or since a waiting
 * backend last got a session, and ten times that in all.
 */
static long
wait_left(TimestampTz start, TimestampTz served)
{
	TimestampTz now = GetCurrentTimestamp();
	double		all = gs_guc_wait_timeout_ms * 10.0 - TimestampDifferenceMilliseconds(start, now);
	double		still = gs_guc_wait_timeout_ms - TimestampDifferenceMilliseconds(Max(start, served), now);

	return Min(Min(all, still), GS_WAIT_MS);
}

/* Leave the queue; also called when the process ends. */
static void
leave_queue(int code, Datum arg)
{
	gs_lock();
	gs_queue_leave();
	gs_unlock_and_wake();
}

/* A process that has open sessions and waited in vain for one more waits again only after this time. */
#define IN_VAIN_MS 10000

/* Open a session, or wait in the queue for one.  False: none was free, for this reason. */
static bool
wait_for_session(GsClient *client, const GsSessionSpec *spec, int feeders, GsFallback *reason)
{
	TimestampTz start = GetCurrentTimestamp();
	Oid			tablespace = choose_tablespace();

	/* the chunks may be held by another sort of this query, or by cursors of this process */
	static TimestampTz in_vain = 0;
	bool		may_wait = !feeds_leader && gs_guc_wait_timeout_ms > 0 && !holds_promise() &&
		(dlist_is_empty(&open_sessions) ||
		 TimestampDifferenceExceeds(in_vain, start, IN_VAIN_MS));
	bool		slept = false;
	int			number = -1;

	ConditionVariablePrepareToSleep(&gs_my_ticket()->cv);
	for (;;)
	{
		bool		alive;
		TimestampTz served;
		long		left;

		gs_lock();
		alive = gs_shared->alive && gs_shared->state == GS_SERVICE_READY;

		/* a backend that may not wait skips the queue; otherwise it would fall back at once */
		if (alive && (!may_wait || gs_queue_first()))
			number = gs_session_alloc(feeders);
		if (number >= 0)
		{
			take_session(client, number, spec, tablespace, feeders);
			if (gs_queue_leave())
				gs_shared->served = GetCurrentTimestamp();

			/* there may be a session for the next backend in the queue, too */
			gs_unlock_and_wake();
			break;
		}
		if (may_wait)
			gs_queue_enter();
		served = gs_shared->served;
		gs_unlock();
		*reason = alive ? GS_FALLBACK_STAGING : GS_FALLBACK_SERVICE;

		left = wait_left(start, served);
		if (!alive || !may_wait || left <= 0)
			break;
		ConditionVariableTimedSleep(&gs_my_ticket()->cv, left,
									gs_compat_wait_event(GS_WAIT_STAGING));
		slept = true;
	}
	if (slept)
		gs_stats_count(GS_COUNT_STAGING_WAIT_US, Max(GetCurrentTimestamp() - start, 0));
	if (slept && number < 0)
		in_vain = GetCurrentTimestamp();
	return number >= 0;
}

GsClient *
gs_client_open(const GsSessionSpec *spec, int feeders, GsFallback *reason)
{
	static bool watches_owners = false;
	GsClient   *client;
	bool		found;

	*reason = GS_FALLBACK_SERVICE;
	if (!gs_client_service_ready() || GS_FAULT("open"))
		return NULL;

	if (!watches_owners)
		RegisterResourceReleaseCallback(release_owner, NULL);
	watches_owners = true;
	client = palloc0(sizeof(GsClient));
	client->leader = true;
	client->closed = true;
	client->owner = CurrentResourceOwner;

	PG_ENSURE_ERROR_CLEANUP(leave_queue, (Datum) 0);
	{
		found = wait_for_session(client, spec, feeders, reason);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_queue, (Datum) 0);
	ConditionVariableCancelSleep();
	if (!found)
	{
		leave_queue(0, (Datum) 0);
		pfree(client);
		return NULL;
	}
	*reason = GS_FALLBACK_NONE;
	return client;
}

bool
gs_client_decline(GsClient *client)
{
	GsSession  *session = client->session;
	bool		declined = false;

	gs_lock();
	if (gs_client_is_mine(client))
	{
		/* after an overflow the leader may have begun to sort, and relies on all rows */
		if (!session->overflow && session->rows <= session->spec.group_rows * MAX_DECLINED_PART)
			session->declined = true;
		declined = session->declined;
	}
	gs_unlock();
	if (declined)
		ConditionVariableBroadcast(&session->cv);	/* others that feed may wait for a chunk */
	return declined;
}

GsSessionHandle
gs_client_handle(const GsClient *client)
{
	return client ? (GsSessionHandle){client->number, client->id} : (GsSessionHandle){-1, 0};
}

GsClient *
gs_client_attach(GsSessionHandle handle)
{
	GsClient   *client;
	GsSession  *session;
	bool		mine;

	if (handle.number < 0)
		return NULL;
	Assert(handle.number < gs_shared->n_sessions);
	feeds_leader = IsParallelWorker();
	session = &gs_sessions[handle.number];
	client = palloc0(sizeof(GsClient));
	client->number = handle.number;
	client->id = handle.id;
	client->session = session;
	gs_lock();
	client->generation = session->generation;
	mine = gs_client_is_mine(client);
	gs_unlock();
	if (!mine)
	{
		pfree(client);
		return NULL;
	}
	return client;
}

/*
 * Give the session back.  Callbacks of memory contexts and resource owners call this, also while an
 * error is handled.  So it allocates nothing, waits only for the lock, and cannot fail.  Reporting
 * temporary files, which may fail, comes last.
 */
void
gs_client_close(GsClient *client)
{
	GsSession  *session = client->session;
	uint64		temp_bytes = 0;
	Oid			tablespace = InvalidOid;

	if (client->closed || !client->leader)
		return;
	client->closed = true;
	dlist_delete(&client->node);

	gs_lock();
	if (gs_client_is_mine(client))
	{
		gs_client_count_temp_blocks(client);
		temp_bytes = session->outcome.temp_bytes;
		tablespace = session->temp_tablespace;
		if (gs_client_is_known(client))
		{
			session->state = GS_SESSION_CLOSING;
			gs_session_request(client->number);
		}
		else
			gs_session_free(client->number);
	}
	gs_unlock_and_wake();
	gs_client_wake_service();
	report_temp_files(tablespace, client->id, temp_bytes);
}

const GsSession *
gs_client_session(const GsClient *client)
{
	return client->session;
}

uint32
gs_client_devices(const GsClient *client)
{
	int			device = client->session->device;

	return gs_shared->n_devices > 1 && device >= 0 ? (uint32) 1 << device : 0;
}

void
gs_client_count_sort(const GsClient *client)
{
	const GsSessionOutcome *outcome = &client->session->outcome;

	gs_stats_count(GS_COUNT_SPILLED_SORTS, outcome->n_runs > 0 || outcome->temp_bytes > 0 ? 1 : 0);
	gs_stats_count(GS_COUNT_TEMP_BYTES, outcome->temp_bytes);
	gs_stats_count(GS_COUNT_LIMITED_SORTS, outcome->limited ? 1 : 0);
	gs_stats_count(GS_COUNT_BYTES, outcome->row_bytes + outcome->key_bytes);
}

GsFallback
gs_client_fallback(const GsClient *client, GsClientStatus status)
{
	if (status == GS_CLIENT_OK)
		return GS_FALLBACK_NONE;
	return status == GS_CLIENT_OVERFLOW ? client->session->overflow_reason : GS_FALLBACK_LOST;
}

int
gs_client_promise(GsClient *client, int chunks)
{
	int			promised = 0;

	gs_lock();
	if (gs_client_is_mine(client) && gs_client_is_served(client))
	{
		gs_session_reserve(client->session, chunks);
		promised = client->session->reserved;
	}
	gs_unlock_and_wake();
	return promised;
}
