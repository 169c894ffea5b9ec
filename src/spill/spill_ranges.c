/*-------------------------------------------------------------------------
 *
 * spill_ranges.c
 *	  The borders between ranges: planning them, and splitting a range.
 *
 * Rows are ordered by (key, run, number in the run).  A border is such a row, and a range is the rows
 * between two borders.  spill_read.c tells where borders cut a run.
 *
 * Planning looks at the index only.  Blocks are sorted by their first rows, once.  A border is the first
 * row of a block.  The rows between two borders are counted as the blocks that begin between them.  A
 * border may cut one block of each run.  The surplus at one end of a range makes up for the loss at the
 * other end, so sums are wrong by at most a few blocks of each run.
 *
 * A range that is too large for the device is split at a block that begins within it.  If there is none,
 * the range has at most one block of each run.  Then these blocks are read, and the border is a row.  It is
 * chosen among the rows in the middle of each run's part, so that about half of all rows are on either
 * side.  At least a quarter is, so splitting ends at ranges of one row.
 *
 * Tests: unit/plain/test_spill
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "base/string_sort.h"
#include "spill/spill_private.h"

/* ---- the order of borders and blocks ---- */

static int
compare_places(uint32_t a_run, uint64_t a_row, uint32_t b_run, uint64_t b_row)
{
	if (a_run != b_run)
		return a_run < b_run ? -1 : 1;
	return (a_row > b_row) - (a_row < b_row);
}

static int
compare_borders(const GsSpillBorder *a, const GsSpillBorder *b)
{
	int			order = gs_spill_compare_keys(a->key, a->key_len, b->key, b->key_len);

	return order != 0 ? order : compare_places(a->run, a->row, b->run, b->row);
}

static GsSpillBorder
border_at_block(const GsSpill *spill, uint32_t number)
{
	const GsSpillBlock *block = &spill->blocks[number];
	GsSpillBorder border = {block->key, block->key_len, block->run, block->first_row, number,
							block->repeats, NULL};

	return border;
}

