/*-------------------------------------------------------------------------
 *
 * on_chip.cuh
 *	  Arrays that fit on chip, one kernel for each class.
 *
 *	  elements				sorted by
 *	  to 16, 32, 64			8 lanes with 2, 4 or 8 items each
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
    return launch_team<Code, 8, 2>(list, map, stream);
  case 2:
    return launch_team<Code, 8, 4>(list, map, stream);
  case 3:
    return launch_team<Code, 8, 8>(list, map, stream);
  case 4:
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
