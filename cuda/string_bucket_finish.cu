/*-------------------------------------------------------------------------
 *
 * string_bucket_finish.cu
 *	  Buckets of rows, sorted on chip.
 *
 * A block sorts a bucket of some hundred rows.  In shared memory a row is its `home`,
 * its place in the bucket as it came, in the order of appending.
 *
 * Steps
 *	  At first the values of the bucket's rows are sorted: bits of the key behind those
 *	  in which the bucket's keys agree, and the home, which makes the sort stable.  Rows whose
 *	  values tie while their keys go on are kept together, as entries.  What is sorted then is,
 *	  from the top, the entry's segment, the relation of its key to that of the segment's
 *	  pivot, the bits after what it shares with the pivot, and the entry's number; see
 *	  string_finish.cu, whose groups are sorted in the same way.  Here few rows go on, so
 *	  their keys' addresses are looked up again at each step, and the block takes less
 *	  shared memory.
 *
 * Sorting
 *	  A warp sorts a run of values in its registers, by a network that is written out.  Runs
 *	  are merged by pairs: each value searches the other run for its place.  With so few rows in a
 *	  block, the time is that of one instruction after the other; this takes fewer of them, and fewer
 *	  barriers, than a network over the block.
 *
 * Sizes
 *	  There is room for four times the rows of a usual bucket.  One without room is split
 *	  by pivots into parts that have it, which are sorted one after the other.  Where too many of
 *	  its values are equal, it is left to string_finish.cu or, if there is no room there
 *	  either, to the next round.  The rows of a bucket of one key are in order: they are only brought to
 *their places, by the bucket's block, or by blocks for tiles where splitters tell that there are thousands.
 *
 *-------------------------------------------------------------------------
 */
#include "string_buckets.cuh"

#include <algorithm>

#include "block_sort.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 128;
constexpr u32 capacity = 1u << place_bits;
constexpr u32 warps = threads / 32;
constexpr u32 items = 4;                         // of a thread
constexpr u32 run_size = 32 * items;             // values that a warp sorts
constexpr u32 tiles_each = most_tiles / threads; // whose parts a thread looks up
constexpr u32 many_blocks = 4;                   // for the equal keys of a tile
constexpr u32 batch = 2;                         // rows that a thread looks up at a time
constexpr u32 most_parts = 8;                    // into which a bucket without room is split,
constexpr u32 part_rows = capacity * 5 / 8;      // of so many rows on average

// An entry: its home, its rank in the bucket, and its segment.
constexpr u32 place_mask = capacity - 1;

// What the kernel needs.
struct BucketJob
{
  const KeyRef *keys;
  u32 prefix;
  Buckets buckets;
  FinishLimits limits;
  GroupLists lists;
  Segments next;
  u32 *rows;
  u32 *order;
  u8 *tie;
  RoundCounts *told;
};

// A tile's part of a bucket.
struct alignas(8) Part
{
  u32 end;   // in the bucket
  u32 shift; // from places of the bucket to those of the tiles
};

struct BucketState
{
  alignas(16) u64 exchange[capacity];
  u32 row[capacity];                // of a home
  u32 depth[2][capacity / 2];       // by turns of a step's segments: their keys agree in so many bytes
  uint16_t first[capacity / 2 + 2]; // of a segment, and the one after the last: its first entry
  union
  {
    Part parts[most_tiles];
    u32 entries[2][capacity]; // by turns of a step
  };
  u32 warp_sums[2][warps];
  u64 pivots[most_parts];        // the least values of all parts but the first
  u32 places[warps][most_parts]; // where a warp's next row of a part goes
  u32 begins[most_parts + 1];    // of parts
};

// Reads which part of the bucket each tile has.  Returns the bucket's rows; *base is
// its first rank.
__device__ __forceinline__ u32 find_parts(BucketState &state, const Buckets &buckets, u32 bucket, u32 *base)
{
  u32 begin[tiles_each];
  u32 n[tiles_each];
  u32 before = 0;
  u32 sum = 0;
  u32 all;

#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    u32 tile = threadIdx.x * tiles_each + k;

    begin[k] = 0;
    n[k] = 0;
    if (tile < buckets.n_tiles)
    {
      const uint16_t *at = buckets.begins + u64{tile} * (buckets.n_buckets + 1) + bucket;

      begin[k] = __ldg(at);
      n[k] = __ldg(at + 1);
    }
  }
