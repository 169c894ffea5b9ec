/*-------------------------------------------------------------------------
 *
 * comparator.cu
 *	  The merge sort that libraries sort strings by.
 *
 * Thrust sorts types of its users, and cuDF strings, by CUB's merge sort of row
 * numbers, each comparison of which reads both strings.  Ours reads them
 * 8 bytes at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "comparator.cuh"

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

namespace bench
{

using namespace gpusort;

namespace
{

constexpr u32 threads = 256;

struct KeyLess
{
  const KeyRef *keys;

  __device__ bool operator()(u32 a_row, u32 b_row) const
  {
    KeyRef a = load_key(keys, a_row);
    KeyRef b = load_key(keys, b_row);
    u32 least = min(a.length, b.length);

    for (u32 at = 0; at < least; at += 8)
    {
      u64 a_word = load_word(a.address + at, a.length - at);
      u64 b_word = load_word(b.address + at, b.length - at);

      if (a_word != b_word)
        return a_word < b_word;
    }
    return a.length < b.length;
  }
};

__global__ void __launch_bounds__(threads) number_rows(u32 n_rows, u32 *rows)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    rows[i] = static_cast<u32>(i);
}

__global__ void __launch_bounds__(threads) make_pairs(u32 n_rows, u64 *keys, u32 *rows)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  u64 z = (i + 1) * 0x9e3779b97f4a7c15;

  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  keys[i] = z ^ z >> 31;
  rows[i] = static_cast<u32>(i);
}

struct Pairs
{
  u64 *keys[2];
  u32 *rows[2];
  void *temp;
  size_t temp_bytes;
};

Pairs alias_pairs(TempStorage &storage, u32 n_rows)
{
  Pairs pairs = {};

  for (int i = 0; i < 2; i++)
  {
    pairs.keys[i] = storage.alias<u64>(n_rows);
    pairs.rows[i] = storage.alias<u32>(n_rows);
  }
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, pairs.temp_bytes, pairs.keys[0], pairs.keys[1],
                                              pairs.rows[0], pairs.rows[1], n_rows));
  pairs.temp = storage.alias<char>(pairs.temp_bytes);
  return pairs;
}

} // namespace

u64 comparator_workspace(u32 n_rows)
{
  size_t bytes = 0;
  u32 *rows = nullptr;

  GS_CUDA_TRY(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, rows, n_rows, KeyLess{nullptr}));
  return bytes;
}

void sort_by_comparator(const KeyRef *keys, u32 n_rows, void *workspace, u32 *order, cudaStream_t stream)
{
  size_t bytes = comparator_workspace(n_rows);

  number_rows<<<blocks_for(n_rows, threads), threads, 0, stream>>>(n_rows, order);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceMergeSort::StableSortKeys(workspace, bytes, order, n_rows, KeyLess{keys}, stream));
}

RadixSortOfPairs::RadixSortOfPairs(u32 n_rows) : n_rows(n_rows)
{
  TempStorage sizes;

  alias_pairs(sizes, n_rows);
  GS_CUDA_TRY(cudaMalloc(&memory, sizes.bytes()));

  TempStorage storage(memory);
  Pairs pairs = alias_pairs(storage, n_rows);

  make_pairs<<<blocks_for(n_rows, threads), threads>>>(n_rows, pairs.keys[0], pairs.rows[0]);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cudaDeviceSynchronize());
}

RadixSortOfPairs::~RadixSortOfPairs()
{
  (void)cudaFree(memory);
}

void RadixSortOfPairs::run(cudaStream_t stream)
{
  TempStorage storage(memory);
  Pairs pairs = alias_pairs(storage, n_rows);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(pairs.temp, pairs.temp_bytes, pairs.keys[0], pairs.keys[1],
                                              pairs.rows[0], pairs.rows[1], n_rows, 0, 64, stream));
}

} // namespace bench
