/*-------------------------------------------------------------------------
 *
 * sorter_impl.cuh
 *	  From the spans of arrays to lists of classes, and the sorting of all classes.
 *
 * If all arrays are of one class, the spans are its list.  Otherwise blocks copy the spans to a list for
 * each class.  A block's spans stay together, so that neighbours on a list are near each other in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_SORTER_IMPL_CUH
#define GS_ARRAYS_SORTER_IMPL_CUH

#include "arrays/long.cuh"
#include "arrays/on_chip.cuh"

namespace gpusort
{

struct ListStarts
{
  u64 start[max_array_classes];
};

// The end of a class's list so far.  Each is in a cache line of its own, so that
// additions to several of them run side by side.
struct alignas(128) ListEnd
{
  u64 index;
};

static __global__ void start_lists(ListStarts starts, ListEnd *ends)
{
  ends[threadIdx.x].index = starts.start[threadIdx.x];
}

// Puts arrays on the lists of their classes.
template <typename Code>
__global__ void __launch_bounds__(list_threads) list_arrays(ArrayJob job, ListEnd *ends, ArraySpan *lists)
{
  constexpr u32 batch = list_batch<Code>;

  __shared__ u32 counts[max_array_classes];
  __shared__ u64 first[max_array_classes]; // in each list, the entry of the block's first array

  ArraySpan spans[batch];
  u32 ranks[batch]; // among the block's arrays of the class
  u64 base = u64{blockIdx.x} * list_threads * batch;

  if (threadIdx.x < max_array_classes)
    counts[threadIdx.x] = 0;
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u64 i = base + b * list_threads + threadIdx.x;

    spans[b] = i < job.n_arrays ? load_span(job.spans, i) : ArraySpan{0, 0};
  }
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u32 c = class_of<Code>(spans[b].length);

    ranks[b] = count_peers(c, &counts[c], c > 0);
  }
  __syncthreads();
  if (threadIdx.x > 0 && threadIdx.x < max_array_classes && counts[threadIdx.x] > 0)
    first[threadIdx.x] = atomicAdd(&ends[threadIdx.x].index, static_cast<u64>(counts[threadIdx.x]));
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u32 c = class_of<Code>(spans[b].length);

    if (c > 0)
      lists[first[c] + ranks[b]] = spans[b];
  }
}

// Are all arrays of one class?
inline bool is_one_class(const ArrayCensus &census)
{
  u32 n = 0;

  for (u32 c = 0; c < max_array_classes; c++)
    n += census.n[c] > 0;
  return n < 2;
}

// The workspace, over all classes.
template <typename Code>
struct ArrayWorkspace
{
  ListEnd *ends;
  ArraySpan *lists;
  LongWorkspace<Code> longs;
  u64 bytes;

  ArrayWorkspace(void *base, const ArrayCensus &census)
  {
    TempStorage storage(base);
    u64 n_listed = 0;

    for (u32 c = 1; c < max_array_classes; c++)
      n_listed += census.n[c];
    ends = storage.alias<ListEnd>(max_array_classes);
    lists = storage.alias<ArraySpan>(is_one_class(census) ? 0 : n_listed);
    if (census.n[Classes<Code>::first_long] > 0)
      longs = alias_long<Code>(&storage, census);
    bytes = storage.bytes();
  }
};

// Makes the lists, class after class.
template <typename Code>
void make_lists(const ArrayJob &job, const ListStarts &starts, const ArrayWorkspace<Code> &workspace,
                cudaStream_t stream)
{
  start_lists<<<1, max_array_classes, 0, stream>>>(starts, workspace.ends);
  GS_CUDA_LAUNCHED();
  list_arrays<Code><<<blocks_for(job.n_arrays, list_threads * list_batch<Code>), list_threads, 0, stream>>>(
      job, workspace.ends, workspace.lists);
  GS_CUDA_LAUNCHED();
}

template <typename Code>
u64 ArraySorter<Code>::workspace(const ArrayCensus &census)
{
  return ArrayWorkspace<Code>(nullptr, census).bytes;
}

template <typename Code>
void ArraySorter<Code>::sort(const ArrayJob &job, const ArrayCensus &census, void *workspace,
                             cudaStream_t stream)
{
  constexpr u32 first_long = Classes<Code>::first_long;

  const ArrayWorkspace<Code> memory(workspace, census);
  const CodeMap map = code_map(job.elem, job.descending);
  const bool one_class = is_one_class(census);
  ListStarts starts = {};
  u64 start = 0;

  for (u32 c = 1; c < max_array_classes; c++)
  {
    starts.start[c] = start;
    start += census.n[c];
  }
  if (!one_class)
    make_lists(job, starts, memory, stream);

  auto list_of = [&](u32 c) {
    return ClassList{(one_class ? job.spans : memory.lists) + starts.start[c], census.n[c], job.data};
  };

  for (u32 c = 1; c < first_long; c++)
    if (census.n[c] > 0)
      sort_class<Code>(c, list_of(c), map, stream);
  if (census.n[first_long] > 0)
    sort_long_arrays<Code>(list_of(first_long), map, census, memory.longs, stream);
}

} // namespace gpusort

#endif // GS_ARRAYS_SORTER_IMPL_CUH
