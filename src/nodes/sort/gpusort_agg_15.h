/*-------------------------------------------------------------------------
 *
 * gpusort_agg_15.h
 *	  What gpusort_agg_path_15.c and gpusort_agg_plan_15.c ask of aggregates with DISTINCT.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_AGG_15_H
#define GS_GPUSORT_AGG_15_H

#include "nodes/primnodes.h"

/* Do two of them drop the same rows, and sort in the same order? */
extern bool gs_agg_equal_distinct(const Aggref *a, const Aggref *b);

/*
 * May it be given any one of equal values: does it only
 * count them, or are equal ones the same, byte by byte?
 */
extern bool gs_agg_takes_any_equal(const Aggref *agg);

#endif							/* GS_GPUSORT_AGG_15_H */
