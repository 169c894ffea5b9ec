/*-------------------------------------------------------------------------
 *
 * index_tuple.h
 *	  The tuples of an index: forming them, and reading those of a performed sort, in the index's order and
 *	  checked for uniqueness.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_TUPLE_H
#define GS_INDEX_TUPLE_H

#include "access/itup.h"
#include "access/tupdesc.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "sort/sort_rows.h"

typedef struct GsTupleFormer GsTupleFormer;

/* In CurrentMemoryContext.  tupdesc, the index's, must live as long. */
extern GsTupleFormer *gs_tuple_former_create(TupleDesc tupdesc);

/*
 * The tuple that index_form_tuple() would form, without a TID; valid until the next call.  Raises the same
 * errors.
 */
extern IndexTuple gs_tuple_former_form(GsTupleFormer *former, Datum *values, bool *isnull);

/* Have two tuples the same bytes, except for the TID?  Their sizes are multiples of MAXALIGN(). */
static inline bool
gs_index_same_image(const IndexTupleData *a, const IndexTupleData *b)
{
	const char *end_a = (const char *) a + IndexTupleSize(a);
	const char *end_b = (const char *) b + IndexTupleSize(a);
	const char *begin_a = (const char *) a + sizeof(IndexTupleData);

	if (a->t_info != b->t_info)
		return false;

	/* Neighbours in the order differ at their ends rather than beginnings */
	while (end_a > begin_a)
	{
		end_a -= sizeof(uint64);
		end_b -= sizeof(uint64);
		if (*(const uint64 *) end_a != *(const uint64 *) end_b)
			return false;
	}
	return true;
}

/* Have values that are equal, to a btree operator family, the same image? */
extern bool gs_index_equal_image(Oid opfamily, Oid type, Oid collation);

typedef struct GsIndexStream GsIndexStream;

/*
 * A tuple that is exempt from uniqueness is fed with this bit, which is zero in all others, and comes
 * without it.
 */
#define GS_INDEX_TUPLE_EXEMPT	INDEX_AM_RESERVED_BIT

/* Allocates in CurrentMemoryContext. */
extern GsIndexStream *gs_index_stream_begin(Relation heap, Relation index, const IndexInfo *info,
											GsClient *client, const GsKeyDesc *desc);

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

/* Why gs_index_stream_next() did not return GS_CLIENT_OK. */
extern GsFallback gs_index_stream_reason(const GsIndexStream *stream);

/* Answers how many tuples were put in order by comparison. */
extern uint64 gs_index_stream_end(GsIndexStream *stream);

#endif							/* GS_INDEX_TUPLE_H */
