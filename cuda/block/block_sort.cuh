/*-------------------------------------------------------------------------
 *
 * block_sort.cuh
 *	  A bitonic network that sorts the 64-bit values of a block.
 *
 * A thread holds `items` values in registers, neighbours in the sorted order.  It
 * exchanges values with the threads of its warp by shuffles, and with other
 * warps through shared memory.
 *
 * This is Batcher's network in the form in which all comparisons put the smaller
 * value first: a merge begins with each value meeting the opposite one.  So values
 * that are larger than all others stay at the end, and the network over the lower
 * part of the block is complete in itself.  That is what it has over
 * cub::BlockMergeSort, which always sorts a whole block: where few values are left,
 * the network has fewer steps, only the warps that hold values take part in its merges,
 * and a part that one warp holds needs no shared memory and no barrier.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BLOCK_SORT_CUH
#define GS_BLOCK_SORT_CUH

#include "common/common.cuh"

namespace gpusort
{

// Puts the smaller of two values first.
__device__ __forceinline__ void order_pair(u64 &a, u64 &b)
{
  // One comparison for both results: min() and max() take two, as do two selections.
  u64 both = a ^ b;

  a = b < a ? b : a;
  b = both ^ a;
}

// The steps of a merge within a thread.
template <u32 items>
__device__ __forceinline__ void merge_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 stride = items / 2; stride > 0; stride /= 2)
#pragma unroll
    for (u32 k = 0; k < items; k++)
      if ((k & stride) == 0)
        order_pair(v[k], v[k + stride]);
}

// Sorts a thread's values.
template <u32 items>
__device__ __forceinline__ void sort_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 size = 2; size <= items; size *= 2)
  {
#pragma unroll
    for (u32 k = 0; k < items; k++)
      if ((k & (size / 2)) == 0)
        order_pair(v[k], v[k ^ (size - 1)]);
#pragma unroll
    for (u32 stride = size / 4; stride > 0; stride /= 2)
#pragma unroll
      for (u32 k = 0; k < items; k++)
        if ((k & stride) == 0)
          order_pair(v[k], v[k + stride]);
  }
}

// The smaller or the larger one of two values.
__device__ __forceinline__ u64 select(u64 own, u64 other, bool smaller)
{
  return (other < own) == smaller ? other : own;
}

// One step of the network between the threads whose numbers differ by `mask`.  Each
// value meets the partner's value at the same place or, when reversed, at the
// opposite place.  `exchange` has room for the values of the block.
template <u32 threads, bool reversed, u32 items>
__device__ __forceinline__ void compare_exchange(u64 (&v)[items], u32 mask, bool in_use, u64 *exchange)
{
  const u32 thread = threadIdx.x;
  const u32 partner = thread ^ mask;
  const bool smaller = thread < partner; // which values the thread keeps

  if (mask < 32)
  {
    if (!in_use)
      return;
#pragma unroll
    for (u32 k = 0; k < (reversed ? items / 2 : items); k++)
    {
      u32 opposite = reversed ? items - 1 - k : k;
      u64 other = __shfl_xor_sync(~0u, v[opposite], mask);

      if (reversed)
      {
        u64 other_opposite = __shfl_xor_sync(~0u, v[k], mask);

        v[opposite] = select(v[opposite], other_opposite, smaller);
      }
      v[k] = select(v[k], other, smaller);
    }
  }
  else
  {
    if (in_use)
#pragma unroll
      for (u32 k = 0; k < items; k++)
        exchange[k * threads + thread] = v[k];
    __syncthreads();
    if (in_use)
#pragma unroll
      for (u32 k = 0; k < items; k++)
      {
        u64 other = exchange[(reversed ? items - 1 - k : k) * threads + partner];

        v[k] = select(v[k], other, smaller);
      }
    __syncthreads();
  }
}

__host__ __device__ constexpr u32 log_of(u32 power_of_two)
{
  return power_of_two == 1 ? 0 : 1 + log_of(power_of_two / 2);
}

// Sorts the first 1 << log_size values of a block.  Thread t holds values t * items
// and on.  All threads of the block take part.
template <u32 threads, u32 items>
__device__ __forceinline__ void sort_block(u64 (&v)[items], u32 log_size, u64 *exchange)
{
  constexpr u32 item_bits = log_of(items);
  const bool in_use = (threadIdx.x & ~31u) * items < 1u << log_size; // by warps

  sort_items(v);
  for (u32 log = item_bits + 1; log <= log_size; log++)
  {
    u32 merged_threads = 1u << (log - item_bits);

    compare_exchange<threads, true>(v, merged_threads - 1, in_use, exchange);
    for (u32 mask = merged_threads / 4; mask > 0; mask /= 2)
      compare_exchange<threads, false>(v, mask, in_use, exchange);
    if (in_use)
      merge_items(v);
  }
}

} // namespace gpusort

#endif // GS_BLOCK_SORT_CUH
