/*-------------------------------------------------------------------------
 *
 * test_device_life.c
 *	  The conformance cases of cancelling, closing and misuse, and of opening devices.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_device.h"

static void
case_cancel(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;
	TestInput	in;

	if (!test_begin_case("cancel"))
		return;
	test_input_init(&in, 1 << 18);
	test_make_words(&in, 400000, &rng);
	test_input_finish(&in);
	for (int round = 0; round < 12; round++)
	{
		TestSort	ts;
		GsJob		job = {0};
		GsStatus	status;

		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		if (round % 3 == 0)
		{
			for (int i = 0; i < TEST_WINDOW; i++)
				test_sort_append(&ts);
			td->ops->cancel(ts.sort);
			status = test_sort_drain(&ts);
			CHECK(status == GS_OK || status == GS_CANCELLED, "cancelled append: %s", gs_status_name(status));
		}
		else
		{
			CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message);
			td->ops->perform(ts.sort, GS_FORMAT_ROWS, NULL, &job);
			if (round % 3 == 2)
			{
				struct timespec pause = {0, (long) test_below(&rng, 60000000)};

				nanosleep(&pause, NULL);
			}
			td->ops->cancel(ts.sort);
			test_wait(td, &job);
			status = gs_job_status(&job);
			CHECK(status == GS_OK || status == GS_CANCELLED, "cancelled perform: %s", gs_status_name(status));
		}
		test_sort_close(&ts);
	}

	/* The device is none the worse for it. */
	test_check_sort(td, &in, true, &rng);
	test_input_free(&in);
	test_end_case("cancel");
}

static double
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

