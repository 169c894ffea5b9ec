/*-------------------------------------------------------------------------
 *
 * page_scan.h
 *	  Feeding the tuples of a table's scan page by page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAGE_SCAN_H
#define GS_PAGE_SCAN_H

#include "feed/feeder.h"
#include "nodes/execnodes.h"

typedef struct GsPageScan GsPageScan;

/*
 * Makes a GsPageScan if the child scans a heap table and returns columns of it, or if it is an Append with
 * such children; else NULL.  desc describes keys of the child's rows, and is not kept.  It serves one scan
 * of the child, and is in CurrentMemoryContext.
 */
extern GsPageScan *gs_page_scan_create(PlanState *child, const GsKeyDesc *desc);

/*
 * Replaces ExecProcNode() of the child, after the row before was put.  With a feeder, it first feeds the
 * rows that the child would return next, up to the end of their page.  It returns a row that cannot be fed.
 */
extern TupleTableSlot *gs_page_scan_next(GsPageScan *scan, GsFeeder *feeder);

#endif							/* GS_PAGE_SCAN_H */
