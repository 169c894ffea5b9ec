/*-------------------------------------------------------------------------
 *
 * test_device_keep.c
 *	  The conformance cases of sorts that keep some rows only (GsKeep).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_device.h"

/* A sort that keeps these rows: all that it gives back, and images of all rows. */
static void
check_kept(TestDevice *td, const TestInput *in, GsKeep keep, GsPageFormat format, TestRandom *rng)
{
	TestSort ts;

	if (!test_sort_open(&ts, td, in, test_below(rng, 2) == 0, test_random(rng)))
		return;
	ts.format = format;
	ts.keep = keep;
	if (CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message) &&
		CHECK(test_sort_perform(&ts) == GS_OK, "perform"))
	{
		test_check_result(&ts);
		test_check_pages(&ts, rng);
		test_check_images(&ts);
	}
	test_sort_close(&ts);
}

/*
 * The first rows of equal keys, and the first rows of all, in numbers around
 * everything that an implementation may cut at.
 */
static void
check_all_kept(TestDevice *td, const TestInput *in, TestRandom *rng)
{
	const uint64_t limits[] = {0, 1, 1 + test_below(rng, in->n + 1), in->n, UINT64_MAX};

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
	{
		GsKeep unique = {.unique = true, .limit = limits[i]};
		GsKeep all = {.limit = limits[i]};

		if (limits[i] == 0 && i > 0)
			continue;
		check_kept(td, in, unique, i % 2 == 0 ? GS_FORMAT_ROWS : GS_FORMAT_CHUNKS, rng);
		if (limits[i] > 0)
			check_kept(td, in, all, i % 2 == 0 ? GS_FORMAT_CHUNKS : GS_FORMAT_ROWS, rng);
	}
}

/* A byte of any key of the input. */
static uint8_t
any_byte(const TestInput *in, TestRandom *rng)
{
	if (in->n > 0)
	{
		const TestRecord *record = &in->records[test_below(rng, in->n)];
		uint32_t	len = record->key_len & GS_LENGTH_MASK;

		if (len > 0)
			return (uint8_t) in->bytes[record->key + test_below(rng, len < 16 ? len : 16)];
	}
	return (uint8_t) test_below(rng, 256);
}

/* Groups by some columns of any kind: whatever the keys are, they can be read so. */
static GsKeepGroup
any_group(const TestInput *in, TestRandom *rng)
{
	GsKeepGroup group = {.n_columns = (uint8_t) test_below(rng, GS_GROUP_COLUMNS + 1)};

	if (test_below(rng, 2) == 0)
		group.n_columns %= 3;
	for (uint32_t c = 0; c < group.n_columns; c++)
	{
		GsGroupColumn *column = &group.columns[c];

		column->null_byte = test_below(rng, 2) == 0 ? any_byte(in, rng) : GS_NO_NULL_BYTE;
		column->end = any_byte(in, rng);
		column->n_ends = (uint8_t) test_below(rng, 3);
		column->width = test_below(rng, 4) == 0 ? UINT32_MAX : test_below(rng, 6);
	}
	return group;
}

/* The first rows of groups, with the last one's ties and without, and the first rows of those. */
static void
check_groups_kept(TestDevice *td, const TestInput *in, TestRandom *rng)
{
	const uint32_t firsts[] = {1, 2, 1 + test_below(rng, 200), in->n + 1, UINT32_MAX};

	/* some of all pairs, as this is done for many inputs */
	for (int n = 0; n < 3; n++)
	{
		unsigned i = test_below(rng, 2 * sizeof(firsts) / sizeof(firsts[0]));
		GsKeep keep = {.group = any_group(in, rng)};

		keep.group.first = firsts[i / 2];
		keep.group.ties = i % 2 == 0;
		keep.group.several = test_below(rng, 2) == 0;
		if (test_below(rng, 3) == 0)
			keep.limit = 1 + test_below(rng, in->n + 1);
		check_kept(td, in, keep, test_below(rng, 2) == 0 ? GS_FORMAT_ROWS : GS_FORMAT_CHUNKS, rng);
	}
}

