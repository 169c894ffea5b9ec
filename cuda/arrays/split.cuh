/*-------------------------------------------------------------------------
 *
 * array_split.cuh
 *	  Long arrays: split, tile by tile, into bins that fit on the chip.
 *
 *	  sample	a block sorts some elements for each bin, taken at random from
 *				equal stretches of the array, and picks splitters from them
 *	  split		a block brings a tile of an array into the order of its bins, in
 *				shared memory, writes it to a second buffer as it then is, and
 *				notes where in the tile each bin begins
 *	  place		what the tiles noted for a bin, added up, is the bin's first place
 *				in the array; bins become entries of lists
 *	  finish	teams gather their bin from all tiles, sort it, and write it to
 *				where it belongs
 *
 * So a long array is read and written twice, always in full lines but for the
 * ends of bins' parts in tiles, and no element's bin is looked up twice.  The
 * last two steps are in array_bins.cuh.
 *
 * A value that is in the sample often enough to be two splitters in succession
 * has a bin of its own between them, which needs no sorting.  So no bin becomes
 * too large because of equal elements.  That one becomes too large by bad luck
 * is a matter of some millionths; a block then sorts it in memory, which takes
 * milliseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SPLIT_CUH
#define GS_ARRAY_SPLIT_CUH

#include <cub/block/block_scan.cuh>

#include "arrays/array_classes.cuh"

namespace gpusort
{

constexpr u32 max_parts = 128; // tiles of a long array

static_assert(Classes<u32>::max_long <= max_parts * Classes<u32>::tile, "tiles of an array");
static_assert(Classes<u64>::max_long <= max_parts * Classes<u64>::tile, "tiles of an array");
static_assert(Classes<Wide>::max_long <= max_parts * Classes<Wide>::tile, "tiles of an array");

// What is kept of a long array.
struct LongArray
{
  u64 parts; // where its rows begin, one for each bin and one for what is behind
  u32 first_tile;
  u32 equal; // has it bins of one value?
};

// A bin that is not empty.
struct alignas(16) Bin
{
  u64 offset; // in the data, where it belongs
  u64 codes;  // of the array's first tile; or the splitter that all its elements are
  u64 parts;  // its row
  u32 n;
  u32 tiles;
};

// Bins by what is to be done with them.  They are sorted by 1, 2, 4 or 8 warps, or
// consist of one value, or did not become small enough.
constexpr u32 n_bin_teams = 4;
constexpr u32 equal_bins = n_bin_teams;
constexpr u32 large_bins = n_bin_teams + 1;
constexpr u32 n_bin_lists = n_bin_teams + 2;

struct SplitCounts
{
  u64 parts; // taken by arrays
  u32 tiles;
  u32 bins[n_bin_lists];
};

template <typename Code>
struct SplitMemory
{
  LongArray *arrays;
  Code *splitters; // max_bins for each array, the last one unused
  u32 *array_of;   // of each tile
  u16 *parts;      // where in its tile each part of a bin begins
  Code *codes;     // tile by tile
  SplitCounts *counts;
  Bin *bins; // n_bin_lists times as many as there may be
};

template <typename Code>
SplitMemory<Code> alias_split(TempStorage *storage, const ArrayCensus &census)
{
  u64 n = census.n[Classes<Code>::first_long];
  SplitMemory<Code> memory;

  memory.arrays = storage->alias<LongArray>(n);
  memory.splitters = storage->alias<Code>(n * Classes<Code>::max_bins);
  memory.array_of = storage->alias<u32>(census.tiles);
  memory.parts = storage->alias<u16>(census.parts);
  memory.codes = storage->alias<Code>(census.tiles * Classes<Code>::tile);
  memory.counts = storage->alias<SplitCounts>(1);
  memory.bins = storage->alias<Bin>(census.bins * n_bin_lists);
  return memory;
}

#ifdef __CUDACC__

__device__ __forceinline__ u32 mix_bits(u32 x)
{
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

// The sample should have 32 elements for each bin, and has for very long arrays at
// least 4.  The less they differ in size, the better bins fill the teams that
// will sort them.
constexpr u32 sample_threads = 8 * warp_size;
constexpr u32 sample_per_bin = 32;

static_assert(Classes<u32>::capacity >= 4 * Classes<u32>::max_bins, "sample of few elements");
static_assert(Classes<u64>::capacity >= 4 * Classes<u64>::max_bins, "sample of few elements");
static_assert(Classes<Wide>::capacity >= 4 * Classes<Wide>::max_bins, "sample of few elements");

// Sorts a sample of R elements for each thread, or of as many more as it takes.
template <typename Code, int R>
__device__ __forceinline__ void pick_splitters(const char *array, u32 n, u32 n_bins, u32 seed,
                                               const CodeMap &map, Code *shared, Code *splitters)
{
  constexpr u32 size = sample_threads * R;

  if constexpr (R < Classes<Code>::registers)
    if (n_bins * sample_per_bin > size)
      return pick_splitters<Code, 2 * R>(array, n, n_bins, seed, map, shared, splitters);

  Code x[R];

#pragma unroll
  for (u32 r = 0; r < R; r++)
  {
    u32 k = r * sample_threads + threadIdx.x;
    u32 from = static_cast<u32>(u64{k} * n / size);
    u32 to = static_cast<u32>((u64{k} + 1) * n / size);

    load_code(array, from + mix_bits(seed + k) % (to - from), map, &x[r]);
  }
  Team<Code, sample_threads, R>::sort(x, shared, threadIdx.x);

  // Splitter k is that of rank (k + 1) * size / n_bins.
#pragma unroll
  for (u32 r = 0; r < R; r++)
  {
    u32 rank = threadIdx.x * R + r;
    u32 k = (rank * n_bins + size - 1) / size;

    if (k > 0 && k < n_bins && k * size / n_bins == rank)
      splitters[k - 1] = x[r];
  }
}

template <typename Code>
__global__ void __launch_bounds__(sample_threads)
    sample_arrays(ClassList list, CodeMap map, SplitMemory<Code> memory)
{
  __shared__ Code shared[Team<Code, sample_threads, Classes<Code>::registers>::shared_codes];
  __shared__ u32 first_tile;

  u64 i = blockIdx.x;
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  u32 tiles = tiles_of<Code>(span.length);
  Code *splitters = memory.splitters + i * Classes<Code>::max_bins;
  u32 equal = 0;

  if (threadIdx.x == 0)
    first_tile = atomicAdd(&memory.counts->tiles, tiles);
  pick_splitters<Code, 4>(list.data + span.offset, span.length, n_bins, static_cast<u32>(i * 0x9e3779b9u),
                          map, shared, splitters);
  __syncthreads();
  for (u32 t = threadIdx.x; t < tiles; t += sample_threads)
    memory.array_of[first_tile + t] = static_cast<u32>(i);
  for (u32 b = threadIdx.x + 1; b + 1 < n_bins; b += sample_threads)
    equal |= splitters[b] == splitters[b - 1];
  equal = __syncthreads_or(equal);
  if (threadIdx.x == 0)
  {
    u64 parts = atomicAdd(&memory.counts->parts, u64{n_bins + 1} * tiles);

    memory.arrays[i] = {parts, first_tile, equal};
  }
}

constexpr u32 split_threads = 512;

// Tables of one code or number for each bin leave one place free after as many as
// there are banks: those that are far apart, by powers of two, are in different
// banks then, and a number's place is the sum of those of its bits.
template <typename Code>
struct BinPlaces
{
  static constexpr u32 banks = 128 / sizeof(Code);
  static constexpr u32 all = Classes<Code>::max_bins + Classes<Code>::max_bins / banks;
  static constexpr u32 none = all; // and the following ones: of each lane's codes beyond the end

  static __device__ __forceinline__ u32 place(u32 bin)
  {
    return bin + bin / banks;
  }
  static __device__ __forceinline__ u32 bin(u32 place)
  {
    return place - place / (banks + 1);
  }
};

// Gives each code its rank among those of its bin in the tile, in the upper half of
// its place.  Where many lanes of a warp have the same bin, one of them counts for
// all: data may be sorted already, or equal.
template <int R>
__device__ __forceinline__ void rank_in_bins(u32 (&places)[R], u32 *counts)
{
  constexpr u32 crowd = 8;
  u32 lane = threadIdx.x % warp_size;
  u32 like_me = __popc(__match_any_sync(~0u, places[0]));

  if (__any_sync(~0u, like_me >= crowd))
  {
#pragma unroll
    for (u32 r = 0; r < R; r++)
    {
      u32 peers = __match_any_sync(~0u, places[r]);
      u32 leader = __ffs(peers) - 1;
      u32 before = 0;

      if (lane == leader)
        before = atomicAdd(&counts[places[r]], __popc(peers));
      before = __shfl_sync(~0u, before, leader) + __popc(peers & ((1u << lane) - 1));
      places[r] |= before << 16;
    }
  }
  else
  {
#pragma unroll
    for (u32 r = 0; r < R; r++)
      places[r] |= atomicAdd(&counts[places[r]], 1) << 16;
  }
#pragma unroll
  for (u32 r = 0; r < R; r++)
    compute_here(places[r]); // or both would be kept for longer
}

template <typename Code>
__global__ void __launch_bounds__(split_threads, 2)
    split_tiles(ClassList list, CodeMap map, SplitMemory<Code> memory)
{
  using Places = BinPlaces<Code>;
  constexpr u32 tile = Classes<Code>::tile;
  constexpr u32 max_bins = Classes<Code>::max_bins;
  constexpr int per_thread = tile / split_threads;
  constexpr int bins_per_thread = max_bins / split_threads;
  using Scan = cub::BlockScan<u32, split_threads>;

  __shared__ typename Scan::TempStorage temp;
  alignas(16) __shared__ Code codes[tile + 1]; // the last one of those beyond the end
  __shared__ Code splitters[Places::all];      // in order, the first one at the place of 1

  // Of a bin in the tile; then where it begins.
  __shared__ u32 counts[Places::all + warp_size];

  u32 i = memory.array_of[blockIdx.x];
  LongArray array = memory.arrays[i];
  ArraySpan span = load_span(list.spans, i);
  u32 t = blockIdx.x - array.first_tile;
  u32 n = min(span.length - t * tile, tile);
  u32 n_bins = bins_of<Code>(span.length);
  u32 n_tiles = tiles_of<Code>(span.length);
  u32 levels = ceil_log2(n_bins);
  int left = static_cast<int>(n) - static_cast<int>(threadIdx.x);
  Code code[per_thread];
  u32 places[per_thread] = {};

  Team<Code, split_threads, per_thread>::load(code, list.data + span.offset + u64{t} * tile * map.bytes, n,
                                              map, threadIdx.x);
  for (u32 b = threadIdx.x; b < max_bins; b += split_threads)
    counts[Places::place(b)] = 0;
  for (u32 b = threadIdx.x + 1; b < 1u << levels; b += split_threads)
    splitters[Places::place(b)] =
        b < n_bins ? memory.splitters[u64{i} * max_bins + b - 1] : CodeTraits<Code>::highest();
  __syncthreads();

  // A code's bin is the number of splitters that are not above it.  Places are counted
  // in bytes here, which leaves one instruction less to do.
  for (u32 step = 1u << levels >> 1; step > 0; step /= 2)
  {
    u32 far = Places::place(step) * sizeof(Code);

#pragma unroll
    for (int r = 0; r < per_thread; r++)
    {
      u32 next = places[r] + far;

      if (!(code[r] < *reinterpret_cast<const Code *>(reinterpret_cast<const char *>(splitters) + next)))
        places[r] = next;
    }
  }
#pragma unroll
  for (int r = 0; r < per_thread; r++)
    places[r] = min(places[r] / static_cast<u32>(sizeof(Code)), Places::place(n_bins - 1));
  if (array.equal != 0)
  {
#pragma unroll
    for (int r = 0; r < per_thread; r++)
    {
      u32 bin = Places::bin(places[r]);

      if (bin >= 2 && splitters[places[r]] == code[r] && splitters[Places::place(bin - 1)] == code[r])
        places[r] = Places::place(bin - 1);
    }
  }
  compute_here(left);
#pragma unroll
  for (int r = 0; r < per_thread; r++)
    places[r] =
        r * static_cast<int>(split_threads) < left ? places[r] : Places::none + threadIdx.x % warp_size;
  rank_in_bins(places, counts);
  __syncthreads();

  u32 bin_counts[bins_per_thread];

#pragma unroll
  for (int j = 0; j < bins_per_thread; j++)
    bin_counts[j] = counts[Places::place(threadIdx.x * bins_per_thread + j)];
  Scan(temp).ExclusiveSum(bin_counts, bin_counts);
#pragma unroll
  for (int j = 0; j < bins_per_thread; j++)
  {
    u32 b = threadIdx.x * bins_per_thread + j;

    counts[Places::place(b)] = bin_counts[j];
    if (b < n_bins)
      memory.parts[array.parts + u64{b} * n_tiles + t] = static_cast<u16>(bin_counts[j]);
  }
  if (threadIdx.x < warp_size)
    counts[Places::none + threadIdx.x] = tile;
  if (threadIdx.x == 0)
    memory.parts[array.parts + u64{n_bins} * n_tiles + t] = static_cast<u16>(n);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < per_thread; r++)
    codes[min(counts[places[r] & 0xffff] + (places[r] >> 16), tile)] = code[r];
  __syncthreads();

  // In pieces of 16 bytes, the last of which may end in anything.
  constexpr u32 codes_per_piece = 16 / sizeof(Code);
  u32 pieces = (n + codes_per_piece - 1) / codes_per_piece;
  const uint4 *from = reinterpret_cast<const uint4 *>(codes);
  uint4 *to = reinterpret_cast<uint4 *>(memory.codes + u64{blockIdx.x} * tile);

  for (u32 k = threadIdx.x; k < pieces; k += split_threads)
    to[k] = from[k];
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_ARRAY_SPLIT_CUH
