/*-------------------------------------------------------------------------
 *
 * radix2013.cu
 *	  String sort by radix sorts of prefixes, after Deshpande and Narayanan.
 *
 * A. Deshpande, P. J. Narayanan: Can GPUs Sort Strings Efficiently?  HiPC
 * 2013.  This is the paper's Algorithm 1 on today's CUB, and what the gain of
 * our own engine is measured against.  Line numbers below are those of
 * Algorithm 1.
 *
 * A round sorts pairs of an 8-byte key K and a row number I (line 10).  K has
 * the number of the row's segment, the rows that agree in all characters before,
 * in its upper bytes, and the next characters below it.  Then
 *	  - singletons are marked, K differing from both neighbours, and their rows
 *		written to the output (line 11; section III.A);
 *	  - an exclusive scan of the marks tells where the others go (12), a scatter
 *		puts them there (13);
 *	  - a scan over the places where K changes numbers the segments (15);
 *	  - their largest number decides how many bytes segments take in the next
 *		K, and how many are left for characters (16; section III.B), which are
 *		loaded and packed (17, 18).
 *
 * Options: "fixed" gives segments 4 bytes in every K, also the first (table IV,
 * whose numbers of rounds show this); "keep" leaves singletons where they are
 * (table III).  The paper's figures with a variable number take one byte at
 * least from the second round on, as does this.
 *
 * What differs from the paper
 *	  Characters are loaded by two aligned words instead of bytewise (a step of
 *	  the authors' own later work), row numbers stand in place of offsets into
 *	  the strings, and the host waits once a round.
 *
 *	  There, a string ends with a NUL, and one whose K holds it is finished:
 *	  rows with the same K are equal.  Here NUL may be data.  A key is taken to
 *	  have zeros behind its end, and is finished when its end and one zero
 *	  more have been in K; lengths are looked at only where K holds a zero byte.
 *	  As long as all rows of the same K have ended with the same length or have
 *	  not ended, this is just the paper's scheme.  Where not, "a" stands next to
 *	  "a\0": then the sort begins anew, with the rows in order of their lengths.
 *	  Radix sorts are stable, so the rows of a segment always stay in this order,
 *	  and those that have ended come first, in their final one.
 *
 * Memory
 *	  Per row two words, two row numbers, two places in the output, a segment,
 *	  a sum and a mark: 41 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 word_bytes = 8;
constexpr u32 fixed_segment_bytes = 4;

// Of what the current words are made: characters from `from` to `to` of their
// keys, below the segment's number.
struct Window
{
  u32 from;
  u32 to;
};

struct IsLive
{
  __host__ __device__ u32 operator()(u8 live) const
  {
    return live;
  }
};

using LiveFlags = thrust::transform_iterator<IsLive, const u8 *>;

// Whether a segment begins at a place, of the first one no matter.
struct BeginsSegment
{
  const u64 *words;

  __host__ __device__ u32 operator()(u64 i) const
  {
    return i > 0 && words[i] != words[i - 1];
  }
};

using SegmentFlags = thrust::transform_iterator<BeginsSegment, thrust::counting_iterator<u64>>;

SegmentFlags segment_flags(const u64 *words)
{
  return SegmentFlags(thrust::counting_iterator<u64>(0), BeginsSegment{words});
}

struct Workspace
{
  u64 *words[2];
  u32 *rows[2];
  u32 *slots[2];
  u32 *segment;
  u32 *place;
  u8 *live;
  Window *windows[2]; // of this round, of the next
  RoundCounts *counts;
  void *temp;
  size_t temp_bytes;
};

Workspace alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace space;
  size_t sort_bytes = 0;
  size_t length_bytes = 0;
  size_t scan_bytes = 0;
  size_t segment_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> lengths;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    space.words[i] = storage.alias<u64>(n_rows);
    space.rows[i] = storage.alias<u32>(n_rows);
    space.slots[i] = storage.alias<u32>(n_rows);
    space.windows[i] = storage.alias<Window>(1);
  }
  space.segment = storage.alias<u32>(n_rows);
  space.place = storage.alias<u32>(n_rows);
  space.live = storage.alias<u8>(n_rows);
  space.counts = storage.alias<RoundCounts>(1);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, length_bytes, lengths, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, scan_bytes, LiveFlags(space.live, IsLive()), space.place,
                                            n_rows));
  GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(nullptr, segment_bytes, segment_flags(space.words[0]),
                                            space.segment, n_rows));
  space.temp_bytes = std::max({sort_bytes, length_bytes, scan_bytes, segment_bytes});
  space.temp = storage.alias<char>(space.temp_bytes);
  return space;
}

__device__ __forceinline__ bool has_zero_byte(u64 word)
{
  return ((word - 0x0101010101010101) & ~word & 0x8080808080808080) != 0;
}

// What there is of a sorted row: its word, and its length where its key has
// ended within the window, else no_end.
struct SortedRow
{
  static constexpr u32 no_end = ~0u;

  u64 word;
  u32 ended;
};

__device__ __forceinline__ SortedRow load_sorted(const KeyRef *keys, const u64 *words, const u32 *rows,
                                                 Window window, u64 i)
{
  SortedRow row = {words[i], SortedRow::no_end};
  u32 segment_bits = (word_bytes - (window.to - window.from)) * 8;

  // A segment's bytes are no characters.
  if (has_zero_byte(segment_bits == 0 ? row.word : row.word | ~u64{0} << (64 - segment_bits)))
  {
    u32 length = load_key(keys, rows[i]).length;

    if (length < window.to)
      row.ended = length;
  }
  return row;
}

__global__ void __launch_bounds__(threads) number_rows(u32 n_rows, u32 *rows, u32 *slots)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    rows[i] = slots[i] = static_cast<u32>(i);
}

__global__ void __launch_bounds__(threads) load_lengths(const KeyRef *keys, u32 n_rows, u32 *lengths)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    lengths[i] = load_key(keys, static_cast<u32>(i)).length;
}

__global__ void first_window(u32 chars, Window *window)
{
  *window = {0, chars};
}

// Lines 4 and 8: the first words.
__global__ void __launch_bounds__(threads)
    first_words(const KeyRef *keys, u32 n_rows, u32 chars, const u32 *rows, u64 *words)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  KeyRef key = load_key(keys, rows[i]);

  words[i] = load_word(key.address, key.length) >> (word_bytes - chars) * 8;
}

// Line 11: which rows live on; the others' ranks are known.  With keep they
// are written at the end, and it only matters whether any row lives.
template <bool keep>
__global__ void __launch_bounds__(threads)
    mark_singletons(const KeyRef *keys, const u64 *words, const u32 *rows, const u32 *slots, u32 n,
                    const Window *window, bool by_length, u8 *live, RoundCounts *counts, u32 *order, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;
  bool lives = false;

  if (i < n)
  {
    SortedRow row = load_sorted(keys, words, rows, *window, i);
    bool like_last = i > 0 && words[i - 1] == row.word;
    bool like_next = i + 1 < n && words[i + 1] == row.word;
    u32 last = like_last ? load_sorted(keys, words, rows, *window, i - 1).ended : SortedRow::no_end;

    if (like_last && last != row.ended && !by_length)
      counts->again = 1;
    lives = row.ended == SortedRow::no_end && ((like_last && last == SortedRow::no_end) || like_next);
    if (!keep)
    {
      live[i] = lives;
      if (!lives)
      {
        u32 slot = slots[i];

        order[slot] = rows[i];
        tie[slot] = like_last && row.ended != SortedRow::no_end && last == row.ended;
      }
    }
  }
  if (keep && __syncthreads_or(lives) && threadIdx.x == 0)
    counts->live = 1;
}

// Line 13: what lives moves together, in its order.
__global__ void __launch_bounds__(threads)
    scatter(const u64 *words, const u32 *rows, const u32 *slots, const u8 *live, const u32 *place, u32 n,
            u64 *to_words, u32 *to_rows, u32 *to_slots, RoundCounts *counts)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u32 to = place[i];

  if (live[i])
  {
    to_words[to] = words[i];
    to_rows[to] = rows[i];
    to_slots[to] = slots[i];
  }
  if (i + 1 == n)
    counts->live = to + live[i];
}

// Lines 16 to 18: the next words, over the old ones.
__global__ void __launch_bounds__(threads)
    pack_words(const KeyRef *keys, const u32 *rows, const u32 *segment, u32 n, bool fixed,
               const Window *window, Window *next, u64 *words)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u32 offset = window->to;
  u32 segment_bytes = fixed ? fixed_segment_bytes : (32 - __clz(segment[n - 1] | 1) + 7) / 8;
  KeyRef key = load_key(keys, rows[i]);
  u64 chars = load_word(key.address + offset, key.length > offset ? key.length - offset : 0);

  words[i] = static_cast<u64>(segment[i]) << (word_bytes - segment_bytes) * 8 | chars >> segment_bytes * 8;
  if (i == 0)
    *next = {offset, offset + word_bytes - segment_bytes};
}

__global__ void __launch_bounds__(threads) write_kept(const KeyRef *keys, const u64 *words, const u32 *rows,
                                                      u32 n, const Window *window, u32 *order, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;
  order[i] = rows[i];
  tie[i] = i > 0 && words[i] == words[i - 1] &&
           load_sorted(keys, words, rows, *window, i).ended ==
               load_sorted(keys, words, rows, *window, i - 1).ended;
}

// One attempt, with the rows in their own order or in that of their lengths.
class Attempt
{
public:
  Attempt(const SortContext &context, Radix2013Options options, const KeyRef *keys, u32 n_rows,
          const Workspace &space, bool by_length)
      : context(context), stream(context.stream), options(options), keys(keys), n(n_rows), space(space),
        words(space.words[0], space.words[1]), rows(space.rows[0], space.rows[1]),
        slots(space.slots[0], space.slots[1]), by_length(by_length)
  {
  }

  // False where lengths matter that the rows are not in order of.
  bool run(u32 *order, u8 *tie)
  {
    begin();
    for (;;)
    {
      size_t temp_bytes = space.temp_bytes;

      rounds++;
      GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(space.temp, temp_bytes, words, rows, n, 0, 64, stream));
      if (options.keep)
        mark<true>(order, tie);
      else
      {
        mark<false>(order, tie);
        compact();
      }
      GS_CUDA_TRY(cudaMemcpyAsync(context.counts, space.counts, sizeof *space.counts, cudaMemcpyDeviceToHost,
                                  stream));
      context.wait();
      if (context.counts->again != 0)
        return false;
      if (context.counts->live == 0)
        break;
      context.check_cancelled();
      if (!options.keep)
      {
        words.selector ^= 1;
        rows.selector ^= 1;
        slots.selector ^= 1;
        n = context.counts->live;
      }
      next_words();
    }
    if (options.keep)
    {
      write_kept<<<blocks_for(n, threads), threads, 0, stream>>>(keys, words.Current(), rows.Current(), n,
                                                                 window(), order, tie);
      GS_CUDA_LAUNCHED();
    }
    return true;
  }

  u32 rounds = 0;

private:
  const Window *window() const
  {
    return space.windows[rounds % 2];
  }
  Window *next_window() const
  {
    return space.windows[(rounds + 1) % 2];
  }

  void begin()
  {
    u32 chars = options.fixed ? word_bytes - fixed_segment_bytes : word_bytes;
    u32 blocks = blocks_for(n, threads);

    number_rows<<<blocks, threads, 0, stream>>>(n, rows.Current(), slots.Current());
    GS_CUDA_LAUNCHED();
    if (by_length)
    {
      cub::DoubleBuffer<u32> lengths(reinterpret_cast<u32 *>(words.Current()),
                                     reinterpret_cast<u32 *>(words.Alternate()));
      size_t temp_bytes = space.temp_bytes;

      load_lengths<<<blocks, threads, 0, stream>>>(keys, n, lengths.Current());
      GS_CUDA_LAUNCHED();
      GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(space.temp, temp_bytes, lengths, rows, n, 0, 32, stream));
    }
    first_window<<<1, 1, 0, stream>>>(chars, next_window());
    GS_CUDA_LAUNCHED();
    first_words<<<blocks, threads, 0, stream>>>(keys, n, chars, rows.Current(), words.Current());
    GS_CUDA_LAUNCHED();
  }

  template <bool keep>
  void mark(u32 *order, u8 *tie)
  {
    GS_CUDA_TRY(cudaMemsetAsync(space.counts, 0, sizeof *space.counts, stream));
    mark_singletons<keep><<<blocks_for(n, threads), threads, 0, stream>>>(
        keys, words.Current(), rows.Current(), slots.Current(), n, window(), by_length, space.live,
        space.counts, order, tie);
    GS_CUDA_LAUNCHED();
  }

  // Lines 12 and 13.
  void compact()
  {
    size_t temp_bytes = space.temp_bytes;

    GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(space.temp, temp_bytes, LiveFlags(space.live, IsLive()),
                                              space.place, n, stream));
    scatter<<<blocks_for(n, threads), threads, 0, stream>>>(
        words.Current(), rows.Current(), slots.Current(), space.live, space.place, n, words.Alternate(),
        rows.Alternate(), slots.Alternate(), space.counts);
    GS_CUDA_LAUNCHED();
  }

  // Lines 15 to 18.
  void next_words()
  {
    size_t temp_bytes = space.temp_bytes;

    GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(space.temp, temp_bytes, segment_flags(words.Current()),
                                              space.segment, n, stream));
    pack_words<<<blocks_for(n, threads), threads, 0, stream>>>(
        keys, rows.Current(), space.segment, n, options.fixed, window(), next_window(), words.Current());
    GS_CUDA_LAUNCHED();
  }

  const SortContext &context;
  cudaStream_t stream;
  Radix2013Options options;
  const KeyRef *keys;
  u32 n; // rows that are sorted
  const Workspace &space;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> rows;
  cub::DoubleBuffer<u32> slots;
  bool by_length;
};

} // namespace

u64 radix2013_workspace(u32 n_rows)
{
  TempStorage storage;

  alias_workspace(storage, n_rows);
  return storage.bytes();
}

u32 radix2013(const SortContext &context, Radix2013Options options, const KeyRef *keys, u32 n_rows,
              void *workspace, u32 *order, u8 *tie)
{
  TempStorage storage(workspace);
  Workspace space = alias_workspace(storage, n_rows);
  Attempt plain(context, options, keys, n_rows, space, false);

  if (plain.run(order, tie))
    return plain.rounds;

  Attempt by_length(context, options, keys, n_rows, space, true);

  by_length.run(order, tie);
  return plain.rounds + by_length.rounds;
}

} // namespace gpusort
