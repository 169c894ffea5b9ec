/*-------------------------------------------------------------------------
 *
 * heap_pages.c
 *	  The pages of a heap's scan, which returns some of their tuples; others are taken (heap_pages.h).
 *
 * Only this file reads and moves the scan's position, which is private to heap.  In page mode it is
 * rs_cindex, an index in rs_vistuples.  Otherwise it is the line pointer that heap looked at last.
 *
 * A release of PostgreSQL may keep the position elsewhere.  Then tuples would come twice, or never.  So the
 * position must be that of the tuple that the scan returned, and the scan must not pass over a tuple that
 * it had to return.
 *
 * Tests: regress/page_feed, regress/index_page_feed
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "chunk/tuple_map.h"
#include "compat.h"
#include "fault.h"
#include "feed/heap_pages.h"

/* Would an index build's scan return this tuple as alive?  The buffer is locked. */
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

/* Fills the page's entries. */
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

/* Checks the scan's position: it is at a tuple, or behind the last one. */
static void
check_position(const GsHeapPages *pages, uint32 at, bool good)
{
	for (uint32 i = pages->next; i < at && good; i++)
		good = pages->listed ? pages->chooses : !OffsetNumberIsValid(pages->entries[i]);
	if (!good)
		elog(ERROR, "scan of table \"%s\" is at tuple %u of block %u, but was to go on with tuple %u of %u",
			 RelationGetRelationName(pages->table), at, pages->block, pages->next, pages->end);
}

void
gs_heap_pages_see(GsHeapPages *pages, const ItemPointerData *tid)
{
	HeapScanDesc scan = pages->scan;
	OffsetNumber expected;
	uint32		at;

	pages->listed = (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0 && scan->rs_base.rs_nkeys == 0;
	if (!pages->listed && pages->entries == NULL)
		return;
	at = (pages->listed ? scan->rs_cindex : gs_compat_scan_offset(scan) - 1) + GS_FAULT("page_ahead");
	if (pages->page == NULL || scan->rs_cblock != pages->block)
	{
		gs_heap_pages_end(pages);
		pages->next = pages->page == NULL ? at : 0;
		pages->table = scan->rs_base.rs_rd;
		pages->block = scan->rs_cblock;
		pages->page = BufferGetPage(scan->rs_cbuf);
		gs_prefetch_page((char *) pages->page);
		pages->end = pages->listed ? scan->rs_ntuples : PageGetMaxOffsetNumber(pages->page);
		if (pages->entries)
			find_entries(pages);
	}
	check_position(pages, at, at >= pages->next && at < pages->end);
	expected = gs_heap_pages_offset(pages, at);
	if (pages->entries)
		expected = pages->entries[expected - 1];
	check_position(pages, at, ItemPointerGetBlockNumber(tid) == pages->block &&
				   (ItemPointerGetOffsetNumber(tid) == expected || !OffsetNumberIsValid(expected)));
	pages->next = at + 1;
}

void
gs_heap_pages_end(const GsHeapPages *pages)
{
	check_position(pages, pages->end, true);
}

void
gs_heap_pages_move(GsHeapPages *pages, uint32 next)
{
	uint32		last = next - 1 - GS_FAULT("page_repeated");

	if (pages->listed)
		pages->scan->rs_cindex = last;
	else
		gs_compat_scan_offset(pages->scan) = last + 1;
	pages->next = next;
}
