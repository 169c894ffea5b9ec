/*-------------------------------------------------------------------------
 *
 * test_spill_faults.c
 *	  Failures of files and of memory.
 *
 * pread(), pwrite() and the allocation functions are wrapped for all of the
 * program (by the linker, see Makefile): transfers are cut short and interrupted,
 * and memory ends, when a test wants it.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test_spill.h"

const Case	small_case = {KEYS_FEW, 4096, 5, 500, true, 30, 6000, SPLIT_SOMETIMES};

/* ---- what is wrapped ---- */

uint32_t	n_transfers;
bool		cut_transfers;
uint32_t	n_file_calls;

extern int	__real_open(const char *path, int flags, ...);
extern int	__wrap_open(const char *path, int flags, ...);
extern int	__real_unlink(const char *path);
extern int	__wrap_unlink(const char *path);
extern ssize_t __real_pread(int fd, void *memory, size_t bytes, off_t offset);
extern ssize_t __real_pwrite(int fd, const void *memory, size_t bytes, off_t offset);
extern void *__real_calloc(size_t n, size_t bytes);
extern ssize_t __wrap_pread(int fd, void *memory, size_t bytes, off_t offset);
extern ssize_t __wrap_pwrite(int fd, const void *memory, size_t bytes, off_t offset);
extern void *__wrap_malloc(size_t bytes);
extern void *__wrap_calloc(size_t n, size_t bytes);
extern void *__wrap_realloc(void *memory, size_t bytes);

/* A file system may hang, and the thread that calls gs_spill_...() must not wait for it. */
static void
note_file_call(void)
{
	if (gettid() == getpid())
		n_file_calls++;
}

int
__wrap_open(const char *path, int flags, ...)
{
	va_list		args;
	mode_t		mode;

	va_start(args, flags);
	mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (flags & O_CREAT)
		note_file_call();
	return __real_open(path, flags, mode);
}

int
__wrap_unlink(const char *path)
{
	note_file_call();
	return __real_unlink(path);
}

/* Interrupt every fifth transfer, and cut most others short. */
static bool
disturb(size_t *bytes)
{
	uint32_t	n = __atomic_add_fetch(&n_transfers, 1, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&cut_transfers, __ATOMIC_RELAXED))
		return false;
	if (n % 5 == 0)
	{
		errno = EINTR;
		return true;
	}
	if (n % 3 != 0)
		*bytes = 1 + (uint64_t) n * 7919 % *bytes;
	return false;
}

ssize_t
__wrap_pread(int fd, void *memory, size_t bytes, off_t offset)
{
	return disturb(&bytes) ? -1 : __real_pread(fd, memory, bytes, offset);
}

ssize_t
__wrap_pwrite(int fd, const void *memory, size_t bytes, off_t offset)
{
	return disturb(&bytes) ? -1 : __real_pwrite(fd, memory, bytes, offset);
}

/* Allocations of this thread that still succeed, before one that does not. */
static _Thread_local int64_t allocations_left = INT64_MAX;

static bool
allocation_fails(void)
{
	return allocations_left != INT64_MAX && allocations_left-- == 0;
}

void *
__wrap_malloc(size_t bytes)
{
	return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
	return allocation_fails() ? NULL : __real_calloc(n, bytes);
}

void *
__wrap_realloc(void *memory, size_t bytes)
{
	return allocation_fails() ? NULL : __real_realloc(memory, bytes);
}

/* ---- failures ---- */

/* A write that fails, or a file that cannot be made: in the second run, or the first. */
static void
test_write_failure(const char *name, GsSpillAction action, int error_number)
{
	uint32_t	bad = action == GS_SPILL_CREATE ? 0 : 1;
	Sort		sort;
	char		path[GS_SPILL_PATH_BYTES];

	begin_case(name);
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	for (uint32_t run = 0; run < bad; run++)
		CHECK(write_run(&sort, run) == GS_OK);
	gs_spill_plant(sort.spill, action, error_number);
	CHECK(write_run(&sort, bad) == GS_INTERNAL);
	check_failure(sort.spill, action, error_number);
	CHECK(gs_spill_runs(sort.spill) == bad);
	close_spill(sort.spill);
	free_sort(&sort);
	end_case();
}

