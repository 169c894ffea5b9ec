/*-------------------------------------------------------------------------
 *
 * page_relay.c
 *	  Has a parallel worker write the pages of a new relation (page_relay.h).
 *
 * Writing a page is two copies into WAL and kernel, a checksum and a system
 * call, and takes longer than laying it out.  Here the leader lays out, and
 * the worker writes, both at once.
 *
 * The ring
 *	  Pages lie in shared memory.  Two queues of page numbers lead from the leader
 *	  to the worker (full) and back (free), each with one who puts in and one
 *	  who takes out, and as long as there are pages, so that putting in never
 *	  waits.  An entry is written before its queue's count is, and read after
 *	  it; no lock is needed.  Who finds a queue empty sleeps on a condition
 *	  variable, and tests again when prepared to.
 *
 * The end
 *	  With "finish" the worker drains its queue, then ends its output, which
 *	  syncs; with "cancel" it stops where it is.  If the leader fails, the
 *	  transaction's abort ends the worker, and waits for it, before it removes
 *	  the file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#include "gpusort.h"
#include "index/page_output.h"
#include "index/page_relay.h"

#define KEY_SHARED		UINT64CONST(0x6770757300000011)
#define KEY_QUERY		UINT64CONST(0x6770757300000012)
#define KEY_WAL_USAGE	UINT64CONST(0x6770757300000013)
#define KEY_BUFFERS		UINT64CONST(0x6770757300000014)

/* Pages of the ring; a power of two. */
#define N_PAGES			256
#define PAGE_ALIGNMENT	4096

/* How long a wait lasts before the leader looks after the worker. */
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

/* In the DSM segment; the pages follow. */
typedef struct Shared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	pg_atomic_uint32 order;		/* an Order */

	pg_atomic_uint32 n_full;	/* ever put into full */
	FullPage	full[N_PAGES];
	ConditionVariable full_cv;	/* the worker's */

	pg_atomic_uint32 n_free;	/* ever put into free */
	uint32		free[N_PAGES];
	ConditionVariable free_cv;	/* the leader's */
} Shared;

#define SHARED_BYTES	(sizeof(Shared) + PAGE_ALIGNMENT + (Size) N_PAGES * BLCKSZ)

struct GsPageRelay
{
	ParallelContext *context;
	WalUsage   *wal_usage;
	BufferUsage *buffer_usage;
	Shared	   *shared;
	char	   *pages;
	uint32		n_full;			/* put in */
	uint32		n_taken;		/* taken from free */
};

PGDLLEXPORT void gpusort_page_worker(dsm_segment *seg, shm_toc *toc);

static char *
shared_pages(Shared *shared)
{
	return (char *) TYPEALIGN(PAGE_ALIGNMENT, (char *) shared + sizeof(Shared));
}

static void
init_shared(Shared *shared, Relation heap, Relation index, bool concurrent)
{
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = concurrent;
	pg_atomic_init_u32(&shared->order, ORDER_WRITE);
	pg_atomic_init_u32(&shared->n_full, 0);
	pg_atomic_init_u32(&shared->n_free, N_PAGES);
	for (uint32 i = 0; i < N_PAGES; i++)
		shared->free[i] = i;
	ConditionVariableInit(&shared->full_cv);
	ConditionVariableInit(&shared->free_cv);
}

static void
close_relay(GsPageRelay *relay)
{
	WaitForParallelWorkersToFinish(relay->context);
	InstrAccumParallelQuery(relay->buffer_usage, relay->wal_usage);
	DestroyParallelContext(relay->context);
	ExitParallelMode();
	pfree(relay);
}

GsPageRelay *
gs_page_relay_begin(Relation heap, Relation index, bool concurrent)
{
	Size		query_bytes = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	ParallelContext *context;
	GsPageRelay *relay;

	EnterParallelMode();
	context = CreateParallelContext(GPUSORT_NAME, "gpusort_page_worker", 1);
	shm_toc_estimate_chunk(&context->estimator, SHARED_BYTES);
	shm_toc_estimate_chunk(&context->estimator, sizeof(WalUsage));
	shm_toc_estimate_chunk(&context->estimator, sizeof(BufferUsage));
	shm_toc_estimate_keys(&context->estimator, 3);
	if (query_bytes > 0)
	{
		shm_toc_estimate_chunk(&context->estimator, query_bytes);
		shm_toc_estimate_keys(&context->estimator, 1);
	}
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		DestroyParallelContext(context);
		ExitParallelMode();
		return NULL;
	}

	relay = palloc0(sizeof(GsPageRelay));
	relay->context = context;
	relay->shared = shm_toc_allocate(context->toc, SHARED_BYTES);
	relay->pages = shared_pages(relay->shared);
	init_shared(relay->shared, heap, index, concurrent);
	shm_toc_insert(context->toc, KEY_SHARED, relay->shared);
	relay->wal_usage = shm_toc_allocate(context->toc, sizeof(WalUsage));
	shm_toc_insert(context->toc, KEY_WAL_USAGE, relay->wal_usage);
	relay->buffer_usage = shm_toc_allocate(context->toc, sizeof(BufferUsage));
	shm_toc_insert(context->toc, KEY_BUFFERS, relay->buffer_usage);
	memset(relay->wal_usage, 0, sizeof(WalUsage));
	memset(relay->buffer_usage, 0, sizeof(BufferUsage));
	if (query_bytes > 0)
	{
		char	   *query = shm_toc_allocate(context->toc, query_bytes);

		memcpy(query, debug_query_string, query_bytes);
		shm_toc_insert(context->toc, KEY_QUERY, query);
	}

	LaunchParallelWorkers(context);
	if (context->nworkers_launched == 0)
	{
		close_relay(relay);
		return NULL;
	}
	return relay;
}

