/*-------------------------------------------------------------------------
 *
 * test_spill.c
 *	  Runs in temporary files, against the same sort in memory.
 *
 *	  test_spill [--seed N] [--cases N]
 *
 * A case makes rows, sorts them in memory, and writes them as runs of chunks.
 * Then images are read, and ranges are planned, split and read in various ways.
 * What must hold: images are as they were written; the rows of each range,
 * sorted stably by key, are the next rows of the whole sort; ties and borders
 * say what these rows say.
 *
 * The program's preadv(), pwritev() and allocation functions are wrapped (by
 * the linker, see Makefile): transfers are cut short and interrupted, and memory
 * ends when a test wants it to.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spill/spill.h"

#define IN_FLIGHT	6			/* jobs at a time */
#define MAX_KEY		8192

static int	n_passed;
static int	n_failed;
static char folder[64];
static GsSpillIo *io;

/* ---- random numbers ---- */

static uint64_t random_state;

static uint64_t
random_bits(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint32_t
below(uint32_t limit)
{
	return (uint32_t) ((random_bits() >> 32) * limit >> 32);
}

/* ---- what is wrapped ---- */

extern ssize_t __real_preadv(int fd, const struct iovec *iov, int n_iov, off_t offset);
extern ssize_t __real_pwritev(int fd, const struct iovec *iov, int n_iov, off_t offset);
extern void *__real_malloc(size_t bytes);
extern void *__real_calloc(size_t n, size_t bytes);
extern void *__real_realloc(void *memory, size_t bytes);
extern ssize_t __wrap_preadv(int fd, const struct iovec *iov, int n_iov, off_t offset);
extern ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n_iov, off_t offset);
extern void *__wrap_malloc(size_t bytes);
extern void *__wrap_calloc(size_t n, size_t bytes);
extern void *__wrap_realloc(void *memory, size_t bytes);

static uint32_t n_transfers;	/* atomic */
static bool cut_transfers;		/* atomic */

/* Interrupt every fifth transfer, and cut most others short. */
static bool
disturb(const struct iovec *iov, int n_iov, struct iovec *cut, int *n_cut)
{
	uint32_t	n = __atomic_add_fetch(&n_transfers, 1, __ATOMIC_RELAXED);

	memcpy(cut, iov, (size_t) n_iov * sizeof(struct iovec));
	*n_cut = n_iov;
	if (!__atomic_load_n(&cut_transfers, __ATOMIC_RELAXED))
		return false;
	if (n % 5 == 0)
	{
		errno = EINTR;
		return true;
	}
	*n_cut = 1 + (int) (n * 7 % (uint32_t) n_iov);
	if (n % 3 != 0)
		cut[*n_cut - 1].iov_len = 1 + n * 31 % cut[*n_cut - 1].iov_len;
	return false;
}

ssize_t
__wrap_preadv(int fd, const struct iovec *iov, int n_iov, off_t offset)
{
	struct iovec cut[64];
	int			n_cut;

	return disturb(iov, n_iov, cut, &n_cut) ? -1 : __real_preadv(fd, cut, n_cut, offset);
}

