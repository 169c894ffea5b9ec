/*-------------------------------------------------------------------------
 *
 * service_devices.c
 *	  The devices of the gpusort service: opened, chosen, lost.
 *
 * A device that failed or could not be opened is out of use, because CUDA does not let a process use a device
 * again after most failures.  The other devices go on.  As soon as no sort is open, the service restarts, to
 * open the lost device again.  It does so only after it has run for a while: a device that fails each time
 * must not keep the service from the other devices' sorts.  A device that cannot be opened even then is left
 * alone until the configuration is reloaded.  If no device is ready, the service ends at once, and the
 * postmaster starts it again.
 *
 * Tests: tap/devices_several, tap/fault_restart
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "base/machine.h"
#include "base/threads.h"
#include "fault.h"
#include "guc.h"
#include "service/service_private.h"

/* A service that has run for this time may restart, to open a device again. */
#define RESTART_AFTER_S		300

static int	last_chosen = -1;

/* After a reload: try failed devices again, even if the service has just started. */
static bool reloaded = false;

/* Threads are opening devices. */
static bool opening = false;

/* Staging memory is pinned in pieces, by a thread: 8 GB take seconds.  No chunk lies in two pieces. */
#define PIN_BYTES	((Size) 16 << 20)

static struct
{
	pthread_t	thread;
	bool		runs;			/* the thread was started, and was not joined yet */
	bool		stop;			/* atomic */
	bool		ended;			/* atomic, set last */
	bool		fault;
	bool		failed;
	GsDevice   *device;
	GsError		error;
}			pinning;

/* Does the CPU stand in for a GPU, because there was none when the server started? */
static bool
is_stand_in(void)
{
	return gs_guc_device == GS_CHOOSE_AUTO && gs_ops == &gs_device_host;
}

/* The limit that the settings ask for; 0: the device's default. */
static uint64
memory_limit(void)
{
	return (uint64) gs_guc_device_memory_mb * 1024 * 1024;
}

/*
 * Set the memory limit of a device.  If the CPU stands in for a GPU, the setting may be meant for the GPU:
 * then the default is the most.
 */
static void
set_memory_limit(int device)
{
	ServedDevice *d = &gs_devices[device];
	char	   *message = gs_shared->devices[device].message;
	GsDeviceInfo info;
	uint64		limit = memory_limit();

	if (is_stand_in() && limit > 0)
	{
		gs_ops->set_memory_limit(d->device, 0);
		gs_ops->info(d->device, &info);
		limit = Min(limit, info.memory_limit);
	}
	gs_ops->set_memory_limit(d->device, limit);
	gs_ops->info(d->device, &info);
	gs_lock();
	message[0] = '\0';
	if (info.memory_limit < memory_limit())
		snprintf(message, GS_MESSAGE_BYTES, "gpusort.device_memory is %d MB, but sorts may hold %llu MB",
				 gs_guc_device_memory_mb, (unsigned long long) (info.memory_limit >> 20));
	gs_unlock();
}

static int
count_ready(void)
{
	int			n = 0;

	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
			n++;
	return n;
}

/* ---- state ---- */

/* Show why a device takes no sorts. */
static void
note_lost(int device, const char *message)
{
	GsSharedDevice *shared = &gs_shared->devices[device];

	gs_lock();
	shared->ready = false;
	shared->info.memory_used = 0;
	strlcpy(shared->message, message, sizeof(shared->message));
	gs_unlock();
}

static void
show_ready(int device)
{
	gs_devices[device].reading = -1;
	set_memory_limit(device);
	gs_lock();
	gs_shared->devices[device].ready = true;
	gs_unlock();
}

