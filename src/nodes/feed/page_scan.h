/*-------------------------------------------------------------------------
 *
 * page_scan.h
 *	  Feeding the tuples of a table's scan page by page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAGE_SCAN_H
#define GS_PAGE_SCAN_H

#include "nodes/execnodes.h"

#include "sort/sort_feed.h"

typedef struct GsPageScan GsPageScan;

/*
 * A child that scans a heap table and returns columns of it, or an Append, some of whose children may do so;
 * else NULL.  desc describes keys of the child's rows; it is not kept.  In CurrentMemoryContext, which must
 * live no longer than the child.
 */
extern GsPageScan *gs_page_scan_create(PlanState *child, const GsKeyDesc *desc);

/*
 * After the child returned a row, by ExecProcNode(): feed the rows that it would return next, up to
 * the end of their page.  If the answer is not GS_PUT_OK, a row could not be fed, and the child
 * returns it next.
 */
extern GsPut gs_page_scan_feed(GsPageScan *scan, GsFeeder *feeder);

#endif							/* GS_PAGE_SCAN_H */
