/*-------------------------------------------------------------------------
 *
 * page_output.c
 *	  Writing the pages of a new relation past shared buffers (page_output.h).
 *
 * One process writes by PostgreSQL's storage/bulk_write.h, before PostgreSQL 17 by page_output_16.c.
 *
 * Workers
 *	  Writing a page means two copies, into WAL and kernel, a checksum and a system
 *	  call.  That takes two or three times as long as laying the page out.  So the leader
 *	  lays pages out while workers write.
 *
 *	  Pages lie in shared memory.  The leader collects finished pages until there are as many as
 *	  a WAL record can name.  It sends such a batch, as block and page numbers, through a queue to the
 *	  worker that has the fewest batches.  The worker logs the batch by one record, writes the pages, and
 *	  sends their numbers back through another queue.  If no page is free, the leader waits for a batch.
 *
 * Segments
 *	  Before storage/md.c begins a new segment (1 GB) of the file, it extends the last segment by writing its
 *	  last block.  No worker may write meanwhile.  So the leader waits for all batches before it sends a
 *	  block of a new segment.
 *
 * The end
 *	  When the leader detaches from their queues, workers finish their batches and end.  Then the
 *	  leader syncs.  If the leader fails, the transaction's abort ends the workers, and waits for them,
 *	  before it removes the file.  If a worker fails, its queues are detached, which the leader notices.
 *
 * Tests: regress/index_pages, tap/index_recovery, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "storage/smgr.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#include "index/index_workers.h"
#include "index/page_direct.h"
#include "index/page_output.h"

/*
 * Pages that workers write
 */

/* Batches of pages for each worker: one that it writes, one that waits, and one that the leader fills. */
#define WORKER_BATCHES	3

/* A queue for more batches than one worker can have at once. */
#define QUEUE_BYTES		4096

/* Extend the file to this many blocks, if it has fewer. */
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

typedef struct FullPage
{
	uint32		page;
	BlockNumber blkno;
} FullPage;

/* In the DSM segment; the queues and pages follow. */
typedef struct Shared
{
	GsIndexTarget target;		/* first: index_workers.h */
	int			n_workers;		/* workers that the segment has room for */
} Shared;

StaticAssertDecl(offsetof(Shared, target) == 0, "workers find the target there");

/* A worker's queues: FullPages to it, numbers of pages back. */
typedef struct Queues
{
	shm_mq_handle *full;
	shm_mq_handle *free;
	int			n_batches;		/* batches that the worker has; for the leader alone */
} Queues;

typedef struct Relay
{
	GsIndexWorkers workers;
	Relation	index;
	char	   *pages;
	BlockNumber segment_end;	/* blocks from here on need a new segment */
	int			n_workers;
	Queues	   *queues;			/* by worker */
	int			current;		/* the worker that got the last batch */
	int			n_batches;		/* batches that all workers have */
	int			n_full;
	FullPage	full[BATCH_PAGES];	/* the next batch */
	int			n_free;
	uint32		free[FLEXIBLE_ARRAY_MEMBER];	/* pages, by their numbers */
} Relay;

struct GsPageOutput
{
	GsDirect   *direct;
	Relay	   *relay;			/* NULL: this process writes */
};

PGDLLEXPORT void gpusort_page_worker(dsm_segment *seg, shm_toc *toc);

static int
shared_page_count(int n_workers)
{
	return n_workers * WORKER_BATCHES * BATCH_PAGES;
}

static Size
shared_bytes(int n_workers)
{
	return MAXALIGN(sizeof(Shared)) + (Size) n_workers * 2 * QUEUE_BYTES +
		(Size) shared_page_count(n_workers) * BLCKSZ + PAGE_ALIGNMENT;
}

/* A worker's queue of full pages (0) or free ones (1). */
static shm_mq *
shared_queue(Shared *shared, int worker, int which)
{
	char	   *queues = (char *) shared + MAXALIGN(sizeof(Shared));

	return (shm_mq *) (queues + (Size) (2 * worker + which) * QUEUE_BYTES);
}

static char *
shared_pages(Shared *shared)
{
	return (char *) TYPEALIGN(PAGE_ALIGNMENT, (char *) shared_queue(shared, shared->n_workers, 0));
}

static void
init_shared(Shared *shared, int n_workers)
{
	shared->n_workers = n_workers;
	for (int i = 0; i < n_workers; i++)
	{
		shm_mq_set_sender(shm_mq_create(shared_queue(shared, i, 0), QUEUE_BYTES), MyProc);
		shm_mq_set_receiver(shm_mq_create(shared_queue(shared, i, 1), QUEUE_BYTES), MyProc);
	}
}

/* Wait for the workers' end, and leave parallel mode. */
static void
close_relay(Relay *relay)
{
	gs_index_workers_wait(&relay->workers);
	gs_index_workers_end(&relay->workers);
}

/* NULL: no worker could be started. */
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
	relay = palloc0(offsetof(Relay, free) + shared_page_count(n_workers) * sizeof(uint32));
	relay->workers = workers;
	relay->index = index;
	relay->pages = shared_pages(shared);
	relay->segment_end = RELSEG_SIZE;
	relay->n_workers = gs_index_workers_launch(&relay->workers);
	if (relay->n_workers == 0)
	{
		close_relay(relay);
		return NULL;
	}
	relay->n_free = shared_page_count(relay->n_workers);
	for (int i = 0; i < relay->n_free; i++)
		relay->free[i] = i;
	relay->queues = palloc0(relay->n_workers * sizeof(Queues));
	for (int i = 0; i < relay->n_workers; i++)
	{
		BackgroundWorkerHandle *handle = relay->workers.context->worker[i].bgwhandle;

		relay->queues[i].full = shm_mq_attach(shared_queue(shared, i, 0), workers.context->seg, handle);
		relay->queues[i].free = shm_mq_attach(shared_queue(shared, i, 1), workers.context->seg, handle);
	}
	return relay;
}

