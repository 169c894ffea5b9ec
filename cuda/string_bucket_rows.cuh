/*-------------------------------------------------------------------------
 *
 * string_bucket_rows.cuh
 *	  Where a bucket's rows are, and what a block has of them in shared memory.
 *
 * Each tile has a part of the bucket, mostly a row or two.  A thread looks up those of one or two
 * tiles, and loads their rows itself; where a tile has many, as with rows that come in order, all
 * threads search for the tile of a place.
 *
 * In shared memory a row is its `home`, its place in the bucket as it came, in the order of
 * appending.  The addresses of keys are looked up when they are needed: so a block takes less.
 *
 * Included by string_bucket_finish.cu alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKET_ROWS_CUH
#define GS_STRING_BUCKET_ROWS_CUH

#include "block_sort.cuh"
#include "string_buckets.cuh"

namespace gpusort
{

namespace bucket_finish
{

constexpr u32 threads = 128;
constexpr u32 warps = threads / 32;
constexpr u32 tiles_each = most_tiles / threads; // whose parts a thread looks up
constexpr u32 batch = 2;                         // rows that a thread looks up at a time,
constexpr u32 share_batch = 4;                   // or that it has of its own tiles, of which there are few,
constexpr u32 most_share = 16;                   // if none has more of one
constexpr u32 most_parts = 8;                    // into which a bucket without room is split

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

// What a block sorts, and how far it is.
struct Bucket
{
  u32 known;
  u32 depth; // its keys agree in so many bytes
  u32 base;
  u32 live;
  bool is_related; // its values relate to one pivot
  u32 step = 0;
  u32 n_segments = 1;
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
  u32 taken;                     // the part that the block sorts
};

static_assert(tiles_each == 2);

// The parts of a bucket that some tiles have, which a thread looks up.
struct Share
{
  u32 tile;              // the first one
  u32 place;             // of its first row in the bucket
  u32 begin[tiles_each]; // in the tile
  u32 n_rows[tiles_each];
};

// What find_parts() tells of a bucket.
struct Extent
{
  u32 base; // its first rank
  u32 n;
  bool is_spread; // over many tiles, none of which has more than most_share rows
};

// Reads which part of the bucket each tile has.
__device__ __forceinline__ Extent find_parts(BucketState &state, const Buckets &buckets, u32 bucket,
                                             Share &share)
{
  const u32 each = buckets.n_tiles > threads ? tiles_each : 1;
  Extent extent;
  u32 before = 0;
  u32 sum = 0;
  bool has_many = false;

  share.tile = threadIdx.x * each;
#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    share.begin[k] = 0;
    share.n_rows[k] = 0;
    if (k < each && share.tile + k < buckets.n_tiles)
    {
      u32 part = buckets.parts[u64{share.tile + k} * buckets.n_buckets + bucket];

      share.begin[k] = begin_of_part(part);
      share.n_rows[k] = rows_of_part(part);
    }
  }
#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    before += share.begin[k];
    sum += share.n_rows[k];
    has_many = has_many || share.n_rows[k] > most_share;
  }
  (void)sum_before<threads>(before, state.warp_sums[0], &extent.base);
  sum = sum_before<threads>(sum, state.warp_sums[1], &extent.n);
  share.place = sum;
#pragma unroll
  for (u32 k = 0; k < tiles_each; k++)
  {
    u32 tile = k < each ? share.tile + k : threads * k + threadIdx.x;

    sum += share.n_rows[k];
    state.parts[tile] = {k < each ? sum : extent.n,
                         tile * buckets.tile_rows + share.begin[k] - (sum - share.n_rows[k])};
  }
  extent.is_spread = __syncthreads_or(has_many) == 0;
  return extent;
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

// Where in the tiles the row at a place is.
__device__ __forceinline__ u32 find_row(const BucketState &state, const Buckets &buckets, u32 place)
{
  u32 places[1] = {place};
  Found found[1];

  find_rows(state.parts, buckets, places, found);
  return found[0].at;
}

// A row's number in its tile, of the row's value there.
__device__ __forceinline__ u32 row_of(u64 value)
{
  return static_cast<u32>(value) & ((1u << row_bits) - 1);
}

// A value as the block has it: with the row's place in the bucket instead.
__device__ __forceinline__ u64 placed_value(u64 value, u32 place)
{
  return value >> row_bits << place_bits | place;
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
      found[u].first_row += row_of(buckets.values[found[u].at]);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < n)
        put(places[u], found[u].first_row);
  }
}

// Reads the values of a bucket, each thread those of its own tiles, `each` of them at a time.
template <u32 tiles, u32 each>
__device__ __forceinline__ void load_share(BucketState &state, const Buckets &buckets, const Share &share)
{
  u32 most = share.n_rows[0];

  if (tiles > 1)
    most = max(most, share.n_rows[tiles - 1]);

#pragma unroll 1
  for (u32 first = 0; first < most; first += each)
  {
    u64 values[tiles][each];

#pragma unroll
    for (u32 k = 0; k < tiles; k++)
#pragma unroll
      for (u32 u = 0; u < each; u++)
      {
        u32 at = (share.tile + k) * buckets.tile_rows + share.begin[k] + first + u;

        if (first + u < share.n_rows[k])
          values[k][u] = buckets.values[at];
      }
#pragma unroll
    for (u32 k = 0; k < tiles; k++)
#pragma unroll
      for (u32 u = 0; u < each; u++)
        if (first + u < share.n_rows[k])
        {
          u32 place = share.place + (k > 0 ? share.n_rows[0] : 0) + first + u;

          state.exchange[place] = placed_value(values[k][u], place);
          state.row[place] = (share.tile + k) * buckets.tile_rows + row_of(values[k][u]);
        }
  }
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
        u32 at = __ldcg(job.rows + bucket.base + places[u]);

        found[u] = {at, at / buckets.tile_rows * buckets.tile_rows};
      }
    else
      find_rows(state.parts, buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      values[u] = __ldcg(buckets.values + found[u].at);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < bucket.live)
      {
        state.exchange[places[u]] = placed_value(values[u], places[u]);
        state.row[places[u]] = found[u].first_row + row_of(values[u]);
      }
  }
}

} // namespace bucket_finish

} // namespace gpusort

#endif // GS_STRING_BUCKET_ROWS_CUH