/* Returns the first place in spill->order whose block begins above the border.  or_at: or at the border. */
static uint32_t
first_block_above(const GsSpill *spill, const GsSpillBorder *border, bool or_at)
{
	uint32_t	low = 0;
	uint32_t	high = spill->n_blocks;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		GsSpillBorder start = border_at_block(spill, spill->order[middle]);

		if (compare_borders(&start, border) >= (or_at ? 0 : 1))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* ---- sealing ---- */

/* Blocks are ordered by run and row, so a stable sort by key puts them in order. */
static bool
sort_blocks(GsSpill *spill)
{
	size_t		n = spill->n_blocks;
	GsStringKey  *keys = malloc(2 * n * sizeof(GsStringKey));

	if (keys == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
		gs_string_key_init(&keys[i], spill->blocks[i].key, spill->blocks[i].key_len, i);
	gs_string_sort(keys, keys + n, n, NULL);
	for (uint32_t i = 0; i < n; i++)
		spill->order[i] = keys[i].row;
	free(keys);
	return true;
}

/* A thread's task. */
static void
seal(GsSpillTask *task)
{
	GsSpill    *spill = task->spill;
	bool		done = gs_spill_join_chunks(spill);
	size_t		n = spill->n_blocks;

	spill->is_planned = n == 0;
	if (done && n == 0)
		return;
	spill->order = malloc(n * sizeof(uint32_t));
	spill->bytes_before = malloc((n + 1) * sizeof(uint64_t));
	if (!done || spill->order == NULL || spill->bytes_before == NULL || !sort_blocks(spill))
	{
		gs_spill_task_no_memory(task);
		return;
	}
	spill->bytes_before[0] = 0;
	for (size_t i = 0; i < n; i++)
	{
		const GsSpillBlock *block = &spill->blocks[spill->order[i]];

		spill->bytes_before[i + 1] = spill->bytes_before[i] + gs_spill_block_bytes(block);
	}
}

void
gs_spill_seal(GsSpill *spill, GsJob *job)
{
	GsSpillTask *task = gs_spill_task_begin(spill, seal, job);

	if (task != NULL)
		gs_spill_task_submit(task);
}

void
gs_spill_ranges_free(GsSpill *spill)
{
	for (uint32_t i = 0; i < spill->n_ranges; i++)
		free(spill->borders[i].own_key);
	free(spill->borders);
	free(spill->order);
	free(spill->bytes_before);
}

/* ---- planning ---- */

bool
gs_spill_planned(const GsSpill *spill)
{
	return spill->is_planned;
}

uint32_t
gs_spill_ranges(const GsSpill *spill)
{
	return spill->n_ranges;
}

/*
 * Returns the first place in spill->order of a block that begins within a range, behind the range's first
 * row.
 */
static uint32_t
first_block_within(const GsSpill *spill, uint32_t range)
{
	return range == 0 ? 1 : first_block_above(spill, &spill->borders[range - 1], false);
}

bool
gs_spill_plan(GsSpill *spill, uint64_t budget)
{
	uint32_t	first;
	uint32_t	low;
	uint32_t	high = spill->n_blocks;

	if (spill->is_planned ||
		!gs_grow((void **) &spill->borders, (uint64_t) spill->n_ranges + 1, &spill->max_ranges,
					   sizeof(GsSpillBorder)))
		return false;
	low = first_block_within(spill, spill->n_ranges);
	first = low - 1;
	while (low < high)
	{
		uint32_t	middle = low + (high - low + 1) / 2;

		if (spill->bytes_before[middle] - spill->bytes_before[first] <= budget)
			low = middle;
		else
			high = middle - 1;
	}
	if (low < spill->n_blocks)
		spill->borders[spill->n_ranges] = border_at_block(spill, spill->order[low]);
	else
	{
		memset(&spill->borders[spill->n_ranges], 0, sizeof(GsSpillBorder));
		spill->is_planned = true;
	}
	spill->n_ranges++;
	return true;
}

/* ---- splitting ---- */

/* A row in the middle of a range's part of a run. */
typedef struct Candidate
{
	GsSpillBorder border;		/* with a key of its own */
	uint32_t	n_rows;			/* of the range, in the run */
} Candidate;

static int
compare_candidates(const void *a, const void *b)
{
	return compare_borders(&((const Candidate *) a)->border, &((const Candidate *) b)->border);
}

/* Makes a border of row i of a block that was read. */
static bool
border_at_record(GsSpillBorder *border, const GsSpill *spill, uint32_t number,
				 const GsSpillView *view, uint32_t i)
{
	const GsSpillBlock *block = &spill->blocks[number];
	const uint8_t *key = gs_spill_view_key(view, i, &border->key_len);

	border->own_key = malloc((size_t) border->key_len + 1);
	if (border->own_key == NULL)
		return false;
	memcpy(border->own_key, key, border->key_len);
	border->key = border->own_key;
	border->run = block->run;
	border->row = block->first_row + i;
	border->block = number;
	border->repeats = i > 0 ? gs_spill_view_key_is(view, i - 1, key, border->key_len) :
		block->repeats;
	return true;
}

struct GsSpillSplit
{
	GsSpill    *spill;
	bool		found;			/* border is set */
	GsSpillBorder border;

	/* looking for a row */
	Candidate  *candidates;
	uint32_t	n_candidates;
	uint32_t	run;			/* whose blocks are read */
	GsSpillCut	low;			/* the range's part of the run */
	GsSpillCut	high;
	uint32_t	block;			/* the next one */
	uint32_t	end;
	bool		has_view;		/* the block before has been read */
	GsSpillView view;
	bool		failed;			/* no memory */
};

/* Looks at the last range's part of the block that was read.  Its middle row is the run's candidate. */
static bool
look_at_block(GsSpillSplit *split)
{
	const GsSpillView *view = &split->view;
	Candidate  *candidate = &split->candidates[split->n_candidates];
	uint32_t	number = split->block - 1;
	uint32_t	from = number == split->low.block ? gs_spill_cut_record(&split->low, view) : 0;
	uint32_t	to = number == split->high.block ? gs_spill_cut_record(&split->high, view) : view->n;

	if (from >= to)
		return true;
	candidate->n_rows = to - from;
	return border_at_record(&candidate->border, split->spill, number, view, from + (to - from) / 2);
}

/* Turns to the last range's part of a run: of one block at most, because no block begins within the range. */
static void
enter_run(GsSpillSplit *split, uint32_t run)
{
	const GsSpill *spill = split->spill;

	split->run = run;
	if (run == spill->n_runs)
		return;
	split->low = gs_spill_cut_low(spill, spill->n_ranges - 1, run);
	split->high = gs_spill_cut_high(spill, spill->n_ranges - 1, run);
	split->block = split->low.block;
	split->end = split->high.kind == GS_CUT_START ? split->high.block : split->high.block + 1;
	memset(&split->candidates[split->n_candidates], 0, sizeof(Candidate));
}

/*
 * Returns the candidate that has about half of the rows on either side, and at least one row below it; n:
 * there is only one row.
 */
static uint32_t
choose_candidate(Candidate *candidates, uint32_t n)
{
	uint64_t	n_rows = 0;
	uint64_t	n_below = 0;
	uint32_t	i = 0;

	qsort(candidates, n, sizeof(Candidate), compare_candidates);
	for (uint32_t j = 0; j < n; j++)
		n_rows += candidates[j].n_rows;
	while ((n_below += candidates[i].n_rows) < (n_rows + 1) / 2)
		i++;
	if (i == 0 && candidates[0].n_rows == 1)
		i = 1;
	return i;
}

/* Returns the block, of [first, end) in order, that has half of the range below it. */
static uint32_t
middle_block(const GsSpill *spill, uint32_t first, uint32_t end)
{
	uint64_t	middle_bytes = (spill->bytes_before[first - 1] + spill->bytes_before[end]) / 2;
	uint32_t	low = first;
	uint32_t	high = end - 1;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (spill->bytes_before[middle] >= middle_bytes)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Sets a border at a block that begins within the last range.  False: there is none. */
static bool
find_middle_block(const GsSpill *spill, GsSpillBorder *border)
{
	uint32_t	range = spill->n_ranges - 1;
	uint32_t	first = first_block_within(spill, range);
	uint32_t	end = spill->n_blocks;
	uint32_t	middle;

	if (!spill->is_planned)
		end = first_block_above(spill, &spill->borders[range], true);
	if (first >= end)
		return false;
	middle = middle_block(spill, first, end);
	*border = border_at_block(spill, spill->order[middle]);
	return true;
}

GsSpillSplit *
gs_spill_split_begin(GsSpill *spill)
{
	GsSpillSplit *split;

	if (spill->n_ranges == 0)
		return NULL;
	split = calloc(1, sizeof(GsSpillSplit));
	if (split == NULL)
		return NULL;
	split->spill = spill;
	split->found = find_middle_block(spill, &split->border);
	if (split->found)
		return split;
	split->candidates = calloc((size_t) spill->n_runs + 1, sizeof(Candidate));
	if (split->candidates == NULL)
	{
		free(split);
		return NULL;
	}
	enter_run(split, 0);
	return split;
}

bool
gs_spill_split_read(GsSpillSplit *split, void *chunk, GsJob *job)
{
	GsSpill    *spill = split->spill;

	if (split->has_view && !look_at_block(split))
		split->failed = true;
	split->has_view = false;
	while (!split->found && !split->failed && split->run < spill->n_runs)
	{
		if (split->block < split->end)
		{
			split->has_view = true;
			gs_spill_read_block(spill, split->block++, chunk, &split->view, job);
			return true;
		}
		if (split->candidates[split->n_candidates].n_rows > 0)
			split->n_candidates++;
		enter_run(split, split->run + 1);
	}
	return false;
}

bool
gs_spill_split_end(GsSpillSplit *split, bool carry_out)
{
	GsSpill    *spill = split->spill;
	uint32_t	n = split->n_candidates;
	bool		done;

	if (carry_out && !split->found && !split->failed)
	{
		uint32_t	chosen = choose_candidate(split->candidates, n);

		split->found = chosen < n;
		if (split->found)
		{
			split->border = split->candidates[chosen].border;
			split->candidates[chosen].border.own_key = NULL;
		}
	}
	done = carry_out && split->found;
	if (done)
	{
		free(spill->borders[spill->n_ranges - 1].own_key);
		spill->borders[spill->n_ranges - 1] = split->border;
		spill->is_planned = false;
	}
	for (uint32_t i = 0; split->candidates && i <= n; i++)
		free(split->candidates[i].border.own_key);
	free(split->candidates);
	free(split);
	return done;
}
