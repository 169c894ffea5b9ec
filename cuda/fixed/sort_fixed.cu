/*-------------------------------------------------------------------------
 *
 * sort_fixed.cu
 *	  The engine for keys of one length: a radix sort of whole keys.
 *
 * Keys are squeezed into integers of 32 or 64 bits by fixed_keys.cu.  Integers of
 * 128 bits would take 16 passes, each slower by half; sort_string.cu needs two
 * or three for such keys.
 *
 *-------------------------------------------------------------------------
 */
#include "fixed/sort_fixed.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 max_bits = 64;

template <typename Key>
u64 radix_bytes(u32 n_rows)
{
  size_t bytes = 0;
  cub::DoubleBuffer<Key> keys;
  cub::DoubleBuffer<u32> rows;

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, rows, n_rows));
  return bytes;
}

template <typename Key>
void sort_squeezed(const KeyRef *refs, u32 n_rows, const FixedSpan &span, void *workspace, u32 *order,
                   u8 *tie, cudaStream_t stream)
{
  TempStorage storage(workspace);
  Key *keys_a = storage.alias<Key>(n_rows);
  Key *keys_b = storage.alias<Key>(n_rows);
  u32 *spare = storage.alias<u32>(n_rows);
  size_t temp_bytes = radix_bytes<Key>(n_rows);
  void *temp = storage.alias<char>(temp_bytes);
  cub::DoubleBuffer<Key> keys(keys_a, keys_b);
  cub::DoubleBuffer<u32> rows(spare, order);

  squeeze_keys(refs, n_rows, span, keys.Current(), rows.Current(), stream);
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys, rows, n_rows, span.begin_bit,
                                              span.end_bit, stream));
  if (rows.Current() != order)
    GS_CUDA_TRY(
        cudaMemcpyAsync(order, rows.Current(), u64{n_rows} * sizeof(u32), cudaMemcpyDeviceToDevice, stream));
  mark_fixed_ties(keys.Current(), n_rows, tie, stream);
}

template <typename Key>
u64 workspace_of(u32 n_rows)
{
  TempStorage storage;

  storage.alias<Key>(n_rows);
  storage.alias<Key>(n_rows);
  storage.alias<u32>(n_rows);
  storage.alias<char>(radix_bytes<Key>(n_rows));
  return storage.bytes();
}

} // namespace

bool sort_fixed_fits(const RowStats &stats)
{
  return fixed_keys_fit(stats) && find_fixed_span(stats).n_bits <= max_bits;
}

u64 sort_fixed_workspace(u32 n_rows)
{
  return std::max(workspace_of<u32>(n_rows), workspace_of<u64>(n_rows));
}

const char *sort_fixed(const KeyRef *keys, u32 n_rows, const RowStats &stats, void *workspace, u32 *order,
                       u8 *tie, cudaStream_t stream)
{
  FixedSpan span = find_fixed_span(stats);

  if (span.n_bytes == 0)
  {
    order_equal_keys(n_rows, order, tie, stream);
    return "all keys equal";
  }
  if (span.n_bytes <= 4)
  {
    sort_squeezed<u32>(keys, n_rows, span, workspace, order, tie, stream);
    return "radix, 32 bits";
  }
  sort_squeezed<u64>(keys, n_rows, span, workspace, order, tie, stream);
  return "radix, 64 bits";
}

} // namespace gpusort
