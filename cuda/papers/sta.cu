/*-------------------------------------------------------------------------
 *
 * sta.cu
 *	  Sorting arrays by a tagged approach, the baseline of Awan and Saeed.
 *
 * M. Awan, F. Saeed: GPU-ArraySort: A parallel, in-place algorithm for sorting
 * large number of arrays.  2016.  Section 7.1.1 and figure 3.
 *
 * All arrays are merged into one, and a second array holds for each element the
 * number of its array, the tag.  A stable sort by the elements moves the tags along.
 * A stable sort by the tags then moves the elements along, and brings the elements
 * of each array together, in order.  (Figure 3 lists the two sorts the other way
 * around, which would leave the elements of all arrays mixed.)  Both are radix
 * sorts: Thrust's in the paper, CUB's here, with as many bits as the tags have.
 * Besides the data they take two copies of the elements and two of the tags.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>

#include "arrays/classes.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 warps = threads / warp_size;

template <typename Code>
struct TagMemory
{
  using Key = typename RadixKey<Code>::type;

  u64 *first = nullptr; // element of each array in the merged one
  Key *elements[2];
  u32 *tags[2];
  void *temp;
  size_t temp_bytes;
  u64 bytes;

  TagMemory(void *workspace, const ArrayCensus &census)
  {
    TempStorage storage(workspace);
    cub::DoubleBuffer<Key> no_elements;
    cub::DoubleBuffer<u32> no_tags;
    u64 n_arrays = 0;
    size_t scan = 0;
    size_t by_element = 0;
    size_t by_tag = 0;

    for (u64 n : census.n)
      n_arrays += n;
    GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, scan, first, first, n_arrays));
    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, by_element, no_elements, no_tags, census.elements));
    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, by_tag, no_tags, no_elements, census.elements));
    temp_bytes = std::max({scan, by_element, by_tag});
    first = storage.alias<u64>(n_arrays);
    for (int i = 0; i < 2; i++)
    {
      elements[i] = storage.alias<Key>(census.elements);
      tags[i] = storage.alias<u32>(census.elements);
    }
    temp = storage.alias<char>(temp_bytes);
    bytes = storage.bytes();
  }
};

__global__ void __launch_bounds__(threads) list_lengths(const ArraySpan *spans, u64 n_arrays, u64 *lengths)
{
  for (u64 i = u64{blockIdx.x} * threads + threadIdx.x; i < n_arrays; i += u64{gridDim.x} * threads)
    lengths[i] = load_span(spans, i).length;
}

// A warp for each array.
template <typename Code>
__global__ void __launch_bounds__(threads) tag_elements(ClassList list, CodeMap map, const u64 *first,
                                                        typename RadixKey<Code>::type *elements, u32 *tags)
{
  for (u64 i = u64{blockIdx.x} * warps + threadIdx.x / warp_size; i < list.n; i += u64{gridDim.x} * warps)
  {
    ArraySpan span = load_span(list.spans, i);

    for (u32 k = threadIdx.x % warp_size; k < span.length; k += warp_size)
    {
      Code code;

      load_code(list.data + span.offset, k, map, &code);
      elements[first[i] + k] = radix_key(code);
      tags[first[i] + k] = static_cast<u32>(i);
    }
  }
}

template <typename Code>
__global__ void __launch_bounds__(threads) restore_elements(ClassList list, CodeMap map, const u64 *first,
                                                            const typename RadixKey<Code>::type *elements)
{
  for (u64 i = u64{blockIdx.x} * warps + threadIdx.x / warp_size; i < list.n; i += u64{gridDim.x} * warps)
  {
    ArraySpan span = load_span(list.spans, i);

    for (u32 k = threadIdx.x % warp_size; k < span.length; k += warp_size)
    {
      Code code;

      from_radix_key(elements[first[i] + k], &code);
      store_code(list.data + span.offset, k, map, code);
    }
  }
}

template <typename Code>
void run(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  using Key = typename RadixKey<Code>::type;
  TagMemory<Code> memory(workspace, census);
  CodeMap map = code_map(job.elem, job.descending);
  ClassList list = {job.spans, job.n_arrays, job.data};
  cub::DoubleBuffer<Key> elements(memory.elements[0], memory.elements[1]);
  cub::DoubleBuffer<u32> tags(memory.tags[0], memory.tags[1]);
  u32 blocks = grid_for(job.n_arrays, warps);
  int bits = sizeof(Key) * 8;

  list_lengths<<<grid_for(job.n_arrays, threads), threads, 0, stream>>>(job.spans, job.n_arrays,
                                                                        memory.first);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(memory.temp, memory.temp_bytes, memory.first, memory.first,
                                            u64{job.n_arrays}, stream));
  tag_elements<Code>
      <<<blocks, threads, 0, stream>>>(list, map, memory.first, elements.Current(), tags.Current());
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(memory.temp, memory.temp_bytes, elements, tags, census.elements,
                                              bits - static_cast<int>(map.bytes) * 8, bits, stream));
  if (job.n_arrays > 1)
    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(memory.temp, memory.temp_bytes, tags, elements,
                                                census.elements, 0, static_cast<int>(ceil_log2(job.n_arrays)),
                                                stream));
  restore_elements<Code><<<blocks, threads, 0, stream>>>(list, map, memory.first, elements.Current());
  GS_CUDA_LAUNCHED();
}

} // namespace

u64 sta_workspace(GsElem elem, const ArrayCensus &census)
{
  return with_code(elem, [&](auto code) { return TagMemory<decltype(code)>(nullptr, census).bytes; });
}

void sta(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  if (census.elements > 0)
    with_code(job.elem, [&](auto code) { run<decltype(code)>(job, census, workspace, stream); });
}

} // namespace gpusort
