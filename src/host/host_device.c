/*-------------------------------------------------------------------------
 *
 * host_device.c
 *	  The host device: sorts on the CPU, with threads of its own.
 *
 * Machines without a GPU run it, and it is the reference for other devices.  This file has the protocol's
 * calls: legality, memory, errors.  Jobs are in host_jobs.c, and ordering is in host_order.c and, for one
 * thread, in base/string_sort.c.  host_pages.c makes pages, host_arrays.c sorts arrays, base/threads.c has
 * the threads, and base/machine.c asks the machine.
 *
 * Jobs
 *	  A call checks what it can, reserves memory, and submits a task to the pool, even if it is known to
 *	  fail: jobs end on the device's threads only.  Jobs of one kind of a sort are in a queue.  They may run
 *	  in any order, but end in the order of the queue.  The thread that runs the first job also ends the
 *	  jobs behind it that have run.  So several threads copy chunks at the same time, and the chunks become
 *	  images in their order.
 *
 * Memory
 *	  An append reserves, in the call, the memory of its image and of ordering its rows.  So perform never
 *	  exceeds the limit.  Once an append is refused, the sort refuses later ones, so the images are always
 *	  the first chunks appended.  The device shares the machine's memory with all others.  So under the
 *	  default limit, appends are also refused while the machine has little memory left.  Images are in slabs
 *	  of the sort.  Slabs grow from chunk to chunk, as large slabs get large pages, which speeds up reading
 *	  rows in random order.  No slab is freed before close.
 *
 * Threads
 *	  GsDevice.lock protects all fields marked so.  No other lock is taken while it is held, and no long
 *	  work is done.  After the status of a sort's last pending job is set and the lock released, the sort
 *	  must not be touched, as the caller may close it.  A job must not be touched after its status is set.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_jobs.h"

#define MAX_THREADS 1024
#define MIN_CHUNK_BYTES 1024

/* ---- opening and closing ---- */

/* The machine needs some memory for everything else. */
static void
host_set_memory_limit(GsDevice *device, uint64_t bytes)
{
	uint64_t	most = device->info.memory_total / 10 * 9;

	device->limit_is_default = bytes == 0;
	if (bytes == 0)
		device->info.memory_limit = device->default_limit;
	else
		device->info.memory_limit = bytes < most ? bytes : most;
}

static int
host_count(GsError *error)
{
	(void) error;
	return 1;
}

static int
host_find(const char *uuid)
{
	(void) uuid;
	return -1;
}

static GsStatus
host_open(const GsDeviceConfig *config, GsDevice **device, GsError *error)
{
	GsDevice   *made;
	int			threads = config->threads > 0 ? config->threads : gs_machine_cores();

	if (config->ordinal != 0)
		return gs_host_fail(error, GS_NO_DEVICE, "there is no host device %d", config->ordinal);
	made = calloc(1, sizeof(GsDevice));
	if (made == NULL)
		return gs_host_fail(error, GS_NO_MEMORY, "out of memory");
	made->config = *config;
	made->info.memory_total = gs_machine_total_memory();
	made->default_limit = gs_machine_default_limit(made->info.memory_total);
	if (config->opened > 1)
		made->default_limit /= (uint64_t) config->opened;
	host_set_memory_limit(made, config->memory_limit);
	made->pool = gs_pool_open(threads < MAX_THREADS ? threads : MAX_THREADS);
	if (made->pool == NULL)
	{
		free(made);
		return gs_host_fail(error, GS_NO_MEMORY, "could not start a thread");
	}
	threads = gs_pool_threads(made->pool);
	snprintf(made->info.name, sizeof(made->info.name), "host, %d thread%s", threads, threads == 1 ? "" : "s");
	made->info.threads = threads;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->idle, NULL);
	*device = made;
	return GS_OK;
}

