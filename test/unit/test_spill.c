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
 *-------------------------------------------------------------------------
 */
#include "test_spill.h"

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
				gs_spill_write_page(spill, page, memory + (size_t) page * PAGE_BYTES, 0, false,
									&jobs[page]);
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

	gs_spill_plant(spill, GS_SPILL_WRITE, ENOSPC);
	memset(jobs, 0, sizeof(GsJob));
	n_jobs++;
	gs_spill_write_page(spill, 0, memory, 0, false, &jobs[0]);
	CHECK(wait_for(&jobs[0]) == GS_INTERNAL);
	check_failure(spill, GS_SPILL_WRITE, ENOSPC);

	/* other pages may follow */
	gs_spill_forget_pages(spill);
	check_no_files();
	CHECK(gs_spill_bytes(spill) == 0);
	CHECK(gs_spill_failure(spill)->error_number == 0);
	n_jobs += 2;
	gs_spill_write_page(spill, 1, expected, 0, false, &jobs[0]);
	CHECK(wait_for(&jobs[0]) == GS_OK);
	gs_spill_read_page(spill, 1, memory, &jobs[0]);
	CHECK(wait_for(&jobs[0]) == GS_OK);
	CHECK(memcmp(memory, expected, PAGE_BYTES) == 0 && gs_spill_bytes(spill) == PAGE_BYTES);
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
	if (write_sort(&sort) && CHECK(seal(&sort) == GS_OK))
	{
		CHECK(n_transfers <= sort.n_chunks);
		before = n_transfers;
		CHECK(gs_spill_plan(sort.spill, UINT64_MAX));
		CHECK(gs_spill_planned(sort.spill));
		CHECK(read_range(&sort, 0, &rows, &ties) == GS_OK);
		CHECK(rows.n == sort.rows.n);
		CHECK(n_transfers - before <= 2 * sort.n_chunks);
		CHECK(split_last(&sort));
		before = n_transfers;
		CHECK(read_range(&sort, 0, &rows, &ties) == GS_OK);
		CHECK(gs_spill_plan(sort.spill, UINT64_MAX));
		CHECK(read_range(&sort, 1, &rows, &ties) == GS_OK);
		CHECK(rows.n == 2 * sort.rows.n);
		CHECK(n_transfers - before <= 2 * (sort.n_chunks + spec.n_runs));
	}
	close_spill(sort.spill);
	free_rows(&rows);
	free_sort(&sort);
	end_case();
}

/* Write a run of n chunks without records, a multiple of 1024. */
static void
write_empty_chunks(GsSpill *spill, uint32_t n)
{
	static GsJob jobs[1024];

	CHECK(gs_spill_begin_run(spill, n));
	for (uint32_t i = 0; i < n; i++)
	{
		memset(&jobs[i % 1024], 0, sizeof(GsJob));
		gs_spill_write(spill, i, NULL, 0, &jobs[i % 1024]);
		n_jobs++;
		for (uint32_t j = 0; i % 1024 == 1023 && j < 1024; j++)
			CHECK(wait_for(&jobs[j]) == GS_OK);
	}
	gs_spill_end_run(spill);
}

/* The index of chunks behind many others is smaller.  With this budget each range is one block. */
static void
test_index_of_many_chunks(void)
{
	static const Case spec = {KEYS_RANDOM, 16384, 3, 2000, true, 30, 1, SPLIT_NEVER};
	static const uint32_t n_before[3] = {0, 4 * 32768, 16 * 32768};
	uint32_t	n_blocks[3];
	uint32_t	n_chunks;

	begin_case("index of many chunks");
	for (int i = 0; i < 3; i++)
	{
		Sort		sort;
		char		path[GS_SPILL_PATH_BYTES];

		make_sort(&sort, &spec);
		temporary_path(path);
		sort.spill = gs_spill_open(io, path, spec.chunk_bytes);
		write_empty_chunks(sort.spill, n_before[i]);
		for (uint32_t run = 0; run < spec.n_runs; run++)
			CHECK(write_run(&sort, run) == GS_OK);
		check_ranges(&sort);
		n_blocks[i] = gs_spill_ranges(sort.spill);
		n_chunks = sort.n_chunks;
		close_spill(sort.spill);
		free_sort(&sort);
	}
	CHECK(n_blocks[0] > 10 * n_chunks);
	CHECK(n_blocks[1] <= n_blocks[0] / 4 + n_chunks);
	CHECK(n_blocks[2] <= n_chunks);
	end_case();
}

/* Sorts may be closed after the threads have ended. */
static void
test_close_late(void)
{
	GsSpillIo  *all = io;
	Sort		sort;
	char		path[GS_SPILL_PATH_BYTES];
	GsJob		job = {0};

	begin_case("threads that end first");
	io = gs_spill_io_open(1, 0750, 0640, NULL, NULL);
	make_sort(&sort, &small_case);
	temporary_path(path);
	sort.spill = gs_spill_open(io, path, small_case.chunk_bytes);
	CHECK(gs_spill_begin_run(sort.spill, 1));
	gs_spill_write(sort.spill, 0, sort.chunks[0].memory, sort.chunks[0].n_records, &job);
	gs_spill_io_close(io);
	CHECK(gs_job_status(&job) == GS_OK);
	gs_spill_close(sort.spill);	/* no thread is left to remove its files */
	check_no_files();
	free_sort(&sort);
	io = all;
	end_case();
}

/* ---- all cases ---- */

/* In the order of Keys. */
static const char *const keys_names[N_KEYS] = {
	"random keys", "few keys", "equal keys", "all keys equal but one", "empty keys",
	"keys that are prefixes", "keys of NULs", "long keys", "keys of all lengths",
	"runs in order", "runs in reverse order", "identical runs"};

static const Case cases[] = {
	/* keys, chunk_bytes, runs, rows of each, all of them, row bytes, budget, splits */
	{KEYS_RANDOM, 4096, 0, 0, true, 10, 1000, SPLIT_NEVER},
	{KEYS_RANDOM, 4096, 3, 0, true, 10, 1000, SPLIT_NEVER},
	{KEYS_RANDOM, 4096, 1, 1, true, 10, 1, SPLIT_TO_ROWS},
	{KEYS_EQUAL, 4096, 40, 1, true, 10, 1000000, SPLIT_TO_ROWS},
	{KEYS_RANDOM, 4096, 1, 3000, true, 40, 10000, SPLIT_SOMETIMES},
	{KEYS_RANDOM, 4096, 200, 40, false, 40, 20000, SPLIT_SOMETIMES},
	{KEYS_RANDOM, 16384, 8, 2000, false, 100, 1, SPLIT_NEVER},
	{KEYS_FEW, 4096, 50, 20, false, 8, 1000, SPLIT_TO_ROWS},
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
	umask(022);
	test_file_system_full();	/* forks, so before there are threads */
	io = gs_spill_io_open(3, 0750, 0640, notify, NULL);
	test_cases();
	__atomic_store_n(&cut_transfers, true, __ATOMIC_RELAXED);
	test_random_cases(n_cases);
	__atomic_store_n(&cut_transfers, false, __ATOMIC_RELAXED);
	test_code();
	test_failures();
	test_pages();
	test_transfers();
	test_index_of_many_chunks();
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
