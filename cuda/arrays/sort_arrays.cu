/*-------------------------------------------------------------------------
 *
 * sort_arrays.cu
 *	  Sorting the elements of many arrays in device memory.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/sort_arrays.cuh"

#include <algorithm>

#include "arrays/array_classes.cuh"
#include "arrays/array_sorter.cuh"

namespace gpusort
{

namespace
{

constexpr u32 census_threads = 256;

template <typename Code>
__host__ __device__ void count_one(const ArraySpan &span, u32 elem_bytes, ArrayCensus *census)
{
  u32 c = class_of<Code>(span.length);
  u64 end = span.offset + u64{span.length} * elem_bytes;

  census->n[c]++;
  census->elements += span.length;
  if (c == Classes<Code>::first_long)
  {
    census->tiles += tiles_of<Code>(span.length);
    census->bins += bins_of<Code>(span.length);
    census->parts += u64{bins_of<Code>(span.length) + 1} * tiles_of<Code>(span.length);
  }
  census->end = end > census->end ? end : census->end;
  census->longest = span.length > census->longest ? span.length : census->longest;
}

__device__ __forceinline__ u64 warp_sum(u64 x)
{
  for (u32 d = warp_size / 2; d >= 1; d /= 2)
    x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__device__ __forceinline__ u64 warp_max(u64 x)
{
  for (u32 d = warp_size / 2; d >= 1; d /= 2)
    x = max(x, __shfl_xor_sync(~0u, x, d));
  return x;
}

// The sum of each byte over all lanes, the even ones and the odd ones.
__device__ __forceinline__ void sum_bytes(u64 bytes, u64 *even, u64 *odd)
{
  constexpr u64 mask = 0x00ff00ff00ff00ff;

  *even = warp_sum(bytes & mask);
  *odd = warp_sum(bytes >> 8 & mask);
}

// A thread counts the arrays of each class in a byte of two words, and empties
// them into its warp's counts before they can overflow.
template <typename Code>
__global__ void __launch_bounds__(census_threads)
    count_arrays(const ArraySpan *spans, u64 n_arrays, u32 elem_bytes, ArrayCensus *census)
{
  constexpr u32 batch = 4;
  constexpr u32 rounds = 255 / batch;

  u64 n = 0; // of class `lane`
  u64 elements = 0;
  u64 tiles = 0;
  u64 bins = 0;
  u64 parts = 0;
  u64 end = 0;
  u32 longest = 0;
  u32 lane = threadIdx.x % warp_size;
  u64 threads = u64{gridDim.x} * census_threads;
  u64 first = u64{blockIdx.x} * census_threads;

  while (first < n_arrays)
  {
    u64 counts[2] = {};
    u64 sums[4];

    for (u32 round = 0; round < rounds && first < n_arrays; round++, first += batch * threads)
    {
      ArraySpan span[batch];

#pragma unroll
      for (u32 b = 0; b < batch; b++)
      {
        u64 i = first + b * threads + threadIdx.x;

        span[b] = i < n_arrays ? load_span(spans, i) : ArraySpan{0, ~u32{0}};
      }
#pragma unroll
      for (u32 b = 0; b < batch; b++)
      {
        if (span[b].length == ~u32{0})
          continue;

        u32 c = class_of<Code>(span[b].length);

        counts[0] += c < 8 ? u64{1} << c * 8 : 0;
        counts[1] += c < 8 ? 0 : u64{1} << (c - 8) * 8;
        if (c == Classes<Code>::first_long)
        {
          tiles += tiles_of<Code>(span[b].length);
          bins += bins_of<Code>(span[b].length);
          parts += u64{bins_of<Code>(span[b].length) + 1} * tiles_of<Code>(span[b].length);
        }
        elements += span[b].length;
        end = max(end, span[b].offset + u64{span[b].length} * elem_bytes);
        longest = max(longest, span[b].length);
      }
    }
    sum_bytes(counts[0], &sums[0], &sums[1]);
    sum_bytes(counts[1], &sums[2], &sums[3]);
#pragma unroll
    for (u32 c = 0; c < max_array_classes; c++)
      if (lane == c)
        n += sums[c / 8 * 2 + c % 2] >> c % 8 / 2 * 16 & 0xffff;
  }

  // One addition for all warps of a block.
  __shared__ ArrayCensus all;
  u64 *words = reinterpret_cast<u64 *>(&all);

  for (u32 k = threadIdx.x; k < sizeof all / sizeof(u64); k += census_threads)
    words[k] = 0;
  __syncthreads();
  elements = warp_sum(elements);
  tiles = warp_sum(tiles);
  bins = warp_sum(bins);
  parts = warp_sum(parts);
  end = warp_max(end);
  longest = static_cast<u32>(warp_max(longest));
  if (n > 0)
    atomicAdd(&all.n[lane], n);
  if (lane == 0)
  {
    atomicAdd(&all.elements, elements);
    atomicAdd(&all.tiles, tiles);
    atomicAdd(&all.bins, bins);
    atomicAdd(&all.parts, parts);
    atomicMax(&all.end, end);
    atomicMax(&all.longest, longest);
  }
  __syncthreads();
  if (threadIdx.x < max_array_classes && all.n[threadIdx.x] > 0)
    atomicAdd(&census->n[threadIdx.x], all.n[threadIdx.x]);
  if (threadIdx.x == 0)
  {
    atomicAdd(&census->elements, all.elements);
    if (all.tiles > 0)
    {
      atomicAdd(&census->tiles, all.tiles);
      atomicAdd(&census->bins, all.bins);
      atomicAdd(&census->parts, all.parts);
    }
    atomicMax(&census->end, all.end);
    atomicMax(&census->longest, all.longest);
  }
}

} // namespace

void count_array(GsElem elem, const ArraySpan &span, ArrayCensus *census)
{
  with_code(elem, [&](auto code) { count_one<decltype(code)>(span, gs_elem_bytes(elem), census); });
}

u64 census_workspace()
{
  return sizeof(ArrayCensus);
}

void take_census(const ArrayJob &job, ArrayCensus *census, void *workspace, cudaStream_t stream)
{
  ArrayCensus *counts = static_cast<ArrayCensus *>(workspace);
  u32 blocks = std::min(blocks_for(job.n_arrays, census_threads * 4), 1024u);

  GS_CUDA_TRY(cudaMemsetAsync(counts, 0, sizeof *counts, stream));
  if (job.n_arrays > 0)
  {
    with_code(job.elem,
              [&](auto code)
              {
                count_arrays<decltype(code)><<<blocks, census_threads, 0, stream>>>(
                    job.spans, job.n_arrays, gs_elem_bytes(job.elem), counts);
              });
    GS_CUDA_LAUNCHED();
  }
  GS_CUDA_TRY(cudaMemcpyAsync(census, counts, sizeof *counts, cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));
}

u64 sort_arrays_workspace(GsElem elem, const ArrayCensus &census)
{
  return with_code(elem, [&](auto code) { return ArraySorter<decltype(code)>::workspace(census); });
}

void sort_arrays(const ArrayJob &job, const ArrayCensus &census, void *workspace, SideStreams &side,
                 cudaStream_t stream)
{
  with_code(job.elem,
            [&](auto code) { ArraySorter<decltype(code)>::sort(job, census, workspace, side, stream); });
}

} // namespace gpusort
