/*-------------------------------------------------------------------------
 *
 * host_jobs.h
 *	  The jobs of the host device: its state, queues, and what runs them.
 *
 * host_device.c makes jobs, by gs_host_job_begin and gs_host_job_submit, and reserves their memory.
 * Threads of the pool run and end them.  The head of host_device.c explains order, memory and locks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HOST_JOBS_H
#define GS_HOST_JOBS_H

#include <pthread.h>

#include "base/machine.h"
#include "host/host_order.h"

typedef enum GsHostJobKind
{
	GS_HOST_APPEND,
	GS_HOST_PERFORM,
	GS_HOST_FETCH,
	GS_HOST_FETCH_IMAGE,
	GS_HOST_SORT_ARRAYS
} GsHostJobKind;

#define GS_HOST_JOB_KINDS 5

typedef struct GsHostJob
{
	GsTask	task;			/* must be first */
	GsDeviceSort *sort;
	GsJob	   *job;			/* the caller's */
	GsHostJobKind		kind;
	GsStatus	status;			/* GS_PENDING, or the outcome if it is known before the job runs */
	GsError		error;
	bool		has_run;		/* under lock */
	struct GsHostJob *next;		/* in its queue; under lock */

	const char *chunk;			/* append */
	GsHostImage image;			/* append: will be one of the sort's images; sort_arrays: without data */
	uint64_t	reserved;		/* append: memory for its image, the sort's from then on;
								 * sort_arrays: memory while it runs */
	uint64_t	row_bytes;		/* append, sort_arrays */
	uint64_t	key_bytes;
	uint64_t	max_record;		/* append: bytes of the largest record */
	GsPageFormat format;		/* perform */
	GsKeep		keep;			/* perform */
	uint64_t	number;			/* fetch: page; fetch_image: image */
	void	   *dst;			/* fetch, fetch_image; sort_arrays: the chunk */
} GsHostJob;

typedef struct GsHostQueue
{
	GsHostJob    *first;
	GsHostJob    *last;
	uint32_t	n;				/* pending jobs of this kind */
	uint32_t	n_running;
	double		running_since;
	double		ms;				/* time with at least one running job */
} GsHostQueue;

typedef enum GsHostSortState
{
	GS_HOST_FILLING,
	GS_HOST_PERFORMING,
	GS_HOST_PERFORMED
} GsHostSortState;

struct GsDevice
{
	GsDeviceConfig config;
	GsPool *pool;
	GsDeviceInfo info;			/* of the caller's thread only, and without memory_used */
	uint64_t	default_limit;	/* of memory */
	bool		limit_is_default;	/* of the caller's thread only */
	uint64_t	unwatched;		/* bytes reserved since the machine was asked for
								 * its memory; of the caller's thread only */
	pthread_mutex_t lock;
	pthread_cond_t idle;		/* a sort has no pending job any more */
	uint64_t	memory_used;	/* bytes reserved; under lock */
	GsDeviceSort *sorts;		/* of the caller's thread only */
};

struct GsDeviceSort
{
	GsTask	cleanup;		/* must be first */
	GsDevice   *device;
	GsSortSpec	spec;
	GsDeviceSort *next;			/* of the caller's thread only */
	int			cancel;			/* atomic */
	bool		refused;		/* an append was; of the caller's thread only */
	bool		trims;			/* cleanup: memory is scarce, so malloc() shall keep none */
	GsSlab *slabs;			/* images; of the caller's thread only */

	/*
	 * Under lock, and constant while perform is pending or after it.
	 */
	GsHostSortState	state;
	GsHostQueue	queues[GS_HOST_JOB_KINDS];
	uint32_t	n_pending;		/* jobs of all kinds */
	GsHostImage *images;
	uint64_t	n_images;
	uint64_t	max_images;
	uint64_t	n_rows;			/* pending appends included */
	uint64_t	row_bytes;
	uint64_t	key_bytes;
	uint64_t	max_record;		/* bytes of the largest record in a page of
								 * GS_FORMAT_CHUNKS */
	uint64_t	memory_used;	/* the sort's part of the device's */
	GsHostOrder order;			/* once performed */
};

/* Writes a message to *error, unless that is NULL.  Returns the status given. */
extern GsStatus gs_host_fail(GsError *error, GsStatus status, const char *format,...)
			__attribute__((format(printf, 3, 4)));

static inline bool
gs_host_is_cancelled(const GsDeviceSort *sort)
{
	return __atomic_load_n(&sort->cancel, __ATOMIC_RELAXED) != 0;
}

/*
 * Makes a job of a sort, with the status GS_PENDING.  If the caller sets another status, the job ends with
 * that, and does not run.  Without memory for the job, the caller's job ends at once, and NULL is returned.
 */
extern GsHostJob *gs_host_job_begin(GsDeviceSort *sort, GsHostJobKind kind, GsJob *job);

/* Puts a job into its queue and gives it to the pool, which frees it. */
extern void gs_host_job_submit(GsHostJob *job);

#endif							/* GS_HOST_JOBS_H */
