/*-------------------------------------------------------------------------
 *
 * page_output.c
 *	  Writing the pages of a new relation past shared buffers (page_output.h).
 *
 * PostgreSQL 17 has storage/bulk_write.h for this, and there we use it.  The
 * versions before it do it within each access method; Batches to Durability are
 * the same facility for them.
 *
 * Batches
 *	  Pages are collected, in order of their blocks, until there are as many as
 *	  a WAL record can name.  Then they are logged by that one record and
 *	  written.  Against a record a page this saves four of five calls into
 *	  the WAL's insertion machinery, and a batch of 256 kB is still in the
 *	  processor's cache when it is copied into the WAL and into the kernel.
 *	  Pages are used again for the next batch.
 *
 * Gaps
 *	  A block beyond the end of the file by more than one is preceded by zero
 *	  pages, which are written over later.  File systems would read the same
 *	  from a hole, but then might scatter the file, and a full disk should
 *	  show here rather than later.  Zero pages are not logged: the later page
 *	  is.
 *
 * Durability
 *	  Nobody but us knows of these pages, as they are in no buffer, so a
 *	  checkpoint that runs meanwhile does not write them, yet recovery begins
 *	  at that checkpoint and does not replay what was logged before it.  So
 *	  logged relations are synced before the transaction can commit.  Where
 *	  WAL is skipped (wal_level = minimal), commit syncs new relations by itself.
 *	  Unlogged and temporary ones are not synced, as PostgreSQL 15 and 16 do
 *	  not either.
 *
 * Several processes
 *	  Who writes a gap must know that nobody else writes into it, so where
 *	  several processes write, gaps are left to the file system until all is
 *	  written.  For the same reason no block of a new segment (1 GB) of the
 *	  file may be written while others write: storage/md.c lengthens a short
 *	  segment before the next one by writing its last block.
 *
 * Workers
 *	  Writing a page is two copies, into WAL and kernel, a checksum and a system
 *	  call, and takes two or three times as long as laying it out.  Here the leader
 *	  lays out, and workers write, all at once.
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
 *	  All batches must have ended before the first block of a new segment of the file is written.  The leader
 *	  sees to that, once in a gigabyte.
 *
 * The end
 *	  In the end the workers drain their queues, and the leader syncs when
 *	  they have ended; if the build is cancelled they stop where they are.  If the leader
 *	  fails, the transaction's abort ends the workers, and waits for them,
 *	  before it removes the file.
 *
 * Tests: regress/index_pages, tap/index_recovery, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/smgr.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "index/index_workers.h"
#include "index/page_output.h"

/* Direct I/O wants this alignment; the kernel copies aligned pages faster. */
#define PAGE_ALIGNMENT	4096

/* Pages that are written at once. */
#define BATCH_PAGES		XLR_MAX_BLOCK_ID

/* Log the pages, and get them ready to be written. */
static void
log_pages(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	if (RelationNeedsWAL(rel) && n > 0)
		log_newpages(gs_compat_relation_locator(rel), MAIN_FORKNUM, n, blocks, pages, true);
	for (int i = 0; i < n; i++)
		gs_compat_page_set_checksum(pages[i], blocks[i]);
}

/*
 * Pages that this process writes
 */

#ifdef GS_COMPAT_BULK_WRITE

typedef BulkWriteState Direct;

#define direct_begin(rel)	smgr_bulk_start_rel(rel, MAIN_FORKNUM)
#define direct_alloc(direct)	((Page) smgr_bulk_get_buf(direct))
#define direct_write(direct, blkno, page)	smgr_bulk_write(direct, blkno, (BulkWriteBuffer) (page), true)
#define direct_end(direct)	smgr_bulk_finish(direct)

#else

/* A page that is not in use. */
typedef struct FreePage
{
	struct FreePage *next;
} FreePage;

typedef struct Direct
{
	Relation	rel;
	BlockNumber file_blocks;	/* the file's size */
	MemoryContext context;
	FreePage   *free;
	Page		zero_page;		/* NULL until there is a gap */

	/* the batch, by block number */
	int			n_pages;
	BlockNumber blocks[BATCH_PAGES];
	Page		pages[BATCH_PAGES];
} Direct;

