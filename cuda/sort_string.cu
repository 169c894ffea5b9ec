/*-------------------------------------------------------------------------
 *
 * sort_string.cu
 *	  The engine for keys of any length.
 *
 * The scheme is Deshpande and Narayanan's ("Can GPUs sort strings
 * efficiently?", HiPC 2013) on a modern radix sort, with three additions.
 *
 * Rounds
 *	  A segment is a run of rows, neighbours in the order so far, whose keys
 *	  agree in all bytes looked at: `depth` of them, a number of each segment.
 *	  A round sorts all live rows by one 64-bit word: from the top, the
 *	  segment's number in as many bits as the last number needs, the next bits
 *	  of the key, zeros where it has ended, and in 3 bits how many whole bytes of
 *	  the key there are.  That last field orders "ab" before "ab\0", whose
 *	  words are otherwise the same.  The last byte may be there in part: its
 *	  upper bits separate rows, but depth counts whole bytes.  The sort is
 *	  stable and starts from the order of appending, which equal keys so keep.
 *
 *	  Afterwards rows with equal words form the new segments.  A row leaves
 *	  when its segment is a singleton or its key has ended within the word (then
 *	  the whole segment is equal): its rank is known, because rows move only
 *	  within their segment, and a segment's ranks (`slot`) never change.
 *
 * Small segments
 *	  Segments of up to small_rows rows leave at once: one kernel sorts them to
 *	  the end in place of many rounds, whose fixed costs would dominate.  A
 *	  block takes a window of the sorted array, one row a thread, and of it the
 *	  segments that begin so early (in its first `quota` rows) that they end
 *	  within it.  In a loop of its own each thread loads its key's next 8 bytes
 *	  and counts the rows of its segment that are less, and the equal ones
 *	  before it; this gives it a new place and a new, smaller segment.
 *
 * Shared bytes
 *	  Rows of one segment often share far more than the word (directories,
 *	  hosts, templates).  After each round the rows of every segment are
 *	  compared with its first one over up to max_skip bytes, and the segment's
 *	  depth advances by the least agreement.  That costs one pass over the live
 *	  rows; a round costs ten.  The prefix of all keys is known already.
 *
 * Memory
 *	  Per row two words, two row numbers, two slots, a segment number, a scan
 *	  value and a category: 45 bytes, laid out by Workspace.  Everything is
 *	  sized for the first round, nothing is allocated later, and the host
 *	  waits for the device once a round, to learn how many rows live on.
 *
 *-------------------------------------------------------------------------
 */
#include "sort_string.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

// The largest segments that sort_small finishes.  It compares all rows of a
// segment with each other; a round costs a fixed time besides that for each row,
// so that larger ones pay where few rows are left.
constexpr u32 min_small_rows = 64;
constexpr u32 max_small_rows = 128;
constexpr u32 few_rows = 1000000;

constexpr u32 word_bits = 64;
constexpr u32 count_bits = 3;
constexpr u32 max_chars = 7;
constexpr u32 max_skip = 64;

enum Category : u8
{
  finished, // its rank is known and written
  small,    // of a segment for sort_small
  large,    // goes on to the next round
  large_head
};

// What a round works with: its words have, from the lowest bit, the count, the
// bits of the key, of which `chars` are whole bytes, and the segment's number.
struct Shape
{
  u32 key_bits;
  u32 chars;
  u32 small_rows; // larger segments go on to the next round

  __device__ u32 segment_of(u64 word) const
  {
    return static_cast<u32>(word >> 1 >> (key_bits + count_bits - 1));
  }
};

// A segment's state: its rows agree in depth + skip bytes.
struct Segments
{
  u32 *depth;
  u32 *skip;
  u32 *head; // its first row's place among the live ones
};

struct Workspace
{
  u64 *words[2];
  u32 *rows[2];
  u32 *slots[2];
  u32 *segment;
  u64 *scanned;
  u8 *category;
  Segments segments[2];
  void *temp;
  size_t temp_bytes;
};

// In the scan's sums the number of live rows is in the upper half, that of
// segments in the lower one.
struct CountLarge
{
  __host__ __device__ u64 operator()(u8 category) const
  {
    return category == large_head ? u64{1} << 32 | 1 : category == large ? u64{1} << 32 : 0;
  }
};

using LargeCounts = thrust::transform_iterator<CountLarge, const u8 *>;

