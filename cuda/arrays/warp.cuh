/*-------------------------------------------------------------------------
 *
 * warp.cuh
 *	  Sums and counts over a warp.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_WARP_CUH
#define GS_ARRAYS_WARP_CUH

#include <cub/warp/warp_scan.cuh>

#include "common/common.cuh"

namespace gpusort
{

constexpr int warp_size = 32;

// The sum of x over the calling lane and those before it, in each group of `lanes`
// lanes.
template <int lanes = warp_size>
__device__ __forceinline__ u32 inclusive_sum(u32 x)
{
  using Scan = cub::WarpScan<u32, lanes>;

  typename Scan::TempStorage temp; // empty, as lanes exchange values by shuffles

  Scan(temp).InclusiveSum(x, x);
  return x;
}

// Adds 1 to *counter, by one atomic addition for all lanes with the same key, which
// must have the same counter.  Returns the count before the calling lane's addition.
// Lanes with the same key must agree in `counts`; where it is false they add nothing.
__device__ __forceinline__ u32 count_peers(u32 key, u32 *counter, bool counts = true)
{
  u32 lane = threadIdx.x % warp_size;
  u32 peers = __match_any_sync(~0u, key);
  u32 leader = __ffs(peers) - 1;
  u32 before = 0;

  if (counts && lane == leader)
    before = atomicAdd(counter, __popc(peers));
  return __shfl_sync(~0u, before, leader) + __popc(peers & ((1u << lane) - 1));
}

} // namespace gpusort

#endif // GS_ARRAYS_WARP_CUH
