/*-------------------------------------------------------------------------
 *
 * host_jobs.c
 *	  Running and ending the jobs of the host device.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_arrays.h"
#include "host/host_jobs.h"

GsStatus
gs_host_fail(GsError *error, GsStatus status, const char *format,...)
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

/* Applies a job that has run to its sort.  The lock is held. */
static void
apply_job(GsDeviceSort *sort, GsHostJob *job)
{
	uint64_t	unused = job->reserved;

	if (job->kind == GS_HOST_APPEND)
	{
		if (job->status == GS_OK)
		{
			unused = 0;
			sort->images[sort->n_images++] = job->image;
			sort->row_bytes += job->row_bytes;
			sort->key_bytes += job->key_bytes;
			if (sort->max_record < job->max_record)
				sort->max_record = job->max_record;
		}
		else
			sort->n_rows -= job->image.n_records;
	}
	else if (job->kind == GS_HOST_PERFORM && sort->state == GS_HOST_PERFORMING)
	{
		sort->state = job->status == GS_OK ? GS_HOST_PERFORMED : GS_HOST_FILLING;
		if (job->status == GS_OK)
			unused = sort->n_rows * (GS_HOST_WORK_BYTES - GS_HOST_KEEP_BYTES);
	}
	else if (job->kind == GS_HOST_SORT_ARRAYS && job->status == GS_OK)
	{
		sort->n_rows += job->image.n_records;
		sort->row_bytes += job->row_bytes;
	}
	sort->memory_used -= unused;
	sort->device->memory_used -= unused;
}

