/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Building a btree index with the device.
 *
 * The phases are btbuild()'s: the table is scanned (index_scan.c), the tuples
 * are sorted, here by the device, and pages are written from the sorted tuples
 * (index_stream.c, btree_writer.c).  The result is the same to the byte.
 *
 * Trouble
 *	  Whatever befalls the device before the first tuple comes back, the index
 *	  is still empty and btbuild() builds it.  If the service is lost while
 *	  tuples are fetched, there are pages in the file already, all of them
 *	  without use, as no metapage points at them.  The file is then truncated
 *	  to nothing, as TRUNCATE does before it rebuilds indexes in place, and
 *	  btbuild() begins with an empty file.  That is safe for the same reasons:
 *	  the relation file is this transaction's own, and nobody else has read a
 *	  page of it; replay finds the truncation in the WAL behind the lost pages
 *	  and before the new ones.
 *
 * Memory
 *	  Rows are in the staging arena and on the device.  maintenance_work_mem
 *	  bounds what this process may hold beside that: the run of equal long keys
 *	  that is being put in order.
 *
 * Tests: regress/index_builds, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_am_d.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "compat.h"
#include "guc.h"
#include "index/index_build.h"
#include "index/index_kind.h"
#include "index/index_refuse.h"
#include "index/index_scan.h"
#include "stats.h"

/* With fewer tuples than this, workers to write pages are not worth their start. */
#define RELAY_MIN_TUPLES	100000

/* This many write pages about as fast as they are laid out. */
#define RELAY_WORKERS		3

/* A build under way. */
typedef struct Build
{
	const GsIndexKind *kind;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsKeyDesc  *desc;
	GsIndexScanResult scan;
	GsPageRelay *relay;			/* who writes pages; NULL: this process */
	GsIndexWritten written;
	double		scan_ms;		/* times of the phases */
	double		sort_ms;
	double		write_ms;
} Build;

/*
 * How many workers to ask for.  PostgreSQL has decided whether there may be
 * any, and by the table's size how many, but also leaves 32 MB of
 * maintenance_work_mem to each; ours need none.
 */
static int
choose_workers(Relation heap, const IndexInfo *info)
{
	BlockNumber blocks;
	int			workers;

	if (info->ii_ParallelWorkers == 0)
		return 0;
	workers = RelationGetParallelWorkers(heap, -1);
	if (workers < 0)
	{
		/* as compute_parallel_worker() does */
		blocks = RelationGetNumberOfBlocks(heap);
		workers = 1;
		for (BlockNumber limit = Max(min_parallel_table_scan_size, 1);
			 blocks / 3 >= limit && limit < PG_INT32_MAX / 3; limit *= 3)
			workers++;
	}
	workers = Min(workers, max_parallel_maintenance_workers);
	return Max(workers, info->ii_ParallelWorkers);
}

/* Scan the table and sort its tuples; GS_FALLBACK_NONE where that went well. */
static GsFallback
scan_and_sort(Build *build, GsClient *client, int workers)
{
	instr_time	start;
	GsClientStatus status;
	const int	indexes[] = {
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE,
		PROGRESS_CREATEIDX_SUBPHASE
	};
	int64		values[] = {0, 0, 0, build->kind->subphases[1]};

	INSTR_TIME_SET_CURRENT(start);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE,
								 build->kind->subphases[0]);
	gs_index_scan(build->kind, build->heap, build->index, build->info, client, build->desc, workers,
				  &build->scan);
	build->scan_ms = gs_stats_lap_ms(&start);

	values[0] = build->scan.index_tuples;
	pgstat_progress_update_multi_param(lengthof(indexes), indexes, values);
	if (build->scan.status != GS_PUT_OK)
		return gs_put_fallback(client, build->scan.status);

	/* the workers start while the device sorts */
	if (build->kind->relay && build->info->ii_ParallelWorkers > 0 &&
		(gs_guc_force || build->scan.index_tuples >= RELAY_MIN_TUPLES))
		build->relay = gs_page_relay_begin(build->heap, build->index, build->info->ii_Concurrent,
										   Min(workers, RELAY_WORKERS));
	status = gs_client_perform(client);
	build->sort_ms = gs_stats_lap_ms(&start);
	return gs_client_fallback(client, status);
}

