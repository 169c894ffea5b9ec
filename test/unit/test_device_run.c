/*-------------------------------------------------------------------------
 *
 * test_device_run.c
 *	  Drives a device by the protocol of device.h and checks what it says
 *	  and gives back, for the device conformance suite.
 *
 * Jobs are waited for by notify alone: a device that sets a status without
 * calling notify afterwards is found by a time-out.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_device.h"

#define WAIT_SECONDS 90
#define MAX_MESSAGES 8			/* printed failures a case */

unsigned	test_failures;

bool
test_check(bool good, const char *file, int line, const char *format,...)
{
	va_list		args;

	if (good)
		return true;
	if (++test_failures <= MAX_MESSAGES)
	{
		printf("# %s:%d: ", file, line);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
		fflush(stdout);
	}
	return false;
}

static void
notified(void *arg)
{
	TestDevice *td = arg;
	sigset_t	blocked;
	bool		good;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	good = !pthread_equal(pthread_self(), td->caller) && sigismember(&blocked, SIGTERM) == 1 &&
		sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGUSR1) == 1 &&
		sigismember(&blocked, SIGALRM) == 1;
	pthread_mutex_lock(&td->lock);
	td->notified++;
	if (!good)
		td->misplaced++;
	pthread_cond_broadcast(&td->changed);
	pthread_mutex_unlock(&td->lock);
}

GsStatus
test_open(TestDevice *td, const GsDeviceOps *ops, uint64_t memory_limit, int threads,
		  GsError *error)
{
	return test_open_number(td, ops, 0, memory_limit, threads, error);
}

GsStatus
test_open_number(TestDevice *td, const GsDeviceOps *ops, int ordinal, uint64_t memory_limit,
				 int threads, GsError *error)
{
	GsDeviceConfig config = {0};

	memset(td, 0, sizeof(*td));
	td->ops = ops;
	td->caller = pthread_self();
	pthread_mutex_init(&td->lock, NULL);
	pthread_cond_init(&td->changed, NULL);
	config.ordinal = ordinal;
	config.memory_limit = memory_limit;
	config.threads = threads;
	config.notify = notified;
	config.notify_arg = td;
	memset(error, 0, sizeof(*error));
	return ops->open(&config, &td->device, error);
}

void
test_close(TestDevice *td)
{
	td->ops->close(td->device);
	CHECK(td->misplaced == 0, "notify called %llu times on the caller's thread or with signals open",
		  (unsigned long long) td->misplaced);
	pthread_cond_destroy(&td->changed);
	pthread_mutex_destroy(&td->lock);
}

bool
test_wait(TestDevice *td, GsJob *job)
{
	struct timespec until;
	bool		ended = true;

	if (gs_job_status(job) != GS_PENDING)
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&td->lock);
	while (ended && gs_job_status(job) == GS_PENDING)
		ended = pthread_cond_timedwait(&td->changed, &td->lock, &until) != ETIMEDOUT;
	pthread_mutex_unlock(&td->lock);
	if (!ended)
	{
		CHECK(false, "a job did not end, or notify was not called after it");
		printf("Bail out! the device still owns memory of this process\n");
		exit(1);
	}
	return ended;
}

bool
test_sort_open(TestSort *ts, TestDevice *td, const TestInput *in, bool plain, uint64_t seed)
{
	GsSortSpec	spec = {0};
	GsError		error = {{0}};
	GsStatus	status;

	memset(ts, 0, sizeof(*ts));
	ts->td = td;
	ts->in = in;
	ts->feed.in = in;
	ts->feed.plain = plain;
	ts->feed.rng = seed;
	ts->start = ts->feed;
	ts->order = in->order;
	ts->n = in->n;
	spec.chunk_bytes = in->chunk_bytes;
	spec.engine = test_engine;
	spec.spare_bytes = td->spare_bytes;
	status = td->ops->sort_open(td->device, &spec, &ts->sort, &error);
	if (!CHECK(status == GS_OK, "sort_open: %s %s", gs_status_name(status), error.message))
		return false;
	for (int i = 0; i < TEST_WINDOW; i++)
	{
		ts->buffers[i] = aligned_alloc(64, in->chunk_bytes);
		if (ts->buffers[i] == NULL)
			abort();
		memset(ts->buffers[i], 0x5a, in->chunk_bytes);
	}
	return true;
}

