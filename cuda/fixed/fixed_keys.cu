/*-------------------------------------------------------------------------
 *
 * fixed_keys.cu
 *	  Keys of one length, squeezed into integers.
 *
 * A radix pass costs the same whether or not its digit varies, and the keys
 * of databases hold many constant bits: null bytes, the high bytes of small
 * integers, half of a digit's byte.  So a key is first squeezed into the bits in
 * which keys differ, known from rows.cu, in their order: (int4) with its null
 * byte sorts as 32 bits at most, nine letters of acgt as 36.  The bits of a word
 * move together in six steps (Warren, Hacker's Delight, 7-4), whose masks the
 * host computes.
 *
 *-------------------------------------------------------------------------
 */
#include "fixed/fixed_keys.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 max_bits = 128;

template <typename Key>
__global__ void __launch_bounds__(threads)
    squeeze(const KeyRef *refs, u32 n_rows, FixedSpan span, Key *keys, u32 *rows)
{
  u64 row = u64{blockIdx.x} * threads + threadIdx.x;

  if (row >= n_rows)
    return;

  KeyRef ref = load_key(refs, static_cast<u32>(row));
  Key key = 0;

#pragma unroll
  for (u32 w = 0; w < diff_words; w++)
  {
    const Squeeze &squeeze = span.word[w];

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

__global__ void __launch_bounds__(threads) all_equal(u32 n_rows, u32 *order, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
  {
    order[i] = static_cast<u32>(i);
    tie[i] = i > 0;
  }
}

Squeeze make_squeeze(u64 mask)
{
  Squeeze squeeze = {mask, {}, static_cast<u32>(__builtin_popcountll(mask))};
  u64 left = mask;
  u64 constant = ~mask << 1; // bits with a constant one just below

  for (u32 step = 0; step < squeeze_steps; step++)
  {
    u64 odd = constant; // bits with an odd number of those at or below them

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

FixedSpan find_fixed_span(const RowStats &stats)
{
  FixedSpan span = {};

  for (u32 w = 0; w < diff_words; w++)
  {
    span.word[w] = make_squeeze(stats.diff[w]);
    span.n_bits += span.word[w].n_bits;
  }
  span.n_bytes = blocks_for(span.n_bits, 8);
  span.end_bit = static_cast<int>(span.n_bits);
  return span;
}

bool fixed_keys_fit(const RowStats &stats)
{
  return stats.min_key == stats.max_key && stats.max_key <= diff_words * 8 &&
         find_fixed_span(stats).n_bits <= max_bits;
}

template <typename Key>
void squeeze_keys(const KeyRef *refs, u32 n_rows, const FixedSpan &span, Key *keys, u32 *rows,
                  cudaStream_t stream)
{
  squeeze<Key><<<blocks_for(n_rows, threads), threads, 0, stream>>>(refs, n_rows, span, keys, rows);
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