/* Make the index of the sorted tuples. */
static GsFallback
write_index(Build *build, GsClient *client)
{
	instr_time	start;
	GsFallback	reason;

	INSTR_TIME_SET_CURRENT(start);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, build->kind->subphases[2]);
	reason = build->kind->write(build->heap, build->index, build->info, client, build->relay,
								&build->written);
	if (reason == GS_FALLBACK_NONE)
		build->relay = NULL;
	build->write_ms = gs_stats_lap_ms(&start);
	return reason;
}

static GsFallback
build_with_device(Build *build)
{
	int			workers = choose_workers(build->heap, build->info);
	GsFallback	reason;
	GsClient   *client;
	const GsSession *session;
	GsSessionSpec spec = {.sort.key_width = build->desc->fixed_width};
	uint64		rows;

	gs_key_layout(build->desc, &spec.layout);
	client = gs_client_open(&spec, 1 + workers, &reason);
	if (client == NULL)
		return reason;
	reason = scan_and_sort(build, client, workers);
	if (reason != GS_FALLBACK_NONE)
		return reason;

	session = gs_client_session(client);
	rows = session->outcome.n_rows;
	if (rows != (uint64) build->scan.index_tuples)
		elog(ERROR, "gpusort sorted " UINT64_FORMAT " tuples of %.0f", rows,
			 build->scan.index_tuples);
	reason = write_index(build, client);
	if (reason != GS_FALLBACK_NONE)
		return reason;

	gs_client_count_sort(client);
	gs_stats_sort(GS_KIND_INDEX, rows, build->scan_ms + build->sort_ms + build->write_ms);
	ereport(DEBUG1,
			(errmsg_internal("gpusort built index \"%s\": " UINT64_FORMAT " tuples, %d workers, %.0f by pages, engine %s, %u runs, " UINT64_FORMAT " settled; scan %.1f ms, sort %.1f ms, write %.1f ms",
							 RelationGetRelationName(build->index), rows, build->scan.workers,
							 build->scan.paged_rows, session->outcome.engine, session->outcome.n_runs,
							 build->written.settled, build->scan_ms, build->sort_ms, build->write_ms)));
	return GS_FALLBACK_NONE;
}

/* As if nothing had been done yet. */
static void
clear_traces(Build *build)
{
	const int	indexes[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_CREATEIDX_TUPLES_DONE,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE, 0, 0, 0, 0};

	pgstat_progress_update_multi_param(lengthof(indexes), indexes, values);
	if (RelationGetNumberOfBlocks(build->index) > 0)
		RelationTruncate(build->index, 0);
}

IndexBuildResult *
gs_index_build(Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context;
	MemoryContext old;
	Build		build = {0};
	GsFallback	reason;
	IndexBuildResult *result;

	/*
	 * All that a build holds, the session included, goes with this context.
	 * If the build fails, its parent, the command's, is cleared when the
	 * (sub)transaction is aborted, after its workers have ended.
	 * CurTransactionContext would stay until the user says ROLLBACK.
	 */
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index build",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	build.kind = gs_index_kind(index->rd_rel->relam);
	build.desc = gs_index_accept(build.kind, heap, index);
	if (build.desc == NULL || RelationGetNumberOfBlocks(index) > 0)
	{
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
		return build.kind->build(heap, index, info);
	}
	build.heap = heap;
	build.index = index;
	build.info = info;
	if (!gs_compat_build_asks_planner(build.kind->access_method))
		info->ii_ParallelWorkers = plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
	reason = build_with_device(&build);
	if (build.relay)
		gs_page_relay_cancel(build.relay);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	if (reason != GS_FALLBACK_NONE)
	{
		gs_stats_fallback(reason);
		ereport(DEBUG1,
				(errmsg_internal("gpusort: build of index \"%s\" falls back to PostgreSQL: %s",
								 RelationGetRelationName(index), gs_fallback_name(reason))));
		clear_traces(&build);
		return build.kind->build(heap, index, info);
	}
	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.scan.heap_tuples;
	result->index_tuples = build.written.tuples;
	return result;
}
