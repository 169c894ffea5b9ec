/*-------------------------------------------------------------------------
 *
 * string_bucket_sample.cu
 *	  Splitters of buckets, from a sorted sample.
 *
 * Two kernels: blocks sort pieces of the sample, and each sample is searched for in all pieces, which
 * tells its rank; every so manieth is a splitter.
 *
 * Within a piece, samples are compared by their words, the first of which moves with them.  Those of a
 * warp are sorted by a bitonic network; then runs of these are merged by pairs, in which each sample
 * searches the other run for its place.
 *
 * Of the sample's keys the first kept_levels words are kept, and those behind them are read from the
 * keys where they are needed, up to n_levels; of splitters all are kept.  Where many keys agree in all
 * words that are kept, which a few probes tell beforehand, too much would have to be read: the
 * engine then begins anew in another way.  The probes also tell whether first words hold codes.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <type_traits>

#include "block_sort.cuh"
#include "string_bucket_alphabet.cuh"

namespace gpusort
{

namespace
{

constexpr u32 small_piece = 256; // samples that a block sorts
constexpr u32 large_piece = 512;
constexpr u32 rank_threads = 1024;
constexpr u32 rank_lanes = 8; // threads that rank a sample
constexpr u32 rank_batch = 2; // searches of a thread at a time
constexpr u32 probes = 256;   // keys that are compared with each other beforehand,
constexpr u32 most_deep = 32; // of which so many may agree in all words that are kept;
constexpr u32 many_alike = 8; // if so many do in the first one, codes are tried in place of bytes,
constexpr u32 much_less = 4;  // and taken if not one in so many of these does then

// What a block that sorts a piece has in shared memory.
template <u32 piece>
struct PieceMemory
{
  u64 words[kept_levels][piece];
  u64 firsts[piece];
  uint16_t numbers[piece];
};

static_assert(kept_levels <= rank_lanes);

// How the keys of two samples compare that agree in all words that are kept, and go on; in no more
// than all words.  The second one begins at `depth`.
__device__ __noinline__ int order_behind(const KeyRef *keys, u32 depth, u32 row_a, u32 row_b)
{
  u32 end = depth + (n_levels - 1) * word_bytes;
  KeyRef a = load_key(keys, row_a);
  KeyRef b = load_key(keys, row_b);

  a.length = min(a.length, end + 1);
  b.length = min(b.length, end + 1);
  return compare_keys(a, b, depth + (kept_levels - 1) * word_bytes, end).order;
}

// Chooses between bytes, for which it returns 0, and codes for words, of which it returns the bits.  So many
// bytes a probe shares with another one; `alike` of them share a word.
__device__ __noinline__ u32 choose_codes(AlphabetState &alphabet, const KeyRef &probe, u32 prefix, u32 shared,
                                         u32 alike)
{
  if (alike < many_alike)
    return 0;

  u32 symbol_bits = learn_alphabet(alphabet, probe, prefix, probes);

  if (symbol_bits == 0)
    return 0;

  // Codes are worth their while if words of them tell most of these apart.
  u32 depth = prefix + min(coded_bytes(symbol_bits), kept_levels * word_bytes);
  u32 left = static_cast<u32>(__syncthreads_count(shared >= depth));

  return left * much_less <= alike ? symbol_bits : 0;
}

// Reads samples, and sorts them in pieces of one block each.
template <u32 piece>
__global__ void __launch_bounds__(piece) sort_pieces(const KeyRef *keys, u32 n_rows, u32 prefix,
                                                     Buckets buckets, RoundState *state, RoundCounts *told)
{
  extern __shared__ u64 shared_memory[];
  __shared__ AlphabetState alphabet;
  __shared__ u32 warp_alike[probes / 32];
  PieceMemory<piece> &memory = *reinterpret_cast<PieceMemory<piece> *>(shared_memory);
  auto &words = memory.words;
  auto &firsts = memory.firsts;
  auto &numbers = memory.numbers;
  const u32 me = threadIdx.x;
  const u32 n_samples = buckets.n_samples;
  const u32 i = blockIdx.x * piece + me;
  const u32 size = min(piece, n_samples);

  // The row of one of the block's samples: each block has some from all over the rows.
  auto row_of = [&](u32 number) { return sample_row(n_rows, n_samples, number * gridDim.x + blockIdx.x); };
  u64 mine = ~u64{0};
  u32 number = me; // from size on those behind all
  u32 symbol_bits = 0;

  // How another sample compares with mine.
  auto order_of = [&](u64 other, u32 its)
  {
    if (other != mine)
      return other < mine ? -1 : 1;
    if (max(its, number) >= size)
      return its < number ? -1 : 1;
    if (is_whole(mine))
      return 0;
#pragma unroll
    for (u32 level = 1; level < kept_levels; level++)
    {
      u64 word = words[level][number];

      other = words[level][its];
      if (other != word)
        return other < word ? -1 : 1;
      if (is_whole(word))
        return 0;
    }
    return order_behind(keys, prefix + bytes_before(mine, symbol_bits), row_of(its), row_of(number));
  };

  if (me < n_bytes)
    alphabet.seen[me] = 0;

  const u32 end = prefix + kept_levels * word_bytes;
  KeyRef key = i < n_samples ? load_key(keys, row_of(me)) : KeyRef{};
  KeyRef probe = me < probes ? load_key(keys, sample_row(n_rows, probes, me)) : KeyRef{};
  KeyRef another = me < probes ? load_key(keys, sample_row(n_rows, probes, me ^ probes / 2)) : KeyRef{};
  if (i < n_samples)
  {
    mine = key_word(key, prefix);
    words[0][me] = mine;
#pragma unroll
    for (u32 level = 1; level < kept_levels; level++)
      words[level][me] = word_or_0(key, prefix + level * word_bytes);
  }

  // Where many keys agree that far, too much would be read to sort the sample.  All blocks find the same.
  const u32 shared = me < probes ? compare_keys(probe, another, prefix, end).shared : 0;
  const u32 its_alike = __ballot_sync(~0u, shared >= prefix + word_bytes);

  if (me < probes && me % 32 == 0)
    warp_alike[me / 32] = static_cast<u32>(__popc(its_alike));

  const bool is_too_deep = __syncthreads_count(shared >= end) > most_deep;
  u32 alike = 0;

#pragma unroll
  for (u32 w = 0; w < probes / 32; w++)
    alike += warp_alike[w];
  if (!is_too_deep)
    symbol_bits = choose_codes(alphabet, probe, prefix, shared, alike);
  if (i == 0)
  {
    *state = {};
    state->again = is_too_deep;
    state->symbol_bits = symbol_bits;
    told->again = is_too_deep;
  }
  if (is_too_deep)
    return;
  if (symbol_bits > 0)
  {
    if (i < n_samples)
    {
      mine = coded_word(alphabet.codes, symbol_bits, CodedBytes(key, prefix));
      words[0][me] = mine;

      u32 depth = prefix + bytes_before(mine, symbol_bits);

      for (u32 level = 1; level < kept_levels; level++)
        words[level][me] = word_or_0(key, depth + (level - 1) * word_bytes);
    }
    if (blockIdx.x == 0 && me < n_bytes)
      buckets.codes[me] = alphabet.codes[me];
    __syncthreads();
  }

  // What later kernels' blocks tell each other is not told yet.
  for (u32 k = i; k < telling_tiles * buckets.n_buckets; k += gridDim.x * piece)
    buckets.parts[k] = 0;
  for (u32 k = i; k < buckets.most_queued; k += gridDim.x * piece)
    buckets.queued[k].rows = 0;
  let_next_begin();

#pragma unroll 1
  for (u32 width = 2; width <= 32; width *= 2)
#pragma unroll 1
    for (u32 step = width / 2; step > 0; step /= 2)
    {
      u64 other = __shfl_xor_sync(~0u, mine, step);
      u32 its = __shfl_xor_sync(~0u, number, step);
      bool is_less = order_of(other, its) < 0;

      // Which of both is to be kept, if they are not equal?
      bool lesser = ((me % 32 & width) == 0) == ((me & step) == 0);

      if (is_less == lesser)
      {
        mine = other;
        number = its;
      }
    }
  firsts[me] = mine;
  numbers[me] = static_cast<uint16_t>(number);
  __syncthreads();

  // Merges runs of so many by pairs.  Of equal ones the first are those of the first run.
  auto merge = [&](auto size_of_run)
  {
    constexpr u32 run = decltype(size_of_run)::value;
    const bool is_second = (me & run) != 0;
    const u32 begin = (me ^ run) & ~(run - 1);
    u32 n_before = find_place<run>(firsts, begin, mine + (is_whole(mine) && is_second)) - begin;

    // Mostly first words tell.
    if (!is_whole(mine) && n_before < run && firsts[begin + n_before] == mine)
#pragma unroll 1
      for (u32 left = run - n_before; left > 0;)
      {
        u32 half = (left + 1) / 2;
        u32 place = begin + n_before + half - 1;

        if (order_of(firsts[place], numbers[place]) < is_second)
          n_before += half;
        left -= half;
      }
    __syncthreads();

    u32 to = (me & ~(2 * run - 1)) + (me & (run - 1)) + n_before;

    firsts[to] = mine;
    numbers[to] = static_cast<uint16_t>(number);
    __syncthreads();
    mine = firsts[me];
    number = numbers[me];
  };

  merge(std::integral_constant<u32, 32>());
  merge(std::integral_constant<u32, 64>());
  merge(std::integral_constant<u32, 128>());
  if constexpr (piece > 256)
    merge(std::integral_constant<u32, 256>());
  static_assert(small_piece == 256 && large_piece == 512);
  if (i >= n_samples)
    return;
#pragma unroll
  for (u32 level = 0; level < kept_levels; level++)
    buckets.samples[level * n_samples + i] = words[level][number];
  buckets.sample_rows[i] = row_of(number);
}

// Finds each sample's rank by searching all pieces but its own, and takes every so manieth for a splitter.
// The first words of all samples lie in shared memory, each piece one word further, or the searches of all
// pieces would begin in the same bank.
template <u32 piece_size>
__global__ void __launch_bounds__(rank_threads)
    take_splitters(const KeyRef *keys, u32 prefix, u32 log_buckets, Buckets buckets, const RoundState *state)
{
  extern __shared__ u64 shared_memory[];
  u64 *firsts = shared_memory;
  const u64 *samples = buckets.samples;
  const u32 *sample_rows = buckets.sample_rows;
  const u32 n_samples = buckets.n_samples;
  const u32 at = blockIdx.x * rank_threads + threadIdx.x;
  const u32 i = at / rank_lanes;
  const u32 lane = at % rank_lanes;
  const u32 piece = i / piece_size;
  const u32 pieces = n_samples / piece_size; // 0: one that is not full
  u64 mine[kept_levels] = {};
  u32 row = 0;
  u32 rank = 0;

  let_next_begin();
  wait_for_previous();

  const u32 again = state->again;
  const u32 symbol_bits = state->symbol_bits;

  if (again != 0)
    return;
  if (i < n_samples)
  {
#pragma unroll
    for (u32 level = 0; level < kept_levels; level++)
      mine[level] = samples[level * n_samples + i];
    row = sample_rows[i];
    rank = lane == 0 ? i % piece_size : 0;
  }
  if (pieces > 1)
#pragma unroll 4
    for (u32 k = 2 * threadIdx.x; k < n_samples; k += 2 * rank_threads)
    {
      ulonglong2 two = *reinterpret_cast<const ulonglong2 *>(samples + k);
      u64 *to = firsts + k + k / piece_size;

      to[0] = two.x;
      to[1] = two.y;
    }

  // On its way until it is known whether the sample is a splitter.
  const KeyRef key = i < n_samples ? load_key(keys, row) : KeyRef{};
  const u32 depth = prefix + bytes_before(mine[0], symbol_bits); // of the second word
  const bool goes_on = !is_whole(mine[0]);

  // Is the sample at a place before mine?
  auto is_before = [&](u32 place, u32 other)
  {
    u64 its = firsts[place + other];

    if (its != mine[0])
      return its < mine[0];
#pragma unroll
    for (u32 level = 1; level < kept_levels; level++)
    {
      its = samples[level * n_samples + place];
      if (its != mine[level])
        return its < mine[level];
    }
    if (!is_whole(its))
    {
      int order = order_behind(keys, depth, sample_rows[place], row);

      if (order != 0)
        return order < 0;
    }
    return other < piece;
  };

  __syncthreads();
#pragma unroll 1
  for (u32 first = lane; first < pieces; first += rank_lanes * rank_batch)
  {
    u32 low[rank_batch];

    // By first words, which mostly tell; equal keys are in the order of their pieces.
#pragma unroll
    for (u32 b = 0; b < rank_batch; b++)
    {
      u32 other = min(first + b * rank_lanes, pieces - 1);
      u32 begin = other * piece_size + other;

      low[b] = find_place<piece_size>(firsts, begin, mine[0] + (!goes_on && other < piece)) - begin;
    }
#pragma unroll
    for (u32 b = 0; b < rank_batch; b++)
    {
      u32 other = first + b * rank_lanes;

      if (other < pieces && other != piece)
      {
        if (goes_on && low[b] < piece_size && firsts[other * piece_size + other + low[b]] == mine[0])
#pragma unroll 1
          for (u32 left = piece_size - low[b]; left > 0;)
          {
            u32 half = (left + 1) / 2;

            if (is_before(other * piece_size + low[b] + half - 1, other))
              low[b] += half;
            left -= half;
          }
        rank += low[b];
      }
    }
  }
#pragma unroll
  for (u32 step = 1; step < rank_lanes; step *= 2)
    rank += __shfl_xor_sync(~0u, rank, step);

  u32 splitter = rank / oversampling;

  if (i >= n_samples || rank % oversampling != oversampling - 1 || splitter + 1 >= 1u << log_buckets)
    return;

  u64 kept = mine[0];

#pragma unroll
  for (u32 level = 1; level < kept_levels; level++)
    kept = lane == level ? mine[level] : kept;
  for (u32 level = lane; level < n_levels; level += rank_lanes)
    buckets.splitters[(level << log_buckets) + splitter] =
        level < kept_levels ? kept : word_or_0(key, depth + (level - 1) * word_bytes);
}

u32 sample_bytes(u32 n_samples)
{
  return (n_samples + n_samples / small_piece) * static_cast<u32>(sizeof(u64));
}

// Leaves one of large_piece samples to a block only where there are many.
bool takes_large_pieces(u32 n_samples, const FinishLimits &limits)
{
  return n_samples >= 16 * large_piece && sizeof(PieceMemory<large_piece>) <= limits.shared_bytes;
}

template <u32 piece>
void launch(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets, const FinishLimits &limits,
            RoundState *state, RoundCounts *told, cudaStream_t stream)
{
  constexpr int bytes = sizeof(PieceMemory<piece>);

  // The attribute is the kernel's, not the launch's: all threads that sort must set it alike.
  GS_CUDA_TRY(cudaFuncSetAttribute(sort_pieces<piece>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  sort_pieces<piece><<<blocks_for(buckets.n_samples, piece), piece, bytes, stream>>>(keys, n_rows, prefix,
                                                                                     buckets, state, told);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cudaFuncSetAttribute(take_splitters<piece>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(limits.shared_bytes)));
  launch_next(limits.can_overlap, take_splitters<piece>,
              blocks_for(buckets.n_samples * rank_lanes, rank_threads), rank_threads,
              sample_bytes(buckets.n_samples), stream, keys, prefix, bits_of(buckets.n_buckets) - 1, buckets,
              state);
}

} // namespace

u32 sample_shared_bytes(u32 n_samples)
{
  return std::max(sample_bytes(n_samples), static_cast<u32>(sizeof(PieceMemory<small_piece>)));
}

void find_splitters(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                    const FinishLimits &limits, RoundState *state, RoundCounts *told, cudaStream_t stream)
{
  if (takes_large_pieces(buckets.n_samples, limits))
    launch<large_piece>(keys, n_rows, prefix, buckets, limits, state, told, stream);
  else
    launch<small_piece>(keys, n_rows, prefix, buckets, limits, state, told, stream);
}

} // namespace gpusort