/* Ends with an error where the worker has ended without a word. */
static void
check_worker(GsPageRelay *relay)
{
	BackgroundWorkerHandle *handle = relay->context->worker[0].bgwhandle;
	pid_t		pid;

	if (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
		return;
	/* this knows what befell it */
	WaitForParallelWorkersToFinish(relay->context);
	elog(ERROR, "gpusort's page writer has ended early");
}

Page
gs_page_relay_alloc(GsPageRelay *relay)
{
	Shared	   *shared = relay->shared;
	uint32		page;

	if (unlikely(pg_atomic_read_u32(&shared->n_free) == relay->n_taken))
	{
		ConditionVariablePrepareToSleep(&shared->free_cv);
		while (pg_atomic_read_u32(&shared->n_free) == relay->n_taken)
			if (ConditionVariableTimedSleep(&shared->free_cv, WAIT_MS, WAIT_EVENT_PARALLEL_FINISH))
				check_worker(relay);
		ConditionVariableCancelSleep();
	}
	pg_read_barrier();
	page = shared->free[relay->n_taken++ % N_PAGES];
	return (Page) (relay->pages + (Size) page * BLCKSZ);
}

void
gs_page_relay_write(GsPageRelay *relay, BlockNumber blkno, Page page)
{
	FullPage   *full = &relay->shared->full[relay->n_full++ % N_PAGES];

	full->page = ((char *) page - relay->pages) / BLCKSZ;
	full->blkno = blkno;
	pg_write_barrier();
	pg_atomic_write_u32(&relay->shared->n_full, relay->n_full);
	ConditionVariableSignal(&relay->shared->full_cv);
}

static void
end_relay(GsPageRelay *relay, Order order)
{
	pg_write_barrier();
	pg_atomic_write_u32(&relay->shared->order, order);
	ConditionVariableSignal(&relay->shared->full_cv);
	close_relay(relay);
}

void
gs_page_relay_finish(GsPageRelay *relay)
{
	end_relay(relay, ORDER_FINISH);
}

void
gs_page_relay_cancel(GsPageRelay *relay)
{
	end_relay(relay, ORDER_CANCEL);
}

/*
 * The worker's wait for the next full page; false where no more will come.
 */
static bool
next_page(Shared *shared, uint32 n_taken, Order *order)
{
	bool		sleeping = false;
	bool		found;

	for (;;)
	{
		/* the order first: what was put in before it is seen then */
		*order = (Order) pg_atomic_read_u32(&shared->order);
		pg_read_barrier();
		found = pg_atomic_read_u32(&shared->n_full) != n_taken;
		if (found || *order != ORDER_WRITE)
			break;
		if (!sleeping)
		{
			ConditionVariablePrepareToSleep(&shared->full_cv);
			sleeping = true;
			continue;
		}
		ConditionVariableSleep(&shared->full_cv, WAIT_EVENT_PARALLEL_FINISH);
	}
	if (sleeping)
		ConditionVariableCancelSleep();
	pg_read_barrier();
	return found && *order != ORDER_CANCEL;
}

static void
write_pages(Relation index, Shared *shared)
{
	GsPageOutput *output = gs_page_output_begin(index);
	char	   *pages = shared_pages(shared);
	Order		order;

	for (uint32 n = 0; next_page(shared, n, &order); n++)
	{
		FullPage	full = shared->full[n % N_PAGES];
		Page		page = gs_page_output_alloc(output);

		memcpy(page, pages + (Size) full.page * BLCKSZ, BLCKSZ);
		shared->free[n % N_PAGES] = full.page;
		pg_write_barrier();
		pg_atomic_write_u32(&shared->n_free, N_PAGES + n + 1);
		ConditionVariableSignal(&shared->free_cv);
		gs_page_output_write(output, full.blkno, page);
		CHECK_FOR_INTERRUPTS();
	}
	if (order == ORDER_FINISH)
		gs_page_output_end(output);
}

/* The main function of the worker. */
void
gpusort_page_worker(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WalUsage   *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFERS, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;

	(void) seg;
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* the leader holds these locks, and workers share them */
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	InstrStartParallelQuery();
	write_pages(index, shared);
	InstrEndParallelQuery(buffer_usage, wal_usage);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
