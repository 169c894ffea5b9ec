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
#include "nodes/bitmapset.h"

/* An attribute of the table. */
typedef struct GsMapAttr
{
	uint16		offset;			/* of the first n_fixed, if none is NULL: from the tuple's data */
	int16		len;			/* attlen */
	uint8		align;			/* in bytes */
	bool		byval;
	bool		needed;
} GsMapAttr;

typedef struct GsTupleMap
{
	int			n_attrs;		/* up to the last one that is needed */
	int			n_fixed;		/* the first so many have fixed widths; */
	int			first;			/* of them: the first that is needed */
	uint32		fixed_end;		/* if none is NULL, they end here */
	bool		whole;			/* rows are the tuples themselves, with all their attributes */
	TupleDesc	tupdesc;		/* of rows */
	const struct GsFormColumn *columns; /* of rows (tuple_form.h); not where rows are the tuples */
	AttrNumber *sources;		/* the attribute that each column is */
	Datum	   *attr_values;	/* of n_attrs attributes, those needed */
	bool	   *attr_isnull;
	Datum	   *values;			/* of columns; the same arrays where rows are the tuples */
	bool	   *isnull;
	GsMapAttr *attrs;
} GsTupleMap;

/*
 * The map of a scan.  rows describes its rows, whose columns are the attributes
 * sources[0 .. natts - 1], from 1; NULL: rows are the table's tuples.  Keys are made of the columns
 * in key_columns.  Allocated in CurrentMemoryContext; the descriptors and sources must live as long.
 */
extern GsTupleMap *gs_tuple_map_create(TupleDesc table, TupleDesc rows, AttrNumber *sources,
									   const Bitmapset *key_columns);

/*
 * Take a tuple apart: fills values and isnull, which point into it.  False: it was stored before
 * a needed column was added, and has not all of them.
 */
extern bool gs_tuple_map_read(GsTupleMap *map, HeapTupleHeader tuple);

#endif							/* GS_TUPLE_MAP_H */
