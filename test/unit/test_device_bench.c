/*-------------------------------------------------------------------------
 *
 * test_device_bench.c
 *	  The benchmark of gpusort's devices: the lines of a file sorted, read
 *	  back by page and by key, and moved about.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_device.h"

#define BENCH_CHUNK_BYTES ((uint32_t) 4 << 20)
#define BENCH_ROUNDS 3

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

/* Chunks as PostgreSQL would feed them, a row an 8-byte header and a line. */
static uint32_t
bench_load(const char *path, char *arena, size_t max_chunks, uint32_t *bytes, uint32_t *records)
{
	FILE	   *file = fopen(path, "r");
	char	   *line = NULL;
	size_t		room = 0;
	ssize_t		len;
	uint32_t	n = 0;
	uint32_t	used = 0;
	uint32_t	count = 0;
	uint64_t	number = 0;

	if (file == NULL)
	{
		perror(path);
		exit(2);
	}
	while ((len = getline(&line, &room, file)) >= 0)
	{
		uint32_t	key_len = (uint32_t) (len > 0 && line[len - 1] == '\n' ? len - 1 : len);
		char	   *chunk = arena + (size_t) n * BENCH_CHUNK_BYTES;
		GsRecord   *record;

		if (used + 8 + key_len + 16 * (count + 1) > BENCH_CHUNK_BYTES)
		{
			bytes[n] = used;
			records[n] = count;
			used = count = 0;
			if (++n == max_chunks)
				break;
			chunk += BENCH_CHUNK_BYTES;
		}
		memcpy(chunk + used, &number, 8);
		memcpy(chunk + used + 8, line, key_len);
		record = gs_chunk_record(chunk, BENCH_CHUNK_BYTES, count);
		record->row_off = used;
		record->row_len = 8 + key_len;
		record->key_off = used + 8;
		record->key_len = key_len;
		used = (used + 8 + key_len + 7) & ~7u;
		count++;
		number++;
	}
	if (count > 0 && n < max_chunks)
	{
		bytes[n] = used;
		records[n] = count;
		n++;
	}
	free(line);
	fclose(file);
	return n;
}

static bool
bench_wait(TestDevice *td, GsJob *job, const char *what)
{
	test_wait(td, job);
	if (gs_job_status(job) == GS_OK)
		return true;
	printf("%s: %s %s\n", what, gs_status_name(gs_job_status(job)), job->error.message);
	return false;
}

int
test_run_bench(const GsDeviceOps *ops, int threads, const char *path)
{
	enum
	{
		MAX_CHUNKS = 1024
	};
	static uint32_t bytes[MAX_CHUNKS];
	static uint32_t records[MAX_CHUNKS];
	static GsJob jobs[MAX_CHUNKS];
	char	   *arena = aligned_alloc(4096, (size_t) MAX_CHUNKS * BENCH_CHUNK_BYTES);
	char	   *pages = aligned_alloc(4096, (size_t) 8 * BENCH_CHUNK_BYTES);
	uint32_t	n_chunks;
	GsSortSpec	spec = {.chunk_bytes = BENCH_CHUNK_BYTES, .engine = test_engine};
	GsError		error;
	TestDevice	td;
	GsStatus	status;

	if (arena == NULL || pages == NULL)
	{
		perror("test_device");
		return 2;
	}
	n_chunks = bench_load(path, arena, MAX_CHUNKS, bytes, records);
	status = test_open(&td, ops, 0, threads, &error);
	if (status != GS_OK)
	{
		printf("open: %s %s\n", gs_status_name(status), error.message);
		return 1;
	}
	td.ops->pin(td.device, arena, (size_t) n_chunks * BENCH_CHUNK_BYTES, &error);
	memset(pages, 0, (size_t) 8 * BENCH_CHUNK_BYTES);
	td.ops->pin(td.device, pages, (size_t) 8 * BENCH_CHUNK_BYTES, &error);
	for (int round = 0; round < BENCH_ROUNDS; round++)
	{
		GsDeviceSort *sort;
		GsSortResult result;
		GsJob		perform = {0};
		double		in_bytes = 0;
		double		times[4];

		status = td.ops->sort_open(td.device, &spec, &sort, &error);
		if (status != GS_OK)
		{
			printf("sort_open: %s %s\n", gs_status_name(status), error.message);
			return 1;
		}
		memset(jobs, 0, sizeof(jobs));
		times[0] = now_ms();
		for (uint32_t i = 0; i < n_chunks; i++)
		{
			in_bytes += bytes[i] + 16.0 * records[i];
			td.ops->append(sort, arena + (size_t) i * BENCH_CHUNK_BYTES, bytes[i], records[i], 0, &jobs[i]);
		}
		for (uint32_t i = 0; i < n_chunks; i++)
		{
			if (!bench_wait(&td, &jobs[i], "append"))
				return 1;
		}
		times[1] = now_ms();
		td.ops->perform(sort, GS_FORMAT_ROWS, NULL, &perform);
		if (!bench_wait(&td, &perform, "perform"))
			return 1;
		times[2] = now_ms();
		memset(&result, 0, sizeof(result));
		td.ops->result(sort, &result);
		for (uint64_t i = 0; i < result.n_pages + 8; i++)
		{
			if (i >= 8 && !bench_wait(&td, &jobs[i % 8], "fetch"))
				return 1;
			memset(&jobs[i % 8], 0, sizeof(GsJob));
			if (i < result.n_pages)
				td.ops->fetch(sort, i, pages + (i % 8) * BENCH_CHUNK_BYTES, &jobs[i % 8]);
		}
		times[3] = now_ms();
		td.ops->result(sort, &result);
		printf("%llu rows, %.1f MB keys, engine %s: append %.2f GB/s (%.1f ms), "
			   "perform %.1f ms, fetch %.2f GB/s (%.1f ms, %llu pages)\n",
			   (unsigned long long) result.n_rows, (double) result.key_bytes / 1e6, result.engine,
			   in_bytes / (times[1] - times[0]) / 1e6, times[1] - times[0],
			   times[2] - times[1], (double) result.row_bytes / (times[3] - times[2]) / 1e6,
			   times[3] - times[2], (unsigned long long) result.n_pages);
		printf("  device: copy in %.1f, sort %.1f, gather %.1f, copy out %.1f ms\n",
			   result.copy_in_ms, result.sort_ms, result.gather_ms, result.copy_out_ms);
		td.ops->sort_close(sort);
	}
	test_close(&td);
	free(arena);
	free(pages);
	return 0;
}
