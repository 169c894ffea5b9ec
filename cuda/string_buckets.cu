/*-------------------------------------------------------------------------
 *
 * string_buckets.cu
 *	  The string engine's way with up to two million rows: buckets between
 *	  splitters, and each bucket sorted on chip.
 *
 * With few rows it is not the bytes moved that take time, but one kernel waiting
 * for the other, the passes of a radix sort above all, and the host for the
 * device.  So here everything is done in four kernels, and the host waits for the
 * last one only: a sample is sorted, splitters are taken from it, all rows are put
 * into buckets between these, and each bucket is sorted on chip
 * (string_bucket_finish.cu).  Each kernel lets the next one's blocks begin before it ends.
 *
 * Words
 *	  Keys are compared word by word, seven bytes and how many there are, behind the
 *	  prefix of all.  Of the sample's keys the first kept_levels words are kept, and those behind
 *	  them are read from the keys where they are needed, up to n_levels; of splitters all are
 *	  kept.  The first words of the splitters lie in shared memory as a search tree.  Where several
 *	  splitters have a row's first word, these are searched by the second one, and so on.
 *	  Where many keys have many words alike, words tell too little, or too much would have to be
 *	  read: a few probes tell that before the sample is sorted, and the splitters
 *	  before the rows are looked at.  The engine then begins anew in another way.
 *
 * Buckets
 *	  A row's bucket is the number of splitters that are not greater than it.  Rows
 *	  that equal two splitters in succession, in all words that are kept, have the bucket
 *	  between these alone: so no bucket becomes large because of equal keys.  The keys of a
 *	  bucket agree in all bits in which its two splitters do, and a row's value, by which its bucket
 *	  is sorted first, begins right behind these.
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
#include <cstdlib>

#include "block_sort.cuh"

namespace gpusort
{

namespace
{

constexpr u32 small_piece = 256; // samples that a block sorts
constexpr u32 large_piece = 1024;
constexpr u32 rank_threads = 1024;
constexpr u32 rank_lanes = 8; // threads that rank a sample
constexpr u32 rank_batch = 2; // searches of a thread at a time
constexpr u32 tile_threads = 1024;
constexpr u32 most_tile_rows = 8192;
constexpr u32 usual_tiles = 128; // no more than large devices have multiprocessors
constexpr u32 oversampling = 4;
constexpr u32 bucket_rows = 256; // on average, if there are not too many buckets
constexpr u32 log_most_buckets = 12;
constexpr u32 log_least_buckets = 4;
constexpr u32 most_rows = most_tiles * most_tile_rows;
constexpr u32 buckets_each = (1u << log_most_buckets) / tile_threads;
constexpr u32 heavy_rows = 128; // of a bucket in a tile
constexpr u32 most_heavy = most_tile_rows / heavy_rows;
constexpr u32 is_heavy = 0x2000;      // of what is known of a bucket, in a tile
constexpr u32 most_shared_levels = 1; // what is left of the chip's memory caches keys
constexpr u32 static_bytes = 1024;    // of shared memory that a tile has beside
constexpr u32 long_run = 5;           // splitters with equal words: too many rows for a block
constexpr u32 most_long = 32;         // one in so many splitters may be in such a run
constexpr u32 many_splitters = 16;    // that are equal: a key with many rows
constexpr u32 kept_levels = 4;        // of words that are kept of the sample's keys
constexpr u32 probes = 256;           // keys that are compared with each other beforehand,
constexpr u32 most_deep = 32;         // of which so many may agree in all words that are kept

static_assert((is_heavy & (one_key | many_rows | agreed_bits)) == 0);

// What a block that sorts a piece has in shared memory.
template <u32 piece>
struct PieceMemory
{
  u64 words[kept_levels][piece];
  u64 firsts[piece];
  uint16_t numbers[piece];
};

// How the keys of two samples compare that agree in all words that are kept, and go on; in no more
// than all words.
__device__ __forceinline__ int order_behind(const KeyRef *keys, u32 prefix, u32 row_a, u32 row_b)
{
  u32 end = prefix + n_levels * word_bytes;
  KeyRef a = load_key(keys, row_a);
  KeyRef b = load_key(keys, row_b);

  a.length = min(a.length, end + 1);
  b.length = min(b.length, end + 1);
  return compare_keys(a, b, prefix + kept_levels * word_bytes, end).order;
}

// Does one of the probes agree with another one in all words that are kept?
__device__ __forceinline__ bool is_deep(const KeyRef *keys, u32 n_rows, u32 prefix, u32 probe)
{
  u32 end = prefix + kept_levels * word_bytes;

  return compare_keys(load_key(keys, sample_row(n_rows, probes, probe)),
                      load_key(keys, sample_row(n_rows, probes, probe ^ probes / 2)), prefix, end)
             .shared == end;
}

// Reads samples, and sorts them in pieces of one block each, by a bitonic network.
template <u32 piece>
__global__ void __launch_bounds__(piece)
    sort_pieces(const KeyRef *keys, u32 n_rows, u32 prefix, u32 n_samples, u64 *samples, u32 *sample_rows,
                RoundState *state, RoundCounts *told)
{
  extern __shared__ u64 shared_memory[];
  PieceMemory<piece> &memory = *reinterpret_cast<PieceMemory<piece> *>(shared_memory);
  auto &words = memory.words;
  auto &firsts = memory.firsts;
  auto &numbers = memory.numbers;
  const u32 me = threadIdx.x;
  const u32 i = blockIdx.x * piece + me;
  const u32 size = min(piece, n_samples);

  // The row of one of the block's samples: each block has some from all over the rows.
  auto row_of = [&](u32 number) { return sample_row(n_rows, n_samples, number * gridDim.x + blockIdx.x); };
  u64 mine = ~u64{0};
  u32 number = me; // from size on those behind all

  if (i < n_samples)
  {
    KeyRef key = load_key(keys, row_of(me));

#pragma unroll
    for (u32 level = 0; level < kept_levels; level++)
    {
      u32 depth = prefix + level * word_bytes;
      u64 word = depth <= key.length ? key_word(key, depth) : 0;

      words[level][me] = word;
      if (level == 0)
        mine = word;
    }
  }

  // Where many keys agree that far, too much would be read to sort the sample.  All blocks find the same.
  bool is_too_deep = __syncthreads_count(me < probes && is_deep(keys, n_rows, prefix, me)) > most_deep;

  if (i == 0)
  {
    *state = {};
    state->again = is_too_deep;
    told->again = is_too_deep;
  }
  if (is_too_deep)
    return;
  let_next_begin();

#pragma unroll 1
  for (u32 width = 2; width <= piece; width *= 2)
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

          while (level < kept_levels && words[level][its] == words[level][number])
            level++;
          if (level < kept_levels)
            less = words[level][its] < words[level][number];
          else if (!is_whole(words[kept_levels - 1][number]))
            less = order_behind(keys, prefix, row_of(its), row_of(number)) < 0;
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
  if (i >= n_samples)
    return;
#pragma unroll
  for (u32 level = 0; level < kept_levels; level++)
    samples[level * n_samples + i] = words[level][number];
  sample_rows[i] = row_of(number);
}

// Finds each sample's rank by searching all pieces but its own, and takes every so
// manieth for a splitter.  The first words of all samples lie in shared memory.
__global__ void __launch_bounds__(rank_threads)
    take_splitters(const KeyRef *keys, u32 prefix, u32 piece_size, u32 log_buckets, Buckets buckets,
                   const RoundState *state)
{
  extern __shared__ u64 shared_memory[];
  u64 *firsts = shared_memory;
  const u64 *samples = buckets.samples;
  const u32 n_samples = buckets.n_samples;
  const u32 at = blockIdx.x * rank_threads + threadIdx.x;
  const u32 i = at / rank_lanes;
  const u32 piece = i / piece_size;
  const u32 pieces = n_samples / piece_size; // 0: one that is not full
  u64 mine[kept_levels] = {};
  u32 rank = 0;

  let_next_begin();
  wait_for_previous();
  if (state->again != 0)
    return;
  if (i < n_samples)
  {
#pragma unroll
    for (u32 level = 0; level < kept_levels; level++)
      mine[level] = __ldg(samples + level * n_samples + i);
    if (at % rank_lanes == 0)
      rank = i % piece_size;
  }

  // Is the sample at a place before mine?
  auto is_before = [&](u32 place, u32 other)
  {
    u64 first = firsts[place];

    if (first != mine[0])
      return first < mine[0];
    if (!is_whole(first))
    {
      u64 its = 0;

#pragma unroll
      for (u32 level = 1; level < kept_levels; level++)
      {
        its = __ldg(samples + level * n_samples + place);
        if (its != mine[level])
          return its < mine[level];
      }
      if (!is_whole(its))
      {
        int order =
            order_behind(keys, prefix, __ldg(buckets.sample_rows + place), __ldg(buckets.sample_rows + i));

        if (order != 0)
          return order < 0;
      }
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
    for (u32 step = piece_size / 2; step > 0; step /= 2)
#pragma unroll
      for (u32 b = 0; b < rank_batch; b++)
      {
        u32 other = min(first + b * rank_lanes, pieces - 1);

        if (is_before(other * piece_size + low[b] + step - 1, other))
          low[b] += step;
      }
#pragma unroll
    for (u32 b = 0; b < rank_batch; b++)
    {
      u32 other = first + b * rank_lanes;

      if (other < pieces && other != piece)
        rank += low[b] + is_before(other * piece_size + low[b], other);
    }
  }
#pragma unroll
  for (u32 step = 1; step < rank_lanes; step *= 2)
    rank += __shfl_xor_sync(~0u, rank, step);

  u32 splitter = rank / oversampling;

  if (i >= n_samples || rank % oversampling != oversampling - 1 || splitter + 1 >= 1u << log_buckets)
    return;

  // A key's words behind its end are 0.
  KeyRef key = load_key(keys, buckets.sample_rows[i]);

  for (u32 level = at % rank_lanes; level < n_levels; level += rank_lanes)
  {
    u32 depth = prefix + level * word_bytes;

    buckets.splitters[(level << log_buckets) + splitter] = depth <= key.length ? key_word(key, depth) : 0;
  }
  if (at % rank_lanes > 0)
    return;

  u32 trailing = static_cast<u32>(__ffs(static_cast<int>(splitter + 1))) - 1;

  buckets.tree[(1u << (log_buckets - 1 - trailing)) + ((splitter + 1) >> (trailing + 1))] = mine[0];
}

// The memory of a tile: values; then the tree and some levels of the splitters' words, and in
// their place counts and places when all rows have their buckets; then buckets of rows, and
// what is known of all.
struct TileMemory
{
  u32 shared_levels;
  u32 search_bytes;
  u32 bytes;

  TileMemory(u32 n_buckets, u32 tile_rows, u32 shared_levels) : shared_levels(shared_levels)
  {
    u32 words = (1 + shared_levels) * n_buckets * static_cast<u32>(sizeof(u64));
    u32 counts = n_buckets * static_cast<u32>(sizeof(u32)) + tile_rows * static_cast<u32>(sizeof(uint16_t));

    search_bytes = words > counts ? words : counts;
    bytes = tile_rows * static_cast<u32>(sizeof(u64) + sizeof(uint16_t)) + search_bytes +
            n_buckets * static_cast<u32>(sizeof(uint16_t));
  }
};

// What two splitters tell of the bucket between them.  All keys there have words from the lesser
// one's to the greater one's, and so none ends before the lesser one where these agree.
__device__ __forceinline__ u32 known_of(const u64 *splitters, u32 n_buckets, u32 a, u32 b)
{
  for (u32 level = 0; level < n_levels; level++)
  {
    u64 word = __ldg(splitters + level * n_buckets + a);
    u64 diff = word ^ __ldg(splitters + level * n_buckets + b);
    u32 before = level * word_bytes * 8;

    if (diff != 0)
    {
      u32 bytes = is_whole(word) ? (static_cast<u32>(word) & 0xff) >> count_bits : word_bytes;

      return before + min(static_cast<u32>(__clzll(static_cast<long long>(diff))), bytes * 8);
    }
    if (is_whole(word))
      return before | one_key;
  }
  return n_levels * word_bytes * 8;
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
// at least.  The first of their words are in shared memory.
__device__ __forceinline__ u32 search_deeper(const u64 *splitters, const u64 *shared, u32 shared_levels,
                                             u32 n_buckets, const KeyRef &key, Head head, u32 prefix,
                                             u64 word, u32 low, u32 high)
{
#pragma unroll 1
  for (u32 level = 1; level < n_levels && !is_whole(word); level++)
  {
    u32 begin = low;
    bool is_found;
    auto search = [&](const u64 *words)
    {
      high = find_word<true>(words, low, high, word);
      is_found = high < begin + 2 || words[high - 2] != word;
      if (!is_found)
        low = find_word<false>(words, low, high, word);
    };

    if (level % 2 == 0)
    {
      u64 address = key.address + prefix + level * word_bytes;
      u32 left = key.length - prefix - level * word_bytes;

      head = load_head(address, left);
    }
    word = word_of(head, level % 2, key.length - prefix - level / 2 * 2 * word_bytes);
    if (level <= shared_levels)
      search(shared + level * n_buckets);
    else
      search(splitters + level * n_buckets);
    if (is_found)
      return high;
  }
  return high - 1;
}

// A row's value, of the bits behind those in which its bucket's keys agree.
__device__ __forceinline__ u64 value_of(const KeyRef &key, const Head &head, u32 prefix, u32 agreed)
{
  constexpr Shape shape = {0, value_bits, 64};
  u32 byte = agreed / 8;
  u32 left = key.length - prefix - byte;
  u64 bytes = byte <= 8 ? head.from(byte) : load_word(key.address + prefix + byte, left);

  return shape.make_word(0, bytes, agreed % 8, left) << place_bits;
}

// Finds the buckets of a tile's rows and brings them into that order.
__global__ void __launch_bounds__(tile_threads)
    fill_tiles(const KeyRef *keys, u32 n_rows, u32 prefix, Buckets buckets, TileMemory layout,
               RoundState *state, RoundCounts *told)
{
  extern __shared__ u64 shared_memory[];
  __shared__ u32 warp_sums[tile_threads / 32];
  __shared__ u32 heavy[most_heavy];
  __shared__ u32 n_heavy;
  __shared__ u32 n_many;
  const u32 me = threadIdx.x;
  const u32 lane = me % 32;
  const u32 n_buckets = buckets.n_buckets;
  const u32 base = blockIdx.x * buckets.tile_rows;
  const u32 n = min(buckets.tile_rows, n_rows - base);
  u64 *values = shared_memory;
  u64 *tree = values + buckets.tile_rows;
  u32 *counts = reinterpret_cast<u32 *>(tree);
  uint16_t *places = reinterpret_cast<uint16_t *>(counts + n_buckets);
  uint16_t *bucket_of = reinterpret_cast<uint16_t *>(reinterpret_cast<char *>(tree) + layout.search_bytes);
  uint16_t *known = bucket_of + buckets.tile_rows;

  // While a row's bucket is searched, it is on its way where the next one's key is.
  KeyRef next = me < n ? load_key(keys, base + me) : KeyRef{};

  if (me == 0)
  {
    n_heavy = 0;
    n_many = 0;
  }
  wait_for_previous();
  if (state->again != 0)
    return;

#pragma unroll 1
  for (u32 i = me; i < n_buckets; i += tile_threads)
  {
    tree[i] = i > 0 ? buckets.tree[i] : 0;
#pragma unroll
    for (u32 level = 1; level <= most_shared_levels; level++)
      if (level <= layout.shared_levels)
        tree[level * n_buckets + i] = __ldg(buckets.splitters + level * n_buckets + i);
    known[i] = static_cast<uint16_t>(
        i > 0 && i + 1 < n_buckets ? known_of(buckets.splitters, n_buckets, i - 1, i) : 0);
  }
  __syncthreads();

  // Words do not do where many splitters have equal ones and go on.
  u32 in_run = 0;

#pragma unroll 1
  for (u32 first = 0; first < n_buckets; first += tile_threads)
  {
    u32 i = first + me;
    bool is_long = i < n_buckets && i >= long_run - 1;

#pragma unroll
    for (u32 k = 0; k < long_run - 1; k++)
      is_long = is_long && known[i - k] == n_levels * word_bytes * 8;
    in_run += static_cast<u32>(__syncthreads_count(is_long));
  }
  if (in_run * most_long > n_buckets)
  {
    if (blockIdx.x == 0 && me == 0)
    {
      state->again = 1;
      told->again = 1;
    }
    return;
  }

#pragma unroll 1
  for (u32 i = me; i < n; i += tile_threads)
  {
    const KeyRef key = next;
    const Head head = load_head(key.address + prefix, key.length - prefix);
    const u64 word = word_of(head, 0, key.length - prefix);
    u32 node = 1;

    next = i + tile_threads < n ? load_key(keys, base + i + tile_threads) : KeyRef{};
    while (node < n_buckets)
      node = 2 * node + (tree[node] <= word);

    u32 bucket = node - n_buckets;
    u32 not_greater = node >> __ffs(static_cast<int>(node)); // the last node that was not

    if (bucket >= 2 && tree[not_greater] == word && __ldg(buckets.splitters + bucket - 2) == word)
    {
      node = 1;
      while (node < n_buckets)
        node = 2 * node + (tree[node] < word);
      bucket = search_deeper(buckets.splitters, tree, layout.shared_levels, n_buckets, key, head, prefix,
                             word, node - n_buckets, bucket);
    }

    u32 what = known[bucket];

    if ((what & one_key) == 0)
      values[i] = value_of(key, head, prefix, what & agreed_bits);
    bucket_of[i] = static_cast<uint16_t>(bucket);
  }
  __syncthreads();

  // The first block tells of all buckets.  Of those of one key only the last one between equal
  // splitters has rows.
  if (blockIdx.x == 0)
  {
#pragma unroll 1
    for (u32 b = me; b < n_buckets; b += tile_threads)
    {
      u32 what = known[b];
      bool many = (what & one_key) != 0 && (known[b + 1] & one_key) == 0 && b >= many_splitters;

#pragma unroll
      for (u32 k = 1; k < many_splitters - 1; k++)
        many = many && (known[b - k] & one_key) != 0;
      if (many)
      {
        buckets.many[atomicAdd(&n_many, 1u)] = static_cast<uint16_t>(b);
        what |= many_rows;
      }
      buckets.known[b] = static_cast<uint16_t>(what);
    }
    __syncthreads();
    if (me == 0)
      *buckets.n_many = n_many;
  }

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
      known[b] |= static_cast<uint16_t>(is_heavy);
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

  // No earlier, or the next kernel's blocks crowd where there are no tiles.
  let_next_begin();
  for (u32 p = me; p < n; p += tile_threads)
  {
    u32 i = places[p];

    buckets.values[base + p] = values[i];
    buckets.rows[base + p] = static_cast<uint16_t>(i);
  }
}

u32 log_buckets_of(u32 n_rows)
{
  u32 rows = bucket_rows;
  u32 log = log_least_buckets;

#ifdef GPUSORT_FAULTS
  if (getenv("GPUSORT_FAULT_FEW_BUCKETS") != nullptr)
    rows *= 8;
#endif
  while (log < log_most_buckets && n_rows >> log > rows)
    log++;
  return log;
}

u32 sample_bytes(u32 n_samples)
{
  return n_samples * static_cast<u32>(sizeof(u64));
}

// Leaves one of large_piece samples to a block only where there are many.
bool takes_large_pieces(u32 n_samples, const FinishLimits &limits)
{
  return n_samples >= 8 * large_piece && sizeof(PieceMemory<large_piece>) <= limits.shared_bytes;
}

template <u32 piece>
void launch_pieces(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets, RoundState *state,
                   RoundCounts *told, cudaStream_t stream)
{
  constexpr int bytes = sizeof(PieceMemory<piece>);

  // The attribute is the kernel's, not the launch's: all threads that sort must set it alike.
  GS_CUDA_TRY(cudaFuncSetAttribute(sort_pieces<piece>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  sort_pieces<piece><<<blocks_for(buckets.n_samples, piece), piece, bytes, stream>>>(
      keys, n_rows, prefix, buckets.n_samples, buckets.samples, buckets.sample_rows, state, told);
  GS_CUDA_LAUNCHED();
}

// How rows are cut into tiles and buckets.
Buckets plan_buckets(u32 n_rows)
{
  Buckets buckets = {};

  buckets.n_buckets = 1u << log_buckets_of(n_rows);
  buckets.n_samples = oversampling * buckets.n_buckets;
  buckets.tile_rows = std::min(blocks_for(n_rows, usual_tiles * tile_threads) * tile_threads, most_tile_rows);
  buckets.n_tiles = blocks_for(n_rows, buckets.tile_rows);
  return buckets;
}

} // namespace

bool buckets_fit(u32 n_rows, const FinishLimits &limits)
{
  if (n_rows > most_rows)
    return false;

  Buckets plan = plan_buckets(n_rows);
  u32 tile_bytes = TileMemory(plan.n_buckets, plan.tile_rows, 0).bytes + static_bytes;

  return std::max({tile_bytes, sample_bytes(plan.n_samples),
                   static_cast<u32>(sizeof(PieceMemory<small_piece>))}) <= limits.shared_bytes;
}

Buckets carve_buckets(Carver &carve, u32 n_rows, u64 *values, u32 *rows)
{
  // What it takes must not become less with more rows: it is reserved as they come.
  Buckets buckets = plan_buckets(std::min(n_rows, most_rows));

  buckets.samples = carve.take<u64>(u64{kept_levels} * buckets.n_samples);
  buckets.sample_rows = carve.take<u32>(buckets.n_samples);
  buckets.splitters = carve.take<u64>(u64{n_levels} * buckets.n_buckets);
  buckets.tree = carve.take<u64>(buckets.n_buckets);
  buckets.known = carve.take<uint16_t>(buckets.n_buckets);
  buckets.many = carve.take<uint16_t>(buckets.n_buckets / many_splitters + 1);
  buckets.n_many = carve.take<u32>(1);
  buckets.begins = carve.take<uint16_t>(u64{most_tiles} * (buckets.n_buckets + 1));
  buckets.values = values;
  buckets.rows = reinterpret_cast<uint16_t *>(rows);
  return buckets;
}

void fill_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                  const FinishLimits &limits, RoundState *state, RoundCounts *told, cudaStream_t stream)
{
  bool large = takes_large_pieces(buckets.n_samples, limits);
  u32 most_bytes = limits.shared_bytes - static_bytes;
  u32 shared_levels = most_shared_levels;

  while (TileMemory(buckets.n_buckets, buckets.tile_rows, shared_levels).bytes > most_bytes)
    shared_levels--;

  TileMemory layout(buckets.n_buckets, buckets.tile_rows, shared_levels);

  if (large)
    launch_pieces<large_piece>(keys, n_rows, prefix, buckets, state, told, stream);
  else
    launch_pieces<small_piece>(keys, n_rows, prefix, buckets, state, told, stream);

  GS_CUDA_TRY(cudaFuncSetAttribute(take_splitters, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(most_bytes)));
  launch_next(limits.can_overlap, take_splitters, blocks_for(buckets.n_samples * rank_lanes, rank_threads),
              rank_threads, sample_bytes(buckets.n_samples), stream, keys, prefix,
              large ? large_piece : small_piece, log_buckets_of(n_rows), buckets, state);
  GS_CUDA_TRY(cudaFuncSetAttribute(fill_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(most_bytes)));
  launch_next(limits.can_overlap, fill_tiles, buckets.n_tiles, tile_threads, layout.bytes, stream, keys,
              n_rows, prefix, buckets, layout, state, told);
}

} // namespace gpusort
