/*-------------------------------------------------------------------------
 *
 * device_host.c
 *	  The host device: sorts on the CPU, with threads of its own.
 *
 * It is what machines without a GPU run, and the reference for other devices.
 * This file is the protocol: jobs, memory, errors.  Ordering is host_order.c,
 * for one thread host_sort.c; what comes after it is host_pages.c; arrays are
 * host_arrays.c; threads are host_threads.c, and what the machine has is
 * host_machine.c.
 *
 * Jobs
 *	  A call checks what can be checked at once, reserves memory, and submits
 *	  a task to the pool, even where it is known to fail: jobs end on the
 *	  device's threads only.  Jobs of one kind of a sort are in a queue; one
 *	  that has run but is not the first there waits until those before it have
 *	  run, and whichever thread runs the first ends them all.  So chunks are
 *	  copied by several threads at once, and become images in their order.
 *
 * Memory
 *	  An append reserves, in the call, what its image takes and what ordering
 *	  its rows will take, so perform never exceeds the limit.  An append that
 *	  is refused makes the sort refuse later ones, so that the images are
 *	  always the first chunks appended.  Images lie in slabs of the sort, which
 *	  grow from chunk to chunk: large ones get large pages, which matter to
 *	  rows that are read in random order, and none is returned before close.
 *
 * Threads
 *	  HostDevice.lock protects all fields marked so.  No other lock is taken
 *	  while it is held, and no long work done.  Nothing of a sort may be
 *	  touched after the status of its last pending job has been set and the
 *	  lock released, because the caller may then close it; of a job, nothing
 *	  after its status has been set.
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "src/device is plain C and must not see postgres.h"
#endif

#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host_arrays.h"
#include "host_machine.h"
#include "host_order.h"

#define MAX_THREADS 1024
#define MIN_CHUNK_BYTES 1024

typedef enum JobKind
{
	JOB_APPEND,
	JOB_PERFORM,
	JOB_FETCH,
	JOB_FETCH_IMAGE,
	JOB_FETCH_KEYS,
	JOB_REORDER,
	JOB_SORT_ARRAYS
} JobKind;

#define N_JOB_KINDS 7

typedef struct HostJob
{
	GsHostTask	task;			/* must be first */
	GsDeviceSort *sort;
	GsJob	   *job;			/* the caller's */
	JobKind		kind;
	GsStatus	status;			/* GS_PENDING, or known before it was run */
	GsError		error;
	bool		has_run;		/* under lock */
	struct HostJob *next;		/* in its queue; under lock */

	const char *chunk;			/* append */
	GsHostImage image;			/* append: to become one of the sort's;
								 * sort_arrays: without data */
	uint64_t	image_memory;	/* append: reserved for it */
	uint64_t	row_bytes;		/* append, sort_arrays */
	uint64_t	key_bytes;
	uint64_t	number;			/* fetch: page; fetch_image: image;
								 * fetch_keys: first rank; reorder: rows */
	void	   *dst;			/* fetch, fetch_image, fetch_keys;
								 * sort_arrays: the chunk */
	size_t		bytes;			/* fetch_keys: room in dst */
	uint64_t   *n_keys;			/* fetch_keys: the caller's */
	const uint64_t *to;			/* reorder */
	const uint64_t *from;		/* reorder */
	uint64_t	work_memory;	/* reorder, sort_arrays: reserved while it runs */
	bool		reordering;		/* reorder: it put the sort into that state */
	GsHostOrder order;			/* reorder: to become the sort's */
} HostJob;

typedef struct JobQueue
{
	HostJob    *first;
	HostJob    *last;
	uint32_t	n;				/* pending jobs of this kind */
	uint32_t	n_running;
	double		running_since;
	double		ms;				/* during which at least one was running */
} JobQueue;

typedef enum SortState
{
	SORT_FILLING,
	SORT_PERFORMING,
	SORT_PERFORMED,
	SORT_REORDERING
} SortState;

