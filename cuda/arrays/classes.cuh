/*-------------------------------------------------------------------------
 *
 * array_classes.cuh
 *	  The classes of arrays, and the kernels that sort those which fit on the
 *	  chip.
 *
 *	  elements			sorted by
 *	  2 to 8, 16		that many lanes of a warp, one code a lane, eight arrays
 *						at a time so that enough loads are under way (2 to 8 only
 *						where all arrays are; else see array_sorter_impl.cuh)
 *	  to 1024, 512, 256 8, 16 or 32 lanes with up to 32, 16, 8 registers (for
 *						codes of 4, 8, 16 bytes)
 *	  to 8 times that	a block of 2, 4, 8 such warps
 *	  more				array_split.cuh
 *
 * All capacities are powers of two, so the class follows from the logarithm of
 * the length.  What is missing is filled up with the highest code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_CLASSES_CUH
#define GS_ARRAY_CLASSES_CUH

#include "arrays/array_team.cuh"
#include "arrays/sort_arrays.cuh"

namespace gpusort
{

template <typename Code>
struct Classes
{
  static constexpr int registers = 128 / sizeof(Code);        // of a thread of a full team
  static constexpr u32 warp_capacity = warp_size * registers; // 1024, 512, 256
  static constexpr u32 capacity = 8 * warp_capacity;          // 8192, 4096, 2048
  static constexpr u32 log_capacity = sizeof(Code) == 4 ? 13 : sizeof(Code) == 8 ? 12 : 11;
  static constexpr u32 first_long = log_capacity - 1; // class of long arrays
  static constexpr u32 huge = first_long + 1;

  // Long arrays are split, tile by tile, into bins such that most do not exceed the
  // capacity of a warp or two.  Where there are many tiles, bins of 4-byte codes are
  // larger, as their parts in tiles would be short else.  A value that is just not
  // frequent enough to get bins of its own can double a bin, for which there must be
  // room even if the sample was bad.
  static constexpr u32 max_bins = 8192 / sizeof(Code) < 1024 ? 8192 / sizeof(Code) : 1024;
  static constexpr u32 bin_target = sizeof(Code) <= 8 ? 800 : 400;
  static constexpr u32 large_bin_target = sizeof(Code) == 4 ? 2 * bin_target : bin_target;
  static constexpr u32 max_long = max_bins * (capacity / 8);
  static constexpr u32 tile = 32768 / sizeof(Code);
  static constexpr u32 many_tiles = 32;
};

static_assert(Classes<u32>::huge < max_array_classes, "classes of arrays");

__host__ __device__ inline u32 ceil_log2(u32 n)
{
#ifdef __CUDA_ARCH__
  return 32 - __clz(n - 1);
#else
  return n < 2 ? 0 : 32 - __builtin_clz(n - 1);
#endif
}

template <typename Code>
__host__ __device__ inline u32 class_of(u32 n)
{
  if (n <= 8)
    return n > 1;
  if (n > Classes<Code>::max_long)
    return Classes<Code>::huge;

  u32 c = ceil_log2(n) - 2;

  return c < Classes<Code>::first_long ? c : Classes<Code>::first_long;
}

// Tiles of a long array, and bins that it is split into.
template <typename Code>
__host__ __device__ inline u32 tiles_of(u32 n)
{
  return (n + Classes<Code>::tile - 1) / Classes<Code>::tile;
}

template <typename Code>
__host__ __device__ inline u32 bins_of(u32 n)
{
  bool large = n > Classes<Code>::many_tiles * Classes<Code>::tile;
  u32 target = large ? Classes<Code>::large_bin_target : Classes<Code>::bin_target;
  u32 bins = (n + target - 1) / target;

  return bins < Classes<Code>::max_bins ? bins : Classes<Code>::max_bins;
}

// Arrays of one class, and where they are.
struct ClassList
{
  const ArraySpan *spans;
  u64 n;
  char *data;
};

#ifdef __CUDACC__

__device__ __forceinline__ ArraySpan load_span(const ArraySpan *spans, u64 i)
{
  uint4 raw = __ldg(reinterpret_cast<const uint4 *>(spans) + i);

  return {static_cast<u64>(raw.y) << 32 | raw.x, raw.z};
}

constexpr u32 small_threads = 256;
constexpr int small_batch = 8;

template <typename Code, int Lanes>
__global__ void __launch_bounds__(small_threads) sort_small_arrays(ClassList list, CodeMap map)
{
  constexpr u32 groups = small_threads / Lanes;

  u32 t = threadIdx.x % Lanes;

  for (u64 first = u64{blockIdx.x} * groups * small_batch; first < list.n;
       first += u64{gridDim.x} * groups * small_batch)
  {
    Code x[small_batch];
    char *array[small_batch];
    u32 n[small_batch];

#pragma unroll
    for (int b = 0; b < small_batch; b++)
    {
      u64 i = first + b * groups + threadIdx.x / Lanes;
      ArraySpan span = i < list.n ? load_span(list.spans, i) : ArraySpan{0, 0};

      array[b] = list.data + span.offset;
      n[b] = span.length;
    }
#pragma unroll
    for (int b = 0; b < small_batch; b++)
    {
      x[b] = CodeTraits<Code>::highest();
      if (t < n[b])
        load_code(array[b], t, map, &x[b]);
    }
#pragma unroll
    for (u32 width = 2; width <= Lanes; width *= 2)
    {
#pragma unroll
      for (int b = 0; b < small_batch; b++)
        x[b] = keep(x[b], shuffle_xor(x[b], width - 1), (t & (width / 2)) == 0);
#pragma unroll
      for (u32 d = width / 4; d >= 1; d /= 2)
#pragma unroll
        for (int b = 0; b < small_batch; b++)
          x[b] = keep(x[b], shuffle_xor(x[b], d), (t & d) == 0);
    }
#pragma unroll
    for (int b = 0; b < small_batch; b++)
      if (t < n[b])
        store_code(array[b], t, map, x[b]);
  }
}

// Small teams share blocks of four warps.
__host__ __device__ constexpr u32 team_threads(int threads)
{
  return threads <= warp_size ? 4 * warp_size : threads;
}

// Does a team try to spread its codes first?  Not where its network is as fast: with
// few registers, and of 8 lanes with codes of 4 bytes.
template <typename Code>
__host__ __device__ constexpr bool team_spreads(int threads, int registers)
{
  return registers == Classes<Code>::registers && (sizeof(Code) > 4 || threads > 8);
}

// Blocks that a multiprocessor should have room for: 24 warps, or whatever the
// compiler makes of it.
template <typename Code>
__host__ __device__ constexpr u32 team_blocks(int threads, int registers)
{
  return registers == Classes<Code>::registers ? 24 * warp_size / team_threads(threads) : 0;
}

template <typename Code, int Threads, int R>
__global__ void __launch_bounds__(team_threads(Threads), team_blocks<Code>(Threads, R))
    sort_team_arrays(ClassList list, CodeMap map)
{
  using Sorters = Team<Code, Threads, R>;
  constexpr u32 block = team_threads(Threads);
  constexpr u32 teams = block / Threads;

  __shared__ Code shared[block / Sorters::group * Sorters::shared_codes];

  u32 t = threadIdx.x % Sorters::group;
  Code *own = shared + threadIdx.x / Sorters::group * Sorters::shared_codes;

  // All teams of a warp go on as long as one of them does.
  for (u64 first = u64{blockIdx.x} * teams; first < list.n; first += u64{gridDim.x} * teams)
  {
    u64 i = first + threadIdx.x / Threads;
    ArraySpan span = i < list.n ? load_span(list.spans, i) : ArraySpan{0, 0};
    Code x[R];

    Sorters::load(x, list.data + span.offset, span.length, map, t);
    if constexpr (team_spreads<Code>(Threads, R))
    {
      if (!Sorters::spread(x, own, span.length, t))
        Sorters::sort(x, own, t);
    }
    else
      Sorters::sort(x, own, t);
    Sorters::store(x, own, list.data + span.offset, span.length, map, t);
  }
}

// Enough blocks to fill any device several times; each takes what is left.
inline u32 grid_for(u64 n_arrays, u32 per_block)
{
  constexpr u64 most_blocks = 1 << 16;
  u64 blocks = (n_arrays + per_block - 1) / per_block;

  return static_cast<u32>(blocks < most_blocks ? blocks : most_blocks);
}

template <typename Code, int Lanes>
void launch_small(const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  u32 per_block = small_threads / Lanes * small_batch;

  sort_small_arrays<Code, Lanes><<<grid_for(list.n, per_block), small_threads, 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

template <typename Code, int Threads, int R>
void launch_team(const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  constexpr u32 block = team_threads(Threads);

  sort_team_arrays<Code, Threads, R><<<grid_for(list.n, block / Threads), block, 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

// Sorts arrays of a class that fit on the chip.
template <typename Code>
void sort_class(u32 c, const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  constexpr int full = Classes<Code>::registers;
  constexpr int half = full < 16 ? full : 16;

  if (c < 6)
    switch (c)
    {
    case 1:
      return launch_small<Code, 8>(list, map, stream);
    case 2:
      return launch_small<Code, 16>(list, map, stream);
    case 3:
      return launch_team<Code, 8, 4>(list, map, stream);
    case 4:
      return launch_team<Code, 8, 8>(list, map, stream);
    case 5:
      return launch_team<Code, 128 / half, half>(list, map, stream);
    }
  switch (Classes<Code>::first_long - c)
  {
  case 1:
    return launch_team<Code, 8 * warp_size, full>(list, map, stream);
  case 2:
    return launch_team<Code, 4 * warp_size, full>(list, map, stream);
  case 3:
    return launch_team<Code, 2 * warp_size, full>(list, map, stream);
  case 4:
    return launch_team<Code, warp_size, full>(list, map, stream);
  case 5:
    return launch_team<Code, warp_size / 2, full>(list, map, stream);
  case 6:
    return launch_team<Code, warp_size / 4, full>(list, map, stream);
  default:
    fail(GS_INTERNAL, "there is no class %u of arrays", c);
  }
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_ARRAY_CLASSES_CUH
