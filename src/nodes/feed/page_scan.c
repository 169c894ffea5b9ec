/*-------------------------------------------------------------------------
 *
 * page_scan.c
 *	  Feeding the tuples of a table's scan page by page (gpufeed.h).
 *
 * A row's way from a heap page through the executor, heap_getnextslot(), a slot,
 * slot_deform_heap_tuple() and ExecProject(), takes longer than all that gpusort does with it.
 * In page mode heap_getnextslot() finds out at once which tuples of a page are visible, and
 * keeps their numbers in its descriptor (rs_vistuples).  So after it returned the first of them,
 * all others can be taken from there.
 *
 * The scan remains PostgreSQL's: who reads which page, visibility, hint bits, predicate locks,
 * synchronized scans and read-ahead.  This file reads rs_vistuples, and moves rs_cindex, the index of
 * the tuple that was returned last: forward, behind the tuples that it has fed.  So any row that needs
 * another treatment is simply not taken, and comes from the child as always: a row too large for a
 * chunk, of a tuple that lacks a new column, or after the device's memory is full.
 *
 * The page is pinned by the scan, and visible tuples of a pinned page stay as they are, except for
 * header fields that concern visibility.
 *
 * If rows are the table's tuples, and take at least half of a page, the page is copied as it is, and
 * its tuples become rows where they lie (gs_chunk_put_page()).  A copy of 8 kB costs less than
 * one of each tuple.  Otherwise each row is written from its tuple.
 *
 * The scan's condition is evaluated here, for all tuples of a page before the first of them is fed.  For
 * tuples that could not be fed the scan evaluates it once more.  So scans whose conditions have volatile
 * functions, or subplans, which may have some, are not fed by pages.
 *
 * An Append returns rows of one child after the other, each of which may be such a scan, or another Append.
 *
 * Tests: regress/page_feed, isolation/scan_snapshot
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "compat.h"
#include "nodes/feed/gpufeed.h"
#include "plan/plan_walk.h"

struct GsPageScan
{
	ScanState  *child;			/* the table's scan */
	GsTupleMap *map;			/* from the table's tuples to the scan's rows */
	HeapTupleData tuple;		/* for which the condition is evaluated */

	/* an Append has these, and nothing of the above */
	AppendState *append;
	GsPageScan **scans;			/* of its children; NULL: one whose pages cannot be fed */
};

/* The tuples of a page that are rows: visible, and they meet the condition. */
typedef struct PageRows
{
	uint32		n;
	OffsetNumber items[MaxHeapTuplesPerPage];	/* their line pointers */
	uint16		at[MaxHeapTuplesPerPage];	/* their indexes in rs_vistuples */
} PageRows;

/* The attribute that each column of a scan is; NULL: one of them is something else. */
static AttrNumber *
read_sources(const Plan *plan)
{
	AttrNumber *sources = palloc(Max(list_length(plan->targetlist), 1) * sizeof(AttrNumber));
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		const Var  *var = (const Var *) gs_plan_strip_relabel((Node *) expr);

		if (!IsA(var, Var) || var->varattno <= 0)
			return NULL;
		sources[foreach_current_index(lc)] = var->varattno;
	}
	return sources;
}

static GsPageScan *
create_append(AppendState *append, const GsKeyDesc *desc)
{
	GsPageScan *scan = palloc0(sizeof(GsPageScan));
	bool		can_feed = false;

	/* then rows do not come from one child after the other */
	if (append->as_nasyncplans > 0)
		return NULL;
	scan->append = append;
	scan->scans = palloc(append->as_nplans * sizeof(GsPageScan *));
	for (int i = 0; i < append->as_nplans; i++)
	{
		scan->scans[i] = gs_page_scan_create(append->appendplans[i], desc);
		can_feed |= scan->scans[i] != NULL;
	}
	return can_feed ? scan : NULL;
}

GsPageScan *
gs_page_scan_create(PlanState *child, const GsKeyDesc *desc)
{
	GsPageScan *scan;
	ScanState  *state = (ScanState *) child;
	AttrNumber *sources = NULL;
	Bitmapset  *key_columns = NULL;
	Relation	table;

	if (IsA(child, AppendState))
		return create_append((AppendState *) child, desc);
	if (!IsA(child, SeqScanState) || child->state->es_epq_active != NULL ||
		child->subPlan != NIL || contain_volatile_functions((Node *) child->plan->qual))
		return NULL;
	table = state->ss_currentRelation;
	if (table->rd_tableam != GetHeapamTableAmRoutine())
		return NULL;
	if (child->ps_ProjInfo != NULL && (sources = read_sources(child->plan)) == NULL)
		return NULL;

	for (int i = 0; i < desc->ncols; i++)
		if (desc->cols[i].parent == NULL)
			key_columns = bms_add_member(key_columns, desc->cols[i].attno);
	scan = palloc0(sizeof(GsPageScan));
	scan->child = state;
	scan->map = gs_tuple_map_create(RelationGetDescr(table), ExecGetResultType(child), sources,
									key_columns);
	return scan;
}

