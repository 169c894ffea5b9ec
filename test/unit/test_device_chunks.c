/*-------------------------------------------------------------------------
 *
 * test_device_chunks.c
 *	  The conformance cases of GS_FORMAT_CHUNKS, and of memory limits.
 *
 * What a sort gives back as chunks is appended to other sorts, which must come
 * to the order of the input.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_device.h"

/* ---- chunks of performed sorts ---- */

/* Chunks as a sort gave them back. */
typedef struct Chunks
{
	uint32_t	chunk_bytes;
	char	  **chunks;
	uint32_t   *n_records;
	uint64_t	n;
} Chunks;

static void
chunks_init(Chunks *list, uint32_t chunk_bytes)
{
	memset(list, 0, sizeof(*list));
	list->chunk_bytes = chunk_bytes;
}

static void
chunks_free(Chunks *list)
{
	for (uint64_t i = 0; i < list->n; i++)
		free(list->chunks[i]);
	free(list->chunks);
	free(list->n_records);
}

static uint32_t
data_bytes(const Chunks *list, uint64_t i)
{
	const GsRecord *last = gs_chunk_record(list->chunks[i], list->chunk_bytes, list->n_records[i] - 1);

	return last->key_off + (last->key_len & GS_LENGTH_MASK);
}

/* Add all chunks of a performed sort, which are fetched last to first. */
static void
chunks_fetch(Chunks *list, TestSort *ts)
{
	GsSortResult result;
	uint64_t	n;

	memset(&result, 0, sizeof(result));
	ts->td->ops->result(ts->sort, &result);
	n = list->n + result.n_pages;
	list->chunks = realloc(list->chunks, (n + 1) * sizeof(char *));
	list->n_records = realloc(list->n_records, (n + 1) * sizeof(uint32_t));
	if (list->chunks == NULL || list->n_records == NULL)
		abort();
	for (uint64_t page = result.n_pages; page-- > 0;)
	{
		char	   *chunk = aligned_alloc(64, list->chunk_bytes);
		GsJob		job = {0};

		if (chunk == NULL)
			abort();
		memset(chunk, 0xa5, list->chunk_bytes);
		ts->td->ops->fetch(ts->sort, page, chunk, &job);
		test_wait(ts->td, &job);
		CHECK(gs_job_status(&job) == GS_OK, "fetch of chunk %llu: %s %s", (unsigned long long) page,
			  gs_status_name(gs_job_status(&job)), job.error.message);
		list->chunks[list->n + page] = chunk;
		list->n_records[list->n + page] =
			(uint32_t) (result.page_first[page + 1] - result.page_first[page]);
	}
	list->n = n;
}

/* Append all chunks of a list; several are pending at a time. */
static bool
chunks_append(const Chunks *list, TestSort *ts)
{
	GsJob		jobs[TEST_WINDOW];
	bool		good = true;

	for (uint64_t i = 0; i < list->n + TEST_WINDOW; i++)
	{
		GsJob	   *job = &jobs[i % TEST_WINDOW];

		if (i >= TEST_WINDOW && i - TEST_WINDOW < list->n)
		{
			test_wait(ts->td, job);
			good &= CHECK(gs_job_status(job) == GS_OK, "append of chunk %llu again: %s %s",
						  (unsigned long long) (i - TEST_WINDOW),
						  gs_status_name(gs_job_status(job)), job->error.message);
			ts->n_appended++;
		}
		if (i < list->n)
		{
			memset(job, 0, sizeof(*job));
			ts->td->ops->append(ts->sort, list->chunks[i], data_bytes(list, i), list->n_records[i], 0, job);
		}
	}
	return good;
}

/* Sort the chunks of a list again, in this format, and check what comes out. */
static void
check_again(TestDevice *td, const TestInput *in, Chunks *list, GsPageFormat format, TestRandom *rng)
{
	TestSort	ts;

	if (!test_sort_open(&ts, td, in, true, 0))
		return;
	ts.format = format;
	if (chunks_append(list, &ts) && CHECK(test_sort_perform(&ts) == GS_OK, "perform of chunks"))
	{
		test_check_result(&ts);
		test_check_pages(&ts, rng);
		if (format == GS_FORMAT_CHUNKS)
		{
			chunks_free(list);
			chunks_init(list, in->chunk_bytes);
			chunks_fetch(list, &ts);
		}
	}
	test_sort_close(&ts);
}

