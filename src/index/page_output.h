/*-------------------------------------------------------------------------
 *
 * page_output.h
 *	  Writing the pages of a new relation past shared buffers, by this process or
 *	  parallel workers.
 *
 * Calling protocol:
 *	  1. gs_page_output_begin
 *	  2. gs_page_output_alloc a page, fill it in, gs_page_output_write it; any
 *		 number of times, pages in any order, several of them in work at once
 *	  3. gs_page_output_end, or gs_page_output_cancel
 *	  An error leaves blocks behind that go with the relation file, which must
 *	  have been created by this transaction.
 *
 * If there are workers, the process is in parallel mode between 1 and 3.  Their errors are
 * raised here, by one of these functions or CHECK_FOR_INTERRUPTS().
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
 * Begin the output of an index, in CurrentMemoryContext, with up to n_workers workers.
 * concurrent: the locks held on the index and its table are those of a concurrent build.
 */
extern GsPageOutput *gs_page_output_begin(Relation heap, Relation index, bool concurrent, int n_workers);

/* A page to fill in, with undefined contents. */
extern Page gs_page_output_alloc(GsPageOutput *output);

/* Takes the page over.  Each block may be written only once. */
extern void gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page);

/* Workers have ended when these return.  After end, all pages are as durable as a commit requires. */
extern void gs_page_output_end(GsPageOutput *output);
extern void gs_page_output_cancel(GsPageOutput *output);

#endif							/* GS_PAGE_OUTPUT_H */
