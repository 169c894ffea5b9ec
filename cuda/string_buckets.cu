/*-------------------------------------------------------------------------
 *
 * string_buckets.cu
 *	  The string engine's way with up to half a million rows: buckets between
 *	  splitters, and each bucket sorted on chip.
 *
 * With few rows it is not the bytes moved that take time, but one kernel waiting
 * for the other, the passes of a radix sort above all, and the host for the
 * device.  So here everything is done in four kernels, and the host waits for the
 * last one only: a sample is sorted, splitters are taken from it, all rows are put
 * into buckets between these, and each bucket is sorted on chip
 * (string_bucket_finish.cu).
 *
 * Words
 *	  Keys are compared word by word, seven bytes and how many there are, behind the
 *	  prefix of all.  Of the sample's keys n_levels words are kept.  The first words of
 *	  the splitters lie in shared memory as a search tree.  Where several splitters
 *	  have a row's first word, these are searched by the second one, and so on.  Where many
 *	  have all words alike, words tell too little: that is noticed before the rows are
 *	  looked at, and the engine begins anew in another way (string_split.cu).
 *
 * Buckets
 *	  A row's bucket is the number of splitters that are not greater than it.  Rows
 *	  that equal two splitters in succession, in all words that are kept, have the bucket
 *	  between these alone: so no bucket becomes large because of equal keys.  As the keys of a
 *	  bucket agree in the words in which its two splitters do, they are sorted by what
 *	  follows these.
 *
 * Tiles
 *	  A block takes a tile of the rows, thousands, and leaves them in the order of
 *	  buckets, and for each bucket where in the tile its part begins.  From that
 *	  follows for a bucket, over all tiles, where it begins in the order and where
 *	  its rows are; no pass over the rows brings them together.  Parts are in the
 *	  order of appending: atomic counters place as many rows at a time as a block has threads,
 *	  and those of them that have the same bucket, few, are then ordered by counting.  A
 *	  warp collects those of a large part from all of the tile.
 *
 *-------------------------------------------------------------------------
 */
#include "string_buckets.cuh"

#include <algorithm>

#include "block_sort.cuh"