static void
case_generators(TestDevice *td, uint64_t seed)
{
	for (const TestGenerator *g = test_generators; g->name != NULL; g++)
	{
		TestRandom rng = seed + (uint64_t) (g - test_generators) * 31;
		TestInput in;
		char name[96];

		snprintf(name, sizeof(name), "kept rows: %s", g->name);
		if (!test_begin_case(name))
			continue;
		test_input_init(&in, g->chunk_bytes);
		g->make(&in, &rng);
		test_input_finish(&in);
		check_all_kept(td, &in, &rng);
		check_groups_kept(td, &in, &rng);
		test_input_free(&in);
		test_end_case(name);
	}
}

/* Many rows with few and with many different keys, of one length and of any. */
static void
case_large(TestDevice *td, uint64_t seed)
{
	static const char name[] = "kept rows of many";
	const uint32_t kinds[] = {1, 7, 1000, 60000, UINT32_MAX};
	TestRandom rng = seed;

	if (!test_begin_case(name))
		return;
	for (int i = 0; i < 10; i++)
	{
		uint32_t n_kinds = kinds[i / 2];
		TestInput in;

		test_input_init(&in, 1 << 20);
		for (uint32_t row = 0; row < 300000; row++)
		{
			char key[64];
			uint32_t kind = test_below(&rng, n_kinds);

			snprintf(key, sizeof(key), i % 2 == 0 ? "%08x" : "/usr/share/doc/%u/copyright", kind);
			test_input_add(&in, key, (uint32_t) strlen(key), test_below(&rng, 30));
		}
		test_input_finish(&in);
		check_kept(td, &in, (GsKeep){.unique = true}, GS_FORMAT_ROWS, &rng);
		check_kept(td, &in, (GsKeep){.unique = true, .limit = 500}, GS_FORMAT_CHUNKS, &rng);
		check_kept(td, &in, (GsKeep){.limit = 1 + test_below(&rng, 300000)}, GS_FORMAT_ROWS, &rng);
		test_input_free(&in);
	}
	test_end_case(name);
}

/* Many rows of few and of many groups: a text and a number of one width, either of them NULL. */
static void
case_groups(TestDevice *td, uint64_t seed)
{
	static const char name[] = "kept rows of groups";
	const uint32_t kinds[] = {1, 7, 1000, 60000, UINT32_MAX};
	TestRandom rng = seed;

	if (!test_begin_case(name))
		return;
	for (int i = 0; i < 10; i++)
	{
		uint32_t n_kinds = kinds[i / 2];
		GsKeep keep = {.group = {.ties = i % 2 == 0, .several = i % 5 < 2, .n_columns = 1 + i % 3 % 2}};
		const uint32_t firsts[] = {1, 3, UINT32_MAX};
		TestInput in;

		keep.group.columns[0] = (GsGroupColumn){.null_byte = 1, .n_ends = 1};
		keep.group.columns[1] = (GsGroupColumn){.null_byte = 1, .width = 2};
		test_input_init(&in, 1 << 20);
		for (uint32_t row = 0; row < 80000; row++)
		{
			char key[64];
			uint32_t kind = test_below(&rng, n_kinds);
			uint32_t n = 1;

			memset(key, 0, sizeof(key));
			if (kind % 11 == 0)
				key[0] = 1;
			else
				n += (uint32_t) snprintf(key + 1, 32, "%.*s%u", (int) (kind % 20),
										 "/usr/share/doc/of/it", kind) + 1;
			if (test_below(&rng, 9) == 0)
				key[n++] = 1;
			else
			{
				key[n + 2] = (char) test_below(&rng, 5);
				n += 3;
			}
			key[n++] = (char) test_below(&rng, i % 2 == 0 ? 3 : 256);
			test_input_add(&in, key, n, test_below(&rng, 30));
		}
		test_input_finish(&in);
		for (int f = 0; f < 3; f++)
		{
			keep.group.first = firsts[f];
			check_kept(td, &in, keep, f % 2 == 0 ? GS_FORMAT_ROWS : GS_FORMAT_CHUNKS, &rng);
		}
		test_input_free(&in);
	}
	test_end_case(name);
}

/*
 * Runs that keep some of their rows, and then a sort of all these that keeps the
 * same: as if one sort had had all rows.
 */
