/*-------------------------------------------------------------------------
 *
 * sort_fixed.cu
 *	  The engine for keys of one length: a radix sort of whole keys.
 *
 * A radix pass costs the same whether or not its digit varies, and the keys
 * of databases hold many constant bytes: null bytes, the high bytes of small
 * integers.  So a key is first squeezed into the bytes in which keys differ,
 * known from rows.cu, and the sort covers their varying bits only: (int4) with
 * its null byte sorts as 32 bits at most, two int8 as 128.
 *
 *-------------------------------------------------------------------------
 */
#include "sort_fixed.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

namespace gpusort
{

namespace
{

using u128 = unsigned __int128;

constexpr u32 threads = 256;
constexpr u32 max_bytes = 16;

// The bytes of a key that vary, as 0xff in the words of a key.
struct ByteMask
{
  u64 word[diff_words];
  u32 n_words;
};

struct Span
{
  ByteMask mask;
  u32 n_bytes;
  int begin_bit; // of the squeezed key
  int end_bit;
};

Span find_span(const RowStats &stats)
{
  Span span = {};
  u8 first = 0;
  u8 last = 0;

  span.mask.n_words = blocks_for(std::min(stats.max_key, diff_words * 8), 8);
  for (u32 i = 0; i < diff_words * 8; i++)
  {
    u8 byte = static_cast<u8>(stats.diff[i / 8] >> (56 - i % 8 * 8));

    if (byte == 0)
      continue;
    span.mask.word[i / 8] |= u64{0xff} << (56 - i % 8 * 8);
    if (span.n_bytes++ == 0)
      first = byte;
    last = byte;
  }
  if (span.n_bytes > 0)
  {
    span.begin_bit = __builtin_ctz(last);
    span.end_bit = static_cast<int>(span.n_bytes * 8) - (__builtin_clz(first) - 24);
  }
  return span;
}

template <typename Key>
__global__ void __launch_bounds__(threads)
    squeeze(const KeyRef *refs, u32 n_rows, ByteMask mask, Key *keys, u32 *rows)
{
  u64 row = u64{blockIdx.x} * threads + threadIdx.x;

  if (row >= n_rows)
    return;

  KeyRef ref = load_key(refs, static_cast<u32>(row));
  Key key = 0;

#pragma unroll
  for (u32 w = 0; w < diff_words; w++)
  {
    if (w >= mask.n_words || mask.word[w] == 0)
      continue;

    u64 word = load_word(ref.address + w * 8, ref.length - w * 8);

#pragma unroll
    for (int shift = 56; shift >= 0; shift -= 8)
      if ((mask.word[w] >> shift & 0xff) != 0)
        key = key << 8 | static_cast<Key>(word >> shift & 0xff);
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

__global__ void __launch_bounds__(threads) all_equal(u32 n_rows, u32 *order, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
  {
    order[i] = static_cast<u32>(i);
    tie[i] = i > 0;
  }
}

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
void sort_squeezed(const KeyRef *refs, u32 n_rows, const Span &span, void *workspace, u32 *order, u8 *tie,
                   cudaStream_t stream)
{
  Carver carve(workspace);
  Key *keys_a = carve.take<Key>(n_rows);
  Key *keys_b = carve.take<Key>(n_rows);
  u32 *spare = carve.take<u32>(n_rows);
  size_t temp_bytes = radix_bytes<Key>(n_rows);
  void *temp = carve.take<char>(temp_bytes);
  cub::DoubleBuffer<Key> keys(keys_a, keys_b);
  cub::DoubleBuffer<u32> rows(spare, order);
  u32 blocks = blocks_for(n_rows, threads);

  squeeze<Key><<<blocks, threads, 0, stream>>>(refs, n_rows, span.mask, keys.Current(), rows.Current());
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys, rows, n_rows, span.begin_bit,
                                              span.end_bit, stream));
  if (rows.Current() != order)
    GS_CUDA_TRY(
        cudaMemcpyAsync(order, rows.Current(), u64{n_rows} * sizeof(u32), cudaMemcpyDeviceToDevice, stream));
  mark_ties<Key><<<blocks, threads, 0, stream>>>(keys.Current(), n_rows, tie);
  GS_CUDA_LAUNCHED();
}

template <typename Key>
u64 workspace_of(u32 n_rows)
{
  Carver carve;

  carve.take<Key>(n_rows);
  carve.take<Key>(n_rows);
  carve.take<u32>(n_rows);
  carve.take<char>(radix_bytes<Key>(n_rows));
  return carve.bytes();
}

} // namespace

bool sort_fixed_fits(const RowStats &stats)
{
  return stats.min_key == stats.max_key && stats.max_key <= diff_words * 8 &&
         find_span(stats).n_bytes <= max_bytes;
}

u64 sort_fixed_workspace(u32 n_rows)
{
  return std::max({workspace_of<u32>(n_rows), workspace_of<u64>(n_rows), workspace_of<u128>(n_rows)});
}

const char *sort_fixed(const KeyRef *keys, u32 n_rows, const RowStats &stats, void *workspace, u32 *order,
                       u8 *tie, cudaStream_t stream)
{
  Span span = find_span(stats);

  if (span.n_bytes == 0)
  {
    all_equal<<<blocks_for(n_rows, threads), threads, 0, stream>>>(n_rows, order, tie);
    GS_CUDA_LAUNCHED();
    return "all keys equal";
  }
  if (span.n_bytes <= 4)
  {
    sort_squeezed<u32>(keys, n_rows, span, workspace, order, tie, stream);
    return "radix, 32 bits";
  }
  if (span.n_bytes <= 8)
  {
    sort_squeezed<u64>(keys, n_rows, span, workspace, order, tie, stream);
    return "radix, 64 bits";
  }
  sort_squeezed<u128>(keys, n_rows, span, workspace, order, tie, stream);
  return "radix, 128 bits";
}

} // namespace gpusort