struct GsDevice
{
	GsDeviceConfig config;
	GsHostPool *pool;
	uint64_t	memory_total;
	uint64_t	memory_limit;
	pthread_mutex_t lock;
	pthread_cond_t idle;		/* a sort has no pending job any more */
	uint64_t	memory_used;	/* reserved; under lock */
	GsHostTask	lone_notify;	/* for a job that ended in its call */
	bool		notify_waits;	/* it is submitted; under lock */
	GsDeviceSort *sorts;		/* of the caller's thread only */
};

struct GsDeviceSort
{
	GsDevice   *device;
	GsSortSpec	spec;
	GsDeviceSort *next;			/* of the caller's thread only */
	int			cancel;			/* atomic */
	bool		refused;		/* an append was; of the caller's thread only */
	GsHostSlab *slabs;			/* images; of the caller's thread only */

	/*
	 * Under lock, and constant while perform or reorder is pending or after
	 * them.  While it is SORT_REORDERING, rows and sums of the order belong to
	 * the job.
	 */
	SortState	state;
	JobQueue	queues[N_JOB_KINDS];
	uint32_t	n_pending;		/* jobs of all kinds */
	GsHostImage *images;
	uint32_t   *image_records;
	uint32_t   *image_bytes;
	uint64_t	n_images;
	uint64_t	max_images;
	uint64_t	n_rows;			/* pending appends included */
	uint64_t	row_bytes;
	uint64_t	key_bytes;
	uint64_t	memory_used;	/* the sort's part of the device's */
	GsHostOrder order;			/* once performed */
};

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

static GsStatus
fail(GsError *error, GsStatus status, const char *format,...)
			__attribute__((format(printf, 3, 4)));

static GsStatus
fail(GsError *error, GsStatus status, const char *format,...)
{
	va_list		args;

	if (error != NULL)
	{
		va_start(args, format);
		vsnprintf(error->message, sizeof(error->message), format, args);
		va_end(args);
	}
	return status;
}

/* ---- jobs ---- */

static bool
is_cancelled(const GsDeviceSort *sort)
{
	return __atomic_load_n(&sort->cancel, __ATOMIC_RELAXED) != 0;
}

/* What a job that has run means for its sort; called with the lock held. */
static void
apply_job(GsDeviceSort *sort, HostJob *job)
{
	GsDevice   *device = sort->device;

	if (job->kind == JOB_APPEND)
	{
		if (job->status == GS_OK)
		{
			uint64_t	i = sort->n_images++;

			sort->images[i] = job->image;
			sort->image_records[i] = job->image.n_records;
			sort->image_bytes[i] = job->image.data_bytes;
			sort->row_bytes += job->row_bytes;
			sort->key_bytes += job->key_bytes;
		}
		else
		{
			sort->n_rows -= job->image.n_records;
			sort->memory_used -= job->image_memory;
			device->memory_used -= job->image_memory;
		}
	}
	else if (job->kind == JOB_PERFORM && sort->state == SORT_PERFORMING)
	{
		sort->state = job->status == GS_OK ? SORT_PERFORMED : SORT_FILLING;
		if (job->status == GS_OK)
		{
			uint64_t	unused = sort->n_rows * (GS_HOST_WORK_BYTES - GS_HOST_KEEP_BYTES);

			sort->memory_used -= unused;
			device->memory_used -= unused;
		}
	}
	else if (job->kind == JOB_REORDER && job->reordering)
	{
		sort->state = SORT_PERFORMED;
		sort->memory_used -= job->work_memory;
		device->memory_used -= job->work_memory;
		if (job->status == GS_OK)
		{
			free(sort->order.page_first);
			sort->order = job->order;
		}
	}
	else if (job->kind == JOB_SORT_ARRAYS)
	{
		sort->memory_used -= job->work_memory;
		device->memory_used -= job->work_memory;
		if (job->status == GS_OK)
		{
			sort->n_rows += job->image.n_records;
			sort->row_bytes += job->row_bytes;
		}
	}
}

