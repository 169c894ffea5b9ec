/*-------------------------------------------------------------------------
 *
 * sort_string.cu
 *	  The engine for keys of any length.
 *
 * What string_words.cuh calls words, segments and groups is put to work here.
 *
 * First round
 *	  Rows that fit on chip are one group, which string_finish.cu sorts.  Of more,
 *	  string_choose.cu looks whether the first bits of the keys tell them
 *	  apart, or of a code of the keys that string_code.cu makes; otherwise
 *	  string_split.cu makes words that begin with a bucket.  The rows are sorted
 *	  by the upper bits of these words, and nearly all groups leave to be
 *	  finished on chip.
 *
 * Further rounds
 *	  Groups that are too large, because the sample missed how common their bytes
 *	  are, go through rounds after Deshpande and Narayanan ("Can GPUs sort
 *	  strings efficiently?", HiPC 2013): a radix sort of all bits of (segment,
 *	  next bytes), and rows with equal words form the new groups.  Rows leave
 *	  when their group is a singleton or their keys have ended, or fits on chip.
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
 *	  Per row two words, two row numbers, and a segment number: 28 bytes, laid
 *	  out by Workspace, and less than one for groups.  Everything is sized for
 *	  the first round, nothing is allocated later, and the host waits for the
 *	  device once a round, to learn how many rows live on.
 *
 *-------------------------------------------------------------------------
 */
#include "sort_string.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

#include "string_choose.cuh"
#include "string_groups.cuh"
#include "string_split.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

struct Workspace
{
  u64 *words[2];
  u32 *rows[2];
  u32 *segment;
  Segments segments[2];
  GroupLists lists;
  CodeSpace code;
  SplitWorkspace split;
  void *temp;
  size_t temp_bytes;
};

Workspace carve_workspace(Carver &carve, u32 n_rows)
{
  Workspace space;
  SplitPlan plan = plan_split(n_rows);
  u64 max_segments = std::max(u64{n_rows} / (least_max_rows + 1) + 1, u64{plan.n_segments()});
  size_t sort_bytes = 0;
  cub::DoubleBuffer<u64> words;
  cub::DoubleBuffer<u32> rows;

  for (int i = 0; i < 2; i++)
  {
    space.words[i] = carve.take<u64>(n_rows);
    space.rows[i] = carve.take<u32>(n_rows);
    space.segments[i].place = carve.take<u32>(max_segments);
    space.segments[i].source = carve.take<u32>(max_segments);
    space.segments[i].slot = carve.take<u32>(max_segments);
    space.segments[i].depth = carve.take<u32>(max_segments);
    space.segments[i].skip = carve.take<u32>(max_segments);
    space.segments[i].lead = carve.take<u32>(max_segments);
  }
  space.segment = carve.take<u32>(n_rows);
  for (u32 i = 0; i < group_classes; i++)
    space.lists.groups[i] = carve.take<Group>(n_rows / least_class_rows(i) + plan.max_pieces());
  space.lists.state = carve.take<RoundState>(1);
  space.code = carve_code(carve);
  space.split = carve_split(carve, plan);

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, words, rows, n_rows));
  space.temp_bytes = sort_bytes;
  space.temp = carve.take<char>(space.temp_bytes);
  return space;
}

// All rows as one group.
__global__ void __launch_bounds__(threads)
    one_group(u32 n_rows, u32 prefix, u32 group_class, u32 *rows, GroupLists lists)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i < n_rows)
    rows[i] = i;
  if (i == 0)
  {
    Group group = {0, 0, prefix, static_cast<uint16_t>(n_rows), 0};
    RoundState state = {};

    state.n_groups[group_class] = 1;
    *lists.state = state;
    lists.groups[group_class][0] = group;
  }
}

