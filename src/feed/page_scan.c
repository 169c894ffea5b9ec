/*-------------------------------------------------------------------------
 *
 * page_scan.c
 *	  Feeding the tuples of a table's scan page by page (page_scan.h).
 *
 * A row's way from a heap page through the executor is heap_getnextslot(), a slot, slot_deform_heap_tuple()
 * and ExecProject().  It takes longer than everything that gpusort does with the row.  In page mode
 * heap_getnextslot() finds all visible tuples of a page at once, and keeps their numbers in its descriptor
 * (rs_vistuples).  So after it has returned the first tuple, all others are taken from there.
 *
 * The scan remains PostgreSQL's: the distribution of pages, visibility, hint bits, predicate locks,
 * synchronized scans and read-ahead.  Its position is moved behind the tuples that were taken
 * (feed/heap_pages.c).  Once the device's memory is full, rows come from the child as always.
 *
 * A row that cannot be fed is returned as the child would return it: gs_page_scan_next() replaces
 * ExecProcNode().  So no tuple's condition is evaluated twice, and no page is copied twice.
 *
 * The scan pins the page.  Visible tuples of a pinned page do not change, except for header fields about
 * visibility.
 *
 * If rows are the table's tuples, and take at least half of a page, the page is copied as a whole, and its
 * tuples become rows in place (gs_chunk_put_page()).  A copy of 8 kB costs less than a copy of each tuple.
 * Otherwise each row is written from its tuple.
 *
 * The scan's condition is evaluated here, for all tuples of a page before the first of them is fed.  If
 * memory is full, the scan evaluates it once more for the tuples that could not be fed.  So scans are not
 * fed by pages if their conditions have volatile functions, or subplans, which may contain some.
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
#include "utils/rel.h"

#include "compat.h"
#include "feed/heap_pages.h"
#include "feed/page_scan.h"

struct GsPageScan
{
	ScanState  *child;			/* the table's scan */
	GsTupleMap *map;			/* from the table's tuples to the scan's rows */
	HeapTupleData tuple;		/* in the slot of the scan */
	GsHeapPages pages;

	GsPageItems items;			/* visible tuples that meet the condition */
	uint16		at[MaxHeapTuplesPerPage];	/* the number of each among the page's visible ones */
	uint32		returned;		/* the number of rows returned, of items.left */

	/* an Append has only these */
	AppendState *append;
	GsPageScan **scans;			/* of its children; NULL: the child's pages cannot be fed */
};

/* Returns the attribute of each column of a scan; NULL: a column is no attribute. */
static AttrNumber *
read_sources(const Plan *plan)
{
	AttrNumber *sources = palloc(Max(list_length(plan->targetlist), 1) * sizeof(AttrNumber));
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;

		while (IsA(expr, RelabelType))
			expr = ((RelabelType *) expr)->arg;
		if (!IsA(expr, Var) || ((Var *) expr)->varattno <= 0)
			return NULL;
		sources[foreach_current_index(lc)] = ((Var *) expr)->varattno;
	}
	return sources;
}

static GsPageScan *
create_append(AppendState *append, const GsKeyDesc *desc)
{
	GsPageScan *scan = palloc0(sizeof(GsPageScan));
	bool		can_feed = false;

	/* asynchronous children do not return their rows one child after the other */
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
	scan->pages.chooses = child->qual != NULL;
	scan->map = gs_tuple_map_create(RelationGetDescr(table), ExecGetResultType(child), sources,
									key_columns);
	return scan;
}

/* Puts a tuple of the scan's page into its slot, as the scan does. */
static void
store_tuple(GsPageScan *scan, OffsetNumber offset)
{
	ScanState  *child = scan->child;
	GsHeapPages *pages = &scan->pages;
	ItemId		item = PageGetItemId(pages->page, offset);

	CHECK_FOR_INTERRUPTS();
	scan->tuple.t_data = (HeapTupleHeader) PageGetItem(pages->page, item);
	scan->tuple.t_len = ItemIdGetLength(item);
	scan->tuple.t_tableOid = RelationGetRelid(child->ss_currentRelation);
	ItemPointerSet(&scan->tuple.t_self, pages->block, offset);
	ExecStoreBufferHeapTuple(&scan->tuple, child->ss_ScanTupleSlot, pages->scan->rs_cbuf);
	ResetExprContext(child->ps.ps_ExprContext);
	child->ps.ps_ExprContext->ecxt_scantuple = child->ss_ScanTupleSlot;
}