#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    n[k] -= begin[k];
    before += begin[k];
    sum += n[k];
  }
  (void)sum_before<threads>(before, state.warp_sums[0], base);
  sum = sum_before<threads>(sum, state.warp_sums[1], &all);
#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    u32 tile = threadIdx.x * tiles_each + k;

    state.parts[tile] = {sum + n[k], tile * buckets.tile_rows + begin[k] - sum};
    sum += n[k];
  }
  __syncthreads();
  return all;
}

// The row at a place, and what its tile has of it.
struct Found
{
  u32 at;
  u32 first_row; // of the tile
};

// Several at a time.
template <u32 count>
__device__ __forceinline__ void find_rows(const Part *parts, const Buckets &buckets,
                                          const u32 (&places)[count], Found (&found)[count])
{
  u32 tile[count] = {};

#pragma unroll 1
  for (u32 step = most_tiles / 2; step > 0; step /= 2)
#pragma unroll
    for (u32 u = 0; u < count; u++)
      if (parts[tile[u] + step - 1].end <= places[u])
        tile[u] += step;
#pragma unroll
  for (u32 u = 0; u < count; u++)
    found[u] = {parts[tile[u]].shift + places[u], tile[u] * buckets.tile_rows};
}

// Calls put(place, row) for all rows of a bucket.
template <typename Put>
__device__ __forceinline__ void for_rows(const Part *parts, const Buckets &buckets, u32 n, Put put)
{
#pragma unroll 1
  for (u32 first = threadIdx.x; first < n; first += threads * batch)
  {
    u32 places[batch];
    Found found[batch];

#pragma unroll
    for (u32 u = 0; u < batch; u++)
      places[u] = min(first + u * threads, n - 1);
    find_rows(parts, buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      found[u].first_row += __ldg(buckets.rows + found[u].at);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < n)
        put(places[u], found[u].first_row);
  }
}

// Leaves the rows of a bucket that does not fit here to other kernels.
__device__ __noinline__ void leave_bucket(BucketState &state, const BucketJob &job, u32 known, u32 base,
                                          u32 n)
{
  u32 depth = job.prefix + (known & agreed_bits) / 8;

  for_rows(state.parts, job.buckets, n, [&](u32 place, u32 row) { job.rows[base + place] = row; });
  if (threadIdx.x > 0)
    return;
  if (n <= job.limits.max_rows())
  {
    u32 group_class = 0;

    while (n > job.limits.class_rows[group_class])
      group_class++;
    job.lists.groups[group_class][atomicAdd(&job.lists.state->n_groups[group_class], 1u)] = {
        base, base, depth, static_cast<uint16_t>(n), 0};
    job.told->listed = 1;
  }
  else
  {
    u64 taken = atomicAdd(&job.lists.state->large, u64{1} << 32 | n);
    u32 to = static_cast<u32>(taken >> 32);

    job.next.place[to] = static_cast<u32>(taken);
    job.next.source[to] = base;
    job.next.slot[to] = base;
    job.next.depth[to] = depth;
    job.next.skip[to] = max_skip;
    job.next.lead[to] = 0;
    job.told->live = 1;
  }
}

