/*-------------------------------------------------------------------------
 *
 * spill_pages.c
 *	  Pages of sorted rows in temporary files.
 *
 * Coded pages differ in size, so the place of each is noted (spill_code.h).  Pages are spread over files of
 * their own, which are removed once pages are of no more use.
 *
 * Tests: unit/plain/test_spill
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "spill/spill_private.h"

static void
write_page(GsSpillTask *task)
{
	uint32_t	page_bytes = task->spill->chunk_bytes;
	uint8_t	   *memory = gs_spill_task_scratch(task, gs_code_room(page_bytes));
	GsSpillPage *page = task->page;
	size_t		bytes;

	if (memory == NULL)
		return;
	bytes = gs_code_page(task->chunk, page_bytes, page->n_rows, task->own_lengths, memory);
	page->coded_bytes = bytes > 0 && bytes < page_bytes ? (uint32_t) bytes : page_bytes;
	(void) gs_spill_task_append(task, page->coded_bytes < page_bytes ? (char *) memory : task->chunk,
								page->coded_bytes, &page->offset);
	page->file = task->file;
}

static void
read_page(GsSpillTask *task)
{
	uint32_t	page_bytes = task->spill->chunk_bytes;
	const GsSpillPage *page = task->page;
	uint8_t	   *memory;

	if (page->coded_bytes == page_bytes)
	{
		(void) gs_spill_task_read(task, task->file, page->offset, task->chunk, page_bytes);
		return;
	}
	memory = gs_spill_task_scratch(task, page->coded_bytes);
	if (memory != NULL &&
		gs_spill_task_read(task, task->file, page->offset, memory, page->coded_bytes) &&
		!gs_decode_page(memory, page->coded_bytes, task->chunk, page_bytes, page->n_rows))
		gs_spill_task_corrupt(task, task->file);
}

/* Makes room for a page's GsSpillPage.  False: no memory. */
static bool
add_page(GsSpill *spill, uint64_t page)
{
	if (!gs_grow((void **) &spill->pages, page + 1, &spill->max_pages, sizeof(GsSpillPage *)))
		return false;
	for (; spill->n_pages <= page; spill->n_pages++)
		spill->pages[spill->n_pages] = NULL;
	if (spill->pages[page] == NULL)
		spill->pages[page] = calloc(1, sizeof(GsSpillPage));
	return spill->pages[page] != NULL;
}

void
gs_spill_write_page(GsSpill *spill, uint64_t page, const void *memory, uint32_t n_rows, bool own_lengths,
					GsJob *job)
{
	GsSpillTask *task = gs_spill_task_begin(spill, write_page, job);

	if (task == NULL)
		return;
	task->chunk = (char *) (uintptr_t) memory;
	if (!add_page(spill, page))
		gs_spill_task_no_memory(task);
	else
	{
		task->file = (uint8_t) (GS_SPILL_STRIPES + page % GS_SPILL_STRIPES);
		task->page = spill->pages[page];
		task->page->n_rows = n_rows;
		task->own_lengths = own_lengths;
	}
	gs_spill_task_submit(task);
}

void
gs_spill_read_page(GsSpill *spill, uint64_t page, void *memory, GsJob *job)
{
	GsSpillTask *task = gs_spill_task_begin(spill, read_page, job);

	if (task == NULL)
		return;
	task->chunk = memory;
	task->page = spill->pages[page];
	task->file = task->page->file;
	gs_spill_task_submit(task);
}

void
gs_spill_pages_free(GsSpill *spill)
{
	for (uint64_t i = 0; i < spill->n_pages; i++)
		free(spill->pages[i]);
	free(spill->pages);
}
