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
	switch (reason)
	{
		case GS_FALLBACK_SERVICE:
			return "service not running";
		case GS_FALLBACK_STAGING:
			return "staging memory exhausted";
		case GS_FALLBACK_MEMORY:
			return "device memory exhausted";
		case GS_FALLBACK_ROLE:
			return "role memory exhausted";
		case GS_FALLBACK_FILES:
			return "temp_file_limit reached";
		case GS_FALLBACK_DESCRIPTORS:
			return "too many open files";
		case GS_FALLBACK_LOST:
			return "device lost";
		case GS_FALLBACK_ORDER:
			return "order not trusted";
		case GS_FALLBACK_KEYS:
			return "columns are not supported";
		case GS_FALLBACK_NO_KEY:
			return "rows have no keys";
		case GS_FALLBACK_REFUSED:
			return "device refused rows";
		case GS_FALLBACK_NONE:
		case GS_FALLBACK_COUNT:
			break;
	}
	return "none";
}

const char *
gs_refusal_name(GsRefusal reason)
{
	switch (reason)
	{
		case GS_REFUSE_TYPE:
			return "type is not supported";
		case GS_REFUSE_COLLATION:
			return "collation is not supported";
		case GS_REFUSE_OPCLASS:
			return "operator class is not supported";
		case GS_REFUSE_SERVICE:
			return "service not running";
		case GS_REFUSE_NONE:
		case GS_REFUSE_COUNT:
			break;
	}
	return "none";
}
