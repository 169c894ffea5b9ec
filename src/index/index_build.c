/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Building an index with the device.
 *
 * Way in
 *	  All builds of indexes end in index_build(), which calls the ambuild function
 *	  in the index's relcache entry: CREATE INDEX, constraints, REINDEX, CLUSTER,
 *	  VACUUM FULL, REPACK, ALTER TABLE, REFRESH MATERIALIZED VIEW, concurrently or
 *	  not.  index_build() has no hook.  It first calls plan_create_index_workers(), which runs a
 *	  hook for the table: get_relation_info_hook, or build_simple_rel_hook from PostgreSQL 19 on.  At that
 *	  time index_build() holds the index's relcache entry.  Our hook makes the entry point to a copy of
 *	  the access method's functions, with build_index() as ambuild.  The copy lives as long as the
 *	  entry.  The hook does not know which index is built, so all indexes of the table get the copy.
 *	  For indexes that PostgreSQL is to build, build_index() calls the access method's own function.
 *
 *	  With max_parallel_maintenance_workers = 0 the planner returns before it calls
 *	  the hook, and PostgreSQL builds the index.  No other way in serves all builds without
 *	  side effects:
 *	  - We could raise the setting while the command runs.  But the index's functions, the query of
 *		a materialized view and event triggers would see that.  And the setting could stay raised
 *		if a function that sets it, too, ends with an error.
 *	  - A relcache callback runs shortly before index_build() if the command has just changed the
 *		index's catalog rows.  In a concurrent build, an earlier transaction did that.  And a
 *		callback must not read catalogs, as looking up an entry that is not open may do.
 *	  - object_access_hook runs for new indexes only.
 *
 *	  Before PostgreSQL 18, index_build() does not call plan_create_index_workers() for a GIN index.
 *	  - CREATE INDEX: index_create() calls object_access_hook when all catalog rows exist.  Next it
 *		makes them visible, which gives the relcache entry the access method's functions.  The
 *		hook makes the rows visible itself, and then patches the entry, which is open and so keeps
 *		its functions.
 *	  - REINDEX of an index or a table: ProcessUtility_hook (cluster.c) has the entries patched
 *		before the command opens them.  It cannot keep them open, because the command refuses an
 *		index that is open.  If an entry is dropped in between, PostgreSQL builds the index.
 *	  - CLUSTER, VACUUM FULL, and REINDEX of a schema, a database or a partitioned table build all
 *		indexes of a table.  The table's first btree patches the GIN indexes after it.  PostgreSQL
 *		does these builds if they are concurrent.
 *
 *	  An entry that was patched by an earlier command stays patched when settings change.  So
 *	  build_index() tests the settings again, and leaves the build to PostgreSQL: the choice must
 *	  not depend on earlier commands of the session.
 *
 * Builds left to PostgreSQL
 *	  All rules are here.  gpusort builds an index if:
 *	  - gpusort.enabled is not off, and gpusort.index_build is on;
 *	  - max_parallel_maintenance_workers is not 0;
 *	  - the index is not one of a system catalog: those are built while catalogs may be broken, and
 *		describing keys reads catalogs (see_relation() and see_object() test this);
 *	  - the service is ready;
 *	  - the table has at least gpusort.min_rows rows, or gpusort.force is on;
 *	  - keys can express the order of the index.
 *	  The first rule and the last three also hold for copies of a table (cluster.c).
 *
 * Phases
 *	  The phases are btbuild()'s: the table is scanned (index_scan.c), the tuples
 *	  are sorted, here by the device, and pages are written from the sorted tuples
 *	  (index_tuple.c, btree_writer.c).  The result is the same to the byte.
 *
 * Trouble
 *	  If the device fails before the first tuple comes back, the index is still
 *	  empty, and btbuild() builds it.  If the service is lost later, the file has pages
 *	  already, but no metapage points at them.  Then the file is truncated to
 *	  nothing, as TRUNCATE does before it rebuilds indexes in place, and
 *	  btbuild() begins with an empty file.  That is safe for the same reasons:
 *	  the relation file is this transaction's own, and nobody else has read a
 *	  page of it.  In the WAL, the truncation lies between the lost pages and the new ones.
 *
 * Memory
 *	  Rows are in the staging arena and on the device.  Beside that, this process holds the
 *	  tuples with one inexact key that it sorts; maintenance_work_mem bounds them.
 *
 * Tests: regress/index_builds, regress/refusals, tap/index_concurrent, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "client/client.h"
