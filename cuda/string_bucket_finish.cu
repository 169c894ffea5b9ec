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
 *	  A bucket without room is split, see string_bucket_split.cuh, into parts that have it.  These
 *	  are sorted by the blocks that split buckets, and by helpers, which begin when all buckets
 *	  have a block.  Where there are too many equal values even so, the bucket is left to
 *	  string_finish.cu or, if there is no room there, to the next round.
 *
 * Equal keys
 *	  The rows of a bucket of one key are in order: they are only brought to their
 *	  places, by the bucket's block, or by blocks for tiles where splitters tell that there are
 *	  thousands.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "string_bucket_split.cuh"

namespace gpusort
{

namespace
{

using namespace bucket_finish;

constexpr u32 many_blocks = 4;     // for the equal keys of a tile
constexpr u32 helped_buckets = 16; // to a block that sorts parts of buckets

// Leaves the rows of a bucket that does not fit here to other kernels.
__device__ __noinline__ void leave_bucket(BucketState &state, const BucketJob &job, u32 depth, u32 base,
                                          u32 n)
{
  for_rows(state.parts(), job.buckets, n, [&](u32 place, u32 row) { job.rows[base + place] = row; });
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
    u32 begin = begin_of_part(part);
    u32 n = rows_of_part(part);
    u32 base = 0;
    u32 before = 0;

#pragma unroll
    for (u32 j = 0; j < most_tiles / 32; j++)
    {
      u32 other = j * 32 + lane;

      if (other < buckets.n_tiles)
      {
        u32 its = buckets.parts[u64{other} * buckets.n_buckets + bucket];

        base += begin_of_part(its);
        before += other < tile ? rows_of_part(its) : 0;
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

// Sorts parts of buckets until there are none left; a helper waits for those that are still to come.
__device__ __noinline__ void sort_parts(BucketState &state, const BucketJob &job, bool is_helper)
{
  for (;;)
  {
    if (threadIdx.x == 0)
      state.taken = take_part(job, is_helper);
    __syncthreads();
    if (state.taken == no_part)
      return;

    Bucket part = part_at(job, state.taken);

    load_values(state, job, part, true);
    sort_bucket(state, job, part);
    __syncthreads();
  }
}

// Sorts a bucket that has no room, in parts that have it, or leaves it.
__device__ __noinline__ void split_and_sort(BucketState &state, const BucketJob &job, Bucket bucket)
{
  begin_split(job);

  u32 n_parts = split_bucket(state, job, bucket);

  if (n_parts == 0 && bucket.live <= most_parts * part_rows)
  {
    relate_rows(state, job, bucket.depth, bucket.live);
    bucket.is_related = true;
    n_parts = split_bucket(state, job, bucket);
  }
  if (n_parts == 0)
    leave_bucket(state, job, bucket.depth, bucket.base, bucket.live);
  end_split(state, job, bucket, n_parts);
  sort_parts(state, job, false);
}

// A block for each bucket, some for each tile, and helpers.  A thread looks up the parts of so many tiles.
template <u32 tiles>
__global__ void __launch_bounds__(threads, 7) sort_buckets(const __grid_constant__ BucketJob job)
{
  __shared__ BucketState state;
  const u32 number = blockIdx.x;

  wait_for_previous();

  // Both are on their way at a time; if it is to be done again, nobody wrote the turn.
  const u32 again = job.lists.state->again;
  const u32 turn = number < job.buckets.n_buckets ? job.buckets.turns[number] : 0;

  if (again != 0)
    return;
  if (number >= job.buckets.n_buckets)
  {
    u32 share = number - job.buckets.n_buckets;

    if (share < job.buckets.n_tiles * many_blocks)
      place_many(job, share / many_blocks, share % many_blocks);
    else
      sort_parts(state, job, true);
    return;
  }

  const u32 known = turn >> 16;
  Share<tiles> share;

  if ((known & many_rows) != 0)
    return;

  Extent extent = find_parts(state, job.buckets, turn & bucket_mask, share);
  u32 depth = job.prefix + ((known & has_codes) != 0 ? 0 : (known & agreed_bits) / 8);
  Bucket bucket = {known, depth, extent.base, extent.n, false};

  if (extent.n == 0)
    return;
  if (!extent.is_spread || extent.n > capacity || (known & one_key) != 0)
    keep_parts(state, job.buckets, share, extent.n);
  if ((known & one_key) != 0)
    for_rows(state.parts(), job.buckets, extent.n,
             [&](u32 place, u32 row)
             {
               job.order[extent.base + place] = row;
               job.tie[extent.base + place] = place > 0;
             });
  else if (extent.n > capacity)
    split_and_sort(state, job, bucket);
  else
  {
    if (extent.is_spread)
      load_share(state, job.buckets, share);
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

  launch_next(limits.can_overlap, buckets.n_tiles > threads ? sort_buckets<most_each> : sort_buckets<1>,
              buckets.n_buckets + buckets.n_tiles * many_blocks + buckets.n_buckets / helped_buckets, threads,
              0, stream, job);
}

} // namespace gpusort
