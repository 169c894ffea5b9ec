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

typedef struct GsHostPool GsHostPool;

/* Work that runs once.  The memory is the caller's until run is called. */
typedef struct GsHostTask
{
	void		(*run) (struct GsHostTask *task);
	struct GsHostTask *next;
} GsHostTask;

/* Starts a thread with all signals blocked.  False: the system grants none. */
extern bool gs_host_thread_start(pthread_t *thread, void *(*run) (void *arg), void *arg);

/*
 * Starts that many threads with all signals blocked, or as many as the system grants.  NULL: it grants
 * none.
 */
extern GsHostPool *gs_host_pool_open(int threads);
extern int	gs_host_pool_threads(const GsHostPool *pool);

/* Runs a task on any thread.  Tasks start in the order in which they were submitted. */
extern void gs_host_pool_submit(GsHostPool *pool, GsHostTask *task);

/*
 * Calls run(arg, part) for all parts in [0, n_parts), in any order, on idle threads and on the calling
 * thread, which must be one of the pool's.  Returns after all calls have returned.
 */
extern void gs_host_pool_loop(GsHostPool *pool, uint32_t n_parts,
							  void (*run) (void *arg, uint32_t part), void *arg);

/* Runs all submitted tasks, then ends the threads. */
extern void gs_host_pool_close(GsHostPool *pool);

#endif							/* GS_THREADS_H */
