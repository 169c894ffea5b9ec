/*-------------------------------------------------------------------------
 *
 * test_device.c
 *	  The conformance suite of all gpusort devices.
 *
 *	  test_device DEVICE [--seed N] [--threads N] [--only TEXT] [--engine NAME]
 *	  test_device DEVICE --bench FILE [--threads N] [--engine NAME]
 *
 * DEVICE is "host", or "cuda" where the suite was built with it; NAME is one
 * that gpusort.engine can have.  A case
 * prints "ok" or "not ok" and its name; the last line counts both.  A device
 * that does not exist here is skipped, with success.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/string_sort.h"
#include "test_device.h"

static const GsDeviceOps *ops;
static uint64_t seed = 1;
static int	threads;
static const char *only;
GsEngine	test_engine = GS_ENGINE_AUTO;

static unsigned n_passed;
static unsigned n_failed;

bool
test_begin_case(const char *name)
{
	test_failures = 0;
	return only == NULL || strstr(name, only) != NULL;
}

void
test_end_case(const char *name)
{
	bool		good = test_failures == 0;

	if (good)
		n_passed++;
	else
		n_failed++;
	printf("%s %u - %s\n", good ? "ok" : "not ok", n_passed + n_failed, name);
	fflush(stdout);
}

/* ---- whole sorts ---- */

static void
case_generators(TestDevice *td)
{
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom	rng = seed + (uint64_t) (g - test_generators) * 1000;
		TestInput	in;

		if (!test_begin_case(g->name))
			continue;
		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		test_check_sort(td, &in, false, &rng);
		test_check_sort(td, &in, true, &rng);
		test_input_free(&in);
		test_end_case(g->name);
	}
}

/*
 * Again with the fewest splitters that the CUDA device's string engine can do with, so
 * that groups of rows are left which are too large for one block.
 */
static void
case_few_splitters(TestDevice *td)
{
	static const char name[] = "few splitters";

	if (!test_begin_case(name))
		return;
	setenv("GPUSORT_FAULT_SPLITTERS", "1", 1);
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom	rng = seed + (uint64_t) (g - test_generators);
		TestInput	in;

		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		if (in.n > 10000)
			test_check_sort(td, &in, true, &rng);
		test_input_free(&in);
	}
	unsetenv("GPUSORT_FAULT_SPLITTERS");
	test_end_case(name);
}

static void
case_fixed(TestDevice *td)
{
	for (uint32_t width = 1; width <= 24; width++)
	{
		TestRandom	rng = seed + width;
		char		name[64];

		snprintf(name, sizeof(name), "keys of %u bytes", width);
		if (!test_begin_case(name))
			continue;
		for (uint32_t n = 1; n <= 100000; n *= 1 + n / 8 + test_below(&rng, 400))
		{
			TestInput	in;

			test_input_init(&in, 65536);
			test_make_fixed(&in, width, n, &rng);
			test_input_finish(&in);
			test_check_sort(td, &in, test_below(&rng, 2) == 0, &rng);
			test_input_free(&in);
			n++;
		}
		test_end_case(name);
	}
}

/* Numbers of rows around everything that an implementation may cut at. */
static void
case_sizes(TestDevice *td)
{
	TestRandom	rng = seed;

	if (!test_begin_case("many sizes"))
		return;
	for (uint32_t n = 1; n < 20000; n += 1 + n / 3)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		test_make_words(&in, n, &rng);
		test_input_finish(&in);
		test_check_sort(td, &in, false, &rng);
		test_input_free(&in);
	}
	test_end_case("many sizes");
}