/* The setting may be a mistake: no device can hold more than it has. */
static void
report_high_limit(int device)
{
	GsDeviceInfo info;

	gs_ops->info(gs_devices[device].device, &info);
	if (memory_limit() <= info.memory_total)
		return;
	ereport(LOG,
			(gs_n_devices == 1 ?
			 errmsg("gpusort.device_memory is larger than the memory of the device") :
			 errmsg("gpusort.device_memory is larger than the memory of device %d", device),
			 errdetail("The setting is %d MB; the device has %llu MB, and sorts may hold %llu MB.",
					   gs_guc_device_memory_mb, (unsigned long long) (info.memory_total >> 20),
					   (unsigned long long) (info.memory_limit >> 20)),
			 errhint("Lower gpusort.device_memory, or set it to 0 for the default limit.")));
}

static void
report_ready(int device)
{
	GsDeviceInfo info;

	gs_ops->info(gs_devices[device].device, &info);
	ereport(LOG,
			(gs_n_devices == 1 ? errmsg("gpusort sorts on %s", info.name) :
			 errmsg("gpusort sorts on device %d, %s", device, info.name),
			 errdetail("Device memory: %llu MB of %llu MB; staging memory: %llu MB.",
					   (unsigned long long) (info.memory_limit >> 20),
					   (unsigned long long) (info.memory_total >> 20),
					   (unsigned long long) (gs_shared->arena_bytes >> 20))));
	report_high_limit(device);
}

/* ---- the start ---- */

/* Find a device's ordinal by its number or its UUID.  False: there is no such device. */
static bool
find_device(const char *name, int *ordinal, GsError *error)
{
	*ordinal = strspn(name, "0123456789") == strlen(name) ? atoi(name) : gs_ops->find(name);
	if (*ordinal < 0)
		snprintf(error->message, sizeof(error->message), "there is no device %s", name);
	return *ordinal >= 0;
}

/* Make a ServedDevice for each device that the settings name, and return their number. */
static int
list_devices(GsError *error)
{
	char	   *names = pstrdup(gs_guc_devices);
	List	   *items = NIL;
	ListCell   *lc;
	int			n = gs_ops->count(error);
	int			most = Min(GS_MAX_DEVICES, gs_shared->n_buffers / GS_DEVICE_BUFFERS);
	int			i = 0;

	if (n <= 0)
		return 0;
	if (!SplitGUCList(names, ',', &items))
		elog(ERROR, "invalid list of devices: \"%s\"", gs_guc_devices);
	if (items != NIL)
		n = list_length(items);
	if (n > most)
		ereport(LOG,
				(errmsg("gpusort uses %d of %d devices", most, n),
				 errhint("Raise gpusort.staging_memory to use more, up to %d.", GS_MAX_DEVICES)));
	n = Min(n, most);
	gs_devices = MemoryContextAllocZero(TopMemoryContext, n * sizeof(ServedDevice));
	for (i = 0; i < n; i++)
		gs_devices[i].config.ordinal = i;
	i = 0;
	foreach(lc, items)
	{
		if (i == n)
			break;
		if (!find_device(lfirst(lc), &gs_devices[i].config.ordinal, &gs_devices[i].error))
			gs_devices[i].status = GS_NO_DEVICE;
		i++;
	}
	return n;
}

/* There is no device: say so in the log and in the views, and end the service. */
static void
end_without_device(const GsError *error)
{
	bool		try_again = gs_shared->generation > 0 ||
		(gs_n_devices > 0 && gs_devices[0].status == GS_NO_MEMORY);
	bool		said_before;

	gs_lock();
	said_before = strcmp(gs_shared->message, error->message) == 0;
	strlcpy(gs_shared->message, error->message, sizeof(gs_shared->message));
	if (!try_again)
		gs_shared->state = GS_SERVICE_OFF;
	gs_unlock();
	ereport(said_before ? DEBUG1 : WARNING,
			(errmsg("gpusort has no device: %s", error->message),
			 errdetail("PostgreSQL does all sorts itself.")));

	/* a device that was found before may come back, and there may be more memory or threads */
	proc_exit(try_again ? 1 : 0);
}

static const char *
why_not_opened(const ServedDevice *d)
{
	return d->error.message[0] ? d->error.message : gs_status_name(d->status);
}

