/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  The table's scan of an index build (index_kind.h).
 *
 * As in PostgreSQL's own builds, it is the table's access method that scans:
 * it decides which tuples are indexed, under which TID, waits for transactions
 * where it must, evaluates predicates and expressions, and calls put_tuple().
 * Every participant forms index tuples and feeds them, with their keys, to one
 * session; the leader is one of the participants.
 *
 * Scans of heaps are always parallel ones, those of the leader alone included:
 * the descriptor then lies in local memory.  Other access methods may not know
 * parallel scans, and are not asked for them where there are no workers.
 *
 * If feeding fails, nobody needs the tuples, because PostgreSQL's build will
 * begin again.  A callback cannot end its scan.  But heap hands out blocks by a
 * counter in the descriptor: if the counter says that all are handed out, all
 * participants soon end.
 *
 * Pages
 *	  For each tuple heap's scan takes two locks of the buffer, asks for visibility, fills a slot, and takes
 *	  the tuple apart.  That is more than half of the scan's CPU time.  So when put_tuple() gets a tuple, it
 *	  also feeds the tuples that follow in the page, and moves the scan's position behind them.  Blocks,
 *	  read-ahead, progress and interrupts remain heap's.
 *
 *	  look_at_page() finds out, under one lock, which tuples heap would index as alive.  Later they still
 *	  are, as the table is locked against writers.  A concurrent build's scan has listed the tuples that
 *	  its snapshot sees, and indexes all of them.  The buffer is pinned in both cases, so no tuple moves.
 *	  The entry of a heap-only tuple points at the root of its chain.
 *
 *	  Every other tuple is left to the scan, which looks at it next: a dead one, one of a
 *	  transaction in progress, one that is older than a column of the index.  Indexes with expressions or
 *	  predicates get all tuples from the scan.
 *
 * Tests: regress/index_builds, regress/index_page_feed, tap/index_concurrent
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/spin.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "index/index_kind.h"
#include "index/index_workers.h"

/* What participants share; a parallel scan's descriptor follows. */
typedef struct Shared
{
	GsIndexTarget target;		/* first: index_workers.h */
	bool		unique;			/* IndexInfo's: not always the index's own */
	bool		parallel;		/* there is a parallel scan's descriptor */
	GsSessionHandle session;

	slock_t		mutex;			/* protects all that follows */
	GsIndexScanResult result;	/* of all participants; status: the worst that one had */
	bool		broken_hot_chain;
} Shared;

StaticAssertDecl(offsetof(Shared, target) == 0, "workers find the target there");
StaticAssertDecl(GS_PUT_OK < GS_PUT_NO_KEY && GS_PUT_NO_KEY < GS_PUT_OVERFLOW &&
				 GS_PUT_OVERFLOW < GS_PUT_LOST, "the worst status is the greatest");

#define shared_scan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(Shared))))

/* A participant. */
typedef struct Participant
{
	Relation	heap;
	Shared	   *shared;
	GsIndexFeed *feed;
	HeapScanDesc pages;			/* the scan, if pages may be fed; else NULL */
	GsTupleMap *map;			/* from the table's tuples to the index's columns */
	BlockNumber block;			/* that look_at_page() saw last */
	OffsetNumber entries[MaxHeapTuplesPerPage]; /* for each tuple in it: the line pointer that its
												 * index tuple has; invalid: left to the scan */
	double		paged_rows;		/* fed by put_page() */
} Participant;

PGDLLEXPORT void gpusort_index_worker(dsm_segment *seg, shm_toc *toc);

static inline bool
is_heap(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine();
}

/* No participant needs to go on. */
static void
stop_scan(Participant *part)
{
	if (is_heap(part->heap))
	{
		ParallelBlockTableScanDesc blocks = (ParallelBlockTableScanDesc) shared_scan(part->shared);

		pg_atomic_write_u64(&blocks->phs_nallocated, blocks->phs_nblocks);
	}
}

/* Would heap's scan of all tuples index this one, as alive?  The buffer is locked. */
static bool
is_alive(Participant *part, HeapTupleHeader header, uint32 len, OffsetNumber offset)
{
	HeapTupleData tuple = {.t_len = len, .t_tableOid = RelationGetRelid(part->heap), .t_data = header};
	TransactionId dead_after;

	ItemPointerSet(&tuple.t_self, part->block, offset);
	switch (HeapTupleSatisfiesVacuumHorizon(&tuple, part->pages->rs_cbuf, &dead_after))
	{
		case HEAPTUPLE_LIVE:
			return true;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header));
		default:
			return false;
	}
}

