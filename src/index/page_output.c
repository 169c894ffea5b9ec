/*-------------------------------------------------------------------------
 *
 * page_output.c
 *	  Writing the pages of a new relation past shared buffers (page_output.h).
 *
 * PostgreSQL 17 has storage/bulk_write.h for this, and there we use it.  The
 * versions before it do it within each access method; what follows is the
 * same facility for them.
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
 * Several processes
 *	  Who writes a gap must know that nobody else writes into it, so where
 *	  several processes write, gaps are left to the file system until all is
 *	  written.  For the same reason no block of a new segment (1 GB) of the
 *	  file may be written while others write: storage/md.c lengthens a short
 *	  segment before the next one by writing its last block.
 *
 * Tests: tap/index_recovery, tap/index_faults
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "index/page_output.h"

/* Direct I/O wants this alignment; the kernel copies aligned pages faster. */
#define PAGE_ALIGNMENT	4096

/* Log the pages, and get them ready to be written. */
static void
log_pages(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	if (RelationNeedsWAL(rel) && n > 0)
		log_newpages(gs_compat_relation_locator(rel), MAIN_FORKNUM, n, blocks, pages, true);
	for (int i = 0; i < n; i++)
		gs_compat_page_set_checksum(pages[i], blocks[i]);
}

void
gs_page_output_batch(Relation rel, int n, BlockNumber *blocks, Page *pages)
{
	log_pages(rel, n, blocks, pages);
	/* It may also write over what is there, or leave a gap */
	for (int i = 0; i < n; i++)
		smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, blocks[i], (char *) pages[i], true);
}

void
gs_page_output_reserve(Relation rel, BlockNumber n_blocks)
{
	char		memory[BLCKSZ + PAGE_ALIGNMENT];
	char	   *zero_page = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);

	if (smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM) >= n_blocks)
		return;
	memset(zero_page, 0, BLCKSZ);
	smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, n_blocks - 1, zero_page, true);
}

#ifdef GS_COMPAT_BULK_WRITE

struct GsPageOutput
{
	BulkWriteState *bulk;
};

GsPageOutput *
gs_page_output_begin(Relation rel)
{
	GsPageOutput *output = palloc(sizeof(GsPageOutput));

	output->bulk = smgr_bulk_start_rel(rel, MAIN_FORKNUM);
	return output;
}

Page
gs_page_output_alloc(GsPageOutput *output)
{
	return (Page) smgr_bulk_get_buf(output->bulk);
}

void
gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page)
{
	smgr_bulk_write(output->bulk, blkno, (BulkWriteBuffer) page, true);
}

void
gs_page_output_end(GsPageOutput *output)
{
	smgr_bulk_finish(output->bulk);
}

#else

#define BATCH_PAGES		XLR_MAX_BLOCK_ID

/* A page that is not in use. */
typedef struct FreePage
{
	struct FreePage *next;
} FreePage;

struct GsPageOutput
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

GsPageOutput *
gs_page_output_begin(Relation rel)
{
	GsPageOutput *output = palloc(sizeof(GsPageOutput));

	output->rel = rel;
	output->file_blocks = smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM);
	output->context = CurrentMemoryContext;
	output->free = NULL;
	output->zero_page = NULL;
	output->n_pages = 0;
	return output;
}

Page
gs_page_output_alloc(GsPageOutput *output)
{
	FreePage   *page = output->free;

	if (page == NULL)
		return (Page) TYPEALIGN(PAGE_ALIGNMENT,
								MemoryContextAlloc(output->context, BLCKSZ + PAGE_ALIGNMENT));
	output->free = page->next;
	return (Page) page;
}

static void
write_block(GsPageOutput *output, BlockNumber blkno, Page page)
{
	/* Interrupts may close the file at any time: ask for it anew each time */
	SMgrRelation smgr = RelationGetSmgr(output->rel);

	if (blkno < output->file_blocks)
		smgrwrite(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
	else
	{
		Assert(blkno == output->file_blocks);
		smgrextend(smgr, MAIN_FORKNUM, blkno, (char *) page, true);
		output->file_blocks++;
	}
}

static void
write_gap(GsPageOutput *output, BlockNumber end)
{
	if (output->zero_page == NULL)
	{
		output->zero_page = gs_page_output_alloc(output);
		memset(output->zero_page, 0, BLCKSZ);
	}
	/* no checksum: pages of zeros have none */
	while (output->file_blocks < end)
		write_block(output, output->file_blocks, output->zero_page);
}

static void
write_batch(GsPageOutput *output)
{
	log_pages(output->rel, output->n_pages, output->blocks, output->pages);
	for (int i = 0; i < output->n_pages; i++)
	{
		Page		page = output->pages[i];

		if (output->file_blocks < output->blocks[i])
			write_gap(output, output->blocks[i]);
		write_block(output, output->blocks[i], page);

		((FreePage *) page)->next = output->free;
		output->free = (FreePage *) page;
	}
	output->n_pages = 0;
}

void
gs_page_output_write(GsPageOutput *output, BlockNumber blkno, Page page)
{
	int			i = output->n_pages;

	/* nearly all come in order */
	while (i > 0 && output->blocks[i - 1] > blkno)
	{
		output->blocks[i] = output->blocks[i - 1];
		output->pages[i] = output->pages[i - 1];
		i--;
	}
	output->blocks[i] = blkno;
	output->pages[i] = page;
	if (++output->n_pages == BATCH_PAGES)
		write_batch(output);
}

void
gs_page_output_end(GsPageOutput *output)
{
	write_batch(output);
	if (RelationNeedsWAL(output->rel))
		smgrimmedsync(RelationGetSmgr(output->rel), MAIN_FORKNUM);
}

#endif							/* GS_COMPAT_BULK_WRITE */
