/*-------------------------------------------------------------------------
 *
 * service_shmem.c
 *	  Shared memory of the gpusort service: layout, request lists, names of files.
 *
 * README.md has the rules that these functions keep.
 *
 * Tests: tap/memory_staging, regress/views
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/file_utils.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "base/machine.h"
#include "compat.h"
#include "gpusort.h"
#include "service/service_shmem.h"

/* The arena's alignment, for pinning and copying. */
#define GS_ARENA_ALIGN		((Size) 2 << 20)

GsShared   *gs_shared = NULL;
GsChunk    *gs_chunks = NULL;
GsSession  *gs_sessions = NULL;
char	   *gs_arena = NULL;
GsTicket   *gs_tickets = NULL;
GsStagingRole *gs_roles = NULL;

StaticAssertDecl(GS_ARENA_ALIGN % GS_CHUNK_BYTES == 0, "chunks are aligned as the arena is");

static int
arena_chunks(void)
{
	int64		bytes = (int64) gs_guc_staging_memory_mb * 1024 * 1024;

	if (gs_guc_device == GS_CHOOSE_OFF)
		bytes = 0;
	return Max(GS_MIN_CHUNKS, (int) (bytes / GS_CHUNK_BYTES));
}

/*
 * Chunks for the service's own use: enough to keep some threads reading and
 * writing, and the promised ones for each device that the settings name.
 */
static int
arena_buffers(void)
{
	if (gs_guc_device == GS_CHOOSE_OFF)
		return 0;
	return Max(Max(8, gs_guc_count_devices() * GS_DEVICE_BUFFERS), Min(64, arena_chunks() / 8));
}

static Size
arena_bytes(void)
{
	return mul_size(arena_chunks() + arena_buffers(), GS_CHUNK_BYTES);
}

static int
max_sessions(void)
{
	return arena_chunks() * GS_SESSIONS_PER_CHUNK;
}

/* Each session, and each backend that waits for one, may have a role of its own. */
static int
max_roles(void)
{
	return max_sessions() + MaxBackends;
}

static Size
control_bytes(void)
{
	Size		size = MAXALIGN(sizeof(GsShared));

	size = add_size(size, MAXALIGN(mul_size(arena_chunks(), sizeof(GsChunk))));
	size = add_size(size, MAXALIGN(mul_size(max_sessions(), sizeof(GsSession))));
	size = add_size(size, MAXALIGN(mul_size(MaxBackends, sizeof(GsTicket))));
	return add_size(size, mul_size(max_roles(), sizeof(GsStagingRole)));
}

/*
 * Staging memory by the machine.  64 sessions on 64 cores sort 1.2 times as many rows with 2 GB as with
 * 256 MB; on 16 cores 256 MB are nearly enough.
 */
