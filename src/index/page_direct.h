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
 * Log and write pages, at most BATCH_PAGES.  A page may replace a written one, or leave a gap before it that
 * is filled later.  Changes LSNs and checksums of the pages.
 */
static inline void
gs_write_pages(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	if (RelationNeedsWAL(rel) && n > 0)
		log_newpages(gs_compat_relation_locator(rel), MAIN_FORKNUM, n, blocks, pages, true);
	for (int i = 0; i < n; i++)
	{
		gs_compat_page_set_checksum(pages[i], blocks[i]);

		/* get the file anew for each page, because interrupts may close it */
		smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, blocks[i], (char *) pages[i], true);
	}
}

#endif							/* GS_PAGE_DIRECT_H */
