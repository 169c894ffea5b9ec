/*-------------------------------------------------------------------------
 *
 * gpusort_agg.h
 *	  In which order a finished Agg gets its rows from a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_AGG_H
#define GS_GPUSORT_AGG_H

#include "nodes/plannodes.h"

#include "compat.h"
#include "sort/sort.h"

/* An Agg and what is below it. */
typedef struct GsAggInput
{
	const Agg  *agg;
	const Unique *unique;		/* NULL: there is none */
	const CustomScan *sort;		/* GpuSort */
	Bitmapset  *grouped;		/* the sort's keys in which rows of a group are equal */
} GsAggInput;

/* False: it is no Agg of one phase whose groups are sorted or all rows, or gets its rows from no GpuSort. */
extern bool gs_agg_read_input(GsAggInput *input, const Agg *agg);

/* Are rows of a group sorted by these SortGroupClauses over an aggregate's args? */
extern bool gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args);

/*
 * May an aggregate without a sort of its own get its rows in another order?
 * PostgreSQL does that to those that it computes in parts, in parallel.
 */
extern bool gs_agg_ignores_order(const Aggref *agg);

/*
 * gpusort_agg_path_15.c: do two aggregates with DISTINCT drop the same rows, and sort in the same order?
 * May one be given any one of equal values: does it only count them, or are equal ones the same,
 * byte by byte?
 */
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);
extern bool gs_agg_takes_any_equal(const Aggref *agg);
#endif

#endif							/* GS_GPUSORT_AGG_H */
