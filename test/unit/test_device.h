/*-------------------------------------------------------------------------
 *
 * test_device.h
 *	  What the files of the device conformance suite share.
 *
 *	  test_device.c		  the cases, and options
 *	  test_device_arrays.c the cases of sort_arrays
 *	  test_device_bench.c the benchmark
 *	  test_device_chunks.c the cases of GS_FORMAT_CHUNKS, and of memory limits
 *	  test_device_groups.c the cases of control groups
 *	  test_device_keep.c  the cases of sorts that keep some rows only
 *	  test_device_life.c  the cases of cancelling, closing, misuse, and opening devices
 *	  test_device_tuples.c the cases of keys that devices make from tuples
 *	  test_device_run.c	  driving a device by its protocol, checking pages
 *	  test_device_data.c  inputs, their right order, and writing chunks
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <pthread.h>
#include <stdarg.h>

#include "../../src/device/device.h"

/* ---- data ---- */

typedef uint64_t TestRandom;

extern uint64_t test_random(TestRandom *rng);
extern uint32_t test_below(TestRandom *rng, uint32_t limit);

/* One record of an input; offsets into TestInput.bytes, flags in the lengths. */
typedef struct TestRecord
{
	size_t		row;
	size_t		key;			/* may lie in the row */
	uint32_t	row_len;
	uint32_t	key_len;
} TestRecord;

typedef struct TestInput
{
	char	   *bytes;
	size_t		n_bytes;
	size_t		max_bytes;
	TestRecord *records;
	uint32_t	n;
	uint32_t	max;
	uint32_t	chunk_bytes;
	uint32_t   *order;			/* record numbers in the right order */
	uint64_t	row_bytes;
	uint64_t	key_bytes;
} TestInput;

extern void test_input_init(TestInput *in, uint32_t chunk_bytes);
extern void test_input_free(TestInput *in);

/* A record whose key lies apart from its row. */
extern void test_input_add_apart(TestInput *in, const void *row, uint32_t row_len,
								 const void *key, uint32_t key_len);

/* A record whose row is its number, the key, and `tail` more bytes. */
extern void test_input_add(TestInput *in, const void *key, uint32_t key_len, uint32_t tail);

/* Find the right order, after the last record has been added. */
extern void test_input_finish(TestInput *in);
extern int	test_key_compare(const TestInput *in, uint32_t a, uint32_t b);

/* The next record to be written; copy it to write the same chunks again. */
typedef struct TestFeed
{
	const TestInput *in;
	uint32_t	next;
	bool		plain;			/* full chunks without gaps */
	TestRandom	rng;
} TestFeed;

extern void test_feed_chunk(TestFeed *feed, char *chunk, uint32_t *data_bytes,
							uint32_t *n_records);

typedef struct TestGenerator
{
	const char *name;
	uint32_t	chunk_bytes;
	void		(*make) (TestInput *in, TestRandom *rng);
} TestGenerator;

extern const TestGenerator test_generators[];	/* ended by a NULL name */
extern void test_make_fixed(TestInput *in, uint32_t width, uint32_t n, TestRandom *rng);
extern void test_make_words(TestInput *in, uint32_t n, TestRandom *rng);

/* ---- checks ---- */

extern unsigned test_failures;	/* of the case that is running */

extern bool test_check(bool good, const char *file, int line, const char *format,...)
			__attribute__((format(printf, 4, 5)));

/* Whether a case is to be run; if so, its checks follow, then its end. */
extern bool test_begin_case(const char *name);
extern void test_end_case(const char *name);

#define CHECK(cond, ...) test_check(cond, __FILE__, __LINE__, __VA_ARGS__)

/* ---- driving a device ---- */

/* Chunks or pages on their way at one time. */
#define TEST_WINDOW 4

typedef struct TestDevice
{
	const GsDeviceOps *ops;
	GsDevice   *device;
	pthread_t	caller;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t	notified;		/* calls of notify, under lock */
	uint64_t	misplaced;		/* calls on the caller's thread or with
								 * signals open, under lock */
	uint64_t	spare_bytes;	/* GsSortSpec's, of sorts that are opened */
} TestDevice;

