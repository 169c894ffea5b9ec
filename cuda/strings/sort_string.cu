/*-------------------------------------------------------------------------
 *
 * sort_string.cu
 *	  The engine for keys of any length.
 *
 * words.cuh explains words, segments and groups, which are put to work here.
 *
 * First round
 *	  The words begin with the bucket between splitters from a sample (splitters.cu, classify.cu).
 *	  A radix sort orders the rows by the upper bits of these words, and nearly all groups that
 *	  remain fit on chip (groups.cu, finish.cu).
 *
 * Further rounds
 *	  Groups that are too large, because the sample missed how frequent their bytes
 *	  are, go through rounds after Deshpande and Narayanan ("Can GPUs sort
 *	  strings efficiently?", HiPC 2013): a radix sort of all bits of (segment,
 *	  next bytes), and rows with equal words form the new groups.  Rows leave
 *	  when their group is a singleton, or their keys have ended, or it fits on chip.
 *	  Before the sort, the rows of every segment are compared with its first one
 *	  over up to max_skip bytes, and the segment's depth advances by the least
 *	  agreement: one pass over the live rows, where a round costs ten.
 *
 * Order
 *	  Every step is stable and starts from the order of appending, which equal
 *	  keys so keep.  The places of segments in the next round depend on the
 *	  order of atomic operations; ranks do not.
 *
 * Memory
 *	  Two words, two row numbers and a segment number for each row: 28 bytes, and
 *	  less than one for groups.  Everything is sized for the first round, and nothing
 *	  is allocated later.  The host waits for the device once a round, to learn how
 *	  many rows live on.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/sort_string.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/thread/thread_search.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>

#include <algorithm>

#include "strings/groups.cuh"
#include "strings/key_compare.cuh"
#include "strings/splitters.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

struct Workspace
{
  u64 *words[2];
  u32 *rows[2];
  u32 *segment_of; // of a round's rows
  Segments segments[2];
  GroupLists lists;
  Splitters splitters;
  void *temp;
  size_t temp_bytes;
};

// What a round leaves to the next one, in the order of GroupCounts::large.
struct RoundCounts
{
  u32 live;
  u32 segments;
};

Segments alias_segments(TempStorage &storage, u64 n)
{
  Segments segments;

  segments.place = storage.alias<u32>(n);
  segments.source = storage.alias<u32>(n);
  segments.first_rank = storage.alias<u32>(n);
  segments.depth = storage.alias<u32>(n);
  segments.skip = storage.alias<u32>(n);
  segments.lead = storage.alias<u32>(n);
  return segments;
}

Workspace alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace space;
  SplitPlan plan = plan_split(n_rows);
  u64 max_segments = std::max(u64{n_rows} / (min_max_rows + 1) + 1, u64{plan.n_buckets()});
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    space.words[i] = storage.alias<u64>(n_rows);
    space.rows[i] = storage.alias<u32>(n_rows);
    space.segments[i] = alias_segments(storage, max_segments);
  }
  space.segment_of = storage.alias<u32>(n_rows);
  for (u32 i = 0; i < group_classes; i++)
    space.lists.groups[i] = storage.alias<Group>(n_rows / min_class_rows(i) + 1);
  space.lists.counts = storage.alias<GroupCounts>(1);
  space.splitters = alias_splitters(storage, plan);

  space.temp_bytes = 0;
  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, space.temp_bytes, words, rows, n_rows));
  space.temp = storage.alias<char>(space.temp_bytes);
  return space;
}

// Moves the rows of large groups together, and lowers each segment's skip to
// the bytes that all of its rows share.
__global__ void __launch_bounds__(threads)
    gather_large(const KeyRef *keys, u32 live, u32 n_segments, const u32 *sorted_rows,
                 const __grid_constant__ Segments segments, u32 *rows, u32 *segment_of)
{
  using WarpReduce = cub::WarpReduce<u32>;
  __shared__ typename WarpReduce::TempStorage temp[threads / 32];
  u64 place = u64{blockIdx.x} * threads + threadIdx.x;
  u32 segment = ~0u;
  u32 skip = 0; // as it was when last looked at
  u32 shared = max_skip;

  if (place < live)
  {
    u32 i = static_cast<u32>(place);

    segment = cub::UpperBound(segments.place, n_segments, i) - 1;

    u32 source = segments.source[segment];
    u32 depth = segments.depth[segment];
    u32 row = sorted_rows[source + (i - segments.place[segment])];

    rows[i] = row;
    segment_of[i] = segment;
    skip = cuda::atomic_ref<u32, cuda::thread_scope_device>(segments.skip[segment])
               .load(cuda::memory_order_relaxed);
    shared = skip == 0
                 ? 0
                 : compare_keys(load_key(keys, row), load_key(keys, sorted_rows[source]), depth, depth + skip)
                           .shared -
                       depth;
  }

  // Large segments fill most warps; one atomic then does for 32 rows.
  if (__all_sync(~0u, segment == __shfl_sync(~0u, segment, 0)))
  {
    shared = WarpReduce(temp[threadIdx.x / 32]).Reduce(shared, [](u32 a, u32 b) { return min(a, b); });
    if (threadIdx.x % 32 == 0 && shared < skip)
      atomicMin(&segments.skip[segment], shared);
  }
  else if (shared < skip)
    atomicMin(&segments.skip[segment], shared);
}

// The words of the live rows.
__global__ void __launch_bounds__(threads)
    make_words(const KeyRef *keys, u32 live, const u32 *rows, const u32 *segment_of,
               const __grid_constant__ Segments segments, WordLayout layout, u64 *words)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= live)
    return;

  u32 segment = segment_of[i];
  u32 depth = segments.depth[segment] + segments.skip[segment];
  KeyRef key = load_key(keys, rows[i]);
  u32 left = key.length - depth;

  words[i] = layout.make_word(segment, load_word(key.address + depth, left), 0, left);
}

// Finishes the groups of a round that fit on chip.  Those that do not are the segments
// of the next round, whose number and rows are returned.
RoundCounts finish_round(const SortContext &context, const SortedRows &sorted, const FinishLimits &limits,
                         Workspace &space)
{
  static_assert(offsetof(RoundCounts, live) == 0 && offsetof(RoundCounts, segments) == 4);
  RoundCounts *counts = context.counts<RoundCounts>();

  GS_CUDA_TRY(cudaMemcpyAsync(counts, &space.lists.counts->large, sizeof(u64), cudaMemcpyDeviceToHost,
                              context.stream));

  // The counts are on their way while the groups are finished.
  context.event.record(context.stream);
  finish_listed(context, sorted, space.lists, limits);
  context.event.wait();
  std::swap(space.segments[0], space.segments[1]);
  return *counts;
}

// Sorts the words of the live rows; what becomes of their groups is still to be found.
SortedRows sort_words(const SortContext &context, const OrderJob &job, u32 live, const WordLayout &layout,
                      Workspace &space)
{
  cub::DoubleBuffer<u64> words(space.words[0], space.words[1]);
  cub::DoubleBuffer<u32> rows(space.rows[0], space.rows[1]);
  size_t temp_bytes = space.temp_bytes;

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(space.temp, temp_bytes, words, rows, live,
                                              static_cast<int>(64 - layout.sorted_bits), 64, context.stream));
  GS_CUDA_TRY(cudaMemsetAsync(space.lists.counts, 0, sizeof(GroupCounts), context.stream));
  space.words[0] = words.Alternate();
  space.words[1] = words.Current();
  space.rows[0] = rows.Alternate();
  space.rows[1] = rows.Current();
  return {job.keys, space.words[1], space.rows[1], live, layout, job.order.row, job.order.tie};
}

// A round, once the live rows have words.
RoundCounts run_round(const SortContext &context, const OrderJob &job, u32 live, const WordLayout &layout,
                      const FinishLimits &limits, Workspace &space)
{
  SortedRows sorted = sort_words(context, job, live, layout, space);

  find_groups(sorted, space.segments[0], {space.lists, space.segments[1], limits.max_rows()}, context.stream);
  return finish_round(context, sorted, limits, space);
}

// By buckets between splitters.
RoundCounts first_round(const SortContext &context, const OrderJob &job, const FinishLimits &limits,
                        Workspace &space)
{
  cudaStream_t stream = context.stream;
  SplitPlan plan = plan_split(job.n_rows);

  find_splitters(plan, job.keys, job.n_rows, job.stats.prefix, space.splitters, space.segments[0], stream);
  classify_rows(plan, space.splitters, job.keys, job.n_rows, job.stats.prefix, limits.n_multiprocessors,
                space.words[0], space.rows[0], stream);
  return run_round(context, job, job.n_rows, plan.layout, limits, space);
}

RoundCounts next_round(const SortContext &context, const OrderJob &job, const RoundCounts &counts,
                       const FinishLimits &limits, Workspace &space)
{
  u32 blocks = blocks_for(counts.live, threads);
  WordLayout layout;

  layout.segment_bits = bits_of(counts.segments - 1);
  layout.key_bits = 64 - count_bits - layout.segment_bits;
  layout.sorted_bits = 64;
  context.check_cancelled();
  gather_large<<<blocks, threads, 0, context.stream>>>(job.keys, counts.live, counts.segments, space.rows[1],
                                                       space.segments[0], space.rows[0], space.segment_of);
  GS_CUDA_LAUNCHED();
  make_words<<<blocks, threads, 0, context.stream>>>(job.keys, counts.live, space.rows[0], space.segment_of,
                                                     space.segments[0], layout, space.words[0]);
  GS_CUDA_LAUNCHED();
  return run_round(context, job, counts.live, layout, limits, space);
}

} // namespace

u64 sort_string_workspace(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, n_rows); });
}

const char *sort_string(const SortContext &context, const OrderJob &job)
{
  TempStorage storage(job.workspace);
  Workspace space = alias_workspace(storage, job.n_rows);
  FinishLimits limits = finish_limits();

  for (RoundCounts counts = first_round(context, job, limits, space); counts.live > 0;)
    counts = next_round(context, job, counts, limits, space);
  return "strings, splitters";
}

} // namespace gpusort