/* Note that a job has run, and end those that may end. */
static void
finish_job(HostJob *job)
{
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	JobQueue   *queue = &sort->queues[job->kind];
	uint32_t	n_ended = 0;

	pthread_mutex_lock(&device->lock);
	job->has_run = true;
	if (--queue->n_running == 0)
		queue->ms += now_ms() - queue->running_since;
	while (queue->first != NULL && queue->first->has_run)
	{
		HostJob    *ended = queue->first;

		queue->first = ended->next;
		if (queue->first == NULL)
			queue->last = NULL;
		apply_job(sort, ended);
		queue->n--;
		if (--sort->n_pending == 0)
			pthread_cond_broadcast(&device->idle);
		ended->job->error = ended->error;
		__atomic_store_n(&ended->job->status, (int32_t) ended->status, __ATOMIC_RELEASE);
		free(ended);
		n_ended++;
	}
	pthread_mutex_unlock(&device->lock);
	while (n_ended-- > 0 && device->config.notify != NULL)
		device->config.notify(device->config.notify_arg);
}

/* Check a chunk's records and copy it. */
static void
run_append(HostJob *job)
{
	const GsSortSpec *spec = &job->sort->spec;
	GsHostImage *image = &job->image;
	size_t		records_bytes = image->n_records * sizeof(GsRecord);
	const char *records = job->chunk + spec->chunk_bytes - records_bytes;
	uint32_t	max_row = gs_max_row_bytes(spec->chunk_bytes);

	for (uint32_t i = 0; i < image->n_records; i++)
	{
		const GsRecord *record = (const GsRecord *) (const void *) records + i;
		uint32_t	row_len = record->row_len & GS_LENGTH_MASK;
		uint32_t	key_len = record->key_len & GS_LENGTH_MASK;

		if (record->row_off % 8 != 0 || row_len > max_row ||
			(uint64_t) record->row_off + row_len > image->data_bytes ||
			(uint64_t) record->key_off + key_len > image->data_bytes ||
			(spec->key_width > 0 && key_len != spec->key_width))
		{
			job->status = fail(&job->error, GS_INVALID,
							   "record %u of a chunk has a row of %u bytes at %u and a key of %u bytes at %u of %u",
							   image->n_records - 1 - i, row_len, record->row_off,
							   key_len, record->key_off, image->data_bytes);
			return;
		}
		job->row_bytes += row_len;
		job->key_bytes += key_len;
	}
	memcpy(image->data, job->chunk, image->data_bytes);
	memcpy(image->data + gs_host_image_bytes(image->data_bytes, image->n_records) - records_bytes,
		   records, records_bytes);
	job->status = GS_OK;
}

static void
run_perform(HostJob *job)
{
	GsDeviceSort *sort = job->sort;

	job->status = gs_host_order(sort->device->pool, sort->images, sort->n_images,
								sort->spec.chunk_bytes, &sort->cancel, &sort->order);
	if (job->status == GS_NO_MEMORY)
		fail(&job->error, GS_NO_MEMORY, "out of memory while ordering %llu rows",
			 (unsigned long long) sort->n_rows);
}

static void
run_fetch_image(HostJob *job)
{
	const GsHostImage *image = &job->image;
	size_t		records_bytes = image->n_records * sizeof(GsRecord);

	memcpy(job->dst, image->data, image->data_bytes);
	memcpy((char *) job->dst + job->sort->spec.chunk_bytes - records_bytes,
		   image->data + gs_host_image_bytes(image->data_bytes, image->n_records) - records_bytes,
		   records_bytes);
	job->status = GS_OK;
}

static void
run_fetch_keys(HostJob *job)
{
	const GsHostOrder *order = &job->sort->order;
	uint64_t	n_keys = gs_host_copy_keys(order, job->number, job->dst, job->bytes);

	*job->n_keys = n_keys;
	job->status = GS_OK;
	if (n_keys == 0 && job->number < order->n_rows)
		job->status = fail(&job->error, GS_INVALID, "%zu bytes have no room for key %llu",
						   job->bytes, (unsigned long long) job->number);
}