ssize_t
__wrap_pwritev(int fd, const struct iovec *iov, int n_iov, off_t offset)
{
	struct iovec cut[64];
	int			n_cut;

	return disturb(iov, n_iov, cut, &n_cut) ? -1 : __real_pwritev(fd, cut, n_cut, offset);
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

/* ---- checks ---- */

static const char *case_name = "";
static bool case_ok;

/* The first thing that is wrong in a case is printed. */
#define CHECK(condition) check((condition), #condition, __LINE__)

static bool
check(bool ok, const char *what, int line)
{
	if (!ok && case_ok)
	{
		printf("# %s, line %d: %s\n", case_name, line, what);
		case_ok = false;
	}
	return ok;
}

static void
begin_case(const char *name)
{
	case_name = name;
	case_ok = true;
}

static void
end_case(void)
{
	printf("%s - %s\n", case_ok ? "ok" : "not ok", case_name);
	if (case_ok)
		n_passed++;
	else
		n_failed++;
}

static void *
allocate(size_t bytes)
{
	void	   *memory = __real_malloc(bytes > 0 ? bytes : 1);

	if (memory == NULL)
	{
		printf("out of memory\n");
		exit(1);
	}
	return memory;
}

/* ---- jobs ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t notified = PTHREAD_COND_INITIALIZER;
static uint64_t n_notified;
static uint64_t n_jobs;			/* begun; of the main thread */

static void
notify(void *arg)
{
	(void) arg;
	pthread_mutex_lock(&lock);
	n_notified++;
	pthread_cond_signal(&notified);
	pthread_mutex_unlock(&lock);
}

static GsStatus
wait_for(GsJob *job)
{
	pthread_mutex_lock(&lock);
	while (gs_job_status(job) == GS_PENDING)
		pthread_cond_wait(&notified, &lock);
	pthread_mutex_unlock(&lock);
	return gs_job_status(job);
}

/* ---- rows, and the sort in memory ---- */

typedef struct Row
{
	uint8_t    *bytes;			/* the row, then its key */
	uint32_t	row_len;		/* with flags */
	uint32_t	key_len;		/* with flags */
} Row;

typedef struct Rows
{
	Row		   *items;
	uint32_t	n;
	uint32_t	max;
} Rows;

static void
rows_add(Rows *rows, Row row)
{
	if (rows->n == rows->max)
	{
		rows->max = rows->max * 2 + 16;
		rows->items = __real_realloc(rows->items, rows->max * sizeof(Row));
	}
	rows->items[rows->n++] = row;
}

static uint32_t
row_bytes(const Row *row)
{
	return row->row_len & GS_LENGTH_MASK;
}

static uint32_t
key_bytes(const Row *row)
{
	return row->key_len & GS_LENGTH_MASK;
}

static int
compare_bytes(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	int			order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int
compare_rows(const Row *a, const Row *b)
{
	return compare_bytes(a->bytes + row_bytes(a), key_bytes(a), b->bytes + row_bytes(b),
						 key_bytes(b));
}

/* A stable merge sort. */
static void
sort_part(Row *rows, Row *scratch, uint32_t n)
{
	uint32_t	half = n / 2;
	uint32_t	a = 0;
	uint32_t	b = half;

	if (n < 2)
		return;
	sort_part(rows, scratch, half);
	sort_part(rows + half, scratch, n - half);
	for (uint32_t i = 0; i < n; i++)
		scratch[i] = a < half && (b == n || compare_rows(&rows[a], &rows[b]) <= 0) ?
			rows[a++] : rows[b++];
	memcpy(rows, scratch, n * sizeof(Row));
}

static void
sort_rows(Row *rows, uint32_t n)
{
	Row		   *scratch = allocate(n * sizeof(Row));

	sort_part(rows, scratch, n);
	free(scratch);
}

/* ---- cases ---- */

typedef enum Keys
{
	KEYS_RANDOM,				/* of all bytes, 0 to 20 of them */
	KEYS_FEW,					/* five different ones */
	KEYS_EQUAL,
	KEYS_EQUAL_BUT_ONE,
	KEYS_EMPTY,
	KEYS_PREFIXES,				/* of each other */
	KEYS_NULS,					/* of zeros and ones */
	KEYS_LONG,					/* different in their last bytes */
	KEYS_ANY_LENGTH,
	KEYS_SORTED,				/* a run's behind those of the run before */
	KEYS_REVERSED,
	KEYS_SAME_RUNS				/* all runs have the same keys */
} Keys;

#define N_KEYS	12

static const char *const keys_names[N_KEYS] = {
	"random keys", "few keys", "equal keys", "all keys equal but one", "empty keys",
	"keys that are prefixes", "keys of NULs", "long keys", "keys of all lengths",
	"runs in order", "runs in reverse order", "identical runs"
};

/* What is done with ranges. */
typedef enum Splits
{
	SPLIT_NEVER,
	SPLIT_SOMETIMES,
	SPLIT_TO_ROWS
} Splits;

typedef struct Case
{
	Keys		keys;
	uint32_t	chunk_bytes;
	uint32_t	n_runs;
	uint32_t	run_rows;		/* at most; at least 0, or all */
	bool		full_runs;
	uint32_t	max_row;
	uint64_t	budget;
	Splits		splits;
} Case;

typedef struct Chunk
{
	char	   *memory;
	uint32_t	data_bytes;
	uint32_t	n_records;
} Chunk;

typedef struct Sort
{
	Case		spec;
	Rows		rows;			/* all runs', then sorted */
	Chunk	   *chunks;			/* all runs', in order */
	uint32_t	n_chunks;
	uint32_t   *run_chunks;		/* first chunk of each run, and the end */
	GsSpill    *spill;
} Sort;

static uint32_t
make_key(const Case *spec, uint32_t run, uint32_t i, uint32_t n, uint8_t *key)
{
	uint32_t	len = 0;
	uint32_t	number = i;

	switch (spec->keys)
	{
		case KEYS_RANDOM:
			len = below(21);
			for (uint32_t b = 0; b < len; b++)
				key[b] = (uint8_t) below(256);
			return len;
		case KEYS_FEW:
			number = below(5);
			break;
		case KEYS_EQUAL:
			number = 7;
			break;
		case KEYS_EQUAL_BUT_ONE:
			number = 7 + (run == spec->n_runs / 2 && i == n / 2 ? below(3) - 1 : 0);
			break;
		case KEYS_EMPTY:
			return 0;
		case KEYS_PREFIXES:
			len = below(3) == 0 ? below(300) : below(12);
			memset(key, 'a', len);
			return len;
		case KEYS_NULS:
			len = below(6);
			for (uint32_t b = 0; b < len; b++)
				key[b] = below(4) == 0;
			return len;
		case KEYS_LONG:
			memset(key, 0x5a, MAX_KEY);
			key[MAX_KEY - 1] = (uint8_t) below(3);
			return MAX_KEY - below(2);
		case KEYS_ANY_LENGTH:
			len = below(1u << (2 + below(12)));
			len = len > MAX_KEY ? MAX_KEY : len;
			memset(key, 1 + (int) below(2), len);
			return len;
		case KEYS_SORTED:
			number = run * 100000 + below(n) / 2;
			break;
		case KEYS_REVERSED:
			number = (spec->n_runs - run) * 100000 + below(n) / 2;
			break;
		case KEYS_SAME_RUNS:
			number = i * 1000003 % 65536;
			break;
	}
	for (int b = 0; b < 4; b++)
		key[b] = (uint8_t) (number >> (24 - 8 * b));
	return 4;
}

static Row
make_row(const Case *spec, uint32_t run, uint32_t i, uint32_t n)
{
	static uint8_t key[MAX_KEY];
	Row			row;

	row.key_len = make_key(spec, run, i, n, key);
	row.row_len = below(spec->max_row + 1);
	row.bytes = allocate(row.row_len + row.key_len);
	for (uint32_t b = 0; b < row.row_len; b++)
		row.bytes[b] = (uint8_t) random_bits();
	memcpy(row.bytes + row.row_len, key, row.key_len);
	if (below(8) == 0)
		row.row_len |= GS_ROW_EXTERNAL;
	if (below(8) == 0)
		row.key_len |= GS_KEY_INEXACT;
	return row;
}

static uint32_t
round_up_8(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

static Chunk *
add_chunk(Sort *sort)
{
	Chunk	   *chunk;

	sort->chunks = __real_realloc(sort->chunks, (sort->n_chunks + 1) * sizeof(Chunk));
	chunk = &sort->chunks[sort->n_chunks++];
	chunk->memory = allocate(sort->spec.chunk_bytes);
	memset(chunk->memory, 0xee, sort->spec.chunk_bytes);
	chunk->data_bytes = 0;
	chunk->n_records = 0;
	return chunk;
}

static bool
put_row(const Sort *sort, Chunk *chunk, const Row *row)
{
	uint32_t	bytes = row_bytes(row) + key_bytes(row);
	GsRecord   *record;

	if (chunk->data_bytes + round_up_8(bytes) + (chunk->n_records + 1) * sizeof(GsRecord) >
		sort->spec.chunk_bytes)
		return false;
	record = gs_chunk_record(chunk->memory, sort->spec.chunk_bytes, chunk->n_records++);
	memcpy(chunk->memory + chunk->data_bytes, row->bytes, bytes);
	record->row_off = chunk->data_bytes;
	record->row_len = row->row_len;
	record->key_off = chunk->data_bytes + row_bytes(row);
	record->key_len = row->key_len;
	chunk->data_bytes += round_up_8(bytes);
	return true;
}

/* Now and then a chunk is not filled, or has no rows at all. */
static void
make_chunks(Sort *sort, const Row *rows, uint32_t n)
{
	Chunk	   *chunk = NULL;

	if (n == 0 && below(2) == 0)
		(void) add_chunk(sort);
	for (uint32_t i = 0; i < n; i++)
	{
		if (chunk == NULL || below(2000) == 0 || !put_row(sort, chunk, &rows[i]))
		{
			if (below(20) == 0)
				(void) add_chunk(sort);
			chunk = add_chunk(sort);
			CHECK(put_row(sort, chunk, &rows[i]));
		}
	}
}

static void
make_sort(Sort *sort, const Case *spec)
{
	memset(sort, 0, sizeof(*sort));
	sort->spec = *spec;
	sort->run_chunks = allocate((spec->n_runs + 1) * sizeof(uint32_t));
	for (uint32_t run = 0; run < spec->n_runs; run++)
	{
		uint32_t	n = spec->full_runs ? spec->run_rows : below(spec->run_rows + 1);
		uint32_t	first = sort->rows.n;

		sort->run_chunks[run] = sort->n_chunks;
		for (uint32_t i = 0; i < n; i++)
			rows_add(&sort->rows, make_row(spec, run, i, n));
		if (n > 0)
			sort_rows(&sort->rows.items[first], n);
		make_chunks(sort, &sort->rows.items[first], n);
	}
	sort->run_chunks[spec->n_runs] = sort->n_chunks;
	sort_rows(sort->rows.items, sort->rows.n);
}

static void
free_sort(Sort *sort)
{
	for (uint32_t i = 0; i < sort->rows.n; i++)
		free(sort->rows.items[i].bytes);
	for (uint32_t i = 0; i < sort->n_chunks; i++)
		free(sort->chunks[i].memory);
	free(sort->rows.items);
	free(sort->chunks);
	free(sort->run_chunks);
}

/* ---- writing ---- */

static void
temporary_path(char *path)
{
	static int	number;

	snprintf(path, GS_SPILL_PATH_BYTES, "%s/sort%d", folder, number++);
}

/* Write a run's chunks, in any order; returns the first bad status. */
static GsStatus
write_run(Sort *sort, uint32_t run)
{
	uint32_t	first = sort->run_chunks[run];
	uint32_t	n = sort->run_chunks[run + 1] - first;
	uint32_t	step = n % 7 == 0 ? 1 : 7;
	GsStatus	status = GS_OK;
	GsJob		jobs[IN_FLIGHT];

	if (!gs_spill_begin_run(sort->spill, n))
		return GS_NO_MEMORY;
	for (uint32_t i = 0; i < n + IN_FLIGHT; i++)
	{
		GsJob	   *job = &jobs[i % IN_FLIGHT];

		if (i >= IN_FLIGHT && i - IN_FLIGHT < n && wait_for(job) != GS_OK && status == GS_OK)
			status = gs_job_status(job);
		if (i < n)
		{
			uint32_t	number = (uint32_t) ((uint64_t) i * step % n);
			const Chunk *chunk = &sort->chunks[first + number];

			memset(job, 0, sizeof(*job));
			n_jobs++;
			gs_spill_write(sort->spill, number, chunk->memory, chunk->n_records, job);
		}
	}
	if (status == GS_OK && !gs_spill_end_run(sort->spill))
		status = GS_NO_MEMORY;
	return status;
}

static bool
write_sort(Sort *sort)
{
	char		path[GS_SPILL_PATH_BYTES];

	temporary_path(path);
	sort->spill = gs_spill_open(io, path, sort->spec.chunk_bytes);
	if (!CHECK(sort->spill != NULL))
		return false;
	for (uint32_t run = 0; run < sort->spec.n_runs; run++)
		if (!CHECK(write_run(sort, run) == GS_OK))
			return false;
	CHECK(gs_spill_runs(sort->spill) == sort->spec.n_runs);
	CHECK(gs_spill_rows(sort->spill) == sort->rows.n);
	CHECK(gs_spill_images(sort->spill) == sort->n_chunks);
	return true;
}

/* ---- images ---- */

static void
check_image(const Sort *sort, uint32_t i, const char *memory, const GsSpillPiece *piece)
{
	const Chunk *chunk = &sort->chunks[i];
	uint32_t	chunk_bytes = sort->spec.chunk_bytes;
	size_t		records_bytes = piece->n_records * sizeof(GsRecord);

	CHECK(piece->n_records == chunk->n_records);
	CHECK(piece->data_bytes == chunk->data_bytes);
	CHECK(memcmp(memory, chunk->memory, piece->data_bytes) == 0);
	CHECK(memcmp(memory + chunk_bytes - records_bytes, chunk->memory + chunk_bytes - records_bytes,
				 records_bytes) == 0);
}

static void
check_images(const Sort *sort)
{
	char	   *memory = allocate(sort->spec.chunk_bytes);
	GsSpillPiece piece;

	for (uint32_t i = 0; i < gs_spill_images(sort->spill) && case_ok; i++)
	{
		GsJob		job = {0};

		n_jobs++;
		gs_spill_read_image(sort->spill, i, memory, &piece, &job);
		if (CHECK(wait_for(&job) == GS_OK))
			check_image(sort, i, memory, &piece);
	}
	free(memory);
}

/* ---- ranges ---- */

/* Append a piece's rows; they must lie without gaps. */
static void
take_piece(const Sort *sort, char *memory, const GsSpillPiece *piece, Rows *rows)
{
	uint32_t	offset = 0;

	for (uint32_t i = 0; i < piece->n_records; i++)
	{
		const GsRecord *record = gs_chunk_record(memory, sort->spec.chunk_bytes, i);
		Row			row = {NULL, record->row_len, record->key_len};
		uint32_t	bytes = row_bytes(&row) + key_bytes(&row);

		if (!CHECK(record->row_off == offset) ||
			!CHECK(record->key_off == offset + row_bytes(&row)) ||
			!CHECK(offset + round_up_8(bytes) <= piece->data_bytes))
			return;
		row.bytes = allocate(bytes);
		memcpy(row.bytes, memory + offset, bytes);
		offset += round_up_8(bytes);
		rows_add(rows, row);
	}
	CHECK(offset == piece->data_bytes);
	CHECK(piece->data_bytes + piece->n_records * sizeof(GsRecord) <= sort->spec.chunk_bytes);
}

typedef struct Slot
{
	GsJob		job;
	GsSpillPiece piece;
	char	   *memory;
} Slot;

/* Read a range; returns the first bad status. */
static GsStatus
read_range(const Sort *sort, uint32_t range, Rows *rows, bool *ties)
{
	GsSpillReader *reader = gs_spill_reader_open(sort->spill, range);
	GsStatus	status = GS_OK;
	Slot		slots[IN_FLIGHT];
	uint32_t	n_begun = 0;
	uint32_t	n_taken = 0;
	bool		more = true;

	if (reader == NULL)
		return GS_NO_MEMORY;
	for (int i = 0; i < IN_FLIGHT; i++)
		slots[i].memory = allocate(sort->spec.chunk_bytes);
	while (more || n_taken < n_begun)
	{
		Slot	   *slot = &slots[n_begun % IN_FLIGHT];

		while (more && n_begun - n_taken < IN_FLIGHT)
		{
			slot = &slots[n_begun % IN_FLIGHT];
			memset(&slot->job, 0, sizeof(GsJob));
			more = gs_spill_read(reader, slot->memory, &slot->piece, &slot->job);
			n_begun += more;
			n_jobs += more;
		}
		if (n_taken == n_begun)
			break;
		slot = &slots[n_taken++ % IN_FLIGHT];
		if (wait_for(&slot->job) == GS_OK)
			take_piece(sort, slot->memory, &slot->piece, rows);
		else if (status == GS_OK)
			status = gs_job_status(&slot->job);
	}
	*ties = gs_spill_reader_ties(reader);
	gs_spill_reader_close(reader);
	for (int i = 0; i < IN_FLIGHT; i++)
		free(slots[i].memory);
	return status;
}

static void
free_rows(Rows *rows)
{
	for (uint32_t i = 0; i < rows->n; i++)
		free(rows->items[i].bytes);
	free(rows->items);
}

/* The rows of a range must be those of the sort from the first one on. */
static void
check_rows(const Sort *sort, const Rows *rows, uint32_t first)
{
	if (!CHECK(first + rows->n <= sort->rows.n))
		return;
	for (uint32_t i = 0; i < rows->n && case_ok; i++)
	{
		const Row  *a = &sort->rows.items[first + i];
		const Row  *b = &rows->items[i];

		CHECK(a->row_len == b->row_len && a->key_len == b->key_len &&
			  memcmp(a->bytes, b->bytes, row_bytes(a) + key_bytes(a)) == 0);
	}
}

/* The border below a range, whose first row has that number. */
static void
check_border(const Sort *sort, uint32_t range, uint32_t first, bool ties)
{
	uint32_t	len = 0;
	const uint8_t *border = gs_spill_border(sort->spill, range, &len);
	const Row  *row = &sort->rows.items[first];

	if (range == 0)
	{
		CHECK(border == NULL && !ties);
		return;
	}
	CHECK(ties == (compare_rows(row - 1, row) == 0));
	CHECK(compare_bytes(border, len, row->bytes + row_bytes(row), key_bytes(row)) <= 0);
	CHECK(compare_bytes(border, len, row[-1].bytes + row_bytes(row - 1), key_bytes(row - 1)) >= 0);
}

/* Read a range and check it; returns its number of rows. */
static uint32_t
check_range(const Sort *sort, uint32_t range, uint32_t first)
{
	Rows		rows = {NULL, 0, 0};
	bool		ties = false;
	uint32_t	n;

	CHECK(read_range(sort, range, &rows, &ties) == GS_OK);
	if (CHECK(rows.n > 0))
	{
		sort_rows(rows.items, rows.n);
		check_rows(sort, &rows, first);
		if (case_ok)
			check_border(sort, range, first, ties);
	}
	n = rows.n;
	free_rows(&rows);
	return n;
}

/* Split the last range as the case wants it; one row must be left, where all. */
static void
split_range(const Sort *sort, uint32_t first)
{
	if (sort->spec.splits == SPLIT_SOMETIMES)
	{
		for (uint32_t n = below(4) == 0 ? below(30) : below(2); n > 0; n--)
			(void) gs_spill_split(sort->spill);
	}
	else if (sort->spec.splits == SPLIT_TO_ROWS)
	{
		uint32_t	range = gs_spill_ranges(sort->spill) - 1;
		uint32_t	n = below(10) == 0 ? check_range(sort, range, first) : UINT32_MAX;

		while (case_ok && gs_spill_split(sort->spill))
		{
			CHECK(gs_spill_ranges(sort->spill) == range + 1);
			CHECK(!gs_spill_planned(sort->spill));
			if (n != UINT32_MAX)
			{
				uint32_t	smaller = check_range(sort, range, first);

				CHECK(smaller < n);
				n = smaller;
			}
		}
	}
}

static void
check_ranges(const Sort *sort)
{
	uint32_t	first = 0;

	CHECK(gs_spill_seal(sort->spill));
	while (case_ok && !gs_spill_planned(sort->spill))
	{
		uint64_t	budget = sort->spec.budget;
		uint32_t	range = gs_spill_ranges(sort->spill);
		uint32_t	n;

		if (budget > 1 && below(4) == 0)
			budget = budget / 2 + below(1000);
		if (!CHECK(gs_spill_plan(sort->spill, budget, below(100))))
			return;
		split_range(sort, first);
		n = check_range(sort, range, first);
		if (sort->spec.splits == SPLIT_TO_ROWS)
			CHECK(n == 1);
		first += n;
	}
	CHECK(first == sort->rows.n);
	CHECK(!gs_spill_plan(sort->spill, 1, 0));

	/* any range may be read again */
	if (case_ok && gs_spill_ranges(sort->spill) > 0)
		(void) check_range(sort, 0, 0);
}

/* ---- files ---- */

/* Files in the tests' folder. */
static uint32_t
count_files(uint64_t *bytes)
{
	DIR		   *dir = opendir(folder);
	struct dirent *entry;
	struct stat status;
	char		path[GS_SPILL_PATH_BYTES];
	uint32_t	n = 0;

	*bytes = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL)
	{
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
		{
			CHECK((status.st_mode & 0777) == 0600);
			*bytes += (uint64_t) status.st_size;
			n++;
		}
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

static void
close_spill(GsSpill *spill)
{
	uint64_t	bytes;

	gs_spill_close(spill);
	CHECK(count_files(&bytes) == 0);
}

static void
run_case(const Case *spec)
{
	Sort		sort;
	uint64_t	bytes;

	make_sort(&sort, spec);
	if (write_sort(&sort))
	{
		(void) count_files(&bytes);
		CHECK(bytes == gs_spill_bytes(sort.spill));
		CHECK(gs_spill_failure(sort.spill)->error_number == 0);
		check_images(&sort);
		check_ranges(&sort);
	}
	if (sort.spill != NULL)
		close_spill(sort.spill);
	free_sort(&sort);
}

/* ---- failures ---- */

static const Case small = {KEYS_FEW, 4096, 5, 500, true, 30, 6000, SPLIT_SOMETIMES};

static void
check_failure(const GsSpill *spill, const char *action, int error_number)
{
	const GsSpillFailure *failure = gs_spill_failure(spill);

	CHECK(failure->error_number == error_number);
	CHECK(strcmp(failure->action, action) == 0);
	CHECK(strncmp(failure->path, folder, strlen(folder)) == 0);
}

/* A write that fails, or a file that cannot be made; then the run is begun again. */
static void
test_write_failure(const char *name, const char *action, int error_number)
{
	Sort		sort;
	char		path[GS_SPILL_PATH_BYTES];
	uint64_t	bytes;

	begin_case(name);
	make_sort(&sort, &small);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small.chunk_bytes);
	for (uint32_t run = 0; run < small.n_runs; run++)
	{
		bytes = gs_spill_bytes(sort.spill);
		if (run == 0 || strcmp(action, "create") != 0)
		{
			gs_spill_plant(sort.spill, action, error_number);
			CHECK(write_run(&sort, run) == GS_INTERNAL);
			check_failure(sort.spill, action, error_number);
			CHECK(gs_spill_runs(sort.spill) == run);
			CHECK(gs_spill_begin_run(sort.spill, 1));
			CHECK(gs_spill_bytes(sort.spill) == bytes);
		}
		CHECK(write_run(&sort, run) == GS_OK);
	}
	check_images(&sort);
	check_ranges(&sort);
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
	uint32_t	len;
	GsSpillPiece piece;
	GsJob		job = {0};
	char	   *memory = allocate(small.chunk_bytes);

	begin_case("reads that fail");
	make_sort(&sort, &small);
	if (write_sort(&sort))
	{
		gs_spill_plant(sort.spill, "read from", EIO);
		n_jobs++;
		gs_spill_read_image(sort.spill, 1, memory, &piece, &job);
		CHECK(wait_for(&job) == GS_INTERNAL);
		CHECK(strstr(job.error.message, "could not read from \"") != NULL);
		check_failure(sort.spill, "read from", EIO);

		CHECK(gs_spill_seal(sort.spill));
		CHECK(gs_spill_plan(sort.spill, 1, 0));
		CHECK(gs_spill_plan(sort.spill, 1, 0));
		gs_spill_plant(sort.spill, "read from", EBADF);
		CHECK(read_range(&sort, 1, &rows, &ties) == GS_INTERNAL);
		check_failure(sort.spill, "read from", EIO);	/* the first one */

		/* the third range has no block within */
		CHECK(gs_spill_plan(sort.spill, 1, 0));
		gs_spill_plant(sort.spill, "read from", EIO);
		CHECK(!gs_spill_split(sort.spill));
		CHECK(gs_spill_split(sort.spill));
		CHECK(gs_spill_border(sort.spill, 3, &len) != NULL && len == 4);
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
	static const char chunk[4096];
	char		path[GS_SPILL_PATH_BYTES];
	char		file[GS_SPILL_PATH_BYTES + 8];
	struct stat status;
	int			fd;

	begin_case("making files");
	for (int round = 0; round < 3; round++)
	{
		static const char *const names[3] = {"here/sort", "neither/here/sort", "taken"};
		static const int errors[3] = {0, ENOENT, EEXIST};
		GsJob		job = {0};
		GsSpill    *spill;

		snprintf(path, sizeof(path), "%s/%s", folder, names[round]);
		snprintf(file, sizeof(file), "%s.0", path);
		fd = round == 2 ? open(file, O_CREAT | O_RDWR, 0600) : -1;
		if (fd >= 0)
			close(fd);
		spill = gs_spill_open(io, path, sizeof(chunk));
		n_jobs++;
		CHECK(gs_spill_begin_run(spill, 1));
		{
			char		records[4096] = {0};

			gs_spill_write(spill, 0, records, 1, &job);
			CHECK(wait_for(&job) == (round == 0 ? GS_OK : GS_INTERNAL));
		}
		CHECK(gs_spill_failure(spill)->error_number == errors[round]);
		CHECK((stat(file, &status) == 0) == (round != 1));
		gs_spill_close(spill);
		CHECK((stat(file, &status) == 0) == (round == 2));
	}
	CHECK(unlink(file) == 0);
	snprintf(path, sizeof(path), "%s/here", folder);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
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
	make_sort(&sort, &small);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small.chunk_bytes);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 5000;
	setrlimit(RLIMIT_FSIZE, &limit);
	CHECK(write_run(&sort, 0) == GS_INTERNAL);
	setrlimit(RLIMIT_FSIZE, &before);
	check_failure(sort.spill, "write to", EFBIG);
	close_spill(sort.spill);
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
		mount("none", folder, "tmpfs", 0, "size=64k") != 0)
		return 2;
	io = gs_spill_io_open(2, notify, NULL);
	make_sort(&sort, &small);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small.chunk_bytes);
	for (uint32_t run = 0; run < small.n_runs; run++)
		if (write_run(&sort, run) != GS_OK)
			break;
	check_failure(sort.spill, "write to", ENOSPC);
	CHECK(gs_spill_runs(sort.spill) < small.n_runs);
	check_images(&sort);
	close_spill(sort.spill);
	gs_spill_io_close(io);
	free_sort(&sort);
	return case_ok ? 0 : 1;
}

static void
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
		printf("# skipped, for it takes privileges to mount one: %s\n", case_name);
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
		done = status == GS_OK && gs_spill_seal(sort.spill);
	}
	for (int i = 0; i < 3 && done; i++)
	{
		done = gs_spill_plan(sort.spill, 1, 0) && gs_spill_split(sort.spill) &&
			gs_spill_split(sort.spill);
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
	CHECK(gs_spill_io_open(2, notify, NULL) == NULL);
	allocations_left = 1;
	CHECK(gs_spill_io_open(2, notify, NULL) == NULL);
	allocations_left = INT64_MAX;
	end_case();
}

