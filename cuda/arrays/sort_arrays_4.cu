/*-------------------------------------------------------------------------
 *
 * sort_arrays_4.cu
 *	  The array sorter for codes of 4 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<u32>;

} // namespace gpusort
