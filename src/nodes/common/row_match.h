/*-------------------------------------------------------------------------
 *
 * row_match.h
 *	  Comparing each row that a node reads with the one before: where groups, partitions and peers
 *	  begin.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ROW_MATCH_H
#define GS_ROW_MATCH_H

#include "nodes/execnodes.h"

#include "nodes/common/gpunode.h"
#include "nodes/sort/gpusort_reader.h"

/* What a row has in common with the one before.  A group is a partition without peers. */
typedef enum GsRowMatch
{
	GS_SAME_PEERS,
	GS_SAME_PARTITION,
	GS_OTHER_PARTITION
} GsRowMatch;

typedef struct GsRowMatcher GsRowMatcher;

/*
 * For the rows of node's child, which reader reads.  order: the columns in which peers are equal; NULL, or
 * none: all rows of a partition are peers.  In CurrentMemoryContext, which must live as long as the
 * query.
 */
extern GsRowMatcher *gs_row_matcher_create(CustomScanState *node, const GsReader *reader,
										   const GsColumns *partition, const GsColumns *order);

/* The child begins again. */
extern void gs_row_matcher_reset(GsRowMatcher *matcher);

/* Of a row that was just read, and the one that was read before. */
extern GsRowMatch gs_row_matcher_match(GsRowMatcher *matcher, TupleTableSlot *slot);

/* Are there partitions, other than one of all rows? */
extern bool gs_row_matcher_has_partitions(const GsRowMatcher *matcher);

/* Is it known of the row that was read last that the next one is in another partition? */
extern bool gs_row_matcher_knows_end(const GsRowMatcher *matcher);

/* ... that the next one is no peer, in this partition or another? */
extern bool gs_row_matcher_knows_peers_end(const GsRowMatcher *matcher);

#endif							/* GS_ROW_MATCH_H */
