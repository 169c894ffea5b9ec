/*-------------------------------------------------------------------------
 *
 * heap_pages.h
 *	  The pages of a heap's scan, of which it returns some tuples, and others are taken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HEAP_PAGES_H
#define GS_HEAP_PAGES_H

#include "access/heapam.h"
#include "storage/bufpage.h"

typedef struct GsHeapPages
{
	HeapScanDesc scan;
	bool		listed;			/* it lists the visible tuples of a page, and returns these */
	bool		chooses;		/* what returns its tuples leaves some of them out */
	OffsetNumber *entries;		/* NULL, or for each line pointer of the page the one that an index entry of
								 * its tuple has; invalid: the scan need not return it */

	/* the page */
	BlockNumber block;			/* InvalidBlockNumber: the scan has not been seen yet */
	Page		page;
	uint32		next;			/* where the scan goes on, if there are so many tuples */
	uint32		end;
} GsHeapPages;

/* Is a scan in a page whose visible tuples it has listed, all of which it returns? */
extern bool gs_heap_pages_listed(const HeapScanDescData *scan);

/*
 * The scan returned a tuple, or the index entry of one.  An error if the scan is not where it was
 * expected, or has passed over a tuple that was to be returned.
 */
extern void gs_heap_pages_see(GsHeapPages *pages, const ItemPointerData *tid);

/* The scan has ended.  An error if it has passed over tuples. */
extern void gs_heap_pages_end(const GsHeapPages *pages);

/* The line pointer of a tuple of the page, which are counted from 0. */
static inline OffsetNumber
gs_heap_pages_offset(const GsHeapPages *pages, uint32 i)
{
	return pages->listed ? pages->scan->rs_vistuples[i] : i + 1;
}

/* The tuples before this one were taken: the scan is to go on with it. */
extern void gs_heap_pages_move(GsHeapPages *pages, uint32 next);

#endif							/* GS_HEAP_PAGES_H */
