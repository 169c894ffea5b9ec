/*-------------------------------------------------------------------------
 *
 * gpusort_tlist.h
 *	  Sorting by columns that are there already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_TLIST_H
#define GS_GPUSORT_TLIST_H

#include "nodes/plannodes.h"

/*
 * Where a column to sort by is another column of the same target list under a
 * binary-compatible type or another collation, sort by that one.  Changes
 * sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

#endif							/* GS_GPUSORT_TLIST_H */
