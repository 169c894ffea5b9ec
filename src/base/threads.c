/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  A pool of worker threads: tasks, and loops done together.
 *
 * An idle thread first helps a loop that some task has started, and otherwise begins the next task.  Loops
 * go first because somebody waits for them.  The thread that started a loop works on it, too.  So a loop
 * ends even if no other thread ever becomes idle.  That thread waits only for parts that other threads are
 * running, so no thread waits for one that waits.
 *
 * One lock protects the lists of tasks and loops, and the loops' counters.  It is taken once for each part,
 * so a part should have thousands of rows.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdlib.h>

#include "base/threads.h"
#include "delay.h"

/* A loop, in the frame of gs_pool_loop(). */
typedef struct Loop
{
	void		(*run) (void *arg, uint32_t part);
	void	   *arg;
	uint32_t	n_parts;
	uint32_t	next_part;		/* the first one that no thread has taken */
	uint32_t	n_done;
	struct Loop *next;
} Loop;

struct GsPool
{
	pthread_mutex_t lock;		/* protects all that follows */
	pthread_cond_t work;		/* there is a task or a part to take */
	pthread_cond_t done;		/* some loop's last part is done */
	GsTask *first_task;
	GsTask *last_task;
	Loop	   *loops;			/* those with parts to take */
	bool		closing;
	int			n_threads;		/* constant once open */
	pthread_t	threads[];
};

/* Takes a part of a loop and runs it.  The lock is held at the call and at the return. */
static void
do_part(GsPool *pool, Loop *loop)
{
	uint32_t	part = loop->next_part++;

	if (loop->next_part == loop->n_parts)
	{
		Loop	  **link = &pool->loops;

		while (*link != loop)
			link = &(*link)->next;
		*link = loop->next;
	}
	pthread_mutex_unlock(&pool->lock);
	GS_DELAY();
	loop->run(loop->arg, part);
	pthread_mutex_lock(&pool->lock);
	if (++loop->n_done == loop->n_parts)
		pthread_cond_broadcast(&pool->done);
}

static void *
worker_main(void *arg)
{
	GsPool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	for (;;)
	{
		GsTask *task = pool->first_task;

		if (pool->loops != NULL)
			do_part(pool, pool->loops);
		else if (task != NULL)
		{
			pool->first_task = task->next;
			if (pool->first_task == NULL)
				pool->last_task = NULL;
			pthread_mutex_unlock(&pool->lock);
			GS_DELAY();
			task->run(task);
			pthread_mutex_lock(&pool->lock);
		}
		else if (pool->closing)
			break;
		else
			pthread_cond_wait(&pool->work, &pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

bool
gs_thread_start(pthread_t *thread, void *(*run) (void *arg), void *arg)
{
	sigset_t	all;
	sigset_t	before;
	bool		started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(thread, NULL, run, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

GsPool *
gs_pool_open(int threads)
{
	GsPool *pool = calloc(1, sizeof(GsPool) + (size_t) threads * sizeof(pthread_t));

	if (pool == NULL)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	while (pool->n_threads < threads &&
		   gs_thread_start(&pool->threads[pool->n_threads], worker_main, pool))
		pool->n_threads++;
	if (pool->n_threads == 0)
	{
		gs_pool_close(pool);
		return NULL;
	}
	return pool;
}

int
gs_pool_threads(const GsPool *pool)
{
	return pool->n_threads;
}

void
gs_pool_submit(GsPool *pool, GsTask *task)
{
	GS_DELAY();
	task->next = NULL;
	pthread_mutex_lock(&pool->lock);
	if (pool->last_task != NULL)
		pool->last_task->next = task;
	else
		pool->first_task = task;
	pool->last_task = task;
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void
gs_pool_loop(GsPool *pool, uint32_t n_parts, void (*run) (void *arg, uint32_t part),
				  void *arg)
{
	Loop		loop = {run, arg, n_parts, 0, 0, NULL};

	if (n_parts == 1 || pool->n_threads == 1)
	{
		for (uint32_t part = 0; part < n_parts; part++)
			run(arg, part);
		return;
	}
	if (n_parts == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	loop.next = pool->loops;
	pool->loops = &loop;
	pthread_cond_broadcast(&pool->work);
	while (loop.next_part < n_parts)
		do_part(pool, &loop);
	while (loop.n_done < n_parts)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

void
gs_pool_close(GsPool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
