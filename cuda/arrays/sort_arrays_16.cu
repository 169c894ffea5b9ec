/*-------------------------------------------------------------------------
 *
 * sort_arrays_16.cu
 *	  The array sorter for codes of 16 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/sorter_impl.cuh"

namespace gpusort
{

template struct ArraySorter<Wide>;

} // namespace gpusort
