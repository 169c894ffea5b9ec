/*-------------------------------------------------------------------------
 *
 * cluster.c
 *	  CLUSTER and REPACK: copying a heap in the order of a btree index, sorted by
 *	  the device.
 *
 * Way in
 *	  Both commands make a new table, and call the old one's access method to copy the rows:
 *	  relation_copy_for_cluster(), in the order of an index or unsorted.  That has no hook.  But just
 *	  before, they ask the planner whether to sort the rows or to read them by the index.
 *	  plan_cluster_use_sort() calls a hook for the table: get_relation_info_hook, or from PostgreSQL 19 on
 *	  build_simple_rel_hook.  There the old table's relcache entry, which the command holds open, gets a
 *	  copy of heap's functions that contains copy_table().  copy_table() first undoes that.  It calls
 *	  heap's function for copies that are left to PostgreSQL.
 *
 *	  The entry must not stay so, as other code asks whether a table's functions are heap's.  So it is
 *	  changed only within CLUSTER and REPACK, which pass ProcessUtility_hook.  That hook undoes the change
 *	  however they end.  The pointer to the entry is valid then: either copy_table() ran, or the command
 *	  failed and still holds the entry, as its resources are released later.  If the entry is invalidated
 *	  in between, it gets heap's functions again, and may go away once it is closed.  Then forget_table()
 *	  gives up, and PostgreSQL copies the table.
 *
 *	  The commands do not ask the planner, and so gpusort does not see them, for copies without an index,
 *	  for indexes other than btrees, and while enable_indexscan is off.
 *
 * Copy
 *	  The phases and their progress mirror the sorting case of heapam_relation_copy_for_cluster().  It
 *	  scans the table, sorts its tuples, and writes them to the new table through rewriteheap.c.  Here the
 *	  device sorts.  Tuples with equal index columns keep their order in the table, as keys end with the
 *	  TID.  PostgreSQL promises no order for them.
 *
 * Tuples
 *	  All versions are copied that some transaction may still see, with their headers.  rewriteheap.c
 *	  joins chains of updates by TID, ctid, xmin and xmax.  No version is longer than a page, since long
 *	  values are in the TOAST table, and rewriteheap.c copies these.  Dead versions are not copied.
 *	  PostgreSQL tells rewriteheap.c of each of them, as an older version may wait for it.  Here nothing
 *	  is written before the table has been scanned, so no version waits.
 *
 *	  A version may be dead, but not by our horizon, which transactions in other databases hold back, and
 *	  VACUUM of the TOAST table may have removed its long values.  Such a version is not copied either.
 *	  PostgreSQL up to 19 ends with the error "missing chunk number".
 *
 *	  A tuple becomes the new one in place, in the page that the device returned.  It is formed anew only
 *	  if columns were dropped, or added since.
 *
 * Trouble
 *	  If the device fails, PostgreSQL copies the table from the beginning.  The new table is truncated
 *	  first, as TRUNCATE does with a table that is new in its transaction.  Nobody else can see it, and
 *	  its TOAST table is truncated with it.
 *
 * Memory
 *	  Rows are in the staging arena and on the device.  rewriteheap.c holds the versions whose
 *	  chains are not complete.  maintenance_work_mem bounds the rows with one inexact
 *	  key that are being put in order.
 *
 * Tests: regress/cluster, tap/cluster_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/rewriteheap.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/pg_class_d.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "array/array_toast.h"
#include "compat.h"
#include "fault.h"
#include "feed/feeder.h"
#include "gpusort.h"
#include "guc.h"
#include "index/index_build.h"
#include "plan/sort_cost.h"
#include "sort/sort_rows.h"

/* A row is this head, and then the tuple with its header. */
typedef struct TupleHead
{
	ItemPointerData tid;
	uint16		len;
} TupleHead;

StaticAssertDecl(sizeof(TupleHead) == MAXALIGN(sizeof(TupleHead)) && BLCKSZ <= PG_UINT16_MAX,
				 "a tuple is aligned behind its head, which can tell its length");

