/*-------------------------------------------------------------------------
 *
 * groups.cuh
 *	  The groups of a sorted round.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_GROUPS_CUH
#define GS_STRINGS_GROUPS_CUH

#include "strings/finish.cuh"

namespace gpusort
{

// Settles rows whose rank is known, sorts the groups of up to small_rows rows,
// lists larger ones for finish_listed(), and makes segments of the next round of
// those that are too large for that.
void find_groups(const SortedRows &in, const Segments &segments, const GroupOutput &output,
                 cudaStream_t stream);

// Does for rows that are sorted by their buckets alone what find_groups() does.
// `begins` is scratch for a number of each bucket, and one more.
void find_bucket_groups(const SortedRows &in, u32 n_buckets, const Segments &segments, u32 *begins,
                        const GroupOutput &output, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_GROUPS_CUH
