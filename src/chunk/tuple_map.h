/*-------------------------------------------------------------------------
 *
 * tuple_map.h
 *	  Which attributes of a table's tuples make rows and keys.
 *
 * If a scan only returns columns of its table, each row comes from one heap tuple.  A GsTupleMap tells how.
 * So rows are written straight from the tuples of a page, without a slot and without the executor's
 * projection.
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
#include "storage/bufpage.h"

/* An attribute of the table. */
typedef struct GsMapAttr
{
	GsFormColumn form;
	bool		needed;
} GsMapAttr;

typedef struct GsTupleMap
{
	int			n_attrs;		/* number, up to the last needed one */
	int			n_fixed;		/* number of the first ones, up to the first of varying width */
	int			first;			/* the first needed one of these, from 0 */
	uint32		fixed_end;		/* the end of these in the tuple's data, if none is NULL */
	uint16	   *offsets;		/* of n_attrs attributes in a plain tuple's data; the first n_fixed are the
								 * same in all tuples */
	bool		whole;			/* rows are the tuples themselves, with all their attributes */
	TupleDesc	tupdesc;		/* of rows */
	const GsFormColumn *columns;	/* of rows; NULL: rows are the tuples */
	AttrNumber *sources;		/* the attribute of each column */
	Datum	   *attr_values;	/* of n_attrs attributes; only needed ones are set */
	bool	   *attr_isnull;
	Datum	   *values;			/* of columns; if rows are the tuples, the same arrays */
	bool	   *isnull;
	GsMapAttr *attrs;
	const AttrMissing *missing; /* values for tuples that are older than a column; NULL: always NULL */
	uint32		max_plain;		/* the most bytes of a row that is formed of a plain tuple */
	MinimalTupleData header;	/* of such a row, without its length */
} GsTupleMap;

/*
 * Makes the map of a scan.  rows describes its rows.  Their columns are the attributes sources[0 .. natts -
 * 1], from 1; NULL: rows are the table's tuples.  Keys are made of the columns in key_columns.  The map is
 * in CurrentMemoryContext; the descriptors and sources must live as long.
 */
extern GsTupleMap *gs_tuple_map_create(TupleDesc table, TupleDesc rows, AttrNumber *sources,
									   const Bitmapset *key_columns);

/* Is a tuple inside of its page's space for tuples?  By a damaged line pointer it may not be. */
static inline bool
gs_item_in_page(Page page, ItemId item)
{
	uint32		offset = ItemIdGetOffset(item);

	return offset >= ((PageHeader) page)->pd_upper && offset == MAXALIGN(offset) &&
		ItemIdGetLength(item) >= SizeofHeapTupleHeader && offset + ItemIdGetLength(item) <= BLCKSZ;
}

/* Is there room for a tuple's NULLs, if it has any?  Its t_hoff bytes are in the tuple. */
static inline bool
gs_nulls_in_tuple(HeapTupleHeader tuple)
{
	return (tuple->t_infomask & HEAP_HASNULL) == 0 ||
		tuple->t_hoff >= SizeofHeapTupleHeader + BITMAPLEN(HeapTupleHeaderGetNatts(tuple));
}

/*
 * Takes a tuple apart: fills values and isnull, which point into it.  False: a value reaches beyond the
 * tuple's end, so the tuple is damaged.
 */
extern bool gs_tuple_map_read(GsTupleMap *map, HeapTupleHeader tuple, uint32 tuple_len);

/* Are a tuple's first attributes not NULL? */
static inline bool
gs_none_is_null(HeapTupleHeader tuple, int n_attrs)
{
	if (likely((tuple->t_infomask & HEAP_HASNULL) == 0))
		return true;
	for (int i = 0; i < n_attrs; i += 8)
		if ((~tuple->t_bits[i / 8] & (n_attrs - i < 8 ? (1 << (n_attrs - i)) - 1 : 0xff)) != 0)
			return false;
	return true;
}

/*
 * Most tuples are plain: no attribute is NULL, and those of varying width are short and stored as they are.
 * Then it is enough to find the attributes, as their bytes are copied.  Sets all offsets, and returns the
 * data to which they refer.  NULL: the tuple is not plain, older than an attribute, or damaged.
 */
static inline const char *
gs_tuple_map_find(GsTupleMap *map, HeapTupleHeader tuple, uint32 tuple_len)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	uint32		end = tuple_len - tuple->t_hoff;
	uint32		offset = map->fixed_end;

	if (unlikely((tuple->t_infomask & HEAP_HASEXTERNAL) != 0 || tuple->t_hoff > tuple_len ||
				 HeapTupleHeaderGetNatts(tuple) < map->n_attrs || !gs_nulls_in_tuple(tuple) ||
				 !gs_none_is_null(tuple, map->n_attrs)))
		return NULL;
	for (int i = map->n_fixed; i < map->n_attrs; i++)
	{
		const GsFormColumn *form = &map->attrs[i].form;
		uint32		size = form->len;

		if (form->len > 0)
			offset = TYPEALIGN(form->align, offset);
		else if (likely(form->len == -1 && offset < end && VARATT_IS_1B(data + offset) &&
						!VARATT_IS_1B_E(data + offset)))
			size = VARSIZE_1B(data + offset);
		else
			return NULL;
		map->offsets[i] = offset;
		offset += size;
	}
	return likely(offset <= end) ? data : NULL;
}

/*
 * Fetches a page of a table into the processor's caches before its tuples are read.  Tuples are in
 * descending order of addresses, so the processor does not prefetch them by itself.
 */
static inline void
gs_prefetch_page(const char *page)
{
	for (uint32 at = 0; at < BLCKSZ; at += 64)
		__builtin_prefetch(page + at);
}

#endif							/* GS_TUPLE_MAP_H */