/* One sort to chunks, a second one to chunks again, a third one to rows. */
static void
check_rounds(TestDevice *td, const TestInput *in, bool plain, TestRandom *rng)
{
	TestSort	ts;
	Chunks		list;

	if (!test_sort_open(&ts, td, in, plain, test_random(rng)))
		return;
	ts.format = GS_FORMAT_CHUNKS;
	chunks_init(&list, in->chunk_bytes);
	if (CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message) &&
		CHECK(test_sort_perform(&ts) == GS_OK, "perform"))
	{
		test_check_result(&ts);
		test_check_pages(&ts, rng);
		test_check_images(&ts);
		chunks_fetch(&list, &ts);
		check_again(td, in, &list, GS_FORMAT_CHUNKS, rng);
		check_again(td, in, &list, GS_FORMAT_ROWS, rng);
	}
	test_sort_close(&ts);
	chunks_free(&list);
}

/*
 * Sort the input in runs of some chunks each, and then all runs together: rows
 * with equal keys keep their order, also across runs.
 */
static void
check_runs(TestDevice *td, const TestInput *in, bool plain, TestRandom *rng)
{
	TestSort	whole;
	TestFeed	feed;
	Chunks		list;

	if (!test_sort_open(&whole, td, in, plain, test_random(rng)))
		return;
	chunks_init(&list, in->chunk_bytes);
	feed = whole.feed;
	while (feed.next < in->n)
	{
		uint32_t	n_chunks = 1 + test_below(rng, 12);
		TestSort	run;

		if (!test_sort_open(&run, td, in, plain, 0))
			break;
		run.feed = feed;
		run.format = GS_FORMAT_CHUNKS;
		while (n_chunks-- > 0 && test_sort_append(&run))
			;
		CHECK(test_sort_drain(&run) == GS_OK, "append to a run: %s", run.error.message);
		CHECK(test_sort_perform(&run) == GS_OK, "perform of a run");
		chunks_fetch(&list, &run);
		feed = run.feed;
		test_sort_close(&run);
	}
	if (chunks_append(&list, &whole) && CHECK(test_sort_perform(&whole) == GS_OK, "perform of runs"))
	{
		test_check_result(&whole);
		test_check_pages(&whole, rng);
	}
	test_sort_close(&whole);
	chunks_free(&list);
}

/* ---- inputs ---- */

/* Rows and keys of every size, from nothing to the most that is allowed, with flags. */
static void
make_all_sizes(TestInput *in, TestRandom *rng)
{
	uint32_t	max_row = (uint32_t) gs_max_row_bytes(in->chunk_bytes);
	uint32_t	max_key = 8192;
	unsigned char *bytes = malloc(max_row + max_key);

	if (bytes == NULL)
		abort();
	while (in->n_bytes < (size_t) in->chunk_bytes * 12)
	{
		uint32_t	kind = test_below(rng, 10);
		uint32_t	row_len = kind < 2 ? 0 : kind == 2 ? max_row : kind == 3 ? max_row - test_below(rng, 9)
			: kind == 4 ? test_below(rng, max_row) : test_below(rng, 40);
		uint32_t	key_len;

		kind = test_below(rng, 10);
		key_len = kind < 2 ? 0 : kind == 2 ? max_key : kind == 3 ? max_key - test_below(rng, 9)
			: kind == 4 ? test_below(rng, max_key) : test_below(rng, 40);
		for (uint32_t i = 0; i < row_len; i++)
			bytes[i] = (unsigned char) test_below(rng, 256);
		for (uint32_t i = 0; i < key_len; i++)
			bytes[row_len + i] = (unsigned char) (test_below(rng, 40) == 0 ? 255 : 0);
		test_input_add_apart(in, bytes, row_len | (test_below(rng, 3) == 0 ? GS_ROW_EXTERNAL : 0),
							 bytes + row_len, key_len | (key_len == max_key ? GS_KEY_INEXACT : 0));
	}
	free(bytes);
}

static void
case_generators(TestDevice *td, uint64_t seed)
{
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom	rng = seed + (uint64_t) (g - test_generators) * 55;
		TestInput	in;
		char		name[96];

		snprintf(name, sizeof(name), "chunks: %s", g->name);
		if (!test_begin_case(name))
			continue;
		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		check_rounds(td, &in, test_below(&rng, 2) == 0, &rng);
		check_runs(td, &in, false, &rng);
		test_input_free(&in);
		test_end_case(name);
	}
}

