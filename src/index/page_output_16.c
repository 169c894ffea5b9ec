/*-------------------------------------------------------------------------
 *
 * page_output_16.c
 *	  Writing the pages of a new relation past shared buffers, by one process.
 *
 * PostgreSQL 17 has storage/bulk_write.h for this.  The versions before it do it within each
 * access method; this is the same facility for them.
 *
 * Batches
 *	  Pages are collected, in order of their blocks, until there are as many as
 *	  a WAL record can name.  Then they are logged by that one record and
 *	  written.  Against a record a page this saves four of five calls into
 *	  the WAL's insertion machinery, and a batch of 256 kB is still in the
 *	  processor's cache when it is copied into the WAL and into the kernel.
 *	  Pages are used again for the next batch.
 *
 * Gaps
 *	  A block beyond the end of the file by more than one is preceded by zero
 *	  pages, which are written over later.  File systems would read the same
 *	  from a hole, but then might scatter the file, and a full disk should
 *	  show here rather than later.  Zero pages are not logged: the later page
 *	  is.
 *
 * Durability
 *	  Nobody but us knows of these pages, as they are in no buffer, so a
 *	  checkpoint that runs meanwhile does not write them, yet recovery begins
 *	  at that checkpoint and does not replay what was logged before it.  So
 *	  logged relations are synced before the transaction can commit.  Where
 *	  WAL is skipped (wal_level = minimal), commit syncs new relations by itself.
 *	  Unlogged and temporary ones are not synced, as PostgreSQL 15 and 16 do
 *	  not either.
 *
 * Tests: regress/index_pages, tap/index_recovery
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/smgr.h"
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
	BlockNumber file_blocks;	/* the file's size */
	MemoryContext context;
	FreePage   *free;
	Page		zero_page;		/* NULL until there is a gap */

	/* the batch, by block number */
	int			n_pages;
	BlockNumber blocks[BATCH_PAGES];
	Page		pages[BATCH_PAGES];
};

GsDirect *
gs_direct_begin(Relation rel)
{
	GsDirect   *direct = palloc(sizeof(GsDirect));

	direct->rel = rel;
	direct->file_blocks = smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM);
	direct->context = CurrentMemoryContext;
	direct->free = NULL;
	direct->zero_page = NULL;
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
write_block(GsDirect *direct, BlockNumber blkno, Page page)
{
	/* Interrupts may close the file at any time: ask for it anew each time */
	SMgrRelation smgr = RelationGetSmgr(direct->rel);

	if (blkno < direct->file_blocks)
		smgrwrite(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
	else
	{
		Assert(blkno == direct->file_blocks);
		smgrextend(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
		direct->file_blocks++;
	}
}

static void
write_gap(GsDirect *direct, BlockNumber end)
{
	if (direct->zero_page == NULL)
	{
		direct->zero_page = gs_direct_alloc(direct);
		memset(direct->zero_page, 0, BLCKSZ);
	}
	/* no checksum: pages of zeros have none */
	while (direct->file_blocks < end)
		write_block(direct, direct->file_blocks, direct->zero_page);
}

static void
write_batch(GsDirect *direct)
{
	gs_direct_log(direct->rel, direct->n_pages, direct->blocks, direct->pages);
	for (int i = 0; i < direct->n_pages; i++)
	{
		Page		page = direct->pages[i];

		if (direct->file_blocks < direct->blocks[i])
			write_gap(direct, direct->blocks[i]);
		write_block(direct, direct->blocks[i], page);

		((FreePage *) page)->next = direct->free;
		direct->free = (FreePage *) page;
	}
	direct->n_pages = 0;
}

void
gs_direct_write(GsDirect *direct, BlockNumber blkno, Page page)
{
	int			i = direct->n_pages;

	/* nearly all come in order */
	while (i > 0 && direct->blocks[i - 1] > blkno)
	{
		direct->blocks[i] = direct->blocks[i - 1];
		direct->pages[i] = direct->pages[i - 1];
		i--;
	}
	direct->blocks[i] = blkno;
	direct->pages[i] = page;
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
