/*-------------------------------------------------------------------------
 *
 * heap_pages.h
 *	  The pages of a heap's scan: it returns some tuples of a page, and the caller takes the others itself.
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
	OffsetNumber *entries;		/* only for an index build, else NULL: the line pointer that an index entry
								 * has for each tuple of the page; invalid: the scan may skip the tuple */
	bool		chooses;		/* a condition drops some tuples of the scan */
	bool		listed;			/* the scan has listed the page's visible tuples, and returns these */
	Relation	table;
	BlockNumber block;
	Page		page;			/* NULL: none yet */
	uint32		next;			/* the number of the tuple with which the scan goes on */
	uint32		end;			/* the number of tuples */
} GsHeapPages;

/*
 * The scan has returned a tuple, or the index entry of one.  Raises an error if the scan is not at the
 * expected position, or has passed over a tuple that it had to return.  Does nothing if the scan neither
 * lists tuples nor is an index build's: then no tuples can be taken.
 */
extern void gs_heap_pages_see(GsHeapPages *pages, const ItemPointerData *tid);

/* The scan has ended.  It need not exist any more. */
extern void gs_heap_pages_end(const GsHeapPages *pages);

/* Moves the scan to this tuple, because the caller has taken the tuples before it. */
extern void gs_heap_pages_move(GsHeapPages *pages, uint32 next);

/* Returns the line pointer of tuple i, counted from 0. */
static inline OffsetNumber
gs_heap_pages_offset(const GsHeapPages *pages, uint32 i)
{
	return pages->listed ? pages->scan->rs_vistuples[i] : i + 1;
}

#endif							/* GS_HEAP_PAGES_H */
