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
 *	  prefix of all.  The first words of the splitters lie in shared memory as a search tree.
 *	  Where several splitters have a row's first word, these are searched by the words behind it:
 *	  all of those that are left agree with the row in as many words as the two around
 *	  them do, and a comparison goes on from there.  Where splitters tell that words say too
 *	  little of the keys, the engine begins anew in another way; string_bucket_sample.cu may tell that
 *	  before.
 *
 * Buckets
 *	  A row's bucket is the number of splitters that are not greater than it.  Rows
 *	  that equal two splitters in succession, in all words that are kept, have the bucket
 *	  between these alone: so no bucket becomes large because of equal keys.  The keys of a
 *	  bucket agree in all bits in which its two splitters do, and a row's value, by which its bucket
 *	  is sorted first, begins right behind these.  Buckets that have many rows of the first tile are
 *	  likely large; they are sorted first, so that the device has work to the end.
 *
 * Tiles
 *	  A block takes a tile of the rows, thousands, and leaves them in the order of
 *	  buckets, and for each bucket where in the tile its part begins.  From that
 *	  follows for a bucket, over all tiles, where it begins in the order and where
 *	  its rows are; no pass over the rows brings them together.  Parts are in the
 *	  order of appending: of as many rows at a time as a block has threads, atomic
 *	  counters place those that have the same bucket, few, which are then ordered by counting.
 *	  A warp collects those of a large part from all of the tile.
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

constexpr u32 tile_threads = 1024;
constexpr u32 most_tile_rows = 8192;
constexpr u32 usual_tiles = 128; // at a time: no more than large devices have multiprocessors
constexpr u32 bucket_rows = 256; // on average, if there are not too many buckets
constexpr u32 log_most_buckets = 12;
constexpr u32 log_least_buckets = 4;
constexpr u32 most_rows = most_tiles * most_tile_rows;
static_assert(most_tile_rows == 1u << row_bits);
constexpr u32 buckets_each = (1u << log_most_buckets) / tile_threads;
constexpr u32 heavy_rows = 128; // of a bucket in a tile: a warp places so many
constexpr u32 most_heavy = most_tile_rows / heavy_rows;
constexpr u32 n_turn_classes = 10; // by a bucket's rows in a tile
constexpr u32 is_heavy = 0x2000;   // of what is known of a bucket, in a tile: more than heavy_rows;
constexpr u32 is_alike = 0x1000;   // its two splitters have all words equal,
constexpr u32 begins_run = 0x800;  // or not even the first one
constexpr u32 static_bytes = 1024; // of shared memory that a tile has beside
constexpr u32 long_run = 5;        // splitters with equal words: too many rows for a block
constexpr u32 most_long = 32;      // one in so many splitters may be in such a run
constexpr u32 many_splitters = 16; // that are equal: a key with many rows

static_assert(((is_heavy | is_alike | begins_run) & (one_key | many_rows | agreed_bits)) == 0);

// The memory of a tile: values; then the tree and the runs of splitters, and in their place counts
// and places when all rows have their buckets; then buckets of rows, and what is known of all.
struct TileMemory
{
  u32 search_bytes;
  u32 bytes;

  TileMemory(u32 n_buckets, u32 tile_rows)
  {
    u32 search = n_buckets * static_cast<u32>(sizeof(u64) + sizeof(uint16_t));
    u32 counts = n_buckets * static_cast<u32>(sizeof(u32)) + tile_rows * static_cast<u32>(sizeof(uint16_t));

    search_bytes = std::max(search, counts);
    bytes = tile_rows * static_cast<u32>(sizeof(u64) + sizeof(uint16_t)) + search_bytes +
            n_buckets * static_cast<u32>(sizeof(uint16_t));
  }
};

// What two splitters tell of the bucket between them.  All keys there have words from the lesser
// one's to the greater one's, and so none ends before the lesser one where these agree.
// The first words are given.
__device__ __forceinline__ u32 known_of(const u64 *splitters, u32 n_buckets, u32 a, u32 b, u64 first_a,
                                        u64 first_b)
{
  for (u32 level = 0; level < n_levels; level++)
  {
    u64 word = level == 0 ? first_a : splitters[level * n_buckets + a];
    u64 diff = word ^ (level == 0 ? first_b : splitters[level * n_buckets + b]);
    u32 before = level * word_bytes * 8;

    if (diff != 0)
    {
      u32 bytes = is_whole(word) ? (static_cast<u32>(word) & 0xff) >> count_bits : word_bytes;

      return (before + min(static_cast<u32>(__clzll(static_cast<long long>(diff))), bytes * 8)) |
             (level == 0 ? begins_run : 0);
    }
    if (is_whole(word))
      return before | is_alike | one_key;
  }
  return (n_levels * word_bytes * 8) | is_alike;
}