__device__ __forceinline__ u32 warp_sum(u32 x)
{
#pragma unroll
  for (u32 step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// Moves the rows that a tile has of buckets of one key that have many to where they belong.
// A warp takes a bucket; a tile has many_blocks blocks.
__device__ __forceinline__ void place_many(const BucketJob &job, u32 tile, u32 share)
{
  const Buckets &buckets = job.buckets;
  const u32 lane = threadIdx.x % 32;
  const u32 stride = buckets.n_buckets + 1; // of begins
  const u32 n_many = *buckets.n_many;

#pragma unroll 1
  for (u32 k = share * warps + threadIdx.x / 32; k < n_many; k += warps * many_blocks)
  {
    u32 bucket = buckets.many[k];
    const uint16_t *at = buckets.begins + u64{tile} * stride + bucket;
    u32 begin = __ldg(at);
    u32 n = __ldg(at + 1) - begin;
    u32 base = 0;
    u32 before = 0;

#pragma unroll
    for (u32 j = 0; j < most_tiles / 32; j++)
    {
      u32 other = j * 32 + lane;

      if (other < buckets.n_tiles)
      {
        const uint16_t *its = buckets.begins + u64{other} * stride + bucket;
        u32 its_begin = __ldg(its);

        base += its_begin;
        before += other < tile ? __ldg(its + 1) - its_begin : 0;
      }
    }
    base = warp_sum(base);
    before = warp_sum(before);

#pragma unroll 4
    for (u32 i = lane; i < n; i += 32)
    {
      u32 first_row = tile * buckets.tile_rows;

      job.order[base + before + i] = first_row + __ldg(buckets.rows + first_row + begin + i);
      job.tie[base + before + i] = before + i > 0;
    }
  }
}

// What a block sorts, and how far it is.
struct Bucket
{
  u32 known;
  u32 base;
  u32 step;
  u32 live;
  u32 n_segments;
};

// How a step's values are made up.
struct Layout
{
  u32 segment_bits;
  u32 key_bits;
  u32 chars; // whole bytes of the key

  __device__ explicit Layout(const Bucket &bucket)
  {
    bool is_first = bucket.step == 0;

    segment_bits = is_first ? 0 : 32 - static_cast<u32>(__clz(static_cast<int>(bucket.n_segments - 1)));
    key_bits = is_first ? value_bits : 64 - relation_bits - count_bits - place_bits - segment_bits;
    chars = min(max_chars, (key_bits + (is_first ? bucket.known & agreed_bits : 0) % 8) / 8);
  }
};

// An entry's value: how it relates to its segment's pivot, and what follows that.
__device__ __forceinline__ u64 entry_value(const BucketState &state, const KeyRef *keys, u32 parity,
                                           const Layout &layout, u32 number)
{
  u32 entry = state.entries[parity][number];
  u32 of = entry >> (2 * place_bits);
  u32 middle = (u32{state.first[of]} + state.first[of + 1]) / 2;
  KeyRef mine = load_key(keys, state.row[entry & place_mask]);
  KeyRef pivot = load_key(keys, state.row[state.entries[parity][middle] & place_mask]);
  u32 depth = state.depth[parity][of];
  u32 left = mine.length - depth;
  Relation relation =
      relate(mine.address + depth, left, pivot.address + depth, pivot.length - depth, number == middle);

  return static_cast<u64>(of) << 1 << (63 - layout.segment_bits) |
         static_cast<u64>(relation.value) << (layout.key_bits + count_bits + place_bits) |
         relation.next >> (64 - layout.key_bits) << (count_bits + place_bits) |
         static_cast<u64>(min(left - relation.shared, layout.chars)) << place_bits | number;
}

// Sorts the values of a run, of which there are `live` in all.
__device__ __forceinline__ void sort_run(BucketState &state, u32 run, u32 live)
{
  const u32 lane = threadIdx.x % 32;
  const u32 begin = run * run_size;
  u64 v[items];

#pragma unroll
  for (u32 q = 0; q < items; q++)
  {
    u32 number = begin + q * 32 + lane;

    v[q] = number < live ? state.exchange[number] : ~u64{0};
  }
  if (begin < live)
    sort_warp(v);
  __syncwarp();

  ulonglong2 *to = reinterpret_cast<ulonglong2 *>(state.exchange + begin + lane * items);

#pragma unroll
  for (u32 q = 0; q < items; q += 2)
    to[q / 2] = make_ulonglong2(v[q], v[q + 1]);
}

// Merges runs by pairs until there is one: a value's place is the number of those less than it in its
// own run, which it stands for, and in the other one, which is searched.
template <u32 n_runs>
__device__ __forceinline__ void merge_runs(BucketState &state, u32 live)
{
  static_assert(run_size == threads);
  u64 v[n_runs];

#pragma unroll 1
  for (u32 size = run_size; size < n_runs * run_size; size *= 2)
  {
    u32 low[n_runs];

#pragma unroll
    for (u32 k = 0; k < n_runs; k++)
    {
      u32 at = k * threads + threadIdx.x;

      v[k] = state.exchange[at];
      low[k] = (at ^ size) & ~(size - 1);
    }
#pragma unroll 1
    for (u32 step = size / 2; step > 0; step /= 2)
#pragma unroll
      for (u32 k = 0; k < n_runs; k++)
        low[k] += state.exchange[low[k] + step - 1] < v[k] ? step : 0;
#pragma unroll
    for (u32 k = 0; k < n_runs; k++)
    {
      u32 at = k * threads + threadIdx.x;

      low[k] += state.exchange[low[k]] < v[k];
      low[k] = (at & ~(2 * size - 1)) + (at & (size - 1)) + low[k] - ((at ^ size) & ~(size - 1));
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < n_runs; k++)
      if (k * threads + threadIdx.x < live || n_runs > 2)
        state.exchange[low[k]] = v[k];
    __syncthreads();
  }
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

// What a place's value tells beside those before and behind it.
struct Standing
{
  u64 value;
  bool head;     // the first of equal values
  bool going_on; // there are others, of keys that go on

  __device__ Standing(const u64 *values, u32 place, u32 live, u32 chars)
  {
    value = values[place];

    u64 word = value >> place_bits;

    head = place == 0 || values[place - 1] >> place_bits != word;

    bool tail = place + 1 == live || values[place + 1] >> place_bits != word;

    going_on = (!head || !tail) && (word & ((1 << count_bits) - 1)) >= chars;
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
  u32 sums = 0; // entries that go on; heads in the upper half

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
          home = state.entries[parity][home] & place_mask;
          rank = state.entries[parity][place] >> place_bits & place_mask;
        }
        job.order[bucket.base + rank] = state.row[home];
        job.tie[bucket.base + rank] = !head;
      }
    }
    sums += static_cast<u32>(__popc(__ballot_sync(~0u, going_on))) |
            static_cast<u32>(__popc(__ballot_sync(~0u, going_on && head))) << 16;
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
    u32 place = first + lane;
    Standing standing(state.exchange, min(place, live - 1), live, layout.chars);
    bool going_on = place < mine.end && standing.going_on;
    bool head = going_on && standing.head;
    u32 going = __ballot_sync(~0u, going_on);
    u32 heads = __ballot_sync(~0u, head);

    if (going_on)
    {
      u32 number = static_cast<u32>(standing.value) & place_mask;
      u32 home = is_first ? number : state.entries[parity][number] & place_mask;
      u32 rank = is_first ? place : state.entries[parity][place] >> place_bits & place_mask;
      u32 entry = (before & 0xffff) + static_cast<u32>(__popc(going & ((1u << lane) - 1)));
      u32 of = (before >> 16) + static_cast<u32>(__popc(heads & ((2u << lane) - 1))) - 1;

      state.entries[parity ^ 1][entry] = home | rank << place_bits | of << (2 * place_bits);
      if (head)
      {
        u32 depth = job.prefix + (bucket.known & agreed_bits) / 8 + layout.chars;

        if (!is_first)
        {
          u32 relation = static_cast<u32>(standing.value >> (layout.key_bits + count_bits + place_bits)) &
                         ((1u << relation_bits) - 1);

          depth = state.depth[parity][static_cast<u32>(standing.value >> 1 >> (63 - layout.segment_bits))] +
                  layout.chars + shared_of(relation);
        }
        state.depth[parity ^ 1][of] = depth;
        state.first[of] = static_cast<uint16_t>(entry);
      }
    }
    before += static_cast<u32>(__popc(going)) | static_cast<u32>(__popc(heads)) << 16;
  }
  if (threadIdx.x == 0)
    state.first[bucket.n_segments] = static_cast<uint16_t>(bucket.live);
  __syncthreads();
}