#include "compat.h"
#include "guc.h"
#include "index/index_build.h"
#include "index/index_kind.h"
#include "plan/sort_refuse.h"
#include "stats.h"

/*
 * Builds left to PostgreSQL
 */

/* work: the work that gpusort leaves to PostgreSQL; detail: NULL for none */
static void
report(Relation index, const char *work, const char *reason, const char *detail)
{
	ereport(gs_refuse_elevel(),
			(errmsg("gpusort leaves %s index \"%s\" to PostgreSQL: %s",
					work, RelationGetRelationName(index), reason),
			 detail ? errdetail_internal("%s", detail) : 0));
}

/* The first column, from 0, that keys cannot express. */
static int
refused_column(const GsIndexKind *kind, Relation index)
{
	int			ncols = 1;
	GsRefusal	refusal;

	while (ncols < IndexRelationGetNumberOfKeyAttributes(index) &&
		   gs_index_key_desc(kind, index, ncols, &refusal) != NULL)
		ncols++;
	return ncols - 1;
}

static void
refuse(const GsIndexKind *kind, Relation index, const char *work, GsRefusal reason)
{
	char	   *detail = NULL;

	gs_stats_refusal(reason);
	if (gs_guc_log_refusals && reason != GS_REFUSE_SERVICE)
	{
		int			i = refused_column(kind, index);
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(index), i);

		detail = gs_refuse_detail(psprintf("Column \"%s\"", NameStr(column->attname)), column->atttypid,
								  index->rd_indcollation[i]);
	}
	report(index, work, gs_refusal_name(reason), detail);
}

static bool
is_small(Relation heap)
{
	BlockNumber blocks;
	double		rows;
	double		all_visible;

	if (gs_guc_force)
		return false;
	estimate_rel_size(heap, NULL, &blocks, &rows, &all_visible);
	return rows < gs_guc_min_rows;
}

static GsKeyDesc *
accept_index(const GsIndexKind *kind, Relation heap, Relation index, const char *work)
{
	GsKeyDesc  *desc;
	GsRefusal	refusal;

	/* the hooks do not patch indexes of catalogs */
	Assert(!IsCatalogRelation(heap));
	if (is_small(heap))
	{
		/* indexes of new, empty tables are built all the time: do not report them */
		if (RelationGetNumberOfBlocks(heap) > 0)
			report(index, work, "the table is small", NULL);
		return NULL;
	}
	if (!gs_client_service_ready())
	{
		refuse(kind, index, work, GS_REFUSE_SERVICE);
		return NULL;
	}
	desc = gs_index_key_desc(kind, index, IndexRelationGetNumberOfKeyAttributes(index), &refusal);
	if (desc == NULL)
		refuse(kind, index, work, refusal);
	return desc;
}

/*
 * The index's keys if gpusort builds it, else NULL.  The reason is reported (sort_refuse.h) and, unless the
 * table is small, counted.
 */
static GsKeyDesc *
accept_build(const GsIndexKind *kind, Relation heap, Relation index)
{
	if (gs_guc_enabled == GS_ENABLED_OFF || !gs_guc_index_build || max_parallel_maintenance_workers == 0)
		return NULL;
	return accept_index(kind, heap, index, "the build of");
}