__device__ u32 find_segment(const Segments &segments, u32 n_segments, u32 place)
{
  u32 low = 0;
  u32 high = n_segments;

  while (high - low > 1)
  {
    u32 middle = low + (high - low) / 2;

    if (segments.place[middle] <= place)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Moves the rows of large groups together, and lowers each segment's skip to
// the bytes that all of its rows share.
__global__ void __launch_bounds__(threads)
    gather_large(const KeyRef *keys, u32 live, u32 n_segments, const u32 *sorted_rows, Segments segments,
                 u32 *rows, u32 *segment)
{
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;
  u32 i = static_cast<u32>(at);
  u32 of = ~0u;
  u32 shared = max_skip;
  u32 limit = 0; // what the segment's skip was when last looked at

  if (at < live)
  {
    of = find_segment(segments, n_segments, i);

    u32 source = segments.source[of];
    u32 row = sorted_rows[source + (i - segments.place[of])];
    u32 depth = segments.depth[of];

    rows[i] = row;
    segment[i] = of;
    limit = *const_cast<volatile u32 *>(&segments.skip[of]);
    if (limit > 0)
    {
      KeyRef mine = load_key(keys, row);
      KeyRef head = load_key(keys, sorted_rows[source]);

      shared = min(limit, min(mine.length, head.length) - depth);
      for (u32 byte = 0; byte < shared; byte += 8)
      {
        u64 diff = load_word(mine.address + depth + byte, mine.length - depth - byte) ^
                   load_word(head.address + depth + byte, head.length - depth - byte);

        if (diff != 0)
          shared = min(shared, byte + static_cast<u32>(__clzll(static_cast<long long>(diff))) / 8);
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

// The words of the live rows.
__global__ void __launch_bounds__(threads)
    make_words(const KeyRef *keys, u32 live, const u32 *rows, const u32 *segment, Segments segments,
               Shape shape, u64 *words)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= live)
    return;

  u32 of = segment[i];
  u32 depth = segments.depth[of] + segments.skip[of];
  KeyRef key = load_key(keys, rows[i]);
  u32 left = key.length - depth;

  words[i] = shape.make_word(of, load_word(key.address + depth, left), 0, left);
}

// Sorts the words, finishes what fits on chip; what is left is the next round's.
RoundCounts sort_words(const SortContext &context, const KeyRef *keys, u32 live, const Shape &shape,
                       const FinishLimits &limits, Workspace &space, u32 *order, u8 *tie)
{
  cudaStream_t stream = context.stream;
  cub::DoubleBuffer<u64> words(space.words[0], space.words[1]);
  cub::DoubleBuffer<u32> rows(space.rows[0], space.rows[1]);
  size_t temp_bytes = space.temp_bytes;

  GS_CUDA_TRY(cub::DeviceRadixSort::SortPairs(space.temp, temp_bytes, words, rows, live,
                                              static_cast<int>(64 - shape.sorted_bits), 64, stream));
  GS_CUDA_TRY(cudaMemsetAsync(space.lists.state, 0, sizeof(RoundState), stream));

  SortedRows sorted = {keys, words.Current(), rows.Current(), live, shape, order, tie};

  find_groups(sorted, space.segments[0], limits, space.lists, space.segments[1], stream);
  static_assert(offsetof(RoundCounts, live) == 0 && offsetof(RoundCounts, segments) == 4);
  GS_CUDA_TRY(cudaMemcpyAsync(context.counts, &space.lists.state->large, sizeof(u64), cudaMemcpyDeviceToHost,
                              stream));

  // The counts are on their way while the groups are finished.
  context.event.record(stream);
  finish_listed(context, sorted, space.lists, limits);
  context.event.wait();

  space.words[0] = words.Alternate();
  space.words[1] = words.Current();
  space.rows[0] = rows.Alternate();
  space.rows[1] = rows.Current();
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
  FinishLimits limits = finish_limits();
  cudaStream_t stream = context.stream;
  u32 rounds = 1;

  if (n_rows <= limits.max_rows())
  {
    SortedRows rows = {keys, space.words[0], space.rows[0], n_rows, {0, 64 - count_bits, 64}, order, tie};
    u32 group_class = 0;

    while (n_rows > limits.class_rows[group_class])
      group_class++;
    one_group<<<blocks_for(n_rows, threads), threads, 0, stream>>>(n_rows, prefix, group_class, space.rows[0],
                                                                   space.lists);
    GS_CUDA_LAUNCHED();
    finish_class(rows, space.lists, group_class, limits, stream);
    return rounds;
  }

  Shape first = choose_words(context, keys, n_rows, prefix, space.code);

  if (first.sorted_bits > 0)
    first_words(keys, n_rows, prefix, first, space.code, space.segments[0], space.words[0], space.rows[0],
                stream);
  else
  {
    SplitPlan plan = plan_split(n_rows);

    first = plan.shape;
    split_rows(plan, keys, n_rows, prefix, limits, space.split, space.lists, space.segments[0],
               space.words[0], space.rows[0], order, tie, stream);
  }

  RoundCounts counts = sort_words(context, keys, n_rows, first, limits, space, order, tie);

  while (counts.live > 0)
  {
    u32 blocks = blocks_for(counts.live, threads);
    Shape shape;

    shape.segment_bits = bits_of(counts.segments - 1);
    shape.key_bits = 64 - count_bits - shape.segment_bits;
    shape.sorted_bits = 64;
    context.check_cancelled();
    gather_large<<<blocks, threads, 0, stream>>>(keys, counts.live, counts.segments, space.rows[1],
                                                 space.segments[0], space.rows[0], space.segment);
    GS_CUDA_LAUNCHED();
    make_words<<<blocks, threads, 0, stream>>>(keys, counts.live, space.rows[0], space.segment,
                                               space.segments[0], shape, space.words[0]);
    GS_CUDA_LAUNCHED();
    counts = sort_words(context, keys, counts.live, shape, limits, space, order, tie);
    rounds++;
  }
  return rounds;
}

} // namespace gpusort
