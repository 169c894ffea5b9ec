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

// Drops rows from a job's order as keep tells, except by its limit.  Writes the number of the rows left to
// *n_kept in device memory.  keep.unique or keep.group is set.  If keep.counted is set, the numbers of
// equal keys are written into the kept rows of the images.  `memory` is the workspace.
void keep_some(const GsKeep &keep, const ImageRef *images, const OrderJob &job, void *memory, u32 *n_kept,
               cudaStream_t stream);

} // namespace gpusort

#endif // GS_KEEP_CUH
