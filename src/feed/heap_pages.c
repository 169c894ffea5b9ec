/*-------------------------------------------------------------------------
 *
 * heap_pages.c
 *	  The pages of a heap's scan, of which it returns some tuples, and others are taken (heap_pages.h).
 *
 * Whoever feeds pages lets the scan return a tuple, takes those that follow in its page, and moves the
 * scan's position behind them.  The position is private to heap's scan.  This file alone reads and moves it:
 * in page mode rs_cindex, an index in rs_vistuples; otherwise the line pointer that heap looked at last.
 *
 * A release of PostgreSQL may keep the position elsewhere, too.  Then tuples would be returned twice, or
 * never, and no other check would notice.  So each tuple that the scan returns is compared with the
 * position, and for each page the tuples that were taken and returned must be all that it has.  If the
 * scan's node has a condition, it passes over tuples that do not meet it.  Then this holds for the tuples
 * behind the first that is returned.
 *
 * Tests: regress/page_feed, regress/index_page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "chunk/tuple_map.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "fault.h"
#include "feed/heap_pages.h"

bool
gs_heap_pages_listed(const HeapScanDescData *scan)
{
	return (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0 && scan->rs_base.rs_nkeys == 0 &&
		scan->rs_inited && BufferIsValid(scan->rs_cbuf);
}

/* Would heap's scan of all tuples index this one, as alive?  The buffer is locked. */
static bool
is_alive(const GsHeapPages *pages, HeapTupleHeader header, uint32 len, OffsetNumber offset)
{
	HeapTupleData tuple = {
		.t_len = len,
		.t_tableOid = RelationGetRelid(pages->scan->rs_base.rs_rd),
		.t_data = header
	};
	TransactionId dead_after;

	ItemPointerSet(&tuple.t_self, pages->block, offset);
	switch (HeapTupleSatisfiesVacuumHorizon(&tuple, pages->scan->rs_cbuf, &dead_after))
	{
		case HEAPTUPLE_LIVE:
			return true;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header));
		default:
			return false;
	}
}

/* Fill the page's entries. */
static void
find_entries(GsHeapPages *pages)
{
	Page		page = pages->page;
	Buffer		buffer = pages->scan->rs_cbuf;
	OffsetNumber roots[MaxHeapTuplesPerPage];
	bool		has_roots = false;
	bool		all_alive;
	OffsetNumber max;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	all_alive = pages->listed || PageIsAllVisible(page);
	max = PageGetMaxOffsetNumber(page);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		OffsetNumber entry = InvalidOffsetNumber;

		if (ItemIdIsNormal(item))
		{
			HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);

			if (all_alive || is_alive(pages, tuple, ItemIdGetLength(item), offset))
				entry = offset;
			if (unlikely(HeapTupleHeaderIsHeapOnly(tuple)) && entry == offset)
			{
				if (!has_roots)
					heap_get_root_tuples(page, roots);
				has_roots = true;
				entry = roots[offset - 1];
			}
		}
		pages->entries[offset - 1] = entry;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

static void
report_position(const GsHeapPages *pages, uint32 at)
{
	elog(ERROR, "scan of table \"%s\" is at tuple %u of block %u, but was to go on with tuple %u of %u",
		 RelationGetRelationName(pages->scan->rs_base.rs_rd), at, pages->block, pages->next, pages->end);
}

/* The scan passes tuples over, up to one of the page. */
static void
pass(const GsHeapPages *pages, uint32 to)
{
	for (uint32 i = pages->next; i < to; i++)
		if (pages->listed ? !pages->chooses : OffsetNumberIsValid(pages->entries[i]))
			report_position(pages, to);
}

void
gs_heap_pages_see(GsHeapPages *pages, const ItemPointerData *tid)
{
	HeapScanDesc scan = pages->scan;
	uint32		at;
	OffsetNumber expected;

	/* as if heap had read ahead */
	if (GS_FAULT("page_ahead"))
		scan->rs_cindex++;
	at = pages->listed ? scan->rs_cindex : gs_compat_scan_offset(scan) - 1;
	if (scan->rs_cblock != pages->block)
	{
		bool		begins = pages->block == InvalidBlockNumber && pages->entries == NULL;

		gs_heap_pages_end(pages);
		pages->block = scan->rs_cblock;
		pages->page = BufferGetPage(scan->rs_cbuf);
		gs_prefetch_page((char *) pages->page);
		pages->next = begins ? at : 0;
		pages->end = pages->listed ? scan->rs_ntuples : PageGetMaxOffsetNumber(pages->page);
		if (pages->entries)
			find_entries(pages);
	}
	if (at < pages->next || at >= pages->end)
		report_position(pages, at);
	expected = gs_heap_pages_offset(pages, at);
	if (pages->entries)
		expected = pages->entries[expected - 1];
	if (OffsetNumberIsValid(expected) &&
		(ItemPointerGetBlockNumber(tid) != pages->block || ItemPointerGetOffsetNumber(tid) != expected))
		report_position(pages, at);
	pass(pages, at);
	pages->next = at + 1;
}

void
gs_heap_pages_end(const GsHeapPages *pages)
{
	if (pages->block != InvalidBlockNumber)
		pass(pages, pages->end);
}

void
gs_heap_pages_move(GsHeapPages *pages, uint32 next)
{
	/* as if heap kept its position elsewhere */
	uint32		last = GS_FAULT("page_repeated") ? next - 2 : next - 1;

	if (pages->listed)
		pages->scan->rs_cindex = last;
	else
		gs_compat_scan_offset(pages->scan) = last + 1;
	pages->next = next;
}
