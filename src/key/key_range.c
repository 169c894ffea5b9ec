/*-------------------------------------------------------------------------
 *
 * key_range.c
 *	  Writing ranges.
 *
 * range_cmp() puts the empty range first.  It then compares lower bounds, and then upper bounds.  The same
 * as bytes, ascending:
 *
 *		empty			00
 *		else			01, lower bound, upper bound
 *		no lower bound	00
 *		lower bound		01, its value, 00 if the value is in the range, else 01
 *		no upper bound	02
 *		upper bound		01, its value, 01 if the value is in the range, else 00
 *
 * Every encoding of a value ends by itself, and so does this one.
 *
 * Tests: regress/keys_types
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/rangetypes.h"

#include "key/key_value.h"

#define KEY_EMPTY 0x00
#define KEY_NOT_EMPTY 0x01
#define BOUND_BELOW_ALL 0x00
#define BOUND_VALUE 0x01
#define BOUND_ABOVE_ALL 0x02

static bool
put_bound(const GsKeyElement *element, const RangeBound *bound, uint8 **at, const uint8 *end)
{
	uint8		byte;

	if (bound->infinite)
	{
		byte = bound->lower ? BOUND_BELOW_ALL : BOUND_ABOVE_ALL;
		return gs_key_append(at, end, &byte, 1);
	}
	byte = BOUND_VALUE;
	if (!gs_key_append(at, end, &byte, 1) ||
		!gs_key_put_value(&element->column, bound->val, at, end))
		return false;
	byte = bound->inclusive != bound->lower;
	return gs_key_append(at, end, &byte, 1);
}

bool
gs_key_put_range(const GsKeyColumn *col, Datum value, uint8 *dst, size_t room, size_t *written)
{
	const uint8 *end = dst + room;
	uint8	   *at = dst;
	uint8		byte;
	bool		empty;
	bool		all;
	RangeBound	lower;
	RangeBound	upper;

	range_deserialize(col->element->range, DatumGetRangeTypeP(value), &lower, &upper, &empty);
	byte = empty ? KEY_EMPTY : KEY_NOT_EMPTY;
	all = gs_key_append(&at, end, &byte, 1);
	if (all && !empty)
		all = put_bound(col->element, &lower, &at, end) &&
			put_bound(col->element, &upper, &at, end);
	*written = at - dst;
	return all;
}