// Brings all values to their places.
__device__ __forceinline__ void sort_values(BucketState &state, u32 live)
{
  u32 n_runs = live <= run_size ? 1 : live <= 2 * run_size ? 2 : live <= 4 * run_size ? 4 : 8;

#pragma unroll 1
  for (u32 run = threadIdx.x / 32; run < n_runs; run += warps)
    sort_run(state, run, live);
  __syncthreads();
  if (n_runs == 2)
    merge_runs<2>(state, live);
  else if (n_runs == 4)
    merge_runs<4>(state, live);
  else if (n_runs == 8)
    merge_runs<8>(state, live);
}

// Reads the values of a bucket, or of a part of one that is split: then it is known where these are.
__device__ __forceinline__ void load_values(BucketState &state, const BucketJob &job, const Bucket &bucket,
                                            bool is_split)
{
  const Buckets &buckets = job.buckets;

#pragma unroll 1
  for (u32 first = threadIdx.x; first < bucket.live; first += threads * batch)
  {
    u32 places[batch];
    Found found[batch];
    u64 values[batch];

#pragma unroll
    for (u32 u = 0; u < batch; u++)
      places[u] = min(first + u * threads, bucket.live - 1);
    if (is_split)
#pragma unroll
      for (u32 u = 0; u < batch; u++)
      {
        u32 at = job.rows[bucket.base + places[u]];

        found[u] = {at, at / buckets.tile_rows * buckets.tile_rows};
      }
    else
      find_rows(state.parts, buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
    {
      values[u] = __ldg(buckets.values + found[u].at);
      found[u].first_row += __ldg(buckets.rows + found[u].at);
    }
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < bucket.live)
      {
        state.exchange[places[u]] = values[u] | places[u];
        state.row[places[u]] = found[u].first_row;
      }
  }
}