static Direct *
direct_begin(Relation rel)
{
	Direct	   *direct = palloc(sizeof(Direct));

	direct->rel = rel;
	direct->file_blocks = smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM);
	direct->context = CurrentMemoryContext;
	direct->free = NULL;
	direct->zero_page = NULL;
	direct->n_pages = 0;
	return direct;
}

static Page
direct_alloc(Direct *direct)
{
	FreePage   *page = direct->free;

	if (page == NULL)
		return (Page) TYPEALIGN(PAGE_ALIGNMENT,
								MemoryContextAlloc(direct->context, BLCKSZ + PAGE_ALIGNMENT));
	direct->free = page->next;
	return (Page) page;
}

static void
write_block(Direct *direct, BlockNumber blkno, Page page)
{
	/* Interrupts may close the file at any time: ask for it anew each time */
	SMgrRelation smgr = RelationGetSmgr(direct->rel);

	if (blkno < direct->file_blocks)
		smgrwrite(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
	else
	{
		Assert(blkno == direct->file_blocks);
		smgrextend(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
		direct->file_blocks++;
	}
}

static void
write_gap(Direct *direct, BlockNumber end)
{
	if (direct->zero_page == NULL)
	{
		direct->zero_page = direct_alloc(direct);
		memset(direct->zero_page, 0, BLCKSZ);
	}
	/* no checksum: pages of zeros have none */
	while (direct->file_blocks < end)
		write_block(direct, direct->file_blocks, direct->zero_page);
}

static void
write_batch(Direct *direct)
{
	log_pages(direct->rel, direct->n_pages, direct->blocks, direct->pages);
	for (int i = 0; i < direct->n_pages; i++)
	{
		Page		page = direct->pages[i];

		if (direct->file_blocks < direct->blocks[i])
			write_gap(direct, direct->blocks[i]);
		write_block(direct, direct->blocks[i], page);

		((FreePage *) page)->next = direct->free;
		direct->free = (FreePage *) page;
	}
	direct->n_pages = 0;
}

static void
direct_write(Direct *direct, BlockNumber blkno, Page page)
{
	int			i = direct->n_pages;

	/* nearly all come in order */
	while (i > 0 && direct->blocks[i - 1] > blkno)
	{
		direct->blocks[i] = direct->blocks[i - 1];
		direct->pages[i] = direct->pages[i - 1];
		i--;
	}
	direct->blocks[i] = blkno;
	direct->pages[i] = page;
	if (++direct->n_pages == BATCH_PAGES)
		write_batch(direct);
}

static void
direct_end(Direct *direct)
{
	write_batch(direct);
	if (RelationNeedsWAL(direct->rel))
		smgrimmedsync(RelationGetSmgr(direct->rel), MAIN_FORKNUM);
}

#endif							/* GS_COMPAT_BULK_WRITE */

/*
 * Pages that workers write
 */

/* Pages of one ring; a power of two. */
#define RING_PAGES		64

/* How long a wait lasts before the leader looks after the workers. */
#define WAIT_MS			1000

/* Write pages, at most BATCH_PAGES.  Changes their LSNs and checksums. */
static void
write_beside_others(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	log_pages(rel, n, blocks, pages);
	/* It may also write over what is there, or leave a gap */
	for (int i = 0; i < n; i++)
		smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, blocks[i], (char *) pages[i], true);
}

/* The file has so many blocks, or more, when this returns. */
static void
reserve(Relation rel, BlockNumber n_blocks)
{
	char		memory[BLCKSZ + PAGE_ALIGNMENT];
	char	   *zero_page = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);

	if (smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM) >= n_blocks)
		return;
	memset(zero_page, 0, BLCKSZ);
	smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, n_blocks - 1, zero_page, true);
}

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

/* The leader's knowledge of a ring. */
typedef struct RingState
{
	uint32		n_put;			/* into full */
	uint32		n_shown;		/* of them, to the worker */
	uint32		n_taken;		/* from free */
} RingState;

typedef struct Relay
{
	GsIndexWorkers workers;
	Relation	index;
	Shared	   *shared;
	char	   *pages;
	BlockNumber segment_end;	/* blocks from here on need a new segment */
	int			current;		/* ring that pages are taken from */
	int			n_rings;
	RingState	rings[FLEXIBLE_ARRAY_MEMBER];
} Relay;

