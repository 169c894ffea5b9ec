/*-------------------------------------------------------------------------
 *
 * page_relay.h
 *	  Has parallel workers write the pages of a new relation.
 *
 * It takes the place of page_output.h for who fills the pages:
 *	  1. gs_page_relay_begin
 *	  2. gs_page_relay_alloc a page, fill it in, gs_page_relay_write it; several
 *		 of them may be in work at once
 *	  3. gs_page_relay_finish, or gs_page_relay_cancel
 *	  Between 1 and 3 the process is in parallel mode.  The workers' errors are
 *	  raised here, by one of these functions or CHECK_FOR_INTERRUPTS().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAGE_RELAY_H
#define GS_PAGE_RELAY_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/relcache.h"

typedef struct GsPageRelay GsPageRelay;

/*
 * Launch up to n_workers; NULL where there is none to be had.  concurrent: the
 * locks held on the index and its table are those of a concurrent build.
 */
extern GsPageRelay *gs_page_relay_begin(Relation heap, Relation index, bool concurrent,
										int n_workers);

/* A page to fill in, of any content now. */
extern Page gs_page_relay_alloc(GsPageRelay *relay);

/* Takes the page over. */
extern void gs_page_relay_write(GsPageRelay *relay, BlockNumber blkno, Page page);

/* The workers are gone when these return.  After finish all pages are written. */
extern void gs_page_relay_finish(GsPageRelay *relay);
extern void gs_page_relay_cancel(GsPageRelay *relay);

#endif							/* GS_PAGE_RELAY_H */
