/*-------------------------------------------------------------------------
 *
 * page_relay.c
 *	  Has parallel workers write the pages of a new relation (page_relay.h).
 *
 * Writing a page is two copies, into WAL and kernel, a checksum and a system
 * call, and takes two or three times as long as laying it out.  Here the leader
 * lays out, and workers write, all at once.
 *
 * Rings
 *	  Pages lie in shared memory, some for each worker.  Two queues of page
 *	  numbers lead from the leader to the worker (full) and back (free), each
 *	  with one who puts in and one who takes out, and as long as there are
 *	  pages, so that putting in never waits.  An entry is written before its
 *	  queue's count is, and read after it; no lock is needed.  Who finds a queue
 *	  empty sleeps on a condition variable, and tests again when prepared to.
 *
 *	  The leader takes pages from one ring until a batch of them is full, and
 *	  shows them to its worker all at once, then goes on to the next ring.  So
 *	  a worker has blocks that follow each other, for one WAL record, and is
 *	  not woken for each.  It works on the pages where they lie, and gives them
 *	  back when they are written.
 *
 * Segments
 *	  page_output.h wants all batches to have ended before the first block of a
 *	  new segment of the file is written.  The leader sees to that, once in a
 *	  gigabyte.
 *
 * The end
 *	  With "finish" the workers drain their queues, and the leader syncs when
 *	  they have ended; with "cancel" they stop where they are.  If the leader
 *	  fails, the transaction's abort ends the workers, and waits for them,
 *	  before it removes the file.
 *
 * Tests: tap/index_faults, tap/index_recovery
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlogrecord.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "utils/wait_event.h"

#include "index/index_workers.h"
#include "index/page_output.h"
#include "index/page_relay.h"

/* Pages of one ring; a power of two. */
#define RING_PAGES		64
#define PAGE_ALIGNMENT	4096

/* Pages that are shown to a worker, and written by it, at once. */
#define BATCH_PAGES		XLR_MAX_BLOCK_ID

/* How long a wait lasts before the leader looks after the workers. */
#define WAIT_MS			1000

typedef enum Order
{
	ORDER_WRITE,
	ORDER_FINISH,
	ORDER_CANCEL
} Order;

typedef struct FullPage
{
	uint32		page;
	BlockNumber blkno;
} FullPage;

/* One worker's, in the DSM segment. */
typedef struct Ring
{
	pg_atomic_uint32 n_full;	/* ever put into full */
	FullPage	full[RING_PAGES];
	ConditionVariable full_cv;	/* the worker's */

	pg_atomic_uint32 n_free;	/* ever put into free */
	uint32		free[RING_PAGES];
} Ring;

/* In the DSM segment; the rings' pages follow. */
typedef struct Shared
{
	GsIndexTarget target;		/* first: index_workers.h */
	int			n_rings;		/* that there is room for */
	pg_atomic_uint32 order;		/* an Order */
	ConditionVariable free_cv;	/* the leader's, for all rings */
	Ring		rings[FLEXIBLE_ARRAY_MEMBER];
} Shared;

StaticAssertDecl(offsetof(Shared, target) == 0, "workers find the target there");

/* What the leader knows of a ring. */
typedef struct RingState
{
	uint32		n_put;			/* into full */
	uint32		n_shown;		/* of them, to the worker */
	uint32		n_taken;		/* from free */
} RingState;

struct GsPageRelay
{
	GsIndexWorkers workers;
	Relation	index;
	GsPageOutput *output;
	Shared	   *shared;
	char	   *pages;
	BlockNumber segment_end;	/* blocks from here on need a new segment */
	int			current;		/* ring that pages are taken from */
	int			n_rings;
	RingState	rings[FLEXIBLE_ARRAY_MEMBER];
};

PGDLLEXPORT void gpusort_page_worker(dsm_segment *seg, shm_toc *toc);

static Size
shared_bytes(int n_rings)
{
	return offsetof(Shared, rings) + n_rings * (sizeof(Ring) + (Size) RING_PAGES * BLCKSZ) +
		PAGE_ALIGNMENT;
}

static char *
shared_pages(Shared *shared)
{
	return (char *) TYPEALIGN(PAGE_ALIGNMENT, (char *) &shared->rings[shared->n_rings]);
}

