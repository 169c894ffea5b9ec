/*-------------------------------------------------------------------------
 *
 * sort_arrays_8.cu
 *	  Sorting arrays whose elements have codes of 8 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/array_sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<u64>;

} // namespace gpusort
