/*-------------------------------------------------------------------------
 *
 * string_bucket_finish.cu
 *	  Buckets of rows, sorted on chip.
 *
 * A block has a bucket's rows, a few hundred, in shared memory, where `entry` is
 * the number that a row came with, and so the order of appending, and `place` its
 * rank in the bucket.
 *
 * Rounds
 *	  Entries have values.  At first these are the words of the bucket; then those of rows
 *	  that still tie consist of the place where their group begins and the next bytes of the
 *	  key, behind what the word told, and those of the others of their place.  So a round
 *	  orders all entries by their values, or, if all groups are small, each group for
 *	  itself: a row's place is the number of those that are less, and of the equal ones
 *	  before it, found by looking at all of them.  Where all groups have very few rows, these
 *	  are settled at once by comparing whole keys.
 *
 * Pieces
 *	  To order all entries, some of the values are sorted and serve as splitters, as many as
 *	  make pieces of a few entries, whatever the values are like.  Entries are put into pieces
 *	  in their order, and in a piece places are counted as in a small group.  Values
 *	  that are splitters more than once have a piece of their own, where nothing is to be
 *	  counted.
 *
 * Sizes
 *	  There is room for four times the rows of a usual bucket, or more.  One without room is
 *	  a segment of the next round.  Groups that stay large round after round are left to
 *	  string_finish.cu.  The rows of a bucket of one key, however many, are in order: blocks for
 *	  tiles bring them to their places.
 *
 * With so few rows in each block, the time is that of one instruction after the other and of
 * reading the instructions themselves: loops are not unrolled where nothing waits for memory.
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
constexpr u32 capacity = 1024;
constexpr u32 warps = threads / 32;
constexpr u32 n_pieces = 64;
constexpr u32 rank_shares = threads / n_pieces; // threads that rank one of the sample
constexpr u32 compared_rows = 4;                // of a group, to be ordered by whole keys
constexpr u32 counted_rows = 32;                // of a group, to be ordered for itself
constexpr u32 most_rounds = 16;                 // of a bucket with large groups
constexpr u32 tile_blocks = 4;                  // for the equal keys of a tile
constexpr u32 batch = 4;                        // rows that a thread looks up at a time

static_assert(most_tiles <= threads);

// What is known of an entry's row, above its place.
constexpr u32 place_bits = 14;
constexpr u32 left_over = 1u << place_bits; // it is finished elsewhere
constexpr u32 tied = 2u << place_bits;      // with the row before
constexpr u32 place_mask = (1u << place_bits) - 1;

// A value: a place, bytes, and how many these are.
constexpr u32 value_place_bits = 12;
constexpr u32 value_bytes = (64 - value_place_bits - count_bits) / 8;

// What the kernels need.
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
};

// A tile's part of a bucket.
struct alignas(8) Part
{
  u32 end;   // in the bucket
  u32 shift; // from places of the bucket to those of the tiles
};

struct BucketState
{
  u64 value[capacity];
  union
  {
    u64 placed[capacity]; // values by place
    Part parts[most_tiles];
  };
  u64 splitters[n_pieces]; // in order
  u64 sample[n_pieces];
  u32 ranks[n_pieces];
  u32 row[capacity];
  u32 ends[capacity];          // of the group of an entry that is not settled; else 0
  u32 counts[warps][n_pieces]; // entries of a warp in each piece; then where they go
  u32 begins[n_pieces + 1];    // of pieces
  uint16_t place[capacity];    // of an entry
  uint16_t entry[capacity];    // at a place
  u8 piece[capacity];
  u32 warp_sums[2][warps];
};

static_assert(capacity <= 1u << value_place_bits);

// Reads which part of the bucket each tile has.  Returns the bucket's rows; *base is
// its first rank.
__device__ __forceinline__ u32 find_parts(BucketState &state, const Buckets &buckets, u32 bucket, u32 *base)
{
  const u32 tile = threadIdx.x;
  u32 begin = 0;
  u32 n = 0;
  u32 all;

  if (tile < buckets.n_tiles)
  {
    const uint16_t *at = buckets.begins + u64{tile} * (buckets.n_buckets + 1) + bucket;

    begin = __ldg(at);
    n = __ldg(at + 1) - begin;
  }
  (void)sum_before<threads>(begin, state.warp_sums[0], base);

  u32 sum = sum_before<threads>(n, state.warp_sums[1], &all);

  if (tile < buckets.n_tiles)
    state.parts[tile] = {sum + n, tile * buckets.tile_rows + begin - sum};
  __syncthreads();
  return all;
}

// The tile of a place in the bucket.
__device__ __forceinline__ u32 tile_of(const Part *parts, u32 n_tiles, u32 place)
{
  u32 tile = 0;

  for (u32 step = 1u << (31 - __clz(static_cast<int>(n_tiles))); step > 0; step /= 2)
    if (tile + step <= n_tiles && parts[tile + step - 1].end <= place)
      tile += step;
  return tile;
}

// The row at a place, and what its tile has of it.
struct Found
{
  u32 at;
  u32 first_row; // of the tile
};

__device__ __forceinline__ Found find_row(const Part *parts, const Buckets &buckets, u32 place)
{
  u32 tile = tile_of(parts, buckets.n_tiles, place);

  return {parts[tile].shift + place, tile * buckets.tile_rows};
}

// Leaves the rows of a bucket that does not fit on chip to the next round.
__device__ void leave_bucket(BucketState &state, const BucketJob &job, u32 known, u32 base, u32 n)
{
  const Buckets &buckets = job.buckets;

#pragma unroll 2
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    Found found = find_row(state.parts, buckets, i);

    job.rows[base + i] = found.first_row + __ldg(buckets.rows + found.at);
  }
  if (threadIdx.x == 0)
  {
    u64 taken = atomicAdd(&job.lists.state->large, u64{1} << 32 | n);
    u32 to = static_cast<u32>(taken >> 32);

    job.next.place[to] = static_cast<u32>(taken);
    job.next.source[to] = base;
    job.next.slot[to] = base;
    job.next.depth[to] = job.prefix + known * word_bytes;
    job.next.skip[to] = max_skip;
    job.next.lead[to] = 0;
  }
}

__device__ __forceinline__ u32 warp_sum(u32 x)
{
#pragma unroll
  for (u32 step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// Moves the rows that a tile has of buckets of one key to where they belong.  A warp takes
// a bucket; a tile has tile_blocks blocks.
__device__ __forceinline__ void place_equal_keys(const BucketJob &job, u32 tile, u32 share)
{
  const Buckets &buckets = job.buckets;
  const u32 lane = threadIdx.x % 32;
  const u32 stride = buckets.n_buckets + 1; // of begins
  const uint16_t *begins = buckets.begins + u64{tile} * stride;
  u32 number = 0;

#pragma unroll 1
  for (u32 first = 0; first < buckets.n_buckets; first += 32)
  {
    u32 b = first + lane;
    u32 found = __ballot_sync(~0u, b < buckets.n_buckets && (__ldg(buckets.known + b) & one_key) != 0 &&
                                       __ldg(begins + b) != __ldg(begins + b + 1));

    for (; found != 0; found &= found - 1)
    {
      u32 bucket = first + static_cast<u32>(__ffs(static_cast<int>(found))) - 1;
      u32 base = 0;
      u32 before = 0;

      if (number++ % (warps * tile_blocks) != share * warps + threadIdx.x / 32)
        continue;
#pragma unroll
      for (u32 k = 0; k < most_tiles / 32; k++)
      {
        u32 other = k * 32 + lane;

        if (other < buckets.n_tiles)
        {
          const uint16_t *at = buckets.begins + u64{other} * stride + bucket;
          u32 begin = __ldg(at);

          base += begin;
          before += other < tile ? __ldg(at + 1) - begin : 0;
        }
      }
      base = warp_sum(base);
      before = warp_sum(before);

      u32 begin = __ldg(begins + bucket);
      u32 n = __ldg(begins + bucket + 1) - begin;

#pragma unroll 4
      for (u32 i = lane; i < n; i += 32)
      {
        u32 first_row = tile * buckets.tile_rows;

        job.order[base + before + i] = first_row + __ldg(buckets.rows + first_row + begin + i);
        job.tie[base + before + i] = before + i > 0;
      }
    }
  }
}

__device__ __forceinline__ u64 value_of(u32 place, u64 bytes, u32 left)
{
  return u64{place} << (64 - value_place_bits) | bytes >> (64 - 8 * value_bytes) << count_bits |
         (left < value_bytes ? left : max_chars);
}

// Sorts some of the values, by counting.
__device__ __forceinline__ void take_splitters(BucketState &state, u32 n)
{
  const u32 k = threadIdx.x % n_pieces;
  const u32 share = threadIdx.x / n_pieces;

  if (share == 0)
  {
    state.sample[k] = state.value[k * n / n_pieces];
    state.ranks[k] = 0;
  }
  __syncthreads();

  u64 mine = state.sample[k];
  u32 rank = 0;

#pragma unroll 4
  for (u32 j = share; j < n_pieces; j += rank_shares)
  {
    u64 its = state.sample[j];

    rank += its < mine || (its == mine && j < k);
  }
  atomicAdd(&state.ranks[k], rank);
  __syncthreads();
  if (share == 0)
    state.splitters[state.ranks[k]] = mine;
}

// The piece of a value: how many splitters are not greater, of which the last one does
// not count.
__device__ __forceinline__ u32 find_piece(const u64 *splitters, u64 value)
{
  u32 piece = 0;

#pragma unroll
  for (u32 step = n_pieces / 2; step > 0; step /= 2)
    piece += splitters[piece + step - 1] <= value ? step : 0;
  if (piece >= 2 && splitters[piece - 1] == value && splitters[piece - 2] == value)
    piece--;
  return piece;
}

// Whether a piece consists of one value only.
__device__ __forceinline__ bool is_single(const u64 *splitters, u32 piece)
{
  return piece > 0 && piece + 1 < n_pieces && splitters[piece - 1] == splitters[piece];
}

// Sets the places of all entries to those of their values; what is settled stays.
__device__ __forceinline__ void order_all(BucketState &state, u32 n)
{
  const u32 me = threadIdx.x;
  const u32 warp = me / 32;
  const u32 lane = me % 32;
  const u32 each = (n + threads - 1) / threads * 32; // entries of a warp
  const u32 first = warp * each;
  const u32 end = min(first + each, n);

  take_splitters(state, n);
#pragma unroll
  for (u32 k = lane; k < n_pieces; k += 32)
    state.counts[warp][k] = 0;
  __syncthreads();
#pragma unroll 1
  for (u32 i = first + lane; i < end; i += 32)
  {
    u32 piece = find_piece(state.splitters, state.value[i]);

    state.piece[i] = static_cast<u8>(piece);
    atomicAdd(&state.counts[warp][piece], 1u);
  }
  __syncthreads();

  u32 sum = 0;
  u32 all;

  if (me < n_pieces)
#pragma unroll
    for (u32 w = 0; w < warps; w++)
      sum += state.counts[w][me];
  sum = sum_before<threads>(sum, state.warp_sums[0], &all);
  if (me < n_pieces)
  {
    state.begins[me] = sum;
#pragma unroll
    for (u32 w = 0; w < warps; w++)
    {
      u32 count = state.counts[w][me];

      state.counts[w][me] = sum;
      sum += count;
    }
  }
  if (me == 0)
    state.begins[n_pieces] = n;
  __syncthreads();
#pragma unroll 1
  for (u32 at = first; at < end; at += 32)
  {
    u32 i = at + lane;
    u32 piece = i < n ? state.piece[i] : n_pieces;
    u32 peers = __match_any_sync(~0u, piece);
    u32 before = static_cast<u32>(__popc(peers & ((1u << lane) - 1)));

    if (i < n)
    {
      u32 place = state.counts[warp][piece] + before;

      state.entry[place] = static_cast<uint16_t>(i);
      state.placed[place] = state.value[i];
    }
    __syncwarp();
    if (i < n && before == 0)
      state.counts[warp][piece] += static_cast<u32>(__popc(peers));
    __syncwarp();
  }
  __syncthreads();
#pragma unroll 1
  for (u32 place = me; place < n; place += threads)
  {
    u32 i = state.entry[place];

    if (state.ends[i] == 0)
      continue;

    u32 piece = state.piece[i];
    u32 low = state.begins[piece];
    u32 high = state.begins[piece + 1];
    u64 value = state.placed[place];
    u32 rank = place;

    if (!is_single(state.splitters, piece))
    {
      rank = low;
#pragma unroll 2
      for (u32 p = low; p < high; p++)
      {
        u64 its = state.placed[p];

        rank += p < place ? its <= value : its < value;
      }
    }
    else
      state.ends[i] = low | high << 16;
    state.place[i] = static_cast<uint16_t>(rank);
  }
}

// Sets the places of the entries that are not settled, each among those of its group.
__device__ __forceinline__ void order_groups(BucketState &state, u32 n)
{
#pragma unroll 1
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    u32 ends = state.ends[i];

    if (ends == 0)
      continue;

    u64 value = state.value[i];
    u32 rank = ends & 0xffff;

#pragma unroll 2
    for (u32 p = ends & 0xffff; p < ends >> 16; p++)
    {
      u32 other = state.entry[p];
      u64 its = state.value[other];

      rank += other < i ? its <= value : its < value;
    }
    state.place[i] = static_cast<uint16_t>(rank);
  }
}

// Settles the entries that are not settled by comparing their keys with those of their groups.
__device__ __forceinline__ void compare_groups(BucketState &state, const KeyRef *keys, u32 n, u32 depth)
{
#pragma unroll 1
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    u32 ends = state.ends[i];

    if (ends == 0)
      continue;

    KeyRef mine = load_key(keys, state.row[i]);
    u32 rank = ends & 0xffff;
    bool after = false;

#pragma unroll 1
    for (u32 p = ends & 0xffff; p < ends >> 16; p++)
    {
      u32 other = state.entry[p];

      if (other == i)
        continue;

      int order = compare_keys(load_key(keys, state.row[other]), mine, depth).order;

      rank += order < 0 || (order == 0 && other < i);
      after |= order == 0 && other < i;
    }
    state.place[i] = static_cast<uint16_t>(rank | (after ? tied : 0));
  }
  __syncthreads();
#pragma unroll 1
  for (u32 i = threadIdx.x; i < n; i += threads)
    state.entry[state.place[i] & place_mask] = static_cast<uint16_t>(i);
  __syncthreads();
}

// Settles what is settled now that places are set, and finds the groups of the others.
__device__ __forceinline__ void find_ties(BucketState &state, u32 n)
{
  __syncthreads();
#pragma unroll 1
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    u32 place = state.place[i] & place_mask;

    state.entry[place] = static_cast<uint16_t>(i);
    state.placed[place] = state.value[i];
  }
  __syncthreads();
#pragma unroll 1
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    u32 ends = state.ends[i];

    if (ends == 0)
      continue;

    u64 value = state.value[i];
    u32 place = state.place[i];
    bool after = place > 0 && state.placed[place - 1] == value;
    bool ahead = place + 1 < n && state.placed[place + 1] == value;

    if ((!after && !ahead) || is_whole(value))
    {
      state.place[i] = static_cast<uint16_t>(place | (after ? tied : 0));
      state.ends[i] = 0;
      continue;
    }

    // The ends may be those already: of the same group, or of a piece of one value.
    u32 low = ends & 0xffff;
    u32 high = ends >> 16;

    if (state.placed[low] != value || state.placed[high - 1] != value)
    {
      low = place;
      high = place + 1;
      while (low > 0 && state.placed[low - 1] == value)
        low--;
      while (high < n && state.placed[high] == value)
        high++;
    }
    state.ends[i] = low | high << 16;
  }
  __syncthreads();
}

// Leaves the groups that are not small to be finished elsewhere.
__device__ __forceinline__ void leave_large(BucketState &state, const BucketJob &job, u32 base, u32 n,
                                            u32 depth)
{
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    u32 low = state.ends[i] & 0xffff;
    u32 size = (state.ends[i] >> 16) - low;

    if (state.ends[i] == 0 || size <= small_rows)
      continue;

    bool first = state.place[i] == low;

    state.ends[i] = 0;
    state.place[i] |= left_over;
    if (!first)
      continue;

    u32 group_class = 0;

    while (size > job.limits.class_rows[group_class])
      group_class++;
    job.lists.groups[group_class][atomicAdd(&job.lists.state->n_groups[group_class], 1u)] = {
        base + low, base + low, depth, static_cast<uint16_t>(size), 0};
    atomicAdd(&job.lists.state->listed, 1u);
  }
}

// Sorts a bucket that has room, of which the parts are known.
__device__ __forceinline__ void sort_bucket(BucketState &state, const BucketJob &job, u32 known, u32 base,
                                            u32 n)
{
  const Buckets &buckets = job.buckets;
  const u32 me = threadIdx.x;

#pragma unroll 1
  for (u32 first = me; first < n; first += threads * batch)
  {
    Found found[batch];
    u64 word[batch];
    u32 row[batch];

#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < n)
        found[u] = find_row(state.parts, buckets, first + u * threads);
#pragma unroll
    for (u32 u = 0; u < batch; u++)
      if (first + u * threads < n)
      {
        word[u] = __ldg(buckets.words + found[u].at);
        row[u] = __ldg(buckets.rows + found[u].at);
      }
#pragma unroll
    for (u32 u = 0; u < batch; u++)
    {
      u32 i = first + u * threads;

      if (i >= n)
        continue;
      state.value[i] = word[u];
      state.ends[i] = n << 16;
      state.row[i] = found[u].first_row + row[u];
    }
  }
  __syncthreads();

  u32 depth = job.prefix + (known + 1) * word_bytes;
  bool large = true;

#pragma unroll 1
  for (u32 round = 1;; round++)
  {
    u32 size = 0; // of the largest group

    if (large)
      order_all(state, n);
    else
      order_groups(state, n);
    find_ties(state, n);
    if (round == most_rounds)
      leave_large(state, job, base, n, depth);
#pragma unroll 1
    for (u32 i = me; i < n; i += threads)
      size = max(size, (state.ends[i] >> 16) - (state.ends[i] & 0xffff));
    if (!__syncthreads_or(size > compared_rows))
    {
      if (__syncthreads_or(size > 0))
        compare_groups(state, job.keys, n, depth);
      break;
    }
    large = __syncthreads_or(size > counted_rows);
#pragma unroll 1
    for (u32 i = me; i < n; i += threads)
    {
      u32 ends = state.ends[i];

      if (ends == 0)
      {
        state.value[i] = u64{state.place[i] & place_mask} << (64 - value_place_bits);
        continue;
      }

      KeyRef key = load_key(job.keys, state.row[i]);
      u32 left = key.length - depth;

      state.value[i] = value_of(ends & 0xffff, load_word(key.address + depth, left), left);
    }
    __syncthreads();
    depth += value_bytes;
  }

#pragma unroll 1
  for (u32 place = me; place < n; place += threads)
  {
    u32 i = state.entry[place];
    u32 flags = state.place[i];

    if ((flags & left_over) != 0)
      job.rows[base + place] = state.row[i];
    else
    {
      job.order[base + place] = state.row[i];
      job.tie[base + place] = (flags & tied) != 0;
    }
  }
}

// A block for each bucket, and some for each tile.
__global__ void __launch_bounds__(threads) sort_buckets(BucketJob job)
{
  extern __shared__ u64 shared_memory[];
  BucketState &state = *reinterpret_cast<BucketState *>(shared_memory);
  u32 base;

  if (job.lists.state->again != 0)
    return;

  if (blockIdx.x >= job.buckets.n_buckets)
  {
    u32 number = blockIdx.x - job.buckets.n_buckets;

    place_equal_keys(job, number / tile_blocks, number % tile_blocks);
    return;
  }

  u32 known = __ldg(job.buckets.known + blockIdx.x);

  if ((known & one_key) != 0)
    return;

  u32 n = find_parts(state, job.buckets, blockIdx.x, &base);

  if (n > capacity)
    leave_bucket(state, job, known, base, n);
  else if (n > 0)
    sort_bucket(state, job, known, base, n);
}

} // namespace

void finish_buckets(const KeyRef *keys, u32 prefix, const Buckets &buckets, const FinishLimits &limits,
                    const GroupLists &lists, const Segments &next, u32 *rows, u32 *order, u8 *tie,
                    cudaStream_t stream)
{
  constexpr int bytes = sizeof(BucketState);
  BucketJob job = {keys, prefix, buckets, limits, lists, next, rows, order, tie};

  GS_CUDA_TRY(cudaFuncSetAttribute(sort_buckets, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  sort_buckets<<<buckets.n_buckets + buckets.n_tiles * tile_blocks, threads, bytes, stream>>>(job);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
