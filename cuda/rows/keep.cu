/*-------------------------------------------------------------------------
 *
 * keep.cu
 *	  Cutting the order of the rows down to those that are kept.
 *
 * Engines tell which keys are equal, so a flag for each rank tells the first of equal keys.  A group's rows
 * are neighbours: a row is not among the first n if the row n ranks before it belongs to its group.  If
 * rows with equal keys stay together, the first of them decides for all, and a maximum scan finds its rank.
 * Each row needs the keys of two rows only.  They are read byte by byte, as groups mostly begin with a few
 * short columns.  The distance from a first key to the next first key is the number of equal keys.  A first
 * row that is dropped by this number gets the same flag as the rows behind first ones.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/keep.cuh"

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 sum_blocks = 1024;

// Is a row the first one with its key?
struct IsFirst
{
  __host__ __device__ bool operator()(u8 tie) const
  {
    return tie == 0;
  }
};

using FirstFlags = thrust::transform_iterator<IsFirst, const u8 *>;

// The rank of a row that is the first one with its key; 0 for other rows.
struct FirstRank
{
  const u8 *tie;

  __host__ __device__ u32 operator()(u32 rank) const
  {
    return tie[rank] == 0 ? rank : 0;
  }
};

using FirstRanks = thrust::transform_iterator<FirstRank, thrust::counting_iterator<u32>>;

struct Workspace
{
  u32 *first_rank; // for each rank, the rank of the first row with its key; to count, for each key
  u8 *kept;        // of each rank
  u32 *top_keys;   // keys by the highest bit of their number of rows
  void *temp;
  size_t temp_bytes;
};

FirstRanks first_ranks(const u8 *tie)
{
  return FirstRanks(thrust::counting_iterator<u32>(0), FirstRank{tie});
}

Workspace alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace workspace = {};
  size_t scan_bytes = 0;
  size_t first_bytes = 0;
  size_t rank_bytes = 0;
  size_t row_bytes = 0;
  size_t tie_bytes = 0;

  GS_CUDA_TRY(cub::DeviceScan::InclusiveScan(nullptr, scan_bytes, first_ranks(nullptr),
                                             static_cast<u32 *>(nullptr), thrust::maximum<u32>(), n_rows));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, first_bytes, static_cast<u32 *>(nullptr),
                                         FirstFlags(nullptr, {}), static_cast<u32 *>(nullptr), n_rows));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, rank_bytes, thrust::counting_iterator<u32>(0),
                                         FirstFlags(nullptr, {}), static_cast<u32 *>(nullptr),
                                         static_cast<u32 *>(nullptr), n_rows));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, row_bytes, static_cast<u32 *>(nullptr),
                                         static_cast<const u8 *>(nullptr), static_cast<u32 *>(nullptr),
                                         n_rows));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, tie_bytes, static_cast<u8 *>(nullptr),
                                         static_cast<const u8 *>(nullptr), static_cast<u32 *>(nullptr),
                                         n_rows));
  workspace.first_rank = storage.alias<u32>(n_rows);
  workspace.kept = storage.alias<u8>(n_rows);
  workspace.top_keys = storage.alias<u32>(32);
  workspace.temp_bytes = std::max({scan_bytes, first_bytes, rank_bytes, row_bytes, tie_bytes});
  workspace.temp = storage.alias<char>(workspace.temp_bytes);
  return workspace;
}

__device__ __forceinline__ u32 byte_at(u64 address)
{
  return __ldg(reinterpret_cast<const u8 *>(address));
}

// Returns how many bytes of a key are the columns of its group.
__device__ u32 group_bytes(const GsKeepGroup &group, const KeyRef &key)
{
  u32 at = 0;

  for (u32 i = 0; i < group.n_columns && at < key.length; i++)
  {
    const GsGroupColumn &column = group.columns[i];

    if (byte_at(key.address + at++) == column.null_byte)
      continue;
    if (column.n_ends == 0)
      at += min(column.width, key.length - at);
    for (u32 left = column.n_ends; left > 0 && at < key.length; at++)
      left -= byte_at(key.address + at) == column.end;
  }
  return at;
}

__device__ bool same_group(const GsKeepGroup &group, const KeyRef &a, const KeyRef &b)
{
  u32 bytes = group_bytes(group, a);

  if (bytes > b.length)
    return false;
  for (u32 at = 0; at < bytes; at++)
    if (byte_at(a.address + at) != byte_at(b.address + at))
      return false;
  return bytes == group_bytes(group, b);
}

// first_rank NULL: ties do not matter.
__global__ void __launch_bounds__(threads)
    mark_rows_of_groups(__grid_constant__ const GsKeepGroup group, const KeyRef *keys, const u32 *row,
                        const u32 *first_rank, u32 n_rows, u8 *kept)
{
  u64 rank = u64{blockIdx.x} * threads + threadIdx.x;

  if (rank >= n_rows)
    return;

  u32 place = first_rank ? first_rank[rank] : static_cast<u32>(rank);

  bool keep = place < group.first ||
              !same_group(group, load_key(keys, row[place - group.first]), load_key(keys, row[place]));

  if (keep && group.several)
  {
    KeyRef key = load_key(keys, row[rank]);

    keep = (rank > 0 && same_group(group, load_key(keys, row[rank - 1]), key)) ||
           (rank + 1 < n_rows && same_group(group, key, load_key(keys, row[rank + 1])));
  }
  kept[rank] = keep;
}

// Returns how many rows have the i-th key.
__device__ __forceinline__ u32 count_of(u64 i, const u32 *first_rank, u32 n_first, u32 n_rows)
{
  return (i + 1 < n_first ? first_rank[i + 1] : n_rows) - first_rank[i];
}

__global__ void __launch_bounds__(threads)
    sum_counts(u32 n_rows, const u32 *first_rank, const u32 *n_first, u32 *top_keys)
{
  __shared__ u32 sums[32];

  if (threadIdx.x < 32)
    sums[threadIdx.x] = 0;
  __syncthreads();
  for (u64 i = u64{blockIdx.x} * threads + threadIdx.x; i < *n_first; i += u64{gridDim.x} * threads)
    atomicAdd(&sums[31 - __clz(count_of(i, first_rank, *n_first, n_rows))], 1);
  __syncthreads();
  if (threadIdx.x < 32)
    atomicAdd(&top_keys[threadIdx.x], sums[threadIdx.x]);
}

__device__ u32 min_count_of_top(const u32 *top_keys, u64 top)
{
  u32 bit = 32;

  for (u64 n = 0; bit > 0 && n < top;)
    n += top_keys[--bit];
  return 1u << bit;
}

// Writes into the first row with each key the number of rows that have it, or drops the row.
__global__ void __launch_bounds__(threads)
    count_equal(__grid_constant__ const GsKeep keep, const ImageRef *images, const KeyRef *keys,
                const KeyOrder order, u32 n_rows, const u32 *first_rank, const u32 *n_first,
                const u32 *top_keys)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= *n_first)
    return;

  u32 count = count_of(i, first_rank, *n_first, n_rows);

  if (count < (keep.top > 0 ? min_count_of_top(top_keys, keep.top) : keep.min_count) ||
      (keep.max_count > 0 && count > keep.max_count))
  {
    order.tie[first_rank[i]] = 1;
    return;
  }

  u32 row = order.row[first_rank[i]];
  const ImageRef image = images[load_key(keys, row).image];
  GsRecord record = load_record(image, row - image.first_row);

  if ((record.row_len & GS_LENGTH_MASK) >= 8)
    reinterpret_cast<u32 *>(image.data + record.row_off)[1] = count;
}

} // namespace

u64 keep_some_workspace(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, n_rows); });
}

void keep_some(const GsKeep &keep, const ImageRef *images, const OrderJob &job, void *memory, u32 *n_kept,
               cudaStream_t stream)
{
  const KeyOrder &order = job.order;
  u32 n_rows = job.n_rows;
  TempStorage storage(memory);
  Workspace workspace = alias_workspace(storage, n_rows);

  if (keep.unique && keep.counted)
  {
    GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, workspace.temp_bytes,
                                           thrust::counting_iterator<u32>(0), FirstFlags(order.tie, {}),
                                           workspace.first_rank, n_kept, n_rows, stream));
    if (keep.top > 0)
    {
      GS_CUDA_TRY(cudaMemsetAsync(workspace.top_keys, 0, 32 * sizeof(u32), stream));
      sum_counts<<<std::min(blocks_for(n_rows, threads), sum_blocks), threads, 0, stream>>>(
          n_rows, workspace.first_rank, n_kept, workspace.top_keys);
      GS_CUDA_LAUNCHED();
    }
    count_equal<<<blocks_for(n_rows, threads), threads, 0, stream>>>(
        keep, images, job.keys, order, n_rows, workspace.first_rank, n_kept, workspace.top_keys);
    GS_CUDA_LAUNCHED();
  }
  if (keep.unique)
  {
    GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, workspace.temp_bytes, order.row,
                                           FirstFlags(order.tie, {}), n_kept, n_rows, stream));
    GS_CUDA_TRY(cudaMemsetAsync(order.tie, 0, n_rows, stream)); // no two are equal any more
    return;
  }
  if (keep.group.ties)
    GS_CUDA_TRY(cub::DeviceScan::InclusiveScan(workspace.temp, workspace.temp_bytes, first_ranks(order.tie),
                                               workspace.first_rank, thrust::maximum<u32>(), n_rows, stream));
  mark_rows_of_groups<<<blocks_for(n_rows, threads), threads, 0, stream>>>(
      keep.group, job.keys, order.row, keep.group.ties ? workspace.first_rank : nullptr, n_rows,
      workspace.kept);
  GS_CUDA_LAUNCHED();
  // the first rows of a group stay, or none, so the row before each is still the same, or of another group
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, workspace.temp_bytes, order.row,
                                         static_cast<const u8 *>(workspace.kept), n_kept, n_rows, stream));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, workspace.temp_bytes, order.tie,
                                         static_cast<const u8 *>(workspace.kept), n_kept, n_rows, stream));
}

} // namespace gpusort
