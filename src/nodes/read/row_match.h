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
#include "nodes/read/reader.h"

/* What a row has in common with the one before.  A group is a partition without peers. */
typedef enum GsRowMatch
{
	GS_SAME_PEERS,
	GS_SAME_PARTITION,
	GS_OTHER_PARTITION
} GsRowMatch;

typedef struct RowComparison RowComparison;

/* How the copied row relates to the row that was read last. */
typedef enum GsCopyIs
{
	COPY_IS_OTHER,				/* in another partition, or there is no copy */
	COPY_IS_IN_PARTITION,
	COPY_IS_PEER
} GsCopyIs;

typedef struct GsRowMatcher
{
	const GsReader *reader;
	GsNextRow	next;			/* how the next row's key relates to that of the row read last */
	GsCopyIs	copy_is;
	bool		others_are_not; /* rows with different keys are no peers; only above a GpuSort */
	bool		keys_are_groups;	/* partitions have no peers, and consist of rows with equal keys */

	/* the rest is for row_match.c */
	bool		equal_are_peers;	/* rows with equal keys are peers; only above a GpuSort */
	bool		begun;			/* a row was read */
	MemoryContext scratch;		/* reset after a comparison */
	RowComparison *same_peers;	/* NULL: all rows of a partition are peers */
	RowComparison *same_partition;	/* NULL: there is only one partition */
	TupleTableSlot *copy;
} GsRowMatcher;

/*
 * Make a matcher for the rows of node's child, which reader reads.  order: the columns in which peers are
 * equal; NULL, or none: all rows of a partition are peers.  Allocates in CurrentMemoryContext, which must
 * live as long as the query.
 */
extern GsRowMatcher *gs_row_matcher_create(CustomScanState *node, const GsReader *reader,
										   const GsColumns *partition, const GsColumns *order);

/* The child begins again. */
extern void gs_row_matcher_reset(GsRowMatcher *matcher);

/* Parts of gs_row_matcher_match(): compare a row, if keys do not tell; keep a row for the next comparison. */
extern GsRowMatch gs_row_matcher_compare(GsRowMatcher *matcher, TupleTableSlot *slot);
extern void gs_row_matcher_prepare(GsRowMatcher *matcher, TupleTableSlot *slot);

/* How a row that was just read relates to the row before it. */
static inline GsRowMatch
gs_row_matcher_match(GsRowMatcher *matcher, TupleTableSlot *slot)
{
	GsRowMatch	match = GS_SAME_PEERS;

	if (!matcher->keys_are_groups || matcher->next == GS_NEXT_ROW_UNKNOWN)
		return gs_row_matcher_compare(matcher, slot);
	if (matcher->next == GS_NEXT_ROW_OTHER)
	{
		match = GS_OTHER_PARTITION;
		matcher->copy_is = COPY_IS_OTHER;
	}
	matcher->next = gs_reader_next_row(matcher->reader);
	if (unlikely(matcher->next == GS_NEXT_ROW_UNKNOWN))
		gs_row_matcher_prepare(matcher, slot);
	return match;
}

/* Are there partitions, other than one of all rows? */
extern bool gs_row_matcher_has_partitions(const GsRowMatcher *matcher);

/* Do the keys tell that the next row is in another partition? */
static inline bool
gs_row_matcher_knows_end(const GsRowMatcher *matcher)
{
	return matcher->next == GS_NEXT_ROW_OTHER && matcher->keys_are_groups;
}

/* Do the keys tell that the next row is no peer of the row read last, in this partition or another? */
static inline bool
gs_row_matcher_knows_peers_end(const GsRowMatcher *matcher)
{
	return matcher->next == GS_NEXT_ROW_OTHER && matcher->others_are_not;
}

#endif							/* GS_ROW_MATCH_H */