struct GsPageOutput
{
	Direct	   *direct;
	Relay	   *relay;			/* NULL: this process writes */
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
close_relay(Relay *relay)
{
	gs_index_workers_wait(&relay->workers);
	gs_index_workers_end(&relay->workers);
}

/* NULL: there are no workers to be had. */
static Relay *
begin_relay(Relation heap, Relation index, bool concurrent, int n_workers)
{
	GsIndexWorkers workers = {0};
	Shared	   *shared = gs_index_workers_begin(&workers, "gpusort_page_worker", n_workers,
												shared_bytes(n_workers), heap, index, concurrent);
	Relay	   *relay;

	if (shared == NULL)
		return NULL;
	init_shared(shared, n_workers);
	relay = palloc0(offsetof(Relay, rings) + n_workers * sizeof(RingState));
	relay->workers = workers;
	relay->index = index;
	relay->shared = shared;
	relay->pages = shared_pages(shared);
	relay->segment_end = RELSEG_SIZE;
	relay->n_rings = gs_index_workers_launch(&relay->workers);
	if (relay->n_rings > 0)
		return relay;
	close_relay(relay);
	return NULL;
}

/* Ends with an error where a worker has ended without a word. */
static void
check_workers(Relay *relay)
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
show_pages(Relay *relay, int i)
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
show_all_pages(Relay *relay)
{
	for (int i = 0; i < relay->n_rings; i++)
		show_pages(relay, i);
}

/* Has the ring a page to fill in? */
static bool
has_free_page(Relay *relay, int i)
{
	return pg_atomic_read_u32(&relay->shared->rings[i].n_free) != relay->rings[i].n_taken;
}

/* Has the worker written all that was put into its ring? */
static bool
is_drained(Relay *relay, int i)
{
	return pg_atomic_read_u32(&relay->shared->rings[i].n_free) ==
		RING_PAGES + relay->rings[i].n_put;
}

/* Wait until a test holds for any of the rings, or for all; which one, if any. */
static int
wait_for_rings(Relay *relay, bool (*test)(Relay *, int), bool all)
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

static Page
relay_alloc(Relay *relay)
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

static void
relay_write(Relay *relay, BlockNumber blkno, Page page)
{
	uint32		number = ((char *) page - relay->pages) / BLCKSZ;
	int			i = number / RING_PAGES;
	RingState  *state = &relay->rings[i];
	FullPage   *full;

	if (unlikely(blkno >= relay->segment_end))
	{
		BlockNumber begin = blkno - blkno % RELSEG_SIZE;

		wait_for_rings(relay, is_drained, true);
		reserve(relay->index, begin);
		relay->segment_end = begin + Min(RELSEG_SIZE, MaxBlockNumber - begin);
	}

	full = &relay->shared->rings[i].full[state->n_put++ % RING_PAGES];
	full->page = number;
	full->blkno = blkno;
	if (state->n_put - state->n_shown >= BATCH_PAGES)
		show_pages(relay, i);
}

static void
end_relay(Relay *relay, Order order)
{
	show_all_pages(relay);
	pg_write_barrier();
	pg_atomic_write_u32(&relay->shared->order, order);
	for (int i = 0; i < relay->n_rings; i++)
		ConditionVariableSignal(&relay->shared->rings[i].full_cv);
	close_relay(relay);
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
		write_beside_others(index, n, blocks, pages);
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

/*
 * Either way
 */

GsPageOutput *
gs_page_output_begin(Relation heap, Relation index, bool concurrent, int n_workers)
{
	GsPageOutput *output = palloc(sizeof(GsPageOutput));

	/* before the first page is written, for the rules of syncing */
	output->direct = direct_begin(index);
	output->relay = n_workers > 0 ? begin_relay(heap, index, concurrent, n_workers) : NULL;
	return output;
}

Page
gs_page_output_alloc(GsPageOutput *output)
{
	return output->relay ? relay_alloc(output->relay) : direct_alloc(output->direct);
}

void
gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page)
{
	if (output->relay)
		relay_write(output->relay, blkno, page);
	else
		direct_write(output->direct, blkno, page);
}

void
gs_page_output_end(GsPageOutput *output)
{
	if (output->relay)
		end_relay(output->relay, ORDER_FINISH);
	direct_end(output->direct);
}

void
gs_page_output_cancel(GsPageOutput *output)
{
	if (output->relay)
		end_relay(output->relay, ORDER_CANCEL);
}
