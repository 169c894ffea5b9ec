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
 *	  prefix of all; the first one may hold codes of more bytes, see string_bucket_alphabet.cuh.
 *	  The first words of the splitters lie in order in shared memory.  Where several
 *	  splitters have a row's first word, these are searched by the words behind it: all of those
 *	  that are left agree with the row in as many words as the two around them do, and a comparison
 *	  goes on from there.  Where splitters tell that words say too little of the keys, the engine
 *	  begins anew in another way; string_bucket_sample.cu may tell that before.
 *
 * Buckets
 *	  A row's bucket is the number of splitters that are not greater than it.  Rows
 *	  that equal two splitters in succession, in all words that are kept, have the bucket
 *	  between these alone: so no bucket becomes large because of equal keys.  The keys of a
 *	  bucket agree in all bits in which its two splitters do, and a row's value, by which its bucket
 *	  is sorted first, begins right behind these.  Buckets that have many rows of the first tiles are
 *	  likely large; they are sorted first, so that the device has work to the end.  A block that has no
 *	  tile finds out about this, while those that have are not done yet.
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
#include <algorithm>
#include <cstdlib>

#include "block_sort.cuh"
#include "string_bucket_alphabet.cuh"

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
constexpr u32 n_turn_classes = 16; // by how many rows a bucket has in the first tiles
constexpr u32 average_class = 4;   // of which so many are for less than average
constexpr u32 is_heavy = 1u << 31; // of a bucket's count: it has as many
constexpr u32 is_alike = 0x1000;   // of what is known of a bucket: its two splitters have all words equal,
constexpr u32 begins_run = 0x800;  // or not even the first one
constexpr u32 static_bytes = 1024; // of shared memory that a tile has beside
constexpr u32 long_run = 5;        // splitters with equal words: too many rows for a block
constexpr u32 most_long = 32;      // one in so many splitters may be in such a run
constexpr u32 many_splitters = 16; // that are equal: a key with many rows

static_assert(((is_alike | begins_run) & (one_key | many_rows | has_codes | agreed_bits)) == 0);

// Where in a tile's memory what belongs to a bucket is.  A search by halves would read from one bank again
// and again if it were at the bucket's number; so a place is left free behind 16 and behind 256 of them.  The
// place of a sum of different powers of two is the sum of their places.
__host__ __device__ constexpr u32 place_of(u32 bucket)
{
  return bucket + (bucket >> 4) + (bucket >> 8);
}

// The shared memory of a tile: values; then the first words and runs of splitters, and in their place counts
// and places when all rows have their buckets; then what is known of all buckets, the rows' buckets, and
// codes.
struct TileMemory
{
  u32 search_bytes;
  u32 known_bytes;
  u32 bytes;

  TileMemory(u32 n_buckets, u32 tile_rows)
  {
    u32 n_places = place_of(n_buckets - 1) + 1;
    u32 search = n_places * static_cast<u32>(sizeof(u64)) + n_buckets * static_cast<u32>(sizeof(uint16_t));
    u32 counts = n_buckets * static_cast<u32>(sizeof(u32)) + tile_rows * static_cast<u32>(sizeof(uint16_t));

    search_bytes = (std::max(search, counts) + 15) & ~15u;
    known_bytes = (n_places * static_cast<u32>(sizeof(u32)) + 15) & ~15u;
    bytes =
        tile_rows * static_cast<u32>(sizeof(u64) + sizeof(uint16_t)) + search_bytes + known_bytes + n_bytes;
  }
};

struct Tile
{
  u32 base; // its first row
  u32 n;    // rows
  u64 *values;
  u64 *words; // at a bucket's place the first word of the splitter before it
  uint16_t *runs;
  u32 *counts;
  uint16_t *places;
  u32 *known; // at a bucket's place what is known of it, and its number in the upper half
  uint16_t *bucket_of;
  u8 *codes;

