/*-------------------------------------------------------------------------
 *
 * page_scan.c
 *	  Feeding the tuples of a table's scan page by page (page_scan.h).
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
 * Tests: regress/page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "compat.h"
#include "nodes/feed/page_scan.h"
#include "plan/plan_walk.h"

struct GsPageScan
{
	ScanState  *child;
	GsTupleMap *map;			/* from the table's tuples to the scan's rows */
};

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

GsPageScan *
gs_page_scan_create(PlanState *child, const GsKeyDesc *desc)
{
	GsPageScan *scan;
	ScanState  *state = (ScanState *) child;
	AttrNumber *sources = NULL;
	Bitmapset  *key_columns = NULL;
	Relation	table;

	if (!IsA(child, SeqScanState) || child->qual != NULL || child->state->es_epq_active != NULL)
		return NULL;
	table = state->ss_currentRelation;
	if (table->rd_tableam != GetHeapamTableAmRoutine())
		return NULL;
	if (child->ps_ProjInfo != NULL && (sources = read_sources(child->plan)) == NULL)
		return NULL;

	for (int i = 0; i < desc->ncols; i++)
		key_columns = bms_add_member(key_columns, desc->cols[i].attno);
	scan = palloc(sizeof(GsPageScan));
	scan->child = state;
	scan->map = gs_tuple_map_create(RelationGetDescr(table), ExecGetResultType(child), sources,
									key_columns);
	return scan;
}

/* Do visible tuples take at least half of the page, so that it is worth copying? */
static bool
is_dense(const HeapScanDescData *heap, Page page, uint32 from, uint32 n)
{
	uint32		bytes = 0;

	for (uint32 i = from; i < n; i++)
		bytes += ItemIdGetLength(PageGetItemId(page, heap->rs_vistuples[i]));
	return bytes >= BLCKSZ / 2;
}

GsPut
gs_page_scan_feed(GsPageScan *scan, GsFeeder *feeder)
{
	HeapScanDesc heap = (HeapScanDesc) scan->child->ss_currentScanDesc;
	GsPutRow	row = {.map = scan->map};
	GsPut		put = GS_PUT_OK;
	Page		page;
	uint32		from;
	uint32		n;
	uint32		done = 0;

	/* a snapshot of another kind, or a scan that has ended */
	if (heap == NULL || (heap->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 || !heap->rs_inited ||
		!BufferIsValid(heap->rs_cbuf))
		return GS_PUT_OK;
	from = heap->rs_cindex + 1;
	if (from >= (uint32) heap->rs_ntuples)
		return GS_PUT_OK;
	n = heap->rs_ntuples - from;
	page = BufferGetPage(heap->rs_cbuf);
	if (scan->map->whole && is_dense(heap, page, from, from + n))
		put = gs_feeder_put_page(feeder, scan->map, page, heap->rs_vistuples + from, n, &done);
	else
	{
		/* the processor does not see which lines come next, as tuples lie in descending order */
		for (uint32 at = 0; at < BLCKSZ; at += 64)
			__builtin_prefetch((char *) page + at);
		for (; done < n && put == GS_PUT_OK; done += put == GS_PUT_OK)
		{
			ItemId		item = PageGetItemId(page, heap->rs_vistuples[from + done]);

			row.tuple = (HeapTupleHeader) PageGetItem(page, item);
			row.tuple_len = ItemIdGetLength(item);
			put = gs_tuple_map_read(scan->map, row.tuple) ? gs_feeder_put(feeder, &row) : GS_PUT_NO_KEY;
		}
	}
	if (done > 0)
	{
		heap->rs_cindex = from + done - 1;
		if (scan->child->ps.instrument)
			scan->child->ps.instrument->tuplecount += done;
		if (pgstat_should_count_relation(scan->child->ss_currentRelation))
			gs_compat_tuples_returned(scan->child->ss_currentRelation) += done;
	}
	return put;
}
