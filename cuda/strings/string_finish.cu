/*-------------------------------------------------------------------------
 *
 * string_finish.cu
 *	  Groups of rows that fit on chip, sorted to the end there.
 *
 * A round of radix sorts costs a dozen launches, and memory traffic for every
 * row that takes part.  What fits into a block's shared memory need not pay
 * that: one kernel sorts by a word, finds the rows that still tie, and goes on
 * with the next word of those.  If the round was sorted by the upper bits of
 * its words only, the rest of the words is what the groups are sorted by first.
 *
 * Steps
 *	  Each block takes a group at a time.  In shared memory a row is its `home`,
 *	  the number that it came with; the address of its next byte and the bytes
 *	  left are found by that.  The rows that live on are kept together, in
 *	  order, as entries: home, rank in the group, segment.
 *	  A step packs for each entry, from the top, its segment, its relation to
 *	  the segment's pivot, the bits of its key after what it shares with the
 *	  pivot, the count and the entry's own number into 64 bits, and sorts these
 *	  with a bitonic network: eight a thread in registers, partners within a
 *	  warp by shuffles, further ones through shared memory.  The numbers make
 *	  all values distinct, which makes the network stable.  Ranks stay with the
 *	  places of entries, since segments do not move.  Singletons and ended keys
 *	  leave; the others form the new entries.
 *
 * Pivots
 *	  The pivot is the segment's middle entry.  Of two keys less than it, the one
 *	  that shares more bytes with it is the greater; of two greater ones, the
 *	  less.  So the relation is the number of shared bytes on this side, and
 *	  counted downwards on the other, with the keys that share max_shared bytes
 *	  or all in between.  Entries that relate alike agree in the bytes shared and
 *	  go on behind these.  However deep and uneven the keys' common prefixes
 *	  are, segments shrink as in a quicksort, and every byte is read but once.
 *
 *-------------------------------------------------------------------------
 */
#include "string_finish.cuh"

#include "block_sort.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 items = 8; // of a thread
constexpr u32 item_bits = log_of(items);
constexpr u32 batch = 4; // keys that a thread looks up at a time

// What a place's value tells after the sort, besides rank and home.
constexpr u64 settled = u64{1} << 32;
constexpr u64 tied = u64{1} << 33;

// What a block keeps in shared memory.
template <u32 capacity>
struct GroupState
{
  u64 exchange[capacity];
  u64 address[capacity];            // of a home's next byte
  u32 left[capacity];               // and how many bytes there are
  uint16_t first[capacity / 2 + 2]; // of a segment, and the one after the last: its first entry
  uint16_t home[capacity];          // of an entry
  uint16_t rank[capacity];          // of an entry: its rank in the group
  uint16_t segment[capacity];       // of an entry
  u32 warp_sums[capacity / items / 32];
  u32 taken;
};

// Finds the addresses of a group's keys.
template <u32 threads, u32 capacity>
__device__ __forceinline__ void load_keys(GroupState<capacity> &state, const SortedRows &in,
                                          const Group &group, u32 live)
{
  for (u32 first = threadIdx.x; first < live; first += threads * batch)
  {
    u32 row[batch];
    KeyRef key[batch];

#pragma unroll
    for (u32 u = 0; u < batch; u++)
      row[u] =
          first + u * threads < live ? __ldg(in.rows + group.start + state.home[first + u * threads]) : 0;
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      key[u] = load_key(in.keys, row[u]);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < live)
      {
        u32 home = state.home[first + u * threads];

        state.address[home] = key[u].address + group.depth;
        state.left[home] = key[u].length - group.depth;
      }
  }
}

// Relates all entries to their segment's pivot; fills exchange with the values
// to be sorted.
template <u32 threads, u32 capacity>
__device__ __forceinline__ void relate_entries(GroupState<capacity> &state, u32 live, u32 segment_bits,
                                               u32 key_bits, u32 log_size)
{
  u32 chars = min(max_chars, key_bits / 8);

  for (u32 entry = threadIdx.x; entry < live; entry += threads)
  {
    u32 of = state.segment[entry];
    u32 middle = (u32{state.first[of]} + state.first[of + 1]) / 2;
    u32 home = state.home[entry];
    u32 pivot_home = state.home[middle];
    u32 left = state.left[home];
    Relation relation =
        relate(state.address[home], left, state.address[pivot_home], state.left[pivot_home], entry == middle);

    state.exchange[entry] = static_cast<u64>(of) << 1 << (63 - segment_bits) |
                            static_cast<u64>(relation.value) << (key_bits + count_bits + log_size) |
                            relation.next >> (64 - key_bits) << (count_bits + log_size) |
                            static_cast<u64>(min(left - relation.shared, chars)) << log_size | entry;
  }
}

