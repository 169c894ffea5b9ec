/*-------------------------------------------------------------------------
 *
 * sort_tlist.h
 *	  Keeping columns that only the sort needs out of the rows it carries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_TLIST_H
#define GS_SORT_TLIST_H

#include "nodes/plannodes.h"

/*
 * Where a column to sort by is another column of the same target list under a
 * binary-compatible type or another collation, sort by that one.  Changes
 * sort->sortColIdx.
 */
extern void gs_tlist_find_columns(Sort *sort);

/*
 * In a finished plan with a GpuSort at its top, remove columns that nobody
 * needs: neither the user nor the sort.
 */
extern void gs_tlist_drop_junk(PlannedStmt *stmt);

#endif							/* GS_SORT_TLIST_H */