Workspace carve_workspace(Carver &carve, u32 n_rows)
{
  Workspace space;
  u64 max_segments = u64{n_rows} / (min_small_rows + 1) + 1;
  size_t sort_bytes = 0;
  size_t scan_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    space.words[i] = carve.take<u64>(n_rows);
    space.rows[i] = carve.take<u32>(n_rows);
    space.slots[i] = carve.take<u32>(n_rows);
    space.segments[i].depth = carve.take<u32>(max_segments);
    space.segments[i].skip = carve.take<u32>(max_segments);
    space.segments[i].head = carve.take<u32>(max_segments);
  }
  space.segment = carve.take<u32>(n_rows);
  space.scanned = carve.take<u64>(n_rows);
  space.category = carve.take<u8>(n_rows);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, scan_bytes, LargeCounts(space.category, CountLarge()),
                                            space.scanned, n_rows));
  space.temp_bytes = std::max(sort_bytes, scan_bytes);
  space.temp = carve.take<char>(space.temp_bytes);
  return space;
}

__global__ void first_segment(Segments segments, u32 prefix)
{
  segments.depth[0] = prefix;
  segments.skip[0] = 0;
  segments.head[0] = 0;
}

// The words of the live rows.  In the first round all rows live, in order.
template <bool first_round>
__global__ void __launch_bounds__(threads) make_words(const KeyRef *keys, u32 live, const u32 *segment,
                                                      Segments segments, Shape shape, u32 *rows, u64 *words)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= live)
    return;

  u32 row = first_round ? static_cast<u32>(i) : rows[i];
  u32 of = first_round ? 0 : segment[i];
  u32 depth = segments.depth[of] + segments.skip[of];
  KeyRef key = load_key(keys, row);
  u32 left = key.length - depth;
  u64 bits = load_word(key.address + depth, left) >> (64 - shape.key_bits);

  if (first_round)
    rows[i] = row;
  words[i] = static_cast<u64>(of) << (shape.key_bits + count_bits - 1) << 1 | bits << count_bits |
             min(left, shape.chars);
}

// The first place in (low, at] from which on words equal the one at `at`; words
// of a segment are neighbours.
__device__ __forceinline__ u32 segment_start(const u64 *words, u32 low, u32 at, u64 word)
{
  while (low < at)
  {
    u32 middle = low + (at - low) / 2;

    if (words[middle] == word)
      at = middle;
    else
      low = middle + 1;
  }
  return at;
}

template <bool first_round>
__global__ void __launch_bounds__(threads) classify(const u64 *words, u32 live, Shape shape, const u32 *rows,
                                                    const u32 *slots, u8 *category, u32 *order, u8 *tie)
{
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;

  if (at >= live)
    return;

  u32 i = static_cast<u32>(at);
  u64 word = words[i];
  bool like_previous = i > 0 && words[i - 1] == word;
  bool like_next = i + 1 < live && words[i + 1] == word;
  bool ended = (word & ((1 << count_bits) - 1)) < shape.chars;

  if (ended || (!like_previous && !like_next))
  {
    u32 slot = first_round ? i : slots[i];

    order[slot] = rows[i];
    tie[slot] = like_previous;
    category[i] = finished;
    return;
  }

  bool is_large = i >= shape.small_rows && words[i - shape.small_rows] == word;

  if (!is_large)
  {
    u32 start = segment_start(words, i >= shape.small_rows ? i - shape.small_rows + 1 : 0, i, word);

    is_large = live - start > shape.small_rows && words[start + shape.small_rows] == word;
  }
  category[i] = !is_large ? small : like_previous ? large : large_head;
}

