/*-------------------------------------------------------------------------
 *
 * array_sort.h
 *	  Sorting the elements of one array, in the process that asks.
 *
 * Sorts like PostgreSQL 18's array_sort(): elements by the default btree operator class of their type,
 * NULLs first or last, the slices of an array of several dimensions as arrays.  Lower bounds stay.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SORT_H
#define GS_ARRAY_SORT_H

#include "device/device.h"
#include "utils/array.h"

typedef struct GsArraySorter GsArraySorter;

/*
 * Makes a sorter of arrays whose header has this element type, in CurrentMemoryContext.  Raises an error if
 * the type has no order.
 */
extern GsArraySorter *gs_array_sorter_create(Oid element_type, Oid collation, bool descending);

/*
 * Sorts an array of the sorter's element type.  in_place: the array may be changed; otherwise the result is
 * a copy in CurrentMemoryContext.  May return the array itself if sorting changes nothing.
 */
extern ArrayType *gs_array_sort(GsArraySorter *sorter, ArrayType *array, bool nulls_first,
								bool in_place);

/* The devices' kind of elements of this type; GS_ELEM_NONE: devices do not sort them. */
extern GsElem gs_array_elem(Oid element_type);

/* Could sorting change anything? */
static inline bool
gs_array_is_trivial(const ArrayType *array)
{
	return ARR_NDIM(array) < 1 || ARR_DIMS(array)[0] < 2;
}

/*
 * Puts the NULLs of an array in their places.  The array has one dimension, elements of one width, and a
 * bitmap.  Returns the number of other elements.  Their values are next to each other, and do not move.
 */
extern int	gs_array_place_nulls(ArrayType *array, bool nulls_first);

#endif							/* GS_ARRAY_SORT_H */
