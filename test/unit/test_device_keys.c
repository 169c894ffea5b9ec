/*-------------------------------------------------------------------------
 *
 * test_device_keys.c
 *	  The conformance cases of fetch_keys and reorder.
 *
 * After a reorder the order that the sort is to have is changed alike, so that all
 * checks of pages and keys serve for it too.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_device.h"

/* Bytes after a key buffer that the device must leave alone. */
#define GUARD_BYTES 64

/* What a key takes where it is fetched to. */
static size_t
fetched_bytes(const TestSort *ts, uint64_t rank)
{
	uint32_t	len = ts->in->records[ts->order[rank]].key_len & GS_LENGTH_MASK;

	return sizeof(uint32_t) + (((size_t) len + 3) & ~(size_t) 3);
}

static size_t
largest_key(const TestSort *ts)
{
	size_t		largest = sizeof(uint32_t);

	for (uint32_t i = 0; i < ts->n; i++)
	{
		size_t		bytes = fetched_bytes(ts, i);

		if (bytes > largest)
			largest = bytes;
	}
	return largest;
}

/* A call of fetch_keys, and where its keys go. */
typedef struct KeyFetch
{
	GsJob		job;
	uint64_t	first;
	uint64_t	n_keys;
	size_t		bytes;
	char	   *dst;			/* bytes and GUARD_BYTES */
} KeyFetch;

static void
start_keys(TestSort *ts, KeyFetch *fetch, uint64_t first, size_t bytes)
{
	memset(&fetch->job, 0, sizeof(GsJob));
	fetch->first = first;
	fetch->bytes = bytes;
	fetch->n_keys = UINT64_MAX;
	fetch->dst = malloc(bytes + GUARD_BYTES);
	if (fetch->dst == NULL)
		abort();
	memset(fetch->dst, 0xa5, bytes + GUARD_BYTES);
	ts->td->ops->fetch_keys(ts->sort, first, fetch->dst, bytes, &fetch->n_keys, &fetch->job);
}

/* Check the keys that were fetched; returns how many. */
static uint64_t
finish_keys(TestSort *ts, KeyFetch *fetch)
{
	const TestInput *in = ts->in;
	uint64_t	rank = fetch->first;
	size_t		used = 0;
	bool		good;

	test_wait(ts->td, &fetch->job);
	good = CHECK(gs_job_status(&fetch->job) == GS_OK, "fetch_keys: %s %s",
				 gs_status_name(gs_job_status(&fetch->job)), fetch->job.error.message) &&
		CHECK(fetch->n_keys <= ts->n - fetch->first, "%llu keys from %llu on of %u",
			  (unsigned long long) fetch->n_keys, (unsigned long long) fetch->first, ts->n);
	for (; good && rank < fetch->first + fetch->n_keys; rank++)
	{
		const TestRecord *record = &in->records[ts->order[rank]];
		uint32_t	len = record->key_len & GS_LENGTH_MASK;
		size_t		bytes = fetched_bytes(ts, rank);
		uint32_t	word = 0;
		const char	zeroes[4] = {0};

		if (!(good = CHECK(used + bytes <= fetch->bytes, "key %llu of %llu passes the end",
						   (unsigned long long) rank, (unsigned long long) fetch->n_keys)))
			break;
		memcpy(&word, fetch->dst + used, sizeof(word));
		good = CHECK(word == record->key_len, "key %llu has length %x instead of %x",
					 (unsigned long long) rank, word, record->key_len) &&
			CHECK(len == 0 || memcmp(fetch->dst + used + 4, in->bytes + record->key, len) == 0,
				  "key %llu of %u bytes differs", (unsigned long long) rank, len) &&
			CHECK(memcmp(fetch->dst + used + 4 + len, zeroes, bytes - 4 - len) == 0,
				  "key %llu is not followed by zeroes", (unsigned long long) rank);
		used += bytes;
	}
	if (good && rank < ts->n)
		CHECK(used + fetched_bytes(ts, rank) > fetch->bytes,
			  "%llu keys were fetched although %llu would fit",
			  (unsigned long long) fetch->n_keys, (unsigned long long) fetch->n_keys + 1);
	for (size_t i = fetch->bytes; good && i < fetch->bytes + GUARD_BYTES; i++)
		good = CHECK((unsigned char) fetch->dst[i] == 0xa5, "byte %zu of %zu was written", i,
					 fetch->bytes);
	free(fetch->dst);
	return good ? fetch->n_keys : 0;
}

/* All keys from one rank on, buffer by buffer, so many buffers at most. */
static void
check_keys_from(TestSort *ts, uint64_t first, size_t bytes, uint32_t limit)
{
	while (first < ts->n && limit-- > 0)
	{
		KeyFetch	fetch;
		uint64_t	n;

		start_keys(ts, &fetch, first, bytes);
		n = finish_keys(ts, &fetch);
		if (!CHECK(n > 0, "no key came"))
			return;
		first += n;
	}
}