/* A sort, the window of buffers that its jobs use, and its input. */
typedef struct TestSort
{
	TestDevice *td;
	GsDeviceSort *sort;
	const TestInput *in;
	TestFeed	feed;			/* what to append next */
	TestFeed	start;			/* the feed before its first chunk */
	char	   *buffers[TEST_WINDOW];
	GsJob		jobs[TEST_WINDOW];
	uint32_t	n_jobs;			/* appends made so far */
	uint32_t	n_ended;		/* of which so many are known to have ended */
	uint32_t	n_appended;		/* with GS_OK */
	bool	   *accepted;		/* for each that ended: with GS_OK? */
	uint32_t	max_ended;
	GsStatus	worst;			/* the first status other than GS_OK */
	GsError		error;			/* and its message */
	GsPageFormat format;		/* to perform it with */
	GsKeep		keep;			/* to perform it with */
	uint32_t   *order;			/* records that it gives back; after perform, where
								 * not all are kept, its own array */
	uint32_t	n;				/* of these */
	uint32_t	counted;		/* of the records, by rows that were checked (GsKeep.counted) */
} TestSort;

extern GsStatus test_open(TestDevice *td, const GsDeviceOps *ops, uint64_t memory_limit,
						  int threads, GsError *error);
extern GsStatus test_open_number(TestDevice *td, const GsDeviceOps *ops, int ordinal,
								 uint64_t memory_limit, int threads, GsError *error);
extern void test_close(TestDevice *td);

/* What all sorts are opened with. */
extern GsEngine test_engine;

/* Wait for a job; false and a failed check after a minute and a half. */
extern bool test_wait(TestDevice *td, GsJob *job);

extern bool test_sort_open(TestSort *ts, TestDevice *td, const TestInput *in, bool plain,
						   uint64_t seed);
extern void test_sort_close(TestSort *ts);

/* Append one chunk, leaving it pending; false where there is no more. */
extern bool test_sort_append(TestSort *ts);

/* Wait for the pending appends; returns ts->worst. */
extern GsStatus test_sort_drain(TestSort *ts);

/* Append the rest of the input and wait; returns ts->worst. */
extern GsStatus test_sort_feed(TestSort *ts);
extern GsStatus test_sort_perform(TestSort *ts);

/* How many records have the key of the one with this rank, which is the first of them. */
extern uint32_t test_equal_records(const TestInput *in, uint32_t rank);

extern void test_check_result(TestSort *ts);
extern void test_check_pages(TestSort *ts, TestRandom *rng);
extern void test_check_images(TestSort *ts);

/* The records of the chunks that were taken.  Uses the buffers. */
extern uint64_t test_taken_records(TestSort *ts);

/* Everything that one sort must do, from open to close. */
extern void test_check_sort(TestDevice *td, const TestInput *in, bool plain, TestRandom *rng);

/* ---- cases of GS_FORMAT_CHUNKS, and of memory limits ---- */

extern void test_chunks_cases(TestDevice *td, uint64_t seed);
extern void test_chunks_memory(const GsDeviceOps *ops, int threads, uint64_t seed);

/* ---- cases of sorts that keep some rows only ---- */

extern void test_keep_cases(TestDevice *td, uint64_t seed);

/* ---- cases of keys that devices make from tuples ---- */

extern void test_tuples_cases(TestDevice *td, uint64_t seed);

/* ---- cases of sort_arrays ---- */

extern void test_arrays_cases(TestDevice *td, uint64_t seed);
extern void test_arrays_memory(const GsDeviceOps *ops, int threads, uint64_t seed);

/* ---- cancelling, closing, opening ---- */

extern void test_life_cases(TestDevice *td, uint64_t seed);
extern void test_life_devices(const GsDeviceOps *ops, int threads, uint64_t seed);
extern void test_groups_cases(void);

/* ---- the benchmark ---- */

/* Sort the lines of a file; returns what main() is to. */
extern int	test_run_bench(const GsDeviceOps *ops, int threads, const char *path);

#endif							/* TEST_DEVICE_H */
