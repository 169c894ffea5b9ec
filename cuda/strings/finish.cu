/*-------------------------------------------------------------------------
 *
 * finish.cu
 *	  Groups of rows that fit on chip, each sorted to the end by one block.
 *
 * A round of radix sorts costs a dozen launches, and memory traffic for every
 * row that takes part.  A group that fits into a block's shared memory need not pay
 * that: the block sorts by a word, finds the rows that still tie, and goes on
 * with the next word of those.  Where the round sorted by the upper bits of its
 * words only, the rest of the words comes first.
 *
 * Steps
 *	  A block takes a group at a time.  A row's number in the group is its `slot`;
 *	  the address of its next byte and the bytes left are found by that.  The rows
 *	  that live on are kept together, in order, as entries: slot, rank in the group,
 *	  segment.  A step packs for each entry, from the top, its segment, its
 *	  relation to the segment's pivot, the bits of its key after what it shares with
 *	  the pivot, the count of bytes and the entry's own number into 64 bits, and sorts
 *	  these values (network.cuh).  The numbers make all values distinct, which makes
 *	  the step stable.  Ranks stay with the places of entries, since segments do not
 *	  move.  Singletons and ended keys leave; the others form the new entries.
 *
 * Pivots
 *	  The pivot is the segment's middle entry.  Of two keys less than it, the one
 *	  that shares more bytes with it is the greater; of two greater ones, the
 *	  less.  So the relation is the number of shared bytes on this side, and
 *	  counted downwards on the other, with the keys that share max_shared bytes
 *	  or all in between.  Entries of the same relation share these bytes and go on
 *	  after them.  However deep and uneven the keys' common prefixes are, segments
 *	  shrink as in a quicksort, and every byte is read but once.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/finish.cuh"

#include <cub/block/block_scan.cuh>

#include <algorithm>

#include "block/network.cuh"
#include "strings/pivot_relation.cuh"

namespace gpusort
{

namespace
{

constexpr u32 items = 8; // values of a thread
constexpr u32 item_bits = log_of(items);
constexpr u32 load_batch = 4; // keys that a thread has on their way at a time

// What the value of a ranked row's place becomes, above its rank and its slot.
constexpr u64 is_ranked = u64{1} << 32;
constexpr u64 is_tied = u64{1} << 33;

// What a block keeps in shared memory.
template <u32 threads>
struct GroupStorage
{
  static constexpr u32 capacity = threads * items;

  u64 values[capacity];
  u64 address[capacity];                    // of a slot's next byte
  u32 left[capacity];                       // and how many bytes there are
  uint16_t segment_begin[capacity / 2 + 2]; // the first entry of each segment, and the end of the last
  uint16_t slot[capacity];                  // of an entry
  uint16_t rank[capacity];                  // of an entry, in the group
  uint16_t segment[capacity];               // of an entry
  typename cub::BlockScan<u32, threads>::TempStorage scan;
  u32 group;
};

// The bits of a step's values.
struct ValueLayout
{
  u32 log_size; // of the entries' numbers
  u32 segment_bits;
  u32 key_bits;
  u32 chars; // whole bytes of the key in a value

  __device__ ValueLayout(u32 live, u32 n_segments)
  {
    log_size = item_bits;
    while (1u << log_size < live)
      log_size++;
    segment_bits = 32 - static_cast<u32>(__clz(static_cast<int>(n_segments - 1)));
    key_bits = 64 - relation_bits - count_bits - segment_bits - log_size;
    chars = min(max_chars, key_bits / 8);
  }
  __device__ u64 make_value(u32 segment, const Relation &relation, u32 left, u32 entry) const
  {
    return static_cast<u64>(segment) << 1 << (63 - segment_bits) |
           static_cast<u64>(relation.value) << (key_bits + count_bits + log_size) |
           relation.next >> (64 - key_bits) << (count_bits + log_size) |
           static_cast<u64>(min(left - relation.shared, chars)) << log_size | entry;
  }
  __device__ u32 entry_of(u64 value) const
  {
    return static_cast<u32>(value) & ((1u << log_size) - 1);
  }
  __device__ u32 count_of(u64 value) const
  {
    return static_cast<u32>(value >> log_size) & ((1u << count_bits) - 1);
  }
  __device__ u32 relation_of(u64 value) const
  {
    return static_cast<u32>(value >> (key_bits + count_bits + log_size)) & ((1u << relation_bits) - 1);
  }
  // Do two values differ in nothing but their entries' numbers?
  __device__ bool are_equal(u64 a, u64 b) const
  {
    return (a ^ b) >> log_size == 0;
  }
};

// A block's sort of one group.
template <u32 threads>
class GroupSort
{
public:
  using Storage = GroupStorage<threads>;

  __device__ GroupSort(Storage &storage, const SortedRows &in, const Group &group)
      : storage(storage), in(in), group(group), live(group.size)
  {
  }
  __device__ void run()
  {
    make_entries();
    if (in.layout.is_partial())
      step(true);
    if (live > 0)
      load_keys();
    while (live > 0)
      step(false);
  }

private:
  // All rows as the entries of one segment.
  __device__ __forceinline__ void make_entries()
  {
    for (u32 entry = threadIdx.x; entry < live; entry += threads)
    {
      storage.slot[entry] = static_cast<uint16_t>(entry);
      storage.rank[entry] = static_cast<uint16_t>(entry);
      storage.segment[entry] = 0;
    }
    if (threadIdx.x == 0)
    {
      storage.segment_begin[0] = 0;
      storage.segment_begin[1] = static_cast<uint16_t>(live);
    }
    __syncthreads();
  }

  // Finds the addresses of the live rows' keys.
  __device__ __forceinline__ void load_keys()
  {
    for (u32 first = threadIdx.x; first < live; first += threads * load_batch)
    {
      u32 row[load_batch];
      KeyRef key[load_batch];

#pragma unroll
      for (u32 k = 0; k < load_batch; k++)
      {
        u32 entry = first + k * threads;

        row[k] = entry < live ? __ldg(in.rows + group.start + storage.slot[entry]) : 0;
      }
#pragma unroll
      for (u32 k = 0; k < load_batch; k++)
        key[k] = load_key(in.keys, row[k]);
#pragma unroll
      for (u32 k = 0; k < load_batch; k++)
        if (first + k * threads < live)
        {
          u32 slot = storage.slot[first + k * threads];

          storage.address[slot] = key[k].address + group.depth;
          storage.left[slot] = key[k].length - group.depth;
        }
    }
    __syncthreads();
  }

  // Sorts the entries by what the round left of the words, or by the next bytes of
  // the keys, and keeps those that still tie.
  __device__ __forceinline__ void step(bool by_words)
  {
    const ValueLayout layout(live, n_segments);
    u64 v[items];

    if (by_words)
      fill_from_words(layout);
    else
      fill_from_keys(layout);
    __syncthreads();
    sort_values(layout, v);
    write_or_keep(layout, v, by_words);
  }

  __device__ __forceinline__ void fill_from_words(const ValueLayout &layout)
  {
    const u64 unsorted_bits = ~(~u64{0} << (64 - in.layout.sorted_bits));

    for (u32 entry = threadIdx.x; entry < live; entry += threads)
      storage.values[entry] =
          (__ldg(in.words + group.start + entry) & unsorted_bits) << layout.log_size | entry;
  }

  __device__ __forceinline__ void fill_from_keys(const ValueLayout &layout)
  {
    for (u32 entry = threadIdx.x; entry < live; entry += threads)
    {
      u32 segment = storage.segment[entry];
      u32 pivot = (u32{storage.segment_begin[segment]} + storage.segment_begin[segment + 1]) / 2;
      u32 slot = storage.slot[entry];
      u32 pivot_slot = storage.slot[pivot];
      u32 left = storage.left[slot];
      Relation relation = relate(storage.address[slot], left, storage.address[pivot_slot],
                                 storage.left[pivot_slot], entry == pivot);

      storage.values[entry] = layout.make_value(segment, relation, left, entry);
    }
  }

  // Sorts the values; thread t then holds those of places t * items and on, which
  // also lie in shared memory, place p at (p % items) * threads + p / items.
  __device__ __forceinline__ void sort_values(const ValueLayout &layout, u64 (&v)[items])
  {
    const u32 active = 1u << (layout.log_size - item_bits);

#pragma unroll
    for (u32 k = 0; k < items; k++)
    {
      u32 entry = k * active + threadIdx.x;

      v[k] = threadIdx.x < active && entry < live ? storage.values[entry] : ~u64{0};
    }
    __syncthreads();
    sort_block<threads>(v, layout.log_size, storage.values);
#pragma unroll
    for (u32 k = 0; k < items; k++)
      storage.values[k * threads + threadIdx.x] = v[k];
    __syncthreads();
  }

  // Writes the rows whose rank is known, and makes entries of the others.
  __device__ __forceinline__ void write_or_keep(const ValueLayout &layout, const u64 (&v)[items],
                                                bool by_words)
  {
    const u32 me = threadIdx.x;
    const u32 chars = by_words ? group.chars : layout.chars;
    const u64 previous = me > 0 ? storage.values[(items - 1) * threads + me - 1] : 0;
    const u64 next = me + 1 < threads ? storage.values[me + 1] : 0;
    u32 goes_on = 0; // a bit for each item
    u32 heads = 0;
    uint16_t slot[items];
    uint16_t rank[items];

#pragma unroll
    for (u32 k = 0; k < items; k++)
    {
      u32 place = me * items + k;
      bool is_head = place == 0 || !layout.are_equal(v[k], k == 0 ? previous : v[k > 0 ? k - 1 : 0]);
      bool is_tail =
          place + 1 >= live || !layout.are_equal(v[k], k == items - 1 ? next : v[k < items - 1 ? k + 1 : 0]);

      if (place >= live)
        continue;
      slot[k] = storage.slot[layout.entry_of(v[k])];
      rank[k] = storage.rank[place];
      heads |= is_head ? 1u << k : 0;
      if ((!is_head || !is_tail) && layout.count_of(v[k]) >= chars)
      {
        goes_on |= 1u << k;
        if (!by_words)
        {
          u32 consumed = chars + shared_of(layout.relation_of(v[k]));

          storage.address[slot[k]] += consumed;
          storage.left[slot[k]] -= consumed;
        }
      }
    }

    // Entries in the lower half, segments in the upper one.
    u32 before;
    u32 totals;

    cub::BlockScan<u32, threads>(storage.scan)
        .ExclusiveSum(static_cast<u32>(__popc(goes_on)) | static_cast<u32>(__popc(heads & goes_on)) << 16,
                      before, totals);

    u32 entry = before & 0xffff;
    u32 segment = before >> 16;

    // The scan of a single warp has no barrier between what was read and what is written.
    if constexpr (threads == 32)
      __syncwarp();

#pragma unroll
    for (u32 k = 0; k < items; k++)
    {
      u32 place = me * items + k;
      bool is_head = (heads >> k & 1) != 0;

      if (place >= live)
        continue;
      if ((goes_on >> k & 1) == 0)
      {
        storage.values[place] =
            is_ranked | (is_head ? 0 : is_tied) | static_cast<u64>(rank[k]) << 16 | slot[k];
        continue;
      }
      if (is_head)
        storage.segment_begin[segment++] = static_cast<uint16_t>(entry);
      storage.values[place] = 0;
      storage.slot[entry] = slot[k];
      storage.rank[entry] = rank[k];
      storage.segment[entry] = static_cast<uint16_t>(segment - 1);
      entry++;
    }
    __syncthreads();
    write_ranked();
    live = totals & 0xffff;
    n_segments = totals >> 16;
    if (me == 0)
      storage.segment_begin[n_segments] = static_cast<uint16_t>(live);
    __syncthreads();
  }

  // Neighbouring threads write neighbouring ranks.
  __device__ __forceinline__ void write_ranked()
  {
    for (u32 place = threadIdx.x; place < live; place += threads)
    {
      u64 value = storage.values[place];

      if ((value & is_ranked) == 0)
        continue;

      u64 rank = group.first_rank + (value >> 16 & 0xffff);

      in.order[rank] = __ldg(in.rows + group.start + (value & 0xffff));
      in.tie[rank] = (value & is_tied) != 0;
    }
  }

  Storage &storage;
  const SortedRows &in;
  const Group group;
  u32 live;
  u32 n_segments = 1;
};

// Blocks take the groups of a class one after the other.
template <u32 threads>
__global__ void __launch_bounds__(threads)
    finish_groups(const __grid_constant__ SortedRows in, const Group *groups, const u32 *n_groups, u32 *taken)
{
  extern __shared__ u64 shared_memory[];
  auto &storage = *reinterpret_cast<GroupStorage<threads> *>(shared_memory);

  for (;;)
  {
    if (threadIdx.x == 0)
      storage.group = atomicAdd(taken, 1u);
    __syncthreads();

    u32 group = storage.group;

    if (group >= *n_groups)
      return;
    GroupSort<threads>(storage, in, groups[group]).run();
  }
}

template <u32 group_class>
void launch_class(const SortedRows &in, const GroupLists &lists, const FinishLimits &limits,
                  cudaStream_t stream)
{
  constexpr u32 threads = class_rows(group_class) / items;
  constexpr int bytes = sizeof(GroupStorage<threads>);
  int blocks_each = 0;

  GS_CUDA_TRY(
      cudaFuncSetAttribute(finish_groups<threads>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  GS_CUDA_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, finish_groups<threads>, threads, bytes));

  u64 blocks = std::min(u64{limits.n_multiprocessors} * static_cast<u32>(std::max(blocks_each, 1)),
                        u64{in.live / min_class_rows(group_class)} + 1);

  finish_groups<threads><<<static_cast<u32>(blocks), threads, bytes, stream>>>(
      in, lists.groups[group_class], &lists.counts->listed[group_class], &lists.counts->taken[group_class]);
  GS_CUDA_LAUNCHED();
}

void finish_class(const SortedRows &in, const GroupLists &lists, u32 group_class, const FinishLimits &limits,
                  cudaStream_t stream)
{
  static_assert(group_classes == 5);
  switch (group_class)
  {
  case 0:
    return launch_class<0>(in, lists, limits, stream);
  case 1:
    return launch_class<1>(in, lists, limits, stream);
  case 2:
    return launch_class<2>(in, lists, limits, stream);
  case 3:
    return launch_class<3>(in, lists, limits, stream);
  default:
    return launch_class<4>(in, lists, limits, stream);
  }
}

} // namespace

FinishLimits finish_limits()
{
  FinishLimits limits = {group_classes, device_attribute(cudaDevAttrMultiProcessorCount)};

  if (device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) <
      sizeof(GroupStorage<class_rows(group_classes - 1) / items>))
    limits.n_classes--;
  return limits;
}

void finish_listed(const SortContext &context, const SortedRows &in, const GroupLists &lists,
                   const FinishLimits &limits)
{
  // A few large groups keep few multiprocessors busy, and for long: they begin first.
  Fork fork(context.side, context.stream);
  u32 turn = 0;

  for (u32 i = limits.n_classes; i-- > 0;)
    if (in.live >= min_class_rows(i))
      finish_class(in, lists, i, limits, fork.lane(turn++));
  fork.join();
}

} // namespace gpusort