void
test_sort_close(TestSort *ts)
{
	ts->td->ops->sort_close(ts->sort);
	free(ts->accepted);
	if (ts->order != ts->in->order)
		free(ts->order);
	for (int i = 0; i < TEST_WINDOW; i++)
		free(ts->buffers[i]);
}

/* Wait for the oldest append not yet noted as ended. */
static void
end_append(TestSort *ts)
{
	uint32_t	number = ts->n_ended;
	GsJob	   *job = &ts->jobs[number % TEST_WINDOW];
	GsStatus	status;

	/* If a later one has ended, then so has this one. */
	for (uint32_t later = number + 1; later < ts->n_jobs; later++)
	{
		GsStatus	later_status = gs_job_status(&ts->jobs[later % TEST_WINDOW]);

		CHECK(later_status == GS_PENDING || gs_job_status(job) != GS_PENDING,
			  "append %u ended before append %u", later, number);
	}
	test_wait(ts->td, job);
	status = gs_job_status(job);
	if (ts->n_ended == ts->max_ended)
	{
		ts->max_ended = ts->max_ended == 0 ? 64 : ts->max_ended * 2;
		ts->accepted = realloc(ts->accepted, ts->max_ended * sizeof(bool));
		if (ts->accepted == NULL)
			abort();
	}
	ts->accepted[ts->n_ended++] = status == GS_OK;
	if (status == GS_OK)
		ts->n_appended++;
	else if (ts->worst == GS_OK)
	{
		ts->worst = status;
		ts->error = job->error;
	}
}

bool
test_sort_append(TestSort *ts)
{
	uint32_t	slot = ts->n_jobs % TEST_WINDOW;
	uint32_t	data_bytes;
	uint32_t	n_records;

	if (ts->feed.next >= ts->in->n)
		return false;
	if (ts->n_jobs - ts->n_ended == TEST_WINDOW)
		end_append(ts);
	test_feed_chunk(&ts->feed, ts->buffers[slot], &data_bytes, &n_records);
	memset(&ts->jobs[slot], 0, sizeof(GsJob));
	ts->td->ops->append(ts->sort, ts->buffers[slot], data_bytes, n_records, 0, &ts->jobs[slot]);
	ts->n_jobs++;
	return true;
}

GsStatus
test_sort_drain(TestSort *ts)
{
	while (ts->n_ended < ts->n_jobs)
		end_append(ts);
	return ts->worst;
}

GsStatus
test_sort_feed(TestSort *ts)
{
	while (ts->worst == GS_OK && test_sort_append(ts))
		;
	return test_sort_drain(ts);
}

/* Does a key end within its first columns?  *bytes: how long these are. */
static bool
ends_within(const TestSort *ts, const TestRecord *record, uint32_t *bytes)
{
	const uint8_t *key = (const uint8_t *) ts->in->bytes + record->key;
	uint32_t	left = record->key_len & GS_LENGTH_MASK;

	*bytes = left;
	for (uint32_t c = 0; c < ts->keep.group.n_columns; c++)
	{
		const GsGroupColumn *column = &ts->keep.group.columns[c];
		uint32_t	n = 0;
		bool		is_null;

		if (left == 0)
			return true;
		is_null = *key++ == column->null_byte;
		left--;
		while (!is_null && (column->n_ends > 0 ? n < column->n_ends : n < column->width))
		{
			if (left == 0)
				return true;
			n += column->n_ends == 0 || *key == column->end;
			key++;
			left--;
		}
	}
	*bytes -= left;
	return false;
}

/* Are two records of one group? */
static bool
same_group(const TestSort *ts, uint32_t a, uint32_t b)
{
	const TestRecord *x = &ts->in->records[a];
	const TestRecord *y = &ts->in->records[b];
	uint32_t	x_bytes;
	uint32_t	y_bytes;

	return ends_within(ts, x, &x_bytes) == ends_within(ts, y, &y_bytes) && x_bytes == y_bytes &&
		memcmp(ts->in->bytes + x->key, ts->in->bytes + y->key, x_bytes) == 0;
}

