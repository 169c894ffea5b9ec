/*-------------------------------------------------------------------------
 *
 * split.cuh
 *	  Long arrays: split, tile by tile, into bins that fit on chip.
 *
 * Four steps sort a long array.  The first two are here, the others in bins.cuh.
 *	  Sample	A block sorts elements taken at random from equal stretches of the
 *				array, some for each bin, and picks splitters from them.
 *	  Split		A block moves the codes of a tile to the order of their bins, in
 *				shared memory, and writes them to a second buffer.  It also writes
 *				where in the tile each bin begins.
 *	  List		The sum of these numbers over all tiles is where the bin begins in the
 *				sorted array.  Bins are put on lists by size.
 *	  Finish	Teams gather a bin from all tiles, sort it, and write it to its place
 *				in the array.
 *
 * So a long array is read twice and written twice, in full lines but for the ends
 * of parts, and each element's bin is searched for once.
 *
 * A part is what one tile has of one bin.  The table of parts has a row for each bin
 * of an array, and one more: the begin of the bin's part in each tile, which is also
 * the end of the part of the bin before.
 *
 * A value that is frequent enough in the sample to be two neighbouring splitters
 * has a bin of its own between these, which need not be sorted.  So equal
 * elements cannot make a bin too large.  Bad luck with the sample does so in some
 * millionths of the cases; a block then sorts the bin in memory, which takes
 * milliseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_SPLIT_CUH
#define GS_ARRAYS_SPLIT_CUH

#include <cub/block/block_scan.cuh>

#include "arrays/classes.cuh"
#include "arrays/team.cuh"

namespace gpusort
{

template <typename Code>
constexpr u32 max_tiles = tiles_of<Code>(max_length<Code>); // of a long array

// The most bins of an array, rounded up to a multiple of the threads that split a tile.
template <typename Code>
constexpr u32 max_bins = align_up(bins_of<Code>(max_length<Code>), split_threads);

struct LongArray
{
  u64 first_part;     // the array's first row in the table of parts
  u32 first_tile;     // the array's first tile in the second buffer
  u32 has_equal_bins; // not 0: some bins hold one value only
};

// A bin that is not empty.
struct alignas(16) Bin
{
  u64 offset; // of its place in the array, in bytes from the data's beginning
  u64 source; // its array's first code in the second buffer; of an equal bin, the splitter
  u64 parts;  // its row in the table of parts
  u32 n;
  u32 tiles;
};

// Bins that are sorted by 1, 2, 4 or 8 warps, that hold one value only, and that are
// too large for a block.
constexpr u32 n_team_bin_lists = 4;
constexpr u32 equal_bins = n_team_bin_lists;
constexpr u32 large_bins = n_team_bin_lists + 1;
constexpr u32 n_bin_lists = n_team_bin_lists + 2;

struct SplitCounts
{
  u64 parts; // taken by arrays
  u32 tiles;
  u32 bins[n_bin_lists];
};

template <typename Code>
struct SplitWorkspace
{
  LongArray *arrays;
  Code *splitters;  // max_bins for each array
  u32 *tile_arrays; // the number of each tile's array
  u16 *part_begins; // the table of parts
  Code *codes;      // the second buffer, tile by tile
  SplitCounts *counts;
  Bin *bins; // n_bin_lists lists, each with room for all bins
};

template <typename Code>
SplitWorkspace<Code> alias_split(TempStorage *storage, const ArrayCensus &census)
{
  u64 n = census.n[Classes<Code>::first_long];
  SplitWorkspace<Code> split;

  split.arrays = storage->alias<LongArray>(n);
  split.splitters = storage->alias<Code>(n * max_bins<Code>);
  split.tile_arrays = storage->alias<u32>(census.tiles);
  split.part_begins = storage->alias<u16>(census.parts);
  split.codes = storage->alias<Code>(census.tiles * tile_codes<Code>);
  split.counts = storage->alias<SplitCounts>(1);
  split.bins = storage->alias<Bin>(census.bins * n_bin_lists);
  return split;
}

__device__ __forceinline__ u32 mix_bits(u32 x)
{
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

// An array that a block samples.
struct SampledArray
{
  const char *elements;
  u32 n;
  u32 n_bins;
  u32 seed;
};

// Takes splitters from a sorted sample of `items` elements for each thread, or more:
// samples_per_bin for each bin if a block can sort so many.  The more samples, the more
// similar the bins are in size, and the better they fill their teams.
template <typename Code, int items>
__device__ __forceinline__ void pick_splitters(const SampledArray &array, const CodeMap &map, Code *shared,
                                               Code *splitters)
{
  constexpr u32 size = sample_threads * items;

  if constexpr (items < Classes<Code>::max_items)
    if (array.n_bins * samples_per_bin > size)
      return pick_splitters<Code, 2 * items>(array, map, shared, splitters);

  Code codes[items];

#pragma unroll
  for (u32 i = 0; i < items; i++)
  {
    u32 k = i * sample_threads + threadIdx.x;
    u32 begin = static_cast<u32>(u64{k} * array.n / size);
    u32 end = static_cast<u32>((u64{k} + 1) * array.n / size);

    load_code(array.elements, begin + mix_bits(array.seed + k) % (end - begin), map, &codes[i]);
  }
  Team<Code, sample_threads, items>::sort_by_network(codes, shared, threadIdx.x);

  // Splitter k is the sample of rank (k + 1) * size / n_bins.
#pragma unroll
  for (u32 i = 0; i < items; i++)
  {
    u32 rank = threadIdx.x * items + i;
    u32 k = (rank * array.n_bins + size - 1) / size;

    if (k > 0 && k < array.n_bins && k * size / array.n_bins == rank)
      splitters[k - 1] = codes[i];
  }
}

// Picks the splitters of an array, and gives it tiles of the second buffer and rows of
// the table of parts.
template <typename Code>
__global__ void __launch_bounds__(sample_threads)
    sample_arrays(ClassList list, CodeMap map, SplitWorkspace<Code> split)
{
  __shared__ Code shared[Team<Code, sample_threads, Classes<Code>::max_items>::shared_codes];
  __shared__ u32 first_tile;

  static_assert(Classes<Code>::capacity >= 8 * bins_of<Code>(max_length<Code>),
                "8 samples or more for each bin");

  u64 i = blockIdx.x;
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  u32 tiles = tiles_of<Code>(span.length);
  Code *splitters = split.splitters + i * max_bins<Code>;
  u32 has_equal_bins = 0;

  if (threadIdx.x == 0)
    first_tile = atomicAdd(&split.counts->tiles, tiles);
  pick_splitters<Code, 4>({list.data + span.offset, span.length, n_bins, static_cast<u32>(i * 0x9e3779b9u)},
                          map, shared, splitters);
  __syncthreads();
  for (u32 tile = threadIdx.x; tile < tiles; tile += sample_threads)
    split.tile_arrays[first_tile + tile] = static_cast<u32>(i);
  for (u32 b = threadIdx.x + 1; b + 1 < n_bins; b += sample_threads)
    has_equal_bins |= splitters[b] == splitters[b - 1];
  has_equal_bins = __syncthreads_or(has_equal_bins);
  if (threadIdx.x == 0)
  {
    u64 first_part = atomicAdd(&split.counts->parts, u64{n_bins + 1} * tiles);

    split.arrays[i] = {first_part, first_tile, has_equal_bins};
  }
}

// Slots of bins in shared memory.  One slot is left free after as many as there are
// banks.  Bins that are a power of two apart are in different banks then, and the
// slot of a number is the sum of the slots of its bits.
template <typename Code>
struct BinSlots
{
  static constexpr u32 banks = 128 / sizeof(Code);
  static constexpr u32 count = max_bins<Code> + max_bins<Code> / banks;
  static constexpr u32 past_end = count; // a slot for each lane, of places after the end of the array

  static __device__ __forceinline__ u32 slot(u32 bin)
  {
    return bin + bin / banks;
  }
  static __device__ __forceinline__ u32 bin(u32 slot)
  {
    return slot - slot / (banks + 1);
  }
};

// A block's tile of a long array.
struct Tile
{
  u32 number; // in the array
  u32 n;      // codes
  u32 n_tiles;
  u32 n_bins;
  u32 levels; // of the search for bins
};

// Splits one tile.  A code's bin is kept as a slot.
template <typename Code>
struct TileSplit
{
  static constexpr int items = tile_codes<Code> / split_threads;
  static constexpr int bins_per_thread = max_bins<Code> / split_threads;
  using Slots = BinSlots<Code>;
  using Scan = cub::BlockScan<u32, split_threads>;

  struct Storage
  {
    alignas(16) Code codes[tile_codes<Code> + 1]; // the last one takes the places after the end
    Code splitters[Slots::count];                 // in order, from the slot of bin 1 on
    u32 counters[Slots::count + warp_size];       // of each bin: its codes, later its begin in the tile
  };

  static __device__ __forceinline__ void load_splitters(Storage &storage, const Tile &tile,
                                                        const Code *splitters)
  {
    for (u32 b = threadIdx.x; b < max_bins<Code>; b += split_threads)
      storage.counters[Slots::slot(b)] = 0;
    for (u32 b = threadIdx.x + 1; b < 1u << tile.levels; b += split_threads)
      storage.splitters[Slots::slot(b)] = b < tile.n_bins ? splitters[b - 1] : highest_code<Code>();
  }

  // A code's bin is the number of splitters that are not above it.
  static __device__ __forceinline__ void find_bins(const Storage &storage, const Tile &tile,
                                                   const Code (&codes)[items], u32 (&slots)[items])
  {
    // Slots are counted in bytes here, which saves an instruction.
    for (u32 step = 1u << tile.levels >> 1; step > 0; step /= 2)
    {
      u32 distance = Slots::slot(step) * sizeof(Code);

#pragma unroll
      for (int i = 0; i < items; i++)
      {
        u32 next = slots[i] + distance;

        if (!(codes[i] <
              *reinterpret_cast<const Code *>(reinterpret_cast<const char *>(storage.splitters) + next)))
          slots[i] = next;
      }
    }
#pragma unroll
    for (int i = 0; i < items; i++)
      slots[i] = min(slots[i] / static_cast<u32>(sizeof(Code)), Slots::slot(tile.n_bins - 1));
  }

  // Moves codes that are equal to two neighbouring splitters to the bin between these.
  static __device__ __forceinline__ void use_equal_bins(const Storage &storage, const Code (&codes)[items],
                                                        u32 (&slots)[items])
  {
#pragma unroll
    for (int i = 0; i < items; i++)
    {
      u32 bin = Slots::bin(slots[i]);

      if (bin >= 2 && storage.splitters[slots[i]] == codes[i] &&
          storage.splitters[Slots::slot(bin - 1)] == codes[i])
        slots[i] = Slots::slot(bin - 1);
    }
  }

  // Adds to each slot, in its upper half, the code's rank among those of its bin in the
  // tile.  Where many lanes of a warp have the same bin, as in data that is sorted
  // already, one of them counts for all.
  static __device__ __forceinline__ void rank_in_bins(Storage &storage, u32 (&slots)[items])
  {
    u32 equal_lanes = __popc(__match_any_sync(~0u, slots[0]));

    if (__any_sync(~0u, equal_lanes >= min_crowd))
    {
#pragma unroll
      for (int i = 0; i < items; i++)
        slots[i] |= count_peers(slots[i], &storage.counters[slots[i]]) << 16;
    }
    else
    {
#pragma unroll
      for (int i = 0; i < items; i++)
        slots[i] |= atomicAdd(&storage.counters[slots[i]], 1) << 16;
    }
#pragma unroll
    for (int i = 0; i < items; i++)
      materialize(slots[i]); // or the compiler keeps both halves for longer
  }

  // Replaces the number of codes of each bin by the bin's begin in the tile, and writes
  // the tile's column of the table of parts.
  static __device__ __forceinline__ void
  start_bins(Storage &storage, typename Scan::TempStorage &temp_storage, const Tile &tile, u16 *part_begins)
  {
    u32 begins[bins_per_thread];

#pragma unroll
    for (int j = 0; j < bins_per_thread; j++)
      begins[j] = storage.counters[Slots::slot(threadIdx.x * bins_per_thread + j)];
    Scan(temp_storage).ExclusiveSum(begins, begins);
#pragma unroll
    for (int j = 0; j < bins_per_thread; j++)
    {
      u32 b = threadIdx.x * bins_per_thread + j;

      storage.counters[Slots::slot(b)] = begins[j];
      if (b < tile.n_bins)
        part_begins[u64{b} * tile.n_tiles + tile.number] = static_cast<u16>(begins[j]);
    }
    if (threadIdx.x < warp_size)
      storage.counters[Slots::past_end + threadIdx.x] = tile_codes<Code>;
    if (threadIdx.x == 0)
      part_begins[u64{tile.n_bins} * tile.n_tiles + tile.number] = static_cast<u16>(tile.n);
  }

  // Writes the tile in pieces of 16 bytes.  The last piece may end in anything.
  static __device__ __forceinline__ void store(const Storage &storage, u32 n, Code *codes)
  {
    constexpr u32 codes_per_piece = 16 / sizeof(Code);
    u32 pieces = (n + codes_per_piece - 1) / codes_per_piece;
    const uint4 *source = reinterpret_cast<const uint4 *>(storage.codes);
    uint4 *destination = reinterpret_cast<uint4 *>(codes);

    for (u32 k = threadIdx.x; k < pieces; k += split_threads)
      destination[k] = source[k];
  }
};

template <typename Code>
__global__ void __launch_bounds__(split_threads, split_blocks)
    split_tiles(ClassList list, CodeMap map, SplitWorkspace<Code> split)
{
  using Split = TileSplit<Code>;
  using Slots = BinSlots<Code>;
  constexpr int items = Split::items;

  __shared__ typename Split::Storage storage;
  __shared__ typename Split::Scan::TempStorage temp_storage;

  u32 i = split.tile_arrays[blockIdx.x];
  LongArray array = split.arrays[i];
  ArraySpan span = load_span(list.spans, i);
  u32 number = blockIdx.x - array.first_tile;
  u32 n = min(span.length - number * tile_codes<Code>, tile_codes<Code>);
  u32 n_bins = bins_of<Code>(span.length);
  Tile tile = {number, n, tiles_of<Code>(span.length), n_bins, ceil_log2(n_bins)};
  int left = static_cast<int>(n) - static_cast<int>(threadIdx.x);
  Code codes[items];
  u32 slots[items] = {};

  Team<Code, split_threads, items>::load(
      codes, list.data + span.offset + u64{number} * tile_codes<Code> * map.bytes, n, map, threadIdx.x);
  Split::load_splitters(storage, tile, split.splitters + u64{i} * max_bins<Code>);
  __syncthreads();
  Split::find_bins(storage, tile, codes, slots);
  if (array.has_equal_bins != 0)
    Split::use_equal_bins(storage, codes, slots);
  materialize(left);
#pragma unroll
  for (int k = 0; k < items; k++)
    slots[k] =
        k * static_cast<int>(split_threads) < left ? slots[k] : Slots::past_end + threadIdx.x % warp_size;
  Split::rank_in_bins(storage, slots);
  __syncthreads();
  Split::start_bins(storage, temp_storage, tile, split.part_begins + array.first_part);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < items; k++)
    storage.codes[min(storage.counters[slots[k] & 0xffff] + (slots[k] >> 16), tile_codes<Code>)] = codes[k];
  __syncthreads();
  Split::store(storage, n, split.codes + u64{blockIdx.x} * tile_codes<Code>);
}

} // namespace gpusort

#endif // GS_ARRAYS_SPLIT_CUH