static void
run_reorder(HostJob *job)
{
	GsDeviceSort *sort = job->sort;

	job->status = gs_host_reorder(sort->device->pool, &sort->order, job->to, job->from,
								  job->number, sort->spec.chunk_bytes, &job->order);
	if (job->status == GS_NO_MEMORY)
		fail(&job->error, GS_NO_MEMORY, "out of memory while moving %llu rows",
			 (unsigned long long) job->number);
	else if (job->status == GS_INVALID)
		fail(&job->error, GS_INVALID, "rows were to be moved from other ranks than to");
}

static void
run_sort_arrays(HostJob *job)
{
	job->status = gs_host_sort_arrays(&job->sort->spec, job->dst, job->image.data_bytes,
									  job->image.n_records, &job->sort->cancel, &job->row_bytes,
									  &job->error);
}

static void
run_job(GsHostTask *task)
{
	HostJob    *job = (HostJob *) task;
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	JobQueue   *queue = &sort->queues[job->kind];

	pthread_mutex_lock(&device->lock);
	if (queue->n_running++ == 0)
		queue->running_since = now_ms();
	pthread_mutex_unlock(&device->lock);

	if (job->status == GS_PENDING && is_cancelled(sort))
		job->status = GS_CANCELLED;
	if (job->status == GS_PENDING)
	{
		switch (job->kind)
		{
			case JOB_APPEND:
				run_append(job);
				break;
			case JOB_PERFORM:
				run_perform(job);
				break;
			case JOB_FETCH:
				gs_host_gather(&sort->order, job->number, sort->spec.chunk_bytes, job->dst);
				job->status = GS_OK;
				break;
			case JOB_FETCH_IMAGE:
				run_fetch_image(job);
				break;
			case JOB_FETCH_KEYS:
				run_fetch_keys(job);
				break;
			case JOB_REORDER:
				run_reorder(job);
				break;
			case JOB_SORT_ARRAYS:
				run_sort_arrays(job);
				break;
		}
	}
	finish_job(job);
}

static void
run_lone_notify(GsHostTask *task)
{
	GsDevice   *device = (GsDevice *) (void *) ((char *) task - offsetof(GsDevice, lone_notify));

	pthread_mutex_lock(&device->lock);
	device->notify_waits = false;
	pthread_mutex_unlock(&device->lock);
	if (device->config.notify != NULL)
		device->config.notify(device->config.notify_arg);
}

/*
 * A new job of a sort.  Where there is not even memory for that, the caller's
 * job ends at once, NULL is returned, and a thread of the pool notifies.
 */
static HostJob *
begin_job(GsDeviceSort *sort, JobKind kind, GsJob *job)
{
	HostJob    *made = calloc(1, sizeof(HostJob));

	if (made == NULL)
	{
		GsDevice   *device = sort->device;
		bool		waits;

		fail(&job->error, GS_NO_MEMORY, "out of memory");
		__atomic_store_n(&job->status, (int32_t) GS_NO_MEMORY, __ATOMIC_RELEASE);
		pthread_mutex_lock(&device->lock);
		waits = device->notify_waits;
		device->notify_waits = true;
		pthread_mutex_unlock(&device->lock);
		if (!waits)
		{
			device->lone_notify.run = run_lone_notify;
			gs_host_pool_submit(device->pool, &device->lone_notify);
		}
		return NULL;
	}
	__atomic_store_n(&job->status, (int32_t) GS_PENDING, __ATOMIC_RELAXED);
	made->task.run = run_job;
	made->sort = sort;
	made->job = job;
	made->kind = kind;
	made->status = GS_PENDING;
	return made;
}

/* Put a job into its queue and hand it to the pool. */
static void
submit_job(HostJob *job)
{
	GsDeviceSort *sort = job->sort;
	JobQueue   *queue = &sort->queues[job->kind];

	pthread_mutex_lock(&sort->device->lock);
	if (queue->last != NULL)
		queue->last->next = job;
	else
		queue->first = job;
	queue->last = job;
	queue->n++;
	sort->n_pending++;
	pthread_mutex_unlock(&sort->device->lock);
	gs_host_pool_submit(sort->device->pool, &job->task);
}

