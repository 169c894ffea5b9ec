/*-------------------------------------------------------------------------
 *
 * array_sorter_impl.cuh
 *	  From spans of arrays to lists of their classes, and one class after the
 *	  other.
 *
 * Where all arrays are of one class, the spans are its list.  Else they are
 * copied into lists one behind the other; within a class their order is that in
 * which blocks came by, which keeps neighbours together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SORTER_IMPL_CUH
#define GS_ARRAY_SORTER_IMPL_CUH

#include "array_sorter.cuh"
#include "array_split.cuh"

namespace gpusort
{

constexpr u32 list_threads = 256;
constexpr u32 list_batch = 4;

struct ListStarts
{
  u64 start[max_array_classes];
};

template <typename Code>
__global__ void __launch_bounds__(list_threads)
    list_arrays(const ArraySpan *spans, u64 n_arrays, ListStarts starts, u64 *listed, ArraySpan *lists)
{
  __shared__ u32 counts[max_array_classes];
  __shared__ u64 first[max_array_classes];

  ArraySpan span[list_batch];
  u32 c[list_batch];
  u32 rank[list_batch];
  u64 base = u64{blockIdx.x} * list_threads * list_batch;

  if (threadIdx.x < max_array_classes)
    counts[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < list_batch; b++)
  {
    u64 i = base + b * list_threads + threadIdx.x;

    span[b] = i < n_arrays ? load_span(spans, i) : ArraySpan{0, 0, 0};
    c[b] = class_of<Code>(span[b].length);

    // One addition for all lanes of a class.
    u32 peers = __match_any_sync(~0u, c[b]);
    u32 lane = threadIdx.x % warp_size;
    int leader = __ffs(peers) - 1;
    u32 before = 0;

    if (lane == leader)
      before = atomicAdd(&counts[c[b]], __popc(peers));
    rank[b] = __shfl_sync(~0u, before, leader) + __popc(peers & ((1u << lane) - 1));
  }
  __syncthreads();
  if (threadIdx.x < max_array_classes && counts[threadIdx.x] > 0)
    first[threadIdx.x] =
        starts.start[threadIdx.x] + atomicAdd(&listed[threadIdx.x], static_cast<u64>(counts[threadIdx.x]));
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < list_batch; b++)
    if (c[b] > 0)
      lists[first[c[b]] + rank[b]] = {span[b].offset, span[b].length, 0};
}

// The workspace, over all classes.
template <typename Code>
struct ArrayMemory
{
  u64 *listed;
  ArraySpan *lists;
  SplitMemory<Code> split;
  HugeMemory<Code> huge;
  u64 bytes;

  ArrayMemory(void *workspace, const ArrayCensus &census)
  {
    Carver carve(workspace);
    u64 n_lists = 0;
    u64 n_arrays = 0;

    for (u32 c = 1; c < max_array_classes; c++)
    {
      n_arrays += census.n[c];
      n_lists += census.n[c] > 0;
    }
    n_lists += census.n[0] > 0;
    listed = carve.take<u64>(max_array_classes);
    lists = carve.take<ArraySpan>(n_lists > 1 ? n_arrays : 0);
    if (census.n[Classes<Code>::first_long] > 0)
      split = carve_split<Code>(&carve, census);
    if (census.n[Classes<Code>::huge] > 0)
      huge = carve_huge<Code>(&carve, census.longest);
    bytes = carve.bytes();
  }
};

template <typename Code>
u64 ArraySorter<Code>::workspace(const ArrayCensus &census)
{
  return ArrayMemory<Code>(nullptr, census).bytes;
}

template <typename Code>
void ArraySorter<Code>::sort(const ArrayJob &job, const ArrayCensus &census, void *workspace,
                             cudaStream_t stream)
{
  ArrayMemory<Code> memory(workspace, census);
  CodeMap map = code_map(job.elem, job.descending);
  ListStarts starts = {};
  const ArraySpan *lists = job.spans;
  u64 start = 0;
  bool one_class = false;

  for (u32 c = 0; c < max_array_classes; c++)
    one_class |= census.n[c] == job.n_arrays;
  if (!one_class)
  {
    u32 per_block = list_threads * list_batch;
    u64 blocks = (job.n_arrays + per_block - 1) / per_block;

    if (blocks > INT32_MAX)
      fail(GS_NO_MEMORY, "there are too many arrays");
    for (u32 c = 1; c < max_array_classes; c++)
    {
      starts.start[c] = start;
      start += census.n[c];
    }
    lists = memory.lists;
    GS_CUDA_TRY(cudaMemsetAsync(memory.listed, 0, max_array_classes * sizeof(u64), stream));
    list_arrays<Code><<<static_cast<u32>(blocks), list_threads, 0, stream>>>(job.spans, job.n_arrays, starts,
                                                                             memory.listed, memory.lists);
    GS_CUDA_LAUNCHED();
  }
  for (u32 c = 1; c <= Classes<Code>::huge; c++)
  {
    ClassList list = {lists + starts.start[c], census.n[c], nullptr, job.data, nullptr};

    if (list.n == 0)
      continue;
    if (c < Classes<Code>::first_long)
      sort_class<Code>(c, list, map, stream);
    else if (c == Classes<Code>::first_long)
      sort_long<Code>(list, map, census, memory.split, stream);
    else
      sort_huge<Code>(list, map, memory.huge, stream);
  }
}

} // namespace gpusort

#endif // GS_ARRAY_SORTER_IMPL_CUH
