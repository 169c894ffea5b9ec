/*-------------------------------------------------------------------------
 *
 * index_tuple.h
 *	  Forming the tuples of an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_INDEX_TUPLE_H
#define GS_INDEX_TUPLE_H

#include "access/itup.h"
#include "access/tupdesc.h"

typedef struct GsTupleFormer GsTupleFormer;

/* In CurrentMemoryContext.  tupdesc, the index's, must live as long. */
extern GsTupleFormer *gs_tuple_former_create(TupleDesc tupdesc);

/*
 * The tuple that index_form_tuple() would form, without a TID; valid until the next call.  Raises the same
 * errors.
 */
extern IndexTuple gs_tuple_former_form(GsTupleFormer *former, Datum *values, bool *isnull);

/* Have values that are equal, to a btree operator family, the same image? */
extern bool gs_index_equal_image(Oid opfamily, Oid type, Oid collation);

#endif							/* GS_INDEX_TUPLE_H */
