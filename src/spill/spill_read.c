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
 * Tests: unit/plain/test_spill
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
	if (gather_piece(reader, task))
		gs_spill_task_submit(task);
	else
		gs_spill_task_no_memory(task);
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