/* ---- pages, and other things ---- */

#define N_PAGES		37
#define PAGE_BYTES	8192

static void
fill_page(uint8_t *memory, uint32_t page)
{
	for (uint32_t i = 0; i < PAGE_BYTES; i++)
		memory[i] = (uint8_t) (page * 7 + i * i / 3);
}

static void
test_pages(void)
{
	uint8_t    *memory = allocate((size_t) N_PAGES * PAGE_BYTES);
	uint8_t    *expected = allocate(PAGE_BYTES);
	char		path[GS_SPILL_PATH_BYTES];
	GsJob		jobs[N_PAGES];
	GsSpill    *spill;
	uint64_t	bytes;

	begin_case("pages");
	temporary_path(path);
	spill = gs_spill_open(io, path, PAGE_BYTES);
	for (int round = 0; round < 2; round++)
	{
		memset(jobs, 0, sizeof(jobs));
		for (uint32_t i = 0; i < N_PAGES; i++)
		{
			uint32_t	page = i * 10 % N_PAGES;

			n_jobs++;
			if (round == 0)
			{
				fill_page(memory + (size_t) page * PAGE_BYTES, page);
				gs_spill_write_page(spill, page, memory + (size_t) page * PAGE_BYTES, &jobs[page]);
			}
			else
				gs_spill_read_page(spill, page, memory + (size_t) page * PAGE_BYTES, &jobs[page]);
		}
		for (uint32_t i = 0; i < N_PAGES; i++)
			CHECK(wait_for(&jobs[i]) == GS_OK);
		if (round == 0)
			memset(memory, 0, (size_t) N_PAGES * PAGE_BYTES);
	}
	for (uint32_t i = 0; i < N_PAGES; i++)
	{
		fill_page(expected, i);
		CHECK(memcmp(memory + (size_t) i * PAGE_BYTES, expected, PAGE_BYTES) == 0);
	}
	CHECK(gs_spill_bytes(spill) == (uint64_t) N_PAGES * PAGE_BYTES);
	CHECK(count_files(&bytes) > 1 && bytes == (uint64_t) N_PAGES * PAGE_BYTES);

	gs_spill_plant(spill, "write to", ENOSPC);
	memset(jobs, 0, sizeof(GsJob));
	n_jobs++;
	gs_spill_write_page(spill, 0, memory, &jobs[0]);
	CHECK(wait_for(&jobs[0]) == GS_INTERNAL);
	check_failure(spill, "write to", ENOSPC);
	close_spill(spill);
	free(memory);
	free(expected);
	end_case();
}