static void
case_all_sizes(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: rows and keys of every size";
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (uint32_t chunk_bytes = 1 << 15; chunk_bytes <= 1 << 20; chunk_bytes *= 2)
	{
		TestInput	in;

		test_input_init(&in, chunk_bytes);
		make_all_sizes(&in, &rng);
		test_input_finish(&in);
		check_rounds(td, &in, false, &rng);
		check_runs(td, &in, false, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_fixed(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: keys of one length";
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (uint32_t width = 1; width <= 48; width += 1 + width / 6)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		test_make_fixed(&in, width, 1 + test_below(&rng, 30000), &rng);
		test_input_finish(&in);
		check_rounds(td, &in, false, &rng);
		check_runs(td, &in, true, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_sizes(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: many sizes";
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (uint32_t n = 1; n < 5000; n += 1 + n / 2)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		test_make_words(&in, n, &rng);
		test_input_finish(&in);
		check_rounds(td, &in, true, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_large(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: a million words";
	TestRandom	rng = seed;
	TestInput	in;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 1 << 20);
	test_make_words(&in, 1000000, &rng);
	test_input_finish(&in);
	check_rounds(td, &in, true, &rng);
	check_runs(td, &in, true, &rng);
	test_input_free(&in);
	test_end_case(name);
}

/* ---- misuse and cancel ---- */

/* A row of the largest size and a key of key_len bytes, one on the other. */
static GsStatus
sort_overlapping(TestDevice *td, uint32_t key_len, GsPageFormat format)
{
	TestInput	none;
	TestSort	ts;
	GsRecord   *record;
	GsJob		append = {0};
	GsStatus	status = GS_INTERNAL;

	test_input_init(&none, 1024);
	test_input_finish(&none);
	if (test_sort_open(&ts, td, &none, true, 0))
	{
		record = gs_chunk_record(ts.buffers[0], 1024, 0);
		record->row_off = 0;
		record->row_len = (uint32_t) gs_max_row_bytes(1024);
		record->key_off = 0;
		record->key_len = key_len;
		td->ops->append(ts.sort, ts.buffers[0], 1024 - sizeof(GsRecord), 1, 0, &append);
		test_wait(td, &append);
		CHECK(gs_job_status(&append) == GS_OK, "append: %s", append.error.message);
		ts.format = format;
		status = test_sort_perform(&ts);
		test_sort_close(&ts);
	}
	test_input_free(&none);
	return status;
}

static void
case_misuse(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: misuse";
	const uint32_t room = 1024 - sizeof(GsRecord) - (uint32_t) gs_max_row_bytes(1024);
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;
	GsStatus	status;

	if (!test_begin_case(name))
		return;
	status = sort_overlapping(td, room, GS_FORMAT_CHUNKS);
	CHECK(status == GS_OK, "a row and a key that just fit: %s", gs_status_name(status));
	status = sort_overlapping(td, room + 1, GS_FORMAT_CHUNKS);
	CHECK(status == GS_INVALID, "a row and a key that do not fit: %s", gs_status_name(status));
	status = sort_overlapping(td, room + 1, GS_FORMAT_ROWS);
	CHECK(status == GS_OK, "a row that fits: %s", gs_status_name(status));
	test_input_init(&in, 65536);
	test_make_words(&in, 3000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		GsSortResult result;
		GsJob		beyond = {0};
		GsJob		again = {0};

		ts.format = GS_FORMAT_CHUNKS;
		test_sort_feed(&ts);
		CHECK(test_sort_perform(&ts) == GS_OK, "perform");
		memset(&result, 0, sizeof(result));
		td->ops->result(ts.sort, &result);
		td->ops->fetch(ts.sort, result.n_pages, ts.buffers[0], &beyond);
		test_wait(td, &beyond);
		CHECK(gs_job_status(&beyond) == GS_INVALID, "fetch beyond the end: %s",
			  gs_status_name(gs_job_status(&beyond)));
		td->ops->perform(ts.sort, GS_FORMAT_ROWS, NULL, &again);
		test_wait(td, &again);
		CHECK(gs_job_status(&again) == GS_INVALID, "perform in the other format: %s",
			  gs_status_name(gs_job_status(&again)));
		test_check_pages(&ts, &rng);
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case(name);
}

static void
case_cancel(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: cancel";
	TestRandom	rng = seed;
	TestInput	in;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 100000, &rng);
	test_input_finish(&in);
	for (int round = 0; round < 6; round++)
	{
		TestSort	ts;
		GsJob		job = {0};

		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message);
		td->ops->perform(ts.sort, GS_FORMAT_CHUNKS, NULL, &job);
		if (round % 2 == 0)
			td->ops->cancel(ts.sort);
		test_wait(td, &job);
		CHECK(gs_job_status(&job) == GS_OK || (round % 2 == 0 && gs_job_status(&job) == GS_CANCELLED),
			  "perform: %s", gs_status_name(gs_job_status(&job)));
		if (gs_job_status(&job) == GS_OK)
		{
			GsJob		fetches[TEST_WINDOW];

			memset(fetches, 0, sizeof(fetches));
			for (uint64_t i = 0; i < TEST_WINDOW; i++)
				td->ops->fetch(ts.sort, i, ts.buffers[i], &fetches[i]);
			td->ops->cancel(ts.sort);
			for (int i = 0; i < TEST_WINDOW; i++)
			{
				GsStatus	status;

				test_wait(td, &fetches[i]);
				status = gs_job_status(&fetches[i]);
				CHECK(status == GS_OK || status == GS_CANCELLED, "cancelled fetch: %s",
					  gs_status_name(status));
			}
		}
		test_sort_close(&ts);
	}
	check_rounds(td, &in, true, &rng);
	test_input_free(&in);
	test_end_case(name);
}

/* ---- memory ---- */

static uint64_t
memory_held(TestSort *ts)
{
	return ts->td->ops->memory_held(ts->sort);
}

static GsDeviceInfo
device_info(TestDevice *td)
{
	GsDeviceInfo info;

	memset(&info, 0, sizeof(info));
	td->ops->info(td->device, &info);
	return info;
}

/* What two sorts hold is what the device says is used, at every step. */
static void
case_memory_held(TestDevice *td, uint64_t seed)
{
	static const char name[] = "memory held by sorts";
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts[2];

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 50000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&ts[0], td, &in, true, seed) && test_sort_open(&ts[1], td, &in, false, seed))
	{
		uint64_t	before[2] = {0, 0};

		ts[1].format = GS_FORMAT_CHUNKS;
		for (int step = 0; step < 8; step++)
		{
			TestSort   *moved = &ts[step % 2];
			uint64_t	held[2];

			if (step == 2 || step == 3)
				CHECK(test_sort_feed(moved) == GS_OK, "append: %s", moved->error.message);
			else if (step == 4 || step == 5)
				CHECK(test_sort_perform(moved) == GS_OK, "perform");
			else if (step > 5)
				test_check_pages(moved, &rng);
			held[0] = memory_held(&ts[0]);
			held[1] = memory_held(&ts[1]);
			CHECK(held[0] + held[1] == device_info(td).memory_used,
				  "sorts hold %llu and %llu bytes of %llu used (step %d)", (unsigned long long) held[0],
				  (unsigned long long) held[1], (unsigned long long) device_info(td).memory_used, step);
			CHECK(held[1 - step % 2] == before[1 - step % 2], "the other sort holds other memory now");
			CHECK(step < 2 ? held[step % 2] == 0 : held[step % 2] >= in.row_bytes,
				  "%llu bytes held by %llu bytes of rows (step %d)",
				  (unsigned long long) held[step % 2], (unsigned long long) in.row_bytes, step);
			before[0] = held[0];
			before[1] = held[1];
		}
		test_sort_close(&ts[1]);
		CHECK(memory_held(&ts[0]) == device_info(td).memory_used, "the closed sort holds memory");
		test_sort_close(&ts[0]);
	}
	CHECK(device_info(td).memory_used == 0, "memory used by no sort");
	test_input_free(&in);
	test_end_case(name);
}

/* A sort that may take little memory ahead holds about what its chunks need, at every append. */
static void
case_spare_bytes(TestDevice *td, uint64_t seed)
{
	static const char name[] = "memory taken ahead";
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 100000, &rng);
	test_input_finish(&in);
	td->spare_bytes = in.chunk_bytes;
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		uint64_t	before = 0;

		while (test_sort_append(&ts))
		{
			uint64_t	held;

			CHECK(test_sort_drain(&ts) == GS_OK, "append: %s", ts.error.message);
			held = memory_held(&ts);

			/* the first one also pays for the buffers of pages */
			CHECK(before == 0 || held <= before + 8 * in.chunk_bytes, "%llu bytes held after %llu",
				  (unsigned long long) held, (unsigned long long) before);
			before = held;
		}
		CHECK(before >= 16 * in.chunk_bytes, "only %llu bytes held", (unsigned long long) before);
		CHECK(test_sort_perform(&ts) == GS_OK, "perform");
		test_check_pages(&ts, &rng);
		test_sort_close(&ts);
	}
	td->spare_bytes = 0;
	test_input_free(&in);
	test_end_case(name);
}

/* The first n records of an input as an input, whose order alone is its own. */
static void
input_part(TestInput *part, const TestInput *in, uint64_t n)
{
	*part = *in;
	part->n = (uint32_t) n;
	part->row_bytes = part->key_bytes = 0;
	test_input_finish(part);
}

/*
 * Feed a sort until it is refused, and perform it: its rows are those of the
 * chunks that were taken.
 */
static void
check_refused(TestDevice *td, const TestInput *in, bool plain, GsPageFormat format, TestRandom *rng)
{
	GsSortResult result;
	TestSort	ts;
	GsStatus	status;
	uint64_t	n = 0;
	uint64_t	limit = device_info(td).memory_limit;

	if (!test_sort_open(&ts, td, in, plain, test_random(rng)))
		return;
	ts.format = format;
	status = test_sort_feed(&ts);
	CHECK(status == GS_NO_MEMORY && ts.n_appended > 0, "append: %s after %u chunks",
		  gs_status_name(status), ts.n_appended);

	/* More appends are refused, even of nothing. */
	for (int i = 0; i < 3; i++)
	{
		GsJob		more = {0};

		td->ops->append(ts.sort, ts.buffers[0], 0, 0, 0, &more);
		test_wait(td, &more);
		CHECK(gs_job_status(&more) == GS_NO_MEMORY, "append after a refused one: %s",
			  gs_status_name(gs_job_status(&more)));
	}
	memset(&result, 0, sizeof(result));
	td->ops->result(ts.sort, &result);
	n = test_taken_records(&ts);
	status = test_sort_perform(&ts);
	if (CHECK(status == GS_OK, "perform after a refused append: %s", gs_status_name(status)))
	{
		TestInput	part;

		input_part(&part, in, n);
		ts.in = &part;
		ts.order = part.order;
		ts.n = part.n;
		test_check_result(&ts);
		test_check_pages(&ts, rng);
		CHECK(device_info(td).memory_used <= limit, "%llu bytes used of %llu",
			  (unsigned long long) device_info(td).memory_used, (unsigned long long) limit);
		free(part.order);
		ts.in = in;
		ts.order = in->order;
		test_check_images(&ts);
	}
	test_sort_close(&ts);
}

static void
case_refused(TestDevice *td, uint64_t seed)
{
	static const char name[] = "chunks: perform after a refused append";
	const uint64_t limit = (uint64_t) 24 << 20;
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	td->ops->set_memory_limit(td->device, limit);
	for (int kind = 0; kind < 8; kind++)
	{
		TestInput	in;

		/* Rows from none at all to several kB, keys inside of them and apart. */
		test_input_init(&in, kind % 4 < 2 ? 1 << 20 : 1 << 16);
		while ((uint64_t) in.n_bytes + in.n * sizeof(GsRecord) < limit)
		{
			char		key[64];
			uint32_t	key_len = 1 + test_below(&rng, sizeof(key));

			for (uint32_t i = 0; i < key_len; i++)
				key[i] = (char) test_below(&rng, 4);
			if (kind < 2)
				test_input_add_apart(&in, NULL, 0, key, test_below(&rng, 3));
			else if (kind < 4)
				test_input_add(&in, key, key_len, test_below(&rng, 20));
			else
				test_input_add(&in, key, key_len, test_below(&rng, kind < 6 ? 300 : 8000));
		}
		test_input_finish(&in);
		for (int round = 0; round < 2; round++)
		{
			check_refused(td, &in, round == 0, GS_FORMAT_CHUNKS, &rng);
			check_refused(td, &in, round == 0, GS_FORMAT_ROWS, &rng);
		}
		test_input_free(&in);
	}
	td->ops->set_memory_limit(td->device, 0);
	CHECK(device_info(td).memory_used == 0, "memory used by no sort");
	test_end_case(name);
}

/* Limits change while sorts are open. */
static void
case_set_memory_limit(TestDevice *td, uint64_t seed)
{
	static const char name[] = "other memory limits";
	const uint64_t mega = (uint64_t) 1 << 20;
	uint64_t	usual = device_info(td).memory_limit;
	uint64_t	most;
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	done;
	TestSort	fed;
	TestSort	late;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 50000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&done, td, &in, true, seed) && test_sort_open(&fed, td, &in, true, seed) &&
		test_sort_open(&late, td, &in, true, seed))
	{
		uint64_t	used;
		GsJob		more = {0};

		CHECK(test_sort_feed(&done) == GS_OK && test_sort_feed(&fed) == GS_OK, "append");
		CHECK(test_sort_perform(&done) == GS_OK, "perform");
		test_check_pages(&done, &rng);

		/* Too low a limit takes nothing from open sorts. */
		used = device_info(td).memory_used;
		td->ops->set_memory_limit(td->device, mega);
		CHECK(device_info(td).memory_limit == mega && device_info(td).memory_used == used,
			  "the limit is %llu, and %llu bytes are used",
			  (unsigned long long) device_info(td).memory_limit,
			  (unsigned long long) device_info(td).memory_used);
		CHECK(test_sort_feed(&late) == GS_NO_MEMORY && late.n_appended == 0, "append above the limit: %s",
			  gs_status_name(late.worst));
		td->ops->append(fed.sort, fed.buffers[0], 65536, 0, 0, &more);
		test_wait(td, &more);
		CHECK(gs_job_status(&more) == GS_NO_MEMORY, "append above the limit: %s",
			  gs_status_name(gs_job_status(&more)));
		fed.format = GS_FORMAT_CHUNKS;
		CHECK(test_sort_perform(&fed) == GS_OK, "perform above the limit");
		test_check_result(&fed);
		test_check_pages(&fed, &rng);
		test_check_pages(&done, &rng);
		test_check_images(&done);

		/* With room again, that sort stays refused until it is resumed; another is not. */
		td->ops->set_memory_limit(td->device, 2 * used + 64 * mega);
		CHECK(device_info(td).memory_limit == 2 * used + 64 * mega, "the limit is %llu",
			  (unsigned long long) device_info(td).memory_limit);
		CHECK(test_sort_append(&late) && test_sort_drain(&late) == GS_NO_MEMORY && late.n_appended == 0,
			  "append to a refused sort");
		td->ops->resume(late.sort);
		late.feed = late.start;
		late.worst = GS_OK;
		CHECK(test_sort_feed(&late) == GS_OK && test_sort_perform(&late) == GS_OK,
			  "append to a resumed sort: %s", late.error.message);
		test_check_pages(&late, &rng);
		test_sort_close(&late);
		if (test_sort_open(&late, td, &in, true, seed))
		{
			CHECK(test_sort_feed(&late) == GS_OK && test_sort_perform(&late) == GS_OK,
				  "append below the limit: %s", late.error.message);
			test_check_pages(&late, &rng);
			test_sort_close(&late);
		}
		td->ops->set_memory_limit(td->device, UINT64_MAX);
		most = device_info(td).memory_total;
		if (td->ops == &gs_device_host)
			most = most / 10 * 9;
		CHECK(device_info(td).memory_limit == most, "the limit is %llu, and the most is %llu",
			  (unsigned long long) device_info(td).memory_limit, (unsigned long long) most);
		td->ops->set_memory_limit(td->device, 0);
		CHECK(device_info(td).memory_limit == usual, "the default limit is %llu, and was %llu",
			  (unsigned long long) device_info(td).memory_limit, (unsigned long long) usual);
		test_sort_close(&fed);
		test_sort_close(&done);
	}
	CHECK(device_info(td).memory_used == 0, "memory used by no sort");
	test_input_free(&in);
	test_end_case(name);
}

