/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  The table's scan of an index build (index_kind.h).
 *
 * The table's access method scans, as in PostgreSQL's own builds.  It decides which tuples
 * are indexed, and under which TID, waits for transactions
 * if it must, evaluates predicates and expressions, and calls put_tuple().
 * Every participant forms index tuples and feeds them, with their keys, to one
 * session; the leader is one of the participants.
 *
 * Scans of heaps are always parallel scans.  If the leader scans alone, the descriptor
 * lies in local memory.  Other access methods may not support parallel scans; theirs are
 * parallel only if there are workers.
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
 *	  feed/heap_pages.c finds out, under one lock, which tuples heap would index as alive.  They stay
 *	  alive, because the table is locked against writers.  In a concurrent build, the scan has listed the
 *	  tuples that its snapshot sees, and indexes all of them.  In both cases the buffer is pinned, so no
 *	  tuple moves.  The entry of a heap-only tuple points at the root of its chain.
 *
 *	  Other tuples, such as dead ones or those of a transaction in progress, are left to the scan, which
 *	  looks at them next.  Indexes with expressions or predicates get all tuples from the scan.
 *
 * Tests: regress/index_builds, regress/index_page_feed, tap/index_concurrent
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "pgstat.h"
#include "storage/spin.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "compat.h"
#include "feed/heap_pages.h"
#include "index/index_kind.h"
#include "index/index_workers.h"

/* Shared by all participants; a parallel scan's descriptor follows. */
typedef struct Shared
{
	GsIndexTarget target;		/* first: index_workers.h */
	bool		unique;			/* IndexInfo.ii_Unique, which may differ from the index's catalog entry */
	bool		parallel;		/* there is a parallel scan's descriptor */
	GsSessionHandle session;

	slock_t		mutex;			/* protects the fields below */
	GsIndexScanResult result;	/* sums over all participants; status: the worst one */
	bool		broken_hot_chain;
} Shared;

StaticAssertDecl(offsetof(Shared, target) == 0, "workers find the target there");
StaticAssertDecl(GS_PUT_OK < GS_PUT_LEFT && GS_PUT_LEFT < GS_PUT_OVERFLOW &&
				 GS_PUT_OVERFLOW < GS_PUT_LOST, "the worst status is the greatest");

#define shared_scan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(Shared))))

/* A participant. */
typedef struct Participant
{
	Relation	heap;
	Shared	   *shared;
	GsIndexFeed *feed;
	GsTupleMap *map;			/* from the table's tuples to the index's columns; NULL: no pages are fed */
	GsHeapPages pages;
	OffsetNumber entries[MaxHeapTuplesPerPage]; /* pages.entries; invalid: left to the scan */
	double		paged_rows;		/* rows fed by put_page() */
} Participant;

PGDLLEXPORT void gpusort_index_worker(dsm_segment *seg, shm_toc *toc);

GsKeyDesc *
gs_index_key_desc(const GsIndexKind *kind, Relation index, int ncols, GsRefusal *refusal)
{
	AttrNumber	attnos[GS_INDEX_SORT_COLUMNS];
	Oid			operators[GS_INDEX_SORT_COLUMNS];
	Oid			collations[GS_INDEX_SORT_COLUMNS] = {0};
	bool		nulls_first[GS_INDEX_SORT_COLUMNS] = {0};
	Oid			types[GS_INDEX_SORT_COLUMNS];
	int			n = 0;

	if (kind->numbers_columns && RelationGetDescr(index)->natts > 1)
	{
		types[n] = INT2OID;
		operators[n++] = lookup_type_cache(INT2OID, TYPECACHE_LT_OPR)->lt_opr;
	}
	for (int i = 0; i < ncols; i++, n++)
	{
		GsIndexOrder order = {0};

		if (!kind->column_order(index, i, &order))
		{
			*refusal = GS_REFUSE_OPCLASS;
			return NULL;
		}
		types[n] = order.type;
		operators[n] = order.sort_operator;
		collations[n] = order.collation;
		nulls_first[n] = order.nulls_first;
	}
	types[n] = TIDOID;
	operators[n++] = TIDLessOperator;
	for (int i = 0; i < n; i++)
		attnos[i] = i + 1;
	return gs_key_desc_create(&(GsColumns){n, attnos, operators, collations, nulls_first}, types, NULL,
							  false, refusal);
}