template <u32 threads>
__global__ void __launch_bounds__(threads)
    finish_groups(SortedRows in, const Group *groups, const u32 *n_groups, u32 *taken)
{
  constexpr u32 capacity = threads * items;
  extern __shared__ u64 shared_memory[];
  GroupState<capacity> &state = *reinterpret_cast<GroupState<capacity> *>(shared_memory);
  u32 me = threadIdx.x;

  for (;;)
  {
    if (me == 0)
      state.taken = atomicAdd(taken, 1u);
    __syncthreads();

    u32 number = state.taken;

    if (number >= *n_groups)
      return;

    const Group group = groups[number];
    u32 live = group.size;
    u32 n_segments = 1;
    bool carried = in.shape.partial();
    bool loaded = false;

    for (u32 entry = me; entry < live; entry += threads)
    {
      state.home[entry] = static_cast<uint16_t>(entry);
      state.rank[entry] = static_cast<uint16_t>(entry);
      state.segment[entry] = 0;
    }
    if (me == 0)
    {
      state.first[0] = 0;
      state.first[1] = static_cast<uint16_t>(live);
    }
    __syncthreads();

    while (live > 0)
    {
      u32 log_size = item_bits;

      while (1u << log_size < live)
        log_size++;

      u32 active = 1u << (log_size - item_bits);
      u32 segment_bits = 32 - static_cast<u32>(__clz(static_cast<int>(n_segments - 1)));
      u32 key_bits = 64 - relation_bits - count_bits - segment_bits - log_size;
      u32 chars = carried ? group.chars : min(max_chars, key_bits / 8);
      u64 v[items];

      if (carried)
      {
        u32 rest = 64 - in.shape.sorted_bits;

        for (u32 entry = me; entry < live; entry += threads)
          state.exchange[entry] =
              (__ldg(in.words + group.start + entry) & ~(~u64{0} << rest)) << log_size | entry;
      }
      else
      {
        if (!loaded)
        {
          load_keys<threads>(state, in, group, live);
          __syncthreads();
        }
        loaded = true;
        relate_entries<threads>(state, live, segment_bits, key_bits, log_size);
      }
      __syncthreads();
#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        u32 entry = q * active + me;

        v[q] = me < active && entry < live ? state.exchange[entry] : ~u64{0};
      }
      __syncthreads();

      sort_block<threads>(v, log_size, state.exchange);
#pragma unroll
      for (u32 q = 0; q < items; q++)
        state.exchange[q * threads + me] = v[q];
      __syncthreads();

      u64 previous = me > 0 ? state.exchange[(items - 1) * threads + me - 1] : 0;
      u64 next = me + 1 < threads ? state.exchange[me + 1] : 0;
      u32 going_on = 0;
      u32 heads = 0;
      uint16_t home[items];
      uint16_t rank[items];

#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        u32 place = me * items + q;
        u64 word = v[q] >> log_size;
        bool head = place == 0 || word != (q == 0 ? previous : v[q > 0 ? q - 1 : 0]) >> log_size;
        bool tail =
            place + 1 >= live || word != (q == items - 1 ? next : v[q < items - 1 ? q + 1 : 0]) >> log_size;

        if (place < live)
        {
          home[q] = state.home[v[q] & ((1u << log_size) - 1)];
          rank[q] = state.rank[place];
          heads |= head ? 1u << q : 0;
          if ((!head || !tail) && (word & ((1 << count_bits) - 1)) >= chars)
          {
            going_on |= 1u << q;
            if (loaded)
            {
              u32 relation = static_cast<u32>(word >> (key_bits + count_bits)) & ((1u << relation_bits) - 1);
              u32 consumed = chars + shared_of(relation);

              state.address[home[q]] += consumed;
              state.left[home[q]] -= consumed;
            }
          }
        }
      }

      u32 totals;
      u32 sums = sum_before<threads>(static_cast<u32>(__popc(going_on)) |
                                         static_cast<u32>(__popc(heads & going_on)) << 16,
                                     state.warp_sums, &totals);
      u32 entry = sums & 0xffff;
      u32 of = sums >> 16;

      // What is settled is written by neighbouring threads, not from here.
#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        u32 place = me * items + q;
        bool head = (heads >> q & 1) != 0;

        if ((going_on >> q & 1) == 0)
        {
          if (place < live)
            state.exchange[place] = settled | (head ? 0 : tied) | static_cast<u64>(rank[q]) << 16 | home[q];
          continue;
        }
        if (head)
          state.first[of++] = static_cast<uint16_t>(entry);
        state.exchange[place] = 0;
        state.home[entry] = home[q];
        state.rank[entry] = rank[q];
        state.segment[entry] = static_cast<uint16_t>(of - 1);
        entry++;
      }
      __syncthreads();
      for (u32 place = me; place < live; place += threads)
      {
        u64 result = state.exchange[place];

        if ((result & settled) != 0)
        {
          u64 slot = group.slot + (result >> 16 & 0xffff);

          in.order[slot] = __ldg(in.rows + group.start + (result & 0xffff));
          in.tie[slot] = (result & tied) != 0;
        }
      }
      live = totals & 0xffff;
      n_segments = totals >> 16;
      if (me == 0)
        state.first[n_segments] = static_cast<uint16_t>(live);
      carried = false;
      __syncthreads();
    }
  }
}