/* Fill part->entries for the scan's page. */
static void
look_at_page(Participant *part, bool listed)
{
	HeapScanDesc scan = part->pages;
	Page		page = BufferGetPage(scan->rs_cbuf);
	OffsetNumber roots[MaxHeapTuplesPerPage];
	bool		has_roots = false;
	bool		all_alive;
	OffsetNumber max;

	part->block = scan->rs_cblock;
	gs_prefetch_page((char *) page);
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_SHARE);
	all_alive = listed || PageIsAllVisible(page);
	max = PageGetMaxOffsetNumber(page);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		OffsetNumber entry = InvalidOffsetNumber;

		if (ItemIdIsNormal(item))
		{
			HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);

			if (all_alive || is_alive(part, tuple, ItemIdGetLength(item), offset))
				entry = offset;
			if (unlikely(HeapTupleHeaderIsHeapOnly(tuple)) && entry == offset)
			{
				if (!has_roots)
					heap_get_root_tuples(page, roots);
				has_roots = true;
				entry = roots[offset - 1];
			}
		}
		part->entries[offset - 1] = entry;
	}
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_UNLOCK);
}

/*
 * After the scan returned a tuple: feed the tuples that follow in its page, up to one that is left to
 * the scan.
 */
static void
put_page(Participant *part)
{
	HeapScanDesc scan = part->pages;
	bool		listed = (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0;
	Page		page = BufferGetPage(scan->rs_cbuf);
	GsIndexFeed *feed = part->feed;
	double		rows = 0;
	uint32		next;
	uint32		end;

	if (scan->rs_cblock != part->block)
		look_at_page(part, listed);
	next = listed ? scan->rs_cindex + 1 : gs_compat_scan_offset(scan);
	end = listed ? scan->rs_ntuples : PageGetMaxOffsetNumber(page);
	for (; next < end && feed->status == GS_PUT_OK; next++)
	{
		OffsetNumber offset = listed ? scan->rs_vistuples[next] : next + 1;
		ItemId		item = PageGetItemId(page, offset);
		ItemPointerData tid;

		if (unlikely(!ItemIdIsNormal(item)))
			continue;
		ItemPointerSet(&tid, part->block, part->entries[offset - 1]);
		if (unlikely(!ItemPointerIsValid(&tid) ||
					 !gs_tuple_map_read(part->map, (HeapTupleHeader) PageGetItem(page, item))))
			break;
		feed->put(feed, &tid, part->map->values, part->map->isnull, true);
		rows += 1;
	}
	if (listed)
		scan->rs_cindex = next - 1;
	else
		gs_compat_scan_offset(scan) = next;
	part->paged_rows += rows;
}

/* IndexBuildCallback */
static void
put_tuple(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Participant *part = arg;

	part->feed->put(part->feed, tid, values, isnull, alive);
	if (part->pages)
		put_page(part);
	if (unlikely(part->feed->status != GS_PUT_OK))
		stop_scan(part);
}

/* A participant's whole work; without a client it leaves the scan to others. */
static void
participate(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
			GsClient *client, const GsKeyDesc *desc, Shared *shared, bool progress)
{
	Participant part = {0};
	TableScanDesc scan = NULL;
	GsIndexScanResult *result = &shared->result;
	double		heap_tuples;

	if (client == NULL)
		return;
	part.heap = heap;
	part.shared = shared;
	part.feed = kind->feed_create(index, info);
	part.feed->feeder = gs_feeder_create(client, desc);

	if (shared->parallel)
		scan = gs_compat_table_beginscan_parallel(heap, shared_scan(shared));
	if (scan && is_heap(heap) && info->ii_Predicate == NIL && info->ii_Expressions == NIL)
	{
		part.pages = (HeapScanDesc) scan;
		part.block = InvalidBlockNumber;
		part.map = gs_tuple_map_create(RelationGetDescr(heap), RelationGetDescr(index),
									   info->ii_IndexAttrNumbers, NULL);
	}
	heap_tuples = table_index_build_scan(heap, index, info, true, progress, put_tuple, &part, scan) +
		part.paged_rows;
	if (pgstat_should_count_relation(heap))
		gs_compat_tuples_returned(heap) += part.paged_rows;
	if (part.feed->status == GS_PUT_OK)
		part.feed->status = gs_feeder_finish(part.feed->feeder);

	SpinLockAcquire(&shared->mutex);
	result->status = Max(result->status, part.feed->status);
	result->heap_tuples += heap_tuples;
	result->index_tuples += part.feed->tuples;
	result->paged_rows += part.paged_rows;
	shared->broken_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
}

static Size
shared_size(Relation heap, Snapshot snapshot)
{
	return add_size(BUFFERALIGN(sizeof(Shared)), table_parallelscan_estimate(heap, snapshot));
}

static void
init_shared(Shared *shared, Relation heap, const IndexInfo *info, const GsClient *client,
			bool parallel, Snapshot snapshot)
{
	shared->unique = info->ii_Unique;
	shared->parallel = parallel;
	shared->session = gs_client_handle(client);
	SpinLockInit(&shared->mutex);
	shared->result = (GsIndexScanResult){.status = GS_PUT_OK};
	shared->broken_hot_chain = false;
	if (parallel)
		table_parallelscan_initialize(heap, shared_scan(shared), snapshot);
}

/*
 * Labels of enums are numbered by the active snapshot.  That of the command may
 * be older than rows that others inserted while it waited for its lock on the
 * table; since the lock was granted there are no new ones, but in a concurrent
 * build, which has a snapshot for its rows.
 */
static void
push_label_snapshot(const IndexInfo *info, Snapshot rows)
{
	PushActiveSnapshot(info->ii_Concurrent ? rows : GetLatestSnapshot());
}

void
gs_index_scan(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
			  GsClient *client, const GsKeyDesc *desc, int workers, GsIndexScanResult *result)
{
	GsIndexWorkers helpers = {0};
	Shared	   *shared = NULL;
	Snapshot	snapshot = SnapshotAny;
	bool		has_labels = gs_key_has_labels(desc);
	int			launched = 0;

	/*
	 * The scan judges by itself which tuples are to be indexed, but in a
	 * concurrent build takes what a snapshot shows.
	 */
	if (info->ii_Concurrent)
		snapshot = RegisterSnapshot(GetTransactionSnapshot());
	if (has_labels)
		push_label_snapshot(info, snapshot);

	if (workers > 0)
		shared = gs_index_workers_begin(&helpers, "gpusort_index_worker", workers,
										shared_size(heap, snapshot), heap, index,
										info->ii_Concurrent);
	if (shared)
	{
		init_shared(shared, heap, info, client, true, snapshot);
		launched = gs_index_workers_launch(&helpers);
	}
	else
	{
		shared = palloc(is_heap(heap) ? shared_size(heap, snapshot) : sizeof(Shared));
		init_shared(shared, heap, info, client, is_heap(heap), snapshot);
	}
	participate(kind, heap, index, info, client, desc, shared, true);
	if (helpers.context)
		gs_index_workers_wait(&helpers);

	*result = shared->result;
	result->workers = launched;
	info->ii_BrokenHotChain |= shared->broken_hot_chain;

	if (helpers.context)
		gs_index_workers_end(&helpers);
	if (has_labels)
		PopActiveSnapshot();
	if (info->ii_Concurrent)
		UnregisterSnapshot(snapshot);
}

/* The main function of a worker. */
void
gpusort_index_worker(dsm_segment *seg, shm_toc *toc)
{
	Relation	heap;
	Relation	index;
	Shared	   *shared = gs_index_worker_begin(toc, &heap, &index);
	const GsIndexKind *kind = gs_index_kind(index->rd_rel->relam);
	IndexInfo  *info;
	GsKeyDesc  *desc;
	GsRefusal	refusal;

	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->target.concurrent;
	info->ii_Unique = shared->unique;
	desc = kind->key_desc(index, IndexRelationGetNumberOfKeyAttributes(index), &refusal);
	if (desc == NULL)
		elog(ERROR, "gpusort cannot sort the columns of index \"%s\": %s",
			 RelationGetRelationName(index), gs_refusal_name(refusal));

	participate(kind, heap, index, info, gs_client_attach(shared->session), desc, shared, false);
	gs_index_worker_end(toc, heap, index);
}
