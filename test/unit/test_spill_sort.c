/*-------------------------------------------------------------------------
 *
 * test_spill_sort.c
 *	  Rows, the sort of them in memory, and the same sort in files: writing,
 *	  reading, checking.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>

#include "test_spill.h"

#define IN_FLIGHT	6			/* jobs at a time */
#define MAX_KEY		8192

int			n_passed;
int			n_failed;
char		folder[64];
GsSpillIo  *io;

/* ---- random numbers ---- */

uint64_t	random_state;

uint64_t
random_bits(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t
below(uint32_t limit)
{
	return (uint32_t) ((random_bits() >> 32) * limit >> 32);
}

/* ---- checks ---- */

static const char *case_name = "";
bool		case_ok;

bool
check(bool ok, const char *what, const char *file, int line)
{
	if (!ok && case_ok)
	{
		printf("# %s, %s, line %d: %s\n", case_name, file, line, what);
		case_ok = false;
	}
	return ok;
}

void
begin_case(const char *name)
{
	case_name = name;
	case_ok = true;
}

void
end_case(void)
{
	printf("%s - %s\n", case_ok ? "ok" : "not ok", case_name);
	if (case_ok)
		n_passed++;
	else
		n_failed++;
}

void *
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
uint64_t	n_notified;
uint64_t	n_jobs;

void
notify(void *arg)
{
	(void) arg;
	pthread_mutex_lock(&lock);
	n_notified++;
	pthread_cond_signal(&notified);
	pthread_mutex_unlock(&lock);
}

GsStatus
wait_for(GsJob *job)
{
	pthread_mutex_lock(&lock);
	while (gs_job_status(job) == GS_PENDING)
		pthread_cond_wait(&notified, &lock);
	pthread_mutex_unlock(&lock);
	return gs_job_status(job);
}

/* ---- rows, and the sort in memory ---- */

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
		scratch[i] = a < half && (b == n || compare_rows(&rows[a], &rows[b]) <= 0) ? rows[a++] : rows[b++];
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
	memset(chunk->memory + chunk->data_bytes, 0, round_up_8(bytes));
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

void
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

void
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

void
temporary_path(char *path)
{
	static int	number;

	snprintf(path, GS_SPILL_PATH_BYTES, "%s/sort%d", folder, number++);
}

/* Write a run's chunks, in any order; returns the first bad status. */
GsStatus
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
	if (status == GS_OK)
		gs_spill_end_run(sort->spill);
	return status;
}

GsStatus
seal(const Sort *sort)
{
	GsJob		job = {0};

	n_jobs++;
	gs_spill_seal(sort->spill, &job);
	return wait_for(&job);
}

bool
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

void
check_images(const Sort *sort)
{
	char	   *memory = allocate(sort->spec.chunk_bytes);
	GsSpillPiece piece;

	for (uint32_t i = 0; i < gs_spill_images(sort->spill) && case_ok; i++)
	{
		GsJob		job = {0};

		gs_spill_read_image(sort->spill, i, memory, &piece, &job);
		n_jobs++;
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
GsStatus
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

void
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
	const Row  *row = &sort->rows.items[first];

	if (range == 0)
	{
		CHECK(first == 0 && !ties);
		return;
	}
	CHECK(ties == (compare_rows(row - 1, row) == 0));
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

/* Nothing waits in the call for what is read. */
bool
split_last(const Sort *sort)
{
	GsSpillSplit *split = gs_spill_split_begin(sort->spill);
	void	   *chunk = allocate(sort->spec.chunk_bytes);
	GsJob		job = {0};
	bool		done = split != NULL;

	while (done && gs_spill_split_read(split, chunk, &job))
	{
		n_jobs++;
		done = wait_for(&job) == GS_OK;
		memset(&job, 0, sizeof(job));
	}
	free(chunk);
	return split != NULL && gs_spill_split_end(split, done);
}

/* Split the last range as the case wants it; one row must be left, where all. */
static void
split_range(const Sort *sort, uint32_t first)
{
	if (sort->spec.splits == SPLIT_SOMETIMES)
	{
		for (uint32_t n = below(4) == 0 ? below(30) : below(2); n > 0; n--)
			(void) split_last(sort);
	}
	else if (sort->spec.splits == SPLIT_TO_ROWS)
	{
		uint32_t	range = gs_spill_ranges(sort->spill) - 1;
		uint32_t	n = below(10) == 0 ? check_range(sort, range, first) : UINT32_MAX;

		while (case_ok && split_last(sort))
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

void
check_ranges(const Sort *sort)
{
	uint32_t	first = 0;

	CHECK(seal(sort) == GS_OK);
	CHECK(gs_spill_rows(sort->spill) == sort->rows.n);
	while (case_ok && !gs_spill_planned(sort->spill))
	{
		uint64_t	budget = sort->spec.budget;
		uint32_t	range = gs_spill_ranges(sort->spill);
		uint32_t	n;

		if (budget > 1 && below(4) == 0)
			budget = budget / 2 + below(1000);
		if (!CHECK(gs_spill_plan(sort->spill, budget)))
			return;
		split_range(sort, first);
		n = check_range(sort, range, first);
		if (sort->spec.splits == SPLIT_TO_ROWS)
			CHECK(n == 1);
		first += n;
	}
	CHECK(first == sort->rows.n);
	CHECK(!gs_spill_plan(sort->spill, 1));

	/* any range may be read again */
	if (case_ok && gs_spill_ranges(sort->spill) > 0)
		(void) check_range(sort, 0, 0);
}

/* ---- files ---- */

/* Files in the tests' folder. */
uint32_t
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
			CHECK((status.st_mode & 0777) == 0640);
			*bytes += (uint64_t) status.st_size;
			n++;
		}
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

void
check_no_files(void)
{
	uint64_t	bytes;

	for (int i = 0; i < 10000 && count_files(&bytes) > 0; i++)
		usleep(1000);
	CHECK(count_files(&bytes) == 0);
}

void
close_spill(GsSpill *spill)
{
	gs_spill_close(spill);
	CHECK(n_file_calls == 0);
	check_no_files();
}

void
check_failure(const GsSpill *spill, GsSpillAction action, int error_number)
{
	const GsSpillFailure *failure = gs_spill_failure(spill);

	CHECK(failure->error_number == error_number);
	CHECK(failure->action == action);
	CHECK(strncmp(failure->path, folder, strlen(folder)) == 0);
}

void
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