namespace gpusort
{

namespace
{

constexpr u32 piece_threads = 256; // and samples of a piece
constexpr u32 rank_threads = 512;
constexpr u32 rank_lanes = 8; // threads that rank a sample
constexpr u32 rank_batch = 2; // searches of a thread at a time
constexpr u32 tile_threads = 1024;
constexpr u32 most_tile_rows = 4096;
constexpr u32 oversampling = 4;
constexpr u32 bucket_rows = 256; // on average, at most
constexpr u32 log_most_buckets = 11;
constexpr u32 log_least_buckets = 4;
constexpr u32 most_rows = bucket_rows << log_most_buckets;
constexpr u32 sample_bytes = (oversampling << log_most_buckets) * static_cast<u32>(sizeof(u64));
constexpr u32 buckets_each = (1u << log_most_buckets) / tile_threads;
constexpr u32 heavy_rows = 128; // of a bucket in a tile
constexpr u32 most_heavy = most_tile_rows / heavy_rows;
constexpr u8 is_heavy = 0x40; // of what is known of a bucket, in a tile
constexpr u32 most_shared_levels = 3;
constexpr u32 static_bytes = 1024; // of shared memory that a tile has beside
constexpr u32 long_run = 5;        // splitters with equal words: too many rows for a block
constexpr u32 most_long = 32;      // one in so many splitters may be in such a run

static_assert(most_rows <= most_tiles * most_tile_rows);
static_assert(n_levels < is_heavy && is_heavy < one_key);

// Reads samples, and sorts them in pieces of one block each, by a bitonic network.
__global__ void __launch_bounds__(piece_threads)
    sort_pieces(const KeyRef *keys, u32 n_rows, u32 prefix, u32 n_samples, u64 *samples, RoundState *state)
{
  __shared__ u64 words[n_levels][piece_threads];
  __shared__ u64 firsts[piece_threads];
  __shared__ uint16_t numbers[piece_threads];
  const u32 me = threadIdx.x;
  const u32 i = blockIdx.x * piece_threads + me;
  const u32 size = min(piece_threads, n_samples - blockIdx.x * piece_threads);
  u64 mine = ~u64{0};
  u32 number = me; // from size on those behind all

  if (i < n_samples)
  {
    KeyRef key = load_key(keys, sample_row(n_rows, n_samples, i));

#pragma unroll
    for (u32 level = 0; level < n_levels; level++)
    {
      u32 depth = prefix + level * word_bytes;
      u64 word = depth <= key.length ? key_word(key, depth) : 0;

      words[level][me] = word;
      if (level == 0)
        mine = word;
    }
  }
  if (i == 0)
    *state = {};
  __syncthreads();

#pragma unroll 1
  for (u32 width = 2; width <= piece_threads; width *= 2)
#pragma unroll 1
    for (u32 step = width / 2; step > 0; step /= 2)
    {
      u64 other;
      u32 its;

      if (step < 32)
      {
        other = __shfl_xor_sync(~0u, mine, step);
        its = __shfl_xor_sync(~0u, number, step);
      }
      else
      {
        __syncthreads();
        firsts[me] = mine;
        numbers[me] = static_cast<uint16_t>(number);
        __syncthreads();
        other = firsts[me ^ step];
        its = numbers[me ^ step];
      }

      bool less = other < mine;

      if (other == mine)
      {
        if (max(its, number) >= size)
          less = its < number;
        else if (!is_whole(mine))
        {
          u32 level = 1;

          while (level < n_levels && words[level][its] == words[level][number])
            level++;
          less = level < n_levels && words[level][its] < words[level][number];
        }
      }

      // Which of both is to be kept, if they are not equal?
      bool lesser = ((me & width) == 0) == ((me & step) == 0);

      if (less == lesser)
      {
        mine = other;
        number = its;
      }
    }
  if (i < n_samples)
#pragma unroll
    for (u32 level = 0; level < n_levels; level++)
      samples[level * n_samples + i] = words[level][number];
}

// Finds each sample's rank by searching all pieces but its own, and takes every so
// manieth for a splitter.  The first words of all samples lie in shared memory.
__global__ void __launch_bounds__(rank_threads)
    take_splitters(u32 n_samples, u32 log_buckets, const u64 *samples, u64 *splitters, u64 *tree)
{
  extern __shared__ u64 firsts[];
  const u32 at = blockIdx.x * rank_threads + threadIdx.x;
  const u32 i = at / rank_lanes;
  const u32 piece = i / piece_threads;
  const u32 pieces = n_samples / piece_threads; // 0: one that is not full
  u64 mine = 0;
  u32 rank = 0;

  if (i < n_samples)
  {
    mine = samples[i];
    if (at % rank_lanes == 0)
      rank = i % piece_threads;
  }

  // Is the sample at a place before mine?
  auto is_before = [&](u32 place, u32 other)
  {
    u64 first = firsts[place];

    if (first != mine)
      return first < mine;
    if (!is_whole(first))
      for (u32 level = 1; level < n_levels; level++)
      {
        u64 a = __ldg(samples + level * n_samples + place);
        u64 b = __ldg(samples + level * n_samples + i);

        if (a != b)
          return a < b;
        if (is_whole(a))
          break;
      }
    return other < piece;
  };

  if (pieces > 1)
    for (u32 k = threadIdx.x; k < n_samples; k += rank_threads)
      firsts[k] = __ldg(samples + k);
  __syncthreads();
#pragma unroll 1
  for (u32 first = at % rank_lanes; first < pieces; first += rank_lanes * rank_batch)
  {
    u32 low[rank_batch] = {};

#pragma unroll 1
    for (u32 step = piece_threads / 2; step > 0; step /= 2)
#pragma unroll
      for (u32 b = 0; b < rank_batch; b++)
      {
        u32 other = min(first + b * rank_lanes, pieces - 1);

        if (is_before(other * piece_threads + low[b] + step - 1, other))
          low[b] += step;
      }
#pragma unroll
    for (u32 b = 0; b < rank_batch; b++)
    {
      u32 other = first + b * rank_lanes;

      if (other < pieces && other != piece)
        rank += low[b] + is_before(other * piece_threads + low[b], other);
    }
  }
#pragma unroll
  for (u32 step = 1; step < rank_lanes; step *= 2)
    rank += __shfl_xor_sync(~0u, rank, step);

  u32 splitter = rank / oversampling;

  if (i >= n_samples || rank % oversampling != oversampling - 1 || splitter + 1 >= 1u << log_buckets)
    return;
  for (u32 level = at % rank_lanes; level < n_levels; level += rank_lanes)
    splitters[(level << log_buckets) + splitter] = samples[level * n_samples + i];
  if (at % rank_lanes > 0)
    return;

  u32 trailing = static_cast<u32>(__ffs(static_cast<int>(splitter + 1))) - 1;

  tree[(1u << (log_buckets - 1 - trailing)) + ((splitter + 1) >> (trailing + 1))] = mine;
}

// The memory of a tile: words; then the tree and some levels of the splitters' words, and in
// their place counts and places when all rows have their buckets; then buckets of rows, and
// what is known of all.
struct TileMemory
{
  u32 shared_levels;
  u32 search_bytes;
  u32 bytes;

