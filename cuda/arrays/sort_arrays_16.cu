/*-------------------------------------------------------------------------
 *
 * sort_arrays_16.cu
 *	  Sorting arrays whose elements have codes of 16 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/array_sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<Wide>;

} // namespace gpusort