GsKeyDesc *
gs_index_accept_copy(Relation heap, Relation index, bool scan_is_cheaper)
{
	GsKeyDesc  *desc = accept_index(&gs_btree_kind, heap, index, "CLUSTER by");

	if (desc == NULL || !scan_is_cheaper)
		return desc;
	report(index, "CLUSTER by", "reading the table by the index costs less", NULL);
	return NULL;
}

/*
 * Phases
 */

/* With fewer tuples than this, workers to write pages are not worth their start. */
#define OUTPUT_MIN_TUPLES	100000

/* This many workers write pages about as fast as one process lays them out. */
#define OUTPUT_WORKERS		3

/* A build under way. */
typedef struct Build
{
	const GsIndexKind *kind;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsKeyDesc  *desc;
	GsIndexScanResult scan;
	GsPageOutput *output;		/* NULL: not begun, or ended */
	GsIndexWritten written;
	double		scan_ms;		/* times of the phases */
	double		sort_ms;
	double		write_ms;
} Build;

/*
 * How many workers to ask for.  PostgreSQL has decided whether workers are allowed.  It limits their number
 * by the table's size, and to one for each 32 MB of maintenance_work_mem.  Ours need no memory.
 */
static int
choose_workers(Relation heap, const IndexInfo *info)
{
	RelOptInfo	rel = {
		.reloptkind = RELOPT_BASEREL,
		.rel_parallel_workers = RelationGetParallelWorkers(heap, -1)
	};

	if (info->ii_ParallelWorkers == 0)
		return 0;
	return Max(info->ii_ParallelWorkers,
			   compute_parallel_worker(&rel, RelationGetNumberOfBlocks(heap), -1,
									   max_parallel_maintenance_workers));
}

/* Scan the table and sort its tuples; GS_FALLBACK_NONE: both succeeded. */
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
	if (build->kind->has_output && build->info->ii_ParallelWorkers > 0 &&
		(gs_guc_force || build->scan.index_tuples >= OUTPUT_MIN_TUPLES))
		build->output = gs_page_output_begin(build->heap, build->index, build->info->ii_Concurrent,
											 Min(workers, OUTPUT_WORKERS));
	status = gs_client_perform(client, false);
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
	if (build->kind->has_output && build->output == NULL)
		build->output = gs_page_output_begin(build->heap, build->index, build->info->ii_Concurrent, 0);
	reason = build->kind->write(build->heap, build->index, build->info, client, build->desc,
								build->output, &build->written);
	if (reason == GS_FALLBACK_NONE)
		build->output = NULL;
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
	GsSessionSpec spec = {.key_columns = build->desc->ncols};
	uint64		rows;

	if (build->kind->feeds_tuples)
		gs_key_tuple_keys(build->desc, RelationGetDescr(build->index), true, &spec.sort.tuple_keys);
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

/* Reset the progress view, and truncate the index. */
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

/* Stands in for the access method's ambuild, and calls it if gpusort does not build the index. */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context;
	MemoryContext old;
	Build		build = {0};
	GsFallback	reason;
	IndexBuildResult *result;

	/*
	 * This context holds all memory of the build, and the session.  If the build fails, its parent, the
	 * command's context, is reset when the (sub)transaction is aborted, after the workers have ended.
	 * CurTransactionContext would live until the user says ROLLBACK.
	 */
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index build",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	build.kind = gs_index_kind(index->rd_rel->relam);
	build.desc = accept_build(build.kind, heap, index);
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
	if (build.output)
		gs_page_output_cancel(build.output);
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

/*
 * Way in
 */

static gs_compat_relation_hook_type previous_relation_hook = NULL;
static object_access_hook_type previous_object_hook = NULL;

/*
 * Put our function into an index's relcache entry.  The command has locked only the index that it builds.  We
 * do not lock the others, because a lock might wait for a command that rebuilds them.  The lock on their
 * table keeps them from being dropped.
 */
