/*-------------------------------------------------------------------------
 *
 * order_scan.c
 *	  Checking the order of the keys in one buffer, and repairing it as far as
 *	  that is possible within the buffer.
 *
 * Each pair of neighbours is compared.  If a pair is inverted, the run that
 * contains both is sought to the left and the right.  Runs are nested or
 * disjoint, and an inversion inside a known run is repaired with it.  So a
 * stack of runs suffices: a larger run removes the runs that it
 * contains.  No key is looked at more often than a key has columns.
 *
 * A run that ends on both sides within the buffer is sorted at once.  One that
 * touches the buffer's edge is open: it is left to the caller, with the bytes
 * that its keys begin with.
 *
 * Tests: unit/plain/test_key_order, tap/order_check
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_scan.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>

#include "device/host_machine.h"
#include "order/order_scan.h"

/* Ranges no further apart are one. */
#define JOIN_RANKS	256

/* Pairs compared before a thread looks whether to stop. */
#define STOP_PAIRS	64

/* A run with an inversion, by place in the buffer. */
typedef struct Run
{
	uint32_t	first;
	uint32_t	last;
	uint32_t	prefix_len;
} Run;

typedef struct Runs
{
	Run		   *items;
	uint64_t	n;
	uint64_t	room;
} Runs;

/* ---- lists ---- */

static bool
make_moves_room(GsMoves *moves, uint64_t n)
{
	uint64_t	room = moves->room;

	return gs_host_grow((void **) &moves->to, n, &room, sizeof(uint64_t)) &&
		gs_host_grow((void **) &moves->from, n, &moves->room, sizeof(uint64_t));
}

bool
gs_moves_add(GsMoves *moves, uint64_t to, uint64_t from)
{
	if (!make_moves_room(moves, moves->n + 1))
		return false;
	moves->to[moves->n] = to;
	moves->from[moves->n++] = from;
	return true;
}

bool
gs_moves_append(GsMoves *moves, const GsMoves *more)
{
	if (more->n == 0)
		return true;
	if (!make_moves_room(moves, moves->n + more->n))
		return false;
	memcpy(moves->to + moves->n, more->to, more->n * sizeof(uint64_t));
	memcpy(moves->from + moves->n, more->from, more->n * sizeof(uint64_t));
	moves->n += more->n;
	return true;
}

void
gs_moves_free(GsMoves *moves)
{
	free(moves->to);
	free(moves->from);
	memset(moves, 0, sizeof(*moves));
}

bool
gs_moves_of_order(GsMoves *moves, uint64_t first, const uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (order[i] != i && !gs_moves_add(moves, first + i, first + order[i]))
			return false;
	return true;
}

