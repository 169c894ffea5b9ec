/*-------------------------------------------------------------------------
 *
 * service_worker.c
 *	  The gpusort service: the background worker that owns the devices.
 *
 * One thread, one loop: take the requests that backends left in shared
 * memory, start jobs on the devices, note which jobs ended, wake those who
 * wait, sleep.  The devices' calls are asynchronous, so no sort holds up
 * another one here.  The loop sleeps on its latch (set by backends) and on a
 * pipe (written to by the devices' threads when a job ends).
 *
 * The end of the service
 *	  However the process exits, service_exit() first closes the devices, which
 *	  ends all copies from and to the arena, and only then declares the
 *	  service gone; from then on backends may free the chunks themselves.
 *	  When the last device is lost, the service ends with exit code 1, and the
 *	  postmaster starts it again.  Open sorts notice that their generation is gone,
 *	  and go on without the service.  The service ends in the same way to open a lost device
 *	  again, when no sort is open (gs_devices_try_again()).  If a driver hangs, a
 *	  thread ends the process after a while, which is a crash (limit_exit()).
 *
 * Tests: tap/fault_restart, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "base/machine.h"
#include "base/threads.h"
#include "compat.h"
#include "fault.h"
#include "gpusort.h"
#include "guc.h"
#include "service/service_private.h"

/* After this time without work, devices give their cached memory back. */
#define GS_TRIM_AFTER_MS	10000

/* The service has this time to end, in seconds: pg_ctl waits for a minute. */
#define GS_EXIT_S			45

/* While a sort waits for memory of a device or of its role, the service looks for some in this interval. */
#define GS_SHORT_MEMORY_MS	200

/* While a device is lost, an idle service checks in this interval whether it may restart. */
#define GS_LOST_DEVICE_MS	60000

PGDLLEXPORT void gpusort_service_main(Datum arg);

static bool trimmed = true;

static int	notify_pipe[2] = {-1, -1};
static int	notified = 0;		/* a byte is in the pipe, or about to be; atomic */

/* Wakes the service.  Called by threads of devices, and by the service's own thread if memory is short. */
static void
job_ended(void *arg)
{
	GS_DELAY();
	if (__atomic_exchange_n(&notified, 1, __ATOMIC_ACQ_REL) == 0)
	{
		ssize_t		written;

		GS_DELAY();
		do
			written = write(notify_pipe[1], "", 1);
		while (written < 0 && errno == EINTR);
	}
}

static void
drain_notify_pipe(void)
{
	char		byte;

	/*
	 * First the pipe, then the flag: a job that ends in between writes again.  As both
	 * sides exchange the flag, a job that does not write has set its status before this.
	 * If the flag is set and the byte has not been written yet, the byte will wake the service later.
	 */
	if (__atomic_load_n(&notified, __ATOMIC_ACQUIRE) != 0 && read(notify_pipe[0], &byte, 1) == 1)
		(void) __atomic_exchange_n(&notified, 0, __ATOMIC_ACQ_REL);
}

/*
 * Give chunks of arrays back with the outcome.  The devices are closed, so all jobs have ended.  A chunk
 * without a job is unchanged.
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

/* A thread: end the process if it does not end by itself. */
static void *
end_at_last(void *arg)
{
	static const char message[] = "gpusort service ends, as its devices or files do not answer\n";

	sleep((intptr_t) arg);
	(void) !write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(2);
}

/*
 * Closing devices and files waits for drivers, which may never answer, here and again in exit().  Then
 * a thread ends the process.  The postmaster takes that for a crash.  That is right, because copies to
 * the arena may have been under way.
 */
static void
limit_exit(void)
{
	pthread_t	thread;
	intptr_t	seconds = GS_FAULT("service_hang") ? 1 : GS_EXIT_S;

	(void) gs_thread_start(&thread, end_at_last, (void *) seconds);
	while (GS_FAULT("service_hang"))
		sleep(1);
}

static void
service_exit(int code, Datum arg)
{
	LWLockReleaseAll();			/* it is taken below */
	limit_exit();
	if (gs_served_io)
		gs_spill_io_close(gs_served_io);
	gs_served_io = NULL;
	gs_devices_close();
	for (int i = 0; gs_served && i < gs_shared->n_sessions; i++)
		if (gs_served[i].spill)
			gs_spill_close(gs_served[i].spill);

	gs_lock();
	gs_shared->alive = gs_shared->stuck = false;
	gs_shared->latch = NULL;
	gs_shared->pid = 0;
	for (int i = 0; i < gs_n_devices; i++)
		gs_shared->devices[i].info.memory_used = 0;
	gs_shared->chunk_queue_head = gs_shared->session_queue_head = -1;
	return_arrays();
	for (int i = 0; i < gs_shared->n_sessions; i++)
	{
		gs_sessions[i].queued = false;
		if (gs_sessions[i].state == GS_SESSION_CLOSING)
			gs_session_free(i);
	}
	if (gs_shared->state == GS_SERVICE_READY)
		gs_shared->state = GS_SERVICE_STARTING;
	gs_unlock();

	for (int i = 0; i < gs_shared->n_sessions; i++)
		ConditionVariableBroadcast(&gs_sessions[i].cv);
	for (int i = 0; i < MaxBackends; i++)
		ConditionVariableBroadcast(&gs_tickets[i].cv);
	ConditionVariableBroadcast(&gs_shared->chunk_cv);
}