/* A copy under way. */
typedef struct Copying
{
	Relation	old_heap;
	Relation	new_heap;		/* new in this transaction, and empty */
	Relation	index;			/* a btree of old_heap */
	TransactionId oldest_xmin;
	TransactionId xid_cutoff;
	MultiXactId multi_cutoff;
	double		tuples;			/* copied */
	double		vacuumed;		/* not copied, as they are dead */
	double		recently_dead;	/* copied, as some transaction may still see them */
	GsClient   *client;

	/* scanning */
	GsFeeder   *feeder;
	TupleTableSlot *slot;
	EState	   *estate;			/* evaluates the index's expressions */
	IndexInfo  *info;
	int			nkeys;
	GsToastReader *toast;
	char	   *fed;			/* a TupleHead and its tuple */
	Datum		values[INDEX_MAX_KEYS + 1]; /* the key columns, then the TID */
	bool		isnull[INDEX_MAX_KEYS + 1];

	/* writing */
	RewriteState rewrite;		/* NULL: nothing is written yet */
	bool		has_dropped;	/* columns */
	Datum	   *columns;		/* of a tuple that is formed anew */
	bool	   *nulls;
	double		written;
	uint64		settled;
} Copying;

/* Warns if the transaction, which has changed the tuple and not ended, is not our own. */
static void
check_in_progress(const Copying *c, TransactionId xid, const char *what)
{
	if (!TransactionIdIsCurrentTransactionId(xid))
		elog(WARNING, "concurrent %s in progress within table \"%s\"", what,
			 RelationGetRelationName(c->old_heap));
}

/* Do all out-of-line values of the slot's tuple exist? */
static bool
is_complete(Copying *c)
{
	TupleDesc	tupdesc = RelationGetDescr(c->old_heap);

	slot_getallattrs(c->slot);
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(tupdesc, i);
		char	   *value = DatumGetPointer(c->slot->tts_values[i]);
		struct varatt_external pointer;

		if (attr->attlen != -1 || attr->attisdropped || c->slot->tts_isnull[i] ||
			!VARATT_IS_EXTERNAL_ONDISK(value))
			continue;
		VARATT_EXTERNAL_GET_POINTER(pointer, value);
		if (!gs_toast_read(c->toast, &pointer, NULL))
			return false;
	}
	return true;
}

