/*-------------------------------------------------------------------------
 *
 * keep.cuh
 *	  Cutting the order of the rows down to those that are kept.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEEP_CUH
#define GS_KEEP_CUH

#include "rows/rows.cuh"

namespace gpusort
{

// The size of the workspace of keep_some(), for an order of n_rows rows.
u64 keep_some_workspace(u32 n_rows);

// Drops the rows that keep does not want from a job's order, but not those beyond its limit, and
// writes the number of those left to *n_kept in device memory.  keep.unique or keep.group is set.
// Where keep.counted is set, the numbers of equal keys are written into the images' rows that are kept.
// `memory` is the workspace.
void keep_some(const GsKeep &keep, const ImageRef *images, const OrderJob &job, void *memory, u32 *n_kept,
               cudaStream_t stream);

} // namespace gpusort

#endif // GS_KEEP_CUH
