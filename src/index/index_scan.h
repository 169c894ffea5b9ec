/*-------------------------------------------------------------------------
 *
 * index_scan.h
 *	  The table's scan of an index build: every tuple to be indexed goes to
 *	  the device, from this process and parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_SCAN_H
#define GS_INDEX_SCAN_H

#include "access/itup.h"
#include "nodes/execnodes.h"
#include "sort/sort_feed.h"
#include "utils/rel.h"

typedef struct GsIndexScanResult
{
	GsPut		status;			/* OK, OVERFLOW or LOST; OK: all is fed */
	double		heap_tuples;
	double		index_tuples;
	double		paged_tuples;	/* index_tuples that were taken from pages, not from the scan */
	int			workers;		/* that were launched */
} GsIndexScanResult;

/*
 * Feed all tuples to client's session; with workers where asked for and to be
 * had.  Sets info->ii_BrokenHotChain as PostgreSQL's builds do.
 */
extern void gs_index_scan(Relation heap, Relation index, IndexInfo *info, GsClient *client,
						  const GsKeyDesc *desc, int workers, GsIndexScanResult *result);

/*
 * What is fed is the index tuple.  In a unique index's build, tuples that are
 * exempt from uniqueness are marked in a bit that is zero in all others.
 */
#define GS_INDEX_TUPLE_EXEMPT	INDEX_AM_RESERVED_BIT

#endif							/* GS_INDEX_SCAN_H */