void
test_check_keys(TestSort *ts, TestRandom *rng)
{
	size_t		largest = largest_key(ts);
	KeyFetch	fetches[3 * TEST_WINDOW];
	KeyFetch	end;

	check_keys_from(ts, 0, largest + 65536, 1000);
	check_keys_from(ts, 0, ((size_t) 1 << 22) + test_below(rng, 4), 1000);
	if (ts->n > 0)
	{
		/* Buffers for just one key. */
		check_keys_from(ts, test_below(rng, ts->n), largest, 50);
		for (int i = 0; i < 50; i++)
		{
			uint64_t	rank = test_below(rng, ts->n);

			check_keys_from(ts, rank, fetched_bytes(ts, rank), 1);
		}
		for (int i = 0; i < 30; i++)
			check_keys_from(ts, test_below(rng, ts->n), largest + test_below(rng, 20000), 3);

		/* Several at a time. */
		for (int i = 0; i < 3 * TEST_WINDOW; i++)
			start_keys(ts, &fetches[i], test_below(rng, ts->n), largest + test_below(rng, 100000));
		for (int i = 0; i < 3 * TEST_WINDOW; i++)
			finish_keys(ts, &fetches[i]);
	}
	start_keys(ts, &end, ts->n, largest);
	finish_keys(ts, &end);
}

/* ---- reorder ---- */

/* Move rows on the device and, where it says that it did, in the order that it is to have. */
static GsStatus
reorder(TestSort *ts, const uint64_t *to, const uint64_t *from, uint64_t n)
{
	uint32_t   *moved = malloc((n + 1) * sizeof(uint32_t));
	GsJob		job = {0};

	if (moved == NULL)
		abort();
	ts->td->ops->reorder(ts->sort, to, from, n, &job);
	test_wait(ts->td, &job);
	if (gs_job_status(&job) == GS_OK)
	{
		for (uint64_t i = 0; i < n; i++)
			moved[i] = ts->order[from[i]];
		for (uint64_t i = 0; i < n; i++)
			ts->order[to[i]] = moved[i];
	}
	else if (gs_job_status(&job) != GS_CANCELLED)
		CHECK(job.error.message[0] != '\0', "reorder failed without a message");
	free(moved);
	return gs_job_status(&job);
}

static void
shuffle(uint64_t *ranks, uint64_t n, TestRandom *rng)
{
	for (uint64_t i = n; i > 1; i--)
	{
		uint64_t	other = test_below(rng, (uint32_t) i);
		uint64_t	rank = ranks[i - 1];

		ranks[i - 1] = ranks[other];
		ranks[other] = rank;
	}
}

typedef enum Moves
{
	MOVE_NOTHING,
	MOVE_ONE,					/* to where it is */
	MOVE_SWAP,
	MOVE_RUNS,					/* within runs of up to 20 rows */
	MOVE_SCATTERED,				/* any rows anywhere */
	MOVE_REVERSE,				/* all */
	MOVE_ALL					/* at random */
} Moves;

#define N_MOVES 7

static void
check_moves(TestSort *ts, Moves moves, TestRandom *rng)
{
	uint32_t	n_rows = ts->n;
	uint64_t   *to = calloc((size_t) n_rows + 2, sizeof(uint64_t));
	uint64_t   *from = calloc((size_t) n_rows + 2, sizeof(uint64_t));
	uint64_t	n = 0;
	GsStatus	status;

	if (to == NULL || from == NULL)
		abort();
	for (uint32_t i = 0; i < n_rows; i++)
		to[i] = i;
	switch (moves)
	{
		case MOVE_NOTHING:
			break;
		case MOVE_ONE:
		case MOVE_SWAP:
			shuffle(to, n_rows, rng);
			n = moves == MOVE_ONE ? 1 : 2;
			n = n < n_rows ? n : n_rows;
			for (uint64_t i = 0; i < n; i++)
				from[i] = to[n - 1 - i];
			break;
		case MOVE_RUNS:
			for (uint32_t i = 0; i < n_rows;)
			{
				uint32_t	len = 1 + test_below(rng, 20);
				uint64_t	start = n;

				if (len > n_rows - i)
					len = n_rows - i;
				if (test_below(rng, 3) == 0)
				{
					for (uint32_t j = 0; j < len; j++)
						to[n] = from[n] = i + j, n++;
					shuffle(from + start, len, rng);
				}
				i += len;
			}
			break;
		case MOVE_SCATTERED:
			shuffle(to, n_rows, rng);
			n = n_rows / 3;
			memcpy(from, to, n * sizeof(uint64_t));
			shuffle(from, n, rng);
			break;
		case MOVE_REVERSE:
			n = n_rows;
			for (uint64_t i = 0; i < n; i++)
				from[i] = n - 1 - i;
			break;
		case MOVE_ALL:
			n = n_rows;
			memcpy(from, to, n * sizeof(uint64_t));
			shuffle(from, n, rng);
			break;
	}
	status = reorder(ts, to, from, n);
	CHECK(status == GS_OK, "reorder of %llu rows: %s", (unsigned long long) n, gs_status_name(status));
	free(to);
	free(from);
}