/* Whole runs are read in few transfers, and a border costs each run one. */
static void
test_transfers(void)
{
	static const Case spec = {KEYS_RANDOM, 65536, 4, 20000, true, 30, 0, SPLIT_NEVER};
	Sort		sort;
	Rows		rows = {NULL, 0, 0};
	bool		ties;
	uint32_t	before;

	begin_case("number of transfers");
	make_sort(&sort, &spec);
	n_transfers = 0;
	if (write_sort(&sort) && CHECK(gs_spill_seal(sort.spill)))
	{
		CHECK(n_transfers <= sort.n_chunks);
		before = n_transfers;
		CHECK(gs_spill_plan(sort.spill, UINT64_MAX, 0));
		CHECK(gs_spill_planned(sort.spill));
		CHECK(read_range(&sort, 0, &rows, &ties) == GS_OK);
		CHECK(rows.n == sort.rows.n);
		CHECK(n_transfers - before <= 2 * sort.n_chunks);
		CHECK(gs_spill_split(sort.spill));
		before = n_transfers;
		CHECK(read_range(&sort, 0, &rows, &ties) == GS_OK);
		CHECK(gs_spill_plan(sort.spill, UINT64_MAX, 0));
		CHECK(read_range(&sort, 1, &rows, &ties) == GS_OK);
		CHECK(rows.n == 2 * sort.rows.n);
		CHECK(n_transfers - before <= 2 * (sort.n_chunks + spec.n_runs));
	}
	close_spill(sort.spill);
	free_rows(&rows);
	free_sort(&sort);
	end_case();
}