/* ---- opening and closing ---- */

static GsStatus
host_open(const GsDeviceConfig *config, GsDevice **device, GsError *error)
{
	GsDevice   *made;
	int			threads = config->threads > 0 ? config->threads : gs_host_cores();

	if (config->ordinal != 0)
		return fail(error, GS_NO_DEVICE, "there is no host device %d", config->ordinal);
	made = calloc(1, sizeof(GsDevice));
	if (made == NULL)
		return fail(error, GS_NO_MEMORY, "out of memory");
	made->config = *config;
	made->memory_total = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
	made->memory_limit = config->memory_limit > 0 ? config->memory_limit
		: gs_host_available_memory(made->memory_total) / 5 * 4;
	made->pool = gs_host_pool_open(threads < MAX_THREADS ? threads : MAX_THREADS);
	if (made->pool == NULL)
	{
		free(made);
		return fail(error, GS_NO_MEMORY, "could not start a thread");
	}
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->idle, NULL);
	*device = made;
	return GS_OK;
}

static void
host_info(GsDevice *device, GsDeviceInfo *info)
{
	int			threads = gs_host_pool_threads(device->pool);

	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "host, %d thread%s", threads, threads == 1 ? "" : "s");
	info->memory_total = device->memory_total;
	info->memory_limit = device->memory_limit;
	pthread_mutex_lock(&device->lock);
	info->memory_used = device->memory_used;
	pthread_mutex_unlock(&device->lock);
}

/* All host memory is as fast as it gets. */
static GsStatus
host_pin(GsDevice *device, void *memory, size_t bytes, GsError *error)
{
	(void) device;
	(void) memory;
	(void) bytes;
	(void) error;
	return GS_OK;
}

static void
host_trim(GsDevice *device)
{
	(void) device;
	malloc_trim(0);
}

static GsStatus
host_sort_open(GsDevice *device, const GsSortSpec *spec, GsDeviceSort **sort, GsError *error)
{
	GsDeviceSort *made;
	uint32_t	chunk_bytes = spec->chunk_bytes;

	if (chunk_bytes < MIN_CHUNK_BYTES || (chunk_bytes & (chunk_bytes - 1)) != 0)
		return fail(error, GS_INVALID, "chunks cannot have %u bytes", chunk_bytes);
	if (gs_engine_name(spec->engine) == NULL)
		return fail(error, GS_INVALID, "there is no engine %d", (int) spec->engine);
	if (spec->elem != GS_ELEM_NONE && (gs_elem_bytes(spec->elem) == 0 || spec->key_width > 0))
		return fail(error, GS_INVALID, "there are no arrays of elements %d", (int) spec->elem);
	made = calloc(1, sizeof(GsDeviceSort));
	if (made == NULL)
		return fail(error, GS_NO_MEMORY, "out of memory");
	made->device = device;
	made->spec = *spec;
	made->next = device->sorts;
	device->sorts = made;
	*sort = made;
	return GS_OK;
}

static void
host_cancel(GsDeviceSort *sort)
{
	__atomic_store_n(&sort->cancel, 1, __ATOMIC_RELAXED);
}

static void
host_sort_close(GsDeviceSort *sort)
{
	GsDevice   *device = sort->device;
	GsDeviceSort **link = &device->sorts;

	/* The protocol allows no pending jobs, but close() has them. */
	pthread_mutex_lock(&device->lock);
	if (sort->n_pending > 0)
		host_cancel(sort);
	while (sort->n_pending > 0)
		pthread_cond_wait(&device->idle, &device->lock);
	device->memory_used -= sort->memory_used;
	pthread_mutex_unlock(&device->lock);

	while (*link != sort)
		link = &(*link)->next;
	*link = sort->next;
	gs_host_slabs_free(&sort->slabs);
	free(sort->images);
	free(sort->image_records);
	free(sort->image_bytes);
	gs_host_order_free(&sort->order);
	free(sort);
}

