/*-------------------------------------------------------------------------
 *
 * long.cuh
 *	  Arrays that do not fit on chip: CUB sorts their codes.
 *
 * The codes of all long arrays are written to a buffer, each at its element's place in the data.  CUB sorts
 * them, with a block for each array, and they are written back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_LONG_CUH
#define GS_ARRAYS_LONG_CUH

#include <cub/device/device_segmented_radix_sort.cuh>
#include <thrust/iterator/transform_iterator.h>

#include "arrays/classes.cuh"

namespace gpusort
{

// The begin or the end of an array's codes in the buffer.
struct CodePlace
{
  u32 elem_bytes;
  bool is_end;

  __host__ __device__ int operator()(const ArraySpan &span) const
  {
    return static_cast<int>(span.offset / elem_bytes + (is_end ? span.length : 0));
  }
};

template <typename Code>
struct LongWorkspace
{
  using Key = typename RadixKey<Code>::type;

  Key *codes[2];
  void *temp;
  size_t temp_bytes;

  // Sorts the codes of the arrays of a list, or without memory finds temp_bytes.
  cub::DoubleBuffer<Key> sort(void *memory, const ClassList &list, const ArrayCensus &census, u32 elem_bytes,
                              cudaStream_t stream)
  {
    cub::DoubleBuffer<Key> buffer(codes[0], codes[1]);
    auto begins = thrust::make_transform_iterator(list.spans, CodePlace{elem_bytes, false});
    auto ends = thrust::make_transform_iterator(list.spans, CodePlace{elem_bytes, true});
    int bits = sizeof(Key) * 8;

    GS_CUDA_TRY(cub::DeviceSegmentedRadixSort::SortKeys(
        memory, temp_bytes, buffer, static_cast<int>(census.end_element), static_cast<int>(list.n), begins,
        ends, bits - static_cast<int>(elem_bytes) * 8, bits, stream));
    return buffer;
  }
};

template <typename Code>
LongWorkspace<Code> alias_long(TempStorage *storage, const ArrayCensus &census)
{
  LongWorkspace<Code> workspace = {};

  workspace.sort(nullptr, {nullptr, census.n[Classes<Code>::first_long], nullptr}, census, sizeof(Code),
                 nullptr);
  for (auto &codes : workspace.codes)
    codes = storage->alias<typename RadixKey<Code>::type>(census.end_element);
  workspace.temp = storage->alias<char>(workspace.temp_bytes);
  return workspace;
}

// Some blocks for each array.
template <typename Code>
__global__ void __launch_bounds__(long_threads)
    load_long_arrays(ClassList list, CodeMap map, typename RadixKey<Code>::type *codes)
{
  for (u64 i = blockIdx.x; i < list.n; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);

    for (u32 k = blockIdx.y * long_threads + threadIdx.x; k < span.length; k += gridDim.y * long_threads)
    {
      Code code;

      load_code(list.data + span.offset, k, map, &code);
      codes[span.offset / map.bytes + k] = radix_key(code);
    }
  }
}

template <typename Code>
__global__ void __launch_bounds__(long_threads)
    store_long_arrays(ClassList list, CodeMap map, const typename RadixKey<Code>::type *codes)
{
  for (u64 i = blockIdx.x; i < list.n; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);

    for (u32 k = blockIdx.y * long_threads + threadIdx.x; k < span.length; k += gridDim.y * long_threads)
    {
      Code code;

      from_radix_key(codes[span.offset / map.bytes + k], &code);
      store_code(list.data + span.offset, k, map, code);
    }
  }
}

template <typename Code>
void sort_long_arrays(const ClassList &list, const CodeMap &map, const ArrayCensus &census,
                      LongWorkspace<Code> workspace, cudaStream_t stream)
{
  const dim3 blocks(grid_for(list.n, 1), long_blocks);

  load_long_arrays<Code><<<blocks, long_threads, 0, stream>>>(list, map, workspace.codes[0]);
  GS_CUDA_LAUNCHED();

  auto sorted = workspace.sort(workspace.temp, list, census, map.bytes, stream);

  store_long_arrays<Code><<<blocks, long_threads, 0, stream>>>(list, map, sorted.Current());
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort

#endif // GS_ARRAYS_LONG_CUH
