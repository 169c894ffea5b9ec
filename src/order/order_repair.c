/*-------------------------------------------------------------------------
 *
 * order_repair.c
 *	  The order check's repair of runs that reach beyond a buffer.
 *
 * A part of such a run is known, and the bytes that all its keys begin with.
 * The phases BOUND, LOAD and SORT (order_check.c) find where it ends, read it
 * into memory, and sort it.  One check at a time is in them.
 *
 * Calls order_steps.c and the lists of order_scan.c; order_check.c calls it.
 *
 * Tests: unit/plain/test_key_order, tap/order_check
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_repair.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>

#include "order/order_private.h"

#define PROBE_BYTES		((size_t) 32 << 10)
#define MAX_RUN_KEYS	((uint64_t) 16 << 20)
#define MAX_RUN_BYTES	((uint64_t) 1 << 30)

static int
compare_open_runs(const void *a, const void *b)
{
	const GsOpenRun *x = a;
	const GsOpenRun *y = b;
	int			order = gs_range_compare(&x->range, &y->range);

	/* of runs that begin together the larger one comes first */
	return order != 0 ? order : (x->prefix_len > y->prefix_len) - (x->prefix_len < y->prefix_len);
}

/*
 * Sort the open runs, and join runs that overlap.  Two runs that share a
 * key are the same run, or the one with the longer prefix lies in the other.
 */
static void
join_open_runs(GsOpenRuns *runs)
{
	uint64_t	n = 0;

	qsort(runs->items, runs->n, sizeof(GsOpenRun), compare_open_runs);
	for (uint64_t i = 0; i < runs->n; i++)
	{
		GsOpenRun  *run = &runs->items[i];

		while (n > 0 && runs->items[n - 1].range.last >= run->range.first)
		{
			GsOpenRun  *last = &runs->items[n - 1];

			if (run->range.first > last->range.first)
				run->range.first = last->range.first;
			if (run->range.last < last->range.last)
				run->range.last = last->range.last;
			if (run->prefix_len > last->prefix_len)
			{
				uint8_t    *prefix = run->prefix;

				run->prefix = last->prefix;
				run->prefix_len = last->prefix_len;
				last->prefix = prefix;
			}
			free(last->prefix);
			last->prefix = NULL;
			n--;
		}
		if (n != i)
		{
			runs->items[n] = *run;
			run->prefix = NULL;
		}
		n++;
	}
	runs->n = n;
}

static void
begin_bound(GsOrderCheck *check, bool right)
{
	const GsRange *range = &check->open.items[check->run].range;

	check->bound.right = right;
	check->bound.halving = false;
	check->bound.inside = 0;
	check->bound.outside = right ? check->n_rows - range->last : range->first + 1;
	check->bound.step = 1;
}

/* Is the key that was probed in the run? */
static void
note_probe(GsOrderCheck *check)
{
	const GsOpenRun *run = &check->open.items[check->run];
	Bound	   *bound = &check->bound;
	uint64_t	at = bound->inside + bound->step;

	if (check->n_keys == 0)
		gs_order_give_up(check, "the device returned too few keys");
	else if (gs_entry_has_prefix(check->blocks->memory, run->prefix, run->prefix_len))
	{
		bound->inside = at;
		bound->step *= 2;
	}
	else
	{
		bound->outside = at;
		bound->halving = true;
	}
}

bool
gs_order_work_bound(GsOrderCheck *check)
{
	Bound	   *bound = &check->bound;
	GsRange    *range;

	if (gs_order_checker.repairing != check)
	{
		if (gs_order_checker.repairing != NULL)
			return false;
		gs_order_checker.repairing = check;
		join_open_runs(&check->open);
		if (!gs_order_make_block(check, PROBE_BYTES))
			return true;
		check->run = 0;
		begin_bound(check, false);
	}
	else
		note_probe(check);

	while (!check->giving_up)
	{
		uint64_t	left = bound->outside - bound->inside;

		range = &check->open.items[check->run].range;
		if (left > 1)
		{
			if (bound->halving || bound->step >= left)
				bound->step = left / 2;
			gs_order_fetch(check, bound->right ? range->last + bound->inside + bound->step :
				  range->first - bound->inside - bound->step,
				  check->blocks->memory, PROBE_BYTES);
			break;
		}
		if (!bound->right)
		{
			range->first -= bound->inside;
			begin_bound(check, true);
			continue;
		}
		range->last += bound->inside;
		if (++check->run == check->open.n)
		{
			gs_order_free_blocks(check);
			join_open_runs(&check->open);
			check->run = 0;
			check->phase = PHASE_LOAD;
			break;
		}
		begin_bound(check, false);
	}
	return true;
}

