/*-------------------------------------------------------------------------
 *
 * page_direct.h
 *	  Writing the pages of a new relation past shared buffers, by one process: PostgreSQL's facility,
 *	  and the same for versions that have none (page_output_16.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAGE_DIRECT_H
#define GS_PAGE_DIRECT_H

#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "storage/bufpage.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "compat.h"

/* Direct I/O wants this alignment; the kernel copies aligned pages faster. */
#define PAGE_ALIGNMENT	4096

/* Pages that are written at once. */
#define BATCH_PAGES		XLR_MAX_BLOCK_ID

#ifdef GS_COMPAT_BULK_WRITE

typedef BulkWriteState GsDirect;

#define gs_direct_begin(rel)	smgr_bulk_start_rel(rel, MAIN_FORKNUM)
#define gs_direct_alloc(direct)	((Page) smgr_bulk_get_buf(direct))
#define gs_direct_write(direct, blkno, page)	smgr_bulk_write(direct, blkno, (BulkWriteBuffer) (page), true)
#define gs_direct_end(direct)	smgr_bulk_finish(direct)

#else

typedef struct GsDirect GsDirect;

extern GsDirect *gs_direct_begin(Relation rel);
extern Page gs_direct_alloc(GsDirect *direct);
extern void gs_direct_write(GsDirect *direct, BlockNumber blkno, Page page);
extern void gs_direct_end(GsDirect *direct);

#endif							/* GS_COMPAT_BULK_WRITE */

/*
 * Log and write pages, at most BATCH_PAGES, over what is there or behind a gap, which the file system keeps
 * until it is written.  Changes their LSNs and checksums.
 */
static inline void
gs_write_pages(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	if (RelationNeedsWAL(rel) && n > 0)
		log_newpages(gs_compat_relation_locator(rel), MAIN_FORKNUM, n, blocks, pages, true);
	for (int i = 0; i < n; i++)
	{
		gs_compat_page_set_checksum(pages[i], blocks[i]);

		/* interrupts may close the file at any time: ask for it anew each time */
		smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, blocks[i], (char *) pages[i], true);
	}
}

#endif							/* GS_PAGE_DIRECT_H */