  __device__ __forceinline__ Tile(const Buckets &buckets, const TileMemory &layout, u32 n_rows)
  {
    extern __shared__ u64 shared_memory[];

    base = blockIdx.x * buckets.tile_rows;
    n = blockIdx.x < buckets.n_tiles ? min(buckets.tile_rows, n_rows - base) : 0;
    values = shared_memory;
    words = values + buckets.tile_rows;
    runs = reinterpret_cast<uint16_t *>(words + place_of(buckets.n_buckets - 1) + 1);
    counts = reinterpret_cast<u32 *>(words);
    places = reinterpret_cast<uint16_t *>(counts + buckets.n_buckets);
    known = reinterpret_cast<u32 *>(reinterpret_cast<char *>(words) + layout.search_bytes);
    bucket_of = reinterpret_cast<uint16_t *>(reinterpret_cast<char *>(known) + layout.known_bytes);
    codes = reinterpret_cast<u8 *>(bucket_of + buckets.tile_rows);
  }

  __device__ __forceinline__ u32 known_of(u32 bucket) const
  {
    return known[place_of(bucket)];
  }
};

// In how many bits the words of bytes agree that lie between two, of which the lesser one is given.
__device__ __forceinline__ u32 agreed_in(u64 word, u64 diff)
{
  u32 bytes = is_whole(word) ? (static_cast<u32>(word) & 0xff) >> count_bits : word_bytes;

  return min(static_cast<u32>(__clzll(static_cast<long long>(diff))), bytes * 8);
}

// What two splitters tell of the bucket between them that have the same first word, behind which theirs
// agree in so many bits.  All keys there have words from the lesser one's to the greater one's, and so none
// ends before the lesser one where these agree.  Not inline, for what is executed once is slow to come.
__device__ __noinline__ u32 known_behind(const u64 *splitters, u32 n_buckets, u32 before, u32 a, u32 b)
{
#pragma unroll 1
  for (u32 level = 1; level < n_levels; level++)
  {
    u64 word = splitters[level * n_buckets + a];
    u64 diff = word ^ splitters[level * n_buckets + b];

    if (diff != 0)
      return min(before + agreed_in(word, diff), agreed_bits);
    if (is_whole(word))
      return min(before, agreed_bits) | is_alike | one_key;
    before += word_bytes * 8;
  }
  return min(before, agreed_bits) | is_alike;
}

// What two splitters tell of the bucket between them, whose first words are given.
__device__ __forceinline__ u32 known_of(const u64 *splitters, u32 n_buckets, u32 symbol_bits, u32 a, u32 b,
                                        u64 first_a, u64 first_b)
{
  u64 diff = first_a ^ first_b;
  u32 codes = symbol_bits > 0 ? has_codes : 0;

  if (diff != 0)
    return begins_run | codes |
           (codes != 0 ? min(static_cast<u32>(__clzll(static_cast<long long>(diff))), coded_bits)
                       : agreed_in(first_a, diff));
  if (is_whole(first_a))
    return is_alike | one_key | codes;
  return known_behind(splitters, n_buckets, bytes_before(first_a, symbol_bits) * 8, a, b);
}

// The bucket of a key whose first word splitters [low, high) have, of which there are two at
// least.  Its words behind that begin at `depth`; the first three are given.  Of the splitters, those from
// low to high agree with the key in as many words as the lesser of both levels says: a comparison begins
// behind them.
__device__ __forceinline__ u32 search_deeper(const u64 *splitters, const Tile &tile, u32 n_buckets,
                                             const KeyRef &key, u32 depth, const u64 (&words)[3], u32 low,
                                             u32 high)
{
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

    // Seldom are more than these needed.
    if (level > 3)
      mine = key_word(key, depth + (level - 1) * word_bytes);
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
  return is_equal && (tile.known_of(low - 1) & is_alike) != 0 ? low - 1 : low;
}

// One step of a search: goes on by so many buckets, a power of two, if the splitter there is not greater.
// Places are in bytes: so it takes few instructions.
template <u32 buckets>
__device__ __forceinline__ void step_on(const u64 *words, u64 word, u32 &at)
{
  constexpr u32 step = place_of(buckets) * static_cast<u32>(sizeof(u64));

  if (*reinterpret_cast<const u64 *>(reinterpret_cast<const char *>(words) + at + step) <= word)
    at += step;
}

