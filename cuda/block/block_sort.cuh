/*-------------------------------------------------------------------------
 *
 * block_sort.cuh
 *	  Within a block: a bitonic network that sorts 64-bit values, and sums.
 *
 * Over a block, a thread holds `items` values in registers, neighbours in the sorted order.
 * Batcher's network in the form in which all comparisons put the less value
 * first: a merge begins with each value meeting the one opposite to it.  So
 * values that are larger than all others stay at the end, and a network over
 * the lower part of the block only is a complete one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BLOCK_SORT_CUH
#define GS_BLOCK_SORT_CUH

#include "common/common.cuh"

namespace gpusort
{

#ifdef __CUDACC__

// Puts the less of two values first.
__device__ __forceinline__ void order_pair(u64 &a, u64 &b)
{
  // One comparison for both: min() and max() make two, as do two selections.
  u64 both = a ^ b;

  a = b < a ? b : a;
  b = both ^ a;
}

template <u32 items>
__device__ __forceinline__ void merge_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 step = items / 2; step > 0; step /= 2)
#pragma unroll
    for (u32 q = 0; q < items; q++)
      if ((q & step) == 0)
        order_pair(v[q], v[q + step]);
}

template <u32 items>
__device__ __forceinline__ void sort_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 size = 2; size <= items; size *= 2)
  {
#pragma unroll
    for (u32 q = 0; q < items; q++)
      if ((q & (size / 2)) == 0)
        order_pair(v[q], v[q ^ (size - 1)]);
#pragma unroll
    for (u32 step = size / 4; step > 0; step /= 2)
#pragma unroll
      for (u32 q = 0; q < items; q++)
        if ((q & step) == 0)
          order_pair(v[q], v[q + step]);
  }
}

// The one of two values that a thread keeps.
__device__ __forceinline__ u64 keep(u64 mine, u64 other, bool lesser)
{
  return (other < mine) == lesser ? other : mine;
}

// One step of the network: each value meets that of the partner thread, at the
// same place of it or, when turned, at the opposite one.  `exchange` holds the
// values of all threads, for partners in other warps.
template <u32 threads, bool turned, u32 items>
__device__ __forceinline__ void meet(u64 (&v)[items], u32 mask, bool in_use, u64 *exchange)
{
  u32 me = threadIdx.x;
  u32 partner = me ^ mask;
  bool lower = me < partner;

  if (mask < 32)
  {
    if (!in_use)
      return;
#pragma unroll
    for (u32 q = 0; q < (turned ? items / 2 : items); q++)
    {
      u32 opposite = turned ? items - 1 - q : q;
      u64 a = __shfl_xor_sync(~0u, v[opposite], mask);

      if (turned)
      {
        u64 b = __shfl_xor_sync(~0u, v[q], mask);

        v[opposite] = keep(v[opposite], b, lower);
      }
      v[q] = keep(v[q], a, lower);
    }
  }
  else
  {
    if (in_use)
#pragma unroll
      for (u32 q = 0; q < items; q++)
        exchange[q * threads + me] = v[q];
    __syncthreads();
    if (in_use)
#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        u64 a = exchange[(turned ? items - 1 - q : q) * threads + partner];

        v[q] = keep(v[q], a, lower);
      }
    __syncthreads();
  }
}

__host__ __device__ constexpr u32 log_of(u32 power_of_two)
{
  return power_of_two == 1 ? 0 : 1 + log_of(power_of_two / 2);
}

// Sorts the first 1 << log_size values of a block, items * thread + place.
template <u32 threads, u32 items>
__device__ __forceinline__ void sort_block(u64 (&v)[items], u32 log_size, u64 *exchange)
{
  constexpr u32 item_bits = log_of(items);
  bool in_use = (threadIdx.x & ~31u) * items < 1u << log_size;

  sort_items(v);
  for (u32 log = item_bits + 1; log <= log_size; log++)
  {
    meet<threads, true>(v, (1u << (log - item_bits)) - 1, in_use, exchange);
    for (u32 mask = 1u << (log - item_bits) >> 2; mask > 0; mask /= 2)
      meet<threads, false>(v, mask, in_use, exchange);
    if (in_use)
      merge_items(v);
  }
}

// The sum over a warp.
__device__ __forceinline__ u32 warp_sum(u32 value)
{
#pragma unroll
  for (u32 step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// The sums of `value` over the lanes up to this one.
__device__ __forceinline__ u32 warp_sum_up_to(u32 value)
{
  u32 lane = threadIdx.x % 32;

#pragma unroll
  for (u32 step = 1; step < 32; step *= 2)
  {
    u32 other = __shfl_up_sync(~0u, value, step);

    if (lane >= step)
      value += other;
  }
  return value;
}

// The sums of `value` over the threads before this one, and over all.  The sums of
// warps are still read when it returns: they may be written again after a barrier.
template <u32 threads>
__device__ __forceinline__ u32 sum_before(u32 value, u32 *warp_sums, u32 *total)
{
  constexpr u32 warps = threads / 32;
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  u32 sum = warp_sum_up_to(value);
  u32 before = 0;
  u32 all = 0;

  if (lane == 31)
    warp_sums[warp] = sum;
  __syncthreads();
  if (warps <= 8)
  {
#pragma unroll
    for (u32 w = 0; w < warps; w++)
    {
      u32 its = warp_sums[w];

      before += w < warp ? its : 0;
      all += its;
    }
  }
  else
  {
    u32 sums = warp_sum_up_to(lane < warps ? warp_sums[lane] : 0);
    u32 previous = __shfl_sync(~0u, sums, static_cast<int>(warp) - 1);

    before = warp > 0 ? previous : 0;
    all = __shfl_sync(~0u, sums, warps - 1);
  }
  *total = all;
  return before + sum - value;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_BLOCK_SORT_CUH
