/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  Counters of what gpusort did (stats.h).
 *
 * Tests: regress/views, tap/docs_examples
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "stats.h"

#define N_ATOMICS	(sizeof(GsStatsShared) / sizeof(pg_atomic_uint64))

GsStatsShared *gs_stats = NULL;

void
gs_stats_shmem_request(void)
{
	RequestAddinShmemSpace(sizeof(GsStatsShared));
}

void
gs_stats_shmem_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	gs_stats = ShmemInitStruct("gpusort statistics", sizeof(GsStatsShared), &found);
	if (!found)
	{
		pg_atomic_uint64 *all = (pg_atomic_uint64 *) gs_stats;

		for (Size i = 0; i < N_ATOMICS; i++)
			pg_atomic_init_u64(&all[i], 0);
		gs_stats_reset();
	}
	LWLockRelease(AddinShmemInitLock);
}

void
gs_stats_reset(void)
{
	pg_atomic_uint64 *all = (pg_atomic_uint64 *) gs_stats;

	for (Size i = 0; i < N_ATOMICS; i++)
		pg_atomic_write_u64(&all[i], 0);
	pg_atomic_write_u64(&gs_stats->reset_time, (uint64) GetCurrentTimestamp());
}

void
gs_stats_count(GsCounter counter, uint64 n)
{
	if (gs_stats)
		pg_atomic_fetch_add_u64(&gs_stats->counters[counter], n);
}

uint64
gs_stats_max_rows(int row_class)
{
	uint64		bound = 10000;

	for (int i = 0; i < row_class; i++)
		bound *= 10;
	return row_class < GS_ROW_CLASSES - 1 ? bound : 0;
}

uint64
gs_stats_max_ms(int time_class)
{
	return time_class < GS_TIME_CLASSES - 1 ? (uint64) 1 << time_class : 0;
}

void
gs_stats_sort(GsSortKind kind, uint64 rows, double ms)
{
	int			row_class = 0;
	int			time_class = 0;
	GsTimes    *times;

	if (gs_stats == NULL)
		return;
	while (row_class < GS_ROW_CLASSES - 1 && rows > gs_stats_max_rows(row_class))
		row_class++;
	while (time_class < GS_TIME_CLASSES - 1 && ms > gs_stats_max_ms(time_class))
		time_class++;
	times = &gs_stats->times[kind][row_class][time_class];
	pg_atomic_fetch_add_u64(&times->sorts, 1);
	pg_atomic_fetch_add_u64(&times->ns, (uint64) (ms * 1e6));
	gs_stats_count(GS_COUNT_ROWS, rows);
}

uint64
gs_stats_sorts(GsSortKind kind)
{
	uint64		sorts = 0;

	for (int i = 0; i < GS_ROW_CLASSES; i++)
		for (int j = 0; j < GS_TIME_CLASSES; j++)
			sorts += pg_atomic_read_u64(&gs_stats->times[kind][i][j].sorts);
	return sorts;
}

void
gs_stats_fallback(GsFallback reason)
{
	if (gs_stats)
		pg_atomic_fetch_add_u64(&gs_stats->fallbacks[reason], 1);
}

void
gs_stats_refusal(GsRefusal reason)
{
	if (gs_stats)
		pg_atomic_fetch_add_u64(&gs_stats->refusals[reason], 1);
}

const char *
gs_sort_kind_name(GsSortKind kind)
{
	static const char *const names[GS_KIND_COUNT] = {
		"device sort", "process sort", "index build", "table sort"
	};

	return names[kind];
}

const char *
gs_fallback_name(GsFallback reason)
{
	static const char *const names[GS_FALLBACK_COUNT] = {
		[GS_FALLBACK_SERVICE] = "service not running",
		[GS_FALLBACK_STAGING] = "staging memory exhausted",
		[GS_FALLBACK_MEMORY] = "device memory exhausted",
		[GS_FALLBACK_ROLE] = "role memory exhausted",
		[GS_FALLBACK_FILES] = "temp_file_limit reached",
		[GS_FALLBACK_DESCRIPTORS] = "too many open files",
		[GS_FALLBACK_LOST] = "device lost",
		[GS_FALLBACK_ORDER] = "order not trusted",
		[GS_FALLBACK_KEYS] = "columns are not supported",
		[GS_FALLBACK_NO_KEY] = "rows have no keys",
		[GS_FALLBACK_REFUSED] = "device refused rows"
	};

	return (uint32) reason < GS_FALLBACK_COUNT ? names[reason] : "none";
}

const char *
gs_refusal_name(GsRefusal reason)
{
	static const char *const names[GS_REFUSE_COUNT] = {
		[GS_REFUSE_TYPE] = "type is not supported",
		[GS_REFUSE_COLLATION] = "collation is not supported",
		[GS_REFUSE_OPCLASS] = "operator class is not supported",
		[GS_REFUSE_SERVICE] = "service not running"
	};

	return (uint32) reason < GS_REFUSE_COUNT ? names[reason] : "none";
}
