/*-------------------------------------------------------------------------
 *
 * sort_arrays_4.cu
 *	  Sorting arrays whose elements have codes of 4 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/array_sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<u32>;

} // namespace gpusort