static void
test_read_failures(void)
{
	Sort		sort;
	Rows		rows = {NULL, 0, 0};
	bool		ties;
	GsSpillPiece piece;
	GsJob		job = {0};
	char	   *memory = allocate(small_case.chunk_bytes);

	begin_case("reads that fail");
	make_sort(&sort, &small_case);
	if (write_sort(&sort))
	{
		gs_spill_plant(sort.spill, GS_SPILL_READ, EIO);
		n_jobs++;
		gs_spill_read_image(sort.spill, 1, memory, &piece, &job);
		CHECK(wait_for(&job) == GS_INTERNAL);
		CHECK(strstr(job.error.message, "could not read from \"") != NULL);
		check_failure(sort.spill, GS_SPILL_READ, EIO);

		CHECK(seal(&sort) == GS_OK);
		CHECK(gs_spill_plan(sort.spill, 1));
		CHECK(gs_spill_plan(sort.spill, 1));
		gs_spill_plant(sort.spill, GS_SPILL_READ, EBADF);
		CHECK(read_range(&sort, 1, &rows, &ties) == GS_INTERNAL);
		check_failure(sort.spill, GS_SPILL_READ, EIO);	/* the first one */

		/* the third range has no block within */
		CHECK(gs_spill_plan(sort.spill, 1));
		gs_spill_plant(sort.spill, GS_SPILL_READ, EIO);
		CHECK(!split_last(&sort));
		CHECK(split_last(&sort));
		CHECK(gs_spill_ranges(sort.spill) == 3 && !gs_spill_planned(sort.spill));
	}
	close_spill(sort.spill);
	free_rows(&rows);
	free_sort(&sort);
	free(memory);
	end_case();
}

/* The folder is made; not its parent, and not a file that there is. */
static void
test_create(void)
{
	static const char *const names[3] = {"here/sort", "neither/here/sort", "taken"};
	static const int errors[3] = {0, ENOENT, EEXIST};
	char		chunk[4096] = {0};	/* one record of no bytes */
	char		path[GS_SPILL_PATH_BYTES];
	char		file[GS_SPILL_PATH_BYTES + 8];
	struct stat status;
	int			fd;

	begin_case("making files");
	for (int round = 0; round < 3; round++)
	{
		GsJob		job = {0};
		GsSpill    *spill;

		snprintf(path, sizeof(path), "%s/%s", folder, names[round]);
		snprintf(file, sizeof(file), "%s.0", path);
		fd = round == 2 ? creat(file, 0600) : -1;
		if (fd >= 0)
			close(fd);
		spill = gs_spill_open(io, path, sizeof(chunk));
		CHECK(gs_spill_begin_run(spill, 1));
		n_jobs++;
		gs_spill_write(spill, 0, chunk, 1, &job);
		CHECK(wait_for(&job) == (round == 0 ? GS_OK : GS_INTERNAL));
		CHECK(gs_spill_failure(spill)->error_number == errors[round]);
		CHECK((stat(file, &status) == 0) == (round != 1));
		gs_spill_close(spill);
		for (int i = 0; i < 10000 && round != 2 && stat(file, &status) == 0; i++)
			usleep(1000);
		CHECK((stat(file, &status) == 0) == (round == 2));
	}
	CHECK(remove(file) == 0);
	snprintf(path, sizeof(path), "%s/here", folder);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0750);
	CHECK(rmdir(path) == 0);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK(gs_spill_open(io, path, 4096) == NULL);
	end_case();
}

/* Files that can get no larger: the last write before is a short one. */
static void
test_file_limit(void)
{
	Sort		sort;
	struct rlimit before;
	struct rlimit limit;
	char		path[GS_SPILL_PATH_BYTES];

	begin_case("a limit of files' sizes");
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 2000;
	setrlimit(RLIMIT_FSIZE, &limit);
	CHECK(write_run(&sort, 0) == GS_INTERNAL);
	setrlimit(RLIMIT_FSIZE, &before);
	check_failure(sort.spill, GS_SPILL_WRITE, EFBIG);
	close_spill(sort.spill);
	free_sort(&sort);
	end_case();
}

/* Write a run of chunks of one record each to a sort of its own; how many files it has then. */
static uint32_t
open_files(GsSpill **spill, GsStatus *status)
{
	char		chunk[4096] = {0};	/* one record of no bytes */
	char		path[GS_SPILL_PATH_BYTES];
	uint64_t	bytes;
	uint32_t	before = count_files(&bytes);

	temporary_path(path);
	*spill = gs_spill_open(io, path, sizeof(chunk));
	CHECK(gs_spill_begin_run(*spill, 8));
	*status = GS_OK;
	for (uint32_t i = 0; i < 8; i++)
	{
		GsJob		job = {0};

		n_jobs++;
		gs_spill_write(*spill, i, chunk, 1, &job);
		if (wait_for(&job) != GS_OK)
			*status = gs_job_status(&job);
	}
	return count_files(&bytes) - before;
}

/* Descriptors become few: then a sort has one file, and the last sorts have none. */
static void
test_descriptors(void)
{
	GsSpillIo  *all = io;
	GsSpill    *spills[64];
	Sort		sort;
	struct rlimit before;
	struct rlimit limit;
	GsStatus	status = GS_OK;
	uint32_t	n = 0;
	uint32_t	files = 4;
	int			fd;

	begin_case("few descriptors");
	make_sort(&sort, &small_case);
	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = 64;
	setrlimit(RLIMIT_NOFILE, &limit);
	io = gs_spill_io_open(2, 0750, 0640, notify, NULL);
	while (files == 4 && n < 64)
		files = open_files(&spills[n++], &status);
	CHECK(files == 1 && n > 3 && n < 16);
	if (write_sort(&sort))
	{
		check_images(&sort);
		check_ranges(&sort);
	}
	while (status == GS_OK && n < 64)
	{
		CHECK(files == 1);
		files = open_files(&spills[n++], &status);
	}
	CHECK(status == GS_NO_MEMORY && files == 0 && n > 16 && n < 64);
	CHECK(gs_spill_lacks_file(spills[n - 1]) && gs_spill_has_met_limit(spills[n - 1]));
	CHECK(gs_spill_failure(spills[n - 1])->error_number == 0);
	CHECK(!gs_spill_has_met_limit(spills[n - 2]));

	/* others have some */
	fd = open("/", O_RDONLY);
	CHECK(fd >= 0 && fd <= 64 - 8);
	close(fd);
	setrlimit(RLIMIT_NOFILE, &before);
	while (n > 0)
		gs_spill_close(spills[--n]);
	close_spill(sort.spill);
	gs_spill_io_close(io);
	io = all;
	free_sort(&sort);
	end_case();
}