// The bucket of a key whose first word splitters [low, high) have, of which there are two at
// least.  Of these, those from low to high agree with the key in as many words as the lesser of both
// levels says: a comparison begins behind them.
__device__ __forceinline__ u32 search_deeper(const u64 *splitters, const uint16_t *known, u32 n_buckets,
                                             const KeyRef &key, const Head &head, u32 prefix, u64 word,
                                             u32 low, u32 high)
{
  if (is_whole(word))
    return high - 1;

  // Seldom are more than four words needed.
  u32 left = key.length - prefix;
  Head more = load_head(key.address + prefix + 2 * word_bytes, left - min(left, 2 * word_bytes));
  u64 words[3] = {word_of(head, 1, left), word_of(more, 0, left - 2 * word_bytes),
                  word_of(more, 1, left - 2 * word_bytes)};
  u32 low_level = 1;
  u32 high_level = 1;
  u32 level = 1;
  bool is_equal = false;

#pragma unroll 1
  while (low < high)
  {
    u32 middle = (low + high) / 2;
    u64 its = splitters[level * n_buckets + middle];
    u64 mine = level == 1 ? words[0] : level == 2 ? words[1] : words[2];

    if (level > 3)
      mine = key_word(key, prefix + level * word_bytes);
    if (mine == its && !is_whole(mine) && level + 1 < n_levels)
    {
      level++;
      continue;
    }
    if (mine < its)
    {
      high = middle;
      high_level = level;
    }
    else
    {
      low = middle + 1;
      low_level = level;
      is_equal = mine == its;
    }
    level = min(low_level, high_level);
  }
  return is_equal && (known[low - 1] & is_alike) != 0 ? low - 1 : low;
}

// A row's value, of the bits behind those in which its bucket's keys agree.  Its number is put in later.
__device__ __forceinline__ u64 value_of(const KeyRef &key, const Head &head, u32 prefix, u32 agreed)
{
  constexpr Shape shape = {0, value_bits, 64};
  u32 byte = agreed / 8;
  u32 left = key.length - prefix - byte;
  u64 bytes = byte <= 8 ? head.from(byte) : load_word(key.address + prefix + byte, left);

  return shape.make_word(0, bytes, agreed % 8, left) << row_bits;
}

// For each splitter, where the run of those with its first word begins.
__device__ __forceinline__ void find_runs(const uint16_t *known, u32 n_buckets, u32 *warp_sums,
                                          uint16_t *runs)
{
  const u32 lane = threadIdx.x % 32;
  const u32 first = threadIdx.x * buckets_each;
  u32 begin = 0; // of the run up to here, 0 if before

#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
    if (first + k < n_buckets && (known[first + k] & begins_run) != 0)
      begin = first + k;

      // The latest of those before.
#pragma unroll
  for (u32 step = 1; step < 32; step *= 2)
  {
    u32 other = __shfl_up_sync(~0u, begin, step);

    begin = lane >= step ? max(begin, other) : begin;
  }
  if (lane == 31)
    warp_sums[threadIdx.x / 32] = begin;
  begin = __shfl_up_sync(~0u, begin, 1);
  if (lane == 0)
    begin = 0;
  __syncthreads();
  for (u32 w = 0; w < threadIdx.x / 32; w++)
    begin = max(begin, warp_sums[w]);
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
    if (first + k < n_buckets)
    {
      if ((known[first + k] & begins_run) != 0)
        begin = first + k;
      runs[first + k] = static_cast<uint16_t>(begin);
    }
  __syncthreads();
}