// Sorts a bucket that has room, or a part of one.
__device__ __forceinline__ void sort_bucket(BucketState &state, const BucketJob &job, Bucket bucket,
                                            bool is_split)
{
#pragma unroll 1
  while (bucket.live > 0)
  {
    const Layout layout(bucket);

    if (bucket.step == 0)
      load_values(state, job, bucket, is_split);
    else
#pragma unroll 1
      for (u32 number = threadIdx.x; number < bucket.live; number += threads)
        state.exchange[number] = entry_value(state, job.keys, bucket.step & 1, layout, number);
    __syncthreads();
    sort_values(state, bucket.live);
    settle(state, job, bucket, layout);
  }
}

// Splits a bucket that has no room by pivots from a sample of its values.  Leaves in job.rows, part by
// part, where its rows are in the tiles.  Returns how many parts there are, 0 if that does not do.
__device__ __noinline__ u32 split_bucket(BucketState &state, const BucketJob &job, u32 base, u32 n)
{
  const Buckets &buckets = job.buckets;
  const u32 me = threadIdx.x;
  const u32 warp = me / 32;
  const u32 lane = me % 32;
  const u32 n_parts = (n + part_rows - 1) / part_rows;
  const u32 each = (n + threads - 1) / threads * 32;
  const u32 begin = min(warp * each, n);
  const u32 end = min(begin + each, n);

  if (n_parts > most_parts)
    return 0;

  auto find = [&](u32 place)
  {
    u32 places[1] = {place};
    Found found[1];

    find_rows(state.parts, buckets, places, found);
    return found[0].at;
  };

#pragma unroll 2
  for (u32 i = me; i < capacity; i += threads)
    state.exchange[i] = __ldg(buckets.values + find(i * n / capacity)) | i;
  __syncthreads();
  sort_values(state, capacity);
  if (me + 1 < n_parts)
    state.pivots[me] = state.exchange[(me + 1) * capacity / n_parts] & ~u64{place_mask};
  if (lane < most_parts)
    state.places[warp][lane] = 0;
  __syncthreads();

  // The part of a row, and those of this warp that have the same.
  auto look = [&](u32 place, u32 *at, u32 *peers)
  {
    u32 part = most_parts;

    if (place < end)
    {
      *at = find(place);

      u64 value = __ldg(buckets.values + *at);

      part = 0;
      for (u32 j = 0; j + 1 < n_parts; j++)
        part += state.pivots[j] <= value;
    }
    *peers = __match_any_sync(~0u, part);
    return part;
  };
  u32 at;
  u32 peers;

#pragma unroll 1
  for (u32 first = begin; first < end; first += 32)
  {
    u32 part = look(first + lane, &at, &peers);

    if (part < most_parts && (peers & ((1u << lane) - 1)) == 0)
      state.places[warp][part] += static_cast<u32>(__popc(peers));
    __syncwarp();
  }
  __syncthreads();
  if (me == 0)
  {
    u32 sum = 0;

    for (u32 part = 0; part < n_parts; part++)
    {
      state.begins[part] = sum;
      for (u32 w = 0; w < warps; w++)
      {
        u32 count = state.places[w][part];

        state.places[w][part] = sum;
        sum += count;
      }
    }
    state.begins[n_parts] = sum;
  }
  __syncthreads();
  for (u32 part = 0; part < n_parts; part++)
    if (state.begins[part + 1] - state.begins[part] > capacity)
      return 0;

#pragma unroll 1
  for (u32 first = begin; first < end; first += 32)
  {
    u32 part = look(first + lane, &at, &peers);
    u32 before = peers & ((1u << lane) - 1);

    if (part < most_parts)
      job.rows[base + state.places[warp][part] + static_cast<u32>(__popc(before))] = at;
    __syncwarp();
    if (part < most_parts && before == 0)
      state.places[warp][part] += static_cast<u32>(__popc(peers));
    __syncwarp();
  }
  __syncthreads();
  return n_parts;
}

