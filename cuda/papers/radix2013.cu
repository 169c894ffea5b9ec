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
 *	  - the other rows are moved together (12 and 13: a scan of the marks and a scatter,
 *		which CUB has as one selection);
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
 *	  "a\0", which K cannot tell apart: then the sort is given up.
 *
 * Memory
 *	  Per row two words, two row numbers, two ranks, a segment and a mark: 37 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

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

  // All of these at once.
  auto iterator() const
  {
    return thrust::make_zip_iterator(thrust::make_tuple(words, rows, ranks));
  }
};

struct Workspace
{
  LiveRows live[2];
  u32 *segment;
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
  size_t select_bytes = 0;
  size_t segment_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    workspace.live[i] = {storage.alias<u64>(n_rows), storage.alias<u32>(n_rows), storage.alias<u32>(n_rows)};
    workspace.windows[i] = storage.alias<Window>(1);
  }
  workspace.segment = storage.alias<u32>(n_rows);
  workspace.lives = storage.alias<u8>(n_rows);
  workspace.result = storage.alias<RoundResult>(1);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, rows, n_rows));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, select_bytes, workspace.live[0].iterator(), workspace.lives,
                                         workspace.live[1].iterator(), workspace.segment, n_rows));
  GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(nullptr, segment_bytes, segment_flags(workspace.live[0].words),
                                            workspace.segment, n_rows));
  workspace.temp_bytes = std::max({sort_bytes, select_bytes, segment_bytes});
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

// Lines 4 and 8: the first words.
__global__ void __launch_bounds__(threads)
    first_words(const KeyRef *keys, u32 n_rows, LiveRows live, Window *window)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  KeyRef key = load_key(keys, static_cast<u32>(i));

  live.words[i] = load_word(key.address, key.length);
  live.rows[i] = live.ranks[i] = static_cast<u32>(i);
  if (i == 0)
    *window = {0, prefix_bytes};
}

// Line 11: marks the rows that go on, and writes the others to the output.
__global__ void __launch_bounds__(threads)
    mark_singletons(SortedRows in, const Window *window, u8 *lives, RoundResult *result, KeyOrder order)
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

  if (like_last && last_end != row.end)
    result->lengths_matter = 1;
  lives[i] = goes_on;
  if (!goes_on)
  {
    u32 rank = in.live.ranks[i];

    order.row[rank] = in.live.rows[i];
    order.tie[rank] = like_last && row.end != SortedRow::not_ended && last_end == row.end;
  }
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

class Radix2013
{
public:
  Radix2013(const SortContext &context, const OrderJob &job)
      : context(context), stream(context.stream), job(job), storage(job.workspace),
        workspace(alias_workspace(storage, job.n_rows)), live(workspace.live[0]), spare(workspace.live[1]),
        n(job.n_rows)
  {
  }

  // False where words cannot tell the order.
  bool run()
  {
    first_words<<<blocks_for(n, threads), threads, 0, stream>>>(job.keys, n, live, window());
    GS_CUDA_LAUNCHED();
    for (;;)
    {
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

private:
  Window *window() const
  {
    return workspace.windows[round % 2];
  }
  SortedRows sorted() const
  {
    return {job.keys, live, n};
  }

  // Line 10.
  void sort_words()
  {
    cub::DoubleBuffer<u64> words(live.words, spare.words);
    cub::DoubleBuffer<u32> rows(live.rows, spare.rows);
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(workspace.temp, temp_bytes, words, rows, n, 0, 64, stream));
    live.words = words.Current();
    spare.words = words.Alternate();
    live.rows = rows.Current();
    spare.rows = rows.Alternate();
  }

  void mark()
  {
    GS_CUDA_TRY(cudaMemsetAsync(workspace.result, 0, sizeof(RoundResult), stream));
    mark_singletons<<<blocks_for(n, threads), threads, 0, stream>>>(sorted(), window(), workspace.lives,
                                                                    workspace.result, job.order);
    GS_CUDA_LAUNCHED();
  }

  // Lines 12 and 13.
  void compact()
  {
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, temp_bytes, live.iterator(), workspace.lives,
                                           spare.iterator(), &workspace.result->live, n, stream));
  }

  // Lines 15 to 18.
  void next_words()
  {
    size_t temp_bytes = workspace.temp_bytes;
    Window *last = window();

    GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(workspace.temp, temp_bytes, segment_flags(live.words),
                                              workspace.segment, n, stream));
    round++;
    pack_words<<<blocks_for(n, threads), threads, 0, stream>>>(sorted(), workspace.segment, last, window());
    GS_CUDA_LAUNCHED();
  }

  const SortContext &context;
  cudaStream_t stream;
  const OrderJob &job;
  TempStorage storage;
  const Workspace workspace;
  LiveRows live;
  LiveRows spare;
  u32 n; // rows that are sorted
  u32 round = 0;
};

} // namespace

u64 radix2013_workspace(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, n_rows); });
}

bool radix2013(const SortContext &context, const OrderJob &job)
{
  return Radix2013(context, job).run();
}

} // namespace gpusort
