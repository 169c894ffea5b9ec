/*-------------------------------------------------------------------------
 *
 * spill_io.c
 *	  Threads and files of sorts that are in temporary files, and how jobs end.
 *
 * A task is a list of parts, each a piece of a file and where it lies in
 * memory.  Offsets in files are assigned by the calling thread, which also
 * makes the files; so threads share nothing but descriptors.  Parts that follow
 * each other in one file are one system call.
 *
 * Removing a large file takes as long as the kernel needs to drop its pages:
 * for many GB, seconds.  That happens when its last descriptor is closed, and so
 * a thread does it.  The names are gone before, when gs_spill_close() returns.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "spill/spill_private.h"

/* Pieces of memory in one system call; a block takes two. */
#define MAX_IOV		64

static const char *const action_names[GS_SPILL_ACTIONS] = {"create", "write to", "read from"};

bool
gs_spill_grow(void **items, uint64_t n, uint64_t *room, size_t item_bytes)
{
	uint64_t	larger = *room * 2 > n ? *room * 2 : n;
	void	   *moved;

	if (n <= *room)
		return true;
	moved = realloc(*items, larger * item_bytes);
	if (moved == NULL)
		return false;
	*items = moved;
	*room = larger;
	return true;
}

/* ---- failures ---- */

static void
file_path(const GsSpill *spill, uint8_t file, char *path)
{
	snprintf(path, GS_SPILL_PATH_BYTES, "%s.%u", spill->path, file);
}