#ifdef GS_WITH_CUDA
static unsigned n_trims = 0;	/* how often the CUDA device made its pool give memory back */

extern int	__real_cudaMemPoolTrimTo(void *pool, size_t bytes);
extern int	__wrap_cudaMemPoolTrimTo(void *pool, size_t bytes);

int
__wrap_cudaMemPoolTrimTo(void *pool, size_t bytes)
{
	__atomic_add_fetch(&n_trims, 1, __ATOMIC_RELAXED);
	return __real_cudaMemPoolTrimTo(pool, bytes);
}

/* Where more than the limit is in use, allocations do not trim the pool each time. */
static void
case_trims(TestDevice *td, uint64_t seed)
{
	static const char name[] = "trims above the limit";
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	sorts[12];
	unsigned	n = 0;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 50000, &rng);
	test_input_finish(&in);
	while (n < 12 && test_sort_open(&sorts[n], td, &in, true, seed))
	{
		CHECK(test_sort_feed(&sorts[n]) == GS_OK, "append: %s", sorts[n].error.message);
		sorts[n++].format = GS_FORMAT_CHUNKS;
	}
	td->ops->set_memory_limit(td->device, 1 << 20);
	__atomic_store_n(&n_trims, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		CHECK(test_sort_perform(&sorts[i]) == GS_OK, "perform: %s", sorts[i].error.message);
	/* the lower limit itself may trim it */
	CHECK(__atomic_load_n(&n_trims, __ATOMIC_RELAXED) <= 1, "%u trims for %u sorts", n_trims, n);
	td->ops->set_memory_limit(td->device, 0);
	while (n > 0)
		test_sort_close(&sorts[--n]);
	test_input_free(&in);
	test_end_case(name);
}
#endif

