/*-------------------------------------------------------------------------
 *
 * groups.cu
 *	  The groups of a sorted round.
 *
 * A block looks at a window of the sorted words, some rows a thread, and takes the groups that begin in its
 * first `quota` rows.  Small groups that begin there end within the window.  The first row of a larger
 * group searches for the group's end.
 *
 * Small groups are sorted by counting.  A row's new place in its group is the number of lesser rows, and of
 * equal rows before it.  Equal rows are then a smaller group.  The next words sort it in the same way, until
 * no group holds two unequal rows.  For each word a row is compared with 64 words in shared memory at most,
 * and threads wait for their block only.  If the round sorted by the upper bits of its words only, the rest
 * of the words comes first.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/groups.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 128;
constexpr u32 rows_each = 4; // of a thread, `threads` apart
constexpr u32 window_rows = threads * rows_each;
constexpr u32 quota = window_rows - small_rows;
constexpr u32 max_listed = quota / (small_rows + 1) + 1; // in a window
constexpr u32 probes = 7;                                // that a search has on their way at a time
static_assert(window_rows <= 32 * 32);

// How many blocks a multiprocessor should hold, which wait for memory most of the time.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr u32 min_blocks = 8; // it cannot hold more
#else
constexpr u32 min_blocks = 10;
#endif

// Makes a group that is too large for a block a segment of the next round.  It begins
// at place `source` of the sorted rows; depth: bytes that its keys share, before this round's words are
// counted in.
__device__ __forceinline__ void make_segment(const GroupOutput &output, const WordLayout &layout, u32 source,
                                             u32 first_rank, u64 size, u32 depth, u32 lead)
{
  const Segments &next = output.segments;
  u64 taken = atomicAdd(&output.lists.counts->large, u64{1} << 32 | size);
  u32 i = static_cast<u32>(taken >> 32);

  next.place[i] = static_cast<u32>(taken);
  next.source[i] = source;
  next.first_rank[i] = first_rank;
  // Sorted by the upper bits only, some keys may have ended already.
  next.depth[i] = layout.is_partial() ? depth : depth + layout.chars(lead);
  next.skip[i] = max_skip;
  next.lead[i] = 0;
}

// Puts a group on the list of its class.
__device__ __forceinline__ void list_group(const GroupLists &lists, const Group &group)
{
  Group *groups = lists.groups[0];
  u32 *listed = &lists.counts->listed[0];

#pragma unroll
  for (u32 i = 1; i < group_classes; i++)
    if (group.size > class_rows(i - 1))
    {
      groups = lists.groups[i];
      listed = &lists.counts->listed[i];
    }
  groups[atomicAdd(listed, 1u)] = group;
}

// What a block keeps in shared memory.
struct Window
{
  u64 words[window_rows];
  u8 counts[window_rows];
  u32 heads[window_rows / 32]; // flags: the first rows of groups
  Group listed[max_listed];
  u32 n_listed;
};

// The rows that a thread sorts with their small groups.
struct SmallRows
{
  u32 taken;            // flags: which of the thread's rows these are
  u32 ends[rows_each];  // where the row's group begins in the window, and in the upper half ends
  u32 ranks[rows_each]; // what the window's first rank would be if all were of the row's segment
  u32 row[rows_each];
  u32 depth[rows_each]; // of the next word
  u32 chars[rows_each]; // whole bytes of the key in the round's word
};

// Groups of a window, by the flags of their heads.
struct Heads
{
  const u32 *flags;
  u32 any; // for each word of flags, whether it has one set

  // The last head up to `place`, or ~0.
  __device__ __forceinline__ u32 last_up_to(u32 place) const
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

  // The first head after `place`, or window_rows.
  __device__ __forceinline__ u32 first_after(u32 place) const
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

  __device__ __forceinline__ bool is_head(u32 place) const
  {
    return (flags[place / 32] >> place % 32 & 1) != 0;
  }
};

// The end of the group that the row at `inside` is of.  Most are near.
__device__ u64 find_end(const SortedRows &in, u64 inside, u64 group)
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
    if (in.layout.group_of(__ldg(in.words + at)) == group)
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
      if (in.layout.group_of(__ldg(in.words + at)) == group)
        low = max(low, at);
      else
        high = min(high, at);
    }
    inside = low;
    outside = high;
  }
  return outside;
}

// Reads the thread's words of the window that begins at `base`, and flags heads.
__device__ __forceinline__ Heads find_heads(const SortedRows &in, u64 base, u64 (&word)[rows_each],
                                            Window &window)
{
#pragma unroll
  for (u32 k = 0; k < rows_each; k++)
  {
    u64 at = base + k * threads + threadIdx.x;

    word[k] = at < in.live ? __ldg(in.words + at) : 0;
  }
#pragma unroll
  for (u32 k = 0; k < rows_each; k++)
  {
    u64 at = base + k * threads + threadIdx.x;
    u64 previous = at > 0 && at < in.live ? __ldg(in.words + at - 1) : 0;
    bool is_head = at >= in.live || at == 0 || in.layout.group_of(previous) != in.layout.group_of(word[k]);
    u32 flags = __ballot_sync(~0u, is_head);

    if (threadIdx.x % 32 == 0)
      window.heads[(k * threads + threadIdx.x) / 32] = flags;
  }
  __syncthreads();

  const u32 lane = threadIdx.x % 32;

  return {window.heads, __ballot_sync(~0u, lane < window_rows / 32 && window.heads[lane] != 0)};
}

// Writes the thread's rows whose rank is known, takes those of small groups, and
// lists the larger groups that begin at its rows.
__device__ __forceinline__ void write_or_list(const SortedRows &in, const Segments &segments,
                                              const GroupOutput &output, u64 base,
                                              const u64 (&word)[rows_each], const Heads &heads,
                                              Window &window, SmallRows &small)
{
  const WordLayout layout = in.layout;

  small.taken = 0;
#pragma unroll
  for (u32 k = 0; k < rows_each; k++)
  {
    u32 place = k * threads + threadIdx.x;
    u64 at = base + place;

    if (at >= in.live)
      continue;

    u32 segment = layout.segment_of(word[k]);
    u32 lead = __ldg(segments.lead + segment);
    u32 rank =
        __ldg(segments.first_rank + segment) - __ldg(segments.place + segment) + static_cast<u32>(base);

    if (lead == equal_keys || layout.has_equal_keys(word[k], lead))
    {
      if (place < quota)
      {
        in.order[rank + place] = __ldg(in.rows + at);
        in.tie[rank + place] = !heads.is_head(place);
      }
      continue;
    }

    u32 begin = heads.last_up_to(place);
    u32 end = heads.first_after(place);

    if (begin < quota && end - begin <= small_rows)
    {
      small.row[k] = __ldg(in.rows + at);
      if (end - begin == 1)
      {
        in.order[rank + place] = small.row[k];
        in.tie[rank + place] = 0;
        continue;
      }
      small.taken |= 1u << k;
      small.ends[k] = begin | end << 16;
      small.ranks[k] = rank;
      small.depth[k] = __ldg(segments.depth + segment) + __ldg(segments.skip + segment) + layout.chars(lead);
      small.chars[k] = layout.chars(lead);
    }
    else if (begin == place && place < quota)
    {
      u64 size =
          (end < window_rows ? base + end : find_end(in, base + window_rows - 1, layout.group_of(word[k]))) -
          at;
      u32 depth = __ldg(segments.depth + segment) + __ldg(segments.skip + segment);

      if (size > output.max_rows)
        make_segment(output, layout, static_cast<u32>(at), rank + place, size, depth, lead);
      else
        window.listed[atomicAdd(&window.n_listed, 1u)] = {
            static_cast<u32>(at), rank + place, depth + layout.chars(lead), static_cast<uint16_t>(size),
            static_cast<uint16_t>(layout.chars(lead))};
    }
  }
}

// Sorts the small groups of the window and writes their rows.
__device__ __forceinline__ void sort_small(const SortedRows &in, const u64 (&word)[rows_each], Window &window,
                                           SmallRows &small)
{
  u32 unranked = small.taken;
  u32 tied = 0;
  u32 place[rows_each]; // in the window
  bool by_words = in.layout.is_partial();

#pragma unroll
  for (u32 k = 0; k < rows_each; k++)
    place[k] = k * threads + threadIdx.x;

  while (__syncthreads_or(unranked != 0))
  {
    u64 own[rows_each];
    u32 count[rows_each];

#pragma unroll
    for (u32 k = 0; k < rows_each; k++)
    {
      if ((unranked >> k & 1) == 0)
        continue;
      if (by_words)
      {
        own[k] = word[k];
        count[k] = (word[k] & ((1u << count_bits) - 1)) < small.chars[k] ? 0 : 8;
      }
      else
      {
        KeyRef key = load_key(in.keys, small.row[k]);
        u32 left = key.length - small.depth[k];

        own[k] = load_word(key.address + small.depth[k], left);
        count[k] = min(left, 8u);
        small.depth[k] += 8;
      }
      window.words[place[k]] = own[k];
      window.counts[place[k]] = static_cast<u8>(count[k]);
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < rows_each; k++)
    {
      if ((unranked >> k & 1) == 0)
        continue;

      u32 less = 0;
      u32 equal = 0;
      u32 equal_before = 0;
      u32 begin = small.ends[k] & 0xffff;

#pragma unroll 4
      for (u32 other = begin; other < small.ends[k] >> 16; other++)
      {
        u64 other_word = window.words[other];
        u32 other_count = window.counts[other];
        bool is_equal = other_word == own[k] && other_count == count[k];

        less += other_word < own[k] || (other_word == own[k] && other_count < count[k]);
        equal += is_equal;
        equal_before += is_equal && other < place[k];
      }
      begin += less;
      place[k] = begin + equal_before;
      small.ends[k] = begin | (begin + equal) << 16;
      if (equal == 1 || count[k] < 8)
      {
        unranked &= ~(1u << k);
        tied |= equal_before > 0 ? 1u << k : 0;
      }
    }
    by_words = false;
  }

#pragma unroll
  for (u32 k = 0; k < rows_each; k++)
    if ((small.taken >> k & 1) != 0)
    {
      in.order[small.ranks[k] + place[k]] = small.row[k];
      in.tie[small.ranks[k] + place[k]] = tied >> k & 1;
    }
}

__global__ void __launch_bounds__(threads, min_blocks)
    take_groups(const __grid_constant__ SortedRows in, const __grid_constant__ Segments segments,
                const __grid_constant__ GroupOutput output)
{
  __shared__ Window window;
  const u64 base = u64{blockIdx.x} * quota;
  u64 word[rows_each];
  SmallRows small;

  if (threadIdx.x == 0)
    window.n_listed = 0;

  const Heads heads = find_heads(in, base, word, window);

  write_or_list(in, segments, output, base, word, heads, window, small);
  __syncthreads();
  if (threadIdx.x < window.n_listed)
    list_group(output.lists, window.listed[threadIdx.x]);
  sort_small(in, word, window, small);
}

} // namespace

void find_groups(const SortedRows &in, const Segments &segments, const GroupOutput &output,
                 cudaStream_t stream)
{
  take_groups<<<blocks_for(in.live, quota), threads, 0, stream>>>(in, segments, output);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
