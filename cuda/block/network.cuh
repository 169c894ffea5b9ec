/*-------------------------------------------------------------------------
 *
 * network.cuh
 *	  Sorting networks: what they are made of, and one for the 64-bit values of a block.
 *
 * A thread holds `items` values in registers, neighbours in the sorted order.  It
 * exchanges values with the threads of its warp by shuffles, and with other
 * warps through shared memory.
 *
 * The network of a block is Batcher's in the form in which all comparisons put the smaller value first: a
 * merge begins with each value meeting the opposite one.  So values that are larger than all others stay at
 * the end, and the network over the lower part of the block is complete in itself.  cub::BlockMergeSort
 * always sorts a whole block.  If few values are left, the network has fewer steps, only the warps that
 * hold values take part in its merges, and a part that one warp holds needs no shared memory and no
 * barrier.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_NETWORK_CUH
#define GS_NETWORK_CUH

#include "common/common.cuh"

namespace gpusort
{

// Puts the lower of two values into a, the higher one into b.
__device__ __forceinline__ void compare_exchange(u32 &a, u32 &b)
{
  u32 low = min(a, b);

  b = max(a, b);
  a = low;
}

__device__ __forceinline__ void compare_exchange(u64 &a, u64 &b)
{
  // One comparison for both results: min() and max() take two, as do two selections.
  u64 both = a ^ b;

  a = b < a ? b : a;
  b = both ^ a;
}

template <typename T>
__device__ __forceinline__ void compare_exchange(T &a, T &b)
{
  T x = a;
  bool swaps = b < a;

  a = swaps ? b : x;
  b = swaps ? x : b;
}

// The lower of two values, or the higher one.
__device__ __forceinline__ u32 lower_or_higher(u32 x, u32 y, bool lower)
{
  return lower ? min(x, y) : max(x, y);
}

template <typename T>
__device__ __forceinline__ T lower_or_higher(const T &x, const T &y, bool lower)
{
  return (y < x) == lower ? y : x;
}

template <typename T>
__device__ __forceinline__ T shuffle_xor(T x, u32 mask)
{
  return __shfl_xor_sync(~0u, x, mask);
}

// Sorts a thread's values by Batcher's odd-even merge sort.
template <typename T, int items>
__device__ __forceinline__ void sort_items(T (&v)[items])
{
#pragma unroll
  for (int p = 1; p < items; p *= 2)
#pragma unroll
    for (int k = p; k >= 1; k /= 2)
#pragma unroll
      for (int i = 0; i < items; i++)
        if (i >= k % p && (i - k % p) / k % 2 == 0 && i + k < items && i / (2 * p) == (i + k) / (2 * p))
          compare_exchange(v[i], v[i + k]);
}

// Half-cleaners for a thread's values at distance `from` and below.
template <int from, typename T, int items>
__device__ __forceinline__ void clean_items(T (&v)[items])
{
#pragma unroll
  for (int d = from; d >= 1; d /= 2)
#pragma unroll
    for (int i = 0; i < items; i++)
      if ((i & d) == 0)
        compare_exchange(v[i], v[i + d]);
}

// Compares values with those of the lane at distance `mask`, mirrored or not.
template <bool mirror, typename T, int items>
__device__ __forceinline__ void compare_lanes(T (&v)[items], u32 mask, bool lower)
{
  if constexpr (mirror)
  {
#pragma unroll
    for (int i = 0; i < items / 2; i++)
    {
      T y = shuffle_xor(v[items - 1 - i], mask);
      T z = shuffle_xor(v[i], mask);

      v[i] = lower_or_higher(v[i], y, lower);
      v[items - 1 - i] = lower_or_higher(v[items - 1 - i], z, lower);
    }
  }
  else
  {
#pragma unroll
    for (int i = 0; i < items; i++)
      v[i] = lower_or_higher(v[i], shuffle_xor(v[i], mask), lower);
  }
}

// One step of the network between the threads whose numbers differ by `mask`.  Each
// value meets the partner's value at the same place or, when reversed, at the
// opposite place.  `exchange` has room for the values of the block.
template <u32 threads, bool reversed, u32 items>
__device__ __forceinline__ void compare_threads(u64 (&v)[items], u32 mask, bool in_use, u64 *exchange)
{
  const u32 thread = threadIdx.x;
  const u32 partner = thread ^ mask;
  const bool lower = thread < partner; // which values the thread keeps

  if (mask < 32)
  {
    if (in_use)
      compare_lanes<reversed>(v, mask, lower);
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

        v[k] = lower_or_higher(v[k], other, lower);
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

    compare_threads<threads, true>(v, merged_threads - 1, in_use, exchange);
    for (u32 mask = merged_threads / 4; mask > 0; mask /= 2)
      compare_threads<threads, false>(v, mask, in_use, exchange);
    if (in_use)
      clean_items<items / 2>(v);
  }
}

} // namespace gpusort

#endif // GS_NETWORK_CUH