/*
 * The host device under its default limit: what it takes is no more than a
 * quarter of the machine's memory, and when the machine has little left it
 * refuses more, at the latest 64 MB on.
 */
static void
case_little_memory(TestDevice *td, uint64_t seed)
{
	static const char name[] = "the machine has little memory left";
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;
	GsDeviceInfo info = device_info(td);

	if (!test_begin_case(name))
		return;
	CHECK(info.memory_limit <= info.memory_total / 4, "the limit is %llu of %llu bytes",
		  (unsigned long long) info.memory_limit, (unsigned long long) info.memory_total);
	test_input_init(&in, 1 << 20);
	while (in.n_bytes < (size_t) 130 << 20)
		test_input_add(&in, "some key", 8, 4000 + test_below(&rng, 1000));
	test_input_finish(&in);
	setenv("GPUSORT_FAULT_LOW_MEMORY", "1", 1);
	for (int round = 0; round < 2; round++)
	{
		GsStatus	status;

		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		status = test_sort_feed(&ts);
		CHECK(status == GS_NO_MEMORY && ts.error.message[0] != '\0', "append: %s", gs_status_name(status));
		CHECK(memory_held(&ts) <= (uint64_t) 64 << 20 && (round == 0 || ts.n_appended == 0),
			  "%llu bytes are held", (unsigned long long) memory_held(&ts));
		test_sort_close(&ts);
	}

	/* Who has set a limit is not watched; and memory may come back. */
	for (int round = 0; round < 2; round++)
	{
		if (round == 0)
			td->ops->set_memory_limit(td->device, (uint64_t) 512 << 20);
		else
		{
			td->ops->set_memory_limit(td->device, 0);
			unsetenv("GPUSORT_FAULT_LOW_MEMORY");
		}
		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message);
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case(name);
}

