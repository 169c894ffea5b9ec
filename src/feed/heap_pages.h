/*-------------------------------------------------------------------------
 *
 * heap_pages.h
 *	  The pages of a heap's scan, which returns some of their tuples; others are taken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HEAP_PAGES_H
#define GS_HEAP_PAGES_H

#include "access/heapam.h"

/* All fields except the first three begin as zeroes. */
typedef struct GsHeapPages
{
	HeapScanDesc scan;
	OffsetNumber *entries;		/* NULL, or for each line pointer of the page the one that an index entry of
								 * its tuple has; invalid: the scan need not return the tuple */
	bool		chooses;		/* a condition is between the scan and us */
	bool		listed;			/* the scan has listed the page's visible tuples, and returns these */
	Relation	table;
	BlockNumber block;
	Page		page;			/* NULL: none yet */
	uint32		next;			/* the scan goes on with this tuple, ... */
	uint32		end;			/* ... if there are so many */
} GsHeapPages;

/*
 * The scan returned a tuple, or the index entry of one.  An error if the scan is not where it was expected,
 * or has passed over a tuple that was due.  Does nothing if the scan neither lists tuples nor is an
 * index build's: no tuples can be taken then.
 */
extern void gs_heap_pages_see(GsHeapPages *pages, const ItemPointerData *tid);

/* The scan has ended, and may be gone. */
extern void gs_heap_pages_end(const GsHeapPages *pages);

/* The tuples before this one were taken: the scan is to go on with it. */
extern void gs_heap_pages_move(GsHeapPages *pages, uint32 next);

/* The line pointer of a tuple, counted from 0. */
static inline OffsetNumber
gs_heap_pages_offset(const GsHeapPages *pages, uint32 i)
{
	return pages->listed ? pages->scan->rs_vistuples[i] : i + 1;
}

#endif							/* GS_HEAP_PAGES_H */