uint32_t
test_equal_records(const TestInput *in, uint32_t rank)
{
	uint32_t	end = rank + 1;

	while (end < in->n && test_key_compare(in, in->order[rank], in->order[end]) == 0)
		end++;
	return end - rank;
}

static int
compare_counts(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The highest power of two that so many keys' numbers of records reach; 0: they are fewer keys. */
static uint32_t
count_of_top(const TestInput *in, uint64_t top)
{
	uint32_t   *counts = malloc(in->n * sizeof(uint32_t));
	uint32_t	n_keys = 0;
	uint32_t	result;

	if (counts == NULL)
		abort();
	for (uint32_t rank = 0; rank < in->n; rank += counts[n_keys++])
		counts[n_keys] = test_equal_records(in, rank);
	qsort(counts, n_keys, sizeof(uint32_t), compare_counts);
	result = top > 0 && top <= n_keys ? counts[top - 1] : 0;
	free(counts);
	while ((result & (result - 1)) != 0)
		result &= result - 1;
	return result;
}

/* Which records are kept, found from their right order. */
static void
keep_records(TestSort *ts)
{
	const TestInput *in = ts->in;
	const GsKeepGroup *group = &ts->keep.group;
	uint32_t	min_count = ts->keep.top > 0 ? count_of_top(in, ts->keep.top) : ts->keep.min_count;
	uint32_t	n_before = 0;	/* of the record's group */
	bool		kept = false;

	ts->order = malloc((in->n + 1) * sizeof(uint32_t));
	if (ts->order == NULL)
		abort();
	ts->n = 0;
	for (uint32_t i = 0; i < in->n; i++)
	{
		bool		tie = i > 0 && test_key_compare(in, in->order[i - 1], in->order[i]) == 0;

		if (ts->keep.limit > 0 && ts->n == ts->keep.limit)
			break;
		n_before = i > 0 && same_group(ts, in->order[i - 1], in->order[i]) ? n_before + 1 : 0;
		if (ts->keep.unique && ts->keep.counted && !tie)
		{
			uint32_t	n = test_equal_records(in, i);

			kept = n >= min_count && (ts->keep.max_count == 0 || n <= ts->keep.max_count);
		}
		else if (ts->keep.unique)
			kept = !tie;
		else if (!tie || !group->ties)
			kept = group->first == 0 || n_before < group->first;
		if (group->several && n_before == 0 &&
			(i + 1 == in->n || !same_group(ts, in->order[i], in->order[i + 1])))
			continue;
		if (kept)
			ts->order[ts->n++] = in->order[i];
	}
}

GsStatus
test_sort_perform(TestSort *ts)
{
	bool		some = ts->keep.unique || ts->keep.limit > 0 || ts->keep.group.first > 0;
	GsKeep		keep = ts->keep;
	GsJob		job = {0};

	if (some)
		keep_records(ts);
	ts->td->ops->perform(ts->sort, ts->format, some ? &keep : NULL, &job);
	memset(&keep, 0xa5, sizeof(keep));	/* it is the caller's again */
	test_wait(ts->td, &job);
	return gs_job_status(&job);
}

/* What a row takes in a page. */
static uint64_t
page_bytes(const TestSort *ts, uint64_t position)
{
	const TestRecord *record = &ts->in->records[ts->order[position]];
	uint64_t	len = record->row_len & GS_LENGTH_MASK;

	if (ts->format == GS_FORMAT_CHUNKS)
		return ((len + (record->key_len & GS_LENGTH_MASK) + 7) & ~UINT64_C(7)) + sizeof(GsRecord);
	return ((len + 7) & ~UINT64_C(7)) + sizeof(uint32_t);
}

void
test_check_result(TestSort *ts)
{
	const TestInput *in = ts->in;
	GsSortResult result;

	memset(&result, 0, sizeof(result));
	ts->td->ops->result(ts->sort, &result);
	CHECK(result.n_rows == ts->n, "%llu rows instead of %u", (unsigned long long) result.n_rows, ts->n);
	CHECK(result.n_dropped == in->n - ts->n, "%llu rows dropped instead of %u",
		  (unsigned long long) result.n_dropped, in->n - ts->n);
	CHECK(result.row_bytes == in->row_bytes, "%llu row bytes instead of %llu",
		  (unsigned long long) result.row_bytes, (unsigned long long) in->row_bytes);
	CHECK(result.key_bytes == in->key_bytes, "%llu key bytes instead of %llu",
		  (unsigned long long) result.key_bytes, (unsigned long long) in->key_bytes);
	CHECK(result.engine != NULL && result.engine[0] != '\0', "the engine has no name");
	CHECK(result.copy_in_ms >= 0 && result.sort_ms >= 0 && result.gather_ms >= 0 &&
		  result.copy_out_ms >= 0, "a phase took less than no time");
	CHECK(result.n_images == ts->n_appended, "%llu images instead of %u",
		  (unsigned long long) result.n_images, ts->n_appended);

	if (ts->n == 0)
	{
		CHECK(result.n_pages == 0, "%llu pages of no rows", (unsigned long long) result.n_pages);
		return;
	}
	if (!CHECK(result.n_pages > 0 && result.page_first != NULL, "no pages"))
		return;
	CHECK(result.page_first[0] == 0, "the first page does not start at row 0");
	CHECK(result.page_first[result.n_pages] == ts->n, "the last page does not end at the last row");
	for (uint64_t page = 0; page < result.n_pages; page++)
	{
		uint64_t	used = 0;

		if (!CHECK(result.page_first[page] < result.page_first[page + 1] &&
				   result.page_first[page + 1] <= ts->n, "page %llu is empty or turned around",
				   (unsigned long long) page))
			return;
		for (uint64_t i = result.page_first[page]; i < result.page_first[page + 1]; i++)
			used += page_bytes(ts, i);
		CHECK(used <= in->chunk_bytes, "the rows of page %llu take %llu bytes",
			  (unsigned long long) page, (unsigned long long) used);
		CHECK(page + 1 == result.n_pages || used >= (uint64_t) in->chunk_bytes / 8 * 7 ||
			  (ts->format == GS_FORMAT_CHUNKS &&
			   used + page_bytes(ts, result.page_first[page + 1]) > in->chunk_bytes), "page %llu is filled with %llu bytes only", (unsigned long long) page,
			  (unsigned long long) used);
	}
}

/* Check one page as fetched; `granules` is room for a byte per 8 of it. */
static void
check_page(TestSort *ts, const GsSortResult *result, uint64_t page, const char *bytes,
		   unsigned char *granules)
{
	const TestInput *in = ts->in;
	uint64_t	first = result->page_first[page];
	uint32_t	n = (uint32_t) (result->page_first[page + 1] - first);
	uint32_t	limit = in->chunk_bytes - n * 4;

	memset(granules, 0, in->chunk_bytes / 8);
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	position = first + i;
		const TestRecord *record = &in->records[ts->order[position]];
		uint32_t	len = record->row_len & GS_LENGTH_MASK;
		uint32_t	entry = gs_page_entry(bytes, in->chunk_bytes, i);
		uint32_t	offset = entry & ~GS_ENTRY_FLAGS;
		uint32_t	flags = 0;

		if (position > 0 && test_key_compare(in, ts->order[position - 1], ts->order[position]) == 0)
			flags |= GS_ENTRY_TIE;
		if (record->key_len & GS_KEY_INEXACT)
			flags |= GS_ENTRY_INEXACT;
		if (record->row_len & GS_ROW_EXTERNAL)
			flags |= GS_ENTRY_EXTERNAL;
		if (!CHECK((entry & GS_ENTRY_FLAGS) == flags, "row %llu has flags %u instead of %u",
				   (unsigned long long) position, entry & GS_ENTRY_FLAGS, flags))
			return;
		if (!CHECK(offset <= limit && len <= limit - offset, "row %llu lies at %u of page %llu",
				   (unsigned long long) position, offset, (unsigned long long) page))
			return;
		if (!CHECK(len == 0 || memcmp(bytes + offset, in->bytes + record->row, len) == 0,
				   "row %llu (%u bytes, page %llu) is not the right one",
				   (unsigned long long) position, len, (unsigned long long) page))
			return;
		for (uint32_t j = offset / 8; j < (offset + len + 7) / 8; j++)
		{
			if (!CHECK(granules[j] == 0, "row %llu lies on another one", (unsigned long long) position))
				return;
			granules[j] = 1;
		}
	}
}

