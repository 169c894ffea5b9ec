/*-------------------------------------------------------------------------
 *
 * partition.cu
 *	  The first round of few rows: a counting sort by bucket.
 *
 * With few rows it is not the bytes moved that take time, but one kernel after the
 * other, the passes of a radix sort above all.  So up to max_few_rows rows are brought
 * into the order of buckets by a counting sort: a block finds the buckets of a tile
 * of rows (search.cuh) and counts them; a prefix sum over the counts, by bucket and
 * then tile, tells where each tile's rows of each bucket go; then each block orders
 * its tile by bucket on chip, which is stable, and writes the rows.
 *
 * Buckets are groups already.  They need no pass that looks for groups, and the rest
 * of their words is sorted on chip (finish.cu).
 *
 *-------------------------------------------------------------------------
 */
#include "strings/partition.cuh"

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>

#include "strings/search.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 512;
constexpr u32 items = 4; // rows of a thread
constexpr u32 tile_rows = threads * items;

// Makes the rows' words, and counts those of each bucket in the tile.
__global__ void __launch_bounds__(threads)
    count_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, u32 levels, WordLayout layout,
                  const __grid_constant__ Splitters splitters, u32 n_buckets, u64 *words, u32 *counts)
{
  extern __shared__ u64 upper_tree[];
  u32 *tile_counts = reinterpret_cast<u32 *>(upper_tree + (1u << levels));
  const u32 first = blockIdx.x * tile_rows;

  load_upper_tree<threads>(splitters, levels, upper_tree);
  for (u32 bucket = threadIdx.x; bucket < n_buckets; bucket += threads)
    tile_counts[bucket] = 0;
  __syncthreads();
#pragma unroll 1
  for (u32 k = 0; k < items; k++)
  {
    u32 row = first + k * threads + threadIdx.x;

    if (row >= n_rows)
      break;

    KeyRef key = load_key(keys, row);
    u32 bucket = find_bucket(splitters, upper_tree, levels, key, prefix);

    words[row] = bucket_word(splitters, layout, bucket, key);
    atomicAdd(&tile_counts[bucket], 1u);
  }
  __syncthreads();
  for (u32 bucket = threadIdx.x; bucket < n_buckets; bucket += threads)
    counts[u64{bucket} * gridDim.x + blockIdx.x] = tile_counts[bucket];
}

// Orders a tile by bucket and writes its rows to their places.
__global__ void __launch_bounds__(threads) scatter_tile(const u64 *words, const u32 *offsets, u32 bucket_bits,
                                                        const __grid_constant__ SortedRows sorted)
{
  // A tile's row as its bucket and, below it, its number in the tile.
  constexpr u32 number_bits = 12;
  using Sort = cub::BlockRadixSort<u32, threads, items>;
  using Scan = cub::BlockScan<u32, threads>;
  static_assert(tile_rows <= 1u << number_bits);
  __shared__ union
  {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
  } temp;
  __shared__ u32 last[threads]; // of each thread's buckets
  const WordLayout layout = sorted.layout;
  const u32 first = blockIdx.x * tile_rows;
  const u32 end = min(tile_rows, sorted.live - first);
  u32 tagged[items];

#pragma unroll
  for (u32 k = 0; k < items; k++)
  {
    u32 number = threadIdx.x * items + k;

    tagged[k] = number < end ? layout.segment_of(words[first + number]) << number_bits | number : ~0u;
  }
  Sort(temp.sort).Sort(tagged, number_bits, static_cast<int>(number_bits + bucket_bits));
  last[threadIdx.x] = tagged[items - 1] >> number_bits;
  __syncthreads();

  // Where in the tile the row's bucket begins.
  u32 begin[items];

#pragma unroll
  for (u32 k = 0; k < items; k++)
  {
    u32 previous = k > 0             ? tagged[k > 0 ? k - 1 : 0] >> number_bits
                   : threadIdx.x > 0 ? last[threadIdx.x - 1]
                                     : ~0u;

    begin[k] = tagged[k] >> number_bits != previous ? threadIdx.x * items + k : 0;
  }
  Scan(temp.scan).InclusiveScan(begin, begin, [](u32 a, u32 b) { return max(a, b); });
#pragma unroll
  for (u32 k = 0; k < items; k++)
  {
    u32 place_in_tile = threadIdx.x * items + k;

    if (place_in_tile >= end)
      continue;

    u32 row = first + (tagged[k] & ((1u << number_bits) - 1));
    u32 bucket = tagged[k] >> number_bits;
    u32 place = offsets[u64{bucket} * gridDim.x + blockIdx.x] + place_in_tile - begin[k];

    sorted.words[place] = words[row];
    sorted.rows[place] = row;

    // The keys of odd buckets are equal.
    if (bucket % 2 != 0)
    {
      sorted.order[place] = row;
      sorted.tie[place] = place != offsets[u64{bucket} * gridDim.x];
    }
  }
}