static void
host_info(GsDevice *device, GsDeviceInfo *info)
{
	*info = device->info;
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

/* Returns free memory to the system; musl's malloc() does that by itself. */
static void
return_memory(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* A thread's task. */
static void
trim(GsTask *task)
{
	return_memory();
	free(task);
}

static void
host_trim(GsDevice *device)
{
	GsTask *task = calloc(1, sizeof(GsTask));

	if (task == NULL)
		return;
	task->run = trim;
	gs_pool_submit(device->pool, task);
}

static GsStatus
host_sort_open(GsDevice *device, const GsSortSpec *spec, GsDeviceSort **sort, GsError *error)
{
	GsDeviceSort *made;
	uint32_t	chunk_bytes = spec->chunk_bytes;

	if (chunk_bytes < MIN_CHUNK_BYTES || (chunk_bytes & (chunk_bytes - 1)) != 0)
		return gs_host_fail(error, GS_INVALID, "chunks cannot have %u bytes", chunk_bytes);
	if (gs_engine_name(spec->engine) == NULL)
		return gs_host_fail(error, GS_INVALID, "there is no engine %d", (int) spec->engine);
	if (spec->elem != GS_ELEM_NONE && gs_elem_bytes(spec->elem) == 0)
		return gs_host_fail(error, GS_INVALID, "there are no arrays of elements %d", (int) spec->elem);
	made = calloc(1, sizeof(GsDeviceSort));
	if (made == NULL)
		return gs_host_fail(error, GS_NO_MEMORY, "out of memory");
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

/* A thread's task, as freeing much memory takes long. */
static void
free_sort(GsTask *task)
{
	GsDeviceSort *sort = (GsDeviceSort *) task;

	gs_slabs_free(&sort->slabs);
	free(sort->images);
	gs_host_order_free(&sort->order);
	if (sort->trims)
		return_memory();
	free(sort);
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
	sort->trims = device->memory_used > device->info.memory_limit / 4 * 3;
	device->memory_used -= sort->memory_used;
	pthread_mutex_unlock(&device->lock);

	while (*link != sort)
		link = &(*link)->next;
	*link = sort->next;
	sort->cleanup.run = free_sort;
	gs_pool_submit(device->pool, &sort->cleanup);
}

static void
host_close(GsDevice *device)
{
	for (GsDeviceSort *sort = device->sorts; sort != NULL; sort = sort->next)
		host_cancel(sort);
	while (device->sorts != NULL)
		host_sort_close(device->sorts);
	gs_pool_close(device->pool);
	pthread_cond_destroy(&device->idle);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

/* ---- sorting ---- */

/*
 * Reserves a job's bytes, below the limit.  The caller holds the lock.
 * The job's end frees what the sort does not keep.
 */
static bool
reserve(GsHostJob *job, uint64_t memory)
{
	GsDevice   *device = job->sort->device;

	if (device->memory_used + memory <= device->info.memory_limit)
	{
		job->reserved = memory;
		job->sort->memory_used += memory;
		device->memory_used += memory;
		return true;
	}
	gs_host_fail(&job->error, GS_NO_MEMORY,
		 "%llu bytes more than the %llu in use would exceed the limit of %llu",
		 (unsigned long long) memory, (unsigned long long) device->memory_used,
		 (unsigned long long) device->info.memory_limit);
	return false;
}

/*
 * Does the machine have memory left for others once the bytes are reserved?  Only appends ask, since a
 * caller whose append is refused can go on.
 */
static bool
machine_has_memory(GsHostJob *job, uint64_t memory)
{
	GsDevice   *device = job->sort->device;
	uint64_t	available;

	if (!device->limit_is_default ||
		gs_machine_may_reserve(device->info.memory_total, memory, &device->unwatched, &available))
		return true;
	gs_host_fail(&job->error, GS_NO_MEMORY, "the machine has only %llu of %llu bytes of memory left",
		 (unsigned long long) available, (unsigned long long) device->info.memory_total);
	return false;
}

/*
 * Reserves what an append needs: memory for its image and for ordering its rows, and room in the array of
 * images.
 */
static GsStatus
reserve_append(GsHostJob *job, uint32_t data_bytes, uint32_t n_records, uint32_t key_bytes)
{
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	size_t		image_bytes = gs_host_image_bytes(data_bytes, n_records) +
		(key_bytes > 0 ? key_bytes + GS_TEXT_SLACK : 0);
	uint64_t	memory = image_bytes + (uint64_t) n_records * GS_HOST_WORK_BYTES;
	GsStatus	status = GS_OK;

	if (!machine_has_memory(job, memory))
		return GS_NO_MEMORY;
	pthread_mutex_lock(&device->lock);
	if (!reserve(job, memory))
		status = GS_NO_MEMORY;
	else if (sort->n_rows + n_records > GS_HOST_MAX_ROWS)
		status = gs_host_fail(&job->error, GS_NO_MEMORY, "more than %llu rows",
					  (unsigned long long) GS_HOST_MAX_ROWS);
	else if (!gs_grow((void **) &sort->images, sort->n_images + sort->queues[GS_HOST_APPEND].n + 1,
						   &sort->max_images, sizeof(GsHostImage)) ||
			 (job->image.data = gs_slab_allocate(&sort->slabs, image_bytes,
													  sort->spec.chunk_bytes)) == NULL)
		status = gs_host_fail(&job->error, GS_NO_MEMORY, "out of memory");
	else
	{
		job->image.data_bytes = data_bytes;
		job->image.n_records = n_records;
		job->image.key_bytes = key_bytes;
		sort->n_rows += n_records;
	}
	pthread_mutex_unlock(&device->lock);
	return status;
}

static void
host_append(GsDeviceSort *sort, const void *chunk, uint32_t data_bytes, uint32_t n_records,
			uint32_t key_bytes, GsJob *caller_job)
{
	GsHostJob    *job = gs_host_job_begin(sort, GS_HOST_APPEND, caller_job);
	GsHostSortState	state;

	if (job == NULL)
	{
		sort->refused = true;
		return;
	}
	job->chunk = chunk;
	pthread_mutex_lock(&sort->device->lock);
	state = sort->state;
	pthread_mutex_unlock(&sort->device->lock);
	if (state != GS_HOST_FILLING || sort->spec.elem != GS_ELEM_NONE)
		job->status = gs_host_fail(&job->error, GS_INVALID, "append after perform, or to a sort of arrays");
	else if ((uint64_t) data_bytes + (uint64_t) n_records * sizeof(GsRecord) > sort->spec.chunk_bytes)
		job->status = gs_host_fail(&job->error, GS_INVALID, "%u bytes and %u records in a chunk of %u bytes",
						   data_bytes, n_records, sort->spec.chunk_bytes);
	else if (sort->refused)
		job->status = gs_host_fail(&job->error, GS_NO_MEMORY, "an earlier chunk was refused");
	else if (!gs_host_is_cancelled(sort))
	{
		GsStatus	status = reserve_append(job, data_bytes, n_records, key_bytes);

		if (status != GS_OK)
		{
			job->status = status;
			sort->refused = true;
		}
	}
	gs_host_job_submit(job);
}

static void
host_resume(GsDeviceSort *sort)
{
	sort->refused = false;
}

static void
host_perform(GsDeviceSort *sort, GsPageFormat format, const GsKeep *keep, GsJob *caller_job)
{
	GsHostJob    *job = gs_host_job_begin(sort, GS_HOST_PERFORM, caller_job);

	if (job == NULL)
		return;
	job->format = format;
	if (keep != NULL)
		job->keep = *keep;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state != GS_HOST_FILLING || sort->queues[GS_HOST_APPEND].n > 0)
		job->status = gs_host_fail(&job->error, GS_INVALID, "perform twice, or before append has ended");
	else if (sort->spec.elem != GS_ELEM_NONE)
		job->status = gs_host_fail(&job->error, GS_INVALID, "perform of a sort of arrays");
	else if (sort->queues[GS_HOST_FETCH_IMAGE].n > 0)
		job->status = gs_host_fail(&job->error, GS_INVALID, "perform before fetch_image has ended");
	else if (format == GS_FORMAT_CHUNKS && sort->max_record > sort->spec.chunk_bytes)
		job->status = gs_host_fail(&job->error, GS_INVALID,
						   "a row and its key take %llu bytes in a chunk of %u",
						   (unsigned long long) sort->max_record, sort->spec.chunk_bytes);
	else
		sort->state = GS_HOST_PERFORMING;
	pthread_mutex_unlock(&sort->device->lock);
	gs_host_job_submit(job);
}

static void
host_fetch(GsDeviceSort *sort, uint64_t page, void *dst, GsJob *caller_job)
{
	GsHostJob    *job = gs_host_job_begin(sort, GS_HOST_FETCH, caller_job);

	if (job == NULL)
		return;
	job->number = page;
	job->dst = dst;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state != GS_HOST_PERFORMED)
		job->status = gs_host_fail(&job->error, GS_INVALID, "fetch before perform");
	else if (page >= sort->order.n_pages)
		job->status = gs_host_fail(&job->error, GS_INVALID, "page %llu of %llu", (unsigned long long) page,
						   (unsigned long long) sort->order.n_pages);
	pthread_mutex_unlock(&sort->device->lock);
	gs_host_job_submit(job);
}

static void
host_fetch_image(GsDeviceSort *sort, uint64_t i, void *dst, uint32_t *n_records, GsJob *caller_job)
{
	GsHostJob    *job;

	*n_records = 0;
	job = gs_host_job_begin(sort, GS_HOST_FETCH_IMAGE, caller_job);
	if (job == NULL)
		return;
	job->dst = dst;
	pthread_mutex_lock(&sort->device->lock);
	if (sort->state == GS_HOST_PERFORMING || sort->queues[GS_HOST_APPEND].n > 0)
		job->status = gs_host_fail(&job->error, GS_INVALID, "fetch_image before append or perform has ended");
	else if (i >= sort->n_images)
		job->status = gs_host_fail(&job->error, GS_INVALID, "image %llu of %llu", (unsigned long long) i,
						   (unsigned long long) sort->n_images);
	else
	{
		job->image = sort->images[i];
		*n_records = job->image.n_records;
	}
	pthread_mutex_unlock(&sort->device->lock);
	gs_host_job_submit(job);
}

static void
host_sort_arrays(GsDeviceSort *sort, void *chunk, uint32_t data_bytes, uint32_t n_arrays,
				 GsJob *caller_job)
{
	GsHostJob    *job = gs_host_job_begin(sort, GS_HOST_SORT_ARRAYS, caller_job);
	GsDevice   *device = sort->device;

	if (job == NULL)
		return;
	job->dst = chunk;
	job->image.data_bytes = data_bytes;
	job->image.n_records = n_arrays;
	if (sort->spec.elem == GS_ELEM_NONE)
		job->status = gs_host_fail(&job->error, GS_INVALID, "sort_arrays of a sort of rows");
	else if ((uint64_t) data_bytes + (uint64_t) n_arrays * sizeof(GsRecord) > sort->spec.chunk_bytes)
		job->status = gs_host_fail(&job->error, GS_INVALID, "%u bytes and %u arrays in a chunk of %u bytes",
						   data_bytes, n_arrays, sort->spec.chunk_bytes);
	else
	{
		pthread_mutex_lock(&device->lock);
		if (!reserve(job, data_bytes))
			job->status = GS_NO_MEMORY;
		pthread_mutex_unlock(&device->lock);
	}
	gs_host_job_submit(job);
}

static void
host_result(GsDeviceSort *sort, GsSortResult *result)
{
	memset(result, 0, sizeof(*result));
	pthread_mutex_lock(&sort->device->lock);
	result->n_images = sort->n_images;
	result->row_bytes = sort->row_bytes;
	result->key_bytes = sort->key_bytes;
	result->copy_in_ms = sort->queues[GS_HOST_APPEND].ms;
	result->sort_ms = sort->queues[GS_HOST_PERFORM].ms + sort->queues[GS_HOST_SORT_ARRAYS].ms;
	result->gather_ms = sort->queues[GS_HOST_FETCH].ms;
	result->copy_out_ms = sort->queues[GS_HOST_FETCH_IMAGE].ms;
	result->engine = "host radix";
	if (sort->spec.elem != GS_ELEM_NONE)
		result->n_rows = sort->n_rows;
	else if (sort->state == GS_HOST_PERFORMED)
	{
		result->n_rows = sort->order.n_rows;
		result->n_dropped = sort->n_rows - sort->order.n_rows;
		result->n_pages = sort->order.n_pages;
		result->page_first = sort->order.page_first;
	}
	pthread_mutex_unlock(&sort->device->lock);
}

static uint64_t
host_memory_held(GsDeviceSort *sort)
{
	uint64_t	bytes;

	pthread_mutex_lock(&sort->device->lock);
	bytes = sort->memory_used;
	pthread_mutex_unlock(&sort->device->lock);
	return bytes;
}

const GsDeviceOps gs_device_host = {
	.name = "host",
	.count = host_count,
	.find = host_find,
	.open = host_open,
	.close = host_close,
	.info = host_info,
	.pin = host_pin,
	.set_memory_limit = host_set_memory_limit,
	.trim = host_trim,
	.sort_open = host_sort_open,
	.append = host_append,
	.resume = host_resume,
	.perform = host_perform,
	.fetch = host_fetch,
	.fetch_image = host_fetch_image,
	.sort_arrays = host_sort_arrays,
	.result = host_result,
	.memory_held = host_memory_held,
	.cancel = host_cancel,
	.sort_close = host_sort_close
};
