/*-------------------------------------------------------------------------
 *
 * string_bucket_sort.cuh
 *	  The rows of a bucket, sorted by one block.
 *
 * Steps
 *	  At first the values of the bucket's rows are sorted: bits of the key behind those
 *	  in which the bucket's keys agree, and the home, which makes the sort stable.  Rows whose
 *	  values tie while their keys go on are kept together, as entries.  What is sorted then is,
 *	  from the top, the entry's segment, the relation of its key to that of the segment's
 *	  pivot, the bits after what it shares with the pivot, and the entry's number; see
 *	  string_finish.cu, whose groups are sorted in the same way.  Where most values are alike, the rows
 *	  are one segment at once.
 *
 *	  Once all segments are small, each key is compared with all others of its segment, which
 *	  brings it to its place: to wait for keys takes longer than to compare them.
 *
 * Sorting
 *	  A warp sorts a run of values in its registers, by a network that is written out.  Runs
 *	  are merged by pairs: each value searches the other run for its place.  With so few rows in a
 *	  block, the time is that of one instruction after the other; this takes fewer of them, and fewer
 *	  barriers, than a network over the block.
 *
 * Included by string_bucket_finish.cu alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKET_SORT_CUH
#define GS_STRING_BUCKET_SORT_CUH

#include "string_bucket_rows.cuh"

namespace gpusort
{

namespace bucket_finish
{

constexpr u32 run_size = warp_values; // that a warp sorts
constexpr u32 small_segment = 4;      // whose rows are compared with each other
constexpr u32 majority = 2;           // one in less than so many rows has the same value

// Bits of keys in values that have a relation, as the tiles keep them and as a block does.
constexpr u32 kept_related_bits = 64 - relation_bits - count_bits - row_bits;
constexpr u32 related_bits = 64 - relation_bits - count_bits - place_bits;

// An entry: its home, its rank in the bucket, and its segment.
constexpr u32 place_mask = capacity - 1;

// How a step's values are made up.
struct Layout
{
  bool has_relation;
  u32 segment_bits;
  u32 key_bits;
  u32 chars;   // whole bytes of the key
  u32 advance; // keys of equal values agree in so many more

  __device__ explicit Layout(const Bucket &bucket)
  {
    has_relation = bucket.step > 0 || bucket.is_related;
    segment_bits = 32 - static_cast<u32>(__clz(static_cast<int>(bucket.n_segments - 1)));
    key_bits = bucket.step > 0     ? related_bits - segment_bits
               : bucket.is_related ? kept_related_bits
                                   : value_bits;
    chars = min(max_chars, (key_bits + (has_relation ? 0 : bucket.known & agreed_bits) % 8) / 8);
    advance = has_relation || (bucket.known & has_codes) == 0 ? chars : 0;
  }
};

// What a value says of a key: how it relates to a pivot, what follows that, and how much this is.
__device__ __forceinline__ u64 related_value(const Relation &relation, u32 left, u32 key_bits, u32 chars)
{
  return static_cast<u64>(relation.value) << (key_bits + count_bits) |
         relation.next >> (64 - key_bits) << count_bits | min(left - relation.shared, chars);
}

// An entry's value: it relates to its segment's pivot.
__device__ __forceinline__ u64 entry_value(BucketState &state, const KeyRef *keys, u32 parity,
                                           const Layout &layout, u32 number)
{
  u32 entry = state.entries(parity)[number];
  u32 of = entry >> (2 * place_bits);
  u32 middle = (u32{state.first()[of]} + state.first()[of + 1]) / 2;
  KeyRef mine = load_key(keys, state.row[entry & place_mask]);
  KeyRef pivot = load_key(keys, state.row[state.entries(parity)[middle] & place_mask]);
  u32 depth = state.depth(parity)[of];
  u32 left = mine.length - depth;
  Relation relation =
      relate(mine.address + depth, left, pivot.address + depth, pivot.length - depth, number == middle);

  return static_cast<u64>(of) << 1 << (63 - layout.segment_bits) |
         related_value(relation, left, layout.key_bits, layout.chars) << place_bits | number;
}

// Merges groups of sorted values by pairs, from one place to another: where a value goes tells the number of
// those less than it in its own group, which it stands for, and in the other one, which is searched.
template <u32 size>
__device__ __forceinline__ void merge_groups(u64 *values, u32 from, u32 to, u32 live)
{
  const u32 lane = threadIdx.x % 32;

#pragma unroll 1
  for (u32 begin = threadIdx.x / 32 * run_size; begin < live; begin += warps * run_size)
  {
    ulonglong2 mine = reinterpret_cast<const ulonglong2 *>(values + from + begin)[lane];
    u32 other = (begin ^ size) & ~(size - 1);
    u32 first = to + (begin & ~size) + lane * 2;
    u32 second = first + 1;

    if (other < live)
    {
      first += find_place<size>(values, from + other, mine.x) - (from + other);
      second += find_place<size>(values, from + other, mine.y) - (from + other);
    }
    values[first] = mine.x;
    values[second] = mine.y;
  }
  __syncthreads();
}

// Brings all values to their places.  A warp sorts runs, and these are merged by pairs, to and fro.
__device__ __forceinline__ void sort_values(BucketState &state, u32 parity, u32 live)
{
  const u32 lane = threadIdx.x % 32;
  const u32 merges = 32 - static_cast<u32>(__clz(static_cast<int>((live - 1) / run_size)));
  u64 *values = state.exchange;
  const u32 room = static_cast<u32>(state.room(parity) - values);
  const u32 from = merges % 2 == 0 ? 0 : room;
  const u32 to = merges % 2 == 0 ? room : 0;

#pragma unroll 1
  for (u32 run = threadIdx.x / 32; run < 1u << merges; run += warps)
  {
    u32 begin = run * run_size;
    u64 v[2] = {~u64{0}, ~u64{0}};

    if (begin < live)
    {
#pragma unroll
      for (u32 q = 0; q < 2; q++)
        if (begin + q * 32 + lane < live)
          v[q] = values[begin + q * 32 + lane];
      sort_warp(v);
      __syncwarp(); // others have read what is written over
    }
    else
      // No merge brings anything there, but searches look.
      reinterpret_cast<ulonglong2 *>(values + to + begin)[lane] = make_ulonglong2(v[0], v[1]);
    reinterpret_cast<ulonglong2 *>(values + from + begin)[lane] = make_ulonglong2(v[0], v[1]);
  }
  __syncthreads();
  static_assert(16 * run_size == capacity);
  if (merges >= 1)
    merge_groups<run_size>(values, from, to, live);
  if (merges >= 2)
    merge_groups<2 * run_size>(values, to, from, live);
  if (merges >= 3)
    merge_groups<4 * run_size>(values, from, to, live);
  if (merges >= 4)
    merge_groups<8 * run_size>(values, to, from, live);
}

// The places that a warp looks after, 32 at a time.
struct Places
{
  u32 begin;
  u32 end;

  __device__ explicit Places(u32 live)
  {
    u32 each = (live + threads - 1) / threads * 32;

    begin = min(threadIdx.x / 32 * each, live);
    end = min(begin + each, live);
  }
};

// Do two values differ in nothing but their homes, or the numbers of entries?
__device__ __forceinline__ bool are_alike(u64 a, u64 b)
{
  return ((a ^ b) & ~u64{place_mask}) == 0;
}

// What a place's value tells beside those before and behind it.
struct Standing
{
  u64 value;
  bool head;     // the first of equal values
  bool going_on; // there are others, of keys that go on

  __device__ Standing(const u64 *values, u32 place, u32 live, u32 chars)
  {
    value = values[place];
    head = place == 0 || !are_alike(values[place - 1], value);

    bool tail = place + 1 == live || !are_alike(values[place + 1], value);

    going_on = (!head || !tail) && (static_cast<u32>(value) >> place_bits & ((1 << count_bits) - 1)) >= chars;
  }
};

// Writes where the rows are that are settled, and keeps the others together.
__device__ __forceinline__ void settle(BucketState &state, const BucketJob &job, Bucket &bucket,
                                       const Layout &layout)
{
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  const u32 parity = bucket.step & 1;
  const bool is_first = bucket.step == 0;
  const u32 live = bucket.live;
  const Places mine(live);
  u32 sums = 0;     // entries that go on; heads in the upper half
  u32 my_going = 0; // which of them do, of the 32 places whose number among the warp's is the lane,
  u32 my_heads = 0; // and which are heads

#pragma unroll 1
  for (u32 first = mine.begin; first < mine.end; first += 32)
  {
    u32 place = first + lane;
    bool head = false;
    bool going_on = false;

    if (place < mine.end)
    {
      Standing standing(state.exchange, place, live, layout.chars);
      u32 home = static_cast<u32>(standing.value) & place_mask;
      u32 rank = place;

      head = standing.head;
      going_on = standing.going_on;
      if (!going_on)
      {
        if (!is_first)
        {
          home = state.entries(parity)[home] & place_mask;
          rank = state.entries(parity)[place] >> place_bits & place_mask;
        }
        job.order[bucket.base + rank] = state.row[home];
        job.tie[bucket.base + rank] = !head;
      }
    }

    u32 going = __ballot_sync(~0u, going_on);
    u32 heads = __ballot_sync(~0u, going_on && head);

    sums += static_cast<u32>(__popc(going)) | static_cast<u32>(__popc(heads)) << 16;
    if (first == mine.begin + lane * 32)
    {
      my_going = going;
      my_heads = heads;
    }
  }
  if (lane == 0)
    state.warp_sums[parity][warp] = sums;
  __syncthreads();

  u32 before = 0;
  u32 all = 0;

#pragma unroll
  for (u32 w = 0; w < warps; w++)
  {
    u32 its = state.warp_sums[parity][w];

    before += w < warp ? its : 0;
    all += its;
  }
  bucket.step++;
  bucket.live = all & 0xffff;
  bucket.n_segments = all >> 16;
  if (all == 0)
    return;

#pragma unroll 1
  for (u32 first = mine.begin; first < mine.end; first += 32)
  {
    int chunk = static_cast<int>((first - mine.begin) / 32);
    u32 going = __shfl_sync(~0u, my_going, chunk);
    u32 heads = __shfl_sync(~0u, my_heads, chunk);

    if ((going >> lane & 1) != 0)
    {
      u32 place = first + lane;
      u64 value = state.exchange[place];
      u32 number = static_cast<u32>(value) & place_mask;
      u32 home = is_first ? number : state.entries(parity)[number] & place_mask;
      u32 rank = is_first ? place : state.entries(parity)[place] >> place_bits & place_mask;
      u32 entry = (before & 0xffff) + static_cast<u32>(__popc(going & ((1u << lane) - 1)));
      u32 of = (before >> 16) + static_cast<u32>(__popc(heads & ((2u << lane) - 1))) - 1;

      state.entries(parity ^ 1)[entry] = home | rank << place_bits | of << (2 * place_bits);
      if ((heads >> lane & 1) != 0)
      {
        u32 depth = bucket.depth;

        if (!is_first)
          depth = state.depth(parity)[static_cast<u32>(value >> 1 >> (63 - layout.segment_bits))];
        if (layout.has_relation)
          depth += shared_of(static_cast<u32>(value >> (layout.key_bits + count_bits + place_bits)) &
                             ((1u << relation_bits) - 1));
        state.depth(parity ^ 1)[of] = depth + layout.advance;
        state.first()[of] = static_cast<uint16_t>(entry);
      }
    }
    before += static_cast<u32>(__popc(going)) | static_cast<u32>(__popc(heads)) << 16;
  }
  if (threadIdx.x == 0)
    state.first()[bucket.n_segments] = static_cast<uint16_t>(bucket.live);
  __syncthreads();
}

// Is one value that of many rows, among `live`, whose keys go on?  So it is if it is that of many probes,
// which all warps look at by themselves.
__device__ __forceinline__ bool has_majority(BucketState &state, const Layout &layout, u32 live)
{
  u32 n = min((live + probe_step - 1) / probe_step, most_probes);
  u32 lane = threadIdx.x % 32;
  u64 value = state.probes[n / 2] >> place_bits;
  u32 alike = __ballot_sync(~0u, lane < n && state.probes[lane] >> place_bits == value);

  return live > probe_step && static_cast<u32>(__popc(alike)) * majority > n &&
         (value & ((1 << count_bits) - 1)) >= layout.chars;
}

// Makes one segment of all rows, which are to be related to a pivot.
__device__ __forceinline__ void take_segment(BucketState &state, Bucket &bucket)
{
  bucket.step = 2;
  for (u32 i = threadIdx.x; i < bucket.live; i += threads)
    state.entries(0)[i] = i | i << place_bits;
  if (threadIdx.x == 0)
  {
    state.first()[0] = 0;
    state.first()[1] = static_cast<uint16_t>(bucket.live);
    state.depth(0)[0] = bucket.depth;
  }
  __syncthreads();
}

// If all segments are small, brings their rows to their places at once: each key is compared with all
// others of its segment.
__device__ __forceinline__ bool finish_small(BucketState &state, const BucketJob &job, const Bucket &bucket)
{
  const u32 parity = bucket.step & 1;
  const u32 number = threadIdx.x;
  u32 entry = 0;
  u32 begin = 0;
  u32 end = 0;

  if (bucket.live > threads)
    return false;
  if (number < bucket.live)
  {
    entry = state.entries(parity)[number];
    begin = state.first()[entry >> (2 * place_bits)];
    end = state.first()[(entry >> (2 * place_bits)) + 1];
  }
  if (__syncthreads_or(end - begin > small_segment) != 0)
    return false;
  if (end == 0)
    return true;

  const u32 row = state.row[entry & place_mask];
  const u32 depth = state.depth(parity)[entry >> (2 * place_bits)];
  const KeyRef mine = load_key(job.keys, row);
  const u64 my_word = load_word(mine.address + depth, mine.length - depth);
  KeyRef its[small_segment - 1];
  u64 its_word[small_segment - 1];
  u32 n_before = 0;
  bool is_tie = false;

  // All are on their way at a time; mostly the first words tell them apart.
#pragma unroll
  for (u32 k = 0; k < small_segment - 1; k++)
  {
    u32 other = begin + k + (begin + k >= number);

    its[k] = other < end ? load_key(job.keys, state.row[state.entries(parity)[other] & place_mask]) : mine;
  }
#pragma unroll
  for (u32 k = 0; k < small_segment - 1; k++)
    its_word[k] = load_word(its[k].address + depth, its[k].length - depth);
#pragma unroll
  for (u32 k = 0; k < small_segment - 1; k++)
  {
    u32 other = begin + k + (begin + k >= number);

    if (other < end)
    {
      int order = its_word[k] < my_word ? -1 : 1;

      if (its_word[k] == my_word)
        order = compare_keys(its[k], mine, depth).order;

      bool is_same = order == 0 && other < number;

      n_before += order < 0 || is_same;
      is_tie = is_tie || is_same;
    }
  }

  // Ranks stay with the places of entries.
  u32 rank = bucket.base + (state.entries(parity)[begin + n_before] >> place_bits & place_mask);

  job.order[rank] = row;
  job.tie[rank] = is_tie;
  return true;
}

// Sorts a bucket that has room, or a part of one, once its values are in their places.
__device__ __forceinline__ void sort_bucket(BucketState &state, const BucketJob &job, Bucket bucket)
{
  __syncthreads();
  if (has_majority(state, Layout(bucket), bucket.live))
    take_segment(state, bucket);
#pragma unroll 1
  while (bucket.live > 0)
  {
    const Layout layout(bucket);

    if (bucket.step > 0)
    {
      if (finish_small(state, job, bucket))
        return;
#pragma unroll 1
      for (u32 number = threadIdx.x; number < bucket.live; number += threads)
        state.exchange[number] = entry_value(state, job.keys, bucket.step & 1, layout, number);
      __syncthreads();
    }
    sort_values(state, bucket.step & 1, bucket.live);
    settle(state, job, bucket, layout);
  }
}

} // namespace bucket_finish

} // namespace gpusort

#endif // GS_STRING_BUCKET_SORT_CUH
