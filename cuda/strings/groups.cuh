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

#ifdef __CUDACC__

// Makes a group that is too large for a block a segment of the next round.  It begins
// at place `source` of the sorted rows; depth: bytes that its keys share, before this round's words are
// counted in.
__device__ __forceinline__ void make_segment(const GroupOutput &output, const WordLayout &layout, u32 source,
                                             u32 first_rank, u64 size, u32 depth, u32 lead)
{
  const Segments &next = output.segments;
  u64 taken = atomicAdd(&output.lists.counts->large, u64{1} << 32 | size);
  u32 i = static_cast<u32>(taken >> 32);

  next.place[i] = static_cast<u32>(taken);
  next.source[i] = source;
  next.first_rank[i] = first_rank;
  // Sorted by the upper bits only, some keys may have ended already.
  next.depth[i] = layout.is_partial() ? depth : depth + layout.advance(lead);
  next.skip[i] = max_skip;
  next.lead[i] = 0;
}

// Puts a group on the list of its class.
__device__ __forceinline__ void list_group(const GroupLists &lists, const Group &group)
{
  Group *groups = lists.groups[0];
  u32 *listed = &lists.counts->listed[0];

#pragma unroll
  for (u32 i = 1; i < group_classes; i++)
    if (group.size > class_rows(i - 1))
    {
      groups = lists.groups[i];
      listed = &lists.counts->listed[i];
    }
  groups[atomicAdd(listed, 1u)] = group;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_STRINGS_GROUPS_CUH
