/*-------------------------------------------------------------------------
 *
 * row_match.h
 *	  How the rows that a GpuWindow reads are related to each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ROW_MATCH_H
#define GS_ROW_MATCH_H

#include "nodes/execnodes.h"

#include "nodes/sort/gpusort_reader.h"

/* Of a row to the one before. */
typedef enum GsRowRelation
{
	GS_SAME_PEERS,
	GS_SAME_PARTITION,
	GS_OTHER_PARTITION
} GsRowRelation;

typedef struct GsRelations GsRelations;

/*
 * For the rows of node's child, which reader reads.  lists: custom_private (gpuwindow.h).
 * peers: is it asked which rows are peers?  If not, or where there is no ORDER BY, all rows
 * of a partition are.  In CurrentMemoryContext, which must live as long as the query.
 */
extern GsRelations *gs_relations_create(CustomScanState *node, const GsReader *reader,
										List *const *lists, bool peers);

/* The child begins again. */
extern void gs_relations_reset(GsRelations *relations);

/* A row that was just read: how it is related to the one that was read before. */
extern GsRowRelation gs_relations_read(GsRelations *relations, TupleTableSlot *slot);

/* Are there partitions, other than one of all rows?  Are there other peers than partitions? */
extern bool gs_relations_has_partitions(const GsRelations *relations);
extern bool gs_relations_has_peers(const GsRelations *relations);

/*
 * Of rows behind the one that was read last, where they are at hand before they are read: how many
 * are its peers; is the row n places behind it in its partition?  False:
 * it is not known.
 */
extern bool gs_relations_count_peers(const GsRelations *relations, uint64 *count);
extern bool gs_relations_look_ahead(GsRelations *relations, uint64 n, bool *same_partition);

#endif							/* GS_ROW_MATCH_H */
