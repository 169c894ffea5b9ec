/*-------------------------------------------------------------------------
 *
 * string_groups.cu
 *	  The groups of a sorted round.
 *
 * A block looks at a window of the sorted words, some rows a thread, and takes
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

constexpr u32 threads = 128;
constexpr u32 strips = 4; // rows of a thread, `threads` apart
constexpr u32 window_rows = threads * strips;
constexpr u32 quota = window_rows - small_rows;
constexpr u32 max_listed = quota / (small_rows + 1) + 1;
constexpr u32 probes = 7; // that a search has under way at a time

// How many blocks a multiprocessor should hold, which wait for memory most of the time.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr u32 least_blocks = 8; // it cannot hold more
#else
constexpr u32 least_blocks = 10;
#endif

// The last place up to `place` whose flag is set, or ~0.  `any` has a bit for
// each of the flags' words: whether it has one set.
__device__ __forceinline__ u32 flag_before(const u32 *flags, u32 any, u32 place)
{
  u32 at = place / 32;
  u32 bits = flags[at] & (~0u >> (31 - place % 32));

  if (bits == 0)
  {
    u32 before = any & ~(~0u << at);

    if (before == 0)
      return ~0u;
    at = 31 - static_cast<u32>(__clz(static_cast<int>(before)));
    bits = flags[at];
  }
  return at * 32 + 31 - static_cast<u32>(__clz(static_cast<int>(bits)));
}

// The first place after `place` whose flag is set, or `window_rows`.
__device__ __forceinline__ u32 flag_after(const u32 *flags, u32 any, u32 place)
{
  u32 at = place / 32;
  u32 bits = flags[at] & (~0u << 1 << place % 32);

  if (bits == 0)
  {
    u32 after = any & (~0u << 1 << at);

    if (after == 0)
      return window_rows;
    at = static_cast<u32>(__ffs(static_cast<int>(after))) - 1;
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

__global__ void __launch_bounds__(threads, least_blocks)
    take_groups(SortedRows in, Segments segments, FinishLimits limits, u32 max_rows, GroupLists lists,
                Segments next)
{
  __shared__ u64 window[window_rows];
  __shared__ u8 window_count[window_rows];
  __shared__ u32 heads[window_rows / 32];
  __shared__ Group listed[max_listed];
  __shared__ u32 n_listed;
  const Shape shape = in.shape;
  const u32 count_mask = (1u << count_bits) - 1;
  const u64 base = u64{blockIdx.x} * quota;
  const u32 me = threadIdx.x;
  u64 word[strips];

  if (me == 0)
    n_listed = 0;
#pragma unroll
  for (u32 s = 0; s < strips; s++)
  {
    u64 at = base + s * threads + me;

    word[s] = at < in.live ? __ldg(in.words + at) : 0;
  }
#pragma unroll
  for (u32 s = 0; s < strips; s++)
  {
    u64 at = base + s * threads + me;
    u64 before = at > 0 && at < in.live ? __ldg(in.words + at - 1) : 0;
    bool head = at >= in.live || at == 0 || shape.group_of(before) != shape.group_of(word[s]);
    u32 ballot = __ballot_sync(~0u, head);

    if (me % 32 == 0)
      heads[(s * threads + me) / 32] = ballot;
  }
  __syncthreads();

  static_assert(window_rows <= 32 * 32);
  const u32 any = __ballot_sync(~0u, me % 32 < window_rows / 32 && heads[me % 32] != 0);
  u32 mine = 0;      // a bit for each strip: of a small group
  u32 ends[strips];  // of that group: where it begins, and in the upper half ends
  u32 slots[strips]; // the window's first rank, were it all of this segment
  u32 row[strips];
  u32 depth[strips]; // after this word
  u32 carried_chars[strips];

#pragma unroll
  for (u32 s = 0; s < strips; s++)
  {
    u32 place = s * threads + me;
    u64 at = base + place;

    if (at >= in.live)
      continue;

    u32 of = shape.segment_of(word[s]);
    u32 lead = __ldg(segments.lead + of);
    u32 chars = shape.chars(lead);
    u32 slot = __ldg(segments.slot + of) - __ldg(segments.place + of) + static_cast<u32>(base);

    if (lead == equal_keys || shape.is_settled(word[s], lead))
    {
      if (place < quota)
      {
        in.order[slot + place] = __ldg(in.rows + at);
        in.tie[slot + place] = (heads[place / 32] >> place % 32 & 1) == 0;
      }
      continue;
    }

    u32 low = flag_before(heads, any, place);
    u32 high = flag_after(heads, any, place);

    if (low < quota && high - low <= small_rows)
    {
      row[s] = __ldg(in.rows + at);
      if (high - low == 1)
      {
        in.order[slot + place] = row[s];
        in.tie[slot + place] = 0;
      }
      else
      {
        mine |= 1u << s;
        ends[s] = low | high << 16;
        slots[s] = slot;
        depth[s] = __ldg(segments.depth + of) + __ldg(segments.skip + of) + shape.advance(lead);
        carried_chars[s] = chars;
      }
    }
    else if (low == place && place < quota)
    {
      u64 size = high < window_rows ? high - low
                                    : find_end(in, base + window_rows - 1, shape.group_of(word[s])) - at;
      u32 before = __ldg(segments.depth + of) + __ldg(segments.skip + of);

      if (size > max_rows)
      {
        u64 taken = atomicAdd(&lists.state->large, u64{1} << 32 | size);
        u32 to = static_cast<u32>(taken >> 32);

        next.place[to] = static_cast<u32>(taken);
        next.source[to] = static_cast<u32>(at);
        next.slot[to] = slot + place;
        // Sorted by the upper bits only, some keys may have ended already.
        next.depth[to] = shape.partial() ? before : before + shape.advance(lead);
        next.skip[to] = max_skip;
        next.lead[to] = 0;
      }
      else
        listed[atomicAdd(&n_listed, 1u)] = {static_cast<u32>(at), slot + place, before + shape.advance(lead),
                                            static_cast<uint16_t>(size), static_cast<uint16_t>(chars)};
    }
  }
  __syncthreads();
  if (me < n_listed)
  {
    const Group group = listed[me];
    Group *groups = lists.groups[0];
    u32 *n_groups = &lists.state->n_groups[0];

#pragma unroll
    for (u32 i = 1; i < group_classes; i++)
      if (group.size > limits.class_rows[i - 1])
      {
        groups = lists.groups[i];
        n_groups = &lists.state->n_groups[i];
      }
    groups[atomicAdd(n_groups, 1u)] = group;
  }

  u32 unsettled = mine;
  u32 equal_before = 0;
  u32 to[strips]; // the row's new place
  bool carried = shape.partial();

#pragma unroll
  for (u32 s = 0; s < strips; s++)
    to[s] = s * threads + me;

  while (__syncthreads_or(unsettled != 0))
  {
    u64 own[strips];
    u32 count[strips];

#pragma unroll
    for (u32 s = 0; s < strips; s++)
    {
      if ((unsettled >> s & 1) == 0)
        continue;
      if (carried)
      {
        own[s] = word[s];
        count[s] = (word[s] & count_mask) < carried_chars[s] ? 0 : 8;
      }
      else
      {
        KeyRef key = load_key(in.keys, row[s]);
        u32 left = key.length - depth[s];

        own[s] = load_word(key.address + depth[s], left);
        count[s] = min(left, 8u);
        depth[s] += 8;
      }
      window[to[s]] = own[s];
      window_count[to[s]] = static_cast<u8>(count[s]);
    }
    __syncthreads();
#pragma unroll
    for (u32 s = 0; s < strips; s++)
    {
      if ((unsettled >> s & 1) == 0)
        continue;

      u32 less = 0;
      u32 equal = 0;
      u32 before = 0;
      u32 low = ends[s] & 0xffff;

#pragma unroll 4
      for (u32 j = low; j < ends[s] >> 16; j++)
      {
        u64 other = window[j];
        u32 other_count = window_count[j];
        bool same = other == own[s] && other_count == count[s];

        less += other < own[s] || (other == own[s] && other_count < count[s]);
        equal += same;
        before += same && j < to[s];
      }
      low += less;
      to[s] = low + before;
      ends[s] = low | (low + equal) << 16;
      if (equal == 1 || count[s] < 8)
      {
        unsettled &= ~(1u << s);
        equal_before |= before > 0 ? 1u << s : 0;
      }
    }
    carried = false;
  }

#pragma unroll
  for (u32 s = 0; s < strips; s++)
    if ((mine >> s & 1) != 0)
    {
      in.order[slots[s] + to[s]] = row[s];
      in.tie[slots[s] + to[s]] = equal_before >> s & 1;
    }
}

} // namespace

void find_groups(const SortedRows &in, const Segments &segments, const FinishLimits &limits,
                 const GroupLists &lists, const Segments &next, cudaStream_t stream)
{
  take_groups<<<blocks_for(in.live, quota), threads, 0, stream>>>(in, segments, limits, limits.max_rows(),
                                                                  lists, next);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
