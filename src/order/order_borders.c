/*-------------------------------------------------------------------------
 *
 * order_borders.c
 *	  The last phase of an order check: are all rows between the borders?
 *
 * A sort may be one range of a larger one.  Its keys are in order by now, so
 * its first and its last key tell: with the lower border before the one and the upper
 * border behind the other in each range, the ranges one after the other are in
 * order, too.
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "order_borders.c is plain C and must not see postgres.h"
#endif

#include <stdlib.h>

#include "order/order_private.h"

/* Room for the longest key: its length, its bytes. */
#define ENTRY_BYTES (sizeof(uint32_t) + GS_KEY_CHECK_TEXT_BYTES)

/* Begin to fetch one key; false where there is no memory for it. */
static bool
fetch_one(GsOrderCheck *check, uint64_t rank)
{
	if (check->blocks == NULL)
	{
		check->blocks = malloc(sizeof(Block) + ENTRY_BYTES);
		if (check->blocks == NULL)
		{
			gs_order_give_up(check, "out of memory");
			return false;
		}
		check->blocks->next = NULL;
	}
	gs_order_fetch(check, rank, check->blocks->memory, ENTRY_BYTES);
	return true;
}

/* Is the key that was fetched on the right side of a border? */
static void
compare(GsOrderCheck *check, const void *border, uint32_t len, bool is_low)
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
	order = gs_key_check_compare(&check->judge.layout, check->judge.locales, border, len,
								 gs_entry_key(entry), gs_entry_len(entry), scratch);
	if (check->n_keys == 0)
		gs_order_give_up(check, "the device returned too few keys");
	else if (scratch->malformed || (is_low ? order > 0 : order < 0))
		gs_order_give_up(check, "a row is beyond the borders of its range");
	free(scratch);
}

bool
gs_order_work_borders(GsOrderCheck *check, bool *proven)
{
	GsOrderBorders *borders = &check->borders;

	if (borders->low && !check->low_asked)
	{
		check->low_asked = fetch_one(check, 0);
		return true;
	}
	if (borders->low)
		compare(check, borders->low, borders->low_len, true);
	borders->low = NULL;
	if (check->giving_up)
		return true;
	if (borders->high && !check->high_asked)
	{
		check->high_asked = fetch_one(check, check->n_rows - 1);
		return true;
	}
	if (borders->high)
		compare(check, borders->high, borders->high_len, false);
	borders->high = NULL;
	*proven = !check->giving_up;
	return true;
}