/* Does a tuple of the scan's page meet the scan's condition? */
static bool
meets_condition(GsPageScan *scan, HeapScanDesc heap, ItemId item, OffsetNumber offset)
{
	ScanState  *child = scan->child;
	TupleTableSlot *slot = child->ss_ScanTupleSlot;
	ExprContext *econtext = child->ps.ps_ExprContext;

	CHECK_FOR_INTERRUPTS();
	scan->tuple.t_data = (HeapTupleHeader) PageGetItem(BufferGetPage(heap->rs_cbuf), item);
	scan->tuple.t_len = ItemIdGetLength(item);
	scan->tuple.t_tableOid = RelationGetRelid(heap->rs_base.rs_rd);
	ItemPointerSet(&scan->tuple.t_self, heap->rs_cblock, offset);
	ExecStoreBufferHeapTuple(&scan->tuple, slot, heap->rs_cbuf);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	return ExecQual(child->ps.qual, econtext);
}

/* The rows of the scan's page, from an index in rs_vistuples on. */
static void
find_rows(GsPageScan *scan, HeapScanDesc heap, uint32 from, PageRows *rows)
{
	Page		page = BufferGetPage(heap->rs_cbuf);

	rows->n = 0;
	for (uint32 at = from; at < (uint32) heap->rs_ntuples; at++)
	{
		OffsetNumber offset = heap->rs_vistuples[at];

		if (scan->child->ps.qual &&
			!meets_condition(scan, heap, PageGetItemId(page, offset), offset))
			continue;
		rows->items[rows->n] = offset;
		rows->at[rows->n++] = at;
	}
	if (scan->child->ps.qual)
		ExecClearTuple(scan->child->ss_ScanTupleSlot);
}

/* Do rows take at least half of the page, so that it is worth copying? */
static bool
is_dense(Page page, const PageRows *rows)
{
	uint32		bytes = 0;

	for (uint32 i = 0; i < rows->n; i++)
		bytes += ItemIdGetLength(PageGetItemId(page, rows->items[i]));
	return bytes >= BLCKSZ / 2;
}

/* Feed rows; adds the number of those that were fed to *done. */
static GsPut
put_rows(GsPageScan *scan, GsFeeder *feeder, Page page, const PageRows *rows, uint32 *done)
{
	GsPutRow	row = {.map = scan->map};
	GsPut		put = GS_PUT_OK;

	if (scan->map->whole && is_dense(page, rows))
		return gs_feeder_put_page(feeder, scan->map, page, rows->items, rows->n, done);
	for (; *done < rows->n && put == GS_PUT_OK; *done += put == GS_PUT_OK)
	{
		ItemId		item = PageGetItemId(page, rows->items[*done]);

		row.tuple = (HeapTupleHeader) PageGetItem(page, item);
		row.tuple_len = ItemIdGetLength(item);
		put = gs_tuple_map_read(scan->map, row.tuple) ? gs_feeder_put(feeder, &row) : GS_PUT_NO_KEY;
	}
	return put;
}

/* The scan that an Append's last row came from; NULL: its pages cannot be fed. */
static inline GsPageScan *
current_scan(const GsPageScan *scan)
{
	return scan->scans[scan->append->as_whichplan];
}

GsPut
gs_page_scan_feed(GsPageScan *scan, GsFeeder *feeder)
{
	const GsPageScan *top = scan;
	HeapScanDesc heap;
	GsPut		put;
	Page		page;
	PageRows	rows;
	uint32		from;
	uint32		end;
	uint32		done = 0;

	while (scan && scan->append)
		scan = current_scan(scan);
	if (scan == NULL)
		return GS_PUT_OK;
	/* a snapshot of another kind, or a scan that has ended */
	heap = (HeapScanDesc) scan->child->ss_currentScanDesc;
	if (heap == NULL || (heap->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 || !heap->rs_inited ||
		!BufferIsValid(heap->rs_cbuf))
		return GS_PUT_OK;
	from = heap->rs_cindex + 1;
	if (from >= (uint32) heap->rs_ntuples)
		return GS_PUT_OK;

	page = BufferGetPage(heap->rs_cbuf);
	gs_prefetch_page((char *) page);
	find_rows(scan, heap, from, &rows);
	put = put_rows(scan, feeder, page, &rows, &done);

	if (done > 0)
		gs_feeder_count_page(feeder);

	/* the scan goes on with the row that was not fed */
	end = done < rows.n ? rows.at[done] : (uint32) heap->rs_ntuples;
	heap->rs_cindex = end - 1;
	if (scan->child->ps.instrument)
	{
		scan->child->ps.instrument->tuplecount += done;
		InstrCountFiltered1(scan->child, end - from - done);
	}
	for (; top->append; top = current_scan(top))
		if (top->append->ps.instrument)
			top->append->ps.instrument->tuplecount += done;
	if (pgstat_should_count_relation(scan->child->ss_currentRelation))
		gs_compat_tuples_returned(scan->child->ss_currentRelation) += end - from;
	return put;
}
