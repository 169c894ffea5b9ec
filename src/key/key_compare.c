/*-------------------------------------------------------------------------
 *
 * key_compare.c
 *	  Comparing tuples by their operator classes.
 *
 * This is how PostgreSQL's own sort compares, one SortSupport a column and
 * no abbreviation.  It settles ties of inexact keys, and serves wherever
 * tuples are ordered without their keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/sortsupport.h"

#include "key/key.h"

struct GsKeyComparator
{
	const GsKeyDesc *desc;
	SortSupportData columns[FLEXIBLE_ARRAY_MEMBER];
};

GsKeyComparator *
gs_key_comparator_create(const GsKeyDesc *desc)
{
	GsKeyComparator *cmp;

	cmp = palloc0(offsetof(GsKeyComparator, columns) +
				  desc->ncols * sizeof(SortSupportData));
	cmp->desc = desc;
	for (int i = 0; i < desc->ncols; i++)
	{
		const GsKeyColumn *col = &desc->cols[i];
		SortSupport ssup = &cmp->columns[i];

		ssup->ssup_cxt = CurrentMemoryContext;
		ssup->ssup_collation = col->collation;
		ssup->ssup_nulls_first = col->nulls_first;
		ssup->ssup_attno = col->attno;
		ssup->abbreviate = false;
		PrepareSortSupportFromOrderingOp(col->sort_operator, ssup);
	}
	return cmp;
}

int
gs_key_compare(GsKeyComparator *cmp, const Datum *values_a, const bool *isnull_a,
			   const Datum *values_b, const bool *isnull_b)
{
	for (int i = 0; i < cmp->desc->ncols; i++)
	{
		SortSupport ssup = &cmp->columns[i];
		int			at = ssup->ssup_attno - 1;
		int			result;

		result = ApplySortComparator(values_a[at], isnull_a[at],
									 values_b[at], isnull_b[at], ssup);
		if (result != 0)
			return result;
	}
	return 0;
}

int
gs_key_compare_slots(GsKeyComparator *cmp, TupleTableSlot *a, TupleTableSlot *b)
{
	slot_getsomeattrs(a, cmp->desc->max_attno);
	slot_getsomeattrs(b, cmp->desc->max_attno);
	return gs_key_compare(cmp, a->tts_values, a->tts_isnull,
						  b->tts_values, b->tts_isnull);
}
