/*-------------------------------------------------------------------------
 *
 * fixed_keys.cu
 *	  Keys of one length, squeezed into integers.
 *
 * A radix pass costs the same whether or not its digit varies, and the keys
 * of databases hold many constant bytes: null bytes, the high bytes of small
 * integers.  So a key is first squeezed into the bytes in which keys differ,
 * known from rows.cu, and sorts cover their varying bits only: (int4) with
 * its null byte sorts as 32 bits at most, two int8 as 128.
 *
 *-------------------------------------------------------------------------
 */
#include "fixed_keys.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 max_bytes = 16;

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

} // namespace

FixedSpan find_fixed_span(const RowStats &stats)
{
  FixedSpan span = {};
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

bool fixed_keys_fit(const RowStats &stats)
{
  return stats.min_key == stats.max_key && stats.max_key <= diff_words * 8 &&
         find_fixed_span(stats).n_bytes <= max_bytes;
}

template <typename Key>
void squeeze_keys(const KeyRef *refs, u32 n_rows, const FixedSpan &span, Key *keys, u32 *rows,
                  cudaStream_t stream)
{
  squeeze<Key><<<blocks_for(n_rows, threads), threads, 0, stream>>>(refs, n_rows, span.mask, keys, rows);
  GS_CUDA_LAUNCHED();
}

template <typename Key>
void mark_fixed_ties(const Key *keys, u32 n_rows, u8 *tie, cudaStream_t stream)
{
  mark_ties<Key><<<blocks_for(n_rows, threads), threads, 0, stream>>>(keys, n_rows, tie);
  GS_CUDA_LAUNCHED();
}

void order_equal_keys(u32 n_rows, u32 *order, u8 *tie, cudaStream_t stream)
{
  all_equal<<<blocks_for(n_rows, threads), threads, 0, stream>>>(n_rows, order, tie);
  GS_CUDA_LAUNCHED();
}

template void squeeze_keys(const KeyRef *, u32, const FixedSpan &, u32 *, u32 *, cudaStream_t);
template void squeeze_keys(const KeyRef *, u32, const FixedSpan &, u64 *, u32 *, cudaStream_t);
template void squeeze_keys(const KeyRef *, u32, const FixedSpan &, u128 *, u32 *, cudaStream_t);
template void mark_fixed_ties(const u32 *, u32, u8 *, cudaStream_t);
template void mark_fixed_ties(const u64 *, u32, u8 *, cudaStream_t);
template void mark_fixed_ties(const u128 *, u32, u8 *, cudaStream_t);

} // namespace gpusort
