/*-------------------------------------------------------------------------
 *
 * bins.cuh
 *	  The bins of long arrays: lists of them, and their sorting.
 *
 * split.cuh has left every tile of an array in the order of the array's bins, and
 * the table of parts with the begin of each bin in each tile.
 *
 * A team that sorts a bin first adds up the lengths of the bin's parts, which gives
 * the place in the bin where each part begins, and sets a bit for each of these
 * places.  Then each thread loads places of the bin, a team's size apart, so that
 * neighbouring threads read neighbouring codes but for the ends of parts.  The
 * number of bits up to a place gives its part.  So no place waits for another one,
 * and all loads of a thread are under way at the same time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_BINS_CUH
#define GS_ARRAYS_BINS_CUH

#include <algorithm>

#include "arrays/on_chip.cuh"
#include "arrays/split.cuh"

namespace gpusort
{

// The list for bins of n codes.
template <typename Code>
__device__ __forceinline__ u32 bin_list(u32 n)
{
  if (n > Classes<Code>::capacity)
    return large_bins;
  return n <= Classes<Code>::warp_capacity ? 0 : ceil_log2(n) - ceil_log2(Classes<Code>::warp_capacity);
}

// Finds the places of an array's bins and puts those that are not empty on lists.
template <typename Code>
__global__ void __launch_bounds__(list_bins_threads)
    list_bins(ClassList list, CodeMap map, SplitWorkspace<Code> split, u64 list_capacity)
{
  __shared__ u32 begins[max_bins<Code> + 1]; // of bins in the array

  u64 i = blockIdx.x;
  LongArray array = split.arrays[i];
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  u32 tiles = tiles_of<Code>(span.length);
  const Code *splitters = split.splitters + i * max_bins<Code>;

  for (u32 b = threadIdx.x; b <= n_bins; b += list_bins_threads)
  {
    const u16 *row = split.part_begins + array.first_part + u64{b} * tiles;
    u32 sum = 0;

#pragma unroll 4
    for (u32 tile = 0; tile < tiles; tile++)
      sum += row[tile];
    begins[b] = sum;
  }
  __syncthreads();
#pragma unroll 1
  for (u32 first = 0; first < n_bins; first += list_bins_threads)
  {
    u32 b = first + threadIdx.x;
    u32 n = b < n_bins ? begins[b + 1] - begins[b] : 0;
    bool is_equal = n > 0 && b > 0 && b + 1 < n_bins && splitters[b - 1] == splitters[b];
    u32 c = n == 0 ? n_bin_lists : is_equal ? equal_bins : bin_list<Code>(n);
    u32 entry = count_peers(c, &split.counts->bins[c], n > 0);

    if (n > 0)
      split.bins[c * list_capacity + entry] = {span.offset + u64{begins[b]} * map.bytes,
                                               is_equal ? i * max_bins<Code> + b
                                                        : u64{array.first_tile} * tile_codes<Code>,
                                               array.first_part + u64{b} * tiles, n, tiles};
  }
}

// A list of bins, and where their codes are and go.
template <typename Code>
struct BinList
{
  const Bin *bins;
  const u32 *n;
  const u16 *part_begins;
  const Code *codes;
  const Code *splitters;
  char *data;
};

__device__ __forceinline__ Bin load_bin(const Bin *bins, u64 i)
{
  const uint4 *words = reinterpret_cast<const uint4 *>(bins + i);
  uint4 a = __ldg(words);
  uint4 b = __ldg(words + 1);

  return {static_cast<u64>(a.y) << 32 | a.x, static_cast<u64>(a.w) << 32 | a.z,
          static_cast<u64>(b.y) << 32 | b.x, b.z, b.w};
}

// Flags of a warp's successive places in a bin.
struct alignas(8) PartFlags
{
  u32 begins; // a bit for each place at which a part begins
  u32 before; // parts that begin before these places
};

// Which part of a bin each of its places is in.  Empty parts are left out.
template <typename Code, u32 places>
struct PartMap
{
  static constexpr u32 words = places / warp_size;
  static constexpr u32 words_per_lane = words < warp_size ? 1 : words / warp_size;
  static constexpr u32 rounds = max_tiles<Code> / warp_size; // of a tile for each lane

  static_assert(max_tiles<Code> % warp_size == 0, "rounds of tiles");

  PartFlags flags[words];
  u32 shift[max_tiles<Code>]; // of a part: from places of the bin to codes of the array

  // Done by one warp.  `row` is the bin's row in the table of parts.
  __device__ __forceinline__ void make(const u16 *row, u32 tiles, u32 lane)
  {
    u32 begin[rounds] = {};
    u32 n[rounds] = {};

#pragma unroll
    for (u32 j = 0; j < rounds; j++)
    {
      u32 tile = j * warp_size + lane;

      if (tile < tiles)
      {
        begin[j] = row[tile];
        n[j] = row[tiles + tile] - begin[j];
      }
    }
#pragma unroll
    for (u32 j = 0; j < words_per_lane; j++)
      if (words >= warp_size || lane < words)
        flags[lane * words_per_lane + j].begins = 0;
    __syncwarp();
    flag_parts(begin, n, tiles, lane);
    __syncwarp();
    count_flags(lane);
  }

  // The code of the array at a place of the bin.
  __device__ __forceinline__ u32 source_of(u32 place) const
  {
    PartFlags word = flags[place / warp_size];
    u32 up_to = ~0u >> (warp_size - 1 - place % warp_size);

    return shift[word.before + __popc(word.begins & up_to) - 1] + place;
  }

private:
  __device__ __forceinline__ void flag_parts(const u32 (&begin)[rounds], const u32 (&n)[rounds], u32 tiles,
                                             u32 lane)
  {
    u32 before = 0; // places, and in the upper half parts

#pragma unroll
    for (u32 j = 0; j < rounds; j++)
    {
      if (j * warp_size >= tiles)
        break;

      u32 part = n[j] | (n[j] > 0 ? 1u << 16 : 0);
      u32 end = before + inclusive_sum(part);

      before = __shfl_sync(~0u, end, warp_size - 1);
      if (n[j] > 0)
      {
        u32 place = (end - part) & 0xffff;

        atomicOr(&flags[place / warp_size].begins, 1u << place % warp_size);
        shift[(end - part) >> 16] = (j * warp_size + lane) * tile_codes<Code> + begin[j] - place;
      }
    }
  }

  __device__ __forceinline__ void count_flags(u32 lane)
  {
    u32 sum = 0;

#pragma unroll
    for (u32 j = 0; j < words_per_lane; j++)
      if (words >= warp_size || lane < words)
        sum += __popc(flags[lane * words_per_lane + j].begins);

    u32 before = inclusive_sum(sum) - sum;

#pragma unroll
    for (u32 j = 0; j < words_per_lane; j++)
      if (words >= warp_size || lane < words)
      {
        PartFlags *word = &flags[lane * words_per_lane + j];

        word->before = before;
        before += __popc(word->begins);
      }
  }
};

// Loads a bin into the registers of a team.  `shared` is the team's memory.
template <typename Code, int threads, int items>
__device__ __forceinline__ void gather_bin(Code (&codes)[items], Code *shared, const BinList<Code> &list,
                                           const Bin &bin, u32 thread)
{
  using Sorter = Team<Code, threads, items>;
  using Map = PartMap<Code, Sorter::capacity>;

  static_assert(threads >= warp_size, "team of a bin");
  static_assert(Sorter::capacity < 1 << 16, "places of a bin");
  static_assert(Sorter::shared_codes * sizeof(Code) >= sizeof(Map), "memory of a team");

  Map *map = reinterpret_cast<Map *>(shared);
  int left = Sorter::codes_left(bin.n, thread);
  const Code *array_codes = list.codes + bin.source;

  Sorter::sync();
  if (thread < warp_size)
    map->make(list.part_begins + bin.parts, bin.tiles, thread);
  Sorter::sync();
  materialize(array_codes);

  u32 last = map->source_of(bin.n - 1);

  // Every item loads some code, so that no load waits for another one.
#pragma unroll
  for (int i = 0; i < items; i++)
    codes[i] = load_unchanged(array_codes + min(map->source_of(i * threads + thread), last));
#pragma unroll
  for (int i = 0; i < items; i++)
    codes[i] = i * threads < left ? codes[i] : highest_code<Code>();
  Sorter::sync();
}

// Each team sorts one bin after the other.
template <typename Code, int team_threads>
__global__ void __launch_bounds__(block_threads(team_threads),
                                  resident_warps *warp_size / block_threads(team_threads))
    sort_bins(BinList<Code> list, CodeMap map)
{
  constexpr int items = Classes<Code>::max_items;
  using Sorter = Team<Code, team_threads, items>;
  constexpr u32 teams = block_threads(team_threads) / team_threads;

  alignas(16) __shared__ Code shared[teams * Sorter::shared_codes];

  u32 n_bins = *list.n;
  u32 thread = threadIdx.x % team_threads;
  Code *team_shared = shared + threadIdx.x / team_threads * Sorter::shared_codes;

  for (u64 i = u64{blockIdx.x} * teams + threadIdx.x / team_threads; i < n_bins; i += u64{gridDim.x} * teams)
  {
    Bin bin = load_bin(list.bins, i);
    Code codes[items];

    gather_bin<Code, team_threads>(codes, team_shared, list, bin, thread);
    if (!Sorter::try_sort_by_buckets(codes, team_shared, bin.n, thread))
      Sorter::sort_by_network(codes, team_shared, thread);
    Sorter::store(codes, team_shared, list.data + bin.offset, bin.n, map, thread);
  }
}

// Writes bins of one value.
template <typename Code>
__global__ void __launch_bounds__(bin_threads) fill_bins(BinList<Code> list, CodeMap map)
{
  u32 n_bins = *list.n;

  for (u64 i = blockIdx.x; i < n_bins; i += gridDim.x)
  {
    Bin bin = load_bin(list.bins, i);
    Code code = list.splitters[bin.source];

    for (u32 k = threadIdx.x; k < bin.n; k += bin_threads)
      store_code(list.data + bin.offset, k, map, code);
  }
}

// Moves the codes of a bin of any length to its place in the array.
template <typename Code>
__device__ __forceinline__ void move_large_bin(const BinList<Code> &list, const Bin &bin, const CodeMap &map)
{
  char *array = list.data + bin.offset;
  const u16 *row = list.part_begins + bin.parts;
  u32 place = 0;

  for (u32 tile = 0; tile < bin.tiles; tile++)
  {
    const Code *codes = list.codes + bin.source + u64{tile} * tile_codes<Code> + row[tile];
    u32 n = row[bin.tiles + tile] - row[tile];

    for (u32 k = threadIdx.x; k < n; k += bin_threads)
      store_code(array, place + k, map, codes[k]);
    place += n;
  }
}

// Puts the lower of two elements of an array first.
template <typename Code>
__device__ __forceinline__ void exchange_elements(char *array, u64 low, u64 high, const CodeMap &map)
{
  Code a;
  Code b;

  load_code(array, static_cast<u32>(low), map, &a);
  load_code(array, static_cast<u32>(high), map, &b);
  if (b < a)
  {
    store_code(array, static_cast<u32>(low), map, b);
    store_code(array, static_cast<u32>(high), map, a);
  }
}

// A block sorts a bin of any length in memory, by the bitonic merges of a team
// (team.cuh).  What is after the end counts as highest, and no code ever moves there.
template <typename Code>
__global__ void __launch_bounds__(bin_threads) sort_large_bins(BinList<Code> list, CodeMap map)
{
  u32 n_bins = *list.n;

  for (u64 i = blockIdx.x; i < n_bins; i += gridDim.x)
  {
    Bin bin = load_bin(list.bins, i);
    char *array = list.data + bin.offset;
    u64 end = u64{1} << ceil_log2(bin.n);

    move_large_bin(list, bin, map);
    __syncthreads();
    for (u64 width = 2; width <= end; width *= 2)
      for (u64 d = width / 2; d >= 1; d /= 2)
      {
        for (u64 k = threadIdx.x; k < end / 2; k += bin_threads)
        {
          u64 low = k / d * 2 * d + k % d;
          u64 high = d == width / 2 ? low / width * width + width - 1 - low % width : low + d;

          if (high < bin.n)
            exchange_elements<Code>(array, low, high, map);
        }
        __syncthreads();
      }
  }
}

template <typename Code, int team_threads>
void launch_bins(const BinList<Code> &list, u64 list_capacity, const CodeMap &map, cudaStream_t stream)
{
  constexpr u32 threads = block_threads(team_threads);
  constexpr u32 teams = threads / team_threads;
  u64 blocks = std::min<u64>((list_capacity + teams - 1) / teams, max_bin_blocks);

  sort_bins<Code, team_threads><<<static_cast<u32>(blocks), threads, 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

// Splits long arrays into bins.  The workspace for more tiles or bins than fit into an
// int would not fit into the memory of any device.
template <typename Code>
void split_long_arrays(const ClassList &list, const CodeMap &map, const ArrayCensus &census,
                       const SplitWorkspace<Code> &split, cudaStream_t stream)
{
  u32 n = static_cast<u32>(list.n);
  u32 tiles = static_cast<u32>(census.tiles);

  GS_CUDA_TRY(cudaMemsetAsync(split.counts, 0, sizeof(SplitCounts), stream));
  sample_arrays<Code><<<n, sample_threads, 0, stream>>>(list, map, split);
  GS_CUDA_LAUNCHED();
  split_tiles<Code><<<tiles, split_threads, 0, stream>>>(list, map, split);
  GS_CUDA_LAUNCHED();
  list_bins<Code><<<n, list_bins_threads, 0, stream>>>(list, map, split, census.bins);
  GS_CUDA_LAUNCHED();
}

// Sorts the bins of long arrays, after split_long_arrays() and a fork.follow().
template <typename Code>
void sort_long_arrays(const ClassList &list, const CodeMap &map, const ArrayCensus &census,
                      const SplitWorkspace<Code> &split, const Fork &fork)
{
  u32 blocks = static_cast<u32>(std::min<u64>(census.bins, max_bin_blocks));
  BinList<Code> bins[n_bin_lists];

  for (u32 c = 0; c < n_bin_lists; c++)
    bins[c] = {split.bins + c * census.bins,
               &split.counts->bins[c],
               split.part_begins,
               split.codes,
               split.splitters,
               list.data};
  launch_bins<Code, warp_size>(bins[0], census.bins, map, fork.lane(0));
  launch_bins<Code, 2 * warp_size>(bins[1], census.bins, map, fork.lane(1));
  launch_bins<Code, 4 * warp_size>(bins[2], census.bins, map, fork.lane(2));
  launch_bins<Code, 8 * warp_size>(bins[3], census.bins, map, fork.lane(1));
  fill_bins<Code><<<blocks, bin_threads, 0, fork.lane(2)>>>(bins[equal_bins], map);
  GS_CUDA_LAUNCHED();
  sort_large_bins<Code><<<blocks, bin_threads, 0, fork.lane(1)>>>(bins[large_bins], map);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort

#endif // GS_ARRAYS_BINS_CUH
