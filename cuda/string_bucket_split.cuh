/*-------------------------------------------------------------------------
 *
 * string_bucket_split.cuh
 *	  Buckets without room, split into parts that have it.
 *
 * Splitting
 *	  Pivots are taken from a sorted sample of the bucket's values.  Where too many of these are
 *	  equal, all rows get new ones: how their keys relate to that of one of them, and what follows.
 *
 * Queue
 *	  Parts are put into a queue, from which any block may take them: the ones that split buckets
 *	  do, and helpers wait as long as there are such.  A part is queued before it is written, and who
 *	  takes it waits for that, but for nothing else.  So no block has to run for another one to end,
 *	  and all parts are sorted if there are no helpers at all.
 *
 *	  What other blocks write while the kernel runs must not be read from a multiprocessor's own
 *	  cache, which may have had it before: the loads of parts go around it.
 *
 * Included by string_bucket_finish.cu alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKET_SPLIT_CUH
#define GS_STRING_BUCKET_SPLIT_CUH

#include "string_bucket_sort.cuh"

namespace gpusort
{

namespace bucket_finish
{

constexpr u32 split_samples = 256; // values from which pivots are taken
constexpr u32 split_batch = 4;     // rows that a thread looks up at a time
constexpr u32 no_part = ~0u;
constexpr u32 wait_time = 200; // nanoseconds before a helper looks again

// Makes new values for a bucket's rows: how their keys relate to that of one of them, and what follows.
__device__ __noinline__ void relate_rows(BucketState &state, const BucketJob &job, u32 depth, u32 n)
{
  const Buckets &buckets = job.buckets;
  constexpr u32 chars = kept_related_bits / 8;
  u32 middle[1] = {n / 2};
  Found its[1];

  find_rows(state.parts(), buckets, middle, its);

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
    find_rows(state.parts(), buckets, places, found);
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
    put_value(state, buckets.values[find_row(state, buckets, i * n / split_samples)], i);
  __syncthreads();
  if (has_majority(state, Layout(bucket), split_samples))
    return 0;
  sort_values(state, 0, split_samples);
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
    find_rows(state.parts(), buckets, places, found);
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

// Tells that the block is about to split a bucket.
__device__ __forceinline__ void begin_split(const BucketJob &job)
{
  if (threadIdx.x == 0)
    DeviceCount(job.lists.state->parts.splitting).fetch_add(1, cuda::memory_order_relaxed);
}

// Puts the parts of a bucket into the queue.
__device__ __forceinline__ void end_split(BucketState &state, const BucketJob &job, const Bucket &bucket,
                                          u32 n_parts)
{
  PartQueue &queue = job.lists.state->parts;
  u32 n = 0;

  __syncthreads();
  if (threadIdx.x > 0)
    return;
  for (u32 k = 0; k < n_parts; k++)
    n += state.begins[k + 1] > state.begins[k];

  QueuedPart *to = job.buckets.queued + DeviceCount(queue.queued).fetch_add(n, cuda::memory_order_relaxed);

  for (u32 k = 0; k < n_parts; k++)
    if (state.begins[k + 1] > state.begins[k])
    {
      to->known = bucket.known;
      to->depth = bucket.depth;
      to->base = bucket.base + state.begins[k];
      DeviceCount(to->rows).store((state.begins[k + 1] - state.begins[k]) << 1 | bucket.is_related,
                                  cuda::memory_order_release);
      to++;
    }
  DeviceCount(queue.splitting).fetch_sub(1, cuda::memory_order_release);
}

// Takes a part from the queue; a helper waits for one.  For one thread; the block may read the part behind a
// barrier.
__device__ __forceinline__ u32 take_part(const BucketJob &job, bool is_helper)
{
  PartQueue &queue = job.lists.state->parts;
  DeviceCount taken(queue.taken);
  u32 next = taken.load(cuda::memory_order_relaxed);

  for (;;)
  {
    // In this order: who splits no more has queued all.
    bool is_end = !is_helper || DeviceCount(queue.splitting).load(cuda::memory_order_acquire) == 0;

    while (next < DeviceCount(queue.queued).load(cuda::memory_order_relaxed))
      if (taken.compare_exchange_weak(next, next + 1, cuda::memory_order_relaxed))
      {
        while (DeviceCount(job.buckets.queued[next].rows).load(cuda::memory_order_acquire) == 0)
          ;
        return next;
      }
    if (is_end)
      return no_part;
    __nanosleep(wait_time);
    next = taken.load(cuda::memory_order_relaxed);
  }
}

__device__ __forceinline__ Bucket part_at(const BucketJob &job, u32 number)
{
  uint4 part = __ldcg(reinterpret_cast<const uint4 *>(job.buckets.queued) + number);

  return {part.x, part.y, part.z, part.w >> 1, (part.w & 1) != 0};
}

} // namespace bucket_finish

} // namespace gpusort

#endif // GS_STRING_BUCKET_SPLIT_CUH