// Puts out the buckets as groups; one thread for a bucket between splitters.
__global__ void __launch_bounds__(threads)
    put_out_buckets(const u32 *offsets, u32 n_tiles, u32 n_buckets, const __grid_constant__ SortedRows sorted,
                    const __grid_constant__ Segments segments, const __grid_constant__ GroupOutput output)
{
  const u32 bucket = 2 * (blockIdx.x * threads + threadIdx.x);

  if (bucket >= n_buckets)
    return;

  const WordLayout layout = sorted.layout;
  const u32 begin = offsets[u64{bucket} * n_tiles];
  const u32 end = bucket + 1 < n_buckets ? offsets[u64{bucket + 1} * n_tiles] : sorted.live;
  const u32 size = end - begin;
  const u32 depth = segments.depth[bucket];
  const u32 lead = segments.lead[bucket];

  if (size == 1)
  {
    sorted.order[begin] = sorted.rows[begin];
    sorted.tie[begin] = 0;
  }
  else if (size > output.max_rows)
    make_segment(output, layout, begin, begin, size, depth, lead);
  else if (size > 1)
    list_group(output.lists, {begin, begin, depth + layout.advance(lead), static_cast<uint16_t>(size),
                              static_cast<uint16_t>(layout.chars(lead))});
}

} // namespace

Partition alias_partition(TempStorage &storage, u32 n_rows)
{
  // What it takes must not become less with more rows: it is reserved as they come.
  const u32 n_few = std::min(n_rows, max_few_rows);
  const u32 n_offsets = blocks_for(n_few, tile_rows) * plan_split(n_few).n_buckets();
  Partition partition;

  partition.n_tiles = blocks_for(n_rows, tile_rows);
  partition.offsets = storage.alias<u32>(n_offsets);
  partition.temp_bytes = 0;
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, partition.temp_bytes, partition.offsets, n_offsets));
  partition.temp = storage.alias<char>(partition.temp_bytes);
  return partition;
}

void partition_rows(const SplitPlan &plan, const Splitters &splitters, const Partition &partition, u32 prefix,
                    u64 *words, const SortedRows &sorted, const Segments &segments, const GroupOutput &output,
                    cudaStream_t stream)
{
  const u32 n_tiles = partition.n_tiles;
  const u32 bytes = (sizeof(u64) << plan.levels) + plan.n_buckets() * sizeof(u32);
  size_t temp_bytes = partition.temp_bytes;

  count_buckets<<<n_tiles, threads, bytes, stream>>>(sorted.keys, sorted.live, prefix, plan.levels,
                                                     plan.layout, splitters, plan.n_buckets(), words,
                                                     partition.offsets);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(partition.temp, temp_bytes, partition.offsets,
                                            n_tiles * plan.n_buckets(), stream));
  scatter_tile<<<n_tiles, threads, 0, stream>>>(words, partition.offsets, plan.levels + 1, sorted);
  GS_CUDA_LAUNCHED();
  put_out_buckets<<<blocks_for(plan.n_splitters() + 1, threads), threads, 0, stream>>>(
      partition.offsets, n_tiles, plan.n_buckets(), sorted, segments, output);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
