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
		for (int i = 0; i < GS_COUNT_COUNTERS; i++)
			pg_atomic_init_u64(&gs_stats->counters[i], 0);
		for (int i = 0; i < GS_FALLBACK_COUNT; i++)
			pg_atomic_init_u64(&gs_stats->fallbacks[i], 0);
		for (int i = 0; i < GS_REFUSE_COUNT; i++)
			pg_atomic_init_u64(&gs_stats->refusals[i], 0);
		pg_atomic_init_u64(&gs_stats->reset_time, (uint64) GetCurrentTimestamp());
	}
	LWLockRelease(AddinShmemInitLock);
}

void
gs_stats_reset(void)
{
	for (int i = 0; i < GS_COUNT_COUNTERS; i++)
		pg_atomic_write_u64(&gs_stats->counters[i], 0);
	for (int i = 0; i < GS_FALLBACK_COUNT; i++)
		pg_atomic_write_u64(&gs_stats->fallbacks[i], 0);
	for (int i = 0; i < GS_REFUSE_COUNT; i++)
		pg_atomic_write_u64(&gs_stats->refusals[i], 0);
	pg_atomic_write_u64(&gs_stats->reset_time, (uint64) GetCurrentTimestamp());
}

void
gs_stats_count(GsCounter counter, uint64 n)
{
	if (gs_stats)
		pg_atomic_fetch_add_u64(&gs_stats->counters[counter], n);
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
		case GS_FALLBACK_LOST:
			return "device lost";
		case GS_FALLBACK_ORDER:
			return "order not proven";
		case GS_FALLBACK_KEYS:
			return "columns are not supported";
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