/* Cancel at any moment of ordering: what is half done must not be gone on with. */
static void
case_cancel_anywhere(TestDevice *td, uint64_t seed)
{
	enum
	{
		ROUNDS = 150
	};
	TestRandom	rng = seed;
	TestInput	in;
	double		whole = 0;

	if (!test_begin_case("cancel anywhere"))
		return;
	test_input_init(&in, 1 << 18);
	test_make_words(&in, 100000, &rng);
	test_input_finish(&in);
	for (int round = 0; round < ROUNDS; round++)
	{
		TestSort	ts;
		GsJob		job = {0};
		GsStatus	status;
		double		start;

		if (!test_sort_open(&ts, td, &in, true, seed))
			break;
		CHECK(test_sort_feed(&ts) == GS_OK, "append: %s", ts.error.message);
		start = now_ns();
		td->ops->perform(ts.sort, GS_FORMAT_ROWS, NULL, &job);
		if (round > 0)
		{
			/* sleeping takes too long to be exact */
			while (now_ns() - start < whole * round / ROUNDS)
				;
			td->ops->cancel(ts.sort);
		}
		test_wait(td, &job);
		if (round == 0)
			whole = now_ns() - start;
		status = gs_job_status(&job);
		CHECK(status == GS_OK || (round > 0 && status == GS_CANCELLED),
			  "round %d: %s", round, gs_status_name(status));
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case("cancel anywhere");
}

static void
case_close_open_sorts(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	TestRandom	rng = seed;
	TestInput	in;

	if (!test_begin_case("close with open sorts"))
		return;
	test_input_init(&in, 1 << 18);
	test_make_words(&in, 300000, &rng);
	test_input_finish(&in);
	for (int round = 0; round < 4; round++)
	{
		TestDevice	td;
		TestSort	ts[3];
		GsJob		job = {0};
		GsError		error;
		GsStatus	status = test_open(&td, ops, 0, threads, &error);

		if (!CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
			break;
		for (int i = 0; i < 3; i++)
		{
			if (!test_sort_open(&ts[i], &td, &in, true, seed))
				return;
		}
		test_sort_feed(&ts[0]);
		if (round % 2 == 0)
			td.ops->perform(ts[0].sort, GS_FORMAT_ROWS, NULL, &job);
		for (int i = 0; i < TEST_WINDOW; i++)
			test_sort_append(&ts[1]);
		test_close(&td);
		CHECK(gs_job_status(&job) != GS_PENDING, "perform is pending after close");
		for (int i = 0; i < TEST_WINDOW; i++)
			CHECK(gs_job_status(&ts[1].jobs[i]) != GS_PENDING, "append is pending after close");
		for (int i = 0; i < 3; i++)
		{
			free(ts[i].accepted);
			for (int j = 0; j < TEST_WINDOW; j++)
				free(ts[i].buffers[j]);
		}
	}
	test_input_free(&in);
	test_end_case("close with open sorts");
}

/* Calls out of turn end as GS_INVALID and break nothing. */
static void
case_misuse(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	ts;
	GsSortResult result;
	GsError		error = {{0}};
	GsDeviceSort *none = NULL;
	GsSortSpec	spec = {0};
	GsStatus	status;

	if (!test_begin_case("misuse"))
		return;
	spec.chunk_bytes = 100000;
	status = td->ops->sort_open(td->device, &spec, &none, &error);
	CHECK(status == GS_INVALID && error.message[0] != '\0' && none == NULL,
		  "chunks that are no power of two: %s", gs_status_name(status));
	spec.chunk_bytes = 65536;
	spec.engine = (GsEngine) GS_N_ENGINES;
	status = td->ops->sort_open(td->device, &spec, &none, &error);
	CHECK(status == GS_INVALID && error.message[0] != '\0' && none == NULL,
		  "an engine that does not exist: %s", gs_status_name(status));
	test_input_init(&in, 65536);
	test_make_words(&in, 1000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&ts, td, &in, true, seed))
	{
		GsJob		early = {0};
		GsJob		beyond = {0};
		GsJob		image = {0};
		GsJob		late = {0};
		uint32_t	n_records;

		td->ops->fetch(ts.sort, 0, ts.buffers[0], &early);
		test_wait(td, &early);
		CHECK(gs_job_status(&early) == GS_INVALID, "fetch before perform: %s",
			  gs_status_name(gs_job_status(&early)));
		test_sort_feed(&ts);
		test_sort_perform(&ts);
		memset(&result, 0, sizeof(result));
		td->ops->result(ts.sort, &result);
		td->ops->fetch(ts.sort, result.n_pages, ts.buffers[0], &beyond);
		test_wait(td, &beyond);
		CHECK(gs_job_status(&beyond) == GS_INVALID, "fetch beyond the end: %s",
			  gs_status_name(gs_job_status(&beyond)));
		td->ops->fetch_image(ts.sort, result.n_images, ts.buffers[0], &n_records, &image);
		test_wait(td, &image);
		CHECK(gs_job_status(&image) == GS_INVALID, "image beyond the end: %s",
			  gs_status_name(gs_job_status(&image)));
		td->ops->append(ts.sort, ts.buffers[0], 0, 0, 0, &late);
		test_wait(td, &late);
		CHECK(gs_job_status(&late) == GS_INVALID, "append after perform: %s",
			  gs_status_name(gs_job_status(&late)));
		test_check_pages(&ts, &rng);
		test_sort_close(&ts);
	}
	test_input_free(&in);
	test_end_case("misuse");
}

/*
 * Appends of one sort are refused between those of another, all of them pending: the other one
 * gets all of its rows, and the refused one keeps what it has.
 */
static void
case_refused_between(TestDevice *td, uint64_t seed)
{
	TestRandom	rng = seed;
	TestInput	in;
	TestSort	done;

	if (!test_begin_case("appends refused between others"))
		return;
	test_input_init(&in, 65536);
	test_make_words(&in, 100000, &rng);
	test_input_finish(&in);
	if (test_sort_open(&done, td, &in, true, seed))
	{
		CHECK(test_sort_feed(&done) == GS_OK && test_sort_perform(&done) == GS_OK, "perform");
		for (int round = 0; round < 10; round++)
		{
			TestSort	other;
			bool		more = true;

			if (!test_sort_open(&other, td, &in, false, test_random(&rng)))
				break;
			while (more)
			{
				GsJob		late = {0};

				for (uint32_t i = 0; i < TEST_WINDOW; i++)
				{
					if (i == TEST_WINDOW / 2)
						td->ops->append(done.sort, done.buffers[0], 0, 0, 0, &late);
					more = test_sort_append(&other);
				}
				test_wait(td, &late);
				CHECK(gs_job_status(&late) == GS_INVALID, "append after perform: %s",
					  gs_status_name(gs_job_status(&late)));
				CHECK(test_sort_drain(&other) == GS_OK, "append: %s", other.error.message);
			}
			test_check_images(&other);
			CHECK(test_sort_perform(&other) == GS_OK, "perform: %s", other.error.message);
			test_check_pages(&other, &rng);
			test_sort_close(&other);
		}
		test_check_pages(&done, &rng);
		test_check_images(&done);
		test_sort_close(&done);
	}
	test_input_free(&in);
	test_end_case("appends refused between others");
}

/* A caller that polls, and a device of one thread. */
static void
case_without_notify(const GsDeviceOps *ops, uint64_t seed)
{
	TestRandom	rng = seed;
	GsDeviceConfig config = {0};
	GsError		error = {{0}};
	TestDevice	td;
	TestInput	in;
	TestSort	ts;
	GsJob		job = {0};
	GsStatus	status;

	if (!test_begin_case("no notify, one thread"))
		return;
	memset(&td, 0, sizeof(td));
	td.ops = ops;
	config.threads = 1;
	status = ops->open(&config, &td.device, &error);
	if (CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
	{
		struct timespec pause = {0, 1000000};

		test_input_init(&in, 1 << 20);
		test_make_words(&in, 30000, &rng);
		test_input_finish(&in);
		if (test_sort_open(&ts, &td, &in, true, seed))
		{
			for (int i = 0; i < TEST_WINDOW && test_sort_append(&ts); i++)
			{
				while (gs_job_status(&ts.jobs[i]) == GS_PENDING)
					nanosleep(&pause, NULL);
			}
			test_sort_drain(&ts);
			td.ops->perform(ts.sort, GS_FORMAT_ROWS, NULL, &job);
			while (gs_job_status(&job) == GS_PENDING)
				nanosleep(&pause, NULL);
			test_check_result(&ts);
			test_sort_close(&ts);
		}
		test_input_free(&in);
		ops->close(td.device);
	}
	test_end_case("no notify, one thread");
}

/*
 * Two devices, or the same one twice, are open at once: what one does, and that it
 * is closed, is nothing to the other one, and memory stays pinned for it.
 */
static void
case_two_devices(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	TestRandom	rng = seed;
	TestDevice	td[2];
	TestInput	in[2];
	TestSort	ts[2];
	GsError		error = {{0}};
	int			n = ops->count(&error);
	void	   *memory;

	if (!test_begin_case("two devices at once"))
		return;
	CHECK(n > 0, "count: %d %s", n, error.message);
	for (int i = 0; i < 2; i++)
	{
		GsStatus	status = test_open_number(&td[i], ops, i % n, 0, threads, &error);
		GsDeviceInfo info;

		if (!CHECK(status == GS_OK, "open: %s %s", gs_status_name(status), error.message))
		{
			if (i == 1)
				test_close(&td[0]);
			test_end_case("two devices at once");
			return;
		}
		ops->info(td[i].device, &info);
		if (info.uuid[0] != '\0')
			CHECK(ops->find(info.uuid) == i % n, "%s is device %d", info.uuid, ops->find(info.uuid));
		test_input_init(&in[i], 1 << 20);
		test_make_words(&in[i], 50000 + i, &rng);
		test_input_finish(&in[i]);
	}
	CHECK(ops->find("GPU-00000000-0000-0000-0000-000000000000") == -1, "a device that does not exist");

	/* pinned through the first, again through the other */
	memory = aligned_alloc(4096, 1 << 20);
	for (int i = 0; i < 2; i++)
		CHECK(ops->pin(td[i].device, memory, 1 << 20, &error) == GS_OK, "pin: %s", error.message);
	for (int i = 0; i < 2; i++)
	{
		bool		good = test_sort_open(&ts[i], &td[i], &in[i], true, seed) &&
			test_sort_feed(&ts[i]) == GS_OK;

		CHECK(good, "sort on device %d", i);
	}
	for (int i = 0; i < 2; i++)
		CHECK(test_sort_perform(&ts[i]) == GS_OK, "perform on device %d", i);
	for (int i = 0; i < 2; i++)
	{
		GsJob		job = {0};
		uint32_t	n_records;
		struct timespec pause = {0, 1000000};

		test_check_result(&ts[i]);
		test_check_pages(&ts[i], &rng);
		ops->fetch_image(ts[i].sort, 0, memory, &n_records, &job);
		while (gs_job_status(&job) == GS_PENDING)
			nanosleep(&pause, NULL);
		CHECK(gs_job_status(&job) == GS_OK, "fetch into pinned memory: %s", job.error.message);
		test_sort_close(&ts[i]);
		if (i == 0)
			test_close(&td[0]);
	}
	test_check_sort(&td[1], &in[0], true, &rng);
	test_close(&td[1]);
	for (int i = 0; i < 2; i++)
		test_input_free(&in[i]);
	free(memory);
	test_end_case("two devices at once");
}

/* A thread pins these buffers one by one.  Meanwhile a sort copies from and to all of them. */
typedef struct Pinning
{
	TestDevice *td;
	char	   *memory;
	size_t		bytes;
	GsStatus	status;
	GsError		error;
} Pinning;

static void *
pin_buffers(void *arg)
{
	Pinning    *pinning = arg;

	for (size_t i = 0; i < TEST_WINDOW && pinning->status == GS_OK; i++)
	{
		struct timespec pause = {0, 3000000};

		nanosleep(&pause, NULL);
		pinning->status = pinning->td->ops->pin(pinning->td->device, pinning->memory + i * pinning->bytes,
												pinning->bytes, &pinning->error);
	}
	return NULL;
}

static void
case_pin_in_use(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	TestRandom	rng = seed;
	TestDevice	td;
	TestInput	in;
	TestSort	ts;
	GsError		error = {{0}};
	Pinning		pinning = {.td = &td, .bytes = 1 << 20};
	pthread_t	thread;

	if (!test_begin_case("memory pinned while it is in use"))
		return;
	test_input_init(&in, 1 << 20);
	test_make_words(&in, 400000, &rng);
	test_input_finish(&in);
	pinning.memory = aligned_alloc(4096, TEST_WINDOW * pinning.bytes);
	if (CHECK(test_open(&td, ops, 0, threads, &error) == GS_OK, "open: %s", error.message))
	{
		CHECK(pthread_create(&thread, NULL, pin_buffers, &pinning) == 0, "no thread");
		for (int round = 0; round < 4 && test_sort_open(&ts, &td, &in, true, seed); round++)
		{
			char	   *own[TEST_WINDOW];

			memcpy(own, ts.buffers, sizeof(own));
			for (size_t i = 0; i < TEST_WINDOW; i++)
				ts.buffers[i] = pinning.memory + i * pinning.bytes;
			if (CHECK(test_sort_feed(&ts) == GS_OK && test_sort_perform(&ts) == GS_OK, "sort: %s", ts.error.message))
			{
				test_check_result(&ts);
				test_check_pages(&ts, &rng);
			}
			memcpy(ts.buffers, own, sizeof(own));
			test_sort_close(&ts);
		}
		pthread_join(thread, NULL);
		CHECK(pinning.status == GS_OK, "pin: %s", pinning.error.message);
		test_close(&td);
	}
	test_input_free(&in);
	free(pinning.memory);
	test_end_case("memory pinned while it is in use");
}

static void
case_wrong_ordinal(const GsDeviceOps *ops)
{
	GsDeviceConfig config = {0};
	GsDevice   *device = NULL;
	GsError		error = {{0}};
	GsStatus	status;

	if (!test_begin_case("device that does not exist"))
		return;
	config.ordinal = 1000;
	status = ops->open(&config, &device, &error);
	CHECK(status == GS_NO_DEVICE && error.message[0] != '\0' && device == NULL, "open: %s",
		  gs_status_name(status));
	test_end_case("device that does not exist");
}

void
test_life_cases(TestDevice *td, uint64_t seed)
{
	case_cancel(td, seed);
	case_cancel_anywhere(td, seed);
	case_misuse(td, seed);
	case_refused_between(td, seed);
}

void
test_life_devices(const GsDeviceOps *ops, int threads, uint64_t seed)
{
	case_close_open_sorts(ops, threads, seed);
	case_without_notify(ops, seed);
	case_two_devices(ops, threads, seed);
	case_pin_in_use(ops, threads, seed);
	case_wrong_ordinal(ops);
}