/* Sorts may be closed after the threads have ended. */
static void
test_close_late(void)
{
	GsSpillIo  *all = io;
	Sort		sort;

	begin_case("threads that end first");
	io = gs_spill_io_open(1, NULL, NULL);
	make_sort(&sort, &small);
	{
		char		path[GS_SPILL_PATH_BYTES];
		GsJob		job = {0};

		temporary_path(path);
		sort.spill = gs_spill_open(io, path, small.chunk_bytes);
		CHECK(gs_spill_begin_run(sort.spill, 1));
		gs_spill_write(sort.spill, 0, sort.chunks[0].memory, sort.chunks[0].n_records, &job);
		gs_spill_io_close(io);
		CHECK(gs_job_status(&job) == GS_OK);
	}
	close_spill(sort.spill);
	free_sort(&sort);
	io = all;
	end_case();
}

/* ---- all cases ---- */

static const Case cases[] = {
	/* keys, chunk_bytes, runs, rows of each, all of them, row bytes, budget, splits */
	{KEYS_RANDOM, 4096, 0, 0, true, 10, 1000, SPLIT_NEVER},
	{KEYS_RANDOM, 4096, 3, 0, true, 10, 1000, SPLIT_NEVER},
	{KEYS_RANDOM, 4096, 1, 1, true, 10, 1, SPLIT_TO_ROWS},
	{KEYS_EQUAL, 4096, 40, 1, true, 10, 1000000, SPLIT_TO_ROWS},
	{KEYS_RANDOM, 4096, 1, 3000, true, 40, 10000, SPLIT_SOMETIMES},
	{KEYS_RANDOM, 4096, 200, 40, false, 40, 20000, SPLIT_SOMETIMES},
	{KEYS_RANDOM, 16384, 8, 2000, false, 100, 1, SPLIT_NEVER},
	{KEYS_FEW, 4096, 200, 20, false, 8, 1000, SPLIT_TO_ROWS},
	{KEYS_EQUAL, 4096, 7, 500, false, 20, 1, SPLIT_NEVER},
	{KEYS_EQUAL, 4096, 7, 200, false, 20, 10000, SPLIT_TO_ROWS},
	{KEYS_EQUAL_BUT_ONE, 4096, 9, 300, true, 20, 5000, SPLIT_SOMETIMES},
	{KEYS_EQUAL_BUT_ONE, 4096, 5, 100, true, 20, 5000, SPLIT_TO_ROWS},
	{KEYS_EMPTY, 4096, 4, 300, true, 0, 1, SPLIT_TO_ROWS},
	{KEYS_PREFIXES, 8192, 6, 600, false, 50, 8000, SPLIT_SOMETIMES},
	{KEYS_NULS, 4096, 6, 600, false, 50, 8000, SPLIT_SOMETIMES},
	{KEYS_NULS, 4096, 6, 60, false, 50, 8000, SPLIT_TO_ROWS},
	{KEYS_LONG, 65536, 5, 60, true, 100, 60000, SPLIT_SOMETIMES},
	{KEYS_LONG, 16384, 3, 20, true, 100, 60000, SPLIT_TO_ROWS},
	{KEYS_ANY_LENGTH, 65536, 4, 2000, false, 50, 100000, SPLIT_SOMETIMES},
	{KEYS_SORTED, 4096, 12, 500, true, 30, 10000, SPLIT_SOMETIMES},
	{KEYS_REVERSED, 4096, 12, 500, true, 30, 10000, SPLIT_SOMETIMES},
	{KEYS_SAME_RUNS, 4096, 12, 400, true, 30, 10000, SPLIT_SOMETIMES},
	{KEYS_SAME_RUNS, 4096, 20, 30, true, 30, 1, SPLIT_TO_ROWS},
	{KEYS_RANDOM, 65536, 5, 20000, true, 20, 400000, SPLIT_NEVER},
};