static inline bool
is_heap(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine();
}

/* End the scan of all participants. */
static void
stop_scan(Participant *part)
{
	if (is_heap(part->heap))
	{
		ParallelBlockTableScanDesc blocks = (ParallelBlockTableScanDesc) shared_scan(part->shared);

		pg_atomic_write_u64(&blocks->phs_nallocated, blocks->phs_nblocks);
	}
}

/*
 * After the scan returned a tuple: feed the tuples that follow in its page, up to one that is left to
 * the scan.
 */
static void
put_page(Participant *part)
{
	GsHeapPages *pages = &part->pages;
	GsIndexFeed *feed = part->feed;
	uint32		next;

	for (next = pages->next; next < pages->end && feed->status == GS_PUT_OK; next++)
	{
		OffsetNumber offset = gs_heap_pages_offset(pages, next);
		ItemId		item = PageGetItemId(pages->page, offset);
		ItemPointerData tid;

		if (unlikely(!ItemIdIsNormal(item)))
			continue;
		ItemPointerSet(&tid, pages->block, part->entries[offset - 1]);
		if (unlikely(!ItemPointerIsValid(&tid)))
			break;
		if (unlikely(!gs_item_in_page(pages->page, item)) ||
			unlikely(!gs_tuple_map_read(part->map, (HeapTupleHeader) PageGetItem(pages->page, item),
										ItemIdGetLength(item))))
			break;
		feed->put(feed, &tid, part->map->values, part->map->isnull, true);
		part->paged_rows += 1;
	}
	gs_heap_pages_move(pages, next);
}

/* IndexBuildCallback */
static void
put_tuple(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Participant *part = arg;

	part->feed->put(part->feed, tid, values, isnull, alive);
	if (part->map)
	{
		gs_heap_pages_see(&part->pages, tid);
		put_page(part);
	}
	if (unlikely(part->feed->status != GS_PUT_OK))
		stop_scan(part);
}

/* The work of one participant.  If it cannot feed the session, the others do the scan. */
static void
participate(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
			GsClient *client, const GsKeyDesc *desc, Shared *shared, bool progress)
{
	Participant part = {0};
	TableScanDesc scan = NULL;
	GsIndexScanResult *result = &shared->result;
	GsFeeder   *feeder = client ? gs_feeder_create(client, desc) : NULL;
	double		heap_tuples;

	if (feeder == NULL)
		return;
	part.heap = heap;
	part.shared = shared;
	part.feed = kind->feed_create(index, info);
	part.feed->feeder = feeder;
	part.feed->row.values = part.feed->key_values;
	part.feed->row.isnull = part.feed->key_isnull;

	if (shared->parallel)
		scan = gs_compat_table_beginscan_parallel(heap, shared_scan(shared));
	if (scan && is_heap(heap) && info->ii_Predicate == NIL && info->ii_Expressions == NIL)
	{
		part.pages.scan = (HeapScanDesc) scan;
		part.pages.entries = part.entries;
		part.map = gs_tuple_map_create(RelationGetDescr(heap), RelationGetDescr(index),
									   info->ii_IndexAttrNumbers, NULL);
	}
	heap_tuples = table_index_build_scan(heap, index, info, true, progress, put_tuple, &part, scan) +
		part.paged_rows;
	if (pgstat_should_count_relation(heap))
		gs_compat_tuples_returned(heap) += part.paged_rows;
	if (part.feed->status == GS_PUT_OK)
	{
		gs_heap_pages_end(&part.pages);
		part.feed->status = gs_feeder_finish(part.feed->feeder);
	}

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
 * Labels of enums are numbered by the active snapshot.  The command's snapshot may be older than rows that
 * others inserted while the command waited for its lock on the table.  So a newer snapshot is used.  With the
 * lock no new rows come.  They do in a concurrent build, so that uses the snapshot of its scan.
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

	/* the scan decides which tuples are indexed; in a concurrent build, a snapshot does */
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
	desc = gs_index_key_desc(kind, index, IndexRelationGetNumberOfKeyAttributes(index), &refusal);
	participate(kind, heap, index, info, gs_client_attach(shared->session), desc, shared, false);
	gs_index_worker_end(toc, heap, index);
}
