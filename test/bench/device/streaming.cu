/*-------------------------------------------------------------------------
 *
 * streaming.cu
 *	  Sort of strings that stay in host memory, after Thakkar and Narayanan.
 *
 * K. Thakkar, P. J. Narayanan: Streaming String Sort: A Hybrid String Sort on
 * CPU+GPU.  Undated; the authors used CUDA 7.5, of 2015.  Line numbers below are
 * those of its Algorithm 1.
 *
 * Modes (section III)
 *	  Few strings are sorted by the CPU.  Strings that fit on the device are copied
 *	  there and sorted by radix2013.cu, the earlier work [DN13].  All others are
 *	  sorted by both, in steps:
 *
 * Steps
 *	  A column has the next K bytes of each string that is not in its final place
 *	  yet.  While the device sorts column i, the CPU makes column i + 1 and copies it
 *	  to the device (lines 14 to 16), and cannot know yet which strings column i
 *	  will leave, nor their order.  So it takes the strings, and the order, that column i - 1 left:
 *	  the context lag.  Some strings of a column are not needed any more.
 *
 *	  Sorting a column is radix2013's loop (lines 7 to 10): sort of words, each the
 *	  number of a segment and the next characters; elimination of singletons;
 *	  numbers of new segments and their bytes; next words.  It ends where the
 *	  column's K bytes are used up.  The first word of the next column goes on with the
 *	  same segments.
 *
 * Index adjustment (section III.C.2)
 *	  The index array has an entry for each string left, in their order:
 *	  (a) the string's number, constant, and (b) its slot in the column.  The
 *	  CPU made column i + 1 in the order that column i - 1 left, so the slot there is
 *	  the place at which the entry stood before column i was sorted.  The index map
 *	  has it: map[b] = I for each entry that stood at I with slot b.  After
 *	  column i has been sorted, b becomes map[b], and the map is made anew from the
 *	  entries as they stand now.  Then the index array is copied to the host, for the CPU
 *	  to make column i + 2 by.
 *
 * Width of columns
 *	  Fixed: K stays what it was for the first column, the largest that fits for all
 *	  strings.  Dynamic: K is the largest that fits for the strings that are left.
 *	  Neither is larger than the longest string needs.
 *
 * Where the paper says nothing
 *	  - Below how many strings the CPU sorts: StreamingOptions.cpu_rows; by
 *		std::sort in one thread.
 *	  - Columns take two buffers of one size, since one is written while the other is read.  They
 *		do not grow where work arrays are needed for fewer strings.
 *	  - The least K is 8, a word.  With less the sort is refused, as the paper has no
 *		result where "the number of strings was high enough to disallow an
 *		acceptable initial value of K".
 *	  - K is a multiple of 8.  A word at a column's end takes only the characters that
 *		are left of it.
 *	  - When the last string is in its place, the column being made is given up.
 *
 * What differs from the paper
 *	  Strings may have any bytes, NUL as well, and have lengths instead.  A column has zeros
 *	  behind a string's end, and an array tells the bytes left of each string.
 *	  It is read only where a word holds a zero byte.  Words of strings that end at
 *	  different places may be the same: "a" and "a\0".  Then the round's words are
 *	  replaced by the words' numbers and the places of the ends, and sorted once
 *	  more.
 *
 *	  Entries hold the number of a string, not its offset, which 32 bits would not
 *	  hold for the paper's own sets.  Several threads may make columns.
 *
 * Memory
 *	  Per string, besides two columns: two words, two entries, two ranks, a place in the map
 *	  and one in the order, a mark and a tie: 50 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "streaming.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <utility>
#include <vector>

#include "device/device_memory.cuh"
#include "papers/papers.cuh"
#include "papers/prefix_words.cuh"
#include "streaming_loader.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 least_k = 8;

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin)
{
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The device's memory for one sort.
struct SortMemory
{
  explicit SortMemory(u64 bytes)
      : device(ordinal(), bytes), reservation(device, bytes, "the strings"),
        buffer(device, std::max<u64>(bytes, 1), stream)
  {
    GS_CUDA_TRY(cudaStreamSynchronize(stream));
  }

  static int ordinal()
  {
    int ordinal;

    GS_CUDA_TRY(cudaGetDevice(&ordinal));
    return ordinal;
  }

  Stream stream;
  DeviceMemory device;
  Reservation reservation;
  DeviceBuffer buffer;
};

// ---- on the device, column by column ----

// The counts of a round, which the device tells the host.
struct RoundResult
{
  u32 live;           // strings that are not in their final place
  u32 segments;       // that they form
  u32 lengths_matter; // not 0: strings of the same word have ended at different places
};

// The strings of a round, in their current order.
struct LiveRows
{
  u64 *words;
  u64 *entries; // the index array
  u32 *ranks;   // of the places: place i of the round has rank ranks[i] in the output
};

struct Workspace
{
  LiveRows live[2];
  u32 *index_map;
  u8 *goes_on;
  KeyOrder order;
  RoundResult *result;
  u64 *n_selected;
  void *temp;
  size_t temp_bytes;
};

Workspace alias_workspace(TempStorage &storage, u32 n)
{
  Workspace workspace;
  size_t sort_bytes = 0;
  size_t segment_bytes = 0;
  size_t word_bytes = 0;
  size_t rank_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u64> entries;

  for (LiveRows &live : workspace.live)
    live = {storage.alias<u64>(n), storage.alias<u64>(n), storage.alias<u32>(n)};
  workspace.index_map = storage.alias<u32>(n);
  workspace.goes_on = storage.alias<u8>(n);
  workspace.order = {storage.alias<u32>(n), storage.alias<u8>(n)};
  workspace.result = storage.alias<RoundResult>(1);
  workspace.n_selected = storage.alias<u64>(1);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, entries, n));
  GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(nullptr, segment_bytes, segment_flags(workspace.live[0].words),
                                            workspace.index_map, n));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, word_bytes, workspace.live[0].words, workspace.goes_on,
                                         workspace.live[1].words, workspace.n_selected, n));
  GS_CUDA_TRY(cub::DeviceSelect::Flagged(nullptr, rank_bytes, workspace.live[0].ranks, workspace.goes_on,
                                         workspace.live[1].ranks, workspace.n_selected, n));
  workspace.temp_bytes = std::max({sort_bytes, segment_bytes, word_bytes, rank_bytes});
  workspace.temp = storage.alias<char>(workspace.temp_bytes);
  return workspace;
}

__device__ __forceinline__ u32 entry_slot(u64 entry)
{
  return static_cast<u32>(entry);
}

// Where a string ends that has not ended yet.
constexpr u32 not_ended = ~0u;

// Refined words: their numbers above the place in the window where the string has
// ended, or one more than there can be.
constexpr u32 end_bits = 4;
constexpr u32 end_mask = (1u << end_bits) - 1;

// A round's strings after its sort.
struct SortedRows
{
  LiveRows live;
  u32 n;
  Window window;
  Column column;

  // Where in the column string i has ended.
  template <bool refined>
  __device__ __forceinline__ u32 end(u64 i) const
  {
    u64 word = live.words[i];

    if (refined)
    {
      u32 place = static_cast<u32>(word) & end_mask;

      return place == end_mask ? not_ended : window.from + place;
    }

    // The bytes of the segment are no characters.
    if (!has_zero_byte(window.chars() == prefix_bytes ? word : word | ~u64{0} << window.chars() * 8))
      return not_ended;

    u32 left = column.left[entry_slot(live.entries[i])];

    return left < window.to ? left : not_ended;
  }
};

__global__ void __launch_bounds__(threads) number_rows(u32 n, LiveRows live, u32 *index_map)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;
  live.entries[i] = i << 32 | i;
  live.ranks[i] = index_map[i] = static_cast<u32>(i);
}

// Line 8: the next words.  Without segments all strings are of one.
__global__ void __launch_bounds__(threads)
    load_words(LiveRows live, u32 n, const u32 *segments, Column column, Window window)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u32 chars = window.chars();
  u64 address = reinterpret_cast<u64>(column.chars) + u64{entry_slot(live.entries[i])} * column.k;
  u64 word = load_word(address + window.from, chars) >> (prefix_bytes - chars) * 8;

  if (segments != nullptr)
    word |= static_cast<u64>(segments[i]) << chars * 8;
  live.words[i] = word;
}

// Line 9: marks the strings that go on, and writes the others to the output.
template <bool refined>
__global__ void __launch_bounds__(threads)
    mark_singletons(SortedRows in, u8 *marks, RoundResult *result, KeyOrder order)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;
  bool goes_on = false;
  bool begins_segment = false;

  if (i < in.n)
  {
    u64 word = in.live.words[i];
    u32 end = in.end<refined>(i);
    bool like_last = i > 0 && in.live.words[i - 1] == word;
    bool like_next = i + 1 < in.n && in.live.words[i + 1] == word;
    u32 last_end = like_last ? in.end<refined>(i - 1) : not_ended;

    if (like_last && last_end != end)
      result->lengths_matter = 1;
    goes_on = end == not_ended && (like_last || like_next);
    begins_segment = goes_on && !like_last;
    marks[i] = goes_on;
    if (!goes_on)
    {
      u32 rank = in.live.ranks[i];

      order.row[rank] = static_cast<u32>(in.live.entries[i] >> 32);
      order.tie[rank] = like_last && end != not_ended;
    }
  }

  u32 live = static_cast<u32>(__syncthreads_count(goes_on));
  u32 segments = static_cast<u32>(__syncthreads_count(begins_segment));

  if (threadIdx.x == 0 && live > 0)
  {
    atomicAdd(&result->live, live);
    atomicAdd(&result->segments, segments);
  }
}

// Words that tell ends, from those that do not and their numbers.
__global__ void __launch_bounds__(threads) refine_words(SortedRows in, const u32 *numbers)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= in.n)
    return;

  u32 end = in.end<false>(i);
  u32 place = end == not_ended ? end_mask : end - in.window.from;

  in.live.words[i] = static_cast<u64>(numbers[i]) << end_bits | place;
}

// Line 12: slots in the next column.
__global__ void __launch_bounds__(threads) adjust_entries(u64 *entries, u32 n, const u32 *index_map)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n)
    entries[i] = (entries[i] & ~u64{0xffffffff}) | index_map[entry_slot(entries[i])];
}

__global__ void __launch_bounds__(threads) make_index_map(const u64 *entries, u32 n, u32 *index_map)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n)
    index_map[entry_slot(entries[i])] = static_cast<u32>(i);
}

u32 bytes_of(u32 value)
{
  return value >> 24 != 0 ? 4 : value >> 16 != 0 ? 3 : value >> 8 != 0 ? 2 : 1;
}

// The device's part: sorts column by column.
class ColumnSorter
{
public:
  ColumnSorter(const Workspace &workspace, u32 n)
      : workspace(workspace), live(workspace.live[0]), spare(workspace.live[1]), n(n)
  {
    number_rows<<<blocks_for(n, threads), threads, 0, stream>>>(n, live, workspace.index_map);
    GS_CUDA_LAUNCHED();
  }
  // Its work uses memory that is freed later.
  ~ColumnSorter()
  {
    (void)cudaStreamSynchronize(stream);
  }
  ColumnSorter(const ColumnSorter &) = delete;
  ColumnSorter &operator=(const ColumnSorter &) = delete;

  // Strings that are not in their final place.
  u32 live_rows() const
  {
    return n;
  }

  // Sorts by the bytes of a column, which has all of these strings.
  void sort(const Column &column)
  {
    Window window = {0, 0};

    begin.record(stream);
    while (n > 0 && window.to < column.k)
    {
      window = next_words(column, window);
      round(column, window);
      rounds++;
    }
    end.record(stream);
    end.wait();
    sort_ms += elapsed_ms(begin, end);
  }

  // After a column: lets entries have their slots in the next one, and copies
  // them to the host.
  void adjust(u64 *entries)
  {
    begin.record(stream);
    adjust_entries<<<blocks_for(n, threads), threads, 0, stream>>>(live.entries, n, workspace.index_map);
    GS_CUDA_LAUNCHED();
    make_index_map<<<blocks_for(n, threads), threads, 0, stream>>>(live.entries, n, workspace.index_map);
    GS_CUDA_LAUNCHED();
    GS_CUDA_TRY(cudaMemcpyAsync(entries, live.entries, n * sizeof(u64), cudaMemcpyDeviceToHost, stream));
    end.record(stream);
    end.wait();
    adjust_ms += elapsed_ms(begin, end);
  }

  u32 rounds = 0;
  double sort_ms = 0;
  double adjust_ms = 0;

private:
  // The segments that the words form, numbered: in the spare words.
  u32 *number_segments()
  {
    u32 *segments = reinterpret_cast<u32 *>(spare.words);
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceScan::InclusiveSum(workspace.temp, temp_bytes, segment_flags(live.words), segments,
                                              n, stream));
    return segments;
  }

  // Line 10, of the round before, and 8.
  Window next_words(const Column &column, Window last)
  {
    u32 *segments = n_segments == 0 ? nullptr : number_segments();

    segment_bytes = n_segments == 0 ? 0 : bytes_of(n_segments - 1);

    Window window = {last.to, std::min(last.to + prefix_bytes - segment_bytes, column.k)};

    load_words<<<blocks_for(n, threads), threads, 0, stream>>>(live, n, segments, column, window);
    GS_CUDA_LAUNCHED();
    return window;
  }

  // Lines 7 and 9.
  void round(const Column &column, Window window)
  {
    sort_words((segment_bytes + window.chars()) * 8);

    SortedRows sorted = {live, n, window, column};

    if (!mark<false>(sorted))
    {
      u32 *numbers = number_segments();

      refine_words<<<blocks_for(n, threads), threads, 0, stream>>>(sorted, numbers);
      GS_CUDA_LAUNCHED();
      sort_words(32 + end_bits);
      sorted.live = live;
      mark<true>(sorted);
    }
    n_segments = result->segments;
    compact(result->live);
  }

  void sort_words(u32 bits)
  {
    cub::DoubleBuffer<u64> words(live.words, spare.words);
    cub::DoubleBuffer<u64> entries(live.entries, spare.entries);
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(workspace.temp, temp_bytes, words, entries, n, 0,
                                                static_cast<int>(bits), stream));
    live = {words.Current(), entries.Current(), live.ranks};
    spare = {words.Alternate(), entries.Alternate(), spare.ranks};
  }

  // False where the words must tell ends but do not.
  template <bool refined>
  bool mark(const SortedRows &sorted)
  {
    GS_CUDA_TRY(cudaMemsetAsync(workspace.result, 0, sizeof(RoundResult), stream));
    mark_singletons<refined><<<blocks_for(n, threads), threads, 0, stream>>>(
        sorted, workspace.goes_on, workspace.result, workspace.order);
    GS_CUDA_LAUNCHED();
    GS_CUDA_TRY(
        cudaMemcpyAsync(result.get(), workspace.result, sizeof(RoundResult), cudaMemcpyDeviceToHost, stream));
    told.record(stream);
    told.wait();
    return result->lengths_matter == 0;
  }

  void compact(u32 n_live)
  {
    if (n_live < n)
    {
      select(live.words, spare.words);
      select(live.entries, spare.entries);
      select(live.ranks, spare.ranks);
      std::swap(live, spare);
    }
    n = n_live;
  }

  template <typename T>
  void select(const T *from, T *to)
  {
    size_t temp_bytes = workspace.temp_bytes;

    GS_CUDA_TRY(cub::DeviceSelect::Flagged(workspace.temp, temp_bytes, from, workspace.goes_on, to,
                                           workspace.n_selected, n, stream));
  }

  Workspace workspace;
  Stream stream;
  Event begin;
  Event end;
  Event told;
  Pinned<RoundResult> result;
  LiveRows live;
  LiveRows spare;
  u32 n;
  u32 n_segments = 0; // 0: before the first round
  u32 segment_bytes = 0;
};

void read_order(const KeyOrder &from, u32 n, u32 *order, u8 *tie)
{
  GS_CUDA_TRY(cudaMemcpy(order, from.row, n * sizeof(u32), cudaMemcpyDeviceToHost));
  GS_CUDA_TRY(cudaMemcpy(tie, from.tie, n, cudaMemcpyDeviceToHost));
}

// ---- mode "both" ----

// How the device's memory is used.
struct StreamingPlan
{
  u64 workspace_bytes;
  u64 column_bytes; // of each of two
  u32 k;            // of the first column
};

// The bytes of each string for a column that ends all of them.
u32 sufficient_k(int64_t longest)
{
  return static_cast<u32>(
      std::min<u64>(align_up<u64>(static_cast<u64>(longest) + 1, prefix_bytes), ColumnMemory::most_k));
}

u64 streaming_workspace(u32 n)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, n); });
}

StreamingPlan plan_streaming(const HostStrings &strings, const StreamingOptions &options)
{
  u32 longest = *std::max_element(strings.length, strings.length + strings.n);
  u64 workspace_bytes = streaming_workspace(strings.n);
  u64 least = streaming_bytes(strings.n, least_k);

  if (least > options.memory_limit)
    fail(GS_NO_MEMORY, "columns of %u bytes of %u strings take %llu bytes of device memory", least_k,
         strings.n, least);

  u64 column_bytes = (options.memory_limit - workspace_bytes) / 2 & ~(ColumnMemory::alignment - 1);
  u32 k = std::min(ColumnMemory::widest(column_bytes, strings.n), sufficient_k(longest));

  // One column will do, or all are as wide as the first one.
  if (!options.dynamic || k > longest)
    column_bytes = ColumnMemory::bytes_for(strings.n, k);
  return {workspace_bytes, column_bytes, k};
}

// The column after one, of the strings of n entries.
Column next_column(const ColumnLoader &loader, const ColumnMemory &memory, bool dynamic, const Column &last,
                   const u64 *entries, u32 n)
{
  u64 offset = last.offset + last.k;
  int64_t longest = loader.longest_left(entries, n, offset);

  if (longest < 0)
    return memory.column(offset, n, 0);
  return memory.column(offset, n, dynamic ? std::min(memory.widest(n), sufficient_k(longest)) : last.k);
}

void sort_by_columns(const HostStrings &strings, const StreamingOptions &options, u32 *order, u8 *tie,
                     StreamingReport *report)
{
  Clock::time_point begin = Clock::now();
  StreamingPlan plan = plan_streaming(strings, options);
  SortMemory memory(plan.workspace_bytes + 2 * plan.column_bytes);
  TempStorage storage(memory.buffer.get());
  Workspace workspace = alias_workspace(storage, strings.n);
  char *columns = static_cast<char *>(memory.buffer.get()) + plan.workspace_bytes;
  ColumnMemory column_memory[2] = {{columns, plan.column_bytes},
                                   {columns + plan.column_bytes, plan.column_bytes}};
  Pinned<u64> entry_memory(strings.n);
  u64 *entries = entry_memory.get();
  ColumnLoader loader(strings, options.loader_threads);

  report->setup_ms = ms_since(begin);
  begin = Clock::now();

  ColumnSorter sorter(workspace, strings.n);
  Column column = column_memory[0].column(0, strings.n, plan.k); // being sorted
  u32 n_lagging = strings.n;                                     // strings before it is
  bool sorted_any = false;

  report->first_k = plan.k;
  loader.load(nullptr, column);
  for (;;)
  {
    const u64 *lagging = sorted_any ? entries : nullptr;
    const ColumnMemory &next_memory = column_memory[(report->steps + 1) % 2];
    Column next = {};
    std::future<void> loading =
        std::async(std::launch::async,
                   [&]
                   {
                     next = next_column(loader, next_memory, options.dynamic, column, lagging, n_lagging);
                     if (next.k > 0)
                       loader.load(lagging, next);
                   });

    try
    {
      sorter.sort(column);
    }
    catch (...)
    {
      loader.stop();
      throw; // when the loader has ended: the future waits for it
    }
    report->steps++;
    report->last_k = column.k;
    if (sorter.live_rows() == 0)
      loader.stop();

    Clock::time_point waiting = Clock::now();

    loading.get();
    if (sorter.live_rows() == 0)
      break;
    report->wait_ms += ms_since(waiting);
    if (next.k == 0)
      fail(GS_INTERNAL, "streaming: strings are left behind their ends");
    sorter.adjust(entries);
    n_lagging = sorter.live_rows();
    sorted_any = true;
    column = next;
  }
  read_order(workspace.order, strings.n, order, tie);
  report->total_ms = ms_since(begin);
  report->rounds = sorter.rounds;
  report->device_bytes = plan.workspace_bytes + 2 * plan.column_bytes;
  report->copied_bytes = loader.times().copied_bytes;
  report->load_ms = loader.times().load_ms;
  report->copy_ms = loader.times().copy_ms;
  report->sort_ms = sorter.sort_ms;
  report->adjust_ms = sorter.adjust_ms;
}

// ---- mode "gpu" ----

struct WholeWorkspace
{
  char *bytes;
  KeyRef *keys;
  KeyOrder order;
  char *radix2013; // at first the next two
  u64 *begin;
  u32 *length;
};

WholeWorkspace alias_whole(TempStorage &storage, const HostStrings &strings)
{
  WholeWorkspace whole;
  TempStorage lists;

  // Keys are read by aligned words.
  whole.bytes = storage.alias<char>(align_up<u64>(strings.n_bytes, prefix_bytes));
  whole.keys = storage.alias<KeyRef>(strings.n);
  whole.order = {storage.alias<u32>(strings.n), storage.alias<u8>(strings.n)};
  lists.alias<u64>(strings.n);
  lists.alias<u32>(strings.n);
  whole.radix2013 = storage.alias<char>(std::max(radix2013_workspace(strings.n), lists.bytes()));
  lists = TempStorage(whole.radix2013);
  whole.begin = lists.alias<u64>(strings.n);
  whole.length = lists.alias<u32>(strings.n);
  return whole;
}

u64 whole_bytes(const HostStrings &strings)
{
  return storage_bytes([&](TempStorage &storage) { alias_whole(storage, strings); });
}

__global__ void __launch_bounds__(threads)
    make_keys(const char *bytes, const u64 *begin, const u32 *length, u32 n, KeyRef *keys)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i < n)
    keys[i] = {reinterpret_cast<u64>(bytes) + begin[i], length[i], 0};
}

void sort_whole(const HostStrings &strings, const StreamingOptions &options, u32 *order, u8 *tie,
                StreamingReport *report)
{
  Clock::time_point begin = Clock::now();
  u64 device_bytes = whole_bytes(strings);

  if (device_bytes > options.memory_limit)
    fail(GS_NO_MEMORY, "%u strings at once take %llu bytes of device memory", strings.n, device_bytes);

  SortMemory memory(device_bytes);
  TempStorage storage(memory.buffer.get());
  WholeWorkspace whole = alias_whole(storage, strings);
  Stream stream;
  SideStreams side;
  Event event;
  Event copying;
  Event copied;
  Event sorted;
  Pinned<CountsMemory> counts;
  const std::atomic<bool> never{false};
  const RowStats stats = {}; // radix2013 chooses nothing by them

  report->setup_ms = ms_since(begin);
  begin = Clock::now();
  copying.record(stream);
  GS_CUDA_TRY(cudaMemcpyAsync(whole.bytes, strings.bytes, strings.n_bytes, cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(
      cudaMemcpyAsync(whole.begin, strings.begin, strings.n * sizeof(u64), cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(
      cudaMemcpyAsync(whole.length, strings.length, strings.n * sizeof(u32), cudaMemcpyHostToDevice, stream));
  copied.record(stream);
  make_keys<<<blocks_for(strings.n, threads), threads, 0, stream>>>(whole.bytes, whole.begin, whole.length,
                                                                    strings.n, whole.keys);
  GS_CUDA_LAUNCHED();
  if (!radix2013({stream, side, event, counts.get(), never},
                 {whole.keys, strings.n, stats, whole.radix2013, whole.order}))
    fail(GS_INVALID, "strings that differ in a NUL at their end only");
  sorted.record(stream);
  sorted.wait();
  read_order(whole.order, strings.n, order, tie);
  report->total_ms = ms_since(begin);
  report->steps = 1;
  report->device_bytes = device_bytes;
  report->copied_bytes = strings.n_bytes + strings.n * (sizeof(u64) + sizeof(u32));
  report->copy_ms = elapsed_ms(copying, copied);
  report->sort_ms = elapsed_ms(copied, sorted);
}

// ---- mode "cpu" ----

int compare_strings(const HostStrings &strings, u32 a, u32 b)
{
  u32 least = std::min(strings.length[a], strings.length[b]);
  int result =
      least == 0 ? 0 : memcmp(strings.bytes + strings.begin[a], strings.bytes + strings.begin[b], least);

  if (result != 0)
    return result;
  return strings.length[a] < strings.length[b] ? -1 : strings.length[a] > strings.length[b];
}

void sort_on_cpu(const HostStrings &strings, u32 *order, u8 *tie, StreamingReport *report)
{
  Clock::time_point begin = Clock::now();

  std::iota(order, order + strings.n, 0);
  std::sort(order, order + strings.n,
            [&](u32 a, u32 b)
            {
              int result = compare_strings(strings, a, b);

              return result != 0 ? result < 0 : a < b;
            });
  for (u32 i = 0; i < strings.n; i++)
    tie[i] = i > 0 && compare_strings(strings, order[i - 1], order[i]) == 0;
  report->total_ms = ms_since(begin);
}

} // namespace

u64 streaming_bytes(u32 n, u32 k)
{
  return streaming_workspace(n) + 2 * ColumnMemory::bytes_for(n, k);
}

StreamingReport sort_streaming(const HostStrings &strings, const StreamingOptions &options, u32 *order,
                               u8 *tie)
{
  StreamingReport report = {};

  report.mode = options.mode;
  if (report.mode == StreamingMode::automatic)
  {
    if (strings.n < options.cpu_rows)
      report.mode = StreamingMode::cpu;
    else
      report.mode = whole_bytes(strings) <= options.memory_limit ? StreamingMode::gpu : StreamingMode::both;
  }
  if (strings.n == 0)
    return report;
  switch (report.mode)
  {
  case StreamingMode::automatic:
  case StreamingMode::cpu:
    sort_on_cpu(strings, order, tie, &report);
    break;
  case StreamingMode::gpu:
    sort_whole(strings, options, order, tie, &report);
    break;
  case StreamingMode::both:
    sort_by_columns(strings, options, order, tie, &report);
    break;
  }
  return report;
}

} // namespace gpusort