  __host__ __device__ TileMemory(u32 n_buckets, u32 tile_rows, u32 shared_levels)
      : shared_levels(shared_levels)
  {
    u32 words = (1 + shared_levels) * n_buckets * static_cast<u32>(sizeof(u64));
    u32 counts = n_buckets * static_cast<u32>(sizeof(u32)) + tile_rows * static_cast<u32>(sizeof(uint16_t));

    search_bytes = words > counts ? words : counts;
    bytes = tile_rows * static_cast<u32>(sizeof(u64) + sizeof(uint16_t)) + search_bytes + n_buckets;
  }
};

// In how many words two splitters agree; one_key as well if these are all.
__device__ __forceinline__ u32 words_shared(const u64 *splitters, u32 n_buckets, u32 a, u32 b)
{
  u32 level = 0;

  while (level < n_levels)
  {
    u64 word = __ldg(splitters + level * n_buckets + a);

    if (word != __ldg(splitters + level * n_buckets + b))
      break;
    if (is_whole(word))
      return level | one_key;
    level++;
  }
  return level;
}

// Are words enough?  Not where many splitters have equal ones and go on.
__device__ __forceinline__ bool words_suffice(const u64 *splitters, u32 n_buckets)
{
  u32 in_run = 0;

#pragma unroll 1
  for (u32 first = long_run - 1; first + 1 < n_buckets; first += tile_threads)
  {
    u32 i = first + threadIdx.x;

    in_run += static_cast<u32>(__syncthreads_count(
        i + 1 < n_buckets && words_shared(splitters, n_buckets, i - (long_run - 1), i) == n_levels));
  }
  return in_run * most_long <= n_buckets;
}

// The first of splitters [low, high) whose word is greater, or is not less.
template <bool greater>
__device__ __forceinline__ u32 find_word(const u64 *words, u32 low, u32 high, u64 word)
{
  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    u64 its = words[middle];

    if (greater ? its <= word : its < word)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The bucket of a key whose first word splitters [low, high) have, of which there are two
// at least.
__device__ __forceinline__ u32 search_deeper(const u64 *splitters, const u64 *shared, u32 shared_levels,
                                             u32 n_buckets, const KeyRef &key, u32 prefix, u64 word, u32 low,
                                             u32 high)
{
#pragma unroll 1
  for (u32 level = 1; level < n_levels && !is_whole(word); level++)
  {
    const u64 *words = (level <= shared_levels ? shared : splitters) + level * n_buckets;
    u32 begin = low;

    word = key_word(key, prefix + level * word_bytes);
    high = find_word<true>(words, low, high, word);
    if (high < begin + 2 || words[high - 2] != word)
      return high;
    low = find_word<false>(words, low, high, word);
  }
  return high - 1;
}

// Finds the buckets of a tile's rows and brings them into that order.
__global__ void __launch_bounds__(tile_threads)
    fill_tiles(const KeyRef *keys, u32 n_rows, u32 prefix, Buckets buckets, TileMemory layout,
               RoundState *state)
{
  extern __shared__ u64 tile_memory[];
  __shared__ u32 warp_sums[tile_threads / 32];
  __shared__ u32 heavy[most_heavy];
  __shared__ u32 n_heavy;
  const u32 me = threadIdx.x;
  const u32 lane = me % 32;
  const u32 n_buckets = buckets.n_buckets;
  const u32 base = blockIdx.x * buckets.tile_rows;
  const u32 n = min(buckets.tile_rows, n_rows - base);
  u64 *words = tile_memory;
  u64 *tree = words + buckets.tile_rows;
  u32 *counts = reinterpret_cast<u32 *>(tree);
  uint16_t *places = reinterpret_cast<uint16_t *>(counts + n_buckets);
  uint16_t *bucket_of = reinterpret_cast<uint16_t *>(reinterpret_cast<char *>(tree) + layout.search_bytes);
  u8 *known = reinterpret_cast<u8 *>(bucket_of + buckets.tile_rows);

  // While a row's bucket is searched, the next one's first word is on its way, and where the
  // key of the one after it is.
  auto find_key = [&](u32 i) { return i < n ? load_key(keys, base + i) : KeyRef{}; };
  auto first_word = [&](u32 i, const KeyRef &key) { return i < n ? key_word(key, prefix) : 0; };
  KeyRef next = find_key(me);
  KeyRef after = find_key(me + tile_threads);

  if (!words_suffice(buckets.splitters, n_buckets))
  {
    if (blockIdx.x == 0 && me == 0)
      state->again = 1;
    return;
  }

  u64 next_word = first_word(me, next);

  for (u32 i = me; i < n_buckets; i += tile_threads)
  {
    if (i > 0)
      tree[i] = buckets.tree[i];
#pragma unroll
    for (u32 level = 1; level <= most_shared_levels; level++)
      if (level <= layout.shared_levels)
        tree[level * n_buckets + i] = __ldg(buckets.splitters + level * n_buckets + i);
  }
  for (u32 b = me; b < n_buckets; b += tile_threads)
  {
    u8 shared = b > 0 && b + 1 < n_buckets
                    ? static_cast<u8>(words_shared(buckets.splitters, n_buckets, b - 1, b))
                    : 0;

    known[b] = shared;
    if (blockIdx.x == 0)
      buckets.known[b] = shared;
  }
  if (me == 0)
    n_heavy = 0;
  __syncthreads();

#pragma unroll 1
  for (u32 i = me; i < n; i += tile_threads)
  {
    KeyRef key = next;
    u64 word = next_word;
    u32 node = 1;

    next = after;
    next_word = first_word(i + tile_threads, next);
    after = find_key(i + 2 * tile_threads);
    while (node < n_buckets)
      node = 2 * node + (tree[node] <= word);

    u32 bucket = node - n_buckets;
    u32 not_greater = node >> __ffs(static_cast<int>(node)); // the last node that was not

    if (bucket >= 2 && tree[not_greater] == word && __ldg(buckets.splitters + bucket - 2) == word)
    {
      node = 1;
      while (node < n_buckets)
        node = 2 * node + (tree[node] < word);
      bucket = search_deeper(buckets.splitters, tree, layout.shared_levels, n_buckets, key, prefix, word,
                             node - n_buckets, bucket);
    }

    u32 level = known[bucket] & ~u32{one_key};

    words[i] = level == 0 ? word : key_word(key, prefix + level * word_bytes);
    bucket_of[i] = static_cast<uint16_t>(bucket);
  }
  __syncthreads();

  // How many rows each bucket has, and where they begin.
#pragma unroll 1
  for (u32 b = me; b < n_buckets; b += tile_threads)
    counts[b] = 0;
  __syncthreads();
  for (u32 i = me; i < n; i += tile_threads)
    atomicAdd(&counts[bucket_of[i]], 1u);
  __syncthreads();

  uint16_t *begins = buckets.begins + u64{blockIdx.x} * (n_buckets + 1);
  u32 own[buckets_each];
  u32 sum = 0;
  u32 all;

#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    u32 b = me * buckets_each + k;

    own[k] = b < n_buckets ? counts[b] : 0;
    if (own[k] > heavy_rows)
    {
      heavy[atomicAdd(&n_heavy, 1u)] = b;
      known[b] |= is_heavy;
    }
    sum += own[k];
  }
  sum = sum_before<tile_threads>(sum, warp_sums, &all);
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    u32 b = me * buckets_each + k;

    if (b < n_buckets)
    {
      counts[b] = sum;
      begins[b] = static_cast<uint16_t>(sum);
    }
    sum += own[k];
  }
  if (me == 0)
    begins[n_buckets] = static_cast<uint16_t>(n);
  __syncthreads();

#pragma unroll 1
  for (u32 first = 0; first < n; first += tile_threads)
  {
    u32 i = first + me;
    u32 b = i < n ? bucket_of[i] : 0;
    bool in = i < n && (known[b] & is_heavy) == 0;
    u32 begin = counts[b];
    u32 place = begin;

    __syncthreads();
    if (in)
      places[atomicAdd(&counts[b], 1u)] = static_cast<uint16_t>(i);
    __syncthreads();
    if (in)
      for (u32 p = begin; p < counts[b]; p++)
        place += places[p] < i;
    __syncthreads();
    if (in)
      places[place] = static_cast<uint16_t>(i);
  }
#pragma unroll 1
  for (u32 h = me / 32; h < n_heavy; h += tile_threads / 32)
  {
    u32 b = heavy[h];
    u32 at = counts[b];

#pragma unroll 4
    for (u32 i = lane; i - lane < n; i += 32)
    {
      bool in = i < n && bucket_of[i] == b;
      u32 peers = __ballot_sync(~0u, in);

      if (in)
        places[at + static_cast<u32>(__popc(peers & ((1u << lane) - 1)))] = static_cast<uint16_t>(i);
      at += static_cast<u32>(__popc(peers));
    }
  }
  __syncthreads();
  for (u32 p = me; p < n; p += tile_threads)
  {
    u32 i = places[p];

    buckets.words[base + p] = words[i];
    buckets.rows[base + p] = static_cast<uint16_t>(i);
  }
}

u32 log_buckets_of(u32 n_rows)
{
  u32 log = log_least_buckets;

  while (log < log_most_buckets && n_rows >> log > bucket_rows)
    log++;
  return log;
}

} // namespace

