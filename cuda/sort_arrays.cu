/*-------------------------------------------------------------------------
 *
 * sort_arrays.cu
 *	  Sorting the elements of many arrays in device memory.
 *
 *-------------------------------------------------------------------------
 */
#include "sort_arrays.cuh"

#include <algorithm>

#include "array_classes.cuh"
#include "array_sorter.cuh"

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
    census->tiles += (span.length + Classes<Code>::tile - 1) / Classes<Code>::tile;
    census->bins += bins_of<Code>(span.length);
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

// Classes are counted by warps' votes: for each class that a warp has met, one
// of its lanes keeps the number.
template <typename Code>
__global__ void __launch_bounds__(census_threads)
    count_arrays(const ArraySpan *spans, u64 n_arrays, u32 elem_bytes, ArrayCensus *census)
{
  u64 n = 0; // of class `lane`
  u64 elements = 0;
  u64 tiles = 0;
  u64 bins = 0;
  u64 end = 0;
  u32 longest = 0;
  u32 lane = threadIdx.x % warp_size;

  for (u64 first = u64{blockIdx.x} * census_threads; first < n_arrays;
       first += u64{gridDim.x} * census_threads)
  {
    u64 i = first + threadIdx.x;
    bool there = i < n_arrays;
    ArraySpan span = there ? load_span(spans, i) : ArraySpan{0, 0, 0};
    u32 c = there ? class_of<Code>(span.length) : max_array_classes;
    u32 left = __ballot_sync(~0u, there);

    while (left != 0)
    {
      u32 met = __shfl_sync(~0u, c, __ffs(left) - 1);
      u32 same = __ballot_sync(~0u, c == met);

      if (lane == met)
        n += __popc(same);
      left &= ~same;
    }
    if (c == Classes<Code>::first_long)
    {
      tiles += (span.length + Classes<Code>::tile - 1) / Classes<Code>::tile;
      bins += bins_of<Code>(span.length);
    }
    elements += span.length;
    end = max(end, span.offset + u64{span.length} * elem_bytes);
    longest = max(longest, span.length);
  }
  elements = warp_sum(elements);
  tiles = warp_sum(tiles);
  bins = warp_sum(bins);
  end = warp_max(end);
  longest = static_cast<u32>(warp_max(longest));
  if (n > 0)
    atomicAdd(&census->n[lane], n);
  if (lane == 0)
  {
    if (tiles > 0)
    {
      atomicAdd(&census->tiles, tiles);
      atomicAdd(&census->bins, bins);
    }
    atomicAdd(&census->elements, elements);
    atomicMax(&census->end, end);
    atomicMax(&census->longest, longest);
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
  u32 blocks = std::min(blocks_for(job.n_arrays, census_threads * 4), 4096u);

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

void sort_arrays(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  with_code(job.elem, [&](auto code) { ArraySorter<decltype(code)>::sort(job, census, workspace, stream); });
}

} // namespace gpusort
