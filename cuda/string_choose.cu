/*-------------------------------------------------------------------------
 *
 * string_choose.cu
 *	  Whether the first word of the keys alone separates the rows.
 *
 * It does for random keys, hashes, most numbers.  Then splitters would tell
 * nothing that the bits themselves do not.  One block sorts the first words of
 * a sample and counts the pairs that agree in their first 16, 24 and 32 bits.
 * Were groups made by so many bits, a row's group would be expected to have
 * n_rows * pairs / (all pairs of the sample) rows.
 *
 *-------------------------------------------------------------------------
 */
#include "string_choose.cuh"

#include "block_sort.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 log_probes = 12;
constexpr u32 n_probes = 1u << log_probes;
constexpr u32 probe_threads = n_probes / items;
constexpr u32 least_rows = 200000; // fewer are not worth the wait
constexpr u32 max_expected = 32;   // rows in a row's group
constexpr u32 least_bits = 16;
constexpr u32 most_bits = 32;

__global__ void __launch_bounds__(probe_threads)
    probe_words(const KeyRef *keys, u32 n_rows, u32 prefix, RoundCounts *counts)
{
  __shared__ u64 exchange[n_probes];
  __shared__ u32 pairs;
  u32 me = threadIdx.x;
  u64 v[items];
  u32 bits = 0;

#pragma unroll
  for (u32 q = 0; q < items; q++)
  {
    u32 i = q * probe_threads + me;
    KeyRef key = load_key(keys, sample_row(n_rows, n_probes, i));

    v[q] = load_word(key.address + prefix, key.length - prefix);
  }
  sort_block<probe_threads>(v, log_probes, exchange);
  __syncthreads();
#pragma unroll
  for (u32 q = 0; q < items; q++)
    exchange[me * items + q] = v[q];

  for (u32 tried = least_bits; tried <= most_bits && bits == 0; tried += 8)
  {
    u32 before = 0;

    if (me == 0)
      pairs = 0;
    __syncthreads();
    for (u32 i = me; i < n_probes; i += probe_threads)
    {
      u32 low = 0;
      u32 high = i;

      while (low < high)
      {
        u32 middle = (low + high) / 2;

        if (exchange[middle] >> (64 - tried) < exchange[i] >> (64 - tried))
          low = middle + 1;
        else
          high = middle;
      }
      before += i - low;
    }
    atomicAdd(&pairs, before);
    __syncthreads();
    if (u64{pairs} * n_rows <= u64{max_expected} * (n_probes / 2) * n_probes)
      bits = tried;
    __syncthreads();
  }
  if (me == 0)
    counts->live = bits;
}

__global__ void __launch_bounds__(threads)
    make_first_words(const KeyRef *keys, u32 n_rows, u32 prefix, Shape shape, Segments segments, u64 *words,
                     u32 *rows)
{
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;

  if (at == 0)
  {
    segments.place[0] = 0;
    segments.slot[0] = 0;
    segments.depth[0] = prefix;
    segments.skip[0] = 0;
    segments.lead[0] = 0;
  }
  if (at >= n_rows)
    return;

  u32 row = static_cast<u32>(at);
  KeyRef key = load_key(keys, row);
  u32 left = key.length - prefix;

  words[row] = shape.make_word(0, load_word(key.address + prefix, left), 0, left);
  rows[row] = row;
}

} // namespace

u32 choose_bits(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix)
{
  if (n_rows < least_rows)
    return 0;
  probe_words<<<1, probe_threads, 0, context.stream>>>(keys, n_rows, prefix, context.counts);
  GS_CUDA_LAUNCHED();
  context.wait();
  return context.counts->live;
}

void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const Shape &shape, const Segments &segments,
                 u64 *words, u32 *rows, cudaStream_t stream)
{
  make_first_words<<<blocks_for(n_rows, threads), threads, 0, stream>>>(keys, n_rows, prefix, shape, segments,
                                                                        words, rows);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