static void
detach_all(Relay *relay)
{
	for (int i = 0; i < relay->n_workers; i++)
		shm_mq_detach(relay->queues[i].full);
}

/* A worker has detached from its queues too early: raise its error, if it left one. */
static void
report_lost_worker(Relay *relay)
{
	detach_all(relay);
	gs_index_workers_wait(&relay->workers);
	elog(ERROR, "gpusort's page writer has ended early");
}

/* Give the next batch to a worker. */
static void
send_batch(Relay *relay)
{
	Queues	   *queues = &relay->queues[relay->current];

	if (relay->n_full == 0)
		return;
	for (int i = 1; i <= relay->n_workers; i++)
	{
		int			worker = (relay->current + i) % relay->n_workers;

		if (i == 1 || relay->queues[worker].n_batches < queues->n_batches)
			queues = &relay->queues[worker];
	}
	if (shm_mq_send(queues->full, relay->n_full * sizeof(FullPage), relay->full, false, true) !=
		SHM_MQ_SUCCESS)
		report_lost_worker(relay);
	relay->current = queues - relay->queues;
	queues->n_batches++;
	relay->n_batches++;
	relay->n_full = 0;
}

/* Take a batch back that a worker has written; false: there is none. */
static bool
try_take_batch(Relay *relay, Queues *queues)
{
	void	   *data;
	Size		bytes;
	shm_mq_result result = shm_mq_receive(queues->free, &bytes, &data, true);

	if (result == SHM_MQ_DETACHED)
		report_lost_worker(relay);
	if (result != SHM_MQ_SUCCESS)
		return false;
	memcpy(&relay->free[relay->n_free], data, bytes);
	relay->n_free += bytes / sizeof(uint32);
	queues->n_batches--;
	relay->n_batches--;
	return true;
}

/* Wait until any batch was written. */
static void
take_batch(Relay *relay)
{
	for (;;)
	{
		for (int i = 0; i < relay->n_workers; i++)
			if (try_take_batch(relay, &relay->queues[i]))
				return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, WAIT_EVENT_PARALLEL_FINISH);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Wait until all pages are written. */
static void
drain(Relay *relay)
{
	send_batch(relay);
	while (relay->n_batches > 0)
		take_batch(relay);
}

static Page
relay_alloc(Relay *relay)
{
	if (relay->n_free == 0)
		take_batch(relay);
	return (Page) (relay->pages + (Size) relay->free[--relay->n_free] * BLCKSZ);
}

static void
relay_write(Relay *relay, BlockNumber blkno, Page page)
{
	FullPage   *full;

	if (unlikely(blkno >= relay->segment_end))
	{
		BlockNumber begin = blkno - blkno % RELSEG_SIZE;

		drain(relay);
		reserve(relay->index, begin);
		relay->segment_end = begin + Min(RELSEG_SIZE, MaxBlockNumber - begin);
	}

	full = &relay->full[relay->n_full++];
	full->page = ((char *) page - relay->pages) / BLCKSZ;
	full->blkno = blkno;
	if (relay->n_full == BATCH_PAGES)
		send_batch(relay);
}

static void
end_relay(Relay *relay)
{
	detach_all(relay);
	close_relay(relay);
}

static void
write_batches(Relation index, char *memory, Queues *queues)
{
	Size		bytes;
	void	   *data;

	while (shm_mq_receive(queues->full, &bytes, &data, false) == SHM_MQ_SUCCESS)
	{
		const FullPage *full = data;
		int			n = bytes / sizeof(FullPage);
		BlockNumber blocks[BATCH_PAGES];
		Page		pages[BATCH_PAGES];
		uint32		numbers[BATCH_PAGES];

		for (int i = 0; i < n; i++)
		{
			blocks[i] = full[i].blkno;
			numbers[i] = full[i].page;
			pages[i] = (Page) (memory + (Size) numbers[i] * BLCKSZ);
		}
		gs_write_pages(index, n, blocks, pages);
		if (shm_mq_send(queues->free, n * sizeof(uint32), numbers, false, true) != SHM_MQ_SUCCESS)
			break;
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
	shm_mq	   *full = shared_queue(shared, ParallelWorkerNumber, 0);
	shm_mq	   *free = shared_queue(shared, ParallelWorkerNumber, 1);
	Queues		queues;

	shm_mq_set_receiver(full, MyProc);
	shm_mq_set_sender(free, MyProc);
	queues.full = shm_mq_attach(full, seg, NULL);
	queues.free = shm_mq_attach(free, seg, NULL);
	write_batches(index, shared_pages(shared), &queues);
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
	output->direct = gs_direct_begin(index);
	output->relay = n_workers > 0 ? begin_relay(heap, index, concurrent, n_workers) : NULL;
	return output;
}

Page
gs_page_output_alloc(GsPageOutput *output)
{
	return output->relay ? relay_alloc(output->relay) : gs_direct_alloc(output->direct);
}

void
gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page)
{
	if (output->relay)
		relay_write(output->relay, blkno, page);
	else
		gs_direct_write(output->direct, blkno, page);
}

void
gs_page_output_end(GsPageOutput *output)
{
	if (output->relay)
	{
		drain(output->relay);
		end_relay(output->relay);
	}
	gs_direct_end(output->direct);
}

void
gs_page_output_cancel(GsPageOutput *output)
{
	if (output->relay)
		end_relay(output->relay);
}
