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

// Writes rows whose rank is known, sorts the groups of up to small_rows rows,
// lists larger ones for finish_listed(), and makes segments of the next round of
// those that are too large for that.
void find_groups(const SortedRows &in, const Segments &segments, const GroupOutput &output,
                 cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_GROUPS_CUH
