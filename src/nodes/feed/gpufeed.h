/*-------------------------------------------------------------------------
 *
 * gpufeed.h
 *	  The node GpuSortFeed, which hands a partial plan's rows to the device.
 *
 * It stands below a GpuSort and a Gather, and nowhere else.  So its paths and
 * plans are made with GpuSort's, and custom_private is GpuSort's (gpusort.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUFEED_H
#define GS_GPUFEED_H

#include "nodes/execnodes.h"

#include "nodes/common/gpunode.h"
#include "sort/sort.h"
#include "sort/sort_feed.h"

/*
 * Before the feed nodes run, the leader's is told where to feed: to a sort's
 * session, or nowhere (NULL), which makes all feed nodes pass rows on.
 */
extern void gs_feed_set_sort(PlanState *state, GsSort *sort);

/*
 * page_scan.c: feeding the tuples of a table's scan page by page
 */

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

#endif							/* GS_GPUFEED_H */
