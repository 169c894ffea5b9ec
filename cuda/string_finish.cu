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
 * Small groups
 *	  finish_small takes windows of the sorted array, one row a thread, and of
 *	  each the groups that begin so early (in its first `quota` rows) that they
 *	  end within it.  A row's new place is the number of rows in its group that
 *	  are less, and the equal ones before it; that makes smaller groups, and so
 *	  on until none holds two unequal rows.  All that is 64 compares at most of
 *	  words in shared memory a row, and no thread waits for more than its block.
 *
 * Listed groups
 *	  finish_groups gives each block a group at a time.  In shared memory a row
 *	  is its `home`, the number that it came with; the address of its next byte
 *	  and the bytes left are found by that.  The rows that live on are kept
 *	  together, in order, as entries: home, rank in the group, segment.
 *	  A step packs for each entry, from the top, its segment, the next bits of
 *	  its key, the count and the entry's own number into 64 bits, and sorts
 *	  these with a bitonic network: eight a thread in registers, partners within
 *	  a warp by shuffles, further ones through shared memory.  The numbers make
 *	  all values distinct, which makes the network stable.  Ranks stay with the
 *	  places of entries, since segments do not move.  Singletons and ended keys
 *	  leave; the others form the new entries.
 *	  Before the next step, the rows of every segment are compared with its
 *	  first one, so that bytes which all share cost no step each.
 *
 *-------------------------------------------------------------------------
 */
#include "string_finish.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 window_threads = 256;
constexpr u32 window_quota = window_threads - small_rows;

constexpr u32 items = 8; // of a thread of finish_groups
constexpr u32 item_bits = 3;
constexpr u32 max_skip = 256;

constexpr u32 class_threads[group_classes] = {32, 128, 512};
static_assert(least_class_rows[1] == class_threads[0] * items + 1 &&
              least_class_rows[2] == class_threads[1] * items + 1);
constexpr u32 least_threads = least_max_rows / items; // of the last class, where memory is short

// ---- small groups ----

// The last place up to `place` whose flag is set, or ~0.
__device__ __forceinline__ u32 flag_before(const u32 *flags, u32 place)
{
  u32 at = place / 32;
  u32 bits = flags[at] & (~0u >> (31 - place % 32));

  while (bits == 0)
  {
    if (at == 0)
      return ~0u;
    bits = flags[--at];
  }
  return at * 32 + 31 - __clz(static_cast<int>(bits));
}

// The first place after `place` whose flag is set, or `limit`.
__device__ __forceinline__ u32 flag_after(const u32 *flags, u32 place, u32 limit)
{
  u32 at = place + 1;

  if (at >= limit)
    return limit;

  u32 bits = flags[at / 32] & (~0u << at % 32);

  at /= 32;
  while (bits == 0)
  {
    if (++at == limit / 32)
      return limit;
    bits = flags[at];
  }
  return at * 32 + __ffs(static_cast<int>(bits)) - 1;
}