/* Check one page that is a chunk: the bytes that it must be. */
static void
check_chunk(TestSort *ts, const GsSortResult *result, uint64_t page, char *bytes)
{
	const TestInput *in = ts->in;
	uint64_t	first = result->page_first[page];
	uint32_t	n = (uint32_t) (result->page_first[page + 1] - first);
	uint32_t	limit = in->chunk_bytes - n * (uint32_t) sizeof(GsRecord);
	uint32_t	offset = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		const TestRecord *expected = &in->records[ts->order[first + i]];
		const GsRecord *record = gs_chunk_record(bytes, in->chunk_bytes, i);
		uint32_t	row_len = expected->row_len & GS_LENGTH_MASK;
		uint32_t	key_len = expected->key_len & GS_LENGTH_MASK;
		uint32_t	end = offset + row_len + key_len;
		const char	zeroes[8] = {0};

		if (!CHECK(record->row_off == offset && record->row_len == expected->row_len &&
				   record->key_off == offset + row_len && record->key_len == expected->key_len,
				   "record %u of chunk %llu is row %u of %x bytes, key %u of %x", i,
				   (unsigned long long) page, record->row_off, record->row_len, record->key_off,
				   record->key_len) ||
			!CHECK(end <= limit, "record %u of chunk %llu ends at %u of %u", i,
				   (unsigned long long) page, end, limit) ||
			!CHECK(memcmp(bytes + offset, in->bytes + expected->row, row_len) == 0,
				   "row %u of chunk %llu (%u bytes) is not the right one", i,
				   (unsigned long long) page, row_len) ||
			!CHECK(memcmp(bytes + offset + row_len, in->bytes + expected->key, key_len) == 0,
				   "key %u of chunk %llu (%u bytes) is not the right one", i,
				   (unsigned long long) page, key_len))
			return;
		offset = (end + 7) & ~UINT32_C(7);
		if (!CHECK(memcmp(bytes + end, zeroes, offset - end) == 0,
				   "record %u of chunk %llu is not followed by zeroes", i, (unsigned long long) page))
			return;
	}
}