bool buckets_fit(u32 n_rows, const FinishLimits &limits)
{
  u32 tile_bytes = TileMemory(1u << log_most_buckets, most_tile_rows, 0).bytes + static_bytes;

  return n_rows <= most_rows && std::max(tile_bytes, sample_bytes) <= limits.shared_bytes;
}

Buckets carve_buckets(Carver &carve, u32 n_rows, u64 *words, u32 *rows)
{
  Buckets buckets = {};

  // What it takes must not become less with more rows: it is reserved as they come.
  n_rows = std::min(n_rows, most_rows);
  buckets.n_buckets = 1u << log_buckets_of(n_rows);
  buckets.n_samples = oversampling * buckets.n_buckets;

  buckets.tile_rows = blocks_for(n_rows, most_tiles * tile_threads) * tile_threads;
  buckets.n_tiles = blocks_for(n_rows, buckets.tile_rows);
  buckets.samples = carve.take<u64>(u64{n_levels} * buckets.n_samples);
  buckets.splitters = carve.take<u64>(u64{n_levels} * buckets.n_buckets);
  buckets.tree = carve.take<u64>(buckets.n_buckets);
  buckets.known = carve.take<u8>(buckets.n_buckets);
  buckets.begins = carve.take<uint16_t>(u64{most_tiles} * (buckets.n_buckets + 1));
  buckets.words = words;
  buckets.rows = reinterpret_cast<uint16_t *>(rows);
  return buckets;
}