__global__ void __launch_bounds__(window_threads) small_groups(SortedRows in, Segments segments)
{
  __shared__ u64 window[window_threads];
  __shared__ u8 window_count[window_threads];
  __shared__ u32 heads[window_threads / 32];
  const Shape shape = in.shape;
  u64 base = u64{blockIdx.x} * window_quota;
  u32 place = threadIdx.x;
  bool exists = base + place < in.live;
  u64 word = exists ? in.words[base + place] : 0;
  bool head =
      !exists || base + place == 0 || shape.group_of(in.words[base + place - 1]) != shape.group_of(word);
  u32 ballot = __ballot_sync(~0u, head);

  if (place % 32 == 0)
    heads[place / 32] = ballot;
  __syncthreads();

  u32 low = 0;
  u32 high = 0;
  u32 of = 0;
  u32 lead = 0;
  bool mine = false;

  if (exists)
  {
    low = flag_before(heads, place);
    high = flag_after(heads, place, window_threads);
    mine = low < window_quota && high - low >= 2 && high - low <= small_rows;
    if (mine)
    {
      of = shape.segment_of(word);
      lead = segments.lead[of];
      if (lead == equal_keys)
        mine = false;
      else if (!shape.partial())
        mine = (word & ((1 << count_bits) - 1)) == shape.chars(lead);
    }
  }
  if (!__syncthreads_or(mine))
    return;

  u32 row = 0;
  u32 depth = 0;
  KeyRef key = {};
  bool unsettled = mine;
  bool equal_before = false;
  bool carried = shape.partial();
  bool loaded = false;

  if (mine)
  {
    row = in.rows[base + place];
    depth = segments.depth[of] + segments.skip[of] + shape.chars(lead);
  }

  u32 slot_base = mine ? segments.slot[of] - segments.place[of] : 0;

  while (__syncthreads_or(unsettled))
  {
    u64 own = 0;
    u32 count = 0;

    if (unsettled)
    {
      if (carried)
      {
        own = word;
        count = (word & ((1 << count_bits) - 1)) < shape.chars(lead) ? 0 : 8;
      }
      else
      {
        if (!loaded)
          key = load_key(in.keys, row);
        loaded = true;

        u32 left = key.length - depth;

        own = load_word(key.address + depth, left);
        count = min(left, 8u);
        depth += 8;
      }
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
      if (equal == 1 || count < 8)
      {
        equal_before = before > 0;
        unsettled = false;
      }
    }
    carried = false;
  }

  if (mine)
  {
    u32 slot = slot_base + static_cast<u32>(base) + place;

    in.order[slot] = row;
    in.tie[slot] = equal_before;
  }
}

// ---- listed groups ----

// Puts the less of two values first.
__device__ __forceinline__ void order_pair(u64 &a, u64 &b)
{
  u64 less = min(a, b);

  b = max(a, b);
  a = less;
}

__device__ __forceinline__ void merge_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 step = items / 2; step > 0; step /= 2)
#pragma unroll
    for (u32 q = 0; q < items; q++)
      if ((q & step) == 0)
        order_pair(v[q], v[q + step]);
}

__device__ __forceinline__ void sort_items(u64 (&v)[items])
{
#pragma unroll
  for (u32 size = 2; size <= items; size *= 2)
  {
#pragma unroll
    for (u32 q = 0; q < items; q++)
      if ((q & (size / 2)) == 0)
        order_pair(v[q], v[q ^ (size - 1)]);
#pragma unroll
    for (u32 step = size / 4; step > 0; step /= 2)
#pragma unroll
      for (u32 q = 0; q < items; q++)
        if ((q & step) == 0)
          order_pair(v[q], v[q + step]);
  }
}

// One step of the network: each value meets that of the partner thread, at the
// same place of it or, when turned, at the opposite one.  `exchange` holds the
// values of all threads, for partners in other warps.
template <u32 threads, bool turned>
__device__ __forceinline__ void meet(u64 (&v)[items], u32 mask, bool in_use, u64 *exchange)
{
  u32 me = threadIdx.x;
  u32 partner = me ^ mask;
  bool lower = me < partner;

  if (mask < 32)
  {
    if (!in_use)
      return;
#pragma unroll
    for (u32 q = 0; q < (turned ? items / 2 : items); q++)
    {
      u32 opposite = turned ? items - 1 - q : q;
      u64 a = __shfl_xor_sync(~0u, v[opposite], mask);

      if (turned)
      {
        u64 b = __shfl_xor_sync(~0u, v[q], mask);

        v[opposite] = lower ? min(v[opposite], b) : max(v[opposite], b);
      }
      v[q] = lower ? min(v[q], a) : max(v[q], a);
    }
  }
  else
  {
    if (in_use)
#pragma unroll
      for (u32 q = 0; q < items; q++)
        exchange[q * threads + me] = v[q];
    __syncthreads();
    if (in_use)
#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        u64 a = exchange[(turned ? items - 1 - q : q) * threads + partner];

        v[q] = lower ? min(v[q], a) : max(v[q], a);
      }
    __syncthreads();
  }
}

