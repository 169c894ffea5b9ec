/*-------------------------------------------------------------------------
 *
 * spill_cuts.c
 *	  Where the borders of a range cut a run.
 *
 * A border is a row: (key, run, number in the run).  In its own run it cuts at that row.  In a
 * run before that, rows of the border's key are below it; in a run after that, they are above.
 * So there the cut is after, or at, the border's key.  Which record that is, is only known to lie
 * in the last block that begins below the cut, and is sought when the block has been read.
 *
 * Tests: unit/plain/test_spill, regress/spill
 *
 *-------------------------------------------------------------------------
 */
#include "spill/spill_private.h"

/* Where a border cuts a run. */
static GsSpillCut
cut_at_border(const GsSpill *spill, const GsSpillBorder *border, uint32_t run)
{
	uint32_t	first = spill->runs[run].first_block;
	uint32_t	low = first;
	uint32_t	high = first + spill->runs[run].n_blocks;
	GsSpillCut	cut = {GS_CUT_START, border->block, 0, border->key_len, border->key};

	if (run == border->run && !border->is_group)
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

		if (order > 0 || (order == 0 && (border->is_group || run > border->run)))
			high = middle;
		else
			low = middle + 1;
	}
	cut.block = low;
	if (low > first)
	{
		cut.block = low - 1;
		cut.kind = run < border->run && !border->is_group ? GS_CUT_AFTER_KEY : GS_CUT_AT_KEY;
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
	int			below = cut->kind == GS_CUT_AT_KEY ? -1 : 0;	/* orders up to this are */

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