static void
init_shared(Shared *shared, int n_rings)
{
	shared->n_rings = n_rings;
	pg_atomic_init_u32(&shared->order, ORDER_WRITE);
	ConditionVariableInit(&shared->free_cv);
	for (int i = 0; i < n_rings; i++)
	{
		Ring	   *ring = &shared->rings[i];

		pg_atomic_init_u32(&ring->n_full, 0);
		pg_atomic_init_u32(&ring->n_free, RING_PAGES);
		for (uint32 page = 0; page < RING_PAGES; page++)
			ring->free[page] = i * RING_PAGES + page;
		ConditionVariableInit(&ring->full_cv);
	}
}

/* Wait for the workers' end, and leave parallel mode. */
static void
close_relay(GsPageRelay *relay)
{
	gs_index_workers_wait(&relay->workers);
	gs_index_workers_end(&relay->workers);
}

GsPageRelay *
gs_page_relay_begin(Relation heap, Relation index, bool concurrent, int n_workers)
{
	GsIndexWorkers workers = {0};
	Shared	   *shared = gs_index_workers_begin(&workers, "gpusort_page_worker", n_workers,
												shared_bytes(n_workers), heap, index, concurrent);
	GsPageRelay *relay;

	if (shared == NULL)
		return NULL;
	init_shared(shared, n_workers);
	relay = palloc0(offsetof(GsPageRelay, rings) + n_workers * sizeof(RingState));
	relay->workers = workers;
	relay->index = index;
	relay->shared = shared;
	relay->pages = shared_pages(shared);
	relay->segment_end = RELSEG_SIZE;

	/* before the first page is written, for the rules of syncing */
	relay->output = gs_page_output_begin(index);
	relay->n_rings = gs_index_workers_launch(&relay->workers);
	if (relay->n_rings == 0)
	{
		close_relay(relay);
		return NULL;
	}
	return relay;
}

/* Ends with an error where a worker has ended without a word. */
static void
check_workers(GsPageRelay *relay)
{
	pid_t		pid;

	for (int i = 0; i < relay->n_rings; i++)
	{
		if (GetBackgroundWorkerPid(relay->workers.context->worker[i].bgwhandle, &pid) != BGWH_STOPPED)
			continue;
		/* this knows what befell it, if it waits for no other one */
		pg_atomic_write_u32(&relay->shared->order, ORDER_CANCEL);
		for (int j = 0; j < relay->n_rings; j++)
			ConditionVariableSignal(&relay->shared->rings[j].full_cv);
		gs_index_workers_wait(&relay->workers);
		elog(ERROR, "gpusort's page writer has ended early");
	}
}

/* Let the worker of a ring see what was put in. */
static void
show_pages(GsPageRelay *relay, int i)
{
	RingState  *state = &relay->rings[i];

	if (state->n_shown == state->n_put)
		return;
	state->n_shown = state->n_put;
	pg_write_barrier();
	pg_atomic_write_u32(&relay->shared->rings[i].n_full, state->n_shown);
	ConditionVariableSignal(&relay->shared->rings[i].full_cv);
}

static void
show_all_pages(GsPageRelay *relay)
{
	for (int i = 0; i < relay->n_rings; i++)
		show_pages(relay, i);
}

/* Has the ring a page to fill in? */
static bool
has_free_page(GsPageRelay *relay, int i)
{
	return pg_atomic_read_u32(&relay->shared->rings[i].n_free) != relay->rings[i].n_taken;
}

/* Has the worker written all that was put into its ring? */
static bool
is_drained(GsPageRelay *relay, int i)
{
	return pg_atomic_read_u32(&relay->shared->rings[i].n_free) ==
		RING_PAGES + relay->rings[i].n_put;
}

/* Wait until a test holds for any of the rings, or for all; which one, if any. */
static int
wait_for_rings(GsPageRelay *relay, bool (*test)(GsPageRelay *, int), bool all)
{
	bool		sleeping = false;
	int			found = 0;

	for (;;)
	{
		int			n = 0;

		for (int i = 0; i < relay->n_rings; i++)
		{
			int			ring = (relay->current + i) % relay->n_rings;

			if (!test(relay, ring))
				continue;
			if (n++ == 0)
				found = ring;
		}
		if (n >= (all ? relay->n_rings : 1))
			break;
		if (!sleeping)
		{
			show_all_pages(relay);
			ConditionVariablePrepareToSleep(&relay->shared->free_cv);
			sleeping = true;
		}
		else if (ConditionVariableTimedSleep(&relay->shared->free_cv, WAIT_MS,
											 WAIT_EVENT_PARALLEL_FINISH))
			check_workers(relay);
	}
	if (sleeping)
		ConditionVariableCancelSleep();
	pg_read_barrier();
	return found;
}

