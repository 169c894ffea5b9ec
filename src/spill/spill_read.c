/*-------------------------------------------------------------------------
 *
 * spill_read.c
 *	  Reading ranges: blocks of all runs, cut to the range's borders, put
 *	  together into chunks.
 *
 * A border cuts at most one block of each run.  That block is read for the range below, and again for the
 * range above.  So a range's part of a run is the end of a block, whole blocks, and the beginning of a
 * block.  A piece has as many of them as fit into its chunk.  It goes on to the next runs, as a range may
 * have little of each of many runs.
 *
 * Ties.  The first row of a range is the row of its border, of key K in run R.
 * It has the key of the row before it if any row before it has key K:
 *
 *	  - in R, the row before it; the index or the split that made the border
 *		knows that (GsSpillBorder.repeats);
 *	  - in runs before R, the last row below the cut.  The cut is sought in the last
 *		block whose first key is no greater than K: so that row is in this
 *		block, which is read in any case;
 *	  - in runs after R, rows of key K are above the border.
 *
 * Cuts.  A border is a row: (key, run, number in the run).  In its own run it cuts at that row.  In the
 * runs before, rows of the border's key are below it, so the cut is behind that key; in the runs after, the
 * cut is at that key.  The record there lies in the last block that begins below the cut, and is sought
 * when the block has been read.
 *
 * Pieces.  Blocks are decoded into the chunk, data to its front and records to its end.  The thread then
 * finds the borders in the blocks that have one, moves the wanted rows together, and makes the offsets in
 * records those of this chunk.
 *
 * Tests: unit/plain/test_spill, regress/spill
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "spill/spill_private.h"

/* ---- where borders cut runs ---- */

/* Returns where a border cuts a run. */
static GsSpillCut
cut_at_border(const GsSpill *spill, const GsSpillBorder *border, uint32_t run)
{
	uint32_t	first = spill->runs[run].first_block;
	uint32_t	low = first;
	uint32_t	high = first + spill->runs[run].n_blocks;
	GsSpillCut	cut = {GS_CUT_START, border->block, 0, border->key_len, border->key};

	if (run == border->run)
	{
		cut.record = (uint32_t) (border->row - spill->blocks[border->block].first_row);
		if (cut.record > 0)
			cut.kind = GS_CUT_RECORD;
		return cut;
	}

	/* the first block that begins above the border */
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		const GsSpillBlock *block = &spill->blocks[middle];
		int			order = gs_spill_compare_keys(block->key, block->key_len, border->key,
												  border->key_len);

		if (order > 0 || (order == 0 && run > border->run))
			high = middle;
		else
			low = middle + 1;
	}
	cut.block = low;
	if (low > first)
	{
		cut.block = low - 1;
		cut.kind = run < border->run ? GS_CUT_AFTER_KEY : GS_CUT_AT_KEY;
	}
	return cut;
}

GsSpillCut
gs_spill_cut_low(const GsSpill *spill, uint32_t range, uint32_t run)
{
	GsSpillCut	cut = {GS_CUT_START, spill->runs[run].first_block, 0, 0, NULL};

	return range == 0 ? cut : cut_at_border(spill, &spill->borders[range - 1], run);
}

GsSpillCut
gs_spill_cut_high(const GsSpill *spill, uint32_t range, uint32_t run)
{
	GsSpillCut	cut = {GS_CUT_START, spill->runs[run].first_block + spill->runs[run].n_blocks, 0, 0,
					   NULL};

	if (spill->is_planned && range + 1 == spill->n_ranges)
		return cut;
	return cut_at_border(spill, &spill->borders[range], run);
}

