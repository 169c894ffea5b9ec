/*-------------------------------------------------------------------------
 *
 * fixed_keys.cu
 *	  Keys of one length, squeezed into integers; a radix sort of whole keys.
 *
 * A radix pass costs the same whether or not its digit varies, and keys of databases have many constant
 * bits: null bytes, the high bytes of small integers, half of a digit's byte.  So a key is squeezed first.
 * It keeps only the bits in which keys differ, in their order; rows.cu has found them.  An int4 with its
 * null byte takes 32 bits at most.  The letters a, c, g and t differ in 4 bits, so nine of them take 36.
 * The bits of a word move together in six steps (Warren, Hacker's Delight, 7-4), whose masks the host
 * computes.
 *
 * Integers have 32 or 64 bits.  Integers of 128 bits would take 16 passes,
 * each slower by half; sort_string.cu needs two or three for such keys.
 *
 *-------------------------------------------------------------------------
 */
#include "fixed/fixed_keys.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 max_bits = 64;

template <typename Key>
__global__ void __launch_bounds__(threads)
    squeeze(const KeyRef *refs, u32 n_rows, SqueezedLayout layout, Key *keys, u32 *rows)
{
  u64 row = u64{blockIdx.x} * threads + threadIdx.x;

  if (row >= n_rows)
    return;

  KeyRef ref = load_key(refs, static_cast<u32>(row));
  Key key = 0;

#pragma unroll
  for (u32 w = 0; w < diff_words; w++)
  {
    const Squeeze &squeeze = layout.words[w];

    if (squeeze.n_bits == 0)
      continue;

    u64 word = load_word(ref.address + w * 8, ref.length - w * 8) & squeeze.mask;

#pragma unroll
    for (u32 step = 0; step < squeeze_steps; step++)
    {
      u64 moved = word & squeeze.moved[step];

      word = (word ^ moved) | moved >> (1u << step);
    }
    key = (squeeze.n_bits < sizeof(Key) * 8 ? key << squeeze.n_bits : 0) | static_cast<Key>(word);
  }
  keys[row] = key;
  rows[row] = static_cast<u32>(row);
}

template <typename Key>
__global__ void __launch_bounds__(threads) mark_ties(const Key *keys, u32 n_rows, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    tie[i] = i > 0 && keys[i] == keys[i - 1];
}

__global__ void __launch_bounds__(threads) keep_row_order(u32 n_rows, KeyOrder order)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
  {
    order.row[i] = static_cast<u32>(i);
    order.tie[i] = i > 0;
  }
}

Squeeze make_squeeze(u64 mask)
{
  Squeeze squeeze = {mask, {}, static_cast<u32>(__builtin_popcountll(mask))};
  u64 left = mask;
  u64 constant = ~mask << 1; // bits just above a constant bit

  for (u32 step = 0; step < squeeze_steps; step++)
  {
    u64 odd = constant; // bits with an odd number of constant bits at or below them

    for (u32 shift = 1; shift < 64; shift *= 2)
      odd ^= odd << shift;

    u64 moved = odd & left;

    squeeze.moved[step] = moved;
    left = (left ^ moved) | moved >> (1u << step);
    constant &= ~odd;
  }
  return squeeze;
}

} // namespace

SqueezedLayout squeezed_layout(const RowStats &stats)
{
  SqueezedLayout layout = {};

  for (u32 w = 0; w < diff_words; w++)
  {
    layout.words[w] = make_squeeze(stats.diff[w]);
    layout.n_bits += layout.words[w].n_bits;
  }
  return layout;
}

bool fixed_keys_fit(const RowStats &stats)
{
  return stats.min_key == stats.max_key && stats.max_key <= diff_words * 8 &&
         squeezed_layout(stats).n_bits <= max_bits;
}

template <typename Key>
void squeeze_keys(const OrderJob &job, const SqueezedLayout &layout, Key *keys, u32 *rows,
                  cudaStream_t stream)
{
  squeeze<Key>
      <<<blocks_for(job.n_rows, threads), threads, 0, stream>>>(job.keys, job.n_rows, layout, keys, rows);
  GS_CUDA_LAUNCHED();
}

template <typename Key>
void mark_squeezed_ties(const Key *keys, u32 n_rows, u8 *tie, cudaStream_t stream)
{
  mark_ties<Key><<<blocks_for(n_rows, threads), threads, 0, stream>>>(keys, n_rows, tie);
  GS_CUDA_LAUNCHED();
}

void order_equal_keys(u32 n_rows, const KeyOrder &order, cudaStream_t stream)
{
  keep_row_order<<<blocks_for(n_rows, threads), threads, 0, stream>>>(n_rows, order);
  GS_CUDA_LAUNCHED();
}

namespace
{

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

u64 sort_fixed_workspace(u32 n_rows)
{
  return std::max(workspace_bytes<u32>(n_rows), workspace_bytes<u64>(n_rows));
}

const char *sort_fixed(const OrderJob &job, cudaStream_t stream)
{
  SqueezedLayout layout = squeezed_layout(job.stats);

  with_squeezed(layout, [&](auto key) { sort_squeezed<decltype(key)>(job, layout, stream); });
  return layout.n_bits <= 32 ? "radix, 32 bits" : "radix, 64 bits";
}

template void squeeze_keys(const OrderJob &, const SqueezedLayout &, u32 *, u32 *, cudaStream_t);
template void squeeze_keys(const OrderJob &, const SqueezedLayout &, u64 *, u32 *, cudaStream_t);
template void mark_squeezed_ties(const u32 *, u32, u8 *, cudaStream_t);
template void mark_squeezed_ties(const u64 *, u32, u8 *, cudaStream_t);

} // namespace gpusort