/* Note the keys that have arrived; they are all of one run. */
static void
note_loaded(GsOrderCheck *check)
{
	const GsOpenRun *run = &check->open.items[check->run];
	uint64_t	count = run->range.last - run->range.first + 1;
	const uint8_t *entry = check->blocks->memory;

	if (check->n_keys == 0)
		gs_order_give_up(check, "the device returned too few keys");
	for (uint64_t i = 0; i < check->n_keys && check->n_entries < count; i++)
	{
		if (!gs_entry_has_prefix(entry, run->prefix, run->prefix_len))
		{
			gs_order_give_up(check, "the keys of a run do not stand together");
			return;
		}
		check->entries[check->n_entries++] = entry;
		entry += gs_entry_bytes(entry);
	}
}

static void
run_sort(GsHostTask *task)
{
	GsOrderCheck *check = (GsOrderCheck *) task;
	uint32_t	n = (uint32_t) check->n_entries;
	bool		sorted = gs_order_sort(&check->judge, gs_order_checker.pool, check->entries, n,
									   check->order, check->order + n);

	__atomic_store_n(&check->sorted, sorted ? 1 : -1, __ATOMIC_RELEASE);
	gs_order_checker.notify(NULL);
}

/* Read the next keys of the run in work, or have it sorted. */
bool
gs_order_work_load(GsOrderCheck *check)
{
	const GsRange *range = &check->open.items[check->run].range;
	uint64_t	count = range->last - range->first + 1;
	size_t		bytes;

	if (check->entries == NULL)
	{
		if (count > MAX_RUN_KEYS)
		{
			gs_order_give_up(check, "too many rows differ in details of their text only");
			return true;
		}
		check->entries = malloc(count * sizeof(*check->entries));
		check->order = malloc(2 * count * sizeof(*check->order));
		if (check->entries == NULL || check->order == NULL)
		{
			gs_order_give_up(check, "out of memory");
			return true;
		}
	}
	else
		note_loaded(check);
	if (check->giving_up)
		return true;

	if (check->n_entries == count)
	{
		check->phase = PHASE_SORT;
		check->sorted = 0;
		check->task.run = run_sort;
		gs_host_pool_submit(gs_order_checker.pool, &check->task);
		return true;
	}
	bytes = gs_order_fetch_bytes(check, count - check->n_entries);
	if (check->blocks_bytes + bytes > MAX_RUN_BYTES)
		gs_order_give_up(check, "too many rows differ in details of their text only");
	else if (gs_order_make_block(check, bytes))
		gs_order_fetch(check, range->first + check->n_entries, check->blocks->memory, bytes);
	return true;
}

bool
gs_order_work_sort(GsOrderCheck *check)
{
	const GsRange *range = &check->open.items[check->run].range;
	int			sorted = __atomic_load_n(&check->sorted, __ATOMIC_ACQUIRE);

	if (sorted == 0)
		return false;
	if (sorted < 0)
		gs_order_give_up(check, "rows could not be repaired");
	else if (!gs_moves_of_order(&check->moves, range->first, check->order,
								(uint32_t) check->n_entries) ||
			 !gs_ranges_push(&check->moved, range->first > 0 ? range->first - 1 : 0,
							 range->last + 1 < check->n_rows ? range->last + 1 : range->last))
		gs_order_give_up(check, "out of memory");
	gs_order_free_blocks(check);
	check->phase = PHASE_LOAD;
	if (check->giving_up)
		return true;
	if (++check->run == check->open.n)
	{
		gs_order_checker.repairing = NULL;
		return gs_order_begin_rescan(check);
	}
	if (check->moves.n >= MAX_MOVES)
		gs_order_move_then(check, PHASE_LOAD);
	return true;
}
