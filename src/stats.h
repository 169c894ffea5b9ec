/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  Counters of what gpusort did, and why it did not.
 *
 * Cumulative since the server's start or the last reset; atomics in shared
 * memory, so counting takes no lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STATS_H
#define GS_STATS_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "portability/instr_time.h"

typedef enum GsCounter
{
	GS_COUNT_ROWS,				/* rows sorted */
	GS_COUNT_BYTES,				/* bytes of rows and keys sent to the device */
	GS_COUNT_SPILLED_SORTS,		/* sorts that wrote temporary files */
	GS_COUNT_TEMP_BYTES,		/* bytes of these files */
	GS_COUNT_LIMITED_SORTS,		/* sorts that gpusort.role_memory held up, or had written out */
	GS_COUNT_ARRAYS,			/* arrays sorted by GpuArraySort */
	GS_COUNT_DEVICE_ARRAYS,		/* of these: on the device */
	GS_COUNT_STAGING_WAIT_US,	/* time that sessions waited for staging memory */
	GS_COUNT_SORT_WAIT_US,		/* time that they waited for the device to sort */
	GS_COUNT_FETCH_WAIT_US,		/* time that they waited for sorted rows */
	GS_COUNT_COUNTERS
} GsCounter;

/* Sorts that gpusort completed: each is of one kind. */
typedef enum GsSortKind
{
	GS_KIND_DEVICE,				/* of a query's rows, on the device */
	GS_KIND_PROCESS,			/* of few rows, in their own process */
	GS_KIND_INDEX,				/* index build */
	GS_KIND_TABLE,				/* CLUSTER, REPACK */
	GS_KIND_COUNT
} GsSortKind;

/* Why a sort that gpusort had begun ended in PostgreSQL's tuplesort. */
typedef enum GsFallback
{
	GS_FALLBACK_NONE = -1,
	GS_FALLBACK_SERVICE,		/* no service runs */
	GS_FALLBACK_STAGING,		/* no staging memory within the time limit */
	GS_FALLBACK_MEMORY,			/* no device memory */
	GS_FALLBACK_ROLE,			/* none of what gpusort.role_memory allows */
	GS_FALLBACK_FILES,			/* temp_file_limit */
	GS_FALLBACK_DESCRIPTORS,	/* none for a temporary file */
	GS_FALLBACK_LOST,			/* service or device lost on the way */
	GS_FALLBACK_ORDER,			/* rows under a libc collation were out of order */
	GS_FALLBACK_KEYS,			/* no keys for the columns, after all */
	GS_FALLBACK_NO_KEY,			/* none for the values of rows */
	GS_FALLBACK_REFUSED,		/* rows that the device cannot read, or a defect in it */
	GS_FALLBACK_COUNT
} GsFallback;

/*
 * Why a sort or an index build was left to PostgreSQL from the outset.  The first
 * three say why its columns cannot be written as keys (key/key.h).
 */
typedef enum GsRefusal
{
	GS_REFUSE_NONE = -1,
	GS_REFUSE_TYPE,				/* no encoding for the column's type */
	GS_REFUSE_COLLATION,		/* no keys in its order */
	GS_REFUSE_OPCLASS,			/* not the type's own btree ordering */
	GS_REFUSE_SERVICE,			/* no service runs */
	GS_REFUSE_COUNT
} GsRefusal;

/*
 * Sorts of a kind are counted by classes of rows, up to 10,000, 100,000 and so on, and by classes of
 * milliseconds, up to 1, 2, 4 and so on.  The last class has no bound.
 */
#define GS_ROW_CLASSES	6
#define GS_TIME_CLASSES	24

typedef struct GsTimes
{
	pg_atomic_uint64 sorts;
	pg_atomic_uint64 ns;		/* total time; small sorts take less than a microsecond */
} GsTimes;

/* Nothing but atomics. */
typedef struct GsStatsShared
{
	pg_atomic_uint64 counters[GS_COUNT_COUNTERS];
	pg_atomic_uint64 fallbacks[GS_FALLBACK_COUNT];
	pg_atomic_uint64 refusals[GS_REFUSE_COUNT];
	GsTimes		times[GS_KIND_COUNT][GS_ROW_CLASSES][GS_TIME_CLASSES];
	pg_atomic_uint64 reset_time;	/* a TimestampTz */
} GsStatsShared;

/* NULL: gpusort is not preloaded; the counting functions accept that. */
extern GsStatsShared *gs_stats;

extern void gs_stats_shmem_request(void);
extern void gs_stats_shmem_startup(void);
extern void gs_stats_reset(void);

extern void gs_stats_count(GsCounter counter, uint64 n);

/*
 * Counts a sort, with its rows and the time until its first row could be returned, or everything was
 * written.
 */
extern void gs_stats_sort(GsSortKind kind, uint64 rows, double ms);
extern void gs_stats_fallback(GsFallback reason);
extern void gs_stats_refusal(GsRefusal reason);

/* Returns the number of sorts of a kind. */
extern uint64 gs_stats_sorts(GsSortKind kind);

/* The bounds of classes, inclusive; 0: none. */
extern uint64 gs_stats_max_rows(int row_class);
extern uint64 gs_stats_max_ms(int time_class);

/* Short phrases, "type is not supported"; constant, and stable. */
extern const char *gs_sort_kind_name(GsSortKind kind);
extern const char *gs_fallback_name(GsFallback reason);
extern const char *gs_refusal_name(GsRefusal reason);

/* Returns the milliseconds since a moment, and sets it to now. */
static inline double
gs_stats_lap_ms(instr_time *since)
{
	instr_time	now;
	instr_time	elapsed;

	INSTR_TIME_SET_CURRENT(now);
	elapsed = now;
	INSTR_TIME_SUBTRACT(elapsed, *since);
	*since = now;
	return INSTR_TIME_GET_MILLISEC(elapsed);
}

#endif							/* GS_STATS_H */