// The place of the bucket to which a first word belongs: behind those splitters that are not greater.
__device__ __forceinline__ u32 find_bucket(const u64 *words, u32 log_buckets, u64 word)
{
  u32 at = 0;

  static_assert(log_most_buckets == 12 && log_least_buckets == 4);
  switch (log_buckets)
  {
  case 12:
    step_on<2048>(words, word, at);
    [[fallthrough]];
  case 11:
    step_on<1024>(words, word, at);
    [[fallthrough]];
  case 10:
    step_on<512>(words, word, at);
    [[fallthrough]];
  case 9:
    step_on<256>(words, word, at);
    [[fallthrough]];
  case 8:
    step_on<128>(words, word, at);
    [[fallthrough]];
  case 7:
    step_on<64>(words, word, at);
    [[fallthrough]];
  case 6:
    step_on<32>(words, word, at);
    [[fallthrough]];
  case 5:
    step_on<16>(words, word, at);
    [[fallthrough]];
  default:
    step_on<8>(words, word, at);
    step_on<4>(words, word, at);
    step_on<2>(words, word, at);
    step_on<1>(words, word, at);
  }
  return at / static_cast<u32>(sizeof(u64));
}

// Do several splitters have a word, the last of them before the bucket at a place?
__device__ __forceinline__ bool is_in_run(const Tile &tile, u32 place, u32 bucket, u64 word)
{
  return bucket >= 2 && tile.words[place] == word && (tile.known_of(bucket - 1) & begins_run) == 0;
}

// A row's value, of the bits behind those in which its bucket's keys agree.  Its number is put in later.
__device__ __forceinline__ u64 value_of(const KeyRef &key, const Head &head, u32 prefix, u32 agreed)
{
  u32 byte = agreed / 8;
  u32 lead = agreed % 8;
  u32 left = key.length - prefix - byte;
  u32 chars = min((lead + value_bits) / 8, max_chars);
  u64 bytes = byte <= 8 ? head.from(byte) : load_word(key.address + prefix + byte, left);

  return (bytes << lead & ~u64{0} << (64 - value_bits)) | min(left, chars) << row_bits;
}

__device__ __forceinline__ u32 warp_max_up_to(u32 value)
{
#pragma unroll
  for (u32 step = 1; step < 32; step *= 2)
    value = max(value, __shfl_up_sync(~0u, value, step));
  return value;
}

// For each splitter, where the run of those with its first word begins.
__device__ __forceinline__ void find_runs(const Tile &tile, u32 n_buckets, u32 *warp_latest)
{
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  const u32 first = threadIdx.x * buckets_each;
  u32 begin = 0; // of the run up to here, 0 if before

#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
    if (first + k < n_buckets && (tile.known_of(first + k) & begins_run) != 0)
      begin = first + k;

  // The latest of those before, of the warp and of the warps before it.
  begin = warp_max_up_to(begin);
  if (lane == 31)
    warp_latest[warp] = begin;
  begin = __shfl_up_sync(~0u, begin, 1);
  if (lane == 0)
    begin = 0;
  __syncthreads();
  static_assert(tile_threads == 32 * 32);
  begin = max(begin, __shfl_sync(~0u, warp_max_up_to(lane < warp ? warp_latest[lane] : 0), 31));
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
    if (first + k < n_buckets)
    {
      if ((tile.known_of(first + k) & begins_run) != 0)
        begin = first + k;
      tile.runs[first + k] = static_cast<uint16_t>(begin);
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

// Which buckets of one key have many rows: they are listed.  Of those between equal splitters only the last
// one has rows.
__device__ __forceinline__ void find_many(const Buckets &buckets, const Tile &tile, u32 *n_many)
{
  const u32 n_buckets = buckets.n_buckets;
  bool many[buckets_each];

#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + threadIdx.x;

    many[j] = b >= many_splitters && b + 1 < n_buckets && (tile.known_of(b) & one_key) != 0 &&
              (tile.known_of(b + 1) & one_key) == 0;
#pragma unroll 1
    for (u32 k = 1; k < many_splitters - 1; k++)
      many[j] = many[j] && (tile.known_of(b - k) & one_key) != 0;
  }
  __syncthreads();
#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
    if (many[j])
    {
      u32 b = j * tile_threads + threadIdx.x;

      tile.known[place_of(b)] |= many_rows;
      buckets.many[atomicAdd(n_many, 1u)] = static_cast<uint16_t>(b);
    }
  __syncthreads();
  if (threadIdx.x == 0)
    *buckets.n_many = *n_many;
}

// Sets the turns of buckets.  Those that have many rows of some tiles are likely large: they are sorted
// first, or much of the device would wait for the last ones.
__device__ __forceinline__ void set_turns(const Buckets &buckets, const Tile &tile, u32 *ends)
{
  const u32 n_buckets = buckets.n_buckets;
  const u32 n_tiles = min(telling_tiles, buckets.n_tiles);
  const u32 class_rows = max(n_tiles * buckets.tile_rows / n_buckets / average_class, 1u);
  const u32 first = threadIdx.x * buckets_each;
  u32 likely[buckets_each] = {};
  u32 its_class[buckets_each];

  static_assert(buckets_each == 4);
  if (first < n_buckets)
  {
    // The blocks whose parts it waits for have begun before this one.
    u32 all;

    do
    {
      all = is_told;
#pragma unroll
      for (u32 k = 0; k < buckets_each; k++)
        likely[k] = 0;
#pragma unroll
      for (u32 other = 0; other < telling_tiles; other++)
        if (other < n_tiles)
        {
          uint4 its = __ldcv(reinterpret_cast<const uint4 *>(buckets.parts + other * n_buckets + first));

          all &= its.x & its.y & its.z & its.w;
          likely[0] += rows_of_part(its.x);
          likely[1] += rows_of_part(its.y);
          likely[2] += rows_of_part(its.z);
          likely[3] += rows_of_part(its.w);
        }
    } while (all == 0);
  }

  if (threadIdx.x < n_turn_classes)
    ends[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    its_class[k] = n_turn_classes - 1 - min(likely[k] / class_rows, n_turn_classes - 1);
    (void)take_places(ends, its_class[k], first + k < n_buckets);
  }
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
    u32 turn = take_places(ends, its_class[k], is_bucket);

    if (is_bucket)
      buckets.turns[turn] = (first + k) | tile.known_of(first + k) << 16;
  }
}

