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

// Whether the keys have one length and differ in few enough bits.
bool sort_fixed_fits(const RowStats &stats);

// Bytes of workspace that sort_fixed may need for any keys.
u64 sort_fixed_workspace(u32 n_rows);

// Orders row numbers by their keys: rank i goes to row order[i], and tie[i]
// tells whether its key equals rank i - 1's.  Returns the engine's name.
const char *sort_fixed(const KeyRef *keys, u32 n_rows, const RowStats &stats, void *workspace, u32 *order,
                       u8 *tie, cudaStream_t stream);

} // namespace gpusort

#endif // GS_SORT_FIXED_CUH
