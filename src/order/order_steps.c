/*-------------------------------------------------------------------------
 *
 * order_steps.c
 *	  What the phases of an order check have in common: its one job of the
 *	  device, its memory for keys, the way to the next phase, giving up.
 *
 * order_check.c and order_repair.c call it; it calls neither.
 *
 * Tests: unit/plain/test_key_order, tap/order_check
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_steps.c is plain C and must not see postgres.h"
#endif

#include <stdio.h>
#include <stdlib.h>

#include "order/order_private.h"

GsOrderChecker gs_order_checker;

void
gs_order_give_up(GsOrderCheck *check, const char *reason)
{
	if (check->giving_up)
		return;
	check->giving_up = true;
	snprintf(check->outcome.reason.message, sizeof(check->outcome.reason.message), "%s", reason);
	__atomic_store_n(&check->judge.stop, 1, __ATOMIC_RELAXED);
}

void
gs_order_free_blocks(GsOrderCheck *check)
{
	while (check->blocks != NULL)
	{
		Block	   *block = check->blocks;

		check->blocks = block->next;
		free(block);
	}
	check->blocks_bytes = 0;
	free(check->entries);
	free(check->order);
	check->entries = NULL;
	check->order = NULL;
	check->n_entries = 0;
}

bool
gs_order_make_block(GsOrderCheck *check, size_t bytes)
{
	Block	   *block = malloc(sizeof(Block) + bytes);

	if (block == NULL)
	{
		gs_order_give_up(check, "out of memory");
		return false;
	}
	block->next = check->blocks;
	check->blocks = block;
	check->blocks_bytes += bytes;
	return true;
}

static void
begin_job(GsOrderCheck *check)
{
	gs_job_begin(&check->job);
	check->job_pending = true;
}

void
gs_order_fetch(GsOrderCheck *check, uint64_t first, void *memory, size_t bytes)
{
	begin_job(check);
	gs_order_checker.ops->fetch_keys(check->sort, first, memory, bytes, &check->n_keys, &check->job);
}

void
gs_order_move_then(GsOrderCheck *check, Phase phase)
{
	if (check->moves.n == 0)
	{
		check->phase = phase;
		return;
	}
	check->phase = PHASE_MOVE;
	check->after_move = phase;
	begin_job(check);
	gs_order_checker.ops->reorder(check->sort, check->moves.to, check->moves.from, check->moves.n,
									 &check->job);
}

size_t
gs_order_fetch_bytes(const GsOrderCheck *check, uint64_t n_keys)
{
	uint64_t	bytes = MIN_FETCH_BYTES + n_keys * (check->entry_bytes + check->entry_bytes / 4);

	return bytes < check->slice_bytes ? (size_t) bytes : check->slice_bytes;
}

bool
gs_order_begin_rescan(GsOrderCheck *check)
{
	GsRanges	joined = {0};

	qsort(check->moved.items, check->moved.n, sizeof(GsRange), gs_range_compare);
	for (uint64_t i = 0; i < check->moved.n; i++)
		if (!gs_ranges_add(&joined, check->moved.items[i].first, check->moved.items[i].last))
			gs_order_give_up(check, "out of memory");
	gs_ranges_free(&check->moved);
	gs_ranges_free(&check->stretches);
	check->stretches = joined;
	if (!check->giving_up)
		gs_order_move_then(check, PHASE_RESCAN);
	return true;
}