// Finds the buckets and values of a tile's rows where words hold codes.  Not inline, or it takes registers
// where they hold bytes.
__device__ __noinline__ void find_coded_rows(const KeyRef *keys, u32 n_rows, u32 prefix,
                                             const Buckets &buckets, const TileMemory &layout,
                                             u32 symbol_bits)
{
  const Tile tile(buckets, layout, n_rows);
  const u32 n_buckets = buckets.n_buckets;
  const u32 log_buckets = 31 - static_cast<u32>(__clz(static_cast<int>(n_buckets)));
  KeyRef next = threadIdx.x < tile.n ? load_key(keys, tile.base + threadIdx.x) : KeyRef{};

#pragma unroll 1
  for (u32 i = threadIdx.x; i < tile.n; i += tile_threads)
  {
    const KeyRef key = next;
    const CodedBytes bytes(key, prefix);
    const u64 word = coded_word(tile.codes, symbol_bits, bytes);

    next = i + tile_threads < tile.n ? load_key(keys, tile.base + i + tile_threads) : KeyRef{};

    const u32 place = find_bucket(tile.words, log_buckets, word);
    u32 what = tile.known[place];
    u32 bucket = what >> 16;

    if (is_in_run(tile, place, bucket, word))
    {
      if (is_whole(word))
        bucket--;
      else
      {
        u32 depth = prefix + bytes_before(word, symbol_bits);
        u64 words[3] = {word_or_0(key, depth), word_or_0(key, depth + word_bytes),
                        word_or_0(key, depth + 2 * word_bytes)};

        bucket = search_deeper(buckets.splitters, tile, n_buckets, key, depth, words, tile.runs[bucket - 1],
                               bucket);
      }
      what = tile.known_of(bucket);
    }
    if ((what & has_codes) != 0)
      tile.values[i] = coded_value(word, what & agreed_bits);
    else
      tile.values[i] = (what & one_key) == 0 ? value_of(key, bytes.heads[0], prefix, what & agreed_bits) : 0;
    tile.bucket_of[i] = static_cast<uint16_t>(bucket);
  }
}