/* The service serves from now on. */
static void
begin_generation(void)
{
	gs_devices_publish();
	gs_lock();
	gs_shared->began = ++gs_shared->generation;
	gs_shared->alive = true;
	gs_shared->state = GS_SERVICE_READY;
	gs_shared->pid = MyProcPid;
	gs_shared->latch = MyLatch;
	gs_shared->started = GetCurrentTimestamp();
	gs_shared->message[0] = '\0';
	gs_unlock();
	gs_devices_report();
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

/*
 * Temporary files and CUDA may have as many descriptors as the system allows.  PostgreSQL's own files
 * stay within max_files_per_process, and no program is started from here.
 */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Threads that read and write temporary files: more than one disk's worth of them. */
static int
io_threads(void)
{
	return Max(2, Min(gs_machine_cores() / 2, 8));
}

/* Shows backends that the service moves.  A service that they took for gone serves again. */
static void
note_progress(void)
{
	if (!gs_devices_move())
		return;
	__atomic_add_fetch(&gs_shared->progress, 1, __ATOMIC_RELAXED);
	if (!gs_shared->stuck)
		return;
	gs_lock();
	gs_shared->stuck = false;
	gs_shared->alive = true;
	gs_unlock();
	ereport(LOG, (errmsg("gpusort service goes on")));
}

/* Serve requests, ended jobs and due sessions once.  False: there was nothing to do. */
static bool
work(void)
{
	bool		any = gs_requests_serve();

	any |= gs_requests_note_ended();
	any |= gs_requests_give_up_pages();
	any |= gs_sort_note_ended();
	any |= gs_sort_make_room();
	for (int i = gs_served_next(-1), next; i >= 0; i = next)
	{
		/* a session that this step marks as due may wait for the next call */
		next = gs_served_next(i);
		if (!gs_served[i].due)
			continue;
		gs_served[i].due = false;
		GS_DELAY();
		gs_sort_advance(i);
		(void) gs_served_update_active(i);
		any = true;
	}
	return any;
}

/* How long to sleep if nobody wakes the service, in ms; -1: for ever. */
static long
longest_sleep(void)
{
	long		trim = !trimmed ? GS_TRIM_AFTER_MS : gs_devices_are_lost() ? GS_LOST_DEVICE_MS : -1;

	/* an active session was marked as due when it became active, so this changes nothing */
	for (int i = 0; i < gs_n_served; i++)
		Assert(gs_served_update_active(i));
	if (gs_memory_is_short(-1) || gs_role_is_short(-1))
		return GS_SHORT_MEMORY_MS;
	if (gs_shared->n_idle_pages > 0)
		return GS_IDLE_READER_MS;
	return trim;
}

/* Nobody has woken the service for this time. */
static void
idle(long ms)
{
	if (gs_memory_is_short(-1))
	{
		/* other programs may have freed memory */
		for (int i = 0; i < gs_n_devices; i++)
			gs_memory_note_freed(i);
	}
	else if (ms == GS_TRIM_AFTER_MS)
	{
		gs_devices_trim();
		trimmed = true;
		gs_devices_publish();
	}
}

/*
 * Large pieces of memory go back to the system when they are freed.  By itself malloc() raises this size to
 * 32 MB and keeps smaller ones: after many sorts it kept more than the sorts held.  musl returns them anyway.
 */
static void
return_large_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	(void) mallopt(M_MMAP_THRESHOLD, 2 * GS_CHUNK_BYTES);
	(void) mallopt(M_TRIM_THRESHOLD, 8 * GS_CHUNK_BYTES);
#endif
}

void
gpusort_service_main(Datum arg)
{
	WaitEventSet *events;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	return_large_memory();
	raise_descriptor_limit();
	open_notify_pipe();
	gs_served_init();
	gs_buffers_init();

	before_shmem_exit(service_exit, 0);
	gs_devices_open(job_ended);
	gs_served_io = gs_spill_io_open(io_threads(), pg_dir_create_mode, pg_file_create_mode, job_ended, NULL);
	if (gs_served_io == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("gpusort could not start threads for temporary files")));
	gs_devices_pin_arena();
	begin_generation();

	events = gs_compat_create_wait_event_set(3);
	AddWaitEventToSet(events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(events, WL_SOCKET_READABLE, notify_pipe[0], NULL, NULL);

	for (;;)
	{
		WaitEvent	occurred[3];
		long		ms;

		GS_DELAY();
		ResetLatch(MyLatch);
		GS_DELAY();
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			int			limit_mb = gs_guc_device_memory_mb;

			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			if (gs_guc_device_memory_mb != limit_mb)
			{
				gs_devices_set_limit();
				gs_devices_publish();
			}
			gs_devices_reloaded();
		}

		drain_notify_pipe();
		note_progress();
		gs_devices_note_pinned();
		GS_DELAY();
		if (work())
		{
			trimmed = false;
			gs_devices_publish();
			continue;
		}

		gs_devices_try_again();
		ms = longest_sleep();
		if (WaitEventSetWait(events, ms, occurred, 3,
							 gs_compat_wait_event(GS_WAIT_SERVICE_MAIN)) == 0)
			idle(ms);
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

	/* PostgreSQL only logs a failure, and backends would wait for the service */
	if (IsPostmasterEnvironment && !gs_compat_worker_registered(worker.bgw_name))
		gs_service_shmem_off("max_worker_processes is too small for the gpusort service");
}