static void
check_runs(TestDevice *td, const TestInput *in, GsKeep keep, TestRandom *rng)
{
	TestSort whole;
	TestSort run;
	TestFeed feed;
	uint32_t n_kept = 0;

	if (!test_sort_open(&whole, td, in, true, 0))
		return;
	whole.keep = keep;
	feed = whole.feed;
	while (feed.next < in->n)
	{
		uint32_t n_chunks = 1 + test_below(rng, 4);
		GsSortResult result;

		if (!test_sort_open(&run, td, in, true, 0))
			break;
		run.feed = feed;
		run.format = GS_FORMAT_CHUNKS;
		run.keep = keep;
		while (n_chunks-- > 0 && test_sort_append(&run))
			;
		CHECK(test_sort_drain(&run) == GS_OK && test_sort_perform(&run) == GS_OK, "a run");
		memset(&result, 0, sizeof(result));
		td->ops->result(run.sort, &result);
		for (uint64_t page = 0; page < result.n_pages; page++)
		{
			uint32_t n = (uint32_t) (result.page_first[page + 1] - result.page_first[page]);
			char *chunk = run.buffers[0];
			const GsRecord *last = gs_chunk_record(chunk, in->chunk_bytes, n - 1);
			GsJob fetch = {0};
			GsJob append = {0};

			td->ops->fetch(run.sort, page, chunk, &fetch);
			test_wait(td, &fetch);
			td->ops->append(whole.sort, chunk, last->key_off + (last->key_len & GS_LENGTH_MASK), n, 0,
							&append);
			test_wait(td, &append);
			CHECK(gs_job_status(&fetch) == GS_OK && gs_job_status(&append) == GS_OK, "chunk of a run");
			n_kept += n;
			whole.n_appended++;
		}
		feed = run.feed;
		test_sort_close(&run);
	}
	CHECK(n_kept < in->n, "the runs have kept all of %u rows", in->n);
	if (CHECK(test_sort_perform(&whole) == GS_OK, "perform of runs"))
		test_check_pages(&whole, rng);
	test_sort_close(&whole);
}

static void
case_runs(TestDevice *td, uint64_t seed)
{
	static const char name[] = "kept rows of runs";
	TestRandom rng = seed;

	if (!test_begin_case(name))
		return;
	for (int i = 0; i < 6; i++)
	{
		TestInput in;

		test_input_init(&in, 65536);
		for (uint32_t row = 0; row < 40000; row++)
		{
			char key[32];

			snprintf(key, sizeof(key), "%u", test_below(&rng, i < 3 ? 300 : 100000));
			test_input_add(&in, key, (uint32_t) strlen(key), test_below(&rng, 30));
		}
		test_input_finish(&in);
		check_runs(td, &in,
				   (GsKeep){.unique = i % 3 != 0, .limit = i % 3 == 1 ? 0 : 1 + test_below(&rng, 200)},
				   &rng);
		if (i < 3)
		{
			/* numbers that begin with the same two digits */
			GsKeep		keep = {.group = {.first = 1 + test_below(&rng, 20), .n_columns = 1}};

			keep.group.ties = i == 0;
			keep.group.columns[0] = (GsGroupColumn){.null_byte = GS_NO_NULL_BYTE, .width = 1};
			check_runs(td, &in, keep, &rng);
		}
		test_input_free(&in);
	}
	test_end_case(name);
}

/* The rows of a page of a sort that counts: each begins with its record's number, and has its count. */
static void
check_counts(TestSort *ts, uint64_t page, const GsSortResult *result)
{
	uint32_t	chunk_bytes = ts->in->chunk_bytes;
	char	   *memory = ts->buffers[0];
	GsJob		job = {0};

	ts->td->ops->fetch(ts->sort, page, memory, &job);
	test_wait(ts->td, &job);
	if (!CHECK(gs_job_status(&job) == GS_OK, "fetch: %s", job.error.message))
		return;
	for (uint64_t i = result->page_first[page]; i < result->page_first[page + 1]; i++)
	{
		uint32_t	entry = gs_page_entry(memory, chunk_bytes, (uint32_t) (i - result->page_first[page]));
		uint32_t	found[2];
		uint32_t	n;

		memcpy(found, memory + (entry & ~GS_ENTRY_FLAGS), sizeof(found));
		/* past the rows that are not wanted */
		while (ts->in->order[ts->counted] != ts->order[i])
			ts->counted++;
		n = test_equal_records(ts->in, ts->counted);
		ts->counted += n;
		CHECK((entry & GS_ENTRY_TIE) == 0, "rank %llu has the key before it", (unsigned long long) i);
		CHECK(found[0] == ts->order[i] && found[1] == n, "rank %llu is record %u of %u instead of %u of %u",
			  (unsigned long long) i, found[0], found[1], ts->order[i], n);
	}
}