/* Fetch the pages named, several at a time, and check them. */
static void
check_pages_in(TestSort *ts, const uint64_t *pages, uint64_t n)
{
	GsJob		jobs[TEST_WINDOW];
	GsSortResult result;
	unsigned char *granules = malloc(ts->in->chunk_bytes / 8);

	if (granules == NULL)
		abort();
	memset(&result, 0, sizeof(result));
	ts->td->ops->result(ts->sort, &result);
	for (uint64_t i = 0; i < n + TEST_WINDOW; i++)
	{
		uint32_t	slot = i % TEST_WINDOW;

		if (i >= TEST_WINDOW && i - TEST_WINDOW < n)
		{
			for (uint32_t later = 1; later < TEST_WINDOW && i - TEST_WINDOW + later < n; later++)
			{
				uint32_t	other = (slot + later) % TEST_WINDOW;
				GsStatus	other_status = gs_job_status(&jobs[other]);

				CHECK(other_status == GS_PENDING || gs_job_status(&jobs[slot]) != GS_PENDING,
					  "fetches ended out of order");
			}
			test_wait(ts->td, &jobs[slot]);
			if (CHECK(gs_job_status(&jobs[slot]) == GS_OK, "fetch: %s %s",
					  gs_status_name(gs_job_status(&jobs[slot])), jobs[slot].error.message))
			{
				if (ts->format == GS_FORMAT_CHUNKS)
					check_chunk(ts, &result, pages[i - TEST_WINDOW], ts->buffers[slot]);
				else
					check_page(ts, &result, pages[i - TEST_WINDOW], ts->buffers[slot], granules);
			}
		}
		if (i < n)
		{
			memset(ts->buffers[slot], 0xa5, ts->in->chunk_bytes);
			memset(&jobs[slot], 0, sizeof(GsJob));
			ts->td->ops->fetch(ts->sort, pages[i], ts->buffers[slot], &jobs[slot]);
		}
	}
	free(granules);
}