static void
host_close(GsDevice *device)
{
	for (GsDeviceSort *sort = device->sorts; sort != NULL; sort = sort->next)
		host_cancel(sort);
	while (device->sorts != NULL)
		host_sort_close(device->sorts);
	gs_host_pool_close(device->pool);
	pthread_cond_destroy(&device->idle);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

/* ---- sorting ---- */

static bool
grow_array(void **array, uint64_t n, size_t element_bytes)
{
	void	   *larger = realloc(*array, n * element_bytes);

	if (larger == NULL)
		return false;
	*array = larger;
	return true;
}

/* Make room for the image of one more append in the arrays of images. */
static bool
grow_images(GsDeviceSort *sort)
{
	uint64_t	max = sort->max_images == 0 ? 64 : sort->max_images * 2;

	if (sort->n_images + sort->queues[JOB_APPEND].n < sort->max_images)
		return true;
	if (!grow_array((void **) &sort->images, max, sizeof(GsHostImage)) ||
		!grow_array((void **) &sort->image_records, max, sizeof(uint32_t)) ||
		!grow_array((void **) &sort->image_bytes, max, sizeof(uint32_t)))
		return false;
	sort->max_images = max;
	return true;
}

/* Is there room for so many bytes below the limit?  Called with the lock held. */
static bool
fits(HostJob *job, uint64_t memory)
{
	const GsDevice *device = job->sort->device;

	if (device->memory_used + memory <= device->memory_limit)
		return true;
	fail(&job->error, GS_NO_MEMORY,
		 "%llu bytes more than the %llu in use would exceed the limit of %llu",
		 (unsigned long long) memory, (unsigned long long) device->memory_used,
		 (unsigned long long) device->memory_limit);
	return false;
}

/*
 * Reserve what an append needs: memory for its image, room in the arrays of
 * images, and the right to order its rows.
 */
static GsStatus
reserve_append(HostJob *job, uint32_t data_bytes, uint32_t n_records)
{
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	size_t		image_bytes = gs_host_image_bytes(data_bytes, n_records);
	uint64_t	memory = image_bytes + (uint64_t) n_records * GS_HOST_WORK_BYTES;
	GsStatus	status = GS_OK;

	pthread_mutex_lock(&device->lock);
	if (!fits(job, memory))
		status = GS_NO_MEMORY;
	else if (sort->n_rows + n_records > GS_HOST_MAX_ROWS)
		status = fail(&job->error, GS_NO_MEMORY, "more than %llu rows",
					  (unsigned long long) GS_HOST_MAX_ROWS);
	else if (!grow_images(sort) ||
			 (job->image.data = gs_host_slab_allocate(&sort->slabs, image_bytes,
													  sort->spec.chunk_bytes)) == NULL)
		status = fail(&job->error, GS_NO_MEMORY, "out of memory");
	else
	{
		job->image.data_bytes = data_bytes;
		job->image.n_records = n_records;
		job->image_memory = memory;
		sort->n_rows += n_records;
		sort->memory_used += memory;
		device->memory_used += memory;
	}
	pthread_mutex_unlock(&device->lock);
	return status;
}

static void
host_append(GsDeviceSort *sort, const void *chunk, uint32_t data_bytes, uint32_t n_records,
			GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_APPEND, caller_job);
	SortState	state;

	if (job == NULL)
	{
		sort->refused = true;
		return;
	}
	job->chunk = chunk;
	pthread_mutex_lock(&sort->device->lock);
	state = sort->state;
	pthread_mutex_unlock(&sort->device->lock);
	if (state != SORT_FILLING || sort->spec.elem != GS_ELEM_NONE)
		job->status = fail(&job->error, GS_INVALID, "append after perform, or to a sort of arrays");
	else if ((uint64_t) data_bytes + (uint64_t) n_records * sizeof(GsRecord) > sort->spec.chunk_bytes)
		job->status = fail(&job->error, GS_INVALID, "%u bytes and %u records in a chunk of %u bytes",
						   data_bytes, n_records, sort->spec.chunk_bytes);
	else if (sort->refused)
		job->status = fail(&job->error, GS_NO_MEMORY, "an earlier chunk was refused");
	else if (!is_cancelled(sort))
	{
		GsStatus	status = reserve_append(job, data_bytes, n_records);

		if (status != GS_OK)
		{
			job->status = status;
			sort->refused = true;
		}
	}
	submit_job(job);
}

