/*-------------------------------------------------------------------------
 *
 * sorter_impl.cuh
 *	  From the spans of arrays to lists of classes, and the sorting of all classes.
 *
 * Where all arrays are of one class, the spans are its list.  Otherwise blocks copy
 * the spans to a list for each class.  A block's spans stay together, so that
 * neighbours on a list are near each other in memory.  Arrays of 2 to 8 elements,
 * often the most, are on no list then: each block sorts those of its own spans.
 *
 * Classes are sorted side by side, in the stream and the side streams.
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

// A warp sorts arrays of up to 8 elements, one in each lane.  They are written in the
// order of the lanes, so that lines are filled: short arrays are mostly neighbours.
template <typename Code>
struct TinySorter
{
  static constexpr u32 max_n = 8;
  using Sorter = Team<Code, 1, max_n>;

  Code codes[warp_size * max_n];
  u64 base[warp_size]; // where a lane's array would begin if its first code were codes[0]
  u8 lane_of[warp_size * max_n];

  __device__ __forceinline__ void sort(char *array, u32 n, const CodeMap &map)
  {
    u32 lane = threadIdx.x % warp_size;
    Code items[max_n];

    Sorter::load(items, array, n, map, 0);

    u32 end = inclusive_sum(n);
    u32 begin = end - n;

    sort_items(items);
    __syncwarp();
    base[lane] = reinterpret_cast<u64>(array) - u64{begin} * map.bytes;
#pragma unroll
    for (u32 i = 0; i < max_n; i++)
      if (i < n)
      {
        codes[begin + i] = items[i];
        lane_of[begin + i] = static_cast<u8>(lane);
      }
    end = __shfl_sync(~0u, end, warp_size - 1);
    __syncwarp();
    for (u32 k = lane; k < end; k += warp_size)
      store_code(reinterpret_cast<char *>(base[lane_of[k]]), k, map, codes[k]);
  }
};

// Puts arrays on the lists of their classes, and sorts those of 2 to 8 elements.
template <typename Code>
struct ArrayLister
{
  static constexpr u32 batch = list_batch<Code>;
  static constexpr u32 offset_bits = 60; // of a tiny array's offset; its length is above them

  struct Storage
  {
    u32 counts[max_array_classes];
    u64 first[max_array_classes]; // in each list, the entry of the block's first array
    TinySorter<Code> sorters[list_threads / warp_size];
    u64 tiny[list_threads * batch];
  };

  // Finds each array's rank among those of its class in the block.
  static __device__ __forceinline__ void rank_arrays(Storage &storage, const ArraySpan (&spans)[batch],
                                                     u32 (&ranks)[batch])
  {
#pragma unroll
    for (u32 b = 0; b < batch; b++)
    {
      u32 c = class_of<Code>(spans[b].length);

      ranks[b] = count_peers(c, &storage.counts[c], c > 0);
    }
  }

  static __device__ __forceinline__ void list(Storage &storage, const ArraySpan (&spans)[batch],
                                              const u32 (&ranks)[batch], ArraySpan *lists)
  {
#pragma unroll
    for (u32 b = 0; b < batch; b++)
    {
      u32 c = class_of<Code>(spans[b].length);

      if (c > 1)
        lists[storage.first[c] + ranks[b]] = spans[b];
      else if (c == 1)
        storage.tiny[ranks[b]] = spans[b].offset | u64{spans[b].length} << offset_bits;
    }
  }

  static __device__ __forceinline__ void sort_tiny(Storage &storage, char *data, const CodeMap &map)
  {
    u32 lane = threadIdx.x % warp_size;

#pragma unroll 1
    for (u32 k = threadIdx.x; k - lane < storage.counts[1]; k += list_threads)
    {
      u64 array = k < storage.counts[1] ? storage.tiny[k] : 0;

      storage.sorters[threadIdx.x / warp_size].sort(data + (array & ((u64{1} << offset_bits) - 1)),
                                                    static_cast<u32>(array >> offset_bits), map);
    }
  }
};

template <typename Code>
__global__ void __launch_bounds__(list_threads)
    list_arrays(ArrayJob job, CodeMap map, ListEnd *ends, ArraySpan *lists)
{
  using Lister = ArrayLister<Code>;
  constexpr u32 batch = Lister::batch;

  __shared__ typename Lister::Storage storage;

  ArraySpan spans[batch];
  u32 ranks[batch];
  u64 base = u64{blockIdx.x} * list_threads * batch;

  if (threadIdx.x < max_array_classes)
    storage.counts[threadIdx.x] = 0;
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u64 i = base + b * list_threads + threadIdx.x;

    spans[b] = i < job.n_arrays ? load_span(job.spans, i) : ArraySpan{0, 0};
  }
  __syncthreads();
  Lister::rank_arrays(storage, spans, ranks);
  __syncthreads();
  if (threadIdx.x > 1 && threadIdx.x < max_array_classes && storage.counts[threadIdx.x] > 0)
    storage.first[threadIdx.x] =
        atomicAdd(&ends[threadIdx.x].index, static_cast<u64>(storage.counts[threadIdx.x]));
  __syncthreads();
  Lister::list(storage, spans, ranks, lists);
  __syncthreads();
  Lister::sort_tiny(storage, job.data, map);
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

    for (u32 c = 2; c < max_array_classes; c++)
      n_listed += census.n[c];
    ends = storage.alias<ListEnd>(max_array_classes);
    lists = storage.alias<ArraySpan>(is_one_class(census) ? 0 : n_listed);
    if (census.n[Classes<Code>::first_long] > 0)
      longs = alias_long<Code>(&storage, census);
    bytes = storage.bytes();
  }
};

// Makes the lists, class after class, and sorts the arrays of 2 to 8 elements.
template <typename Code>
void make_lists(const ArrayJob &job, const CodeMap &map, const ListStarts &starts,
                const ArrayWorkspace<Code> &workspace, cudaStream_t stream)
{
  start_lists<<<1, max_array_classes, 0, stream>>>(starts, workspace.ends);
  GS_CUDA_LAUNCHED();
  list_arrays<Code><<<blocks_for(job.n_arrays, list_threads * list_batch<Code>), list_threads, 0, stream>>>(
      job, map, workspace.ends, workspace.lists);
  GS_CUDA_LAUNCHED();
}

template <typename Code>
u64 ArraySorter<Code>::workspace(const ArrayCensus &census)
{
  return ArrayWorkspace<Code>(nullptr, census).bytes;
}

template <typename Code>
void ArraySorter<Code>::sort(const ArrayJob &job, const ArrayCensus &census, void *workspace,
                             SideStreams &side, cudaStream_t stream)
{
  constexpr u32 first_long = Classes<Code>::first_long;

  const ArrayWorkspace<Code> memory(workspace, census);
  const CodeMap map = code_map(job.elem, job.descending);
  const bool one_class = is_one_class(census);
  const u32 first_class = one_class ? 1 : 2;
  const u64 n_long = census.n[first_long];
  ListStarts starts = {};
  u64 start = 0;

  for (u32 c = first_class; c < max_array_classes; c++)
  {
    starts.start[c] = start;
    start += census.n[c];
  }
  if (!one_class)
    make_lists(job, map, starts, memory, stream);

  auto list_of = [&](u32 c) {
    return ClassList{(one_class ? job.spans : memory.lists) + starts.start[c], census.n[c], job.data};
  };

  auto sort_on_chip = [&](auto stream_of)
  {
    for (u32 c = first_class; c < first_long; c++)
      if (census.n[c] > 0)
        sort_class<Code>(c, list_of(c), map, stream_of(c));
  };

  if (one_class && n_long == 0)
    return sort_on_chip([&](u32) { return stream; });

  // Long arrays go through several kernels, beside which the others are sorted.
  Fork fork(side, stream);

  if (n_long > 0)
    sort_long_arrays<Code>(list_of(first_long), map, census, memory.longs, stream);
  sort_on_chip([&](u32 c) { return fork.lane(1 + c % SideStreams::count); });
  fork.join();
}

} // namespace gpusort

#endif // GS_ARRAYS_SORTER_IMPL_CUH
