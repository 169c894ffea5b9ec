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
constexpr u32 most_each = most_tiles / threads; // tiles whose parts a thread looks up
constexpr u32 batch = 2;                        // rows that a thread looks up at a time,
constexpr u32 share_batch = 8;                  // or that it has of its own tiles, of which there are few,
constexpr u32 most_share = 16;                  // if none has more of one
constexpr u32 most_parts = 8;                   // into which a bucket without room is split
constexpr u32 probe_step = 8;                   // one value in so many is a probe,
constexpr u32 most_probes = 32;                 // of the first ones

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

// The shared memory of a block.  With more of it the caches would have too little for keys: so values that
// are sorted go to and fro between `exchange` and room that is used before and after.
struct BucketState
{
  alignas(16) u64 exchange[capacity];
  u32 memory[7 * capacity / 2]; // entries(1), depth(1), first(), depth(0), entries(0)
  u32 row[capacity];            // of a home
  u32 warp_sums[2][warps];
  u64 probes[most_probes];       // some of the values that were put into their places
  u64 pivots[most_parts];        // the least values of all parts but the first
  u32 places[warps][most_parts]; // where a warp's next row of a part goes
  u32 begins[most_parts + 1];    // of parts
  u32 taken;                     // the part that the block sorts

  // By turns of a step: its entries,
  __device__ __forceinline__ u32 *entries(u32 turn)
  {
    return memory + (1 - turn) * (5 * capacity / 2);
  }
  // and in how many bytes the keys of its segments agree, of which there are half as many.
  __device__ __forceinline__ u32 *depth(u32 turn)
  {
    return memory + capacity + (1 - turn) * capacity;
  }
  // The first entry of a segment, and the one after the last.
  __device__ __forceinline__ uint16_t *first()
  {
    return reinterpret_cast<uint16_t *>(memory + 3 * capacity / 2);
  }
  // Room for `capacity` values while those of a turn are sorted: that of the other one, and first().
  __device__ __forceinline__ u64 *room(u32 turn)
  {
    return reinterpret_cast<u64 *>(memory + turn * (3 * capacity / 2));
  }
  // Before there are entries, where those of turn 0 will be.
  __device__ __forceinline__ Part *parts()
  {
    return reinterpret_cast<Part *>(entries(0));
  }
};

static_assert(sizeof(Part) * most_tiles <= sizeof(u32) * capacity);

// The parts of a bucket that some tiles have, which a thread looks up.
template <u32 tiles>
struct Share
{
  u32 tile;         // the first one
  u32 place;        // of its first row in the bucket
  u32 begin[tiles]; // in the tile
  u32 n_rows[tiles];
};

// What find_parts() tells of a bucket.
struct Extent
{
  u32 base; // its first rank
  u32 n;
  bool is_spread; // over many tiles, none of which has more than most_share rows
};

// Reads which part of the bucket each tile has.
template <u32 tiles>
__device__ __forceinline__ Extent find_parts(BucketState &state, const Buckets &buckets, u32 bucket,
                                             Share<tiles> &share)
{
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  const u32 *parts = buckets.parts + bucket;
  Extent extent = {};
  u32 before = 0;
  u32 mine = 0;
  bool has_many = false;

  share.tile = threadIdx.x * tiles;
#pragma unroll
  for (u32 k = 0; k < tiles; k++)
  {
    u32 part = share.tile + k < buckets.n_tiles ? parts[(share.tile + k) * buckets.n_buckets] : 0;

    share.begin[k] = begin_of_part(part);
    share.n_rows[k] = rows_of_part(part);
    before += share.begin[k];
    mine += share.n_rows[k];
    has_many = has_many || share.n_rows[k] > most_share;
  }

  const u32 sum = warp_sum_up_to(mine);

  before = warp_sum(before);
  has_many = __any_sync(~0u, has_many) != 0;
  if (lane == 31)
  {
    state.warp_sums[0][warp] = before;
    state.warp_sums[1][warp] = sum << 1 | has_many;
  }
  __syncthreads();
  share.place = sum - mine;

  u32 any_many = 0;

#pragma unroll
  for (u32 w = 0; w < warps; w++)
  {
    u32 its = state.warp_sums[1][w];

    share.place += w < warp ? its >> 1 : 0;
    extent.n += its >> 1;
    any_many |= its;
    extent.base += state.warp_sums[0][w];
  }
  extent.is_spread = (any_many & 1) == 0;
  return extent;
}

// Keeps the parts, for those that search for the tile of a place.
template <u32 tiles>
__device__ __forceinline__ void keep_parts(BucketState &state, const Buckets &buckets,
                                           const Share<tiles> &share, u32 n)
{
  u32 sum = share.place;

#pragma unroll
  for (u32 k = 0; k < tiles; k++)
  {
    u32 tile = share.tile + k;

    sum += share.n_rows[k];
    state.parts()[tile] = {sum, tile * buckets.tile_rows + share.begin[k] - (sum - share.n_rows[k])};
  }
#pragma unroll
  for (u32 tile = tiles * threads + threadIdx.x; tile < most_tiles; tile += threads)
    state.parts()[tile] = {n, 0};
  __syncthreads();
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
__device__ __forceinline__ u32 find_row(BucketState &state, const Buckets &buckets, u32 place)
{
  u32 places[1] = {place};
  Found found[1];

  find_rows(state.parts(), buckets, places, found);
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

__device__ __forceinline__ void put_value(BucketState &state, u64 value, u32 place)
{
  value = placed_value(value, place);
  state.exchange[place] = value;
  if ((place & ~((most_probes - 1) * probe_step)) == 0)
    state.probes[place / probe_step] = value;
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

// Reads the values of a bucket, each thread those of its own tiles, some at a time.
template <u32 tiles>
__device__ __forceinline__ void load_share(BucketState &state, const Buckets &buckets,
                                           const Share<tiles> &share)
{
  constexpr u32 each = share_batch / tiles;
  u32 most = share.n_rows[0];

  if (tiles > 1)
    most = max(most, share.n_rows[tiles - 1]);

#pragma unroll 1
  for (u32 first = 0; first < most; first += each)
  {
    u64 values[tiles][each];

#pragma unroll
    for (u32 k = 0; k < tiles; k++)
    {
      const u64 *from = buckets.values + (share.tile + k) * buckets.tile_rows + share.begin[k] + first;

#pragma unroll
      for (u32 u = 0; u < each; u++)
        if (first + u < share.n_rows[k])
          values[k][u] = from[u];
    }
#pragma unroll
    for (u32 k = 0; k < tiles; k++)
    {
      u32 place = share.place + (k > 0 ? share.n_rows[0] : 0) + first;

#pragma unroll
      for (u32 u = 0; u < each; u++)
        if (first + u < share.n_rows[k])
        {
          put_value(state, values[k][u], place + u);
          state.row[place + u] = (share.tile + k) * buckets.tile_rows + row_of(values[k][u]);
        }
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
      find_rows(state.parts(), buckets, places, found);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      values[u] = __ldcg(buckets.values + found[u].at);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < bucket.live)
      {
        put_value(state, values[u], places[u]);
        state.row[places[u]] = found[u].first_row + row_of(values[u]);
      }
  }
}

} // namespace bucket_finish

} // namespace gpusort

#endif // GS_STRING_BUCKET_ROWS_CUH