// Takes places in classes, for the threads of a warp: ends of classes grow, from 0 or from where they begin.
__device__ __forceinline__ u32 take_places(u32 *ends, u32 which, bool takes)
{
  u32 peers = __match_any_sync(~0u, takes ? which : n_turn_classes);
  u32 leader = static_cast<u32>(__ffs(static_cast<int>(peers))) - 1;
  u32 lane = threadIdx.x % 32;
  u32 place = 0;

  if (takes && lane == leader)
    place = atomicAdd(&ends[which], static_cast<u32>(__popc(peers)));
  return __shfl_sync(~0u, place, static_cast<int>(leader)) +
         static_cast<u32>(__popc(peers & ((1u << lane) - 1)));
}

// Buckets that have many of a tile's rows are likely large.  They are sorted first, or much of the device
// would wait for the last ones.
__device__ __forceinline__ void set_turns(const u32 (&own)[buckets_each], const uint16_t *known,
                                          u32 n_buckets, u32 *ends, u32 *turns)
{
  const u32 first = threadIdx.x * buckets_each;

  if (threadIdx.x < n_turn_classes)
    ends[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
    (void)take_places(ends, n_turn_classes - 1 - min(own[k], n_turn_classes - 1), first + k < n_buckets);
  __syncthreads();
  if (threadIdx.x == 0)
  {
    u32 sum = 0;

    for (u32 i = 0; i < n_turn_classes; i++)
    {
      u32 n = ends[i];

      ends[i] = sum;
      sum += n;
    }
  }
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    bool is_bucket = first + k < n_buckets;
    u32 turn = take_places(ends, n_turn_classes - 1 - min(own[k], n_turn_classes - 1), is_bucket);

    if (is_bucket)
      turns[turn] = (first + k) | u32{known[first + k]} << 16;
  }
}

// Finds the buckets of a tile's rows and brings them into that order.
__global__ void __launch_bounds__(tile_threads)
    fill_tiles(const KeyRef *keys, u32 n_rows, u32 prefix, Buckets buckets, TileMemory layout,
               RoundState *state, RoundCounts *told)
{
  extern __shared__ u64 shared_memory[];
  __shared__ u32 warp_sums[tile_threads / 32];
  __shared__ u32 turn_ends[n_turn_classes];
  __shared__ u32 heavy[most_heavy];
  __shared__ u32 n_heavy;
  __shared__ u32 n_many;
  __shared__ u32 in_runs;
  const u32 me = threadIdx.x;
  const u32 lane = me % 32;
  const u32 n_buckets = buckets.n_buckets;
  const u32 base = blockIdx.x * buckets.tile_rows;
  const u32 n = min(buckets.tile_rows, n_rows - base);
  u64 *values = shared_memory;
  u64 *tree = values + buckets.tile_rows;
  uint16_t *runs = reinterpret_cast<uint16_t *>(tree + n_buckets);
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
    in_runs = 0;
  }
  wait_for_previous();

  u64 node_word[buckets_each];
  u64 before[buckets_each];
  u64 behind[buckets_each];

#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + me;
    bool is_inner = b > 0 && b + 1 < n_buckets;

    node_word[j] = b > 0 && b < n_buckets ? buckets.tree[b] : 0;
    before[j] = is_inner ? buckets.splitters[b - 1] : 0;
    behind[j] = is_inner ? buckets.splitters[b] : 0;
  }
  if (state->again != 0)
    return;
#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + me;

    if (b < n_buckets)
    {
      bool is_inner = b > 0 && b + 1 < n_buckets;

      tree[b] = node_word[j];
      known[b] = static_cast<uint16_t>(
          is_inner ? known_of(buckets.splitters, n_buckets, b - 1, b, before[j], behind[j]) : 0);
    }
  }
  __syncthreads();

  // Words do not do where many splitters have equal ones and go on.
  u32 n_long = 0;

#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + me;
    bool is_long = b < n_buckets && b >= long_run - 1;