/* Forwards, then backwards, then at random, some pages twice. */
void
test_check_pages(TestSort *ts, TestRandom *rng)
{
	GsSortResult result;
	uint64_t   *pages;

	memset(&result, 0, sizeof(result));
	ts->td->ops->result(ts->sort, &result);
	pages = malloc((result.n_pages + 1) * sizeof(uint64_t));
	if (pages == NULL)
		abort();
	for (uint64_t i = 0; i < result.n_pages; i++)
		pages[i] = i;
	check_pages_in(ts, pages, result.n_pages);
	for (uint64_t i = 0; i < result.n_pages; i++)
		pages[i] = result.n_pages - 1 - i;
	check_pages_in(ts, pages, result.n_pages);
	for (uint64_t i = 0; i < result.n_pages; i++)
		pages[i] = test_below(rng, (uint32_t) result.n_pages);
	check_pages_in(ts, pages, result.n_pages);
	free(pages);
}

uint64_t
test_taken_records(TestSort *ts)
{
	TestFeed	feed = ts->start;
	uint64_t	n = 0;

	for (uint32_t i = 0; i < ts->n_ended; i++)
	{
		uint32_t	data_bytes;
		uint32_t	n_records;

		test_feed_chunk(&feed, ts->buffers[0], &data_bytes, &n_records);
		n += ts->accepted[i] ? n_records : 0;
	}
	return n;
}

/* Every image must be the chunk that was appended, byte by byte. */
void
test_check_images(TestSort *ts)
{
	TestFeed	feed = ts->start;
	uint32_t	chunk_bytes = ts->in->chunk_bytes;
	char	   *expected = ts->buffers[0];
	char	   *image = ts->buffers[1];
	uint32_t	number = 0;
	GsSortResult result;

	memset(&result, 0, sizeof(result));
	ts->td->ops->result(ts->sort, &result);
	if (!CHECK(result.n_images == ts->n_appended, "%llu images instead of %u",
			   (unsigned long long) result.n_images, ts->n_appended))
		return;
	for (uint64_t i = 0; i < result.n_images; i++)
	{
		uint32_t	data_bytes;
		uint32_t	n_records;
		uint32_t	n_fetched;
		GsJob		job = {0};

		do
			test_feed_chunk(&feed, expected, &data_bytes, &n_records);
		while (!ts->accepted[number++]);
		memset(image, 0xa5, chunk_bytes);
		ts->td->ops->fetch_image(ts->sort, i, image, &n_fetched, &job);
		test_wait(ts->td, &job);
		if (!CHECK(gs_job_status(&job) == GS_OK, "fetch_image: %s %s",
				   gs_status_name(gs_job_status(&job)), job.error.message))
			return;
		if (!CHECK(n_fetched == n_records, "image %llu has %u records instead of %u",
				   (unsigned long long) i, n_fetched, n_records))
			return;
		CHECK(n_records == 0 ||
			  memcmp(gs_chunk_record(image, chunk_bytes, n_records - 1),
					 gs_chunk_record(expected, chunk_bytes, n_records - 1),
					 (size_t) n_records * sizeof(GsRecord)) == 0,
			  "the records of image %llu differ", (unsigned long long) i);
		for (uint32_t j = 0; j < n_records; j++)
		{
			GsRecord   *record = gs_chunk_record(expected, chunk_bytes, j);
			uint32_t	row_len = record->row_len & GS_LENGTH_MASK;
			uint32_t	key_len = record->key_len & GS_LENGTH_MASK;

			if (!CHECK(memcmp(image + record->row_off, expected + record->row_off, row_len) == 0 &&
					   memcmp(image + record->key_off, expected + record->key_off, key_len) == 0,
					   "record %u of image %llu differs", j, (unsigned long long) i))
				return;
		}
	}
}

void
test_check_sort(TestDevice *td, const TestInput *in, bool plain, TestRandom *rng)
{
	TestSort	ts;
	GsStatus	status;

	if (!test_sort_open(&ts, td, in, plain, test_random(rng)))
		return;
	status = test_sort_feed(&ts);
	if (CHECK(status == GS_OK, "append: %s %s", gs_status_name(status), ts.error.message))
	{
		status = test_sort_perform(&ts);
		if (CHECK(status == GS_OK, "perform: %s", gs_status_name(status)))
		{
			test_check_result(&ts);
			test_check_pages(&ts, rng);
			test_check_images(&ts);
			test_check_pages(&ts, rng);
		}
	}
	test_sort_close(&ts);
}