#define N_CASES ((uint32_t) (sizeof(cases) / sizeof(cases[0])))

static void
test_cases(void)
{
	char		name[200];

	for (uint32_t i = 0; i < N_CASES; i++)
	{
		static const char *const splits[3] = {"", ", split", ", split to rows"};
		const Case *spec = &cases[i];

		snprintf(name, sizeof(name), "%s, %u run%s of %u, chunks of %u, ranges of %llu bytes%s",
				 keys_names[spec->keys], spec->n_runs, spec->n_runs == 1 ? "" : "s", spec->run_rows,
				 spec->chunk_bytes, (unsigned long long) spec->budget, splits[spec->splits]);
		begin_case(name);
		run_case(spec);
		end_case();
	}
}

static void
test_random_cases(uint32_t n)
{
	char		name[100];

	for (uint32_t i = 0; i < n; i++)
	{
		Case		spec;

		spec.keys = (Keys) below(N_KEYS);
		spec.chunk_bytes = 4096u << below(5);
		if (spec.keys == KEYS_LONG || spec.keys == KEYS_ANY_LENGTH)
			spec.chunk_bytes = 16384u << below(3);
		spec.splits = (Splits) below(3);
		spec.n_runs = 1 + below(below(4) == 0 ? 100 : 10);
		spec.run_rows = 1 + below(3000 / spec.n_runs + 1) / (spec.splits == SPLIT_TO_ROWS ? 10 : 1);
		spec.full_runs = below(2) == 0;
		spec.max_row = below(3) == 0 ? gs_max_row_bytes(spec.chunk_bytes) : below(100);
		spec.budget = 1 + below(1u << below(20));
		snprintf(name, sizeof(name), "random case %u of %u", i, n);
		begin_case(name);
		run_case(&spec);
		if (!case_ok)
			end_case();
		else
			n_passed++;
	}
	printf("# %u random cases\n", n);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = 1;
	uint32_t	n_cases = 120;

	for (int i = 1; i + 1 < argc; i += 2)
	{
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--cases") == 0)
			n_cases = (uint32_t) strtoul(argv[i + 1], NULL, 10);
	}
	random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
	strcpy(folder, "/tmp/test_spill.XXXXXX");
	if (mkdtemp(folder) == NULL)
	{
		perror(folder);
		return 1;
	}
	test_file_system_full();	/* forks, so before there are threads */
	io = gs_spill_io_open(3, notify, NULL);
	test_cases();
	__atomic_store_n(&cut_transfers, true, __ATOMIC_RELAXED);
	test_random_cases(n_cases);
	__atomic_store_n(&cut_transfers, false, __ATOMIC_RELAXED);
	test_write_failure("files that cannot be made", "create", EACCES);
	test_write_failure("writes that fail", "write to", ENOSPC);
	test_read_failures();
	test_create();
	test_file_limit();
	test_no_memory();
	test_pages();
	test_transfers();
	test_close_late();
	gs_spill_io_close(io);
	if (rmdir(folder) != 0)
	{
		printf("not ok - the tests' folder is empty\n");
		n_failed++;
	}
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed > 0;
}
