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
 * A child that scans a heap table and returns columns of it, or an Append, some of whose children may do so;
 * else NULL.  desc describes keys of the child's rows; it is not kept.  For one scan of the child; in
 * CurrentMemoryContext.
 */
extern GsPageScan *gs_page_scan_create(PlanState *child, const GsKeyDesc *desc);

/*
 * In place of ExecProcNode() of the child, after the row before was put.  feeder not NULL: first the rows
 * that the child would return next are fed, up to the end of their page.  What cannot be fed is returned.
 */
extern TupleTableSlot *gs_page_scan_next(GsPageScan *scan, GsFeeder *feeder);

#endif							/* GS_PAGE_SCAN_H */
