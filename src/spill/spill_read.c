/*-------------------------------------------------------------------------
 *
 * spill_read.c
 *	  Reading ranges: blocks of all runs, cut to the range's borders, put
 *	  together into chunks.
 *
 * A border cuts each run within one block at most, and that block is read for
 * the range below it and again for the one above.  A range's part of a run is
 * then: the end of a block, whole blocks, the beginning of a block.  A piece has
 * as many of them as its chunk has room for, and goes on to the next runs while there
 * is room: a range may have little of each of many runs.
 *
 * A piece is decoded to where it will lie, data to the chunk's front and records
 * to its end.  The thread then seeks the borders in the blocks
 * that have one, moves the rows that are wanted together, and makes the
 * offsets in the records those of this chunk.
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
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "spill/spill_private.h"

struct GsSpillReader
{
	GsSpill    *spill;
	uint32_t	range;
	uint32_t	run;			/* now being read; its blocks still to read: */
	uint32_t	next_block;
	uint32_t	end_block;
	GsSpillCut	low;			/* of this run; the first block's */
	GsSpillCut	high;
	bool		ties;			/* atomic */
};

/* ---- what a thread does with blocks that it has read ---- */

/*
 * Append the records [from, to) of a block to the piece, at whose end they lie
 * or behind it.
 */
static void
keep_records(GsSpillTask *task, const GsSpillPart *part, const GsSpillView *view, uint32_t from,
			 uint32_t to)
{
	GsSpillPiece *piece = task->piece;
	uint32_t	begin = (view->first - from)->row_off - view->base;
	uint32_t	end = to < view->n ? (view->first - to)->row_off - view->base : part->data_bytes;
	uint32_t	shift = piece->data_bytes - begin - view->base; /* modulo 2^32 */
	char	   *data = task->chunk + piece->data_bytes;
	const GsRecord *place = gs_chunk_record(task->chunk, task->spill->chunk_bytes, piece->n_records);

	if (data != part->data + begin)
		memmove(data, part->data + begin, end - begin);
	if (shift == 0 && place == view->first - from)
	{
		/* they lie where they should */
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

/* Append what is wanted of a block to the piece. */
static void
assemble_part(GsSpillTask *task, const GsSpillPart *part)
{
	GsSpillView	view = {part->data, part->first, part->n_records, part->base};
	uint32_t	from = gs_spill_cut_record(&part->low, &view);
	uint32_t	to = view.n;

	if (part->high.kind != GS_CUT_START)
		to = gs_spill_cut_record(&part->high, &view);
	if (part->low.kind == GS_CUT_BEHIND_KEY && from > 0 &&
		gs_spill_view_key_is(&view, from - 1, part->low.key, part->low.key_len))
		__atomic_store_n(task->ties, true, __ATOMIC_RELAXED);
	if (from < to)
		keep_records(task, part, &view, from, to);
}

/* Parts that follow the first one in its file, that one included, and their bytes there. */
static uint32_t
parts_together(const GsSpillTask *task, uint32_t first, size_t *bytes)
{
	const GsSpillPart *part = &task->parts[first];
	uint32_t	i = first;

	for (*bytes = 0; i < task->n_parts; i++)
	{
		if (task->parts[i].file != part->file || task->parts[i].offset != part->offset + *bytes)
			break;
		*bytes += task->parts[i].coded_bytes;
	}
	return i - first;
}

static bool
decode_part(GsSpillTask *task, const GsSpillPart *part, const uint8_t *coded)
{
	if (gs_decode_records(gs_spill_shortens(task->spill), coded, part->coded_bytes, part->data,
						  part->data_bytes, part->base, part->first, part->n_records))
		return true;
	gs_spill_task_corrupt(task, part->file);
	return false;
}

void
gs_spill_read_parts(GsSpillTask *task)
{
	uint8_t	   *memory;
	size_t		bytes = 0;
	uint32_t	n;

	for (uint32_t i = 0; i < task->n_parts; i++)
		bytes += task->parts[i].coded_bytes;
	memory = gs_spill_task_scratch(task, bytes);
	if (memory == NULL)
		return;
	for (uint32_t i = 0; i < task->n_parts; i += n)
	{
		const GsSpillPart *first = &task->parts[i];
		const uint8_t *coded = memory;

		n = parts_together(task, i, &bytes);
		if (!gs_spill_task_read(task, first->file, first->offset, memory, bytes))
			return;
		for (uint32_t j = i; j < i + n; j++)
		{
			if (!decode_part(task, &task->parts[j], coded))
				return;
			coded += task->parts[j].coded_bytes;
		}
	}
	if (!task->assemble)
		return;
	task->piece->data_bytes = 0;
	task->piece->n_records = 0;
	for (uint32_t i = 0; i < task->n_parts; i++)
		assemble_part(task, &task->parts[i]);
}

/* ---- jobs ---- */

bool
gs_spill_add_block(GsSpillTask *task, const GsSpillBlock *block, uint32_t *data_bytes,
				   uint32_t *n_records)
{
	GsSpillPart *part = gs_spill_task_part(task);

	if (part == NULL)
		return false;
	part->data = task->chunk + *data_bytes;
	part->first = gs_chunk_record(task->chunk, task->spill->chunk_bytes, *n_records);
	*data_bytes += block->data_bytes;
	*n_records += block->n_records;
	part->offset = block->offset;
	part->coded_bytes = block->coded_bytes;
	part->data_bytes = block->data_bytes;
	part->n_records = block->n_records;
	part->base = block->base;
	part->file = block->file;
	return true;
}

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

		if (!gs_spill_add_block(task, block, &data_bytes, &n_records))
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
	task = gs_spill_task_begin(reader->spill, gs_spill_read_parts, job);
	if (task == NULL)
		return true;
	task->chunk = chunk;
	task->piece = piece;
	task->ties = &reader->ties;
	task->assemble = true;
	if (gather_piece(reader, task))
		gs_spill_task_submit(task);
	else
		gs_spill_task_no_memory(task);
	return true;
}

void
gs_spill_read_block(GsSpill *spill, uint32_t block, void *chunk, GsSpillView *view,
					GsJob *job)
{
	const GsSpillBlock *b = &spill->blocks[block];
	uint32_t	data_bytes = 0;
	uint32_t	n_records = 0;
	GsSpillTask *task;

	view->n = b->n_records;
	view->base = b->base;
	view->data = chunk;
	view->first = gs_chunk_record(chunk, spill->chunk_bytes, 0);
	task = gs_spill_task_begin(spill, gs_spill_read_parts, job);
	if (task == NULL)
		return;
	task->chunk = chunk;
	if (gs_spill_add_block(task, b, &data_bytes, &n_records))
		gs_spill_task_submit(task);
	else
		gs_spill_task_no_memory(task);
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
