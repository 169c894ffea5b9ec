/*-------------------------------------------------------------------------
 *
 * array_sort.h
 *	  Sorting the elements of one array, in the process that asks.
 *
 * The meaning is that of PostgreSQL 18's array_sort(): elements by the default
 * btree operator class of their type, NULLs first or last, the slices of an
 * array of several dimensions as arrays, lower bounds as they were.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SORT_H
#define GS_ARRAY_SORT_H

#include "device/device.h"
#include "utils/array.h"

typedef struct GsArraySorter GsArraySorter;

/*
 * A sorter of arrays whose header names this element type, in
 * CurrentMemoryContext.  Fails where the type has no order.
 */
extern GsArraySorter *gs_array_sorter_create(Oid element_type, Oid collation, bool descending);

/*
 * Sort an array of the sorter's element type.  in_place: it is the caller's to
 * change; otherwise the result is new, in CurrentMemoryContext.  Either may be
 * returned.
 */
extern ArrayType *gs_array_sort(GsArraySorter *sorter, ArrayType *array, bool nulls_first,
								bool in_place);

/* How devices know elements of this type; GS_ELEM_NONE: not at all. */
extern GsElem gs_array_elem(Oid element_type);

/* Could sorting change anything? */
static inline bool
gs_array_is_trivial(const ArrayType *array)
{
	return ARR_NDIM(array) < 1 || ARR_DIMS(array)[0] < 2;
}

/*
 * Put the NULLs of an array of one dimension and elements of one width, which
 * has a bitmap, where they belong, and return how many other elements there
 * are: their values lie side by side and stay as they are.
 */
extern int	gs_array_place_nulls(ArrayType *array, bool nulls_first);

#endif							/* GS_ARRAY_SORT_H */
