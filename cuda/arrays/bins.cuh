/*-------------------------------------------------------------------------
 *
 * array_bins.cuh
 *	  The bins of long arrays: where they belong, and their sorting.
 *
 * array_split.cuh has left every tile of an array in the order of the array's
 * bins, and for every bin a row of numbers: where in each tile its part begins.
 * Where the next bin's part begins, it ends.
 *
 * A team that is to sort a bin first adds up the lengths of its parts, so that
 * it knows at which of the bin's places each of them goes on, and marks these
 * places by bits.  Then each thread takes places of the bin, a team's size apart:
 * neighbours read neighbours, but for the ends of parts.  Counting the bits up to
 * a place gives its part, so no place waits for another one's, and all loads of a
 * thread are under way at the same time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_BINS_CUH
#define GS_ARRAY_BINS_CUH

#include <algorithm>

#include "arrays/array_split.cuh"

namespace gpusort
{

#ifdef __CUDACC__

constexpr u32 place_threads = 256;

// The list that a bin belongs to.
template <typename Code>
__device__ __forceinline__ u32 bin_list(u32 n)
{
  if (n > Classes<Code>::capacity)
    return large_bins;
  return n <= Classes<Code>::warp_capacity ? 0 : ceil_log2(n) - ceil_log2(Classes<Code>::warp_capacity);
}

template <typename Code>
__global__ void __launch_bounds__(place_threads)
    place_bins(ClassList list, CodeMap map, SplitMemory<Code> memory, u64 max_entries)
{
  constexpr u32 max_bins = Classes<Code>::max_bins;

  __shared__ u32 first[max_bins + 1]; // place of a bin in the array

  u64 i = blockIdx.x;
  LongArray array = memory.arrays[i];
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  u32 tiles = tiles_of<Code>(span.length);
  const Code *splitters = memory.splitters + i * max_bins;
  u32 lane = threadIdx.x % warp_size;

  for (u32 b = threadIdx.x; b <= n_bins; b += place_threads)
  {
    const u16 *row = memory.parts + array.parts + u64{b} * tiles;
    u32 sum = 0;

#pragma unroll 4
    for (u32 t = 0; t < tiles; t++)
      sum += row[t];
    first[b] = sum;
  }
  __syncthreads();
  for (u32 begin = 0; begin < n_bins; begin += place_threads)
  {
    u32 b = begin + threadIdx.x;
    u32 n = b < n_bins ? first[b + 1] - first[b] : 0;
    bool one_value = n > 0 && b > 0 && b + 1 < n_bins && splitters[b - 1] == splitters[b];
    u32 c = n == 0 ? n_bin_lists : one_value ? equal_bins : bin_list<Code>(n);
    u32 peers = __match_any_sync(~0u, c);
    u32 leader = __ffs(peers) - 1;
    u32 before = 0;

    if (n > 0 && lane == leader)
      before = atomicAdd(&memory.counts->bins[c], __popc(peers));
    before = __shfl_sync(~0u, before, leader) + __popc(peers & ((1u << lane) - 1));
    if (n > 0)
      memory.bins[c * max_entries + before] = {span.offset + u64{first[b]} * map.bytes,
                                               one_value ? i * max_bins + b
                                                         : u64{array.first_tile} * Classes<Code>::tile,
                                               array.parts + u64{b} * tiles, n, tiles};
  }
}

// Bins of one list.
template <typename Code>
struct BinList
{
  const Bin *bins;
  const u32 *n;
  const u16 *parts;
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

// Which of a bin's places are in which part, for a warp's places in succession.
struct alignas(8) PartBits
{
  u32 begins; // a bit for each place at which a part begins
  u32 before; // parts that begin before these places
};

// A bin's parts, but for empty ones.
template <u32 Places>
struct PartMap
{
  PartBits bits[Places / warp_size];
  u32 shift[max_parts]; // from the bin's places to the array's, in the tiles
};

// Done by one warp: of 32 tiles at a time, the lengths and the number of parts up to
// each are summed up together.
template <typename Code, u32 Places>
__device__ __forceinline__ void map_parts(PartMap<Places> *map, const u16 *row, u32 tiles, u32 lane)
{
  constexpr u32 words = Places / warp_size;
  constexpr u32 per_lane = words < warp_size ? 1 : words / warp_size;
  constexpr u32 rounds = max_parts / warp_size;

  u32 begin[rounds] = {};
  u32 n[rounds] = {};
  u32 before = 0; // places, and above them parts

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
  for (u32 j = 0; j < per_lane; j++)
    if (words >= warp_size || lane < words)
      map->bits[lane * per_lane + j].begins = 0;
  __syncwarp();
#pragma unroll
  for (u32 j = 0; j < rounds; j++)
  {
    if (j * warp_size >= tiles)
      break;

    u32 mine = n[j] | (n[j] > 0 ? 1u << 16 : 0);
    u32 end = mine;

#pragma unroll
    for (u32 d = 1; d < warp_size; d *= 2)
    {
      u32 other = __shfl_up_sync(~0u, end, d);

      end += lane >= d ? other : 0;
    }
    end += before;
    before = __shfl_sync(~0u, end, warp_size - 1);
    if (n[j] > 0)
    {
      u32 place = (end - mine) & 0xffff;

      atomicOr(&map->bits[place / warp_size].begins, 1u << place % warp_size);
      map->shift[(end - mine) >> 16] = (j * warp_size + lane) * Classes<Code>::tile + begin[j] - place;
    }
  }
  __syncwarp();

  u32 sum = 0;

#pragma unroll
  for (u32 j = 0; j < per_lane; j++)
    if (words >= warp_size || lane < words)
      sum += __popc(map->bits[lane * per_lane + j].begins);

  u32 end = sum;

#pragma unroll
  for (u32 d = 1; d < warp_size; d *= 2)
  {
    u32 other = __shfl_up_sync(~0u, end, d);

    end += lane >= d ? other : 0;
  }
  end -= sum;
#pragma unroll
  for (u32 j = 0; j < per_lane; j++)
    if (words >= warp_size || lane < words)
    {
      PartBits *bits = &map->bits[lane * per_lane + j];

      bits->before = end;
      end += __popc(bits->begins);
    }
}

// Loads a bin into the registers of a team, whose memory `shared` is.
template <typename Code, int Threads, int R>
__device__ __forceinline__ void gather_bin(Code (&x)[R], Code *shared, const BinList<Code> &list,
                                           const Bin &bin, u32 t)
{
  using Sorters = Team<Code, Threads, R>;
  using Map = PartMap<Sorters::capacity>;

  static_assert(Threads >= warp_size, "team of a bin");
  static_assert(Sorters::capacity < 1 << 16, "places of a bin");
  static_assert(Sorters::shared_codes * sizeof(Code) >= sizeof(Map), "memory of a team");

  Map *map = reinterpret_cast<Map *>(shared);
  int left = Sorters::codes_left(bin.n, t);
  const Code *codes = list.codes + bin.codes;

  Sorters::sync();
  if (t < warp_size)
    map_parts<Code>(map, list.parts + bin.parts, bin.tiles, t);
  Sorters::sync();
  compute_here(codes);

  auto source_of = [&](u32 place)
  {
    PartBits bits = map->bits[place / warp_size];
    u32 up_to = ~0u >> (warp_size - 1 - place % warp_size);

    return map->shift[bits.before + __popc(bits.begins & up_to) - 1] + place;
  };
  u32 last = source_of(bin.n - 1);

  // All of them load something, so that no load waits for another one.
#pragma unroll
  for (int r = 0; r < R; r++)
    x[r] = load_unchanged(codes + min(source_of(r * Threads + t), last));
#pragma unroll
  for (int r = 0; r < R; r++)
    x[r] = r * Threads < left ? x[r] : CodeTraits<Code>::highest();
  Sorters::sync();
}

template <typename Code, int Threads>
__global__ void __launch_bounds__(team_threads(Threads), 24 * warp_size / team_threads(Threads))
    sort_bins(BinList<Code> list, CodeMap map)
{
  constexpr int registers = Classes<Code>::registers;
  using Sorters = Team<Code, Threads, registers>;
  constexpr u32 teams = team_threads(Threads) / Threads;

  alignas(16) __shared__ Code shared[teams * Sorters::shared_codes];

  u32 n_bins = *list.n;
  u32 t = threadIdx.x % Threads;
  Code *own = shared + threadIdx.x / Threads * Sorters::shared_codes;

  for (u64 i = u64{blockIdx.x} * teams + threadIdx.x / Threads; i < n_bins; i += u64{gridDim.x} * teams)
  {
    Bin bin = load_bin(list.bins, i);
    Code x[registers];

    gather_bin<Code, Threads>(x, own, list, bin, t);
    if (!Sorters::spread(x, own, bin.n, t))
      Sorters::sort(x, own, t);
    Sorters::store(x, own, list.data + bin.offset, bin.n, map, t);
  }
}

constexpr u32 bin_threads = 512;

template <typename Code>
__global__ void __launch_bounds__(bin_threads) fill_bins(BinList<Code> list, CodeMap map)
{
  u32 n_bins = *list.n;

  for (u64 i = blockIdx.x; i < n_bins; i += gridDim.x)
  {
    Bin bin = load_bin(list.bins, i);
    Code code = list.splitters[bin.codes];

    for (u32 k = threadIdx.x; k < bin.n; k += bin_threads)
      store_code(list.data + bin.offset, k, map, code);
  }
}

// A block moves a bin of any length to its place and sorts it there.  The same
// bitonic merges as a team's; what is beyond the end counts as highest, and
// nothing ever moves there.
template <typename Code>
__global__ void __launch_bounds__(bin_threads) sort_large_bins(BinList<Code> list, CodeMap map)
{
  u32 n_bins = *list.n;

  for (u64 i = blockIdx.x; i < n_bins; i += gridDim.x)
  {
    Bin bin = load_bin(list.bins, i);
    char *array = list.data + bin.offset;
    const u16 *row = list.parts + bin.parts;
    u64 end = u64{1} << ceil_log2(bin.n);
    u32 first = 0;

    for (u32 tile = 0; tile < bin.tiles; tile++)
    {
      const Code *codes = list.codes + bin.codes + u64{tile} * Classes<Code>::tile + row[tile];
      u32 n = row[bin.tiles + tile] - row[tile];

      for (u32 k = threadIdx.x; k < n; k += bin_threads)
        store_code(array, first + k, map, codes[k]);
      first += n;
    }
    __syncthreads();
    for (u64 width = 2; width <= end; width *= 2)
      for (u64 d = width / 2; d >= 1; d /= 2)
      {
        for (u64 k = threadIdx.x; k < end / 2; k += bin_threads)
        {
          u64 low = k / d * 2 * d + k % d;
          u64 high = d == width / 2 ? low / width * width + width - 1 - low % width : low + d;
          Code a;
          Code b;

          if (high >= bin.n)
            continue;
          load_code(array, static_cast<u32>(low), map, &a);
          load_code(array, static_cast<u32>(high), map, &b);
          if (b < a)
          {
            store_code(array, static_cast<u32>(low), map, b);
            store_code(array, static_cast<u32>(high), map, a);
          }
        }
        __syncthreads();
      }
  }
}

// How many bins a list has is known on the device only, and for most it is none.
constexpr u64 most_bin_blocks = 8192;

template <typename Code, int Threads>
void launch_bins(const BinList<Code> &list, u64 max_entries, const CodeMap &map, cudaStream_t stream)
{
  constexpr u32 teams = team_threads(Threads) / Threads;
  u64 blocks = std::min<u64>((max_entries + teams - 1) / teams, most_bin_blocks);

  sort_bins<Code, Threads><<<static_cast<u32>(blocks), team_threads(Threads), 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

template <typename Code>
void split_long(const ClassList &list, const CodeMap &map, const ArrayCensus &census,
                const SplitMemory<Code> &memory, cudaStream_t stream)
{
  u32 n = static_cast<u32>(list.n);
  u32 tiles = static_cast<u32>(census.tiles);

  if (list.n > INT32_MAX || census.tiles > INT32_MAX || census.bins > INT32_MAX)
    fail(GS_NO_MEMORY, "there are too many long arrays");
  GS_CUDA_TRY(cudaMemsetAsync(memory.counts, 0, sizeof(SplitCounts), stream));
  sample_arrays<Code><<<n, sample_threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  split_tiles<Code><<<tiles, split_threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  place_bins<Code><<<n, place_threads, 0, stream>>>(list, map, memory, census.bins);
  GS_CUDA_LAUNCHED();
}

// After split_long(), to which the streams must have been joined.
template <typename Code>
void sort_split(const ClassList &list, const CodeMap &map, const ArrayCensus &census,
                const SplitMemory<Code> &memory, const Fork &fork)
{
  u32 blocks = static_cast<u32>(std::min<u64>(census.bins, most_bin_blocks));
  BinList<Code> bins[n_bin_lists];

  for (u32 c = 0; c < n_bin_lists; c++)
    bins[c] = {memory.bins + c * census.bins,
               &memory.counts->bins[c],
               memory.parts,
               memory.codes,
               memory.splitters,
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

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_ARRAY_BINS_CUH
