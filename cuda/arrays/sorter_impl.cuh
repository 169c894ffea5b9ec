/*-------------------------------------------------------------------------
 *
 * array_sorter_impl.cuh
 *	  From spans of arrays to lists of their classes, and all classes, those
 *	  of different lengths side by side.
 *
 * Where all arrays are of one class, the spans are its list.  Else they are
 * copied into lists one behind the other; within a class their order is that in
 * which blocks came by, which keeps neighbours together.  Arrays of 2 to 8
 * elements, which may be most of them, are in no list then: each block that comes by
 * collects its own and sorts them.
 *
 * Huge arrays, of more than some hundred thousand elements, are sorted one by
 * one in each of two streams, by CUB's radix sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SORTER_IMPL_CUH
#define GS_ARRAY_SORTER_IMPL_CUH

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <vector>

#include "arrays/array_bins.cuh"
#include "arrays/array_sorter.cuh"

namespace gpusort
{

constexpr u32 list_threads = 256;
template <typename Code>
constexpr u32 list_batch = sizeof(Code) <= 8 ? 8 : 4; // what shared memory has room for

struct ListStarts
{
  u64 start[max_array_classes];
};

// Where a class's list goes on, in a line of its own: additions to several of them
// are under way side by side.
struct alignas(128) ListEnd
{
  u64 at;
};

static __global__ void begin_lists(ListStarts starts, ListEnd *ends)
{
  ends[threadIdx.x].at = starts.start[threadIdx.x];
}

// A warp sorts arrays of 2 to 8 elements, one in each lane, or none.  They are
// written in the order of the lanes, so that lines are filled: short arrays are
// mostly neighbours of others.
template <typename Code>
struct TinySorter
{
  static constexpr u32 most = 8;
  using Registers = Team<Code, 1, most>;

  Code codes[warp_size * most];
  u64 first[warp_size]; // where a lane's array would begin if codes began at 0
  u8 lane_of[warp_size * most];

  __device__ __forceinline__ void sort(char *array, u32 n, const CodeMap &map)
  {
    u32 lane = threadIdx.x % warp_size;
    u32 end = n;
    Code x[most];

    Registers::load(x, array, n, map, 0);
#pragma unroll
    for (u32 d = 1; d < warp_size; d *= 2)
    {
      u32 before = __shfl_up_sync(~0u, end, d);

      end += lane >= d ? before : 0;
    }
    Registers::sort_registers(x);
    __syncwarp();
    first[lane] = reinterpret_cast<u64>(array) - u64{end - n} * map.bytes;
#pragma unroll
    for (u32 k = 0; k < most; k++)
      if (k < n)
      {
        codes[end - n + k] = x[k];
        lane_of[end - n + k] = static_cast<u8>(lane);
      }
    end = __shfl_sync(~0u, end, warp_size - 1);
    __syncwarp();
    for (u32 k = lane; k < end; k += warp_size)
      store_code(reinterpret_cast<char *>(first[lane_of[k]]), k, map, codes[k]);
  }
};

template <typename Code>
__global__ void __launch_bounds__(list_threads)
    list_arrays(ArrayJob job, CodeMap map, ListEnd *ends, ArraySpan *lists)
{
  constexpr u32 batch = list_batch<Code>;
  constexpr u32 tiny_bits = 60; // of an offset

  __shared__ u32 counts[max_array_classes];
  __shared__ u64 first[max_array_classes];
  __shared__ TinySorter<Code> sorters[list_threads / warp_size];
  __shared__ u64 tiny[list_threads * batch]; // offsets, and lengths in the upper bits

  ArraySpan span[batch];
  u32 rank[batch];
  u64 base = u64{blockIdx.x} * list_threads * batch;
  u32 lane = threadIdx.x % warp_size;

  if (threadIdx.x < max_array_classes)
    counts[threadIdx.x] = 0;
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u64 i = base + b * list_threads + threadIdx.x;

    span[b] = i < job.n_arrays ? load_span(job.spans, i) : ArraySpan{0, 0};
  }
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    // One addition for all lanes of a class.
    u32 c = class_of<Code>(span[b].length);
    u32 peers = __match_any_sync(~0u, c);
    u32 leader = __ffs(peers) - 1;
    u32 before = 0;

    if (c > 0 && lane == leader)
      before = atomicAdd(&counts[c], __popc(peers));
    rank[b] = __shfl_sync(~0u, before, leader) + __popc(peers & ((1u << lane) - 1));
  }
  __syncthreads();
  if (threadIdx.x > 1 && threadIdx.x < max_array_classes && counts[threadIdx.x] > 0)
    first[threadIdx.x] = atomicAdd(&ends[threadIdx.x].at, static_cast<u64>(counts[threadIdx.x]));
  __syncthreads();
#pragma unroll
  for (u32 b = 0; b < batch; b++)
  {
    u32 c = class_of<Code>(span[b].length);

    if (c > 1)
      lists[first[c] + rank[b]] = span[b];
    else if (c == 1)
      tiny[rank[b]] = span[b].offset | u64{span[b].length} << tiny_bits;
  }
  __syncthreads();
#pragma unroll 1
  for (u32 k = threadIdx.x; k - lane < counts[1]; k += list_threads)
  {
    u64 array = k < counts[1] ? tiny[k] : 0;

    sorters[threadIdx.x / warp_size].sort(job.data + (array & ((u64{1} << tiny_bits) - 1)),
                                          static_cast<u32>(array >> tiny_bits), map);
  }
}

constexpr u32 huge_threads = 256;

template <typename Code>
__global__ void __launch_bounds__(huge_threads)
    load_huge(const char *array, u32 n, CodeMap map, typename RadixKey<Code>::type *keys)
{
  u64 i = u64{blockIdx.x} * huge_threads + threadIdx.x;
  Code code;

  if (i >= n)
    return;
  load_code(array, static_cast<u32>(i), map, &code);
  keys[i] = radix_key(code);
}

template <typename Code>
__global__ void __launch_bounds__(huge_threads)
    store_huge(char *array, u32 n, CodeMap map, const typename RadixKey<Code>::type *keys)
{
  u64 i = u64{blockIdx.x} * huge_threads + threadIdx.x;
  Code code;

  if (i >= n)
    return;
  from_radix_key(keys[i], &code);
  store_code(array, static_cast<u32>(i), map, code);
}

template <typename Code>
struct HugeMemory
{
  typename RadixKey<Code>::type *keys[2];
  void *temp;
  size_t temp_bytes;
};

// How many of them are sorted side by side: alone, one of some millions of elements
// does not fill the device, but one of many does.
inline u32 huge_lanes(const ArrayCensus &census, u32 huge)
{
  constexpr u32 fills_device = 1 << 22;

  return census.longest > fills_device ? 1
                                       : static_cast<u32>(std::min<u64>(census.n[huge], SideStreams::count));
}

template <typename Code>
HugeMemory<Code> alias_huge(TempStorage *storage, u32 longest)
{
  using Key = typename RadixKey<Code>::type;
  HugeMemory<Code> memory;
  cub::DoubleBuffer<Key> keys;

  GS_CUDA_TRY(cub::DeviceRadixSort::SortKeys(nullptr, memory.temp_bytes, keys, u64{longest}));
  memory.keys[0] = storage->alias<Key>(longest);
  memory.keys[1] = storage->alias<Key>(longest);
  memory.temp = storage->alias<char>(memory.temp_bytes);
  return memory;
}

inline std::vector<ArraySpan> read_spans(const ClassList &list, cudaStream_t stream)
{
  std::vector<ArraySpan> spans(list.n);

  GS_CUDA_TRY(
      cudaMemcpyAsync(spans.data(), list.spans, list.n * sizeof(ArraySpan), cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));
  return spans;
}

template <typename Code>
void sort_huge(char *array, u32 n, const CodeMap &map, const HugeMemory<Code> &memory, cudaStream_t stream)
{
  using Key = typename RadixKey<Code>::type;
  int bits = sizeof(Code) * 8;
  cub::DoubleBuffer<Key> keys(memory.keys[0], memory.keys[1]);
  size_t temp_bytes = memory.temp_bytes;
  u32 blocks = blocks_for(n, huge_threads);

  load_huge<Code><<<blocks, huge_threads, 0, stream>>>(array, n, map, keys.Current());
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceRadixSort::SortKeys(memory.temp, temp_bytes, keys, u64{n},
                                             bits - static_cast<int>(map.bytes) * 8, bits, stream));
  store_huge<Code><<<blocks, huge_threads, 0, stream>>>(array, n, map, keys.Current());
  GS_CUDA_LAUNCHED();
}

// All of one class?
inline bool one_class(const ArrayCensus &census)
{
  u32 n = 0;

  for (u32 c = 0; c < max_array_classes; c++)
    n += census.n[c] > 0;
  return n < 2;
}

// The workspace, over all classes.
template <typename Code>
struct ArrayMemory
{
  ListEnd *ends;
  ArraySpan *lists;
  SplitMemory<Code> split;
  HugeMemory<Code> huge[SideStreams::count];
  u64 bytes;

  ArrayMemory(void *workspace, const ArrayCensus &census)
  {
    TempStorage storage(workspace);
    u64 n_arrays = 0;

    for (u32 c = 2; c < max_array_classes; c++)
      n_arrays += census.n[c];
    ends = storage.alias<ListEnd>(max_array_classes);
    lists = storage.alias<ArraySpan>(one_class(census) ? 0 : n_arrays);
    if (census.n[Classes<Code>::first_long] > 0)
      split = alias_split<Code>(&storage, census);
    for (u32 i = 0; i < huge_lanes(census, Classes<Code>::huge); i++)
      huge[i] = alias_huge<Code>(&storage, census.longest);
    bytes = storage.bytes();
  }
};

template <typename Code>
u64 ArraySorter<Code>::workspace(const ArrayCensus &census)
{
  return ArrayMemory<Code>(nullptr, census).bytes;
}

template <typename Code>
void ArraySorter<Code>::sort(const ArrayJob &job, const ArrayCensus &census, void *workspace,
                             SideStreams &side, cudaStream_t stream)
{
  constexpr u32 first_long = Classes<Code>::first_long;
  constexpr u32 huge = Classes<Code>::huge;

  ArrayMemory<Code> memory(workspace, census);
  CodeMap map = code_map(job.elem, job.descending);
  ListStarts starts = {};
  const ArraySpan *lists = job.spans;
  u64 start = 0;
  u32 first_class = 1;

  if (!one_class(census))
  {
    u32 per_block = list_threads * list_batch<Code>;
    u64 blocks = (job.n_arrays + per_block - 1) / per_block;

    if (blocks > INT32_MAX)
      fail(GS_NO_MEMORY, "there are too many arrays");
    first_class = 2;
    for (u32 c = first_class; c < max_array_classes; c++)
    {
      starts.start[c] = start;
      start += census.n[c];
    }
    lists = memory.lists;
    begin_lists<<<1, max_array_classes, 0, stream>>>(starts, memory.ends);
    GS_CUDA_LAUNCHED();
    list_arrays<Code>
        <<<static_cast<u32>(blocks), list_threads, 0, stream>>>(job, map, memory.ends, memory.lists);
    GS_CUDA_LAUNCHED();
  }

  auto list_of = [&](u32 c) { return ClassList{lists + starts.start[c], census.n[c], job.data}; };

  if (one_class(census) && census.n[first_long] == 0 && census.n[huge] == 0)
  {
    for (u32 c = first_class; c < first_long; c++)
      if (census.n[c] > 0)
        sort_class<Code>(c, list_of(c), map, stream);
    return;
  }

  std::vector<ArraySpan> huge_spans;

  if (census.n[huge] > 0)
    huge_spans = read_spans(list_of(huge), stream);

  // Long and huge arrays go through several kernels, beside which the others are sorted.
  Fork fork(side, stream);

  for (size_t i = 0; i < huge_spans.size(); i++)
  {
    u32 lane = i % huge_lanes(census, huge);

    sort_huge<Code>(job.data + huge_spans[i].offset, huge_spans[i].length, map, memory.huge[lane],
                    fork.lane(1 + lane));
  }
  if (census.n[first_long] > 0)
    split_long<Code>(list_of(first_long), map, census, memory.split, stream);
  for (u32 c = first_class; c < first_long; c++)
    if (census.n[c] > 0)
      sort_class<Code>(c, list_of(c), map, fork.lane(1 + c % SideStreams::count));
  if (census.n[first_long] > 0)
  {
    fork.follow();
    sort_split<Code>(list_of(first_long), map, census, memory.split, fork);
  }
  fork.join();
}

} // namespace gpusort

#endif // GS_ARRAY_SORTER_IMPL_CUH
