/*-------------------------------------------------------------------------
 *
 * order_borders.c
 *	  The last phase of an order check: are all rows between the borders?
 *
 * A sort may be one range of a larger one.  Its keys are in order by now, so
 * its first and its last key are enough: if in each range the lower border comes
 * before the first key and the upper border after the last one, the ranges one after
 * the other are in order.
 *
 * Tests: unit/plain/test_key_order, tap/order_check
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_borders.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "order/order_private.h"

/* Room for the longest key: its length, its bytes. */
#define ENTRY_BYTES (sizeof(uint32_t) + GS_KEY_CHECK_TEXT_BYTES)

/* Begin to fetch one key; false where there is no memory for it. */
static bool
fetch_one(GsOrderCheck *check, uint64_t rank)
{
	if (check->blocks == NULL && !gs_order_make_block(check, ENTRY_BYTES))
		return false;
	gs_order_fetch(check, rank, check->blocks->memory, ENTRY_BYTES);
	return true;
}

/* Does the key that was fetched come after the last one of the range before? */
static void
compare(GsOrderCheck *check)
{
	const uint8_t *entry = check->blocks->memory;
	GsKeyCheckScratch *scratch = malloc(sizeof(GsKeyCheckScratch));
	int			order;

	if (scratch == NULL)
	{
		gs_order_give_up(check, "out of memory");
		return;
	}
	scratch->malformed = false;
	order = gs_key_check_compare(&check->judge.layout, check->judge.locales, check->range.before,
								 check->range.before_len, gs_entry_key(entry), gs_entry_len(entry),
								 scratch);
	if (scratch->malformed || order > 0)
		gs_order_give_up(check, "rows of two ranges are out of order");
	free(scratch);
}

static void
keep_last(GsOrderCheck *check)
{
	size_t		bytes = gs_entry_bytes(check->blocks->memory);

	check->last = malloc(bytes);
	if (check->last == NULL)
		gs_order_give_up(check, "out of memory");
	else
		memcpy(check->last, check->blocks->memory, bytes);
}

bool
gs_order_work_borders(GsOrderCheck *check, bool *proven)
{
	if (check->is_range && check->range.before && !check->first_asked)
	{
		check->first_asked = fetch_one(check, 0);
		return true;
	}
	if (check->is_range && !check->last_asked)
	{
		if (check->first_asked && check->n_keys > 0)
			compare(check);
		if (!check->giving_up)
			check->last_asked = fetch_one(check, check->n_rows - 1);
		return true;
	}
	if (check->is_range && check->n_keys > 0)
		keep_last(check);
	else if (check->is_range)
		gs_order_give_up(check, "the device returned too few keys");
	*proven = !check->giving_up;
	return true;
}

const void *
gs_order_check_last(const GsOrderCheck *check, uint32_t *len)
{
	*len = check->last ? gs_entry_len(check->last) : 0;
	return check->last ? gs_entry_key(check->last) : NULL;
}