// Sorts small segments to the end; see the head of this file.
template <bool first_round>
__global__ void __launch_bounds__(threads)
    sort_small(const KeyRef *keys, const u64 *words, u32 live, Shape shape, Segments segments,
               const u32 *rows, const u32 *slots, const u8 *category, u32 *order, u8 *tie)
{
  __shared__ u64 window[threads];
  __shared__ u8 window_count[threads];
  u32 quota = threads - shape.small_rows;
  u64 base = u64{blockIdx.x} * quota;
  u32 place = threadIdx.x;
  bool unsettled = base + place < live && category[base + place] == small;

  if (!__syncthreads_or(unsettled))
    return;

  // Words of rows past the end are never compared with: no segment there.
  u64 word = base + place < live ? words[base + place] : 0;
  bool begun_before = base > 0 && words[base - 1] == word;

  window[place] = word;
  window_count[place] = unsettled;
  __syncthreads();

  u32 low = 0;
  u32 high = 0;

  if (unsettled)
  {
    low = segment_start(window, place >= shape.small_rows ? place - shape.small_rows + 1 : 0, place, word);
    high = place + 1;
    while (high < threads && window[high] == word && window_count[high])
      high++;
    unsettled = low < quota && !(low == 0 && begun_before);
  }
  __syncthreads();

  bool mine = unsettled;
  bool equal_before = false;
  u32 row = 0;
  u32 depth = 0;
  KeyRef key = {};

  if (mine)
  {
    u32 of = shape.segment_of(word);

    row = rows[base + place];
    key = load_key(keys, row);
    depth = segments.depth[of] + segments.skip[of] + shape.chars;
  }

  while (__syncthreads_or(unsettled))
  {
    u64 own = 0;
    u32 count = 0;

    if (unsettled)
    {
      u32 left = key.length - depth;

      own = load_word(key.address + depth, left);
      count = min(left, 8u);
      window[place] = own;
      window_count[place] = static_cast<u8>(count);
    }
    __syncthreads();
    if (unsettled)
    {
      u32 less = 0;
      u32 equal = 0;
      u32 before = 0;

      for (u32 j = low; j < high; j++)
      {
        u64 other = window[j];
        u32 other_count = window_count[j];
        bool same = other == own && other_count == count;

        less += other < own || (other == own && other_count < count);
        equal += same;
        before += same && j < place;
      }
      low += less;
      high = low + equal;
      place = low + before;
      depth += 8;
      if (equal == 1 || count < 8)
      {
        equal_before = before > 0;
        unsettled = false;
      }
    }
  }

  if (mine)
  {
    u32 slot = first_round ? static_cast<u32>(base) + place : slots[base + place];

    order[slot] = row;
    tie[slot] = equal_before;
  }
}

// Moves the rows of large segments together for the next round.
template <bool first_round>
__global__ void __launch_bounds__(threads)
    compact(const u64 *words, u32 live, Shape shape, const u8 *category, const u64 *scanned, Segments from,
            const u32 *rows, const u32 *slots, u32 *new_rows, u32 *new_slots, u32 *new_segment, Segments to,
            RoundCounts *counts)
{
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;

  if (at >= live)
    return;

  u32 i = static_cast<u32>(at);
  u8 what = category[i];
  u64 sums = scanned[i];

  if (i == live - 1)
  {
    u64 total = sums + CountLarge()(what);

    counts->live = static_cast<u32>(total >> 32);
    counts->segments = static_cast<u32>(total);
  }
  if (what != large && what != large_head)
    return;

  u32 place = static_cast<u32>(sums >> 32);
  u32 segment = static_cast<u32>(sums) - (what == large ? 1 : 0);

  new_rows[place] = rows[i];
  new_slots[place] = first_round ? i : slots[i];
  new_segment[place] = segment;
  if (what == large_head)
  {
    u32 of = shape.segment_of(words[i]);

    to.depth[segment] = from.depth[of] + from.skip[of] + shape.chars;
    to.skip[segment] = max_skip;
    to.head[segment] = place;
  }
}

// Lowers each segment's skip to the bytes that all of its rows share.
__global__ void __launch_bounds__(threads)
    find_shared(const KeyRef *keys, u32 live, const u32 *rows, const u32 *segment, Segments segments)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;
  u32 of = i < live ? segment[i] : ~0u;
  u32 shared = max_skip;
  u32 limit = 0; // what the segment's skip was when last looked at

  if (i < live)
  {
    u32 depth = segments.depth[of];

    limit = *const_cast<volatile u32 *>(&segments.skip[of]);

    if (limit > 0)
    {
      KeyRef mine = load_key(keys, rows[i]);
      KeyRef head = load_key(keys, rows[segments.head[of]]);

      shared = min(limit, min(mine.length, head.length) - depth);
      for (u32 at = 0; at < shared; at += 8)
      {
        u64 diff = load_word(mine.address + depth + at, mine.length - depth - at) ^
                   load_word(head.address + depth + at, head.length - depth - at);

        if (diff != 0)
          shared = min(shared, at + __clzll(static_cast<long long>(diff)) / 8);
      }
    }
    else
      shared = 0;
  }

  // Large segments fill most warps; one atomic then does for 32 rows.
  u32 first = __shfl_sync(~0u, of, 0);

  if (__all_sync(~0u, of == first))
  {
    for (u32 step = 16; step > 0; step >>= 1)
      shared = min(shared, __shfl_xor_sync(~0u, shared, step));
    if (threadIdx.x % 32 == 0 && shared < limit)
      atomicMin(&segments.skip[of], shared);
  }
  else if (shared < limit)
    atomicMin(&segments.skip[of], shared);
}