uint32_t
gs_spill_cut_record(const GsSpillCut *cut, const GsSpillView *view)
{
	uint32_t	low = 0;
	uint32_t	high = view->n;
	int			below = cut->kind == GS_CUT_AT_KEY ? -1 : 0;	/* the order of records below the cut is at
																 * most this */

	if (cut->kind == GS_CUT_START || cut->kind == GS_CUT_RECORD)
		return cut->record;
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		uint32_t	len;
		const uint8_t *key = gs_spill_view_key(view, middle, &len);
		int			order = gs_spill_compare_keys(key, len, cut->key, cut->key_len);

		if (order <= below)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- what a thread does with blocks that it has read ---- */

/* Appends the records [from, to) of a block to the piece.  They are at the piece's end, or behind it. */
static void
append_records(GsSpillTask *task, const GsSpillPart *part, const GsSpillView *view, uint32_t from,
			 uint32_t to)
{
	GsSpillPiece *piece = task->piece;
	uint32_t	begin = (view->first - from)->row_off - view->base;
	uint32_t	end = to < view->n ? (view->first - to)->row_off - view->base : part->block.data_bytes;
	uint32_t	shift = piece->data_bytes - begin - view->base; /* modulo 2^32 */
	char	   *data = task->chunk + piece->data_bytes;
	const GsRecord *place = gs_chunk_record(task->chunk, task->spill->chunk_bytes, piece->n_records);

	if (data != part->data + begin)
		memmove(data, part->data + begin, end - begin);
	if (shift == 0 && place == view->first - from)
	{
		/* they are in their place already */
		piece->n_records += to - from;
		from = to;
	}
	for (uint32_t i = from; i < to; i++)
	{
		GsRecord   *record = gs_chunk_record(task->chunk, task->spill->chunk_bytes,
											 piece->n_records++);

		*record = *(view->first - i);
		record->row_off += shift;
		record->key_off += shift;
	}
	piece->data_bytes += end - begin;
}

/* Appends the wanted rows of a block to the piece. */
static void
assemble_part(GsSpillTask *task, const GsSpillPart *part)
{
	GsSpillView	view = {part->data, part->first, part->block.n_records, part->block.base};
	uint32_t	from = gs_spill_cut_record(&part->low, &view);
	uint32_t	to = view.n;

	if (part->high.kind != GS_CUT_START)
		to = gs_spill_cut_record(&part->high, &view);
	if (part->low.kind == GS_CUT_AFTER_KEY && from > 0 &&
		gs_spill_view_key_is(&view, from - 1, part->low.key, part->low.key_len))
		__atomic_store_n(task->ties, true, __ATOMIC_RELAXED);
	if (from < to)
		append_records(task, part, &view, from, to);
}

/* Counts the parts that are next to each other in the file, from the first one on, and their bytes there. */
static uint32_t
parts_together(const GsSpillTask *task, uint32_t first, size_t *bytes)
{
	const GsSpillBlock *begin = &task->parts[first].block;
	uint32_t	i = first;

	for (*bytes = 0; i < task->n_parts; i++)
	{
		const GsSpillBlock *block = &task->parts[i].block;

		if (block->file != begin->file || block->offset != begin->offset + *bytes)
			break;
		*bytes += block->coded_bytes;
	}
	return i - first;
}

static bool
decode_part(GsSpillTask *task, const GsSpillPart *part, const uint8_t *coded)
{
	const GsSpillBlock *block = &part->block;

	if (gs_decode_records(coded, block->coded_bytes, part->data, block->data_bytes, block->base,
						  part->first, block->n_records))
		return true;
	gs_spill_task_corrupt(task, block->file);
	return false;
}

/* Work: reads all parts.  For a piece it drops unwanted rows, and makes offsets those of the chunk. */
static void
read_parts(GsSpillTask *task)
{
	uint8_t	   *memory;
	size_t		bytes = 0;
	uint32_t	n;

	for (uint32_t i = 0; i < task->n_parts; i++)
		bytes += task->parts[i].block.coded_bytes;
	memory = gs_spill_task_scratch(task, bytes);
	if (memory == NULL)
		return;
	for (uint32_t i = 0; i < task->n_parts; i += n)
	{
		const GsSpillBlock *first = &task->parts[i].block;
		const uint8_t *coded = memory;

		n = parts_together(task, i, &bytes);
		if (!gs_spill_task_read(task, first->file, first->offset, memory, bytes))
			return;
		for (uint32_t j = i; j < i + n; j++)
		{
			if (!decode_part(task, &task->parts[j], coded))
				return;
			coded += task->parts[j].block.coded_bytes;
		}
	}
	if (task->piece == NULL)
		return;
	task->piece->data_bytes = 0;
	task->piece->n_records = 0;
	for (uint32_t i = 0; i < task->n_parts; i++)
		assemble_part(task, &task->parts[i]);
}

/* ---- jobs ---- */

/* Adds a block to a task.  It will be behind *data_bytes and *n_records. */
static bool
add_block(GsSpillTask *task, const GsSpillBlock *block, uint32_t *data_bytes, uint32_t *n_records)
{
	GsSpillPart *part = gs_spill_task_part(task);

	if (part == NULL)
		return false;
	part->data = task->chunk + *data_bytes;
	part->first = gs_chunk_record(task->chunk, task->spill->chunk_bytes, *n_records);
	*data_bytes += block->data_bytes;
	*n_records += block->n_records;
	part->block = *block;
	return true;
}

/* Reads blocks into a chunk, one behind the other. */
static void
read_blocks(GsSpill *spill, const GsSpillBlock *blocks, uint32_t n, void *chunk, GsSpillPiece *piece,
			GsJob *job)
{
	uint32_t	data_bytes = 0;
	uint32_t	n_records = 0;
	GsSpillTask *task = gs_spill_task_begin(spill, read_parts, job);

	if (task == NULL)
		return;
	task->chunk = chunk;
	task->piece = piece;
	for (uint32_t i = 0; i < n && task->status == GS_OK; i++)
		if (!add_block(task, &blocks[i], &data_bytes, &n_records))
			gs_spill_task_no_memory(task);
	gs_spill_task_submit(task);
}

void
gs_spill_read_block(GsSpill *spill, uint32_t block, void *chunk, GsSpillView *view,
					GsJob *job)
{
	const GsSpillBlock *b = &spill->blocks[block];

	view->n = b->n_records;
	view->base = b->base;
	view->data = chunk;
	view->first = gs_chunk_record(chunk, spill->chunk_bytes, 0);
	read_blocks(spill, b, 1, chunk, NULL, job);
}

uint64_t
gs_spill_images(const GsSpill *spill)
{
	return spill->n_chunks;
}

void
gs_spill_read_image(GsSpill *spill, uint64_t i, void *chunk, GsSpillPiece *piece, GsJob *job)
{
	read_blocks(spill, spill->chunks[i].blocks, spill->chunks[i].n_blocks, chunk, piece, job);
}

/* ---- ranges ---- */

struct GsSpillReader
{
	GsSpill    *spill;
	uint32_t	range;
	uint32_t	run;			/* being read; its next blocks are: */
	uint32_t	next_block;
	uint32_t	end_block;
	GsSpillCut	low;			/* of this run; the first block's */
	GsSpillCut	high;
	bool		ties;			/* atomic */
};

/* Find the range's blocks of a run. */
static void
enter_run(GsSpillReader *reader)
{
	reader->low = gs_spill_cut_low(reader->spill, reader->range, reader->run);
	reader->high = gs_spill_cut_high(reader->spill, reader->range, reader->run);
	reader->next_block = reader->low.block;
	reader->end_block = reader->high.block + (reader->high.kind != GS_CUT_START);
}

/* The next block to read, or NULL. */
static const GsSpillBlock *
next_block(GsSpillReader *reader)
{
	while (reader->next_block >= reader->end_block)
	{
		if (reader->run + 1 >= reader->spill->n_runs)
			return NULL;
		reader->run++;
		enter_run(reader);
	}
	return &reader->spill->blocks[reader->next_block];
}

/* Add the blocks of the next piece to a task; false: no memory. */
static bool
gather_piece(GsSpillReader *reader, GsSpillTask *task)
{
	uint32_t	data_bytes = 0;
	uint32_t	n_records = 0;
	uint64_t	room = reader->spill->chunk_bytes;
	const GsSpillBlock *block;

	while ((block = next_block(reader)) != NULL && gs_spill_block_bytes(block) <= room)
	{
		GsSpillPart *part;

		if (!add_block(task, block, &data_bytes, &n_records))
			return false;
		part = &task->parts[task->n_parts - 1];
		if (reader->next_block == reader->low.block)
			part->low = reader->low;
		if (reader->next_block == reader->high.block)
			part->high = reader->high;
		room -= gs_spill_block_bytes(block);
		reader->next_block++;
	}
	return true;
}

GsSpillReader *
gs_spill_reader_open(GsSpill *spill, uint32_t range)
{
	GsSpillReader *reader = calloc(1, sizeof(GsSpillReader));

	if (reader == NULL)
		return NULL;
	reader->spill = spill;
	reader->range = range;
	reader->ties = range > 0 && spill->borders[range - 1].repeats;
	enter_run(reader);
	return reader;
}

bool
gs_spill_read(GsSpillReader *reader, void *chunk, GsSpillPiece *piece, GsJob *job)
{
	GsSpillTask *task;

	if (next_block(reader) == NULL)
		return false;
	task = gs_spill_task_begin(reader->spill, read_parts, job);
	if (task == NULL)
		return true;
	task->chunk = chunk;
	task->piece = piece;
	task->ties = &reader->ties;
	if (!gather_piece(reader, task))
		gs_spill_task_no_memory(task);
	gs_spill_task_submit(task);
	return true;
}

bool
gs_spill_reader_ties(const GsSpillReader *reader)
{
	return __atomic_load_n(&reader->ties, __ATOMIC_RELAXED);
}

void
gs_spill_reader_close(GsSpillReader *reader)
{
	free(reader);
}
