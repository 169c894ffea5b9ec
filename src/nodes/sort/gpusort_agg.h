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
	GsSortKeys	keys;			/* of sort */
} GsAggInput;

/* False: it is no Agg of one phase whose groups are sorted or all rows, or gets its rows from no GpuSort. */
extern bool gs_agg_read_input(GsAggInput *input, const Agg *agg);

/* Are rows of a group sorted by these SortGroupClauses over an aggregate's args? */
extern bool gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args);

/* A column of the Agg's input, or an expression, as a column of the GpuSort's child; 0: it is none. */
extern AttrNumber gs_agg_sorted_column(const GsAggInput *input, AttrNumber attno);
extern AttrNumber gs_agg_expression_column(const GsAggInput *input, Node *expr);

/* Do two columns of the GpuSort's child have the same value, apart from type and collation? */
extern bool gs_agg_same_column(const GsAggInput *input, AttrNumber a, AttrNumber b);

/* Are rows of a group equal in a column, as this equality under this collation has it? */
extern bool gs_agg_is_grouped_by(const GsAggInput *input, AttrNumber column, Oid equality,
								 Oid collation);

/*
 * May an aggregate without a sort of its own get its rows in another order?
 * PostgreSQL does that to those that it computes in parts, in parallel.
 */
extern bool gs_agg_ignores_order(const Aggref *agg);

/*
 * gpusort_agg_plan_15.c: do two aggregates with DISTINCT drop the same rows, and sort in the same order?
 * May one be given any one of equal values: does it only count them, or are equal ones the same,
 * byte by byte?
 */
#ifndef GS_COMPAT_PRESORTED_AGGREGATES
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);
extern bool gs_agg_takes_any_equal(const Aggref *agg);
#endif

#endif							/* GS_GPUSORT_AGG_H */