void
test_check_moves(TestSort *ts, TestRandom *rng)
{
	Moves		moves[N_MOVES];

	test_check_keys(ts, rng);
	for (int i = 0; i < N_MOVES; i++)
	{
		int			other = (int) test_below(rng, (uint32_t) i + 1);

		moves[i] = moves[other];
		moves[other] = (Moves) i;
	}
	for (int i = 0; i < N_MOVES; i++)
	{
		check_moves(ts, moves[i], rng);

		/* One upon the other now and then, with nothing in between. */
		if (test_below(rng, 3) == 0)
			check_moves(ts, MOVE_RUNS, rng);
		test_check_result(ts);
		if (test_below(rng, 2) == 0)
			test_check_pages(ts, rng);
		test_check_keys(ts, rng);
	}
	test_check_pages(ts, rng);
	test_check_images(ts);
}

/* Keys and moves of all kinds on one input. */
static void
check_input(TestDevice *td, TestInput *in, bool plain, TestRandom *rng)
{
	TestSort	ts;

	if (!test_sort_open(&ts, td, in, plain, test_random(rng)))
		return;
	ts.format = test_below(rng, 2) == 0 ? GS_FORMAT_ROWS : GS_FORMAT_CHUNKS;
	if (CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message) &&
		CHECK(test_sort_perform(&ts) == GS_OK, "perform failed"))
		test_check_moves(&ts, rng);
	test_sort_close(&ts);
}

static void
case_generators(TestDevice *td, uint64_t seed)
{
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom	rng = seed + (uint64_t) (g - test_generators) * 77;
		TestInput	in;
		char		name[96];

		snprintf(name, sizeof(name), "fetch_keys and reorder: %s", g->name);
		if (!test_begin_case(name))
			continue;
		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		check_input(td, &in, test_below(&rng, 2) == 0, &rng);
		test_input_free(&in);
		test_end_case(name);
	}
}