static void
decide_staging_memory(void)
{
	int			by_cores = Min(Max(32 * gs_machine_cores(), 256), 2048);
	uint64		by_memory = Max((gs_machine_total_memory() >> 20) / 32, 64);
	char		value[32];

	snprintf(value, sizeof(value), "%dMB", (int) Min(by_cores, by_memory));
	SetConfigOption("gpusort.staging_memory", value, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
	/* that does not replace a -1 of the configuration */
	if (gs_guc_staging_memory_mb == GS_STAGING_BY_MACHINE)
		SetConfigOption("gpusort.staging_memory", value, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

void
gs_service_shmem_request(void)
{
	if (gs_guc_staging_memory_mb == GS_STAGING_BY_MACHINE)
		decide_staging_memory();
	RequestAddinShmemSpace(control_bytes());
	RequestAddinShmemSpace(add_size(arena_bytes(), GS_ARENA_ALIGN));
	RequestNamedLWLockTranche(GPUSORT_NAME, 1);
}

/*
 * After a crash the postmaster sets up shared memory anew.  A service that found no device is not started
 * again even then, and a service that found a kind of device keeps to it.  So the postmaster remembers both.
 */
static bool was_off = false;
static char off_message[GS_MESSAGE_BYTES];
static char kind_before[sizeof(((GsShared *) 0)->device_kind)];
static char no_gpu_before[GS_MESSAGE_BYTES];

void
gs_service_shmem_off(const char *message)
{
	was_off = true;
	strlcpy(off_message, message, sizeof(off_message));
}

static void
remember_devices(int code, Datum arg)
{
	was_off = gs_shared->state == GS_SERVICE_OFF;
	if (was_off)
		strlcpy(off_message, gs_shared->message, sizeof(off_message));
	strlcpy(kind_before, gs_shared->device_kind, sizeof(kind_before));
	strlcpy(no_gpu_before, gs_shared->no_gpu, sizeof(no_gpu_before));
}

void
gs_service_shmem_startup(void)
{
	bool		found;
	char	   *arena;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	gs_shared = ShmemInitStruct("gpusort control", control_bytes(), &found);
	gs_chunks = (GsChunk *) ((char *) gs_shared + MAXALIGN(sizeof(GsShared)));
	gs_sessions = (GsSession *) ((char *) gs_chunks + MAXALIGN(arena_chunks() * sizeof(GsChunk)));
	gs_tickets = (GsTicket *) ((char *) gs_sessions + MAXALIGN(max_sessions() * sizeof(GsSession)));
	gs_roles = (GsStagingRole *) ((char *) gs_tickets + MAXALIGN(MaxBackends * sizeof(GsTicket)));
	if (!found)
	{
		memset(gs_shared, 0, control_bytes());
		gs_shared->lock = &GetNamedLWLockTranche(GPUSORT_NAME)->lock;
		gs_shared->n_chunks = arena_chunks();
		gs_shared->n_sessions = max_sessions();
		gs_shared->n_buffers = arena_buffers();
		gs_shared->arena_bytes = arena_bytes();
		gs_shared->state = GS_SERVICE_STARTING;
		if (was_off || gs_guc_device == GS_CHOOSE_OFF)
		{
			gs_shared->state = GS_SERVICE_OFF;
			strlcpy(gs_shared->message, was_off ? off_message : "gpusort.device is off",
					sizeof(gs_shared->message));
		}
		strlcpy(gs_shared->device_kind, kind_before, sizeof(gs_shared->device_kind));
		strlcpy(gs_shared->no_gpu, no_gpu_before, sizeof(gs_shared->no_gpu));
		on_shmem_exit(remember_devices, 0);

		/* session ids name files that may outlive a crash, so no id is used twice */
		gs_shared->next_session_id = (uint64) GetCurrentTimestamp();
		gs_shared->next_ticket = gs_shared->next_request = 1;
		gs_shared->chunk_queue_head = gs_shared->session_queue_head = -1;
		ConditionVariableInit(&gs_shared->chunk_cv);
		for (int i = 0; i < MaxBackends; i++)
			ConditionVariableInit(&gs_tickets[i].cv);

		gs_shared->free_chunk = -1;
		for (int i = gs_shared->n_chunks - 1; i >= 0; i--)
		{
			gs_chunks[i].session = -1;
			gs_chunks[i].next = gs_shared->free_chunk;
			gs_shared->free_chunk = i;
		}
		gs_shared->n_free = gs_shared->n_chunks;

		gs_shared->free_session = -1;
		for (int i = gs_shared->n_sessions - 1; i >= 0; i--)
		{
			ConditionVariableInit(&gs_sessions[i].cv);
			gs_sessions[i].rejected = -1;
			gs_sessions[i].next = gs_shared->free_session;
			gs_shared->free_session = i;
		}
	}
	arena = ShmemInitStruct("gpusort staging arena",
							add_size(arena_bytes(), GS_ARENA_ALIGN),
							&found);
	gs_arena = (char *) TYPEALIGN(GS_ARENA_ALIGN, arena);
	LWLockRelease(AddinShmemInitLock);
}

void
gs_chunk_request(int chunk)
{
	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(gs_chunks[chunk].state == GS_CHUNK_APPENDING ||
		   gs_chunks[chunk].state == GS_CHUNK_FETCHING);
	gs_chunks[chunk].next = -1;
	if (gs_shared->chunk_queue_head >= 0)
		gs_chunks[gs_shared->chunk_queue_tail].next = chunk;
	else
		gs_shared->chunk_queue_head = chunk;
	gs_shared->chunk_queue_tail = chunk;
}

void
gs_session_request(int session)
{
	GsSession  *s = &gs_sessions[session];

	Assert(LWLockHeldByMeInMode(gs_shared->lock, LW_EXCLUSIVE));
	Assert(s->state == GS_SESSION_SORTING || s->state == GS_SESSION_CLOSING);
	if (s->queued)
		return;
	s->queued = true;
	s->next = -1;
	if (gs_shared->session_queue_head >= 0)
		gs_sessions[gs_shared->session_queue_tail].next = session;
	else
		gs_shared->session_queue_head = session;
	gs_shared->session_queue_tail = session;
}

bool
gs_session_temp_path(char path[GS_SPILL_PATH_BYTES], Oid tablespace, int pid, uint64 id)
{
	char		folder[MAXPGPATH];

	TempTablespacePath(folder, tablespace);
	return snprintf(path, GS_SPILL_PATH_BYTES, "%s/%s%d.gpusort" UINT64_FORMAT, folder,
					PG_TEMP_FILE_PREFIX, pid, id) < GS_SPILL_PATH_BYTES;
}