// Finds the buckets of a tile's rows and brings them into that order.  The last block has no tile, but tells
// of all buckets.
__global__ void __launch_bounds__(tile_threads)
    fill_tiles(const KeyRef *keys, u32 n_rows, u32 prefix, const __grid_constant__ Buckets buckets,
               const __grid_constant__ TileMemory layout, RoundState *state, RoundCounts *told)
{
  __shared__ u32 warp_sums[tile_threads / 32];
  __shared__ u32 turn_ends[n_turn_classes];
  __shared__ u32 heavy[most_heavy];
  __shared__ u32 n_heavy;
  __shared__ u32 n_many;
  __shared__ u32 in_runs;
  const u32 me = threadIdx.x;
  const u32 lane = me % 32;
  const u32 n_buckets = buckets.n_buckets;
  const u32 log_buckets = 31 - static_cast<u32>(__clz(static_cast<int>(n_buckets)));
  const Tile tile(buckets, layout, n_rows);
  const u32 base = tile.base;
  const u32 n = tile.n;

  // While a row's bucket is searched, it is on its way where the next one's key is.
  KeyRef next = me < n ? load_key(keys, base + me) : KeyRef{};

  if (me == 0)
  {
    n_heavy = 0;
    n_many = 0;
    in_runs = 0;
  }
  wait_for_previous();

  u64 before[buckets_each];
  u64 behind[buckets_each];

#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + me;
    bool is_inner = b > 0 && b + 1 < n_buckets;

    before[j] = b > 0 && b < n_buckets ? buckets.splitters[b - 1] : 0;
    behind[j] = is_inner ? buckets.splitters[b] : 0;
  }

  const u32 again = state->again;
  const u32 symbol_bits = state->symbol_bits;

  if (again != 0)
    return;
  if (symbol_bits > 0 && me < n_bytes)
    tile.codes[me] = buckets.codes[me];
