/*-------------------------------------------------------------------------
 *
 * host_arrays.h
 *	  Sorting the elements of arrays on one CPU core.
 *
 * Nothing here takes locks or keeps state: any thread of any process may call
 * it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HOST_ARRAYS_H
#define GS_HOST_ARRAYS_H

#include "device/device.h"

/* A long sort calls it now and then.  It need not return. */
typedef void (*GsHostTick) (void);

/*
 * Sort n elements in place, in the order that device.h tells; n is at most
 * UINT32_MAX.  Both addresses are multiples of the element's size, or of 8
 * where that is larger; scratch has room for n elements.  tick may be NULL; if it
 * does not return, the elements are lost.
 */
extern void gs_host_sort_elements(GsElem elem, bool descending, void *elements, size_t n,
								  void *scratch, GsHostTick tick);

/*
 * Sorts the arrays of a chunk, like GsDeviceOps.sort_arrays.  *bytes becomes the sum of their bytes.  Ends
 * soon after *cancel has changed from 0.
 */
extern GsStatus gs_host_sort_arrays(const GsSortSpec *spec, void *chunk, uint32_t data_bytes,
									uint32_t n_arrays, const int *cancel, uint64_t *bytes,
									GsError *error);

#endif							/* GS_HOST_ARRAYS_H */
