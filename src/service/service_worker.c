/*-------------------------------------------------------------------------
 *
 * service_worker.c
 *	  The gpusort service: the background worker that owns the device.
 *
 * One thread, one loop: take the requests that backends left in shared
 * memory, start jobs on the device, note which jobs ended, wake those who
 * wait, sleep.  The device's calls are asynchronous, so no sort holds up
 * another one here.  The loop sleeps on its latch (set by backends) and on a
 * pipe (written to by the device's threads when a job ends).
 *
 * The end of the service
 *	  However the process exits, service_exit() first closes the device, which
 *	  ends all copies from and to the arena, and only then declares the
 *	  service gone; from then on backends may free the chunks themselves.  A
 *	  device that is lost ends the service with exit code 1, and the
 *	  postmaster starts it again; the sorts that were open find their
 *	  generation gone and go on without it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "fault.h"
#include "gpusort.h"
#include "guc.h"
#include "service/service_private.h"
#include "service/service_worker.h"

/* Idle for so long, the device gives its cached memory back. */
#define GS_TRIM_AFTER_MS	10000

/* While a sort waits for device memory, look for some as often as this. */
#define GS_SHORT_MEMORY_MS	200

/* Seconds until the postmaster starts a failed service again. */
#define GS_RESTART_S		2

static bool trimmed = true;

static int	notify_pipe[2] = {-1, -1};
static int	notified = 0;		/* a byte is in the pipe; atomic */

/* Called by threads of the device, and of the order check. */
static void
job_ended(void *arg)
{
	(void) arg;
	if (__atomic_exchange_n(&notified, 1, __ATOMIC_ACQ_REL) == 0)
	{
		ssize_t		written;

		do
			written = write(notify_pipe[1], "", 1);
		while (written < 0 && errno == EINTR);
	}
}

static void
drain_notify_pipe(void)
{
	char		buffer[16];

	/* first the pipe, then the flag: a job that ends in between writes again */
	while (read(notify_pipe[0], buffer, sizeof(buffer)) > 0)
		;
	__atomic_store_n(&notified, 0, __ATOMIC_RELEASE);
}

/*
 * Give chunks of arrays back with what became of them.  The device is closed,
 * so all jobs have ended; a chunk that it never saw is as it was.
 */
static void
return_arrays(void)
{
	for (int i = 0; i < gs_shared->n_chunks; i++)
	{
		GsChunk    *c = &gs_chunks[i];

		if (c->state != GS_CHUNK_FETCHING || c->fetch != GS_FETCH_ARRAYS)
			continue;
		c->status = gs_served_chunks[i].started ?
			gs_job_status(&gs_served_chunks[i].job) : GS_CANCELLED;
		c->state = GS_CHUNK_FETCHED;
	}
}

static void
service_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (gs_served_io)
		gs_spill_io_close(gs_served_io);
	gs_served_io = NULL;
	if (gs_served_device)
	{
		gs_order_check_stop();
		gs_ops->close(gs_served_device);
		gs_order_check_free();
		gs_served_device = NULL;
	}
	for (int i = 0; gs_served && i < gs_shared->n_sessions; i++)
		if (gs_served[i].spill)
			gs_spill_close(gs_served[i].spill);

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	gs_shared->alive = false;
	gs_shared->latch = NULL;
	gs_shared->pid = 0;
	gs_shared->device.memory_used = 0;
	gs_shared->chunk_queue_head = gs_shared->chunk_queue_tail = -1;
	gs_shared->session_queue_head = gs_shared->session_queue_tail = -1;
	return_arrays();
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		gs_sessions[i].queued = false;
		if (gs_sessions[i].state == GS_SESSION_CLOSING)
			gs_session_free(i);
	}
	if (gs_shared->state == GS_SERVICE_READY)
		gs_shared->state = GS_SERVICE_STARTING;
	LWLockRelease(gs_shared->lock);

	for (int i = 0; i < gs_shared->n_sessions; i++)
		ConditionVariableBroadcast(&gs_sessions[i].cv);
	ConditionVariableBroadcast(&gs_shared->session_cv);
}

void
gs_service_device_failed(const GsError *error, GsStatus status)
{
	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	strlcpy(gs_shared->message, error->message, sizeof(gs_shared->message));
	LWLockRelease(gs_shared->lock);
	ereport(LOG,
			(errmsg("gpusort service ends because its device failed: %s",
					error->message[0] ? error->message : gs_status_name(status)),
			 errdetail("The service starts again in %d seconds. Until then PostgreSQL does all sorts.", GS_RESTART_S)));
	proc_exit(1);
}

/* The device's limit that the settings ask for; 0: its default. */
static uint64
memory_limit(void)
{
	return (uint64) gs_guc_device_memory_mb * 1024 * 1024;
}

/*
 * Open the device that gpusort.device asks for.  Where there is none, say so
 * where users look for it, and end.
 */
static void
open_device(void)
{
	GsDeviceConfig config = {0};
	GsError		error = {{0}};
	GsStatus	status = GS_NO_DEVICE;
	bool		ran_before = gs_shared->generation > 0;
	bool		said_before;

	config.memory_limit = memory_limit();
	config.threads = gs_guc_host_threads;
	config.notify = job_ended;

	if (gs_guc_device == GS_CHOOSE_HOST)
		gs_ops = &gs_device_host;
	else
	{
#ifdef GS_WITH_CUDA
		gs_ops = &gs_device_cuda;
#else
		strlcpy(error.message, "gpusort was built without CUDA", sizeof(error.message));
#endif
	}
	if (gs_ops)
		status = gs_ops->open(&config, &gs_served_device, &error);
	if (status == GS_OK)
		return;

	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	said_before = ran_before && strcmp(gs_shared->message, error.message) == 0;
	strlcpy(gs_shared->message, error.message, sizeof(gs_shared->message));
	if (!ran_before)
		gs_shared->state = GS_SERVICE_OFF;
	LWLockRelease(gs_shared->lock);
	ereport(said_before ? DEBUG1 : gs_guc_device == GS_CHOOSE_AUTO ? LOG : WARNING,
			(errmsg("gpusort has no device: %s",
					error.message[0] ? error.message : gs_status_name(status)),
			 errdetail("PostgreSQL does all sorts itself.")));

	/* a device that was there once may come back */
	proc_exit(ran_before ? 1 : 0);
}