#pragma unroll
  for (u32 j = 0; j < buckets_each; j++)
  {
    u32 b = j * tile_threads + me;

    if (b < n_buckets)
    {
      bool is_inner = b > 0 && b + 1 < n_buckets;
      u32 what = symbol_bits > 0 ? has_codes : 0;

      if (is_inner)
        what = known_of(buckets.splitters, n_buckets, symbol_bits, b - 1, b, before[j], behind[j]);
      tile.words[place_of(b)] = before[j];
      tile.known[place_of(b)] = what | b << 16;
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
      is_long = is_long && (tile.known_of(b - k) & (is_alike | one_key)) == is_alike;
    n_long += static_cast<u32>(__popc(__ballot_sync(~0u, is_long)));
  }
  if (lane == 0 && n_long > 0)
    atomicAdd(&in_runs, n_long);
  find_runs(tile, n_buckets, warp_sums);
  if (in_runs * most_long > n_buckets)
  {
    if (blockIdx.x == 0 && me == 0)
    {
      state->again = 1;
      told->again = 1;
    }
    return;
  }

  if (blockIdx.x == buckets.n_tiles)
  {
    find_many(buckets, tile, &n_many);
    set_turns(buckets, tile, turn_ends);
    return;
  }

#pragma unroll 1
  for (u32 i = me; symbol_bits == 0 && i < n; i += tile_threads)
  {
    const KeyRef key = next;
    const Head head = load_head(key.address + prefix, key.length - prefix);
    const u64 word = word_of(head, 0, key.length - prefix);

    next = i + tile_threads < n ? load_key(keys, base + i + tile_threads) : KeyRef{};

    const u32 place = find_bucket(tile.words, log_buckets, word);
    u32 what = tile.known[place];
    u32 bucket = what >> 16;

    if (is_in_run(tile, place, bucket, word))
    {
      if (is_whole(word))
        bucket--;
      else
      {
        u32 left = key.length - prefix;
        Head more = load_head(key.address + prefix + 2 * word_bytes, left - min(left, 2 * word_bytes));
        u64 words[3] = {word_of(head, 1, left), word_of(more, 0, left - 2 * word_bytes),
                        word_of(more, 1, left - 2 * word_bytes)};

        bucket = search_deeper(buckets.splitters, tile, n_buckets, key, prefix + word_bytes, words,
                               tile.runs[bucket - 1], bucket);
      }
      what = tile.known_of(bucket);
    }
    tile.values[i] = (what & one_key) == 0 ? value_of(key, head, prefix, what & agreed_bits) : 0;
    tile.bucket_of[i] = static_cast<uint16_t>(bucket);
  }
  if (symbol_bits > 0)
    find_coded_rows(keys, n_rows, prefix, buckets, layout, symbol_bits);
  __syncthreads();

  // How many rows each bucket has, and where they begin.
  const u32 first_bucket = me * buckets_each;
  uint4 *counts = reinterpret_cast<uint4 *>(tile.counts) + me;

  static_assert(buckets_each == 4);
  if (first_bucket < n_buckets)
    *counts = {};
  __syncthreads();
  for (u32 i = me; i < n; i += tile_threads)
    atomicAdd(&tile.counts[tile.bucket_of[i]], 1u);
  __syncthreads();

  u32 own[buckets_each] = {};
  u32 begins[buckets_each];
  u32 ends[buckets_each];
  u32 all;

  if (first_bucket < n_buckets)
  {
    uint4 its = *counts;

    own[0] = its.x;
    own[1] = its.y;
    own[2] = its.z;
    own[3] = its.w;
  }

  u32 sum = sum_before<tile_threads>(own[0] + own[1] + own[2] + own[3], warp_sums, &all);

#pragma unroll
  for (u32 k = 0; k < buckets_each; k++)
  {
    begins[k] = sum;
    sum += own[k];
    ends[k] = sum;
    if (own[k] > heavy_rows)
      heavy[atomicAdd(&n_heavy, 1u)] = first_bucket + k;
  }
  if (first_bucket < n_buckets)
  {
    uint4 *parts = reinterpret_cast<uint4 *>(buckets.parts + u64{blockIdx.x} * n_buckets) + me;
    auto part = [&](u32 k) { return is_told | begins[k] | ends[k] << 16; };
    auto begin = [&](u32 k) { return begins[k] | (own[k] > heavy_rows ? is_heavy : 0); };

    *parts = make_uint4(part(0), part(1), part(2), part(3));
    *counts = make_uint4(begin(0), begin(1), begin(2), begin(3));
  }
  __syncthreads();

  // As many rows at a time as there are threads, each brought to its place among these; and large
  // parts by a warp each.
#pragma unroll 1
  for (u32 first = 0; first < n; first += tile_threads)
  {
    u32 i = first + me;
    u32 b = i < n ? tile.bucket_of[i] : 0;
    u32 begin = tile.counts[b];
    bool in = i < n && (begin & is_heavy) == 0;
    u32 place = begin;

    __syncthreads();
    if (in)
      tile.places[atomicAdd(&tile.counts[b], 1u)] = static_cast<uint16_t>(i);
    __syncthreads();
    if (in)
      for (u32 p = begin; p < tile.counts[b]; p++)
        place += tile.places[p] < i;
    __syncthreads();
    if (in)
      tile.places[place] = static_cast<uint16_t>(i);
  }
#pragma unroll 1
  for (u32 h = me / 32; h < n_heavy; h += tile_threads / 32)
  {
    u32 b = heavy[h];
    u32 at = tile.counts[b] & ~is_heavy;

#pragma unroll 4
    for (u32 i = lane; i - lane < n; i += 32)
    {
      bool in = i < n && tile.bucket_of[i] == b;
      u32 peers = __ballot_sync(~0u, in);

      if (in)
        tile.places[at + static_cast<u32>(__popc(peers & ((1u << lane) - 1)))] = static_cast<uint16_t>(i);
      at += static_cast<u32>(__popc(peers));
    }
  }
  __syncthreads();

  // No earlier, or the next kernel's blocks crowd where there are no tiles.
  let_next_begin();
  for (u32 p = me; p < n; p += tile_threads)
  {
    u32 i = tile.places[p];

    buckets.values[base + p] = tile.values[i] | i;
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
  buckets.most_queued = n_rows / part_rows + n_rows / capacity;
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
  buckets.codes = carve.take<u8>(n_bytes);
  buckets.splitters = carve.take<u64>(u64{n_levels} * buckets.n_buckets);
  buckets.turns = carve.take<u32>(buckets.n_buckets);
  buckets.many = carve.take<uint16_t>(buckets.n_buckets / many_splitters + 1);
  buckets.n_many = carve.take<u32>(1);
  buckets.parts = carve.take<u32>(u64{most_tiles} * buckets.n_buckets);
  buckets.queued = carve.take<QueuedPart>(buckets.most_queued);
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
  launch_next(limits.can_overlap, fill_tiles, buckets.n_tiles + 1, tile_threads, layout.bytes, stream, keys,
              n_rows, prefix, buckets, layout, state, told);
}

} // namespace gpusort
