/*-------------------------------------------------------------------------
 *
 * spill_blocks.c
 *	  Reading blocks, cut to the borders of a range, into one chunk.
 *
 * A piece is decoded to where it will lie, data to the chunk's front and records
 * to its end.  The thread then seeks the borders in the blocks
 * that have one, moves the rows that are wanted together, and makes the
 * offsets in the records those of this chunk.
 *
 * Tests: unit/plain/test_spill, regress/spill
 *
 *-------------------------------------------------------------------------
 */
#include "spill/spill_private.h"

/* ---- what a thread does with blocks that it has read ---- */

/*
 * Append the records [from, to) of a block to the piece, at whose end they lie
 * or after it.
 */
static void
append_records(GsSpillTask *task, const GsSpillPart *part, const GsSpillView *view, uint32_t from,
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
	if (part->low.kind == GS_CUT_AFTER_KEY && from > 0 &&
		gs_spill_view_key_is(&view, from - 1, part->low.key, part->low.key_len))
		__atomic_store_n(task->ties, true, __ATOMIC_RELAXED);
	if (from < to)
		append_records(task, part, &view, from, to);
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
	if (gs_decode_records(task->spill->shorten, coded, part->coded_bytes, part->data,
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
	if (task->piece == NULL)
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
