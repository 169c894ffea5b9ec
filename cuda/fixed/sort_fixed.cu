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
struct Workspace
{
  Key *keys[2];
  u32 *rows; // the other array of row numbers is the order itself
  void *temp;
  size_t temp_bytes;
};

template <typename Key>
Workspace<Key> alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace<Key> workspace = {};
  cub::DoubleBuffer<Key> keys;
  cub::DoubleBuffer<u32> rows;

  workspace.keys[0] = storage.alias<Key>(n_rows);
  workspace.keys[1] = storage.alias<Key>(n_rows);
  workspace.rows = storage.alias<u32>(n_rows);
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, workspace.temp_bytes, keys, rows, n_rows));
  workspace.temp = storage.alias<char>(workspace.temp_bytes);
  return workspace;
}

template <typename Key>
u64 workspace_bytes(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace<Key>(storage, n_rows); });
}

template <typename Key>
void sort_squeezed(const OrderJob &job, const SqueezedLayout &layout, cudaStream_t stream)
{
  TempStorage storage(job.workspace);
  Workspace<Key> workspace = alias_workspace<Key>(storage, job.n_rows);
  cub::DoubleBuffer<Key> keys(workspace.keys[0], workspace.keys[1]);
  cub::DoubleBuffer<u32> rows(workspace.rows, job.order.row);

  squeeze_keys(job, layout, keys.Current(), rows.Current(), stream);
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(workspace.temp, workspace.temp_bytes, keys, rows, job.n_rows, 0,
                                              static_cast<int>(layout.n_bits), stream));
  if (rows.Current() != job.order.row)
    GS_CUDA_TRY(cudaMemcpyAsync(job.order.row, rows.Current(), u64{job.n_rows} * sizeof(u32),
                                cudaMemcpyDeviceToDevice, stream));
  mark_squeezed_ties(keys.Current(), job.n_rows, job.order.tie, stream);
}

} // namespace

bool sort_fixed_fits(const RowStats &stats)
{
  return fixed_keys_fit(stats) && squeezed_layout(stats).n_bits <= max_bits;
}

u64 sort_fixed_workspace(u32 n_rows)
{
  return std::max(workspace_bytes<u32>(n_rows), workspace_bytes<u64>(n_rows));
}

const char *sort_fixed(const OrderJob &job, cudaStream_t stream)
{
  SqueezedLayout layout = squeezed_layout(job.stats);

  if (layout.n_bytes == 0)
  {
    order_equal_keys(job.n_rows, job.order, stream);
    return "all keys equal";
  }
  if (layout.n_bytes <= 4)
  {
    sort_squeezed<u32>(job, layout, stream);
    return "radix, 32 bits";
  }
  sort_squeezed<u64>(job, layout, stream);
  return "radix, 64 bits";
}

} // namespace gpusort
