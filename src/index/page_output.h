/*-------------------------------------------------------------------------
 *
 * page_output.h
 *	  Writing the pages of a new relation past shared buffers.
 *
 * Calling protocol:
 *	  1. gs_page_output_begin
 *	  2. gs_page_output_alloc a page, fill it in, gs_page_output_write it; any
 *		 number of times, pages in any order, several of them in work at once
 *	  3. gs_page_output_end
 *	  An error leaves blocks behind that go with the relation file, which must
 *	  have been created by this transaction.
 *
 * Several processes may write at once:
 *	  1. gs_page_output_begin, in one of them
 *	  2. gs_page_output_batch, in all of them
 *	  3. gs_page_output_end, in the one, when the others have ended
 *	  Before a block is written whose number is a multiple of RELSEG_SIZE, or a
 *	  higher one, all batches must have ended, and gs_page_output_reserve been
 *	  called for that number.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAGE_OUTPUT_H
#define GS_PAGE_OUTPUT_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/relcache.h"

typedef struct GsPageOutput GsPageOutput;

/*
 * Everything is allocated in the memory context that is current here, and goes
 * with it.
 */
extern GsPageOutput *gs_page_output_begin(Relation rel);

/* A page to fill in, of any content now. */
extern Page gs_page_output_alloc(GsPageOutput *output);

/* Takes the page over.  A block may be written once. */
extern void gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page);

/*
 * Write pages, at most XLR_MAX_BLOCK_ID, at once.  Changes their LSNs and
 * checksums.
 */
extern void gs_page_output_batch(Relation rel, int n, BlockNumber *blocks, Page *pages);

/* The file has so many blocks, or more, when this returns. */
extern void gs_page_output_reserve(Relation rel, BlockNumber n_blocks);

/* All pages are where a commit needs them to be when this returns. */
extern void gs_page_output_end(GsPageOutput *output);

#endif							/* GS_PAGE_OUTPUT_H */