u32 bits_of(u32 value)
{
  return value == 0 ? 0 : 32 - static_cast<u32>(__builtin_clz(value));
}

Shape make_shape(const RoundCounts &in)
{
  Shape shape;

  shape.key_bits = word_bits - count_bits - bits_of(in.segments - 1);
  shape.chars = std::min(max_chars, shape.key_bits / 8);
  shape.small_rows = in.live < few_rows ? max_small_rows : min_small_rows;
  return shape;
}

template <bool first_round>
RoundCounts run_round(const SortContext &context, const KeyRef *keys, RoundCounts in, Workspace &space,
                      u32 *order, u8 *tie)
{
  cudaStream_t stream = context.stream;
  u32 live = in.live;
  u32 blocks = blocks_for(live, threads);
  Shape shape = make_shape(in);
  Segments segments = space.segments[0];
  cub::DoubleBuffer<u64> words(space.words[0], space.words[1]);
  cub::DoubleBuffer<u32> rows(space.rows[0], space.rows[1]);
  size_t temp_bytes = space.temp_bytes;

  make_words<first_round><<<blocks, threads, 0, stream>>>(keys, live, space.segment, segments, shape,
                                                          rows.Current(), words.Current());
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(
      cub::DeviceRadixSort::SortPairs(space.temp, temp_bytes, words, rows, live, 0, word_bits, stream));
  classify<first_round><<<blocks, threads, 0, stream>>>(words.Current(), live, shape, rows.Current(),
                                                        space.slots[0], space.category, order, tie);
  GS_CUDA_LAUNCHED();
  temp_bytes = space.temp_bytes;
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(space.temp, temp_bytes, LargeCounts(space.category, CountLarge()),
                                            space.scanned, live, stream));
  compact<first_round><<<blocks, threads, 0, stream>>>(
      words.Current(), live, shape, space.category, space.scanned, segments, rows.Current(), space.slots[0],
      rows.Alternate(), space.slots[1], space.segment, space.segments[1], context.counts);
  GS_CUDA_LAUNCHED();

  // The counts are on their way while the small segments are sorted.
  context.event.record(stream);
  sort_small<first_round><<<blocks_for(live, threads - shape.small_rows), threads, 0, stream>>>(
      keys, words.Current(), live, shape, segments, rows.Current(), space.slots[0], space.category, order,
      tie);
  GS_CUDA_LAUNCHED();
  context.event.wait();

  space.rows[0] = rows.Alternate();
  space.rows[1] = rows.Current();
  std::swap(space.slots[0], space.slots[1]);
  std::swap(space.segments[0], space.segments[1]);
  return *context.counts;
}

} // namespace

u64 sort_string_workspace(u32 n_rows)
{
  Carver carve;

  carve_workspace(carve, n_rows);
  return carve.bytes();
}

u32 sort_string(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix, void *workspace,
                u32 *order, u8 *tie)
{
  Carver carve(workspace);
  Workspace space = carve_workspace(carve, n_rows);
  u32 rounds = 1;

  first_segment<<<1, 1, 0, context.stream>>>(space.segments[0], prefix);
  GS_CUDA_LAUNCHED();

  RoundCounts counts = run_round<true>(context, keys, {n_rows, 1}, space, order, tie);

  while (counts.live > 0)
  {
    context.check_cancelled();
    find_shared<<<blocks_for(counts.live, threads), threads, 0, context.stream>>>(
        keys, counts.live, space.rows[0], space.segment, space.segments[0]);
    GS_CUDA_LAUNCHED();
    counts = run_round<false>(context, keys, counts, space, order, tie);
    rounds++;
  }
  return rounds;
}

} // namespace gpusort