/* One of several could not be opened. */
static void
report_not_opened(int device)
{
	const ServedDevice *d = &gs_devices[device];

	note_lost(device, why_not_opened(d));
	ereport(WARNING,
			(errmsg("gpusort could not open device %d: %s", device, why_not_opened(d)),
			 d->config.ordinal < 0 ? errdetail("The other devices sort.") :
			 errdetail("The other devices sort. It is tried again after a reload of the configuration, "
					   "as soon as no sort is open."),
			 gs_guc_devices[0] == '\0' ? 0 :
			 errhint("gpusort.devices is \"%s\"; \"nvidia-smi -L\" lists the devices.", gs_guc_devices)));
}

static void *
open_device(void *arg)
{
	ServedDevice *d = arg;

	d->status = gs_ops->open(&d->config, &d->device, &d->error);
	__atomic_store_n(&d->tried, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Called after the process has left shared memory: exit() would run destructors beside an opening thread. */
static void
exit_while_opening(int code, Datum arg)
{
	if (opening)
		_exit(code);
}

/* Wait for a thread that opens a device.  A driver may hang, so a shutdown does not wait for it. */
static void
wait_until_tried(ServedDevice *d)
{
	while (!__atomic_load_n(&d->tried, __ATOMIC_ACQUIRE) || GS_FAULT("device_open_hangs"))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 gs_compat_wait_event(GS_WAIT_SERVICE_MAIN));
		ResetLatch(MyLatch);
		if (ShutdownRequestPending)
			proc_exit(1);
	}
}

/*
 * Open all devices of gs_ops at once, each in a thread, because each takes a third of a second and more.
 * False: no device can sort; the error says why.
 */
static bool
open_all(void (*notify) (void *arg), GsError *error)
{
	pthread_t	threads[GS_MAX_DEVICES];
	bool		started[GS_MAX_DEVICES] = {false};

	gs_n_devices = list_devices(error);
	opening = true;
	for (int i = 0; i < gs_n_devices; i++)
	{
		ServedDevice *d = &gs_devices[i];

		d->config.memory_limit = is_stand_in() ? 0 : memory_limit();
		d->config.threads = gs_guc_host_threads;
		d->config.notify = notify;
		for (int j = 0; j < gs_n_devices; j++)
			if (gs_devices[j].config.ordinal == d->config.ordinal)
				d->config.opened++;
		if ((i == 1 && GS_FAULT("device_open")) || GS_FAULT("device_threads"))
		{
			d->status = GS_FAULT("device_threads") ? GS_NO_MEMORY : GS_NO_DEVICE;
			strlcpy(d->error.message, "fault point device_open", sizeof(d->error.message));
		}
		if (d->status != GS_OK)
			continue;
		started[i] = gs_thread_start(&threads[i], open_device, d);
		if (!started[i])
			open_device(d);
	}
	for (int i = 0; i < gs_n_devices; i++)
	{
		if (started[i])
		{
			wait_until_tried(&gs_devices[i]);
			pthread_join(threads[i], NULL);
		}
		gs_devices[i].ready = gs_devices[i].status == GS_OK;
	}
	opening = false;
	if (count_ready() > 0)
		return true;
	if (gs_n_devices > 0)
		strlcpy(error->message, why_not_opened(&gs_devices[0]), sizeof(error->message));
	else if (error->message[0] == '\0')
		strlcpy(error->message, gs_status_name(GS_NO_DEVICE), sizeof(error->message));
	return false;
}

/*
 * May the CPU sort if there is no GPU?  "auto" is decided once, when the server starts: the service waits
 * for a GPU that is lost later.  A user who names GPUs does not mean the CPU.
 */
static bool
may_stand_in(void)
{
	return gs_guc_device == GS_CHOOSE_AUTO && gs_shared->device_kind[0] == '\0' && gs_guc_devices[0] == '\0';
}

