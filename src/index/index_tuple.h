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

/* Do two tuples have the same bytes, except for the TID?  Their sizes are multiples of MAXALIGN(). */
static inline bool
gs_index_same_image(const IndexTupleData *a, const IndexTupleData *b)
{
	const char *end_a = (const char *) a + IndexTupleSize(a);
	const char *end_b = (const char *) b + IndexTupleSize(a);
	const char *begin_a = (const char *) a + sizeof(IndexTupleData);

	if (a->t_info != b->t_info)
		return false;

	/* neighbours in the order mostly differ near their ends */
	while (end_a > begin_a)
	{
		end_a -= sizeof(uint64);
		end_b -= sizeof(uint64);
		if (*(const uint64 *) end_a != *(const uint64 *) end_b)
			return false;
	}
	return true;
}

typedef struct GsIndexStream GsIndexStream;

/* This bit marks tuples that are exempt from uniqueness when they are fed.  The stream clears it. */
#define GS_INDEX_TUPLE_EXEMPT	INDEX_AM_RESERVED_BIT

/* Allocates in CurrentMemoryContext. */
extern GsIndexStream *gs_index_stream_begin(Relation heap, Relation index, const IndexInfo *info,
											GsClient *client, const GsKeyDesc *desc);

/* The most tuples that are returned at once. */
#define GS_INDEX_STREAM_TUPLES	64

/*
 * Return tuples from the current row on, which is not inexact, up to the end of the page, the next inexact
 * tuple or GS_INDEX_STREAM_TUPLES.  The last one becomes the current row.
 */
extern int	gs_index_read_page(GsRows *rows, IndexTuple *tuples);

/*
 * Return the next tuples, valid until the next call.  tuples has room for GS_INDEX_STREAM_TUPLES.  *n is 0
 * with GS_CLIENT_OK at the end.  Raises PostgreSQL's error if the index is unique and keys are not.
 */
extern GsClientStatus gs_index_stream_next(GsIndexStream *stream, IndexTuple *tuples, int *n);

/* Why gs_index_stream_next() did not return GS_CLIENT_OK. */
extern GsFallback gs_index_stream_reason(const GsIndexStream *stream);

/* Returns how many tuples were sorted by comparison. */
extern uint64 gs_index_stream_end(GsIndexStream *stream);

#endif							/* GS_INDEX_TUPLE_H */
