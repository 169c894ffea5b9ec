/*-------------------------------------------------------------------------
 *
 * sorter.cuh
 *	  Sorting arrays whose elements have codes of one type.
 *
 * Each of sort_arrays_4.cu, _8.cu and _16.cu instantiates the template for one
 * type of code, so that the many kernels are compiled in parallel.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_SORTER_CUH
#define GS_ARRAYS_SORTER_CUH

#include "arrays/sort_arrays.cuh"

namespace gpusort
{

template <typename Code>
struct ArraySorter
{
  static u64 workspace(const ArrayCensus &census);
  static void sort(const ArrayJob &job, const ArrayCensus &census, void *workspace, SideStreams &side,
                   cudaStream_t stream);
};

} // namespace gpusort

#endif // GS_ARRAYS_SORTER_CUH
