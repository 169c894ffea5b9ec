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

#include "feed/feeder.h"
#include "nodes/common/gpunode.h"
#include "sort/sort.h"

/*
 * Before the feed nodes run, the leader's is told where to feed: to a sort's
 * session, or nowhere (NULL), which makes all feed nodes pass rows on.
 */
extern void gs_feed_set_sort(PlanState *state, GsSort *sort);

#endif							/* GS_GPUFEED_H */