#pragma unroll
    for (u32 k = 0; k < long_run - 1; k++)
      is_long = is_long && (known[b - k] & (is_alike | one_key)) == is_alike;
    n_long += static_cast<u32>(__popc(__ballot_sync(~0u, is_long)));
  }
  if (lane == 0 && n_long > 0)
    atomicAdd(&in_runs, n_long);
  find_runs(known, n_buckets, warp_sums, runs);
  if (in_runs * most_long > n_buckets)
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

    if (bucket >= 2 && tree[not_greater] == word && runs[bucket - 1] + 2 <= bucket)
      bucket = search_deeper(buckets.splitters, known, n_buckets, key, head, prefix, word, runs[bucket - 1],
                             bucket);

    u32 what = known[bucket];

    values[i] = (what & one_key) == 0 ? value_of(key, head, prefix, what & agreed_bits) : 0;
    bucket_of[i] = static_cast<uint16_t>(bucket);
  }
  __syncthreads();

  // The first block tells of all buckets.  Of those of one key only the last one between equal
  // splitters has rows.
  if (blockIdx.x == 0)
  {
    bool many[buckets_each];

#pragma unroll
    for (u32 j = 0; j < buckets_each; j++)
    {
      u32 b = j * tile_threads + me;

      many[j] = b >= many_splitters && b + 1 < n_buckets && (known[b] & one_key) != 0 &&
                (known[b + 1] & one_key) == 0;
#pragma unroll
      for (u32 k = 1; k < many_splitters - 1; k++)
        many[j] = many[j] && (known[b - k] & one_key) != 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < buckets_each; j++)
      if (many[j])
      {
        u32 b = j * tile_threads + me;

        known[b] |= static_cast<uint16_t>(many_rows);
        buckets.many[atomicAdd(&n_many, 1u)] = static_cast<uint16_t>(b);
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

  u32 *parts = buckets.parts + u64{blockIdx.x} * n_buckets;
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
  if (blockIdx.x == 0)
    set_turns(own, known, n_buckets, turn_ends, buckets.turns);
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    u32 b = me * buckets_each + k;

    if (b < n_buckets)
    {
      counts[b] = sum;
      parts[b] = sum | (sum + own[k]) << 16;
    }
    sum += own[k];
  }
  __syncthreads();

  // As many rows at a time as there are threads, each brought to its place among these; and large
  // parts by a warp each.
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

    buckets.values[base + p] = values[i] | i;
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

// How rows are cut into tiles and buckets.
Buckets plan_buckets(u32 n_rows)
{
  u32 n_waves = blocks_for(n_rows, usual_tiles * most_tile_rows);
  Buckets buckets = {};

  buckets.n_buckets = 1u << log_buckets_of(n_rows);
  buckets.n_samples = oversampling * buckets.n_buckets;
  buckets.tile_rows = blocks_for(n_rows, usual_tiles * n_waves * tile_threads) * tile_threads;
  buckets.n_tiles = blocks_for(n_rows, buckets.tile_rows);
  return buckets;
}

} // namespace

bool buckets_fit(u32 n_rows, const FinishLimits &limits)
{
  if (n_rows > most_rows)
    return false;

  Buckets plan = plan_buckets(n_rows);
  u32 tile_bytes = TileMemory(plan.n_buckets, plan.tile_rows).bytes + static_bytes;

  return std::max(tile_bytes, sample_shared_bytes(plan.n_samples)) <= limits.shared_bytes;
}

Buckets carve_buckets(Carver &carve, u32 n_rows, u64 *values)
{
  // What it takes must not become less with more rows: it is reserved as they come.
  Buckets buckets = plan_buckets(std::min(n_rows, most_rows));

  buckets.samples = carve.take<u64>(u64{kept_levels} * buckets.n_samples);
  buckets.sample_rows = carve.take<u32>(buckets.n_samples);
  buckets.splitters = carve.take<u64>(u64{n_levels} * buckets.n_buckets);
  buckets.tree = carve.take<u64>(buckets.n_buckets);
  buckets.turns = carve.take<u32>(buckets.n_buckets);
  buckets.many = carve.take<uint16_t>(buckets.n_buckets / many_splitters + 1);
  buckets.n_many = carve.take<u32>(1);
  buckets.parts = carve.take<u32>(u64{most_tiles} * buckets.n_buckets);
  buckets.values = values;
  return buckets;
}

void fill_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                  const FinishLimits &limits, RoundState *state, RoundCounts *told, cudaStream_t stream)
{
  u32 most_bytes = limits.shared_bytes - static_bytes;
  TileMemory layout(buckets.n_buckets, buckets.tile_rows);

  GS_CUDA_TRY(cudaFuncSetAttribute(fill_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(most_bytes)));
  launch_next(limits.can_overlap, fill_tiles, buckets.n_tiles, tile_threads, layout.bytes, stream, keys,
              n_rows, prefix, buckets, layout, state, told);
}

} // namespace gpusort