// A block for each bucket, and some for each tile.
__global__ void __launch_bounds__(threads, 7) sort_buckets(const __grid_constant__ BucketJob job)
{
  __shared__ BucketState state;
  const u32 bucket = blockIdx.x;
  u32 base;

  wait_for_previous();
  if (job.lists.state->again != 0)
    return;

  if (bucket >= job.buckets.n_buckets)
  {
    u32 number = bucket - job.buckets.n_buckets;

    place_many(job, number / many_blocks, number % many_blocks);
    return;
  }

  u32 known = __ldg(job.buckets.known + bucket);

  if ((known & many_rows) != 0)
    return;

  u32 n = find_parts(state, job.buckets, bucket, &base);

  if (n == 0)
    return;
  if ((known & one_key) != 0)
    for_rows(state.parts, job.buckets, n,
             [&](u32 place, u32 row)
             {
               job.order[base + place] = row;
               job.tie[base + place] = place > 0;
             });
  else
  {
    u32 n_parts = n <= capacity ? 1 : split_bucket(state, job, base, n);

    if (n_parts == 0)
      leave_bucket(state, job, known, base, n);
#pragma unroll 1
    for (u32 part = 0; part < n_parts; part++)
    {
      u32 begin = n_parts == 1 ? 0 : state.begins[part];
      u32 end = n_parts == 1 ? n : state.begins[part + 1];

      sort_bucket(state, job, {known, base + begin, 0, end - begin, 1}, n_parts > 1);
      __syncthreads();
    }
  }
}

} // namespace

void finish_buckets(const KeyRef *keys, u32 prefix, const Buckets &buckets, const FinishLimits &limits,
                    const GroupLists &lists, const Segments &next, u32 *rows, u32 *order, u8 *tie,
                    RoundCounts *told, cudaStream_t stream)
{
  BucketJob job = {keys, prefix, buckets, limits, lists, next, rows, order, tie, told};

  launch_next(limits.can_overlap, sort_buckets, buckets.n_buckets + buckets.n_tiles * many_blocks, threads, 0,
              stream, job);
}

} // namespace gpusort
