/*-------------------------------------------------------------------------
 *
 * types.cuh
 *	  Integers, and arithmetic on sizes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TYPES_CUH
#define GS_TYPES_CUH

#include <cuda_runtime.h>

#include <cstdint>

namespace gpusort
{

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = unsigned long long;

inline u32 blocks_for(u64 items, u32 items_per_block)
{
  return static_cast<u32>((items + items_per_block - 1) / items_per_block);
}

template <typename T>
__host__ __device__ constexpr T align_up(T value, T to)
{
  return (value + to - 1) & ~(to - 1);
}

} // namespace gpusort

#endif // GS_TYPES_CUH