/* Notes that a job has run, and ends the jobs that may end. */
static void
finish_job(GsHostJob *job)
{
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	GsHostQueue   *queue = &sort->queues[job->kind];
	uint32_t	n_ended = 0;

	pthread_mutex_lock(&device->lock);
	job->has_run = true;
	if (--queue->n_running == 0)
		queue->ms += gs_machine_now_ms() - queue->running_since;
	while (queue->first != NULL && queue->first->has_run)
	{
		GsHostJob    *ended = queue->first;

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

/*
 * Makes a record's missing key, behind the keys that were made before; *used is their end.  If the key
 * cannot be made, the record is left as it is.
 */
static void
make_key(const GsTupleKeys *keys, const GsHostImage *image, GsRecord *record, GsLibcScratch *scratch,
		 uint32_t *used)
{
	size_t		begin = gs_host_image_bytes(image->data_bytes, image->n_records);
	const uint8_t *row = (const uint8_t *) image->data + record->row_off;
	uint32_t	row_len = record->row_len & GS_LENGTH_MASK;
	GsTupleValue values[GS_TUPLE_COLUMNS];
	uint32_t	key_len;

	if (keys->n_columns == 0 || (uint64_t) record->row_off + row_len > image->data_bytes)
		return;
	key_len = gs_tuple_key_find(keys, row, row_len, values);
	if (key_len == 0 || key_len > image->key_bytes - *used)
		return;
	key_len = gs_tuple_key_write(keys, row, values, scratch, (uint8_t *) image->data + begin + *used,
								 image->key_bytes + GS_TEXT_SLACK - *used);
	if (key_len == 0 || key_len > image->key_bytes - *used)
		return;
	record->key_off = (uint32_t) begin + *used;
	record->key_len = key_len;
	*used += key_len;
}

/* Copies a chunk, checks its records, and makes missing keys. */
static void
run_append(GsHostJob *job)
{
	const GsSortSpec *spec = &job->sort->spec;
	GsHostImage *image = &job->image;
	size_t		records_bytes = image->n_records * sizeof(GsRecord);
	uint32_t	max_row = gs_max_row_bytes(spec->chunk_bytes);
	size_t		end = gs_host_image_bytes(image->data_bytes, image->n_records);
	GsLibcScratch *scratch = NULL;
	uint32_t	made = 0;

	/* not GS_NO_MEMORY: later appends may succeed */
	if (image->key_bytes > 0 && spec->tuple_keys.table != NULL &&
		spec->tuple_keys.table->kind == GS_TEXT_LIBC && (scratch = gs_libc_scratch_create()) == NULL)
	{
		job->status = gs_host_fail(&job->error, GS_INTERNAL, "out of memory");
		return;
	}
	memcpy(image->data, job->chunk, image->data_bytes);
	memcpy(image->data + end - records_bytes, job->chunk + spec->chunk_bytes - records_bytes,
		   records_bytes);
	for (uint32_t i = 0; i < image->n_records; i++)
	{
		GsRecord   *record = gs_host_image_record(image, i);
		bool		missing = record->key_len == GS_KEY_MISSING;
		uint32_t	row_len = record->row_len & GS_LENGTH_MASK;
		uint32_t	key_len;
		GsHostRow	row;
		uint64_t	page_bytes;

		if (missing)
			make_key(&spec->tuple_keys, image, record, scratch, &made);
		key_len = record->key_len & GS_LENGTH_MASK;
		row = (GsHostRow){.len = row_len, .key_len = key_len};
		page_bytes = gs_host_page_bytes(GS_FORMAT_CHUNKS, &row);
		if (record->row_off % 8 != 0 || row_len > max_row ||
			(uint64_t) record->row_off + row_len > image->data_bytes ||
			(uint64_t) record->key_off + key_len > (missing ? end + made : image->data_bytes))
		{
			job->status = gs_host_fail(&job->error, GS_INVALID,
							   "record %u of a chunk has a row of %u bytes at %u and a key of %u bytes at %u of %u",
							   i, row_len, record->row_off,
							   key_len, record->key_off, image->data_bytes);
			break;
		}
		job->row_bytes += row_len;
		job->key_bytes += key_len;
		if (job->max_record < page_bytes)
			job->max_record = page_bytes;
	}
	free(scratch);
	if (job->status == GS_PENDING)
		job->status = GS_OK;
}

static void
run_perform(GsHostJob *job)
{
	GsDeviceSort *sort = job->sort;

	job->status = gs_host_order(sort->device->pool, sort->images, sort->n_images, job->format,
								&job->keep, sort->spec.chunk_bytes, &sort->cancel, &sort->order);
	if (job->status == GS_NO_MEMORY)
		gs_host_fail(&job->error, GS_NO_MEMORY, "out of memory while ordering %llu rows",
			 (unsigned long long) sort->n_rows);
}

static void
run_fetch_image(GsHostJob *job)
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
run_sort_arrays(GsHostJob *job)
{
	job->status = gs_host_sort_arrays(&job->sort->spec, job->dst, job->image.data_bytes,
									  job->image.n_records, &job->sort->cancel, &job->row_bytes,
									  &job->error);
}

static void
run_job(GsTask *task)
{
	GsHostJob    *job = (GsHostJob *) task;
	GsDeviceSort *sort = job->sort;
	GsDevice   *device = sort->device;
	GsHostQueue   *queue = &sort->queues[job->kind];

	pthread_mutex_lock(&device->lock);
	if (queue->n_running++ == 0)
		queue->running_since = gs_machine_now_ms();
	pthread_mutex_unlock(&device->lock);

	if (job->status == GS_PENDING && gs_host_is_cancelled(sort))
		job->status = GS_CANCELLED;
	if (job->status == GS_PENDING)
	{
		switch (job->kind)
		{
			case GS_HOST_APPEND:
				run_append(job);
				break;
			case GS_HOST_PERFORM:
				run_perform(job);
				break;
			case GS_HOST_FETCH:
				gs_host_gather(&sort->order, job->number, sort->spec.chunk_bytes, job->dst);
				job->status = GS_OK;
				break;
			case GS_HOST_FETCH_IMAGE:
				run_fetch_image(job);
				break;
			case GS_HOST_SORT_ARRAYS:
				run_sort_arrays(job);
				break;
		}
	}
	finish_job(job);
}

GsHostJob *
gs_host_job_begin(GsDeviceSort *sort, GsHostJobKind kind, GsJob *job)
{
	GsHostJob    *made = calloc(1, sizeof(GsHostJob));

	if (made == NULL)
	{
		const GsDeviceConfig *config = &sort->device->config;

		gs_host_fail(&job->error, GS_NO_MEMORY, "out of memory");
		__atomic_store_n(&job->status, (int32_t) GS_NO_MEMORY, __ATOMIC_RELEASE);
		if (config->notify != NULL)
			config->notify(config->notify_arg);
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

void
gs_host_job_submit(GsHostJob *job)
{
	GsDeviceSort *sort = job->sort;
	GsHostQueue   *queue = &sort->queues[job->kind];

	pthread_mutex_lock(&sort->device->lock);
	if (queue->last != NULL)
		queue->last->next = job;
	else
		queue->first = job;
	queue->last = job;
	queue->n++;
	sort->n_pending++;
	pthread_mutex_unlock(&sort->device->lock);
	gs_pool_submit(sort->device->pool, &job->task);
}