Page
gs_page_relay_alloc(GsPageRelay *relay)
{
	RingState  *state = &relay->rings[relay->current];
	Ring	   *ring;

	/* on to the next ring with each batch, or where there is a page */
	if (state->n_taken % BATCH_PAGES == 0 || !has_free_page(relay, relay->current))
	{
		relay->current = (relay->current + 1) % relay->n_rings;
		relay->current = wait_for_rings(relay, has_free_page, false);
		state = &relay->rings[relay->current];
	}
	pg_read_barrier();
	ring = &relay->shared->rings[relay->current];
	return (Page) (relay->pages + (Size) ring->free[state->n_taken++ % RING_PAGES] * BLCKSZ);
}

void
gs_page_relay_write(GsPageRelay *relay, BlockNumber blkno, Page page)
{
	uint32		number = ((char *) page - relay->pages) / BLCKSZ;
	int			i = number / RING_PAGES;
	RingState  *state = &relay->rings[i];
	FullPage   *full;

	if (unlikely(blkno >= relay->segment_end))
	{
		BlockNumber begin = blkno - blkno % RELSEG_SIZE;

		wait_for_rings(relay, is_drained, true);
		gs_page_output_reserve(relay->index, begin);
		relay->segment_end = begin + Min(RELSEG_SIZE, MaxBlockNumber - begin);
	}

	full = &relay->shared->rings[i].full[state->n_put++ % RING_PAGES];
	full->page = number;
	full->blkno = blkno;
	if (state->n_put - state->n_shown >= BATCH_PAGES)
		show_pages(relay, i);
}

static void
end_relay(GsPageRelay *relay, Order order)
{
	show_all_pages(relay);
	pg_write_barrier();
	pg_atomic_write_u32(&relay->shared->order, order);
	for (int i = 0; i < relay->n_rings; i++)
		ConditionVariableSignal(&relay->shared->rings[i].full_cv);
	close_relay(relay);
}

void
gs_page_relay_finish(GsPageRelay *relay)
{
	end_relay(relay, ORDER_FINISH);
	gs_page_output_end(relay->output);
}

void
gs_page_relay_cancel(GsPageRelay *relay)
{
	end_relay(relay, ORDER_CANCEL);
}

/*
 * The worker's wait for full pages; how many there are, none where no more will
 * come.
 */
static uint32
wait_for_pages(Shared *shared, Ring *ring, uint32 n_written)
{
	bool		sleeping = false;
	Order		order;
	uint32		n;

	for (;;)
	{
		/* the order first: what was put in before it is seen then */
		order = (Order) pg_atomic_read_u32(&shared->order);
		pg_read_barrier();
		n = pg_atomic_read_u32(&ring->n_full) - n_written;
		if (n > 0 || order != ORDER_WRITE)
			break;
		if (!sleeping)
		{
			ConditionVariablePrepareToSleep(&ring->full_cv);
			sleeping = true;
			continue;
		}
		ConditionVariableSleep(&ring->full_cv, WAIT_EVENT_PARALLEL_FINISH);
	}
	if (sleeping)
		ConditionVariableCancelSleep();
	pg_read_barrier();
	return order == ORDER_CANCEL ? 0 : n;
}

static void
write_pages(Relation index, Shared *shared, Ring *ring, char *memory)
{
	BlockNumber blocks[BATCH_PAGES];
	Page		pages[BATCH_PAGES];
	uint32		n_written = 0;
	uint32		n;

	while ((n = wait_for_pages(shared, ring, n_written)) > 0)
	{
		n = Min(n, BATCH_PAGES);
		for (uint32 i = 0; i < n; i++)
		{
			FullPage   *full = &ring->full[(n_written + i) % RING_PAGES];

			blocks[i] = full->blkno;
			pages[i] = (Page) (memory + (Size) full->page * BLCKSZ);
			ring->free[(n_written + i) % RING_PAGES] = full->page;
		}
		gs_page_output_batch(index, n, blocks, pages);
		n_written += n;
		pg_write_barrier();
		pg_atomic_write_u32(&ring->n_free, RING_PAGES + n_written);
		ConditionVariableSignal(&shared->free_cv);
		CHECK_FOR_INTERRUPTS();
	}
}

/* The main function of the workers. */
void
gpusort_page_worker(dsm_segment *seg, shm_toc *toc)
{
	Relation	heap;
	Relation	index;
	Shared	   *shared = gs_index_worker_begin(toc, &heap, &index);

	write_pages(index, shared, &shared->rings[ParallelWorkerNumber], shared_pages(shared));
	gs_index_worker_end(toc, heap, index);
}