void
test_chunks_memory(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	TestDevice	td;
	GsError		error;
	GsStatus	status = test_open(&td, ops, 0, threads, &error);

	if (status != GS_OK)
	{
		test_failures++;
		printf("# open: %s %s\n", gs_status_name(status), error.message);
		test_end_case("memory of devices with the default limit");
		return;
	}
	case_refused(&td, seed);
	case_set_memory_limit(&td, seed);
#ifdef GS_WITH_CUDA
	if (ops == &gs_device_cuda)
		case_trims(&td, seed);
#endif
	test_close(&td);

	/* a GPU opens as one whose memory is the machine's */
	setenv("GPUSORT_FAULT_INTEGRATED", "1", 1);
	if (CHECK(test_open(&td, ops, 0, threads, &error) == GS_OK, "open: %s", error.message))
	{
		case_little_memory(&td, seed);
		test_close(&td);
	}
	unsetenv("GPUSORT_FAULT_INTEGRATED");
}

void
test_chunks_cases(TestDevice *td, uint64_t seed)
{
	case_generators(td, seed);
	case_all_sizes(td, seed);
	case_fixed(td, seed);
	case_sizes(td, seed);
	case_misuse(td, seed);
	case_cancel(td, seed);
	case_memory_held(td, seed);
	case_spare_bytes(td, seed);
	case_large(td, seed);
}