template <u32 threads>
void launch_groups(const SortedRows &in, const GroupLists &lists, u32 group_class, const FinishLimits &limits,
                   cudaStream_t stream)
{
  constexpr int bytes = sizeof(GroupState<threads * items>);
  int blocks_each = 0;

  GS_CUDA_TRY(
      cudaFuncSetAttribute(finish_groups<threads>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  GS_CUDA_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, finish_groups<threads>, threads, bytes));

  u64 blocks = std::min(u64{limits.n_multiprocessors} * static_cast<u32>(std::max(blocks_each, 1)),
                        u64{in.live / least_class_rows(group_class)} + 1);

  finish_groups<threads><<<static_cast<u32>(blocks), threads, bytes, stream>>>(
      in, lists.groups[group_class], &lists.state->n_groups[group_class], &lists.state->taken[group_class]);
  GS_CUDA_LAUNCHED();
}

} // namespace

FinishLimits finish_limits()
{
  FinishLimits limits;
  int device;
  int processors;
  int shared_bytes;

  GS_CUDA_TRY(cudaGetDevice(&device));
  GS_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  GS_CUDA_TRY(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  limits.n_multiprocessors = static_cast<u32>(processors);
  limits.n_classes = group_classes;
  if (static_cast<size_t>(shared_bytes) < sizeof(GroupState<class_rows[group_classes - 1]>))
    limits.n_classes--;
  for (u32 i = 0; i < group_classes; i++)
    limits.class_rows[i] = class_rows[i];
  return limits;
}

void finish_class(const SortedRows &in, const GroupLists &lists, u32 group_class, const FinishLimits &limits,
                  cudaStream_t stream)
{
  switch (group_class)
  {
  case 0:
    launch_groups<class_rows[0] / items>(in, lists, 0, limits, stream);
    break;
  case 1:
    launch_groups<class_rows[1] / items>(in, lists, 1, limits, stream);
    break;
  case 2:
    launch_groups<class_rows[2] / items>(in, lists, 2, limits, stream);
    break;
  case 3:
    launch_groups<class_rows[3] / items>(in, lists, 3, limits, stream);
    break;
  default:
    launch_groups<class_rows[4] / items>(in, lists, 4, limits, stream);
    break;
  }
}

void finish_listed(const SortContext &context, const SortedRows &in, const GroupLists &lists,
                   const FinishLimits &limits)
{
  // A few large groups keep few multiprocessors busy, and for long: they begin first.
  Fork fork(context.side, context.stream);
  u32 turn = 0;

  for (u32 i = limits.n_classes; i-- > 0;)
    if (in.live >= least_class_rows(i))
      finish_class(in, lists, i, limits, fork.lane(turn++));
  fork.join();
}

} // namespace gpusort