void fill_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                  const FinishLimits &limits, RoundState *state, cudaStream_t stream)
{
  u32 most_bytes = limits.shared_bytes - static_bytes;
  u32 shared_levels = most_shared_levels;

  while (TileMemory(buckets.n_buckets, buckets.tile_rows, shared_levels).bytes > most_bytes)
    shared_levels--;

  TileMemory layout(buckets.n_buckets, buckets.tile_rows, shared_levels);

  sort_pieces<<<blocks_for(buckets.n_samples, piece_threads), piece_threads, 0, stream>>>(
      keys, n_rows, prefix, buckets.n_samples, buckets.samples, state);
  GS_CUDA_LAUNCHED();

  // The attribute is the kernel's, not the launch's: all threads that sort must set it alike.
  GS_CUDA_TRY(cudaFuncSetAttribute(take_splitters, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(sample_bytes)));
  take_splitters<<<blocks_for(buckets.n_samples * rank_lanes, rank_threads), rank_threads,
                   buckets.n_samples * sizeof(u64), stream>>>(
      buckets.n_samples, log_buckets_of(n_rows), buckets.samples, buckets.splitters, buckets.tree);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cudaFuncSetAttribute(fill_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(most_bytes)));
  fill_tiles<<<buckets.n_tiles, tile_threads, layout.bytes, stream>>>(keys, n_rows, prefix, buckets, layout,
                                                                      state);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
