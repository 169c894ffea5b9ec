/*-------------------------------------------------------------------------
 *
 * spill_io.c
 *	  Threads and files of sorts that are in temporary files, and how jobs end.
 *
 * Only the thread that has coded something knows how many bytes that takes in a file.  So that thread makes
 * the file, and takes a place at its end.  The calling thread never waits for a file system: it does not
 * open, close or remove files, except if there is no memory for a thread's task (gs_spill_forget_pages()).
 *
 * Tests: unit/plain/test_spill, tap/spill_faults
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spill/spill_private.h"

const char *const gs_spill_action_names[GS_SPILL_ACTIONS] = {"create", "write to", "read from"};

/* ---- failures ---- */

/* Files of pages are made again under other names: a thread may not have removed the former ones yet. */
static void
file_path(const GsSpill *spill, uint8_t file, char *path)
{
	snprintf(path, GS_SPILL_PATH_BYTES, "%s.%u", spill->path,
			 file + (file >= GS_SPILL_STRIPES ? GS_SPILL_STRIPES * spill->n_forgotten : 0));
}

/* Notes the first failure. */
static void
note_failure(GsSpill *spill, GsSpillAction action, uint8_t file, int error_number)
{
	pthread_mutex_lock(&spill->lock);
	if (spill->failure.error_number == 0)
	{
		spill->failure.error_number = error_number;
		spill->failure.action = action;
		file_path(spill, file, spill->failure.path);
		__atomic_store_n(&spill->has_failed, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&spill->lock);
}

const GsSpillFailure *
gs_spill_failure(const GsSpill *spill)
{
	static const GsSpillFailure none = {0};

	return __atomic_load_n(&spill->has_failed, __ATOMIC_ACQUIRE) ? &spill->failure : &none;
}

#ifdef GPUSORT_FAULTS
void
gs_spill_plant(GsSpill *spill, GsSpillAction action, int error_number)
{
	__atomic_store_n(&spill->planted[action], error_number, __ATOMIC_RELAXED);
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
open_file(const GsSpillIo *io, const char *path)
{
	int			fd;

	do
		fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, io->file_mode);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Makes a file, and its folder if it is missing.  Returns 0 or errno; EMFILE: no more files are allowed. */
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
	fd = open_file(spill->io, path);
	slash = strrchr(path, '/');
	if (fd < 0 && errno == ENOENT && slash != NULL)
	{
		*slash = '\0';
		if (mkdir(path, spill->io->folder_mode) != 0 && errno != EEXIST)
			return errno;
		*slash = '/';
		fd = open_file(spill->io, path);
	}
	if (fd < 0)
		return errno == ENFILE ? EMFILE : errno;
	if (fd > spill->io->max_fd)
	{
		(void) close(fd);
		(void) unlink(path);
		return EMFILE;
	}
	spill->files[file].fd = fd;
	return 0;
}

/* Transfers all bytes.  Returns 0 or errno. */
static int
transfer(GsSpill *spill, GsSpillAction action, uint8_t file, uint64_t offset, char *memory,
		 size_t bytes)
{
	int			fd = spill->files[file].fd;
	int			error_number = planted_error(spill, action);
	uint64_t	begin = offset;

	if (error_number != 0)
		return error_number;
	while (bytes > 0)
	{
		ssize_t		n;

		if (action == GS_SPILL_WRITE)
			n = pwrite(fd, memory, bytes, (off_t) offset);
		else
			n = pread(fd, memory, bytes, (off_t) offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return action == GS_SPILL_WRITE ? ENOSPC : EIO;
		offset += (uint64_t) n;
		memory += n;
		bytes -= (size_t) n;
	}
	__atomic_add_fetch(action == GS_SPILL_WRITE ? &spill->written : &spill->read,
					   offset - begin, __ATOMIC_RELAXED);
	return 0;
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

static void
return_scratch(GsSpillIo *io, GsSpillScratch *scratch)
{
	if (scratch == NULL)
		return;
	pthread_mutex_lock(&io->scratch_lock);
	scratch->next = io->scratch;
	io->scratch = scratch;
	pthread_mutex_unlock(&io->scratch_lock);
}

/* Ends a task and its job, on any thread.  The task is freed. */
static void
end_task(GsSpillTask *task)
{
	GsSpillIo  *io = task->spill->io;
	GsJob	   *job = task->job;
	GsStatus	status = task->status;

	return_scratch(io, task->scratch);
	free(task->parts);
	free(task);
	end_job(io, job, status);
}

static void
fail(GsSpillTask *task, GsSpillAction action, uint8_t file, int error_number)
{
	task->status = GS_INTERNAL;
	task->action = action;
	task->file = file;
	task->error_number = error_number;
}

static void
fail_no_memory(GsSpillTask *task, const char *message)
{
	task->status = GS_NO_MEMORY;
	snprintf(task->job->error.message, GS_MESSAGE_BYTES, "%s", message);
}

static void
run_task(GsTask *host_task)
{
	GsSpillTask *task = (GsSpillTask *) host_task;

	if (task->status == GS_OK)
		task->work(task);
	if (task->status == GS_INTERNAL)
	{
		char		path[GS_SPILL_PATH_BYTES];

		note_failure(task->spill, task->action, task->file, task->error_number);
		file_path(task->spill, task->file, path);
		/* for a known number strerror() of glibc and musl returns a constant */
		snprintf(task->job->error.message, GS_MESSAGE_BYTES, "could not %s \"%.80s\": %s",
				 gs_spill_action_names[task->action], path, strerror(task->error_number));
	}
	end_task(task);
}

GsSpillTask *
gs_spill_task_begin(GsSpill *spill, void (*work)(GsSpillTask *task), GsJob *job)
{
	GsSpillTask *task = calloc(1, sizeof(GsSpillTask));

	__atomic_store_n(&job->status, (int32_t) GS_PENDING, __ATOMIC_RELAXED);
	if (task == NULL)
	{
		snprintf(job->error.message, GS_MESSAGE_BYTES, "out of memory");
		end_job(spill->io, job, GS_NO_MEMORY);
		return NULL;
	}
	task->task.run = run_task;
	task->spill = spill;
	task->job = job;
	task->work = work;
	return task;
}

GsSpillPart *
gs_spill_task_part(GsSpillTask *task)
{
	if (!gs_grow((void **) &task->parts, (uint64_t) task->n_parts + 1, &task->max_parts,
					   sizeof(GsSpillPart)))
		return NULL;
	memset(&task->parts[task->n_parts], 0, sizeof(GsSpillPart));
	return &task->parts[task->n_parts++];
}

/* The first file that exists, of the files for the same kind of data; -1: none. */
static int
file_beside(const GsSpill *spill, uint8_t file)
{
	int			first = file - file % GS_SPILL_STRIPES;

	for (int i = first; i < first + GS_SPILL_STRIPES; i++)
		if (spill->files[i].fd >= 0)
			return i;
	return -1;
}

/*
 * With the lock held: makes the file that a task writes to, if it does not exist, or chooses another one.
 * False: that failed.
 *
 * Several files are faster, but one is enough.  So a sort has only one if half of the descriptors were in
 * use when it was made, or if none is left for another file.
 */
static bool
choose_file(GsSpillTask *task)
{
	GsSpill    *spill = task->spill;
	int			beside = file_beside(spill, task->file);
	int			error_number = EMFILE;

	if (spill->files[task->file].fd >= 0)
		return true;
	if (beside < 0 || spill->files[beside].fd < spill->io->max_fd / 2)
		error_number = create_file(spill, task->file);
	if (error_number == EMFILE && beside >= 0)
		task->file = (uint8_t) beside;
	else if (error_number == EMFILE)
	{
		__atomic_store_n(&spill->lacks_file, true, __ATOMIC_RELAXED);
		fail_no_memory(task, "too many open files");
	}
	else if (error_number != 0)
		fail(task, GS_SPILL_CREATE, task->file, error_number);
	return task->status == GS_OK;
}

void
gs_spill_task_submit(GsSpillTask *task)
{
	gs_pool_submit(task->spill->io->pool, &task->task);
}

void
gs_spill_task_no_memory(GsSpillTask *task)
{
	fail_no_memory(task, "out of memory");
}

/* ---- what a thread does ---- */

uint8_t *
gs_spill_task_scratch(GsSpillTask *task, size_t bytes)
{
	GsSpillIo  *io = task->spill->io;
	size_t		room = gs_code_room(task->spill->chunk_bytes);
	GsSpillScratch *scratch;

	/* all of one size, so that each serves for the next task */
	if (bytes < room)
		bytes = room;
	pthread_mutex_lock(&io->scratch_lock);
	scratch = io->scratch;
	if (scratch != NULL)
		io->scratch = scratch->next;
	pthread_mutex_unlock(&io->scratch_lock);
	if (scratch == NULL || scratch->bytes < bytes)
	{
		free(scratch);
		scratch = malloc(sizeof(GsSpillScratch) + bytes);
		if (scratch == NULL)
		{
			gs_spill_task_no_memory(task);
			return NULL;
		}
		scratch->bytes = bytes;
	}
	task->scratch = scratch;
	return scratch->memory;
}

/* Takes a place at the end of the task's file.  False: there is no file, or the limit does not allow it. */
static bool
take_place(GsSpillTask *task, size_t bytes, uint64_t *offset)
{
	GsSpill    *spill = task->spill;

	pthread_mutex_lock(&spill->lock);
	if (choose_file(task) && gs_spill_bytes(spill) + bytes <= spill->limit)
		*offset = __atomic_fetch_add(&spill->files[task->file].bytes, bytes, __ATOMIC_RELAXED);
	else if (task->status == GS_OK)
	{
		__atomic_store_n(&spill->has_met_limit, true, __ATOMIC_RELAXED);
		fail_no_memory(task, "no more may be written");
	}
	pthread_mutex_unlock(&spill->lock);
	return task->status == GS_OK;
}

bool
gs_spill_task_append(GsSpillTask *task, const void *memory, size_t bytes, uint64_t *offset)
{
	int			error_number;

	if (!take_place(task, bytes, offset))
		return false;
	error_number = transfer(task->spill, GS_SPILL_WRITE, task->file, *offset,
							(char *) (uintptr_t) memory, bytes);
	if (error_number != 0)
		fail(task, GS_SPILL_WRITE, task->file, error_number);
	return error_number == 0;
}

bool
gs_spill_task_read(GsSpillTask *task, uint8_t file, uint64_t offset, void *memory, size_t bytes)
{
	int			error_number = transfer(task->spill, GS_SPILL_READ, file, offset, memory, bytes);

	if (error_number != 0)
		fail(task, GS_SPILL_READ, file, error_number);
	return error_number == 0;
}

void
gs_spill_task_corrupt(GsSpillTask *task, uint8_t file)
{
	fail(task, GS_SPILL_READ, file, EIO);
}

void
gs_spill_files_remove(const GsSpill *spill, uint8_t first)
{
	char		path[GS_SPILL_PATH_BYTES];

	for (uint8_t i = first; i < GS_SPILL_FILES; i++)
		if (spill->files[i].fd >= 0)
		{
			file_path(spill, i, path);
			(void) unlink(path);
			(void) close(spill->files[i].fd);
		}
}

/* A thread's task, of a copy of the sort, which may be closed meanwhile. */
static void
remove_pages(GsTask *copy)
{
	gs_spill_files_remove((GsSpill *) copy, GS_SPILL_STRIPES);
	free(copy);
}

void
gs_spill_forget_pages(GsSpill *spill)
{
	GsSpill    *copy;

	if (spill->n_pages == 0)
		return;
	copy = malloc(sizeof(GsSpill));
	if (copy != NULL)
	{
		*copy = *spill;
		copy->cleanup.run = remove_pages;
		gs_pool_submit(spill->io->pool, &copy->cleanup);
	}
	else
		gs_spill_files_remove(spill, GS_SPILL_STRIPES);
	spill->n_forgotten++;
	for (int i = GS_SPILL_STRIPES; i < GS_SPILL_FILES; i++)
	{
		spill->files[i].fd = -1;
		__atomic_store_n(&spill->files[i].bytes, 0, __ATOMIC_RELAXED);
	}
	pthread_mutex_lock(&spill->lock);
	if (spill->failure.action != GS_SPILL_READ)
	{
		__atomic_store_n(&spill->has_failed, false, __ATOMIC_RELEASE);
		spill->failure.error_number = 0;
	}
	pthread_mutex_unlock(&spill->lock);
}

/* ---- opening and closing ---- */

GsSpillIo *
gs_spill_io_open(int threads, mode_t folder_mode, mode_t file_mode,
				 void (*notify) (void *arg), void *notify_arg)
{
	GsSpillIo  *io = calloc(1, sizeof(GsSpillIo));
	struct rlimit limit;

	if (io == NULL)
		return NULL;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
		limit.rlim_cur = INT_MAX;
	io->max_fd = (int) (limit.rlim_cur / 4 * 3);
	io->folder_mode = folder_mode;
	io->file_mode = file_mode;
	io->notify = notify;
	io->notify_arg = notify_arg;
	pthread_mutex_init(&io->scratch_lock, NULL);
	io->pool = gs_pool_open(threads);
	if (io->pool != NULL)
		return io;
	free(io);
	return NULL;
}

void
gs_spill_io_close(GsSpillIo *io)
{
	gs_pool_close(io->pool);
	io->pool = NULL;
	while (io->scratch != NULL)
	{
		GsSpillScratch *scratch = io->scratch;

		io->scratch = scratch->next;
		free(scratch);
	}
	if (io->n_spills == 0)
		free(io);
}

uint64_t
gs_spill_bytes(const GsSpill *spill)
{
	uint64_t	bytes = 0;

	for (int i = 0; i < GS_SPILL_FILES; i++)
		bytes += __atomic_load_n(&spill->files[i].bytes, __ATOMIC_RELAXED);
	return bytes;
}

uint64_t
gs_spill_bytes_written(const GsSpill *spill)
{
	return __atomic_load_n(&spill->written, __ATOMIC_RELAXED);
}

uint64_t
gs_spill_bytes_read(const GsSpill *spill)
{
	return __atomic_load_n(&spill->read, __ATOMIC_RELAXED);
}

void
gs_spill_limit(GsSpill *spill, uint64_t bytes)
{
	spill->limit = bytes;
}

bool
gs_spill_has_met_limit(const GsSpill *spill)
{
	return gs_spill_lacks_file(spill) || __atomic_load_n(&spill->has_met_limit, __ATOMIC_RELAXED);
}

bool
gs_spill_lacks_file(const GsSpill *spill)
{
	return __atomic_load_n(&spill->lacks_file, __ATOMIC_RELAXED);
}