void
gs_devices_open(void (*notify) (void *arg))
{
	GsError		error = {{0}};
	bool		open = false;

	on_proc_exit(exit_while_opening, 0);
#ifdef GS_WITH_CUDA
	gs_ops = &gs_device_cuda;
#else
	strlcpy(error.message, "gpusort was built without CUDA", sizeof(error.message));
#endif
	if (gs_guc_device == GS_CHOOSE_HOST ||
		(gs_guc_device == GS_CHOOSE_AUTO && strcmp(gs_shared->device_kind, gs_device_host.name) == 0))
		gs_ops = &gs_device_host;
	if (gs_ops)
		open = open_all(notify, &error);
	if (!open && may_stand_in())
	{
		ereport(LOG,
				(errmsg("gpusort has no GPU: %s", error.message),
				 errdetail("The CPU sorts instead, on threads of the gpusort service."),
				 gs_ops == NULL ? 0 :
				 errhint("Set gpusort.device to \"cuda\" to leave all sorts to PostgreSQL while there is no GPU.")));
		gs_lock();
		strlcpy(gs_shared->no_gpu, error.message, sizeof(gs_shared->no_gpu));
		gs_unlock();
		gs_ops = &gs_device_host;
		open = open_all(notify, &error);
	}
	if (!open)
		end_without_device(&error);

	gs_lock();
	gs_shared->n_devices = gs_n_devices;
	strlcpy(gs_shared->device_kind, gs_ops->name, sizeof(gs_shared->device_kind));
	gs_unlock();
	for (int i = 0; i < gs_n_devices; i++)
	{
		if (gs_devices[i].ready)
			show_ready(i);
		else
			report_not_opened(i);
	}
}

/* A device that is open, and not lost. */
static ServedDevice *
any_ready(void)
{
	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
			return &gs_devices[i];
	return NULL;
}

static bool
must_stop_pinning(void)
{
	return __atomic_load_n(&pinning.stop, __ATOMIC_RELAXED);
}

/* Copies wait while the driver pins memory.  So after each piece they get as much time as it took. */
static bool
pin_piece(char *piece, Size bytes)
{
	double		begun = gs_machine_now_ms();
	bool		pinned = gs_ops->pin(pinning.device, piece, bytes, &pinning.error) == GS_OK;

	usleep((useconds_t) ((gs_machine_now_ms() - begun) * 1000));
	return pinned;
}

/*
 * A thread.  Chunks that are not pinned yet can be used, but copies are slower.  With the fault point, it
 * fails when the service has started.
 */
static void *
pin_arena(void *arg)
{
	Size		bytes = gs_shared->arena_bytes;

	for (Size at = 0; at < bytes && !pinning.failed && !must_stop_pinning(); at += PIN_BYTES)
		pinning.failed = !pin_piece(gs_arena + at, Min(PIN_BYTES, bytes - at));
	while (pinning.fault && !must_stop_pinning() &&
		   __atomic_load_n(&gs_shared->state, __ATOMIC_RELAXED) != GS_SERVICE_READY)
		usleep(1000);
	pinning.failed |= pinning.fault;
	__atomic_store_n(&pinning.ended, true, __ATOMIC_RELEASE);
	gs_devices[0].config.notify(gs_devices[0].config.notify_arg);
	return NULL;
}

void
gs_devices_pin_arena(void)
{
	pinning.device = any_ready()->device;
	pinning.fault = GS_FAULT("pin");
	if (pinning.fault)
		strlcpy(pinning.error.message, "fault point pin", sizeof(pinning.error.message));
	pinning.runs = gs_thread_start(&pinning.thread, pin_arena, NULL);
	if (!pinning.runs)
		(void) pin_arena(NULL);
}

static void
end_pinning(void)
{
	if (pinning.runs)
		pthread_join(pinning.thread, NULL);
	pinning.runs = pinning.ended = false;
}

void
gs_devices_note_pinned(void)
{
	if (!__atomic_load_n(&pinning.ended, __ATOMIC_ACQUIRE))
		return;
	end_pinning();
	if (pinning.failed)
		ereport(LOG,
				(errmsg("gpusort could not pin its staging memory: %s", pinning.error.message),
				 errdetail("gpusort works, but copies to and from the device are slower.")));
}

