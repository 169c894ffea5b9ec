/*-------------------------------------------------------------------------
 *
 * on_chip.cuh
 *	  Arrays that fit on chip, one kernel for each class.
 *
 *	  elements				sorted by
 *	  2 to 8, 9 to 16		8 or 16 lanes, a code each; a warp has eight such batches
 *							of arrays at a time, for more loads on their way
 *	  to 32, 64				8 lanes with 4 or 8 items each
 *	  to 128 ... 1024		8 to 32 lanes with up to 32 items of 4 bytes, 16 of 8 bytes,
 *							8 of 16 bytes; these reach 1024, 512 and 256 elements
 *	  to 8 times that		a block of 2, 4 or 8 such warps
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_ON_CHIP_CUH
#define GS_ARRAYS_ON_CHIP_CUH

#include "arrays/classes.cuh"
#include "arrays/team.cuh"

namespace gpusort
{

// Sorts arrays by a bitonic network over some lanes, small_batch arrays at a time.
template <typename Code, int lanes>
__device__ __forceinline__ void sort_lanes(Code (&codes)[small_batch], u32 lane)
{
#pragma unroll
  for (u32 width = 2; width <= lanes; width *= 2)
  {
#pragma unroll
    for (int b = 0; b < small_batch; b++)
      codes[b] = lower_or_higher(codes[b], shuffle_xor(codes[b], width - 1), (lane & (width / 2)) == 0);
#pragma unroll
    for (u32 d = width / 4; d >= 1; d /= 2)
#pragma unroll
      for (int b = 0; b < small_batch; b++)
        codes[b] = lower_or_higher(codes[b], shuffle_xor(codes[b], d), (lane & d) == 0);
  }
}

template <typename Code, int lanes>
__global__ void __launch_bounds__(small_threads) sort_small_arrays(ClassList list, CodeMap map)
{
  constexpr u32 groups = small_threads / lanes;

  u32 lane = threadIdx.x % lanes;

  for (u64 first = u64{blockIdx.x} * groups * small_batch; first < list.n;
       first += u64{gridDim.x} * groups * small_batch)
  {
    Code codes[small_batch];
    char *array[small_batch];
    u32 n[small_batch];

#pragma unroll
    for (int b = 0; b < small_batch; b++)
    {
      u64 i = first + b * groups + threadIdx.x / lanes;
      ArraySpan span = i < list.n ? load_span(list.spans, i) : ArraySpan{0, 0};

      array[b] = list.data + span.offset;
      n[b] = span.length;
    }
#pragma unroll
    for (int b = 0; b < small_batch; b++)
    {
      codes[b] = highest_code<Code>();
      if (lane < n[b])
        load_code(array[b], lane, map, &codes[b]);
    }
    sort_lanes<Code, lanes>(codes, lane);
#pragma unroll
    for (int b = 0; b < small_batch; b++)
      if (lane < n[b])
        store_code(array[b], lane, map, codes[b]);
  }
}

// Teams of a warp or less share blocks.
__host__ __device__ constexpr u32 block_threads(int team_threads)
{
  return team_threads <= warp_size ? small_team_threads : team_threads;
}

// Blocks that a multiprocessor should have room for; 0 leaves it to the compiler.
template <typename Code>
__host__ __device__ constexpr u32 team_blocks(int team_threads, int items)
{
  return items == Classes<Code>::max_items ? resident_warps * warp_size / block_threads(team_threads) : 0;
}

template <typename Code, int team_threads, int items>
__global__ void __launch_bounds__(block_threads(team_threads), team_blocks<Code>(team_threads, items))
    sort_team_arrays(ClassList list, CodeMap map)
{
  using Sorter = Team<Code, team_threads, items>;
  constexpr u32 threads = block_threads(team_threads);
  constexpr u32 teams = threads / team_threads;

  __shared__ Code shared[threads / Sorter::group * Sorter::shared_codes];

  u32 thread = threadIdx.x % Sorter::group;
  Code *group_shared = shared + threadIdx.x / Sorter::group * Sorter::shared_codes;

  // All teams of a warp stay in the loop as long as one of them has an array.
  for (u64 first = u64{blockIdx.x} * teams; first < list.n; first += u64{gridDim.x} * teams)
  {
    u64 i = first + threadIdx.x / team_threads;
    ArraySpan span = i < list.n ? load_span(list.spans, i) : ArraySpan{0, 0};
    Code codes[items];

    Sorter::load(codes, list.data + span.offset, span.length, map, thread);
    Sorter::sort(codes, group_shared, thread);
    Sorter::store(codes, group_shared, list.data + span.offset, span.length, map, thread);
  }
}

template <typename Code, int lanes>
void launch_small(const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  u32 arrays_per_block = small_threads / lanes * small_batch;

  sort_small_arrays<Code, lanes><<<grid_for(list.n, arrays_per_block), small_threads, 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

template <typename Code, int team_threads, int items>
void launch_team(const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  constexpr u32 threads = block_threads(team_threads);

  sort_team_arrays<Code, team_threads, items>
      <<<grid_for(list.n, threads / team_threads), threads, 0, stream>>>(list, map);
  GS_CUDA_LAUNCHED();
}

// Sorts arrays of a class that fit on chip.
template <typename Code>
void sort_class(u32 c, const ClassList &list, const CodeMap &map, cudaStream_t stream)
{
  constexpr int full = Classes<Code>::max_items;
  constexpr int half = full < 16 ? full : 16;

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

} // namespace gpusort

#endif // GS_ARRAYS_ON_CHIP_CUH
