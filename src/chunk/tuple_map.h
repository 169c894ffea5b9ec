/*-------------------------------------------------------------------------
 *
 * tuple_map.h
 *	  Which attributes of a table's tuples make rows and keys.
 *
 * A scan that only returns columns of its table makes each row out of one heap tuple.
 * A GsTupleMap says how, so that rows can be written straight from the tuples of a page,
 * without a slot and without the executor's way of projecting.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TUPLE_MAP_H
#define GS_TUPLE_MAP_H

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "access/tupdesc_details.h"
#include "chunk/tuple_form.h"
#include "nodes/bitmapset.h"

/* An attribute of the table. */
typedef struct GsMapAttr
{
	GsFormColumn form;
	uint16		offset;			/* in the tuple's data, if nothing is NULL; only of the first n_fixed */
	bool		needed;
} GsMapAttr;

typedef struct GsTupleMap
{
	int			n_attrs;		/* up to the last one that is needed */
	int			n_fixed;		/* so many at the beginning have fixed widths */
	int			first;			/* the first of these that is needed, from 0 */
	uint32		fixed_end;		/* where these end in the tuple's data, if nothing is NULL */
	bool		whole;			/* rows are the tuples themselves, with all their attributes */
	TupleDesc	tupdesc;		/* of rows */
	const GsFormColumn *columns;	/* of rows; NULL where rows are the tuples */
	AttrNumber *sources;		/* the attribute that each column is */
	Datum	   *attr_values;	/* of n_attrs attributes, those needed */
	bool	   *attr_isnull;
	Datum	   *values;			/* of columns; the same arrays where rows are the tuples */
	bool	   *isnull;
	GsMapAttr *attrs;
	const AttrMissing *missing; /* what tuples have that are older than a column; NULL: nothing but NULL */
} GsTupleMap;

/*
 * The map of a scan.  rows describes its rows, whose columns are the attributes
 * sources[0 .. natts - 1], from 1; NULL: rows are the table's tuples.  Keys are made of the columns
 * in key_columns.  Allocated in CurrentMemoryContext; the descriptors and sources must live as long.
 */
extern GsTupleMap *gs_tuple_map_create(TupleDesc table, TupleDesc rows, AttrNumber *sources,
									   const Bitmapset *key_columns);

/* Take a tuple apart: fills values and isnull, which point into it. */
extern void gs_tuple_map_read(GsTupleMap *map, HeapTupleHeader tuple);

/*
 * Have a page of a table fetched into the processor's caches before its tuples are read.  They lie in
 * descending order, so the processor does not see which lines come next.
 */
static inline void
gs_prefetch_page(const char *page)
{
	for (uint32 at = 0; at < BLCKSZ; at += 64)
		__builtin_prefetch(page + at);
}

#endif							/* GS_TUPLE_MAP_H */
