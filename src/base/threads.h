/*-------------------------------------------------------------------------
 *
 * threads.h
 *	  A pool of worker threads: tasks, and loops done together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_THREADS_H
#define GS_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct GsPool GsPool;

/* Work that runs once.  The memory is the caller's until run is called. */
typedef struct GsTask
{
	void		(*run) (struct GsTask *task);
	struct GsTask *next;
} GsTask;

/* Starts a thread with all signals blocked.  False: the system grants none. */
extern bool gs_thread_start(pthread_t *thread, void *(*run) (void *arg), void *arg);

/*
 * Starts that many threads with all signals blocked, or as many as the system grants.  NULL: it grants
 * none.
 */
extern GsPool *gs_pool_open(int threads);
extern int	gs_pool_threads(const GsPool *pool);

/* Runs a task on any thread.  Tasks start in the order in which they were submitted. */
extern void gs_pool_submit(GsPool *pool, GsTask *task);

/*
 * Calls run(arg, part) for all parts in [0, n_parts), in any order, on idle threads and on the calling
 * thread, which must be one of the pool's.  Returns after all calls have returned.
 */
extern void gs_pool_loop(GsPool *pool, uint32_t n_parts,
							  void (*run) (void *arg, uint32_t part), void *arg);

/* Runs all submitted tasks, then ends the threads. */
extern void gs_pool_close(GsPool *pool);

#endif							/* GS_THREADS_H */
