/*-------------------------------------------------------------------------
 *
 * page_output_16.c
 *	  Writing the pages of a new relation past shared buffers, by one process.
 *
 * PostgreSQL 17 has storage/bulk_write.h for this.  This is the same facility for earlier versions.
 *
 * Batches
 *	  Pages are collected until there are as many as a WAL record can name.
 *	  Then they are logged by that one record and written.  Compared with a record for
 *	  each page, this saves four of five calls that insert into the WAL.  And a batch of
 *	  256 kB is still in the processor's cache when it is copied into the WAL and into the
 *	  kernel.  The next batch uses the same pages.
 *
 * Durability
 *	  The pages are in no shared buffer, so a checkpoint does not write them.  But recovery
 *	  begins at the checkpoint, and does not replay earlier WAL.  So logged relations are
 *	  synced before the transaction can commit.  If WAL is skipped (wal_level = minimal),
 *	  commit syncs new relations by itself.  Unlogged and temporary relations are not
 *	  synced; nor does PostgreSQL 15 or 16.
 *
 * Tests: regress/index_pages, tap/index_recovery
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "index/page_direct.h"

#ifndef GS_COMPAT_BULK_WRITE

/* A page that is not in use. */
typedef struct FreePage
{
	struct FreePage *next;
} FreePage;

struct GsDirect
{
	Relation	rel;
	MemoryContext context;
	FreePage   *free;

	/* the batch */
	int			n_pages;
	BlockNumber blocks[BATCH_PAGES];
	Page		pages[BATCH_PAGES];
};

GsDirect *
gs_direct_begin(Relation rel)
{
	GsDirect   *direct = palloc(sizeof(GsDirect));

	direct->rel = rel;
	direct->context = CurrentMemoryContext;
	direct->free = NULL;
	direct->n_pages = 0;
	return direct;
}

Page
gs_direct_alloc(GsDirect *direct)
{
	FreePage   *page = direct->free;

	if (page == NULL)
		return (Page) TYPEALIGN(PAGE_ALIGNMENT,
								MemoryContextAlloc(direct->context, BLCKSZ + PAGE_ALIGNMENT));
	direct->free = page->next;
	return (Page) page;
}

static void
write_batch(GsDirect *direct)
{
	gs_write_pages(direct->rel, direct->n_pages, direct->blocks, direct->pages);
	for (int i = 0; i < direct->n_pages; i++)
	{
		FreePage   *page = (FreePage *) direct->pages[i];

		page->next = direct->free;
		direct->free = page;
	}
	direct->n_pages = 0;
}

void
gs_direct_write(GsDirect *direct, BlockNumber blkno, Page page)
{
	direct->blocks[direct->n_pages] = blkno;
	direct->pages[direct->n_pages] = page;
	if (++direct->n_pages == BATCH_PAGES)
		write_batch(direct);
}

void
gs_direct_end(GsDirect *direct)
{
	write_batch(direct);
	if (RelationNeedsWAL(direct->rel))
		smgrimmedsync(RelationGetSmgr(direct->rel), MAIN_FORKNUM);
}

#endif							/* GS_COMPAT_BULK_WRITE */