int
gs_range_compare(const void *a, const void *b)
{
	const GsRange *x = a;
	const GsRange *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

bool
gs_ranges_push(GsRanges *ranges, uint64_t first, uint64_t last)
{
	if (!gs_host_grow((void **) &ranges->items, ranges->n + 1, &ranges->room, sizeof(GsRange)))
		return false;
	ranges->items[ranges->n].first = first;
	ranges->items[ranges->n++].last = last;
	return true;
}

bool
gs_ranges_add(GsRanges *ranges, uint64_t first, uint64_t last)
{
	GsRange    *previous = ranges->n > 0 ? &ranges->items[ranges->n - 1] : NULL;

	if (previous != NULL && first <= previous->last + JOIN_RANKS)
	{
		if (last > previous->last)
			previous->last = last;
		return true;
	}
	return gs_ranges_push(ranges, first, last);
}

void
gs_ranges_free(GsRanges *ranges)
{
	free(ranges->items);
	memset(ranges, 0, sizeof(*ranges));
}

bool
gs_open_runs_add(GsOpenRuns *runs, const GsOpenRun *run)
{
	if (!gs_host_grow((void **) &runs->items, runs->n + 1, &runs->room, sizeof(GsOpenRun)))
		return false;
	runs->items[runs->n++] = *run;
	return true;
}

void
gs_open_runs_free(GsOpenRuns *runs)
{
	for (uint64_t i = 0; i < runs->n; i++)
		free(runs->items[i].prefix);
	free(runs->items);
	memset(runs, 0, sizeof(*runs));
}

/* ---- the scan ---- */

/* Note the run that the inverted pair of i - 1 and i is in. */
static bool
note_run(const GsOrderScan *scan, const uint8_t *const *entries, Runs *runs, uint32_t i)
{
	Run		   *top = runs->n > 0 ? &runs->items[runs->n - 1] : NULL;
	const uint8_t *prefix = gs_entry_key(entries[i]);
	Run			run;

	run.prefix_len = gs_key_check_run_prefix(&scan->judge->layout,
											 gs_entry_key(entries[i - 1]),
											 gs_entry_len(entries[i - 1]),
											 prefix, gs_entry_len(entries[i]));
	if (run.prefix_len == 0)
		return false;			/* two runs, or a defect: nothing to repair */
	if (top != NULL && i <= top->last && run.prefix_len >= top->prefix_len)
		return true;

	run.first = i - 1;
	run.last = i;
	while (run.first > 0 && gs_entry_has_prefix(entries[run.first - 1], prefix, run.prefix_len))
		run.first--;
	while (run.last + 1 < scan->n &&
		   gs_entry_has_prefix(entries[run.last + 1], prefix, run.prefix_len))
		run.last++;
	while (runs->n > 0 && runs->items[runs->n - 1].first >= run.first)
		runs->n--;
	if (!gs_host_grow((void **) &runs->items, runs->n + 1, &runs->room, sizeof(Run)))
		return false;
	runs->items[runs->n++] = run;
	return true;
}

/* Sort a run that is here as a whole. */
static bool
repair_run(GsOrderScan *scan, const uint8_t *const *entries, const Run *run)
{
	uint32_t	n = run->last - run->first + 1;
	uint64_t	first = scan->first + run->first;
	uint64_t	last = scan->first + run->last;
	uint32_t   *order = malloc(2 * (size_t) n * sizeof(uint32_t));
	bool		done;

	done = order != NULL &&
		gs_order_sort(scan->judge, scan->pool, entries + run->first, n, order, order + n) &&
		gs_moves_of_order(&scan->moves, first, order, n) &&
		gs_ranges_add(&scan->moved, first > 0 ? first - 1 : 0,
					  last + 1 < scan->n_rows ? last + 1 : last);
	free(order);
	return done;
}

static bool
leave_open(GsOrderScan *scan, const uint8_t *const *entries, const Run *run)
{
	GsOpenRun	open;

	open.range.first = scan->first + run->first;
	open.range.last = scan->first + run->last;
	open.prefix_len = run->prefix_len;
	open.prefix = malloc(run->prefix_len);
	if (open.prefix == NULL)
		return false;
	memcpy(open.prefix, gs_entry_key(entries[run->first]), run->prefix_len);
	if (gs_open_runs_add(&scan->open, &open))
		return true;
	free(open.prefix);
	return false;
}

static bool
compare_pairs(GsOrderScan *scan, const uint8_t **entries, Runs *runs)
{
	const uint8_t *entry = scan->memory;
	GsKeyCheckScratch scratch;

	scratch.malformed = false;
	for (uint32_t i = 0; i < scan->n; i++)
	{
		entries[i] = entry;
		entry += gs_entry_bytes(entry);
	}
	for (uint32_t i = 1; i < scan->n; i++)
	{
		if (i % STOP_PAIRS == 0 && gs_order_stopped(scan->judge))
			return false;
		if (gs_entry_compare(scan->judge, entries[i - 1], entries[i], &scratch) > 0 &&
			(!scan->repair || !note_run(scan, entries, runs, i)))
			return false;
	}
	return !scratch.malformed;
}

void
gs_order_scan(GsOrderScan *scan)
{
	const uint8_t **entries = malloc(scan->n * sizeof(*entries));
	Runs		runs = {0};

	scan->failed = entries == NULL || !compare_pairs(scan, entries, &runs);
	for (uint64_t i = 0; i < runs.n && !scan->failed; i++)
	{
		const Run  *run = &runs.items[i];
		bool		left = run->first == 0 && scan->first > 0;
		bool		right = run->last == scan->n - 1 && scan->first + scan->n < scan->n_rows;

		if (left || right)
			scan->failed = !leave_open(scan, entries, run);
		else
			scan->failed = !repair_run(scan, entries, run);
	}
	free(runs.items);
	free(entries);
}

void
gs_order_scan_free(GsOrderScan *scan)
{
	gs_moves_free(&scan->moves);
	gs_ranges_free(&scan->moved);
	gs_open_runs_free(&scan->open);
}
