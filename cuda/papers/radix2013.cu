/*-------------------------------------------------------------------------
 *
 * radix2013.cu
 *	  String sort by radix sorts of prefixes, after Deshpande and Narayanan.
 *
 * A. Deshpande, P. J. Narayanan: Can GPUs Sort Strings Efficiently?  HiPC
 * 2013.  This is the paper's Algorithm 1 on today's CUB.  The gain of our own
 * engine is measured against it.  Line numbers below are those of Algorithm 1.
 *
 * A round sorts pairs of an 8-byte key K and a row number I (line 10).  The upper
 * bytes of K hold the number of the row's segment: the rows that agree in all
 * characters before.  The lower bytes hold the next characters.  Then
 *	  - singletons are marked: their K differs from those of both neighbours.
 *		Their rows are written to the output (line 11; section III.A);
 *	  - an exclusive scan of the marks computes where the other rows go (12), and a
 *		scatter puts them there (13);
 *	  - a scan over the places where K changes numbers the segments (15);
 *	  - the largest segment number decides how many bytes segments take in the next
 *		K, and how many are left for characters (16; section III.B), which are
 *		loaded and packed (17, 18).
 *
 * In the paper's figures segments take at least one byte of K from the second round on;
 * so they do here.
 *
 * What differs from the paper
 *	  Characters are loaded by two aligned words instead of bytewise (a step of
 *	  the authors' own later work), row numbers stand in place of offsets into
 *	  the strings, and the host waits once a round.
 *
 *	  In the paper a string ends with a NUL, and a string whose K holds the NUL is
 *	  finished: rows with the same K are equal.  Here NUL may be data.  A key is
 *	  taken to have zeros behind its end, and is finished when its end and one zero
 *	  more have been in K.  Lengths are looked at only where K holds a zero byte.
 *	  As long as all rows of the same K have ended with the same length, or none of
 *	  them has ended, this is just the paper's scheme.  Otherwise "a" stands next to
 *	  "a\0": then the sort begins anew, with the rows in order of their lengths.
 *	  Radix sorts are stable, so the rows of a segment always stay in this order,
 *	  and those that have ended come first, in their final order.
 *
 * Memory
 *	  Per row two words, two row numbers, two ranks, a segment, a place and a mark:
 *	  41 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/functional.h>

#include <algorithm>
#include <utility>

#include "papers/prefix_words.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

// The counts of a round, which the device tells the host.
struct RoundResult
{
  u32 live;           // rows that are not finished
  u32 lengths_matter; // not 0: rows of the same K have ended with different lengths
};

// The rows of a round, in their current order.
struct LiveRows
{
  u64 *words;
  u32 *rows;
  u32 *ranks; // of the places: place i of the round has rank ranks[i] in the output
};

struct Workspace
{
  LiveRows live[2];
  u32 *segment;
  u32 *place;
  u8 *lives;
  Window *windows[2]; // of this round and of the next one
  RoundResult *result;
  void *temp;
  size_t temp_bytes;
};

Workspace alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace workspace;
  size_t sort_bytes = 0;
  size_t length_bytes = 0;
  size_t scan_bytes = 0;
  size_t segment_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> lengths;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    workspace.live[i] = {storage.alias<u64>(n_rows), storage.alias<u32>(n_rows), storage.alias<u32>(n_rows)};
    workspace.windows[i] = storage.alias<Window>(1);
  }
  workspace.segment = storage.alias<u32>(n_rows);
  workspace.place = storage.alias<u32>(n_rows);
  workspace.lives = storage.alias<u8>(n_rows);
  workspace.result = storage.alias<RoundResult>(1);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, length_bytes, lengths, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveScan(nullptr, scan_bytes, workspace.lives, workspace.place,
                                             thrust::plus<u32>(), u32{0}, n_rows));
  GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(nullptr, segment_bytes, segment_flags(workspace.live[0].words),
                                            workspace.segment, n_rows));
  workspace.temp_bytes = std::max({sort_bytes, length_bytes, scan_bytes, segment_bytes});
  workspace.temp = storage.alias<char>(workspace.temp_bytes);
  return workspace;
}

// A sorted row.
struct SortedRow
{
  static constexpr u32 not_ended = ~0u;

  u64 word;
  u32 end; // the length of its key where that has ended within the window
};

// The rows of a round after its sort.
struct SortedRows
{
  const KeyRef *keys; // of all rows, by number
  LiveRows live;
  u32 n;

  __device__ __forceinline__ SortedRow load(Window window, u64 i) const
  {
    SortedRow row = {live.words[i], SortedRow::not_ended};
    u32 segment_bits = (prefix_bytes - window.chars()) * 8;

    // The bytes of the segment are no characters.
    if (has_zero_byte(segment_bits == 0 ? row.word : row.word | ~u64{0} << (64 - segment_bits)))
    {
      u32 length = load_key(keys, live.rows[i]).length;

      if (length < window.to)
        row.end = length;
    }
    return row;
  }
};

__global__ void __launch_bounds__(threads) number_rows(u32 n_rows, u32 *rows, u32 *ranks)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    rows[i] = ranks[i] = static_cast<u32>(i);
}

__global__ void __launch_bounds__(threads) load_lengths(const KeyRef *keys, u32 n_rows, u32 *lengths)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n_rows)
    lengths[i] = load_key(keys, static_cast<u32>(i)).length;
}

// Lines 4 and 8: the first words.
__global__ void __launch_bounds__(threads)
    first_words(const KeyRef *keys, u32 n_rows, const u32 *rows, u64 *words, Window *window)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  KeyRef key = load_key(keys, rows[i]);

  words[i] = load_word(key.address, key.length);
  if (i == 0)
    *window = {0, prefix_bytes};
}

// Line 11: marks the rows that go on, and writes the others to the output.
__global__ void __launch_bounds__(threads)
    mark_singletons(SortedRows in, const Window *window, bool by_length, u8 *lives, RoundResult *result,
                    KeyOrder order)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= in.n)
    return;

  SortedRow row = in.load(*window, i);
  bool like_last = i > 0 && in.live.words[i - 1] == row.word;
  bool like_next = i + 1 < in.n && in.live.words[i + 1] == row.word;
  u32 last_end = like_last ? in.load(*window, i - 1).end : SortedRow::not_ended;
  bool goes_on =
      row.end == SortedRow::not_ended && ((like_last && last_end == SortedRow::not_ended) || like_next);

  if (like_last && last_end != row.end && !by_length)
    result->lengths_matter = 1;
  lives[i] = goes_on;
  if (!goes_on)
  {
    u32 rank = in.live.ranks[i];

    order.row[rank] = in.live.rows[i];
    order.tie[rank] = like_last && row.end != SortedRow::not_ended && last_end == row.end;
  }
}

// Line 13: moves the rows that go on together, in their order.
__global__ void __launch_bounds__(threads)
    scatter(LiveRows from, const u8 *lives, const u32 *place, u32 n, LiveRows to, RoundResult *result)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u32 p = place[i];

  if (lives[i])
  {
    to.words[p] = from.words[i];
    to.rows[p] = from.rows[i];
    to.ranks[p] = from.ranks[i];
  }
  if (i + 1 == n)
    result->live = p + lives[i];
}

// Lines 16 to 18: the next words, in place of the old ones.
__global__ void __launch_bounds__(threads)
    pack_words(SortedRows in, const u32 *segment, const Window *window, Window *next)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= in.n)
    return;

  u32 offset = window->to;
  u32 segment_bytes = (32 - __clz(segment[in.n - 1] | 1) + 7) / 8;
  KeyRef key = load_key(in.keys, in.live.rows[i]);
  u64 chars = load_word(key.address + offset, key.length > offset ? key.length - offset : 0);

  in.live.words[i] =
      static_cast<u64>(segment[i]) << (prefix_bytes - segment_bytes) * 8 | chars >> segment_bytes * 8;
  if (i == 0)
    *next = {offset, offset + prefix_bytes - segment_bytes};
}

// One attempt, with the rows in their own order or in that of their lengths.
class Attempt
{
public:
  Attempt(const SortContext &context, const OrderJob &job, const Workspace &workspace, bool by_length)
      : context(context), stream(context.stream), job(job), workspace(workspace), live(workspace.live[0]),
        spare(workspace.live[1]), n(job.n_rows), by_length(by_length)
  {
  }

  // False where rows must be in order of their lengths but are not.
  bool run()
  {
    begin();
    for (;;)
    {
      rounds++;
      sort_words();
      mark();
      compact();
      GS_CUDA_TRY(cudaMemcpyAsync(context.counts<RoundResult>(), workspace.result, sizeof(RoundResult),
                                  cudaMemcpyDeviceToHost, stream));
      context.wait();

      const RoundResult result = *context.counts<RoundResult>();

      if (result.lengths_matter != 0)
        return false;
      if (result.live == 0)
        return true;
      context.check_cancelled();
      std::swap(live, spare);
      n = result.live;
      next_words();
    }
  }

  u32 rounds = 0;

private:
  const Window *window() const
  {
    return workspace.windows[rounds % 2];
  }
  Window *next_window() const
  {
    return workspace.windows[(rounds + 1) % 2];
  }
  SortedRows sorted() const
  {
    return {job.keys, live, n};
  }

  void begin()
  {
    u32 blocks = blocks_for(n, threads);

    number_rows<<<blocks, threads, 0, stream>>>(n, live.rows, live.ranks);
    GS_CUDA_LAUNCHED();
    if (by_length)
    {
      cub::DoubleBuffer<u32> lengths(reinterpret_cast<u32 *>(live.words),
                                     reinterpret_cast<u32 *>(spare.words));

      load_lengths<<<blocks, threads, 0, stream>>>(job.keys, n, lengths.Current());
      GS_CUDA_LAUNCHED();
      sort_rows(lengths);
    }
    first_words<<<blocks, threads, 0, stream>>>(job.keys, n, live.rows, live.words, next_window());
    GS_CUDA_LAUNCHED();
  }

  // Sorts the rows by integers of one each.
  template <typename Key>
  void sort_rows(cub::DoubleBuffer<Key> &sort_keys)
  {
    cub::DoubleBuffer<u32> rows(live.rows, spare.rows);
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(workspace.temp, temp_bytes, sort_keys, rows, n, 0,
                                                static_cast<int>(sizeof(Key)) * 8, stream));
    live.rows = rows.Current();
    spare.rows = rows.Alternate();
  }

  // Line 10.
  void sort_words()
  {
    cub::DoubleBuffer<u64> words(live.words, spare.words);

    sort_rows(words);
    live.words = words.Current();
    spare.words = words.Alternate();
  }

  void mark()
  {
    GS_CUDA_TRY(cudaMemsetAsync(workspace.result, 0, sizeof(RoundResult), stream));
    mark_singletons<<<blocks_for(n, threads), threads, 0, stream>>>(
        sorted(), window(), by_length, workspace.lives, workspace.result, job.order);
    GS_CUDA_LAUNCHED();
  }

  // Lines 12 and 13.
  void compact()
  {
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceScan::ExclusiveScan(workspace.temp, temp_bytes, workspace.lives, workspace.place,
                                               thrust::plus<u32>(), u32{0}, n, stream));
    scatter<<<blocks_for(n, threads), threads, 0, stream>>>(live, workspace.lives, workspace.place, n, spare,
                                                            workspace.result);
    GS_CUDA_LAUNCHED();
  }

  // Lines 15 to 18.
  void next_words()
  {
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(workspace.temp, temp_bytes, segment_flags(live.words),
                                              workspace.segment, n, stream));
    pack_words<<<blocks_for(n, threads), threads, 0, stream>>>(sorted(), workspace.segment, window(),
                                                               next_window());
    GS_CUDA_LAUNCHED();
  }

  const SortContext &context;
  cudaStream_t stream;
  const OrderJob &job;
  const Workspace &workspace;
  LiveRows live;
  LiveRows spare;
  u32 n; // rows that are sorted
  bool by_length;
};

} // namespace

u64 radix2013_workspace(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, n_rows); });
}

u32 radix2013(const SortContext &context, const OrderJob &job)
{
  TempStorage storage(job.workspace);
  Workspace workspace = alias_workspace(storage, job.n_rows);
  Attempt plain(context, job, workspace, false);

  if (plain.run())
    return plain.rounds;

  Attempt by_length(context, job, workspace, true);

  by_length.run();
  return plain.rounds + by_length.rounds;
}

} // namespace gpusort