static void
host_perform(GsDeviceSort *sort, GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_PERFORM, caller_job);

	if (job == NULL)
		return;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state != SORT_FILLING || sort->queues[JOB_APPEND].n > 0)
		job->status = fail(&job->error, GS_INVALID, "perform twice, or before append has ended");
	else if (sort->spec.elem != GS_ELEM_NONE)
		job->status = fail(&job->error, GS_INVALID, "perform of a sort of arrays");
	else if (sort->queues[JOB_FETCH_IMAGE].n > 0)
		job->status = fail(&job->error, GS_INVALID, "perform before fetch_image has ended");
	else
		sort->state = SORT_PERFORMING;
	pthread_mutex_unlock(&sort->device->lock);
	submit_job(job);
}

static void
host_fetch(GsDeviceSort *sort, uint64_t page, void *dst, GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_FETCH, caller_job);

	if (job == NULL)
		return;
	job->number = page;
	job->dst = dst;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state != SORT_PERFORMED)
		job->status = fail(&job->error, GS_INVALID, "fetch before perform, or while rows are moved");
	else if (page >= sort->order.n_pages)
		job->status = fail(&job->error, GS_INVALID, "page %llu of %llu", (unsigned long long) page,
						   (unsigned long long) sort->order.n_pages);
	pthread_mutex_unlock(&sort->device->lock);
	submit_job(job);
}

static void
host_fetch_image(GsDeviceSort *sort, uint64_t i, void *dst, GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_FETCH_IMAGE, caller_job);

	if (job == NULL)
		return;
	job->dst = dst;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state == SORT_PERFORMING || sort->queues[JOB_APPEND].n > 0)
		job->status = fail(&job->error, GS_INVALID, "fetch_image before append or perform has ended");
	else if (i >= sort->n_images)
		job->status = fail(&job->error, GS_INVALID, "image %llu of %llu", (unsigned long long) i,
						   (unsigned long long) sort->n_images);
	else
		job->image = sort->images[i];
	pthread_mutex_unlock(&sort->device->lock);
	submit_job(job);
}

static void
host_fetch_keys(GsDeviceSort *sort, uint64_t first, void *dst, size_t bytes, uint64_t *n_keys,
				GsJob *caller_job)
{
	HostJob    *job;

	*n_keys = 0;
	job = begin_job(sort, JOB_FETCH_KEYS, caller_job);
	if (job == NULL)
		return;
	job->number = first;
	job->dst = dst;
	job->bytes = bytes;
	job->n_keys = n_keys;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state != SORT_PERFORMED)
		job->status = fail(&job->error, GS_INVALID,
						   "fetch_keys before perform, or while rows are moved");
	else if (first > sort->order.n_rows)
		job->status = fail(&job->error, GS_INVALID, "key %llu of %llu", (unsigned long long) first,
						   (unsigned long long) sort->order.n_rows);
	pthread_mutex_unlock(&sort->device->lock);
	submit_job(job);
}