void
gs_devices_report(void)
{
	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
			report_ready(i);
}

void
gs_devices_close(void)
{
	__atomic_store_n(&pinning.stop, true, __ATOMIC_RELAXED);
	end_pinning();
	for (int i = 0; i < gs_n_devices; i++)
	{
		if (__atomic_load_n(&gs_devices[i].tried, __ATOMIC_ACQUIRE) && gs_devices[i].device)
			gs_ops->close(gs_devices[i].device);
		gs_devices[i].device = NULL;
		gs_devices[i].ready = false;
	}
}

/* ---- sorts ---- */

/* Does the session keep its device busy? */
static bool
is_at_work(int number, TimestampTz now)
{
	const ServedSession *s = &gs_served[number];

	switch (gs_sessions[number].state)
	{
		case GS_SESSION_FEEDING:
		case GS_SESSION_ARRAYS:
		case GS_SESSION_SORTING:
		case GS_SESSION_OVERFLOW:
			return !gs_served_is_over(s);
		case GS_SESSION_SORTED:
			return s->out.sort ||
				(!gs_served_is_over(s) && !TimestampDifferenceExceeds(s->last_used, now, GS_IDLE_READER_MS));
		case GS_SESSION_FREE:
		case GS_SESSION_CLOSING:
			break;
	}
	return false;
}

/*
 * What a new sort may expect of a device: the free memory, or the share that other sorts will free for it
 * if that is more; divided by the number of sorts that share the device's time.
 */
static double
expect(int device, TimestampTz now)
{
	GsDeviceInfo info;
	int			n = 0;
	int			at_work = 0;
	uint64		room;

	for (int i = 0; i < gs_n_served; i++)
		if (gs_served[i].device == device || gs_served_is_on(i, device))
		{
			n++;
			if (is_at_work(i, now))
				at_work++;
		}
	gs_ops->info(gs_devices[device].device, &info);
	room = info.memory_limit > info.memory_used ? info.memory_limit - info.memory_used : 0;
	return (double) Max(room, info.memory_limit / (n + 1)) / (1 + at_work);
}

void
gs_device_assign(int number)
{
	ServedSession *s = &gs_served[number];
	TimestampTz now = GetCurrentTimestamp();
	double		most = -1;
	int			best = -1;

	if (s->device >= 0)
		return;

	/* equal devices take turns */
	for (int i = 1; i <= gs_n_devices; i++)
	{
		int			device = (last_chosen + i) % gs_n_devices;
		double		expected;

		if (!gs_devices[device].ready)
			continue;
		expected = gs_n_devices > 1 ? expect(device, now) : 0;
		if (expected > most)
		{
			best = device;
			most = expected;
		}
	}
	if (best < 0)
		elog(ERROR, "gpusort has no device that is ready");
	last_chosen = s->device = best;
	gs_lock();
	gs_sessions[number].device = best;
	gs_unlock();
}

void
gs_memory_note_freed(int device)
{
	gs_devices[device].n_freed++;
}

/* ---- failures ---- */

/*
 * Handle the loss of a device for a session.  A session with a sort there fails; one whose rows are all in
 * files goes on on another device.  True: it has failed.
 */
static bool
lose_device(int number, int device)
{
	ServedSession *s = &gs_served[number];

	if (s->device != device)
		return false;
	if (gs_served_has_sort(number))
	{
		gs_served_fail(number);
		return true;
	}
	s->device = -1;
	s->wait_for = WAIT_NOTHING;
	s->waits_since = 0;
	gs_device_assign(number);
	gs_served_mark_due(number);
	return false;
}

static void
end_service(const char *message)
{
	gs_lock();
	strlcpy(gs_shared->message, message, sizeof(gs_shared->message));
	gs_unlock();
	ereport(LOG,
			(errmsg("gpusort service ends because its device failed: %s", message),
			 errdetail("The service starts again in %d seconds. Until then PostgreSQL does all sorts.", GS_RESTART_S)));
	proc_exit(1);
}

