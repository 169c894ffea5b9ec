/*-------------------------------------------------------------------------
 *
 * index_stream.h
 *	  The index tuples of a performed sort, in the index's order, checked for
 *	  uniqueness.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_STREAM_H
#define GS_INDEX_STREAM_H

#include "access/itup.h"
#include "nodes/execnodes.h"
#include "sort/sort_rows.h"
#include "utils/rel.h"

typedef struct GsIndexStream GsIndexStream;

/*
 * A tuple that is exempt from uniqueness is fed with this bit, which is zero in all others, and comes
 * without it.
 */
#define GS_INDEX_TUPLE_EXEMPT	INDEX_AM_RESERVED_BIT

/* Allocates in CurrentMemoryContext. */
extern GsIndexStream *gs_index_stream_begin(Relation heap, Relation index, const IndexInfo *info,
											GsClient *client);

/* At most so many tuples come at once. */
#define GS_INDEX_STREAM_TUPLES	64

/*
 * The tuples from the current row on, which is not inexact: to the end of its page or the next inexact one,
 * but no more than so many.  The last one is the current row then.
 */
extern int	gs_index_read_page(GsRows *rows, IndexTuple *tuples);

/*
 * The next tuples, valid until the next call.  tuples has room for GS_INDEX_STREAM_TUPLES; *n is how many
 * came, 0 with GS_CLIENT_OK at the end.  Fails as PostgreSQL does where the index is unique and the keys
 * are not.
 */
extern GsClientStatus gs_index_stream_next(GsIndexStream *stream, IndexTuple *tuples, int *n);

/* Tuples that were put in order by comparison, so far. */
extern uint64 gs_index_stream_settled(const GsIndexStream *stream);

extern void gs_index_stream_end(GsIndexStream *stream);

#endif							/* GS_INDEX_STREAM_H */