/* Can no transaction see the slot's tuple any more?  Counts the tuple. */
static bool
is_dead(Copying *c, HeapTuple tuple, Buffer buffer)
{
	bool		is_doomed = false;
	HTSV_Result result;

	/* exclusive, so that hint bits can be set: rewriteheap.c needs them */
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	result = HeapTupleSatisfiesVacuum(tuple, c->oldest_xmin, buffer);
	switch (result)
	{
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			check_in_progress(c, HeapTupleHeaderGetXmin(tuple->t_data), "insert");
			break;
		case HEAPTUPLE_DELETE_IN_PROGRESS:
			check_in_progress(c, HeapTupleHeaderGetUpdateXid(tuple->t_data), "delete");
			is_doomed = true;
			break;
		default:
			is_doomed = result == HEAPTUPLE_RECENTLY_DEAD;
			break;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (result == HEAPTUPLE_DEAD || (is_doomed && HeapTupleHasExternal(tuple) && !is_complete(c)))
	{
		c->vacuumed += 1;
		return true;
	}
	c->recently_dead += is_doomed;
	return false;
}

static GsPut
put_tuple(Copying *c, HeapTuple tuple)
{
	GsPutRow	row = {.values = c->values, .isnull = c->isnull, .bytes = c->fed};
	TupleHead  *head = (TupleHead *) c->fed;
	GsPut		put;

	head->tid = tuple->t_self;
	head->len = tuple->t_len;
	memcpy(head + 1, tuple->t_data, tuple->t_len);
	row.n_bytes = sizeof(TupleHead) + tuple->t_len;

	FormIndexDatum(c->info, c->slot, c->estate, c->values, c->isnull);
	c->values[c->nkeys] = PointerGetDatum(&head->tid);
	c->isnull[c->nkeys] = false;
	put = gs_feeder_put(c->feeder, &row);
	if (c->info->ii_Expressions != NIL)
		ResetPerTupleExprContext(c->estate);
	return put;
}

static GsPut
put_all(Copying *c)
{
	TableScanDesc scan = gs_compat_beginscan(c->old_heap, SnapshotAny);
	HeapScanDesc heap_scan = (HeapScanDesc) scan;
	BlockNumber block = InvalidBlockNumber;
	GsPut		put = GS_PUT_OK;

	pgstat_progress_update_param(PROGRESS_REPACK_TOTAL_HEAP_BLKS, heap_scan->rs_nblocks);
	while (put == GS_PUT_OK && table_scan_getnextslot(scan, ForwardScanDirection, c->slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(c->slot, false, NULL);

		CHECK_FOR_INTERRUPTS();
		if (heap_scan->rs_cblock != block)
		{
			block = heap_scan->rs_cblock;

			/* the scan may begin in the middle of the table */
			pgstat_progress_update_param(PROGRESS_REPACK_HEAP_BLKS_SCANNED,
										 (block + heap_scan->rs_nblocks - heap_scan->rs_startblock) %
										 heap_scan->rs_nblocks + 1);
		}
		if (is_dead(c, tuple, ((BufferHeapTupleTableSlot *) c->slot)->buffer))
			continue;
		put = put_tuple(c, tuple);
		c->tuples += 1;
		pgstat_progress_update_param(PROGRESS_REPACK_HEAP_TUPLES_SCANNED, c->tuples);
	}
	if (put == GS_PUT_OK)
		pgstat_progress_update_param(PROGRESS_REPACK_HEAP_BLKS_SCANNED, heap_scan->rs_nblocks);
	table_endscan(scan);
	return put == GS_PUT_OK ? gs_feeder_finish(c->feeder) : put;
}

static GsPut
scan_table(Copying *c, const GsKeyDesc *desc)
{
	Relation	heap = c->old_heap;
	bool		has_labels = gs_key_has_labels(desc);
	GsPut		put;

	pgstat_progress_update_param(PROGRESS_REPACK_PHASE, PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP);
	c->feeder = gs_feeder_create(c->client, desc);
	c->info = BuildIndexInfo(c->index);
	c->nkeys = c->info->ii_NumIndexKeyAttrs;
	c->toast = gs_toast_reader_create();
	c->fed = palloc(sizeof(TupleHead) + BLCKSZ);
	c->slot = table_slot_create(heap, NULL);
	c->estate = CreateExecutorState();
	GetPerTupleExprContext(c->estate)->ecxt_scantuple = c->slot;

	/* labels of enums are numbered by the active snapshot, which may be older than the rows */
	if (has_labels)
		PushActiveSnapshot(GetLatestSnapshot());
	put = put_all(c);
	gs_toast_reader_close(c->toast);
	if (has_labels)
		PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(c->slot);
	FreeExecutorState(c->estate);
	return put;
}

/* Must a tuple be formed anew?  It may be older than a column, or have an OID, as tables once had. */
static inline bool
is_outdated(const Copying *c, HeapTupleHeader tuple)
{
	return c->has_dropped || (tuple->t_infomask & HEAP_HASOID_OLD) ||
		HeapTupleHeaderGetNatts(tuple) < RelationGetDescr(c->new_heap)->natts;
}

/* Writes a tuple of the old table.  Overwrites t_data, which is in memory of the caller. */
static void
write_tuple(Copying *c, HeapTuple tuple)
{
	TupleDesc	tupdesc = RelationGetDescr(c->new_heap);
	HeapTupleHeaderData old_header;
	HeapTupleData old = *tuple;

	if (unlikely(is_outdated(c, tuple->t_data)))
	{
		HeapTuple	formed;

		heap_deform_tuple(tuple, RelationGetDescr(c->old_heap), c->columns, c->nulls);
		for (int i = 0; i < tupdesc->natts; i++)
			if (TupleDescAttr(tupdesc, i)->attisdropped)
				c->nulls[i] = true;
		formed = heap_form_tuple(tupdesc, c->columns, c->nulls);
		rewrite_heap_tuple(c->rewrite, tuple, formed);
		heap_freetuple(formed);
	}
	else
	{
		/* of the old tuple, rewriteheap.c reads the header only */
		memcpy(&old_header, tuple->t_data, SizeofHeapTupleHeader);
		old.t_data = &old_header;
		rewrite_heap_tuple(c->rewrite, &old, tuple);
	}
	c->written += 1;
	pgstat_progress_update_param(PROGRESS_REPACK_HEAP_TUPLES_INSERTED, c->written);
}

static HeapTupleData
tuple_of_row(const Copying *c, const char *row)
{
	TupleHead  *head = (TupleHead *) row;

	return (HeapTupleData){
		.t_len = head->len,
		.t_self = head->tid,
		.t_tableOid = RelationGetRelid(c->old_heap),
		.t_data = (HeapTupleHeader) (head + 1),
	};
}

/* Writes a row and its ties, which have the same inexact key, in the index's order. */
static GsClientStatus
write_ties(Copying *c, GsRows *rows, const char *row)
{
	HeapTupleData tuple = tuple_of_row(c, row);
	HeapTuple	sorted;
	GsClientStatus status;
	uint32		flags;
	Tuplesortstate *ties;

	ties = tuplesort_begin_cluster(RelationGetDescr(c->old_heap), c->index,
										  maintenance_work_mem, NULL, TUPLESORT_NONE);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		tuplesort_putheaptuple(ties, &tuple);
		c->settled++;
		status = gs_rows_peek(rows, &flags);
		if (status != GS_CLIENT_OK || !(flags & GS_ENTRY_TIE))
			break;
		status = gs_rows_move(rows, true, &row, &flags);
		if (status != GS_CLIENT_OK)
			break;
		tuple = tuple_of_row(c, row);
	}
	if (status == GS_CLIENT_OK)
	{
		tuplesort_performsort(ties);
		while ((sorted = tuplesort_getheaptuple(ties, true)) != NULL)
		{
			CHECK_FOR_INTERRUPTS();
			write_tuple(c, sorted);
		}
	}
	tuplesort_end(ties);
	return status;
}

static GsClientStatus
write_table(Copying *c)
{
	TupleDesc	tupdesc = RelationGetDescr(c->new_heap);
	GsRows	   *rows = gs_rows_of_session(c->client, true);
	GsClientStatus status;
	const char *row;
	uint32		flags;

	pgstat_progress_update_param(PROGRESS_REPACK_PHASE, PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP);
	for (int i = 0; i < tupdesc->natts; i++)
		c->has_dropped |= TupleDescAttr(tupdesc, i)->attisdropped;
	c->columns = palloc(tupdesc->natts * sizeof(Datum));
	c->nulls = palloc(tupdesc->natts * sizeof(bool));
	c->rewrite = begin_heap_rewrite(c->old_heap, c->new_heap, c->oldest_xmin,
									c->xid_cutoff, c->multi_cutoff);
	while ((status = gs_rows_move(rows, true, &row, &flags)) == GS_CLIENT_OK && row)
	{
		CHECK_FOR_INTERRUPTS();
		if (unlikely(flags & GS_ENTRY_INEXACT))
			status = write_ties(c, rows, row);
		else
		{
			HeapTupleData tuple = tuple_of_row(c, row);

			write_tuple(c, &tuple);
		}
		if (unlikely(status != GS_CLIENT_OK))
			break;
	}
	gs_rows_end(rows);
	if (status == GS_CLIENT_OK)
		end_heap_rewrite(c->rewrite);
	return status;
}

static GsFallback
copy_with_device(Copying *c, const GsKeyDesc *desc)
{
	GsSessionSpec spec = {.key_columns = desc->ncols};
	GsFallback	reason;
	GsClientStatus status;
	instr_time	start;
	const GsSession *session;

	c->client = gs_client_open(&spec, 1, &reason);
	if (c->client == NULL)
		return reason;

	INSTR_TIME_SET_CURRENT(start);
	reason = gs_put_fallback(c->client, scan_table(c, desc));
	if (reason != GS_FALLBACK_NONE)
		return reason;

	pgstat_progress_update_param(PROGRESS_REPACK_PHASE, PROGRESS_REPACK_PHASE_SORT_TUPLES);
	status = gs_client_perform(c->client, false);
	if (status != GS_CLIENT_OK)
		return gs_client_fallback(c->client, status);

	session = gs_client_session(c->client);
	if ((double) session->outcome.n_rows != c->tuples)
		elog(ERROR, "gpusort sorted " UINT64_FORMAT " tuples of %.0f", session->outcome.n_rows, c->tuples);
	status = write_table(c);
	if (status != GS_CLIENT_OK)
		return GS_FALLBACK_LOST;

	gs_client_count_sort(c->client);
	gs_stats_sort(GS_KIND_TABLE, session->outcome.n_rows, gs_stats_lap_ms(&start));
	ereport(DEBUG1,
			(errmsg_internal("gpusort sorted table \"%s\" by index \"%s\": %.0f tuples, engine %s, %u runs, " UINT64_FORMAT " settled",
							 RelationGetRelationName(c->old_heap),
							 RelationGetRelationName(c->index), c->written, session->outcome.engine,
							 session->outcome.n_runs, c->settled)));
	return GS_FALLBACK_NONE;
}

/* Resets progress and the new table, as if nothing had been done yet. */
static void
clear_traces(Copying *c)
{
	const int	indexes[] = {
		PROGRESS_REPACK_HEAP_TUPLES_SCANNED,
		PROGRESS_REPACK_HEAP_TUPLES_INSERTED,
		PROGRESS_REPACK_TOTAL_HEAP_BLKS,
		PROGRESS_REPACK_HEAP_BLKS_SCANNED
	};
	const int64 values[] = {0, 0, 0, 0};

	pgstat_progress_update_multi_param(lengthof(indexes), indexes, values);
	if (c->rewrite)
		heap_truncate_one_rel(c->new_heap);
}

/*
 * Copies the table.  False: PostgreSQL must copy it; new_heap is empty, as before.  scan_is_cheaper:
 * reading the table by the index costs less than a sort.
 */
static bool
copy_sorted(Copying *c, bool scan_is_cheaper)
{
	/* the context frees everything that a copy holds, as in an index build */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort copy of a table",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GsKeyDesc  *desc = gs_index_accept_copy(c->old_heap, c->index, scan_is_cheaper);
	GsFallback	reason = GS_FALLBACK_NONE;

	if (desc)
		reason = copy_with_device(c, desc);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (reason == GS_FALLBACK_NONE)
		return desc != NULL;

	gs_stats_fallback(reason);
	ereport(DEBUG1,
			(errmsg_internal("gpusort: sort of table \"%s\" by index \"%s\" falls back to PostgreSQL: %s",
							 RelationGetRelationName(c->old_heap),
							 RelationGetRelationName(c->index), gs_fallback_name(reason))));
	clear_traces(c);
	return false;
}

/*
 * The hooks
 */

/* A table whose functions are ours now, and the planner's state for it. */
typedef struct TakenTable
{
	Relation	table;			/* NULL: none */
	PlannerInfo *root;
	RelOptInfo *rel;
} TakenTable;

static ProcessUtility_hook_type next_utility;
static gs_compat_relation_hook_type previous_relation_hook = NULL;
static TableAmRoutine heap_with_copy;	/* heap's functions, and copy_table() */
static bool in_command = false; /* CLUSTER or REPACK */
static TakenTable taken;

static TakenTable
give_back(void)
{
	TakenTable	was = taken;

	if (was.table)
		was.table->rd_tableam = GetHeapamTableAmRoutine();
	memset(&taken, 0, sizeof(taken));
	return was;
}

/* A relcache callback.  The command still holds the entry of the table that was taken. */
static void
forget_table(Datum arg, Oid table)
{
	if (taken.table && (!OidIsValid(table) || table == RelationGetRelid(taken.table)))
		(void) give_back();
}

/*
 * Does reading the rows by the index cost less than a sort by gpusort?  PostgreSQL only compares
 * the former with its own sort.
 */
static bool
scan_is_cheaper(const TakenTable *of, Oid index)
{
	PlannerInfo *root = of->root;
	RelOptInfo *rel = of->rel;
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);
		QualCost	expressions;
		IndexPath  *by_index;
		GsSortInput rows = {.rows = rel->rows, .width = rel->reltarget->width, .columns = info->ncolumns + 1,
							.type = info->opcintype[0], .collation = info->indexcollations[0]};
		GsTime		by_sort = {0};

		if (info->indexoid != index)
			continue;

		/* as in plan_cluster_use_sort(); rel has been filled in since */
		by_index = create_index_path(root, info, NIL, NIL, NIL, NIL, ForwardScanDirection, false,
									 NULL, 1.0, false);
		cost_qual_eval(&expressions, info->indexprs, root);
		by_sort.last = by_sort.cpu = gs_time_feed(&rows) +
			gs_time_of(create_seqscan_path(root, rel, NULL, 0)->total_cost +
					   expressions.startup + expressions.per_tuple * rel->rows);
		by_sort = gs_time_device(by_sort, &rows, rel->rows, 0);
		return gs_time_of(by_index->path.total_cost) <= gs_time_of_part(&by_sort, 1.0);
	}
	return true;
}

