/*-------------------------------------------------------------------------
 *
 * buckets.cuh
 *	  The groups of a first round of few rows: its buckets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_BUCKETS_CUH
#define GS_STRINGS_BUCKETS_CUH

#include "strings/groups.cuh"

namespace gpusort
{

// Does for rows that are sorted by their buckets alone what find_groups() does.
// `begins` is scratch for a number of each bucket, and one more.
void find_bucket_groups(const SortedRows &in, u32 n_buckets, const Segments &segments, u32 *begins,
                        const GroupOutput &output, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_BUCKETS_CUH
