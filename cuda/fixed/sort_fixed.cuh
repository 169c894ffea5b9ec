/*-------------------------------------------------------------------------
 *
 * sort_fixed.cuh
 *	  The engine for keys of one length: a radix sort of whole keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_FIXED_CUH
#define GS_SORT_FIXED_CUH

#include "fixed/fixed_keys.cuh"

namespace gpusort
{

// Do the keys have one length and few enough bits that vary?
bool sort_fixed_fits(const RowStats &stats);

// Bytes of workspace for any n_rows keys.
u64 sort_fixed_workspace(u32 n_rows);

// Finds the order of the rows.  Returns a name for EXPLAIN.
const char *sort_fixed(const OrderJob &job, cudaStream_t stream);

} // namespace gpusort

#endif // GS_SORT_FIXED_CUH
