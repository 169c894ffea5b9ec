/*-------------------------------------------------------------------------
 *
 * string_groups.cu
 *	  The groups of a sorted round.
 *
 * A block looks at a window of the sorted words, one row a thread, and takes
 * the groups that begin in its first `quota` rows: so early that small ones
 * end within it.  The first row of a group that does not searches for its end.
 *
 * Small groups
 *	  A row's new place in its group is the number of rows in it that are less,
 *	  and the equal ones before it; that makes smaller groups, and so on, word by
 *	  word, until none holds two unequal rows.  All that is 64 compares at
 *	  most of words in shared memory for a row and word, and threads wait for
 *	  their block only.  First comes what the sort has left out of the words.
 *
 *-------------------------------------------------------------------------
 */
#include "string_groups.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 quota = threads - small_rows;
constexpr u32 probes = 7; // that a search has under way at a time

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
  return at * 32 + 31 - static_cast<u32>(__clz(static_cast<int>(bits)));
}

// The first place after `place` whose flag is set, or `threads`.
__device__ __forceinline__ u32 flag_after(const u32 *flags, u32 place)
{
  if (place + 1 >= threads)
    return threads;

  u32 at = (place + 1) / 32;
  u32 bits = flags[at] & (~0u << (place + 1) % 32);

  while (bits == 0)
  {
    if (++at == threads / 32)
      return threads;
    bits = flags[at];
  }
  return at * 32 + static_cast<u32>(__ffs(static_cast<int>(bits))) - 1;
}

// The end of the group that the row at `inside` is of.  Most are near.
__device__ u64 find_end(const SortedRows &in, u64 inside, u64 key)
{
  u64 outside = in.live;
  u64 from = inside;

  // Each probe is four times as far as the one before.
#pragma unroll
  for (u32 probe = 0; probe < probes; probe++)
  {
    u64 at = from + (u64{32} << probe * 2);

    if (at >= in.live)
      continue;
    if (in.shape.group_of(__ldg(in.words + at)) == key)
      inside = max(inside, at);
    else
      outside = min(outside, at);
  }
  while (outside - inside > 1)
  {
    u64 step = (outside - inside + probes) / (probes + 1);
    u64 low = inside;
    u64 high = outside;

#pragma unroll
    for (u32 probe = 1; probe <= probes; probe++)
    {
      u64 at = inside + step * probe;

      if (at >= outside)
        continue;
      if (in.shape.group_of(__ldg(in.words + at)) == key)
        low = max(low, at);
      else
        high = min(high, at);
    }
    inside = low;
    outside = high;
  }
  return outside;
}

__global__ void __launch_bounds__(threads)
    take_groups(SortedRows in, Segments segments, FinishLimits limits, GroupLists lists, Segments next)
{
  __shared__ u64 window[threads];
  __shared__ u8 window_count[threads];
  __shared__ u32 heads[threads / 32];
  __shared__ u32 listed[group_classes];
  __shared__ u32 list_base[group_classes];
  const Shape shape = in.shape;
  const u32 count_mask = (1u << count_bits) - 1;
  u64 base = u64{blockIdx.x} * quota;
  u32 place = threadIdx.x;
  u64 at = base + place;
  bool exists = at < in.live;
  u64 word = exists ? __ldg(in.words + at) : 0;
  u64 key = shape.group_of(word);
  bool head = !exists || at == 0 || shape.group_of(__ldg(in.words + at - 1)) != key;
  u32 ballot = __ballot_sync(~0u, head);

  if (place % 32 == 0)
    heads[place / 32] = ballot;
  if (place < group_classes)
    listed[place] = 0;
  __syncthreads();

  u32 low = 0;
  u32 high = 0;
  u32 row = 0;
  u32 slot_base = 0; // the window's first rank, were it all of this segment
  u32 depth = 0;     // after this word
  u32 chars = 0;
  bool mine = false; // of a small group
  u32 group_class = group_classes;
  u32 place_in_list = 0;
  Group group = {};

  if (exists)
  {
    u32 of = shape.segment_of(word);
    u32 lead = segments.lead[of];

    chars = shape.chars(lead);
    low = flag_before(heads, place);
    high = flag_after(heads, place);
    slot_base = segments.slot[of] - segments.place[of] + static_cast<u32>(base);
    if (lead == equal_keys || (!shape.partial() && (word & count_mask) < chars))
    {
      if (place < quota)
      {
        in.order[slot_base + place] = in.rows[at];
        in.tie[slot_base + place] = !head;
      }
    }
    else if (low < quota && high - low <= small_rows)
    {
      row = in.rows[at];
      if (high - low == 1)
      {
        in.order[slot_base + place] = row;
        in.tie[slot_base + place] = 0;
      }
      else
      {
        mine = true;
        depth = segments.depth[of] + segments.skip[of] + chars;
      }
    }
    else if (low == place && place < quota)
    {
      u64 size = high < threads ? high - low : find_end(in, base + threads - 1, key) - at;
      u32 before = segments.depth[of] + segments.skip[of];
      u32 slot = slot_base + place;

      if (size > limits.max_rows())
      {
        u64 taken = atomicAdd(&lists.state->large, u64{1} << 32 | size);
        u32 to = static_cast<u32>(taken >> 32);

        next.place[to] = static_cast<u32>(taken);
        next.source[to] = static_cast<u32>(at);
        next.slot[to] = slot;
        // Sorted by the upper bits only, some keys may have ended already.
        next.depth[to] = shape.partial() ? before : before + chars;
        next.skip[to] = max_skip;
        next.lead[to] = 0;
      }
      else
      {
        group = {static_cast<u32>(at), slot, before + chars, static_cast<uint16_t>(size),
                 static_cast<uint16_t>(chars)};
        for (group_class = 0; size > limits.class_rows[group_class];)
          group_class++;
        place_in_list = atomicAdd(&listed[group_class], 1u);
      }
    }
  }
  __syncthreads();
  if (place < group_classes && listed[place] > 0)
    list_base[place] = atomicAdd(&lists.state->n_groups[place], listed[place]);
  __syncthreads();
  if (group_class < group_classes)
    lists.groups[group_class][list_base[group_class] + place_in_list] = group;

  KeyRef ref = {};
  bool unsettled = mine;
  bool equal_before = false;
  bool carried = shape.partial();
  bool loaded = false;

  while (__syncthreads_or(unsettled))
  {
    u64 own = 0;
    u32 count = 0;

    if (unsettled)
    {
      if (carried)
      {
        own = word;
        count = (word & count_mask) < chars ? 0 : 8;
      }
      else
      {
        if (!loaded)
          ref = load_key(in.keys, row);
        loaded = true;

        u32 left = ref.length - depth;

        own = load_word(ref.address + depth, left);
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
    in.order[slot_base + place] = row;
    in.tie[slot_base + place] = equal_before;
  }
}

} // namespace

void find_groups(const SortedRows &in, const Segments &segments, const FinishLimits &limits,
                 const GroupLists &lists, const Segments &next, cudaStream_t stream)
{
  take_groups<<<blocks_for(in.live, quota), threads, 0, stream>>>(in, segments, limits, lists, next);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
