/*-------------------------------------------------------------------------
 *
 * array_split.cuh
 *	  Long arrays: split into bins that fit on the chip.
 *
 * A long array is read three times and written twice.
 *
 *	  sample	a block sorts some elements for each bin, taken at random from
 *				equal stretches of the array, and picks splitters from them
 *	  count		blocks, each with a tile of some array, look up the bin of every
 *				element, note it, and count
 *	  place		counts become the bins' first places; bins become entries of
 *				class lists
 *	  scatter	blocks bring a tile into the bins' order in shared memory and append
 *				it to the bins, in a second buffer, at the same offsets
 *	  finish	the bins are sorted as arrays of their classes, and written to
 *				where they belong
 *
 * Bins are appended to by atomic additions, so elements get there in any order.
 * That is allowed, as equal codes are equal bits.
 *
 * A value that is in the sample often enough to be two splitters in succession
 * has a bin of its own between them, which needs no sorting.  So no bin becomes
 * too large because of equal elements.  That one becomes too large by bad luck
 * is a matter of some millionths; a block then sorts it in memory, which takes
 * milliseconds.
 *
 * Huge arrays, of more than some hundred thousand elements, are sorted one by
 * one, by CUB's radix sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_SPLIT_CUH
#define GS_ARRAY_SPLIT_CUH

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

#include <vector>

#include "array_classes.cuh"

namespace gpusort
{

// Bins by what is to be done with them: those of the classes, then
struct BinLists
{
  u32 n[max_array_classes + 2];
};
constexpr u32 copied_bins = max_array_classes;    // in order already
constexpr u32 large_bins = max_array_classes + 1; // did not become small enough
constexpr u32 n_bin_lists = max_array_classes + 2;

template <typename Code>
struct SplitMemory
{
  char *second;    // as large as the data
  Code *splitters; // max_bins for each array, the last one unused
  u32 *counts;     // max_bins for each array; then where its bins go on
  u32 *equal;      // has the array bins of one value?
  u64 *first_tile; // of each array
  u16 *bins;       // of each element, tile by tile
  BinLists *lists;
  ArraySpan *entries; // n_bin_lists times as many as there may be bins
};

template <typename Code>
SplitMemory<Code> carve_split(Carver *carve, const ArrayCensus &census)
{
  u64 n = census.n[Classes<Code>::first_long];
  SplitMemory<Code> memory;

  memory.second = carve->take<char>(census.end);
  memory.splitters = carve->take<Code>(n * Classes<Code>::max_bins);
  memory.counts = carve->take<u32>(n * Classes<Code>::max_bins);
  memory.equal = carve->take<u32>(n);
  memory.first_tile = carve->take<u64>(n + 1);
  memory.bins = carve->take<u16>(census.tiles * Classes<Code>::tile);
  memory.lists = carve->take<BinLists>(1);
  memory.entries = carve->take<ArraySpan>(census.bins * n_bin_lists);
  return memory;
}

#ifdef __CUDACC__

constexpr u32 scan_threads = 1024;
constexpr u32 split_threads = 256;

template <typename Code>
__global__ void __launch_bounds__(scan_threads) number_tiles(ClassList list, u64 *first_tile)
{
  using Scan = cub::BlockScan<u64, scan_threads>;

  __shared__ typename Scan::TempStorage temp;
  u64 before = 0;

  for (u64 i = threadIdx.x; i - threadIdx.x < list.n; i += scan_threads)
  {
    u64 tiles = 0;
    u64 all;

    if (i < list.n)
      tiles = (load_span(list.spans, i).length + Classes<Code>::tile - 1) / Classes<Code>::tile;
    Scan(temp).ExclusiveSum(tiles, tiles, all);
    if (i < list.n)
      first_tile[i] = before + tiles;
    before += all;
    __syncthreads();
  }
  if (threadIdx.x == 0)
    first_tile[list.n] = before;
}

// Teams that sort samples, of which there should be 32 elements for each bin, and
// are for very long arrays at least 4.  The less they differ in size, the better
// bins fill the teams that will sort them.
template <typename Code>
struct Samplers
{
  static constexpr u32 threads = 8 * warp_size;
  using Small = Team<Code, threads, 4>;
  using Middle = Team<Code, threads, sizeof(Code) == 4 ? 16 : 8>;
  using Large = Team<Code, threads, Classes<Code>::registers>;
  static constexpr u32 per_bin = 32;
};

static_assert(Samplers<u32>::Large::capacity >= 4 * Classes<u32>::max_bins, "sample of few elements");
static_assert(Samplers<u64>::Large::capacity >= 4 * Classes<u64>::max_bins, "sample of few elements");
static_assert(Samplers<Wide>::Large::capacity >= 4 * Classes<Wide>::max_bins, "sample of few elements");

__device__ __forceinline__ u32 mix_bits(u32 x)
{
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

template <typename Code, typename Sampler>
__device__ __forceinline__ void pick_splitters(const char *array, u32 n, u32 n_bins, u32 seed,
                                               const CodeMap &map, Code *shared, Code *splitters)
{
  constexpr u32 size = Sampler::capacity;
  constexpr u32 per_thread = size / Sampler::threads;
  Code x[per_thread];

#pragma unroll
  for (u32 r = 0; r < per_thread; r++)
  {
    u32 k = r * Sampler::threads + threadIdx.x;
    u32 from = static_cast<u32>(u64{k} * n / size);
    u32 to = static_cast<u32>((u64{k} + 1) * n / size);

    load_code(array, from + mix_bits(seed + k) % (to - from), map, &x[r]);
  }
  Sampler::sort(x, shared, threadIdx.x);

  // Splitter k is that of rank (k + 1) * size / n_bins.
#pragma unroll
  for (u32 r = 0; r < per_thread; r++)
  {
    u32 rank = threadIdx.x * per_thread + r;
    u32 k = (rank * n_bins + size - 1) / size;

    if (k > 0 && k < n_bins && k * size / n_bins == rank)
      splitters[k - 1] = x[r];
  }
}

template <typename Code>
__global__ void __launch_bounds__(Samplers<Code>::threads)
    sample_arrays(ClassList list, CodeMap map, SplitMemory<Code> memory)
{
  using Small = typename Samplers<Code>::Small;
  using Middle = typename Samplers<Code>::Middle;
  using Large = typename Samplers<Code>::Large;

  __shared__ Code shared[Large::shared_codes];
  u64 i = blockIdx.x;
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  Code *splitters = memory.splitters + i * Classes<Code>::max_bins;
  u32 *counts = memory.counts + i * Classes<Code>::max_bins;
  u32 seed = static_cast<u32>(i * 0x9e3779b9u);
  u32 equal = 0;

  for (u32 b = threadIdx.x; b < n_bins; b += blockDim.x)
    counts[b] = 0;
  if (n_bins * Samplers<Code>::per_bin <= Small::capacity)
    pick_splitters<Code, Small>(source_of(list, span), span.length, n_bins, seed, map, shared, splitters);
  else if (n_bins * Samplers<Code>::per_bin <= Middle::capacity)
    pick_splitters<Code, Middle>(source_of(list, span), span.length, n_bins, seed, map, shared, splitters);
  else
    pick_splitters<Code, Large>(source_of(list, span), span.length, n_bins, seed, map, shared, splitters);
  __syncthreads();
  for (u32 b = threadIdx.x + 1; b + 1 < n_bins; b += blockDim.x)
    equal |= splitters[b] == splitters[b - 1];
  equal = __syncthreads_or(equal);
  if (threadIdx.x == 0)
    memory.equal[i] = equal;
}

// The tile that a block is to work on.
template <typename Code>
struct Tile
{
  u64 array; // in the list
  u32 first; // element
  u32 n;
  u32 n_bins;
  ArraySpan span;

  __device__ __forceinline__ Tile(const ClassList &list, const u64 *first_tile)
  {
    u64 low = 0;
    u64 high = list.n - 1;

    // The last array whose first tile is not behind this one.
    while (low < high)
    {
      u64 middle = (low + high + 1) / 2;

      if (first_tile[middle] <= blockIdx.x)
        low = middle;
      else
        high = middle - 1;
    }
    array = low;
    span = load_span(list.spans, array);
    first = static_cast<u32>(blockIdx.x - first_tile[array]) * Classes<Code>::tile;
    n = min(span.length - first, Classes<Code>::tile);
    n_bins = bins_of<Code>(span.length);
  }
};

template <typename Code>
__global__ void __launch_bounds__(split_threads)
    count_bins(ClassList list, CodeMap map, SplitMemory<Code> memory)
{
  constexpr u32 max_bins = Classes<Code>::max_bins;

  // The splitters in order, and as a tree, filled up with the highest code: the
  // children of node i are 2i and 2i + 1.  Walks down it meet few bank conflicts,
  // since the nodes of an upper level are in different banks.
  __shared__ Code splitters[max_bins];
  __shared__ Code tree[max_bins];
  __shared__ u32 counts[max_bins];

  Tile<Code> tile(list, memory.first_tile);
  const char *from = source_of(list, tile.span);
  bool equal = memory.equal[tile.array] != 0;
  u16 *bins = memory.bins + u64{blockIdx.x} * Classes<Code>::tile;
  u32 levels = ceil_log2(tile.n_bins);

  for (u32 b = threadIdx.x; b < 1u << levels; b += split_threads)
  {
    u32 level = 31 - __clz(b | 1);
    u32 at = (2 * (b - (1u << level)) + 1) * (1u << (levels - level - 1)) - 1;

    counts[b] = 0;
    if (b + 1 < tile.n_bins)
      splitters[b] = memory.splitters[tile.array * max_bins + b];
    if (b > 0)
      tree[b] =
          at + 1 < tile.n_bins ? memory.splitters[tile.array * max_bins + at] : CodeTraits<Code>::highest();
  }
  __syncthreads();
#pragma unroll 4
  for (u32 k = threadIdx.x; k < tile.n; k += split_threads)
  {
    Code code;
    u32 node = 1;

    load_code(from, tile.first + k, map, &code);
    for (u32 level = 0; level < levels; level++)
      node = 2 * node + !(code < tree[node]);

    u32 bin = min(node - (1u << levels), tile.n_bins - 1); // splitters not above the code

    if (equal && bin >= 2 && splitters[bin - 1] == code && splitters[bin - 2] == code)
      bin--;
    bins[k] = static_cast<u16>(bin);
    atomicAdd(&counts[bin], 1);
  }
  __syncthreads();
  for (u32 b = threadIdx.x; b < tile.n_bins; b += split_threads)
    if (counts[b] > 0)
      atomicAdd(&memory.counts[tile.array * max_bins + b], counts[b]);
}

template <typename Code>
__global__ void __launch_bounds__(Classes<Code>::max_bins)
    place_bins(ClassList list, CodeMap map, SplitMemory<Code> memory, u64 max_entries)
{
  constexpr u32 max_bins = Classes<Code>::max_bins;
  using Scan = cub::BlockScan<u32, max_bins>;

  __shared__ typename Scan::TempStorage temp;
  u64 i = blockIdx.x;
  u32 b = threadIdx.x;
  ArraySpan span = load_span(list.spans, i);
  u32 n_bins = bins_of<Code>(span.length);
  u32 n = b < n_bins ? memory.counts[i * max_bins + b] : 0;
  u32 first;

  Scan(temp).ExclusiveSum(n, first);
  if (b < n_bins)
    memory.counts[i * max_bins + b] = first;
  if (n == 0)
    return;

  const Code *splitters = memory.splitters + i * max_bins;
  bool one_value = n == 1 || (b > 0 && b + 1 < n_bins && splitters[b - 1] == splitters[b]);
  u32 c = one_value ? copied_bins : n > Classes<Code>::capacity ? large_bins : class_of<Code>(n);
  u32 at = atomicAdd(&memory.lists->n[c], 1);

  memory.entries[c * max_entries + at] = {span.offset + u64{first} * map.bytes, n, 1};
}

template <typename Code>
__global__ void __launch_bounds__(split_threads)
    scatter_bins(ClassList list, CodeMap map, SplitMemory<Code> memory)
{
  constexpr u32 max_bins = Classes<Code>::max_bins;
  constexpr u32 size = Classes<Code>::tile;
  constexpr u32 per_thread = size / split_threads;
  constexpr u32 bins_per_thread = max_bins / split_threads;
  using Scan = cub::BlockScan<u32, split_threads>;

  __shared__ typename Scan::TempStorage temp;
  __shared__ Code codes[size];
  __shared__ u16 bin_of[size];
  __shared__ u32 counts[max_bins]; // of a bin in the tile; then its first place
  __shared__ u32 shift[max_bins];  // from places in the tile to those in the array

  Tile<Code> tile(list, memory.first_tile);
  const char *from = source_of(list, tile.span);
  const u16 *bins = memory.bins + u64{blockIdx.x} * size;
  u32 bin_and_rank[per_thread];
  u32 bin_counts[bins_per_thread];
  u32 bin_first[bins_per_thread];

  for (u32 b = threadIdx.x; b < max_bins; b += split_threads)
    counts[b] = 0;
  __syncthreads();
#pragma unroll
  for (u32 r = 0; r < per_thread; r++)
  {
    u32 k = r * split_threads + threadIdx.x;

    if (k < tile.n)
    {
      u32 bin = bins[k];

      bin_and_rank[r] = bin << 16 | atomicAdd(&counts[bin], 1);
    }
  }
  __syncthreads();
#pragma unroll
  for (u32 j = 0; j < bins_per_thread; j++)
    bin_counts[j] = counts[threadIdx.x * bins_per_thread + j];
  Scan(temp).ExclusiveSum(bin_counts, bin_first);
#pragma unroll
  for (u32 j = 0; j < bins_per_thread; j++)
  {
    u32 b = threadIdx.x * bins_per_thread + j;

    counts[b] = bin_first[j];
    if (bin_counts[j] > 0)
      shift[b] = atomicAdd(&memory.counts[tile.array * max_bins + b], bin_counts[j]) - bin_first[j];
  }
  __syncthreads();
#pragma unroll
  for (u32 r = 0; r < per_thread; r++)
  {
    u32 k = r * split_threads + threadIdx.x;

    if (k < tile.n)
    {
      u32 bin = bin_and_rank[r] >> 16;
      u32 place = counts[bin] + (bin_and_rank[r] & 0xffff);

      load_code(from, tile.first + k, map, &codes[place]);
      bin_of[place] = static_cast<u16>(bin);
    }
  }
  __syncthreads();

  char *to = list.second + tile.span.offset;

  for (u32 k = threadIdx.x; k < tile.n; k += split_threads)
    store_code(to, k + shift[bin_of[k]], map, codes[k]);
}

// A block sorts an array of any length where it lies, then moves it to the data.
// The same bitonic merges as a team's; what is beyond the end counts as
// highest, and nothing ever moves there.
constexpr u32 memory_threads = 512;

template <typename Code>
__global__ void __launch_bounds__(memory_threads) sort_in_memory(ClassList list, CodeMap map)
{
  u64 n_arrays = list_length(list);

  for (u64 i = blockIdx.x; i < n_arrays; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);
    char *array = list.second + span.offset;
    u32 n = span.length;
    u64 end = u64{1} << ceil_log2(n);

    for (u64 width = 2; width <= end; width *= 2)
      for (u64 d = width / 2; d >= 1; d /= 2)
      {
        for (u64 k = threadIdx.x; k < end / 2; k += memory_threads)
        {
          u64 low = k / d * 2 * d + k % d;
          u64 high = d == width / 2 ? low / width * width + width - 1 - low % width : low + d;
          Code a;
          Code b;

          if (high >= n)
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
    for (u32 k = threadIdx.x; k < n; k += memory_threads)
    {
      Code x;

      load_code(array, k, map, &x);
      store_code(list.data + span.offset, k, map, x);
    }
  }
}

template <typename Code>
void sort_long(ClassList list, const CodeMap &map, const ArrayCensus &census, const SplitMemory<Code> &memory,
               cudaStream_t stream)
{
  constexpr u32 max_bins = Classes<Code>::max_bins;
  u32 n = static_cast<u32>(list.n);
  u32 tiles = static_cast<u32>(census.tiles);

  if (list.n > INT32_MAX || census.tiles > INT32_MAX)
    fail(GS_NO_MEMORY, "there are too many long arrays");
  list.second = memory.second;
  GS_CUDA_TRY(cudaMemsetAsync(memory.lists, 0, sizeof(BinLists), stream));
  number_tiles<Code><<<1, scan_threads, 0, stream>>>(list, memory.first_tile);
  GS_CUDA_LAUNCHED();
  sample_arrays<Code><<<n, Samplers<Code>::threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  count_bins<Code><<<tiles, split_threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  place_bins<Code><<<n, max_bins, 0, stream>>>(list, map, memory, census.bins);
  GS_CUDA_LAUNCHED();
  scatter_bins<Code><<<tiles, split_threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();

  for (u32 c = 1; c < n_bin_lists; c++)
  {
    ClassList bins = {memory.entries + c * census.bins, census.bins, &memory.lists->n[c], list.data,
                      memory.second};

    if (c < Classes<Code>::first_long)
      sort_class<Code>(c, bins, map, stream);
    else if (c == copied_bins)
    {
      copy_arrays<Code><<<grid_for(bins.n, 1), copy_threads, 0, stream>>>(bins, map);
      GS_CUDA_LAUNCHED();
    }
    else if (c == large_bins)
    {
      sort_in_memory<Code><<<grid_for(bins.n, 1), memory_threads, 0, stream>>>(bins, map);
      GS_CUDA_LAUNCHED();
    }
  }
}

template <typename Code>
__global__ void __launch_bounds__(split_threads)
    load_huge(const char *array, u32 n, CodeMap map, typename RadixKey<Code>::type *keys)
{
  u64 i = u64{blockIdx.x} * split_threads + threadIdx.x;
  Code code;

  if (i >= n)
    return;
  load_code(array, static_cast<u32>(i), map, &code);
  keys[i] = radix_key(code);
}

template <typename Code>
__global__ void __launch_bounds__(split_threads)
    store_huge(char *array, u32 n, CodeMap map, const typename RadixKey<Code>::type *keys)
{
  u64 i = u64{blockIdx.x} * split_threads + threadIdx.x;
  Code code;

  if (i >= n)
    return;
  from_radix_key(keys[i], &code);
  store_code(array, static_cast<u32>(i), map, code);
}

template <typename Code>
struct HugeMemory
{
  typename RadixKey<Code>::type *keys[2];
  void *temp;
  size_t temp_bytes;
};

template <typename Code>
HugeMemory<Code> carve_huge(Carver *carve, u32 longest)
{
  using Key = typename RadixKey<Code>::type;
  HugeMemory<Code> memory;
  cub::DoubleBuffer<Key> keys;

  GS_CUDA_TRY(cub::DeviceRadixSort::SortKeys(nullptr, memory.temp_bytes, keys, u64{longest}));
  memory.keys[0] = carve->take<Key>(longest);
  memory.keys[1] = carve->take<Key>(longest);
  memory.temp = carve->take<char>(memory.temp_bytes);
  return memory;
}

template <typename Code>
void sort_huge(const ClassList &list, const CodeMap &map, const HugeMemory<Code> &memory, cudaStream_t stream)
{
  using Key = typename RadixKey<Code>::type;
  std::vector<ArraySpan> spans(list.n);
  int bits = sizeof(Code) * 8;

  GS_CUDA_TRY(
      cudaMemcpyAsync(spans.data(), list.spans, list.n * sizeof(ArraySpan), cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));
  for (const ArraySpan &span : spans)
  {
    cub::DoubleBuffer<Key> keys(memory.keys[0], memory.keys[1]);
    size_t temp_bytes = memory.temp_bytes;
    u32 blocks = blocks_for(span.length, split_threads);

    load_huge<Code>
        <<<blocks, split_threads, 0, stream>>>(list.data + span.offset, span.length, map, keys.Current());
    GS_CUDA_LAUNCHED();
    GS_CUDA_TRY(cub::DeviceRadixSort::SortKeys(memory.temp, temp_bytes, keys, u64{span.length},
                                               bits - static_cast<int>(map.bytes) * 8, bits, stream));
    store_huge<Code>
        <<<blocks, split_threads, 0, stream>>>(list.data + span.offset, span.length, map, keys.Current());
    GS_CUDA_LAUNCHED();
  }
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_ARRAY_SPLIT_CUH