/* A sort that counts equal keys, and keeps those with such numbers. */
static void
check_counted(TestDevice *td, const TestInput *in, GsKeep keep, uint64_t seed)
{
	TestSort	ts;
	GsSortResult result = {0};

	if (!test_sort_open(&ts, td, in, true, seed))
		return;
	ts.keep = keep;
	ts.keep.unique = ts.keep.counted = true;
	if (CHECK(test_sort_feed(&ts) == GS_OK && test_sort_perform(&ts) == GS_OK, "perform"))
	{
		test_check_result(&ts);
		td->ops->result(ts.sort, &result);
		for (uint64_t page = 0; page < result.n_pages; page++)
			check_counts(&ts, page, &result);
	}
	CHECK(keep.max_count > 0 || keep.min_count > 0 || keep.top > 0 || ts.counted == in->n,
		  "%u rows counted instead of %u", ts.counted, in->n);
	test_sort_close(&ts);
}

/* How many rows have each key: all different, some, few, all equal; and runs over many parts of the work. */
static void
case_counted(TestDevice *td, uint64_t seed)
{
	static const char name[] = "counted rows";
	const uint32_t keys[] = {1, 2, 30, 5000, 1000000};
	const GsKeep keeps[] = {{0}, {.min_count = 2}, {.min_count = 1, .max_count = 1},
	{.min_count = 10, .max_count = 37}, {.min_count = UINT32_MAX}, {.top = 1}, {.top = 25}, {.top = 3000},
	{.top = 100000}, {.top = UINT64_MAX}};
	TestRandom	rng = seed;

	if (!test_begin_case(name))
		return;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
	{
		TestInput	in;

		test_input_init(&in, 65536);
		for (uint32_t row = 0; row < 300000; row++)
		{
			uint32_t	bytes[6] = {row, test_below(&rng, 2) * 0xffffffffu};
			char		key[32];

			/* one key of many rows, and others */
			snprintf(key, sizeof(key), "%u", test_below(&rng, 2) == 0 ? 7 : test_below(&rng, keys[i]));
			test_input_add_apart(&in, bytes, 8 + test_below(&rng, 16), key, (uint32_t) strlen(key));
		}
		test_input_finish(&in);
		for (unsigned k = 0; k < sizeof(keeps) / sizeof(keeps[0]); k++)
			if (k == 0 || test_below(&rng, 2) == 0)
				check_counted(td, &in, keeps[k], seed);
		test_input_free(&in);
	}
	test_end_case(name);
}

/* Chunks that were refused, and went again. */
static void
case_resumed(TestDevice *td, uint64_t seed)
{
	static const char name[] = "kept rows of a resumed sort";
	TestRandom rng = seed;
	TestInput in;
	TestSort ts;
	GsDeviceInfo info;

	if (!test_begin_case(name))
		return;
	test_input_init(&in, 1 << 20);
	while (in.n_bytes < (size_t) 8 << 20)
	{
		char key[32];

		snprintf(key, sizeof(key), "%u", test_below(&rng, 500));
		test_input_add(&in, key, (uint32_t) strlen(key), test_below(&rng, 200));
	}
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		TestFeed second;

		CHECK(test_sort_append(&ts) && test_sort_drain(&ts) == GS_OK, "the first chunk");
		second = ts.feed;
		memset(&info, 0, sizeof(info));
		td->ops->info(td->device, &info);
		td->ops->set_memory_limit(td->device, info.memory_used + 100000);
		CHECK(test_sort_feed(&ts) == GS_NO_MEMORY && ts.n_appended == 1, "append above the limit");
		td->ops->set_memory_limit(td->device, 0);
		td->ops->resume(ts.sort);
		ts.feed = second;
		ts.worst = GS_OK;
		ts.keep.unique = true;
		if (CHECK(test_sort_feed(&ts) == GS_OK && test_sort_perform(&ts) == GS_OK,
				  "append to a resumed sort: %s", ts.error.message))
		{
			test_check_result(&ts);
			test_check_pages(&ts, &rng);
		}
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case(name);
}

void
test_keep_cases(TestDevice *td, uint64_t seed)
{
	case_generators(td, seed);
	case_large(td, seed);
	case_groups(td, seed);
	case_runs(td, seed);
	case_counted(td, seed);
	case_resumed(td, seed);
}