// Sorts the first 1 << log_size values of a block, items * thread + place.
template <u32 threads>
__device__ __forceinline__ void sort_block(u64 (&v)[items], u32 log_size, u64 *exchange)
{
  bool in_use = (threadIdx.x & ~31u) * items < 1u << log_size;

  sort_items(v);
  for (u32 log = item_bits + 1; log <= log_size; log++)
  {
    meet<threads, true>(v, (1u << (log - item_bits)) - 1, in_use, exchange);
    for (u32 mask = 1u << (log - item_bits) >> 2; mask > 0; mask /= 2)
      meet<threads, false>(v, mask, in_use, exchange);
    if (in_use)
      merge_items(v);
  }
}

// What finish_groups keeps in shared memory.
template <u32 capacity>
struct GroupState
{
  u64 exchange[capacity];
  u64 address[capacity];        // of a home's next byte
  u32 left[capacity];           // and how many bytes there are
  u32 skip[capacity / 2];       // of a segment: bytes that all share
  uint16_t first[capacity / 2]; // of a segment: its first entry
  uint16_t home[capacity];      // of an entry
  uint16_t rank[capacity];      // of an entry: its rank in the group
  uint16_t segment[capacity];   // of an entry
  u32 warp_sums[capacity / items / 32];
  u32 taken;
};

// The sums of `value` over the threads before this one, and over all.
template <u32 threads>
__device__ __forceinline__ u32 sum_before(u32 value, u32 *warp_sums, u32 *total)
{
  u32 lane = threadIdx.x % 32;
  u32 sum = value;

#pragma unroll
  for (u32 step = 1; step < 32; step *= 2)
  {
    u32 other = __shfl_up_sync(~0u, sum, step);

    if (lane >= step)
      sum += other;
  }
  if (lane == 31)
    warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();

  u32 before = 0;
  u32 all = 0;

#pragma unroll
  for (u32 w = 0; w < threads / 32; w++)
  {
    u32 warp_sum = warp_sums[w];

    before += w < threadIdx.x / 32 ? warp_sum : 0;
    all += warp_sum;
  }
  *total = all;
  return before + sum - value;
}