/* Finds the rows of the current page that the scan did not return yet. */
static void
find_rows(GsPageScan *scan)
{
	ScanState  *child = scan->child;

	scan->items.page = scan->pages.page;
	scan->items.block = scan->pages.block;
	scan->items.n = scan->items.done = scan->items.left = scan->returned = 0;
	for (uint32 at = scan->pages.next; at < scan->pages.end; at++)
	{
		OffsetNumber offset = gs_heap_pages_offset(&scan->pages, at);

		if (child->ps.qual)
		{
			store_tuple(scan, offset);
			if (!ExecQual(child->ps.qual, child->ps.ps_ExprContext))
				continue;
		}
		scan->items.items[scan->items.n] = offset;
		scan->at[scan->items.n++] = at;
	}
	if (child->ps.qual)
		ExecClearTuple(child->ss_ScanTupleSlot);
}

/*
 * Feeds the rows that the scan would return next, up to the end of the page.  Returns how many rows the
 * scan need not return.
 */
static uint32
feed_page(GsPageScan *scan, GsFeeder *feeder)
{
	GsHeapPages *pages = &scan->pages;
	uint32		from = pages->next;
	uint32		done;

	/* a page is left in part only if the feeder has no room, or its sort is over */
	Assert(scan->returned == scan->items.left);
	find_rows(scan);
	gs_feeder_put_page(feeder, scan->map, &scan->items);

	/* the scan goes on with the first row that was not looked at */
	done = scan->items.done;
	gs_heap_pages_move(pages, done < scan->items.n ? scan->at[done] : pages->end);
	if (scan->child->ps.instrument)
	{
		scan->child->ps.instrument->tuplecount += done;
		InstrCountFiltered1(scan->child, pages->next - from - done);
	}
	if (pgstat_should_count_relation(scan->child->ss_currentRelation))
		gs_compat_tuples_returned(scan->child->ss_currentRelation) += pages->next - from;
	return done;
}

/* Returns the scan of the last row; NULL: its pages cannot be fed, or there is none. */
static GsPageScan *
current_scan(GsPageScan *scan)
{
	while (scan && scan->append)
		scan = scan->append->as_whichplan < 0 ? NULL : scan->scans[scan->append->as_whichplan];
	return scan;
}

/* Notes that the scan has ended, or each scan of an Append. */
static void
check_ends(const GsPageScan *scan)
{
	gs_heap_pages_end(&scan->pages);
	for (int i = 0; scan->append && i < scan->append->as_nplans; i++)
		if (scan->scans[i])
			check_ends(scan->scans[i]);
}

TupleTableSlot *
gs_page_scan_next(GsPageScan *top, GsFeeder *feeder)
{
	GsPageScan *scan = current_scan(top);
	TupleTableSlot *slot;

	if (scan && feeder && scan->pages.next < scan->pages.end)
	{
		uint32		done = feed_page(scan, feeder);

		for (GsPageScan *above = top; above != scan; above = above->scans[above->append->as_whichplan])
			if (above->append->ps.instrument)
				above->append->ps.instrument->tuplecount += done;
	}
	if (scan && scan->returned < scan->items.left)
	{
		store_tuple(scan, scan->items.items[scan->returned++]);
		return scan->child->ps.ps_ProjInfo ? ExecProject(scan->child->ps.ps_ProjInfo) :
			scan->child->ss_ScanTupleSlot;
	}
	slot = ExecProcNode(top->append ? &top->append->ps : &top->child->ps);
	if (TupIsNull(slot))
		check_ends(top);
	else if ((scan = current_scan(top)) != NULL)
	{
		scan->pages.scan = (HeapScanDesc) scan->child->ss_currentScanDesc;
		gs_heap_pages_see(&scan->pages, &scan->child->ss_ScanTupleSlot->tts_tid);
	}
	return slot;
}