/* Memory that one sort gives back, with all that it holds, the next one has. */
static void
case_as_many(TestDevice *td)
{
	const char *const name = "as many rows, other keys";

	if (!test_begin_case(name))
		return;
	for (TestRandom i = 0; i < 3; i++)
	{
		TestRandom	rng = seed + i;
		TestInput	in;

		test_input_init(&in, 1 << 20);
		if (i == 1)
			test_make_fixed(&in, 20, 300000, &rng);
		else
			test_make_words(&in, 300000, &rng);
		test_input_finish(&in);
		test_check_sort(td, &in, true, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

static void
case_large(TestDevice *td)
{
	TestRandom	rng = seed;
	TestInput	in;
	const char *const names[] = {"two million words", "a million keys of 8 bytes",
	"a million keys of 1 byte"};

	for (int i = 0; i < 3; i++)
	{
		if (!test_begin_case(names[i]))
			continue;
		test_input_init(&in, 1 << 20);
		if (i == 0)
			test_make_words(&in, 2200000, &rng);
		else
			test_make_fixed(&in, i == 1 ? 8 : 1, 1000000, &rng);
		test_input_finish(&in);
		test_check_sort(td, &in, true, &rng);
		test_input_free(&in);
		test_end_case(names[i]);
	}
}

static void
case_empty_chunks(TestDevice *td)
{
	TestInput	in;
	TestSort	ts;

	if (!test_begin_case("chunks without records"))
		return;
	test_input_init(&in, 65536);
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		for (int i = 0; i < 5; i++)
		{
			GsJob		job = {0};

			td->ops->append(ts.sort, ts.buffers[0], i % 2 == 0 ? 0 : 100, 0, 0, &job);
			test_wait(td, &job);
			CHECK(gs_job_status(&job) == GS_OK, "append of nothing: %s",
				  gs_status_name(gs_job_status(&job)));
			ts.n_appended++;
		}
		CHECK(test_sort_perform(&ts) == GS_OK, "perform of nothing");
		test_check_result(&ts);
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case("chunks without records");
}

/* Several sorts at once, their calls mixed. */
static void
case_interleaved(TestDevice *td)
{
	enum
	{
		N_SORTS = 5
	};
	TestRandom	rng = seed;
	TestInput	in[N_SORTS];
	TestSort	ts[N_SORTS];
	GsJob		performs[N_SORTS];
	bool		more = true;

	if (!test_begin_case("interleaved sorts"))
		return;
	for (int i = 0; i < N_SORTS; i++)
	{
		test_input_init(&in[i], 65536);
		if (i % 2 == 0)
			test_make_words(&in[i], 20000 + 30000 * (uint32_t) i, &rng);
		else
			test_make_fixed(&in[i], 4 + (uint32_t) i, 50000, &rng);
		test_input_finish(&in[i]);
		if (!test_sort_open(&ts[i], td, &in[i], false, test_random(&rng)))
			return;
	}
	while (more)
	{
		more = false;
		for (int i = 0; i < N_SORTS; i++)
			more |= test_sort_append(&ts[i]);
	}
	memset(performs, 0, sizeof(performs));
	for (int i = 0; i < N_SORTS; i++)
	{
		CHECK(test_sort_drain(&ts[i]) == GS_OK, "append: %s", ts[i].error.message);
		td->ops->perform(ts[i].sort, GS_FORMAT_ROWS, NULL, &performs[i]);
	}
	for (int i = N_SORTS - 1; i >= 0; i--)
	{
		test_wait(td, &performs[i]);
		if (CHECK(gs_job_status(&performs[i]) == GS_OK, "perform: %s", performs[i].error.message))
		{
			test_check_result(&ts[i]);
			test_check_pages(&ts[i], &rng);
			test_check_images(&ts[i]);
		}
	}
	for (int i = 0; i < N_SORTS; i++)
	{
		test_sort_close(&ts[i]);
		test_input_free(&in[i]);
	}
	test_end_case("interleaved sorts");
}

/*
 * Small and large sorts in turn, all of them waiting to be performed: what
 * threads of the device set for the one must not reach the other.
 */
static void
case_unlike_at_once(TestDevice *td)
{
	enum
	{
		N_SORTS = 24,
		N_ROUNDS = 8
	};
	TestRandom	rng = seed;
	TestInput	in[N_SORTS];
	TestSort	ts[N_SORTS];
	GsJob		performs[N_SORTS];

	if (!test_begin_case("unlike sorts at once"))
		return;
	for (int i = 0; i < N_SORTS; i++)
	{
		test_input_init(&in[i], 65536);
		test_make_words(&in[i], 4200 + (uint32_t) (i % 3) * 2200 * (1 + (uint32_t) i), &rng);
		test_input_finish(&in[i]);
	}
	for (int round = 0; round < N_ROUNDS; round++)
	{
		int			n = 0;

		memset(performs, 0, sizeof(performs));
		while (n < N_SORTS && test_sort_open(&ts[n], td, &in[n], true, test_random(&rng)))
		{
			CHECK(test_sort_feed(&ts[n]) == GS_OK, "append: %s", ts[n].error.message);
			n++;
		}
		for (int i = 0; i < n; i++)
			td->ops->perform(ts[i].sort, GS_FORMAT_ROWS, NULL, &performs[i]);
		for (int i = 0; i < n; i++)
		{
			test_wait(td, &performs[i]);
			if (CHECK(gs_job_status(&performs[i]) == GS_OK, "perform: %s", performs[i].error.message))
				test_check_result(&ts[i]);
			test_sort_close(&ts[i]);
		}
	}
	for (int i = 0; i < N_SORTS; i++)
		test_input_free(&in[i]);
	test_end_case("unlike sorts at once");
}

/* ---- memory ---- */

static void
case_memory_returned(TestDevice *td)
{
	GsDeviceInfo info;
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;

	if (!test_begin_case("memory is returned"))
		return;
	memset(&info, 0, sizeof(info));
	td->ops->info(td->device, &info);
	CHECK(info.memory_used == 0, "%llu bytes used by no sort", (unsigned long long) info.memory_used);
	CHECK(info.name[0] != '\0' && info.memory_total > 0 && info.memory_limit > 0,
		  "the device does not describe itself");
	test_input_init(&in, 65536);
	test_make_words(&in, 50000, &rng);
	test_input_finish(&in);
	for (int i = 0; i < 20; i++)
	{
		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		test_sort_feed(&ts);
		td->ops->info(td->device, &info);
		CHECK(info.memory_used >= in.row_bytes, "%llu bytes used by %llu bytes of rows",
			  (unsigned long long) info.memory_used, (unsigned long long) in.row_bytes);
		if (i % 2 == 0)
			test_sort_perform(&ts);
		test_sort_close(&ts);
		if (i % 5 == 0)
			td->ops->trim(td->device);
	}
	td->ops->info(td->device, &info);
	CHECK(info.memory_used == 0, "%llu bytes used after all sorts", (unsigned long long) info.memory_used);
	CHECK(info.jobs_pending == 0, "%llu jobs have not ended", (unsigned long long) info.jobs_pending);
	test_input_free(&in);
	test_end_case("memory is returned");
}

/*
 * Append more than the limit allows.  It must be refused in time, what had
 * been taken must come back unharmed, and the device must go on working.
 */
static void
case_memory_limit(void)
{
	const uint64_t limit = (uint64_t) 48 << 20;
	TestRandom	rng = seed;
	TestDevice	td;
	TestInput	in;
	TestInput	small;
	GsError		error;
	GsStatus	status;

	if (!test_begin_case("memory limit"))
		return;
	status = test_open(&td, ops, limit, threads, &error);
	if (!CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
	{
		test_end_case("memory limit");
		return;
	}
	test_input_init(&small, 65536);
	test_make_words(&small, 10000, &rng);
	test_input_finish(&small);
	test_input_init(&in, 1 << 20);
	while (in.n_bytes < limit + (limit >> 3))
		test_input_add(&in, "some key", 8, 100 + test_below(&rng, 1000));
	test_input_finish(&in);
	for (int round = 0; round < 3; round++)
	{
		TestSort	ts;
		TestSort	other;
		GsDeviceInfo info;

		if (!test_sort_open(&ts, &td, &in, round == 1, test_random(&rng)))
			break;
		status = test_sort_feed(&ts);
		if (status == GS_OK)
			status = test_sort_perform(&ts);
		CHECK(status == GS_NO_MEMORY, "%s instead of no memory", gs_status_name(status));
		CHECK(ts.n_appended > 0, "not one chunk was taken");
		memset(&info, 0, sizeof(info));
		td.ops->info(td.device, &info);
		CHECK(info.memory_limit == limit && info.memory_used <= limit, "%llu bytes used of %llu",
			  (unsigned long long) info.memory_used, (unsigned long long) info.memory_limit);
		test_check_images(&ts);
		if (test_sort_open(&other, &td, &small, true, seed))
		{
			/* It may be refused too, but that must not harm anything. */
			if (test_sort_feed(&other) == GS_OK && test_sort_perform(&other) == GS_OK)
				test_check_pages(&other, &rng);
			test_sort_close(&other);
		}
		test_check_images(&ts);
		test_sort_close(&ts);
		test_check_sort(&td, &small, true, &rng);
	}
	test_input_free(&in);
	test_input_free(&small);
	test_close(&td);
	test_end_case("memory limit");
}

/* ---- without a device ---- */

static int	n_pauses;

static void
count_pause(void)
{
	n_pauses++;
}

/* The sort that the host device's threads and PostgreSQL's backends share. */
static void
case_in_process(void)
{
	const int	cancel = 1;

	if (!test_begin_case("sort in the calling thread"))
		return;
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom	rng = seed;
		TestInput	in;
		GsStringKey  *keys;

		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		keys = calloc((size_t) in.n * 2 + 1, sizeof(GsStringKey));
		if (keys == NULL)
			abort();
		for (uint32_t i = 0; i < in.n; i++)
			gs_string_key_init(&keys[i], in.bytes + in.records[i].key,
							 in.records[i].key_len & GS_LENGTH_MASK, i);
		n_pauses = 0;
		gs_string_sort(keys, keys + in.n, in.n, count_pause);
		CHECK(in.n < 65536 || n_pauses > 0, "%s: no pause", g->name);
		for (uint32_t i = 0; i < in.n; i++)
		{
			if (!CHECK(keys[i].row == in.order[i], "%s: wrong at %u", g->name, i))
				break;
			CHECK(i == 0 || gs_string_key_equal(&keys[i - 1], &keys[i]) ==
				  (test_key_compare(&in, in.order[i - 1], in.order[i]) == 0),
				  "%s: wrong tie at %u", g->name, i);
		}
		if (in.n > 65536)
		{
			for (uint32_t i = 0; i < in.n; i++)
				gs_string_key_init(&keys[i], in.bytes + in.records[i].key,
								 in.records[i].key_len & GS_LENGTH_MASK, i);
			CHECK(!gs_string_sort_at(keys, keys + in.n, in.n, 0, false, &cancel), "%s: not cancelled", g->name);
		}
		free(keys);
		test_input_free(&in);
	}
	test_end_case("sort in the calling thread");
}

static int
run_suite(void)
{
	TestDevice	td;
	GsDeviceInfo info;
	GsError		error;
	GsStatus	status = test_open(&td, ops, 0, threads, &error);

	if (status == GS_NO_DEVICE)
	{
		printf("skipped: %s\n", error.message);
		return 0;
	}
	if (status != GS_OK)
	{
		printf("Bail out! open: %s %s\n", gs_status_name(status), error.message);
		return 1;
	}
	memset(&info, 0, sizeof(info));
	ops->info(td.device, &info);
	printf("# %s: %s, engine %s, seed %llu\n", ops->name, info.name, gs_engine_name(test_engine),
		   (unsigned long long) seed);
	case_generators(&td);
	case_few_splitters(&td);
	case_fixed(&td);
	case_sizes(&td);
	case_as_many(&td);
	case_empty_chunks(&td);
	case_interleaved(&td);
	case_unlike_at_once(&td);
	case_memory_returned(&td);
	test_life_cases(&td, seed);
	case_large(&td);
	test_chunks_cases(&td, seed);
	test_keep_cases(&td, seed);
	test_arrays_cases(&td, seed);

	/* the device keeps tables, whose memory other cases would count */
	test_tuples_cases(&td, seed);
	test_close(&td);
	case_memory_limit();
	test_chunks_memory(ops, threads, seed);
	test_arrays_memory(ops, threads, seed);
	test_life_devices(ops, threads, seed);
	if (ops == &gs_device_host)
	{
		case_in_process();
		test_groups_cases();
	}
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed > 0 || n_passed == 0;
}

/* Sort with the engine of that name; false where there is none. */
static bool
find_engine(const char *name)
{
	for (int i = 0; i < GS_N_ENGINES; i++)
	{
		if (strcmp(name, gs_engine_name((GsEngine) i)) == 0)
		{
			test_engine = (GsEngine) i;
			return true;
		}
	}
	return false;
}

int
main(int argc, char **argv)
{
	const char *bench = NULL;
	bool		usage = argc < 2 || argc % 2 != 0;

	for (int i = 2; i + 1 < argc; i += 2)
	{
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--threads") == 0)
			threads = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else if (strcmp(argv[i], "--bench") == 0)
			bench = argv[i + 1];
		else if (strcmp(argv[i], "--engine") == 0)
			usage |= !find_engine(argv[i + 1]);
		else
			usage = true;
	}
	if (!usage && strcmp(argv[1], "host") == 0)
		ops = &gs_device_host;
#ifdef GS_WITH_CUDA
	if (!usage && strcmp(argv[1], "cuda") == 0)
		ops = &gs_device_cuda;
#else
	if (!usage && strcmp(argv[1], "cuda") == 0)
	{
		printf("skipped: built without CUDA\n");
		return 0;
	}
#endif
	if (usage || ops == NULL)
	{
		fprintf(stderr, "usage: test_device host|cuda [--seed N] [--threads N] [--only TEXT] [--engine NAME]"
				" [--bench FILE]\n");
		return 2;
	}
	return bench != NULL ? test_run_bench(ops, threads, bench) : run_suite();
}