// Finds the bytes that each segment's rows share, as far as max_skip.
template <u32 threads, u32 capacity>
__device__ __forceinline__ void skip_shared(GroupState<capacity> &state, u32 live)
{
  for (u32 entry = threadIdx.x; entry < live; entry += threads)
  {
    u32 of = state.segment[entry];
    u32 mine = state.home[entry];
    u32 head = state.home[state.first[of]];

    if (mine == head)
      continue;

    u32 limit = *const_cast<volatile u32 *>(&state.skip[of]);
    u32 shared = min(limit, min(state.left[mine], state.left[head]));

    for (u32 at = 0; at < shared; at += 8)
    {
      u64 diff = load_word(state.address[mine] + at, state.left[mine] - at) ^
                 load_word(state.address[head] + at, state.left[head] - at);

      if (diff != 0)
        shared = min(shared, at + static_cast<u32>(__clzll(static_cast<long long>(diff))) / 8);
    }
    if (shared < limit)
      atomicMin(&state.skip[of], shared);
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
    u32 chars = 0; // that addresses lag behind

    for (u32 entry = me; entry < live; entry += threads)
    {
      state.home[entry] = static_cast<uint16_t>(entry);
      state.rank[entry] = static_cast<uint16_t>(entry);
      state.segment[entry] = 0;
    }
    if (me == 0)
      state.first[0] = 0;
    __syncthreads();

    while (live > 0)
    {
      u32 log_size = item_bits;

      while (1u << log_size < live)
        log_size++;

      u32 active = 1u << (log_size - item_bits);
      u64 v[items];

      if (carried)
      {
        u32 rest = 64 - in.shape.sorted_bits;

        chars = group.chars;
#pragma unroll
        for (u32 q = 0; q < items; q++)
        {
          u32 entry = q * active + me;

          v[q] = ~u64{0};
          if (me < active && entry < live)
            v[q] = (in.words[u64{group.start} + entry] & ~(~u64{0} << rest)) << log_size | entry;
        }
      }
      else
      {
        if (!loaded)
        {
          for (u32 entry = me; entry < live; entry += threads)
          {
            u32 home = state.home[entry];
            KeyRef key = load_key(in.keys, in.rows[u64{group.start} + home]);

            state.address[home] = key.address + group.depth;
            state.left[home] = key.length - group.depth;
          }
        }
        else
        {
          for (u32 entry = me; entry < live; entry += threads)
          {
            u32 home = state.home[entry];

            state.address[home] += chars;
            state.left[home] -= chars;
          }
        }
        loaded = true;
        for (u32 of = me; of < n_segments; of += threads)
          state.skip[of] = max_skip;
        __syncthreads();
        skip_shared<threads, capacity>(state, live);
        __syncthreads();

        u32 segment_bits = 32 - static_cast<u32>(__clz(static_cast<int>(n_segments - 1)));
        u32 key_bits = 64 - count_bits - segment_bits - log_size;

        chars = min(max_chars, key_bits / 8);
#pragma unroll
        for (u32 q = 0; q < items; q++)
        {
          u32 entry = q * active + me;

          v[q] = ~u64{0};
          if (me < active && entry < live)
          {
            u32 home = state.home[entry];
            u32 of = state.segment[entry];
            u64 address = state.address[home] + state.skip[of];
            u32 left = state.left[home] - state.skip[of];

            state.address[home] = address;
            state.left[home] = left;
            v[q] = static_cast<u64>(of) << 1 << (63 - segment_bits) |
                   load_word(address, left) >> (64 - key_bits) << (count_bits + log_size) |
                   static_cast<u64>(min(left, chars)) << log_size | entry;
          }
        }
      }

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
          if ((head && tail) || (word & ((1 << count_bits) - 1)) < chars)
          {
            u64 slot = u64{group.slot} + rank[q];

            in.order[slot] = in.rows[u64{group.start} + home[q]];
            in.tie[slot] = !head;
          }
          else
          {
            going_on |= 1u << q;
            heads |= head ? 1u << q : 0;
          }
        }
      }

      u32 totals;
      u32 sums =
          sum_before<threads>(static_cast<u32>(__popc(going_on)) | static_cast<u32>(__popc(heads)) << 16,
                              state.warp_sums, &totals);
      u32 entry = sums & 0xffff;
      u32 of = sums >> 16;

#pragma unroll
      for (u32 q = 0; q < items; q++)
      {
        if ((going_on >> q & 1) == 0)
          continue;
        if ((heads >> q & 1) != 0)
          state.first[of++] = static_cast<uint16_t>(entry);
        state.home[entry] = home[q];
        state.rank[entry] = rank[q];
        state.segment[entry] = static_cast<uint16_t>(of - 1);
        entry++;
      }
      live = totals & 0xffff;
      n_segments = totals >> 16;
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
                        u64{in.live / least_class_rows[group_class]} + 1);

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
  for (u32 i = 0; i < group_classes; i++)
    limits.class_rows[i] = class_threads[i] * items;
  if (static_cast<size_t>(shared_bytes) < sizeof(GroupState<class_threads[group_classes - 1] * items>))
    limits.class_rows[group_classes - 1] = least_max_rows;
  return limits;
}

void finish_small(const SortedRows &in, const Segments &segments, cudaStream_t stream)
{
  small_groups<<<blocks_for(in.live, window_quota), window_threads, 0, stream>>>(in, segments);
  GS_CUDA_LAUNCHED();
}

void finish_listed(const SortedRows &in, const GroupLists &lists, const FinishLimits &limits,
                   cudaStream_t stream)
{
  launch_groups<class_threads[0]>(in, lists, 0, limits, stream);
  launch_groups<class_threads[1]>(in, lists, 1, limits, stream);
  if (limits.max_rows() == class_threads[2] * items)
    launch_groups<class_threads[2]>(in, lists, 2, limits, stream);
  else
    launch_groups<least_threads>(in, lists, 2, limits, stream);
}

} // namespace gpusort