/*
 * A file system that is full.  A process of its own, in a mount namespace of
 * its own, has one; 2 where it is not allowed to.
 */
static int
fill_file_system(void)
{
	Sort		sort;
	char		path[GS_SPILL_PATH_BYTES];

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", folder, "tmpfs", 0, "size=32k") != 0)
		return 2;
	io = gs_spill_io_open(2, 0750, 0640, notify, NULL);
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	for (uint32_t run = 0; run < small_case.n_runs; run++)
		if (write_run(&sort, run) != GS_OK)
			break;
	check_failure(sort.spill, GS_SPILL_WRITE, ENOSPC);
	CHECK(gs_spill_runs(sort.spill) < small_case.n_runs);
	check_images(&sort);
	close_spill(sort.spill);
	gs_spill_io_close(io);
	free_sort(&sort);
	return case_ok ? 0 : 1;
}

void
test_file_system_full(void)
{
	int			status;
	pid_t		child;

	begin_case("a file system that is full");
	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		status = fill_file_system();
		fflush(stdout);
		_exit(status);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (case_ok && WEXITSTATUS(status) == 2)
	{
		printf("# skipped, for it takes privileges: a file system that is full\n");
		return;
	}
	CHECK(WEXITSTATUS(status) == 0);
	end_case();
}

/* Write and read a sort; false where memory was short somewhere. */
static bool
try_all(const Sort *made)
{
	Sort		sort = *made;
	Rows		rows = {NULL, 0, 0};
	char		path[GS_SPILL_PATH_BYTES];
	char	   *memory = allocate(made->spec.chunk_bytes);
	GsSpillPiece piece;
	GsJob		job = {0};
	GsStatus	status = GS_OK;
	bool		ties;
	bool		done;

	temporary_path(path);
	sort.spill = gs_spill_open(io, path, made->spec.chunk_bytes);
	done = sort.spill != NULL;
	for (uint32_t run = 0; run < made->spec.n_runs && done; run++)
	{
		status = write_run(&sort, run);
		done = status == GS_OK;
	}
	if (done)
	{
		n_jobs++;
		gs_spill_read_image(sort.spill, 0, memory, &piece, &job);
		status = wait_for(&job);
		if (status == GS_OK)
			status = seal(&sort);
		done = status == GS_OK;
	}
	for (int i = 0; i < 3 && done; i++)
	{
		done = gs_spill_plan(sort.spill, 1) && split_last(&sort) &&
			split_last(&sort);
		if (done)
		{
			status = read_range(&sort, gs_spill_ranges(sort.spill) - 1, &rows, &ties);
			done = status == GS_OK;
		}
	}
	CHECK(status == GS_OK || status == GS_NO_MEMORY);
	if (sort.spill != NULL)
	{
		CHECK(gs_spill_failure(sort.spill)->error_number == 0);
		close_spill(sort.spill);
	}
	free_rows(&rows);
	free(memory);
	return done;
}

static void
test_no_memory(void)
{
	static const Case few = {KEYS_FEW, 4096, 3, 300, true, 30, 1, SPLIT_NEVER};
	Sort		sort;
	int64_t		n = 0;
	bool		reached;

	begin_case("no memory");
	make_sort(&sort, &few);
	do
	{
		bool		done;

		allocations_left = n++;
		done = try_all(&sort);
		reached = allocations_left < 0;
		allocations_left = INT64_MAX;
		CHECK(done == !reached);
	} while (reached && case_ok);
	CHECK(n > 50);
	CHECK(n_jobs == n_notified);
	free_sort(&sort);
	allocations_left = 0;
	CHECK(gs_spill_io_open(2, 0750, 0640, notify, NULL) == NULL);
	allocations_left = 1;
	CHECK(gs_spill_io_open(2, 0750, 0640, notify, NULL) == NULL);
	allocations_left = INT64_MAX;
	end_case();
}

void
test_failures(void)
{
	random_state = 1;			/* some expect what a case is like */
	test_write_failure("files that cannot be made", GS_SPILL_CREATE, EACCES);
	test_write_failure("writes that fail", GS_SPILL_WRITE, ENOSPC);
	test_read_failures();
	test_create();
	test_file_limit();
	test_descriptors();
	test_no_memory();
}
