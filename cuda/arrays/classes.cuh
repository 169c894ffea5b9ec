/*-------------------------------------------------------------------------
 *
 * classes.cuh
 *	  Classes of arrays by length, and lists of arrays of one class.
 *
 *	  class			elements			sorted by
 *	  0				0 and 1				nothing
 *	  1, 2, ...		to 16, 32, ...		teams on chip, see on_chip.cuh
 *	  first_long	more than capacity	CUB, see long.cuh
 *
 * The capacities of classes are powers of two, so that an array's class follows
 * from the logarithm of its length.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_CLASSES_CUH
#define GS_ARRAYS_CLASSES_CUH

#include "arrays/sort_arrays.cuh"
#include "arrays/tuning.cuh"

namespace gpusort
{

template <typename Code>
struct Classes
{
  static constexpr int max_items = max_items_bytes / sizeof(Code); // of a thread of a full team
  static constexpr u32 warp_capacity = warp_size * max_items;      // 1024, 512, 256
  static constexpr u32 capacity = max_team_warps * warp_capacity;  // 8192, 4096, 2048
  static constexpr u32 log_capacity = sizeof(Code) == 4 ? 13 : sizeof(Code) == 8 ? 12 : 11;
  static constexpr u32 first_long = log_capacity - 2;

  static_assert(capacity == 1u << log_capacity, "capacity of a block");
  static_assert(first_long < max_array_classes, "classes of arrays");
};

__host__ __device__ inline u32 ceil_log2(u32 n)
{
#ifdef __CUDA_ARCH__
  return 32 - __clz(n - 1);
#else
  return n < 2 ? 0 : 32 - __builtin_clz(n - 1);
#endif
}

template <typename Code>
__host__ __device__ inline u32 class_of(u32 n)
{
  if (n <= 16)
    return n > 1;

  u32 c = ceil_log2(n) - 3;

  return c < Classes<Code>::first_long ? c : Classes<Code>::first_long;
}

// Arrays of one class.
struct ClassList
{
  const ArraySpan *spans;
  u64 n;
  char *data;
};

__device__ __forceinline__ ArraySpan load_span(const ArraySpan *spans, u64 i)
{
  uint4 raw = __ldg(reinterpret_cast<const uint4 *>(spans) + i);

  return {static_cast<u64>(raw.y) << 32 | raw.x, raw.z};
}

// Enough blocks to fill any device several times; each takes one list entry after the
// other.
inline u32 grid_for(u64 n_arrays, u32 arrays_per_block)
{
  constexpr u64 max_blocks = 1 << 16;
  u64 blocks = (n_arrays + arrays_per_block - 1) / arrays_per_block;

  return static_cast<u32>(blocks < max_blocks ? blocks : max_blocks);
}

} // namespace gpusort

#endif // GS_ARRAYS_CLASSES_CUH