static void
host_reorder(GsDeviceSort *sort, const uint64_t *to, const uint64_t *from, uint64_t n,
			 GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_REORDER, caller_job);
	GsDevice   *device = sort->device;

	if (job == NULL)
		return;
	job->to = to;
	job->from = from;
	job->number = n;
	pthread_mutex_lock(&device->lock);
	if (sort->state != SORT_PERFORMED)
		job->status = fail(&job->error, GS_INVALID, "reorder before perform, or twice at once");
	else if (sort->queues[JOB_FETCH].n > 0 || sort->queues[JOB_FETCH_KEYS].n > 0)
		job->status = fail(&job->error, GS_INVALID, "reorder before a fetch has ended");
	else if (n > sort->order.n_rows)
		job->status = fail(&job->error, GS_INVALID, "%llu rows of %llu were to be moved",
						   (unsigned long long) n, (unsigned long long) sort->order.n_rows);
	else
	{
		uint64_t	memory = gs_host_reorder_bytes(&sort->order, n);

		if (!fits(job, memory))
			job->status = GS_NO_MEMORY;
		else
		{
			job->work_memory = memory;
			job->reordering = true;
			sort->state = SORT_REORDERING;
			sort->memory_used += memory;
			device->memory_used += memory;
		}
	}
	pthread_mutex_unlock(&device->lock);
	submit_job(job);
}

static void
host_sort_arrays(GsDeviceSort *sort, void *chunk, uint32_t data_bytes, uint32_t n_arrays,
				 GsJob *caller_job)
{
	HostJob    *job = begin_job(sort, JOB_SORT_ARRAYS, caller_job);
	GsDevice   *device = sort->device;

	if (job == NULL)
		return;
	job->dst = chunk;
	job->image.data_bytes = data_bytes;
	job->image.n_records = n_arrays;
	if (sort->spec.elem == GS_ELEM_NONE)
		job->status = fail(&job->error, GS_INVALID, "sort_arrays of a sort of rows");
	else if ((uint64_t) data_bytes + (uint64_t) n_arrays * sizeof(GsRecord) > sort->spec.chunk_bytes)
		job->status = fail(&job->error, GS_INVALID, "%u bytes and %u arrays in a chunk of %u bytes",
						   data_bytes, n_arrays, sort->spec.chunk_bytes);
	else
	{
		pthread_mutex_lock(&device->lock);
		if (!fits(job, data_bytes))
			job->status = GS_NO_MEMORY;
		else
		{
			job->work_memory = data_bytes;
			sort->memory_used += data_bytes;
			device->memory_used += data_bytes;
		}
		pthread_mutex_unlock(&device->lock);
	}
	submit_job(job);
}

static void
host_result(GsDeviceSort *sort, GsSortResult *result)
{
	memset(result, 0, sizeof(*result));
	pthread_mutex_lock(&sort->device->lock);
	result->n_images = sort->n_images;
	result->image_records = sort->image_records;
	result->image_bytes = sort->image_bytes;
	result->row_bytes = sort->row_bytes;
	result->key_bytes = sort->key_bytes;
	result->copy_in_ms = sort->queues[JOB_APPEND].ms;
	result->sort_ms = sort->queues[JOB_PERFORM].ms + sort->queues[JOB_REORDER].ms +
		sort->queues[JOB_SORT_ARRAYS].ms;
	result->gather_ms = sort->queues[JOB_FETCH].ms + sort->queues[JOB_FETCH_KEYS].ms;
	result->copy_out_ms = sort->queues[JOB_FETCH_IMAGE].ms;
	result->engine = "host radix";
	if (sort->spec.elem != GS_ELEM_NONE)
		result->n_rows = sort->n_rows;
	else if (sort->state == SORT_PERFORMED || sort->state == SORT_REORDERING)
	{
		result->n_rows = sort->order.n_rows;
		result->n_pages = sort->order.n_pages;
		result->page_first = sort->order.page_first;
		result->rounds = sort->order.rounds;
	}
	pthread_mutex_unlock(&sort->device->lock);
}

const GsDeviceOps gs_device_host = {
	.name = "host",
	.open = host_open,
	.close = host_close,
	.info = host_info,
	.pin = host_pin,
	.trim = host_trim,
	.sort_open = host_sort_open,
	.append = host_append,
	.perform = host_perform,
	.fetch = host_fetch,
	.fetch_image = host_fetch_image,
	.fetch_keys = host_fetch_keys,
	.reorder = host_reorder,
	.sort_arrays = host_sort_arrays,
	.result = host_result,
	.cancel = host_cancel,
	.sort_close = host_sort_close
};
