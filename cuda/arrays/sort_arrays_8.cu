/*-------------------------------------------------------------------------
 *
 * sort_arrays_8.cu
 *	  The array sorter for codes of 8 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<u64>;

} // namespace gpusort