void
gs_device_failed(int device, const GsError *error, GsStatus status)
{
	const char *message = error->message[0] ? error->message : gs_status_name(status);
	int			n_sorts = 0;

	if (!gs_devices[device].ready)
		return;					/* known already */
	if (count_ready() == 1)
		end_service(message);
	gs_devices[device].ready = false;
	note_lost(device, message);
	for (int i = 0; i < gs_n_served; i++)
		if (gs_served[i].phase != SERVED_CLOSING && lose_device(i, device))
			n_sorts++;
	ereport(LOG,
			(errmsg("gpusort lost device %d: %s", device, message),
			 errdetail("Sorts lost with it: %d. The other devices go on. It is tried again as soon as no sort is "
					   "open, but not in the first %d minutes of the service.",
					   n_sorts, RESTART_AFTER_S / 60)));
}

void
gs_devices_reloaded(void)
{
	reloaded = true;
}

static bool
has_run_for_a_while(void)
{
#ifdef GPUSORT_FAULTS
	if (getenv("GPUSORT_FAULT_RESTART"))
		return true;
#endif
	return TimestampDifferenceExceeds(gs_shared->started, GetCurrentTimestamp(), RESTART_AFTER_S * 1000);
}

/* A device without an ordinal has a wrong name, which only a restart of the server can change. */
static bool
may_try_again(const ServedDevice *d)
{
	return !d->ready && ((reloaded && d->config.ordinal >= 0) || (d->device && has_run_for_a_while()));
}

bool
gs_devices_are_lost(void)
{
	for (int i = 0; i < gs_n_devices; i++)
		if (!gs_devices[i].ready && gs_devices[i].device)
			return true;
	return false;
}

void
gs_devices_try_again(void)
{
	bool		in_use;
	int			device = -1;

	for (int i = 0; i < gs_n_devices && device < 0; i++)
		if (may_try_again(&gs_devices[i]))
			device = i;
	reloaded &= device >= 0;
	if (device < 0)
		return;

	/* no sort can begin from then on */
	gs_lock();
	in_use = gs_shared->n_open > 0;
	gs_shared->alive &= in_use;
	gs_unlock();
	if (in_use)
		return;
	ereport(LOG,
			(errmsg("gpusort service restarts to open device %d again", device),
			 errdetail("No sort is open. Until it has started PostgreSQL does all sorts.")));
	proc_exit(1);
}

/* ---- all devices ---- */

bool
gs_devices_move(void)
{
	uint64		ended[GS_MAX_DEVICES] = {0};
	bool		move = !GS_FAULT("device_hangs");

	if (gs_ops == &gs_device_host)
		return move;			/* its threads are the service's */
	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
		{
			GsDeviceInfo info;

			gs_ops->info(gs_devices[i].device, &info);
			ended[i] = info.jobs_ended;
			move &= info.jobs_pending == 0 || ended[i] != gs_devices[i].n_ended;
		}
	for (int i = 0; i < gs_n_devices && move; i++)
		gs_devices[i].n_ended = ended[i];
	return move;
}

void
gs_devices_publish(void)
{
	for (int i = 0; i < gs_n_devices; i++)
	{
		GsDeviceInfo *shown = &gs_shared->devices[i].info;
		GsDeviceInfo info;

		if (!gs_devices[i].ready)
			continue;
		gs_ops->info(gs_devices[i].device, &info);
		if (memcmp(shown, &info, offsetof(GsDeviceInfo, memory_used)) != 0)
		{
			gs_lock();
			*shown = info;
			gs_unlock();
		}
		else
			__atomic_store_n(&shown->memory_used, info.memory_used, __ATOMIC_RELAXED);
	}
}

void
gs_devices_set_limit(void)
{
	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
		{
			set_memory_limit(i);
			report_high_limit(i);
			gs_memory_note_freed(i);	/* waiting sessions may try again */
		}
}

void
gs_devices_trim(void)
{
	for (int i = 0; i < gs_n_devices; i++)
		if (gs_devices[i].ready)
			gs_ops->trim(gs_devices[i].device);
}
