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

#include "index/index_kind.h"
#include "utils/rel.h"

typedef struct GsIndexScanResult
{
	GsPut		status;			/* OK, OVERFLOW or LOST; OK: all is fed */
	double		heap_tuples;
	double		index_tuples;
	double		paged_rows;		/* heap_tuples that were taken from pages, not from the scan */
	int			workers;		/* that were launched */
} GsIndexScanResult;

/*
 * Feed all tuples to client's session; with workers where asked for and to be
 * had.  Sets info->ii_BrokenHotChain as PostgreSQL's builds do.
 */
extern void gs_index_scan(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info,
						  GsClient *client, const GsKeyDesc *desc, int workers,
						  GsIndexScanResult *result);

#endif							/* GS_INDEX_SCAN_H */