/* Note a failure, unless there was one before. */
static void
note_failure(GsSpill *spill, GsSpillAction action, uint8_t file, int error_number)
{
	pthread_mutex_lock(&spill->failure_lock);
	if (spill->failure.error_number == 0)
	{
		spill->failure.error_number = error_number;
		spill->failure.action = action_names[action];
		file_path(spill, file, spill->failure.path);
		__atomic_store_n(&spill->has_failed, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&spill->failure_lock);
}

const GsSpillFailure *
gs_spill_failure(const GsSpill *spill)
{
	static const GsSpillFailure none = {0, "", ""};

	return __atomic_load_n(&spill->has_failed, __ATOMIC_ACQUIRE) ? &spill->failure : &none;
}

#ifdef GPUSORT_FAULTS
void
gs_spill_plant(GsSpill *spill, const char *action, int error_number)
{
	for (int i = 0; i < GS_SPILL_ACTIONS; i++)
		if (strcmp(action, action_names[i]) == 0)
			__atomic_store_n(&spill->planted[i], error_number, __ATOMIC_RELAXED);
}

static int
planted_error(GsSpill *spill, GsSpillAction action)
{
	return __atomic_exchange_n(&spill->planted[action], 0, __ATOMIC_RELAXED);
}
#else
#define planted_error(spill, action) 0
#endif

/* ---- files ---- */

static int
open_file(const char *path)
{
	int			fd;

	do
		fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Make a file, and its folder where there is none.  Returns 0 or errno. */
static int
create_file(GsSpill *spill, uint8_t file)
{
	char		path[GS_SPILL_PATH_BYTES];
	char	   *slash;
	int			error_number = planted_error(spill, GS_SPILL_CREATE);
	int			fd;

	if (error_number != 0)
		return error_number;
	file_path(spill, file, path);
	fd = open_file(path);
	slash = strrchr(path, '/');
	if (fd < 0 && errno == ENOENT && slash != NULL)
	{
		*slash = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return errno;
		*slash = '/';
		fd = open_file(path);
	}
	if (fd < 0)
		return errno;
	spill->files[file].fd = fd;
	return 0;
}

/* Move on by what a system call has transferred. */
static struct iovec *
skip_bytes(struct iovec *iov, int *n_iov, size_t bytes)
{
	while (*n_iov > 0 && bytes >= iov->iov_len)
	{
		bytes -= iov->iov_len;
		iov++;
		--*n_iov;
	}
	if (*n_iov > 0)
	{
		iov->iov_base = (char *) iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
	return iov;
}

/* Transfer all of it; iov is changed.  Returns 0 or errno. */
static int
transfer(GsSpill *spill, GsSpillAction action, uint8_t file, uint64_t offset, struct iovec *iov,
		 int n_iov)
{
	int			fd = spill->files[file].fd;
	int			error_number = planted_error(spill, action);

	if (error_number != 0)
		return error_number;
	while (n_iov > 0)
	{
		ssize_t		n;

		if (action == GS_SPILL_WRITE)
			n = pwritev(fd, iov, n_iov, (off_t) offset);
		else
			n = preadv(fd, iov, n_iov, (off_t) offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return action == GS_SPILL_WRITE ? ENOSPC : EIO;
		offset += (uint64_t) n;
		iov = skip_bytes(iov, &n_iov, (size_t) n);
	}
	return 0;
}

static void
add_memory(struct iovec *iov, int *n_iov, void *memory, size_t bytes)
{
	if (bytes == 0)
		return;
	iov[*n_iov].iov_base = memory;
	iov[(*n_iov)++].iov_len = bytes;
}

static void
transfer_parts(GsSpillTask *task)
{
	struct iovec iov[MAX_IOV];

	for (uint32_t i = 0; i < task->n_parts && task->error_number == 0;)
	{
		const GsSpillPart *first = &task->parts[i];
		uint64_t	end = first->offset;
		int			n_iov = 0;

		for (; i < task->n_parts && n_iov + 2 <= MAX_IOV; i++)
		{
			const GsSpillPart *part = &task->parts[i];
			size_t		records_bytes = part->n_records * sizeof(GsRecord);

			if (part->file != first->file || part->offset != end)
				break;
			add_memory(iov, &n_iov, part->data, part->data_bytes);
			add_memory(iov, &n_iov, part->records, records_bytes);
			end += part->data_bytes + records_bytes;
		}
		task->error_number = transfer(task->spill, task->action, first->file, first->offset,
									  iov, n_iov);
		task->failed_file = first->file;
	}
}

/* ---- tasks ---- */

/* Tell the job's owner. */
static void
end_job(GsSpillIo *io, GsJob *job, GsStatus status)
{
	__atomic_store_n(&job->status, (int32_t) status, __ATOMIC_RELEASE);
	if (io->notify != NULL)
		io->notify(io->notify_arg);
}

void
gs_spill_end_job(GsSpill *spill, GsJob *job, GsStatus status)
{
	if (status == GS_NO_MEMORY)
		snprintf(job->error.message, GS_MESSAGE_BYTES, "out of memory");
	end_job(spill->io, job, status);
}

/* The same, on whatever thread this is; the task is gone then. */
static void
end_task(GsSpillTask *task, GsStatus status)
{
	GsSpillIo  *io = task->spill->io;
	GsJob	   *job = task->job;

	free(task->parts);
	free(task);
	end_job(io, job, status);
}

static void
run_task(GsHostTask *host_task)
{
	GsSpillTask *task = (GsSpillTask *) host_task;

	transfer_parts(task);
	if (task->error_number != 0)
	{
		char		path[GS_SPILL_PATH_BYTES];
		char		reason[64];

		note_failure(task->spill, task->action, task->failed_file, task->error_number);
		file_path(task->spill, task->failed_file, path);
		snprintf(task->job->error.message, GS_MESSAGE_BYTES, "could not %s \"%.80s\": %s",
				 action_names[task->action], path,
				 strerror_r(task->error_number, reason, sizeof(reason)));
		end_task(task, GS_INTERNAL);
		return;
	}
	if (task->finish != NULL)
		task->finish(task);
	end_task(task, GS_OK);
}

GsSpillTask *
gs_spill_task_begin(GsSpill *spill, GsSpillAction action, GsJob *job)
{
	GsSpillTask *task = calloc(1, sizeof(GsSpillTask));

	__atomic_store_n(&job->status, (int32_t) GS_PENDING, __ATOMIC_RELAXED);
	if (task == NULL)
	{
		gs_spill_end_job(spill, job, GS_NO_MEMORY);
		return NULL;
	}
	task->task.run = run_task;
	task->spill = spill;
	task->job = job;
	task->action = action;
	return task;
}

GsSpillPart *
gs_spill_task_part(GsSpillTask *task)
{
	uint64_t	room = task->max_parts;
	void	   *parts = task->parts;

	if (!gs_spill_grow(&parts, (uint64_t) task->n_parts + 1, &room, sizeof(GsSpillPart)))
		return NULL;
	task->parts = parts;
	task->max_parts = (uint32_t) room;
	memset(&task->parts[task->n_parts], 0, sizeof(GsSpillPart));
	return &task->parts[task->n_parts++];
}

bool
gs_spill_task_create(GsSpillTask *task, uint8_t file)
{
	if (task->spill->files[file].fd >= 0)
		return true;
	task->error_number = create_file(task->spill, file);
	if (task->error_number == 0)
		return true;
	task->action = GS_SPILL_CREATE;
	task->failed_file = file;
	return false;
}

void
gs_spill_task_submit(GsSpillTask *task)
{
	gs_host_pool_submit(task->spill->io->pool, &task->task);
}

void
gs_spill_task_no_memory(GsSpillTask *task)
{
	snprintf(task->job->error.message, GS_MESSAGE_BYTES, "out of memory");
	end_task(task, GS_NO_MEMORY);
}

/* ---- opening and closing ---- */

GsSpillIo *
gs_spill_io_open(int threads, void (*notify) (void *arg), void *notify_arg)
{
	GsSpillIo  *io = calloc(1, sizeof(GsSpillIo));

	if (io == NULL)
		return NULL;
	io->notify = notify;
	io->notify_arg = notify_arg;
	io->pool = gs_host_pool_open(threads);
	if (io->pool != NULL)
		return io;
	free(io);
	return NULL;
}

void
gs_spill_io_close(GsSpillIo *io)
{
	gs_host_pool_close(io->pool);
	io->pool = NULL;
	if (io->n_spills == 0)
		free(io);
}

GsSpill *
gs_spill_open(GsSpillIo *io, const char *path, uint32_t chunk_bytes)
{
	GsSpill    *spill;

	if (strlen(path) >= sizeof(spill->path))
		return NULL;
	spill = calloc(1, sizeof(GsSpill));
	if (spill == NULL)
		return NULL;
	pthread_mutex_init(&spill->failure_lock, NULL);
	spill->io = io;
	spill->chunk_bytes = chunk_bytes;
	strcpy(spill->path, path);
	for (int i = 0; i < GS_SPILL_FILES; i++)
		spill->files[i].fd = -1;
	io->n_spills++;
	return spill;
}

static void
clean_up(GsHostTask *task)
{
	GsSpill    *spill = (GsSpill *) task;

	for (int i = 0; i < GS_SPILL_FILES; i++)
		if (spill->files[i].fd >= 0)
			(void) close(spill->files[i].fd);
	gs_spill_ranges_free(spill);
	gs_spill_runs_free(spill);
	pthread_mutex_destroy(&spill->failure_lock);
	free(spill);
}

void
gs_spill_close(GsSpill *spill)
{
	GsSpillIo  *io = spill->io;
	char		path[GS_SPILL_PATH_BYTES];

	for (uint8_t i = 0; i < GS_SPILL_FILES; i++)
		if (spill->files[i].fd >= 0)
		{
			file_path(spill, i, path);
			(void) unlink(path);
		}
	spill->cleanup.run = clean_up;
	io->n_spills--;
	if (io->pool != NULL)
		gs_host_pool_submit(io->pool, &spill->cleanup);
	else
	{
		clean_up(&spill->cleanup);
		if (io->n_spills == 0)
			free(io);
	}
}

uint64_t
gs_spill_bytes(const GsSpill *spill)
{
	uint64_t	bytes = 0;

	for (int i = 0; i < GS_SPILL_FILES; i++)
		bytes += spill->files[i].bytes;
	return bytes;
}