static void
publish_device(bool first)
{
	GsDeviceInfo info;

	gs_ops->info(gs_served_device, &info);
	LWLockAcquire(gs_shared->lock, LW_EXCLUSIVE);
	gs_shared->device = info;
	if (first)
	{
		gs_shared->generation++;
		gs_shared->alive = true;
		gs_shared->state = GS_SERVICE_READY;
		gs_shared->pid = MyProcPid;
		gs_shared->latch = MyLatch;
		gs_shared->started = GetCurrentTimestamp();
		gs_shared->message[0] = '\0';
		strlcpy(gs_shared->kind, gs_ops->name, sizeof(gs_shared->kind));
	}
	LWLockRelease(gs_shared->lock);
	if (first)
		ereport(LOG,
				(errmsg("gpusort sorts on %s", info.name),
				 errdetail("Device memory: %llu MB of %llu MB; staging memory: %llu MB.",
						   (unsigned long long) (info.memory_limit >> 20),
						   (unsigned long long) (info.memory_total >> 20),
						   (unsigned long long) (gs_shared->arena_bytes >> 20))));
}

/* The setting may be a mistake: the device cannot hold more than it has. */
static void
report_high_limit(void)
{
	uint64		total = gs_shared->device.memory_total;

	if (memory_limit() > total)
		ereport(LOG,
				(errmsg("gpusort.device_memory is larger than the memory of the device"),
				 errdetail("The setting is %d MB; the device has %llu MB.",
						   gs_guc_device_memory_mb, (unsigned long long) (total >> 20)),
				 errhint("Lower gpusort.device_memory, or set it to 0 for the default limit.")));
}

static void
open_notify_pipe(void)
{
	if (pipe(notify_pipe) != 0 ||
		fcntl(notify_pipe[0], F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(notify_pipe[1], F_SETFL, O_NONBLOCK) < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not create pipe: %m")));
	(void) fcntl(notify_pipe[0], F_SETFD, FD_CLOEXEC);
	(void) fcntl(notify_pipe[1], F_SETFD, FD_CLOEXEC);
}

/* Threads that read and write temporary files: more than one disk's worth of them. */
static int
io_threads(void)
{
	long		cores = sysconf(_SC_NPROCESSORS_ONLN);

	return (int) Max(2, Min(cores / 2, 8));
}

/* Take what there is to be done a step further; false: nothing could be. */
static bool
work(void)
{
	bool		any = gs_requests_serve();
	int			number;

	any |= gs_requests_note_ended();
	any |= gs_sort_note_ended();
	any |= gs_memory_relieve();
	while ((number = gs_served_woken()) >= 0)
	{
		gs_sort_advance(number);
		any = true;
	}
	return any;
}

/* How long to sleep where nobody wakes the service. */
static long
longest_sleep(void)
{
	if (gs_memory_is_short())
		return GS_SHORT_MEMORY_MS;
	return trimmed || gs_shared->n_open > 0 ? -1 : GS_TRIM_AFTER_MS;
}

void
gpusort_service_main(Datum arg)
{
	WaitEventSet *events;
	GsError		error = {{0}};

	(void) arg;
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	open_notify_pipe();
	gs_served_init();

	before_shmem_exit(service_exit, 0);
	open_device();
	gs_order_check_init(gs_ops, gs_served_device, job_ended, NULL);
	gs_served_io = gs_spill_io_open(io_threads(), job_ended, NULL);
	if (gs_served_io == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("gpusort could not start threads for temporary files")));
	if (gs_ops->pin(gs_served_device, gs_arena, gs_shared->arena_bytes, &error) != GS_OK)
		ereport(LOG,
				(errmsg("gpusort could not pin its staging memory: %s", error.message),
				 errdetail("gpusort works, but copies to and from the device are slower.")));
	publish_device(true);
	report_high_limit();

	events = gs_compat_create_wait_event_set(3);
	AddWaitEventToSet(events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(events, WL_SOCKET_READABLE, notify_pipe[0], NULL, NULL);

	for (;;)
	{
		WaitEvent	occurred[3];

		ResetLatch(MyLatch);
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			uint64		limit = memory_limit();

			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			if (memory_limit() != limit)
			{
				gs_ops->set_memory_limit(gs_served_device, memory_limit());
				gs_memory_freed();	/* those who wait may try again */
				publish_device(false);
				report_high_limit();
			}
		}

		drain_notify_pipe();
		if (work())
		{
			publish_device(false);
			continue;
		}

		if (gs_served_was_busy())
			trimmed = false;
		if (WaitEventSetWait(events, longest_sleep(),
							 occurred, 3,
							 gs_compat_wait_event(GS_WAIT_SERVICE_MAIN)) == 0 &&
			gs_shared->n_open == 0)
		{
			gs_ops->trim(gs_served_device);
			trimmed = true;
			publish_device(false);
		}
	}
}

void
gs_service_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = GS_RESTART_S;
	strlcpy(worker.bgw_library_name, GPUSORT_NAME, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gpusort_service_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "gpusort service", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "gpusort service", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