/* The relation_copy_for_cluster() of a table that was taken. */
static void
copy_table(gs_compat_copy_params)
{
	TakenTable	was = give_back();

	Assert(was.table == old_heap);
	if (!gs_compat_copy_concurrent)
	{
		Copying		copying = {
			.old_heap = old_heap,
			.new_heap = new_heap,
			.index = index,
			.oldest_xmin = oldest_xmin,
			.xid_cutoff = *xid_cutoff,
			.multi_cutoff = *multi_cutoff
		};
		bool		cheaper = !use_sort && !gs_guc_force && scan_is_cheaper(&was, RelationGetRelid(index));

		if (copy_sorted(&copying, cheaper))
		{
			*tuples += copying.tuples;
			*vacuumed += copying.vacuumed;
			*recently_dead += copying.recently_dead;
			return;
		}
	}
	GetHeapamTableAmRoutine()->relation_copy_for_cluster(gs_compat_copy_args);
}

/* gpusort takes heaps.  Logical decoding must follow the copy of a catalog, which stays PostgreSQL's. */
static bool
can_take(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine() &&
		(table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW) &&
		!IsCatalogRelation(table) && !RelationIsAccessibleInLogicalDecoding(table);
}

static void
see_relation(gs_compat_relation_params)
{
	const RangeTblEntry *entry_of = planner_rt_fetch(rel->relid, root);
	Relation	table;

	if (previous_relation_hook)
		previous_relation_hook(gs_compat_relation_args);

	/*
	 * plan_cluster_use_sort() does not set inh.  The command's index builds come here later, from
	 * plan_create_index_workers(), which does: then the table is copied, and must not be taken again.
	 */
	if (!in_command || gs_guc_enabled == GS_ENABLED_OFF || entry_of->inh || !gs_has_no_query(root))
		return;
	Assert(taken.table == NULL);
	table = table_open(entry_of->relid, NoLock);
	if (can_take(table))
	{
		table->rd_tableam = &heap_with_copy;
		taken = (TakenTable){table, root, rel};
		if (GS_FAULT("cluster_planned"))
			elog(ERROR, "fault between the planner and the copy");
	}
	table_close(table, NoLock);
}

static void
run_utility(PlannedStmt *stmt, const char *query_string, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
			DestReceiver *dest, QueryCompletion *completion)
{
	bool		was_in_command = in_command;

	if (IsA(stmt->utilityStmt, ReindexStmt))
		gs_index_see_reindex((const ReindexStmt *) stmt->utilityStmt);
	if (!gs_compat_is_cluster(stmt->utilityStmt))
	{
		next_utility(stmt, query_string, read_only_tree, context, params, environment, dest, completion);
		return;
	}
	in_command = true;
	PG_TRY();
	{
		next_utility(stmt, query_string, read_only_tree, context, params, environment, dest, completion);
	}
	PG_FINALLY();
	{
		in_command = was_in_command;
		(void) give_back();
	}
	PG_END_TRY();
}

void
gs_cluster_init(void)
{
	heap_with_copy = *GetHeapamTableAmRoutine();
	heap_with_copy.relation_copy_for_cluster = copy_table;
	previous_relation_hook = gs_compat_relation_hook;
	gs_compat_relation_hook = see_relation;
	CacheRegisterRelcacheCallback(forget_table, (Datum) 0);
	next_utility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = run_utility;
}