static void
patch_index(Oid oid)
{
	Relation	index = RelationIdGetRelation(oid);
	const GsIndexKind *kind;

	if (!RelationIsValid(index))
		return;
	kind = gs_index_kind(index->rd_rel->relam);
	if (kind && index->rd_indam->ambuild == kind->build && !IsCatalogRelationOid(index->rd_index->indrelid))
	{
		IndexAmRoutine *routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));

		/* the old routine is in the same context, or constant: do not free it */
		*routine = *index->rd_indam;
		routine->ambuild = build_index;
		index->rd_indam = routine;
	}
	RelationClose(index);
}

bool
gs_has_no_query(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return query->commandType == CMD_SELECT && query->jointree == NULL &&
		query->targetList == NIL && list_length(query->rtable) == 1;
}

static void
see_relation(gs_compat_relation_params)
{
	const RangeTblEntry *table = planner_rt_fetch(rel->relid, root);

	if (previous_relation_hook)
		previous_relation_hook(gs_compat_relation_args);
	if (!table->inh || !gs_has_no_query(root))
		return;

	/* do not read indexes of catalogs, because one may be broken */
	if (gs_guc_enabled != GS_ENABLED_OFF && gs_guc_index_build && !IsCatalogRelationOid(table->relid))
	{
		Relation	heap = table_open(table->relid, NoLock);
		List	   *indexes = RelationGetIndexList(heap);
		ListCell   *lc;

		foreach(lc, indexes)
			patch_index(lfirst_oid(lc));
		list_free(indexes);
		table_close(heap, NoLock);
	}
}

/* An index's catalog rows exist.  Next, index_create() makes them visible and builds the index. */
static void
see_object(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	Relation	index;
	const GsIndexKind *kind = NULL;

	if (previous_object_hook)
		previous_object_hook(access, class, object, column, arg);
	if (access != OAT_POST_CREATE || class != RelationRelationId || column != 0 ||
		gs_guc_enabled == GS_ENABLED_OFF || !gs_guc_index_build)
		return;
	index = RelationIdGetRelation(object);
	if (!RelationIsValid(index))
		return;
	if (index->rd_rel->relkind == RELKIND_INDEX && !IsCatalogRelation(index))
		kind = gs_index_kind(index->rd_rel->relam);
	RelationClose(index);
	if (kind && !gs_compat_build_asks_planner(kind->access_method))
	{
		CommandCounterIncrement();
		patch_index(object);
	}
}

/*
 * The lock keeps indexes from being dropped while they are patched.  We do not wait for it: PostgreSQL's
 * command does that, in its own order of locks.  Whoever lacks the privilege gets no lock here either.
 */
void
gs_index_see_reindex(const ReindexStmt *stmt)
{
	Oid			oid;
	Oid			table;
	Relation	relation;
	List	   *indexes = NIL;
	ListCell   *lc;

	if (gs_compat_build_asks_planner(GIN_AM_OID) || stmt->relation == NULL ||
		gs_guc_enabled == GS_ENABLED_OFF || !gs_guc_index_build)
		return;
	oid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(oid) || IsCatalogRelationOid(oid))
		return;
	table = IndexGetRelation(oid, true);	/* invalid: it is no index */
	if (!gs_compat_may_reindex(OidIsValid(table) ? table : oid, GetUserId()) ||
		!ConditionalLockRelationOid(oid, AccessShareLock))
		return;
	relation = RelationIdGetRelation(oid);
	if (RelationIsValid(relation))
	{
		if (relation->rd_rel->relkind == RELKIND_INDEX)
			indexes = list_make1_oid(oid);
		else if (RELKIND_HAS_TABLE_AM(relation->rd_rel->relkind))
			indexes = RelationGetIndexList(relation);
		RelationClose(relation);
	}
	foreach(lc, indexes)
		patch_index(lfirst_oid(lc));
	list_free(indexes);
	UnlockRelationOid(oid, AccessShareLock);
}

void
gs_index_init(void)
{
	previous_relation_hook = gs_compat_relation_hook;
	gs_compat_relation_hook = see_relation;
	previous_object_hook = object_access_hook;
	object_access_hook = see_object;
}
