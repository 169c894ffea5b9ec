/*-------------------------------------------------------------------------
 *
 * string_bucket_finish.cu
 *	  Buckets of rows, sorted on chip.
 *
 * A block sorts a bucket of some hundred rows: string_bucket_rows.cuh tells how it finds them, and
 * string_bucket_sort.cuh how it sorts them.  There is room for four times the rows of a usual
 * bucket.
 *
 * Without room
 *	  A bucket without room is split, by pivots from a sample of its values, into parts that have it,
 *	  which are sorted one after the other.  Where too many of its values are equal, all get new ones:
 *	  how their keys relate to that of one row, and what follows.  Should these not do either, the
 *	  bucket is left to string_finish.cu or, if there is no room there, to the next round.
 *
 * Equal keys
 *	  The rows of a bucket of one key are in order: they are only brought to their
 *	  places, by the bucket's block, or by blocks for tiles where splitters tell that there are
 *	  thousands.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "string_bucket_sort.cuh"

namespace gpusort
{

namespace
{

using namespace bucket_finish;

constexpr u32 many_blocks = 4;              // for the equal keys of a tile
constexpr u32 part_rows = capacity * 5 / 8; // of a part on average,
constexpr u32 split_samples = 256;          // by a sample of so many values,
constexpr u32 split_batch = 4;              // so many looked up at a time

// Leaves the rows of a bucket that does not fit here to other kernels.
__device__ __noinline__ void leave_bucket(BucketState &state, const BucketJob &job, u32 depth, u32 base,
                                          u32 n)
{
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
  const u32 n_many = *buckets.n_many;

#pragma unroll 1
  for (u32 k = share * warps + threadIdx.x / 32; k < n_many; k += warps * many_blocks)
  {
    u32 bucket = buckets.many[k];
    u32 part = buckets.parts[u64{tile} * buckets.n_buckets + bucket];
    u32 begin = part & 0xffff;
    u32 n = (part >> 16) - begin;
    u32 base = 0;
    u32 before = 0;

#pragma unroll
    for (u32 j = 0; j < most_tiles / 32; j++)
    {
      u32 other = j * 32 + lane;

      if (other < buckets.n_tiles)
      {
        u32 its = buckets.parts[u64{other} * buckets.n_buckets + bucket];

        base += its & 0xffff;
        before += other < tile ? (its >> 16) - (its & 0xffff) : 0;
      }
    }
    base = warp_sum(base);
    before = warp_sum(before);

#pragma unroll 4
    for (u32 i = lane; i < n; i += 32)
    {
      u32 first_row = tile * buckets.tile_rows;

      job.order[base + before + i] = first_row + row_of(buckets.values[first_row + begin + i]);
      job.tie[base + before + i] = before + i > 0;
    }
  }
}

// Makes new values for a bucket's rows: how their keys relate to that of one of them, and what follows.
__device__ __noinline__ void relate_rows(BucketState &state, const BucketJob &job, u32 depth, u32 n)
{
  const Buckets &buckets = job.buckets;
  constexpr u32 chars = kept_related_bits / 8;
  u32 middle[1] = {n / 2};
  Found its[1];

  find_rows(state.parts, buckets, middle, its);

  const KeyRef pivot = load_key(job.keys, its[0].first_row + row_of(buckets.values[its[0].at]));

#pragma unroll 1
  for (u32 first = threadIdx.x; first < n; first += threads * split_batch)
  {
    u32 places[split_batch];
    Found found[split_batch];
    u32 rows[split_batch];
    KeyRef mine[split_batch];

#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      places[u] = min(first + u * threads, n - 1);
    find_rows(state.parts, buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      rows[u] = row_of(buckets.values[found[u].at]);
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      mine[u] = load_key(job.keys, found[u].first_row + rows[u]);
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
    {
      u32 left = mine[u].length - depth;
      Relation relation = relate(mine[u].address + depth, left, pivot.address + depth, pivot.length - depth,
                                 places[u] == n / 2);

      if (first + u * threads < n)
        buckets.values[found[u].at] =
            related_value(relation, left, kept_related_bits, chars) << row_bits | rows[u];
    }
  }
  __syncthreads();
}

// Splits a bucket that has no room by pivots from a sample of its values.  Leaves in job.rows, part by
// part, where its rows are in the tiles.  Returns how many parts there are, 0 if that does not do.
__device__ __noinline__ u32 split_bucket(BucketState &state, const BucketJob &job, const Bucket &bucket)
{
  const Buckets &buckets = job.buckets;
  const u32 n = bucket.live;
  const u32 me = threadIdx.x;
  const u32 warp = me / 32;
  const u32 lane = me % 32;
  const u32 n_parts = (n + part_rows - 1) / part_rows;
  const u32 each = (n + threads - 1) / threads * 32;
  const u32 begin = min(warp * each, n);
  const u32 end = min(begin + each, n);

  if (n_parts > most_parts)
    return 0;
  for (u32 i = me; i < split_samples; i += threads)
    state.exchange[i] = placed_value(buckets.values[find_row(state, buckets, i * n / split_samples)], i);
  __syncthreads();
  if (has_majority(state, Layout(bucket), split_samples))
    return 0;
  sort_values(state, split_samples);
  if (me + 1 < n_parts)
    state.pivots[me] = state.exchange[(me + 1) * split_samples / n_parts] & ~u64{place_mask};
  if (lane < most_parts)
    state.places[warp][lane] = 0;
  __syncthreads();

  // Each warp counts its rows of each part.  Until their ranks are known, where they are waits in the order.
#pragma unroll 1
  for (u32 first = begin + lane; first - lane < end; first += 32 * split_batch)
  {
    u32 places[split_batch];
    Found found[split_batch];
    u64 values[split_batch];

#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      places[u] = min(first + u * 32, n - 1);
    find_rows(state.parts, buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      values[u] = placed_value(buckets.values[found[u].at], 0);
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
    {
      u32 part = most_parts;

      if (first + u * 32 < end)
      {
        part = 0;
        for (u32 j = 0; j + 1 < n_parts; j++)
          part += state.pivots[j] <= values[u];
        job.order[bucket.base + places[u]] = found[u].at * most_parts + part;
      }

      u32 peers = __match_any_sync(~0u, part);

      if (part < most_parts && (peers & ((1u << lane) - 1)) == 0)
        state.places[warp][part] += static_cast<u32>(__popc(peers));
      __syncwarp();
    }
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
  for (u32 first = begin + lane; first - lane < end; first += 32 * split_batch)
  {
    u32 where[split_batch];

#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
      where[u] = job.order[bucket.base + min(first + u * 32, n - 1)];
#pragma unroll
    for (u32 u = 0; u < split_batch; u++)
    {
      u32 part = first + u * 32 < end ? where[u] % most_parts : most_parts;
      u32 peers = __match_any_sync(~0u, part);
      u32 before = peers & ((1u << lane) - 1);

      if (part < most_parts)
        job.rows[bucket.base + state.places[warp][part] + static_cast<u32>(__popc(before))] =
            where[u] / most_parts;
      __syncwarp();
      if (part < most_parts && before == 0)
        state.places[warp][part] += static_cast<u32>(__popc(peers));
      __syncwarp();
    }
  }
  __syncthreads();
  return n_parts;
}

// Sorts a bucket that has no room, in parts that have it, or leaves it.
__device__ __noinline__ void sort_parts(BucketState &state, const BucketJob &job, Bucket bucket)
{
  u32 n_parts = split_bucket(state, job, bucket);

  if (n_parts == 0 && bucket.live <= most_parts * part_rows)
  {
    relate_rows(state, job, bucket.depth, bucket.live);
    bucket.is_related = true;
    n_parts = split_bucket(state, job, bucket);
  }
  if (n_parts == 0)
    leave_bucket(state, job, bucket.depth, bucket.base, bucket.live);

#pragma unroll 1
  for (u32 k = 0; k < n_parts; k++)
  {
    Bucket part = bucket;

    part.base += state.begins[k];
    part.live = state.begins[k + 1] - state.begins[k];
    if (part.live > 0)
    {
      load_values(state, job, part, true);
      sort_bucket(state, job, part);
    }
    __syncthreads();
  }
}

// A block for each bucket, and some for each tile.
__global__ void __launch_bounds__(threads, 7) sort_buckets(const __grid_constant__ BucketJob job)
{
  __shared__ BucketState state;
  const u32 number = blockIdx.x;

  wait_for_previous();

  // Not one load after the other; nobody may have written the turn.
  const u32 again = job.lists.state->again;
  const u32 turn = number < job.buckets.n_buckets ? job.buckets.turns[number] : 0;

  if (again != 0)
    return;
  if (number >= job.buckets.n_buckets)
  {
    u32 share = number - job.buckets.n_buckets;

    place_many(job, share / many_blocks, share % many_blocks);
    return;
  }

  const u32 known = turn >> 16;
  Share share;

  if ((known & many_rows) != 0)
    return;

  Extent extent = find_parts(state, job.buckets, turn & bucket_mask, share);
  Bucket bucket = {known, job.prefix + (known & agreed_bits) / 8, extent.base, extent.n, false};

  if (extent.n == 0)
    return;
  if ((known & one_key) != 0)
    for_rows(state.parts, job.buckets, extent.n,
             [&](u32 place, u32 row)
             {
               job.order[extent.base + place] = row;
               job.tie[extent.base + place] = place > 0;
             });
  else if (extent.n > capacity)
    sort_parts(state, job, bucket);
  else
  {
    if (extent.is_spread)
    {
      if (job.buckets.n_tiles > threads)
        load_share<tiles_each, share_batch / 2>(state, job.buckets, share);
      else
        load_share<1, share_batch>(state, job.buckets, share);
    }
    else
      load_values(state, job, bucket, false);
    sort_bucket(state, job, bucket);
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