static void
case_fixed(TestDevice *td, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: keys of one length";
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (uint32_t width = 1; width <= 24; width += 1 + width / 6)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		test_make_fixed(&in, width, 1 + test_below(&rng, 30000), &rng);
		test_input_finish(&in);
		check_input(td, &in, false, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_sizes(TestDevice *td, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: many sizes";
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (uint32_t n = 1; n < 5000; n += 1 + n / 2)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		test_make_words(&in, n, &rng);
		test_input_finish(&in);
		check_input(td, &in, true, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_large(TestDevice *td, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: a million words";
	TestRandom	rng = seed;
	TestInput	in;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 1 << 20);
	test_make_words(&in, 1000000, &rng);
	test_input_finish(&in);
	check_input(td, &in, true, &rng);
	test_input_free(&in);
	test_end_case(name);
}

/* ---- misuse and memory ---- */

static void
expect_keys_refused(TestSort *ts, uint64_t first, size_t bytes, const char *what)
{
	KeyFetch	fetch;

	start_keys(ts, &fetch, first, bytes);
	test_wait(ts->td, &fetch.job);
	CHECK(gs_job_status(&fetch.job) == GS_INVALID && fetch.n_keys == 0,
		  "fetch_keys %s: %s, %llu keys", what, gs_status_name(gs_job_status(&fetch.job)),
		  (unsigned long long) fetch.n_keys);
	free(fetch.dst);
}

static void
expect_reorder_refused(TestSort *ts, const uint64_t *to, const uint64_t *from, uint64_t n,
					   const char *what)
{
	GsStatus	status = reorder(ts, to, from, n);

	CHECK(status == GS_INVALID, "reorder %s: %s", what, gs_status_name(status));
}

static void
case_misuse(TestDevice *td, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: misuse";
	const uint64_t ranks[] = {3, 4, 5};
	const uint64_t others[] = {4, 5, 6};
	const uint64_t twice[] = {3, 5, 5};
	const uint64_t beyond[] = {3, 4, 1000};
	const uint64_t far_beyond[] = {3, 4, UINT64_MAX};
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 1000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		GsJob		late = {0};

		expect_keys_refused(&ts, 0, 1000, "before append");
		test_sort_feed(&ts);
		expect_keys_refused(&ts, 0, 1000, "before perform");
		expect_reorder_refused(&ts, ranks, ranks, 3, "before perform");
		CHECK(test_sort_perform(&ts) == GS_OK, "perform after misuse");
		expect_keys_refused(&ts, in.n + 1, 1000, "beyond the end");
		expect_keys_refused(&ts, UINT64_MAX, 1000, "far beyond the end");
		expect_keys_refused(&ts, 7, fetched_bytes(&ts, 7) - 1, "into too few bytes");
		expect_keys_refused(&ts, 7, 0, "into nothing");
		expect_reorder_refused(&ts, ranks, others, 3, "from other ranks");
		expect_reorder_refused(&ts, twice, twice, 3, "from and to one rank twice");
		expect_reorder_refused(&ts, ranks, twice, 3, "from one rank twice");
		expect_reorder_refused(&ts, twice, ranks, 3, "to one rank twice");
		expect_reorder_refused(&ts, beyond, beyond, 3, "beyond the end");
		expect_reorder_refused(&ts, far_beyond, far_beyond, 3, "far beyond the end");
		expect_reorder_refused(&ts, ranks, ranks, (uint64_t) in.n + 1, "of too many rows");
		test_check_keys(&ts, &rng);
		test_check_pages(&ts, &rng);
		check_moves(&ts, MOVE_ALL, &rng);
		td->ops->append(ts.sort, ts.buffers[0], 0, 0, 0, &late);
		test_wait(td, &late);
		CHECK(gs_job_status(&late) == GS_INVALID, "append after reorder: %s",
			  gs_status_name(gs_job_status(&late)));
		test_check_result(&ts);
		test_check_keys(&ts, &rng);
		test_check_pages(&ts, &rng);
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case(name);
}

static void
case_cancel(TestDevice *td, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: cancel";
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 1000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		const uint64_t ranks[] = {0, 1};
		KeyFetch	fetch;

		test_sort_feed(&ts);
		test_sort_perform(&ts);
		td->ops->cancel(ts.sort);
		start_keys(&ts, &fetch, 0, 1000);
		test_wait(td, &fetch.job);
		CHECK(gs_job_status(&fetch.job) == GS_CANCELLED, "cancelled fetch_keys: %s",
			  gs_status_name(gs_job_status(&fetch.job)));
		free(fetch.dst);
		CHECK(reorder(&ts, ranks, ranks, 2) == GS_CANCELLED, "cancelled reorder");
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case(name);
}

/*
 * Sorts of ever more rows, up to where nothing more fits.  A reorder of all
 * rows may be refused there, but then nothing has changed.
 */
void
test_keys_memory(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	static const char name[] = "fetch_keys and reorder: memory limit";
	const uint64_t limit = (uint64_t) 24 << 20;
	TestRandom	rng = seed;
	TestDevice	td;
	GsError		error;
	GsStatus	status;

	if (!test_begin_case(name))
		return;
	status = test_open(&td, ops, limit, threads, &error);
	if (CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
	{
		bool		refused = false;

		for (uint32_t n = 20000; !refused; n += n / 3)
		{
			TestInput	in;
			TestSort	ts;
			uint64_t   *to = malloc(n * sizeof(uint64_t));
			uint64_t   *from = malloc(n * sizeof(uint64_t));
			GsDeviceInfo info;

			if (to == NULL || from == NULL)
				abort();
			for (uint32_t i = 0; i < n; i++)
			{
				to[i] = i;
				from[i] = n - 1 - i;
			}
			test_input_init(&in, 1 << 18);
			test_make_words(&in, n, &rng);
			test_input_finish(&in);
			if (!test_sort_open(&ts, &td, &in, true, seed))
				abort();
			refused = test_sort_feed(&ts) != GS_OK || test_sort_perform(&ts) != GS_OK;
			if (!refused)
			{
				status = reorder(&ts, to, from, n);
				CHECK(status == GS_OK || status == GS_NO_MEMORY, "reorder: %s", gs_status_name(status));
				memset(&info, 0, sizeof(info));
				ops->info(td.device, &info);
				CHECK(info.memory_used <= limit, "%llu bytes used of %llu",
					  (unsigned long long) info.memory_used, (unsigned long long) limit);
				test_check_images(&ts);
				test_check_keys(&ts, &rng);
				test_check_pages(&ts, &rng);
			}
			test_sort_close(&ts);
			ops->info(td.device, &info);
			CHECK(info.memory_used == 0, "%llu bytes used by no sort",
				  (unsigned long long) info.memory_used);
			test_input_free(&in);
			free(to);
			free(from);
		}
		test_close(&td);
	}
	test_end_case(name);
}

void
test_keys_cases(TestDevice *td, uint64_t seed)
{
	case_generators(td, seed);
	case_fixed(td, seed);
	case_sizes(td, seed);
	case_misuse(td, seed);
	case_cancel(td, seed);
	case_large(td, seed);
}
