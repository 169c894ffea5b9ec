/*-------------------------------------------------------------------------
 *
 * team.cuh
 *	  A team of threads sorts an array on chip.
 *
 * A team is a few lanes of a warp, a warp, or several warps that make a block.
 * Each thread holds `items` codes in registers.  More items make fewer threads, and
 * less to exchange between threads.  Places after the end of the array hold the
 * highest code.
 *
 * Network
 *	  sort() takes the same time for all data.  Every thread sorts its
 *	  items by Batcher's odd-even merge sort.  Bitonic merges then merge the sorted
 *	  sequences of neighbouring threads, of pairs of threads, and so on.  A merge of
 *	  2m threads compares each code with its mirror image in the other half and
 *	  keeps the lower one in the first half.  Both halves are bitonic then.
 *	  Half-cleaners with distances of m / 2, m / 4, ... threads follow, until every
 *	  thread has a bitonic sequence of its own and merges that in its registers.  No
 *	  step sorts downwards, so the compiler knows which code of a pair stays where,
 *	  or one bit of the thread's number tells.  (K. Batcher, Sorting networks and
 *	  their applications, 1968.)
 *
 *	  Arithmetic instructions bound the time.  A comparator within a thread takes two
 *	  instructions for two codes; one between threads takes two for one code, since
 *	  each side computes the code that it keeps.  So with 32 items, merges of 8 and
 *	  more lanes transpose the codes of a warp through shared memory: lane i then
 *	  holds item i of all lanes, and all comparators between lanes are within
 *	  threads.  The upper half is read in reverse for the mirrored comparison.  A
 *	  bitonic sequence is bitonic backwards too, so nothing reverses it again.
 *	  Comparators between warps go through shared memory one by one: merges of 2, 4
 *	  and 8 warps have 1, 2 and 3 of them.
 *
 * Memory
 *	  The threads of a team read and write neighbouring elements.  The order of the
 *	  input of a network does not matter; the output is transposed in shared memory.
 *	  There one code is left free after as many as there are banks, so that the
 *	  threads of a warp use different banks both ways, and so that the compiler knows
 *	  where an item is but for a number of the thread.
 *
 *	  Where places after the end must not count, only the instruction that matters is
 *	  predicated: a branch around each of `items` pieces of work takes longer than the
 *	  work.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_TEAM_CUH
#define GS_ARRAYS_TEAM_CUH

#include "arrays/codes.cuh"
#include "arrays/tuning.cuh"
#include "block/network.cuh"

namespace gpusort
{

template <typename Code, int threads, int items>
struct Team
{
  static_assert(items >= 2 && (items & (items - 1)) == 0, "items of a thread");

  static constexpr u32 capacity = threads * items;
  static constexpr bool transposes = items == warp_size && threads >= 8;
  static constexpr int lanes = threads < warp_size ? threads : warp_size; // of a warp, in one team

  // A group is the threads that share memory: the team, or the warp of its lanes.
  // `shared_codes` is the memory that a group needs.
  static constexpr u32 group = threads < warp_size ? warp_size : threads;
  static constexpr u32 row = transposes ? items + 1 : items;
  static constexpr u32 banks = 128 / sizeof(Code);
  static constexpr u32 shared_codes = group * items + group * items / banks;

  static_assert(banks % items == 0, "a thread's codes are in one row of banks");
  static_assert(group * row <= shared_codes, "memory of a team");

  // In all functions, `thread` is the number of a thread in its group, `shared` the
  // memory of the group, and n the length of the team's array.

  // Item i of a team's thread is one of the array's codes if i * threads < codes_left().
  static __device__ __forceinline__ int codes_left(u32 n, u32 team_thread)
  {
    return static_cast<int>(n) - static_cast<int>(team_thread);
  }

  static __device__ __forceinline__ void sync()
  {
    if (group == warp_size)
      __syncwarp();
    else
      __syncthreads();
  }

  // Compares items with those of a thread of another warp, mirrored or not.
  static __device__ __forceinline__ void compare_warps(Code (&codes)[items], Code *shared, u32 thread,
                                                       u32 mask, bool mirror, bool lower)
  {
    sync();
#pragma unroll
    for (int i = 0; i < items; i++)
      shared[i * threads + thread] = codes[i];
    sync();

    const Code *other = shared + (thread ^ mask);

    if (mirror)
    {
#pragma unroll
      for (int i = 0; i < items; i++)
        codes[i] = lower_or_higher(codes[i], other[(items - 1 - i) * threads], lower);
    }
    else
    {
#pragma unroll
      for (int i = 0; i < items; i++)
        codes[i] = lower_or_higher(codes[i], other[i * threads], lower);
    }
  }

  // All comparisons between lanes in a merge of 2 * half lanes, from distance `half`
  // down, the first one mirrored or not.  `warp_codes` is the warp's part of the memory.
  template <int half, bool mirror>
  static __device__ __forceinline__ void merge_transposed(Code (&codes)[items], Code *warp_codes, u32 lane)
  {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < items; i++)
      warp_codes[lane * row + i] = codes[i];
    __syncwarp();

    // Item k becomes item `lane` of lane k, or the mirror image of that item.
    const Code *straight = warp_codes + lane;
    const Code *mirrored = warp_codes + (items - 1 - lane);

#pragma unroll
    for (int k = 0; k < items; k++)
      codes[k] = mirror && (k & half) != 0 ? mirrored[k * row] : straight[k * row];
    if (mirror)
    {
#pragma unroll
      for (int k = 0; k < items; k++)
        if ((k & half) == 0)
          compare_exchange(codes[k], codes[k ^ (2 * half - 1)]);
      clean_items<half / 2>(codes);
    }
    else
      clean_items<half>(codes);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < items; k++)
      warp_codes[k * row + lane] = codes[k];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < items; i++)
      codes[i] = warp_codes[lane * row + i];
  }

  // Sorts the codes of each lane's team within the warp.
  static __device__ __forceinline__ void sort_warp(Code (&codes)[items], Code *warp_codes, u32 thread)
  {
    constexpr u32 max_plain = transposes ? 4 : lanes; // the widest merge that does not transpose
    u32 lane = thread % warp_size;

    sort_items(codes);
#pragma unroll(items <= 8 ? 8 : 1)
    for (u32 width = 2; width <= max_plain; width *= 2)
    {
      compare_lanes<true>(codes, width - 1, (thread & (width / 2)) == 0);
#pragma unroll(items <= 8 ? 8 : 1)
      for (u32 d = width / 4; d >= 1; d /= 2)
        compare_lanes<false>(codes, d, (thread & d) == 0);
      clean_items<items / 2>(codes);
    }
    if constexpr (transposes)
    {
      merge_transposed<4, true>(codes, warp_codes, lane);
      clean_items<items / 2>(codes);
      if constexpr (lanes >= 16)
      {
        merge_transposed<8, true>(codes, warp_codes, lane);
        clean_items<items / 2>(codes);
      }
      if constexpr (lanes >= 32)
      {
        merge_transposed<16, true>(codes, warp_codes, lane);
        clean_items<items / 2>(codes);
      }
    }
  }

  // Sorts the team's codes: item i of the team's thread t becomes the
  // code of rank t * items + i.
  static __device__ __forceinline__ void sort(Code (&codes)[items], Code *shared, u32 thread)
  {
    u32 lane = thread % warp_size;
    Code *warp_codes = shared + (thread - lane) * row;

    sort_warp(codes, warp_codes, thread);
#pragma unroll 1
    for (u32 width = 2 * warp_size; width <= threads; width *= 2)
    {
      compare_warps(codes, shared, thread, width - 1, true, (thread & (width / 2)) == 0);
#pragma unroll 1
      for (u32 d = width / 4; d >= warp_size; d /= 2)
        compare_warps(codes, shared, thread, d, false, (thread & d) == 0);
      if constexpr (transposes)
      {
        sync(); // other warps have read the warp's part of the memory
        merge_transposed<16, false>(codes, warp_codes, lane);
      }
      else
      {
#pragma unroll 1
        for (u32 d = warp_size / 2; d >= 1; d /= 2)
          compare_lanes<false>(codes, d, (thread & d) == 0);
      }
      clean_items<items / 2>(codes);
    }
  }

  // Where the code of a rank in the group is in shared memory.
  static __device__ __forceinline__ u32 slot(u32 rank)
  {
    return rank + rank / banks;
  }

  // The slot of a thread's first item; its other items follow.
  static __device__ __forceinline__ Code *thread_slots(Code *shared, u32 thread)
  {
    return shared + slot(thread * items);
  }

  // Reads elements of type T as codes that are not mapped yet.  Works on them only once
  // all loads are under way.
  template <typename T>
  static __device__ __forceinline__ void load_as(Code (&codes)[items], const char *array, int left,
                                                 const Code &padding, u32 team_thread)
  {
    constexpr bool is_number = sizeof(T) == sizeof(Code) && sizeof(T) <= 8;
    const T *elements = reinterpret_cast<const T *>(array) + team_thread;

#pragma unroll
    for (int i = 0; i < items; i++)
    {
      codes[i] = padding;
      if (i * threads < left)
        codes[i] = load_raw<Code>(elements, i * threads);
    }
    if constexpr (!is_number)
    {
      materialize(left);
#pragma unroll
      for (int i = 0; i < items; i++)
        codes[i] = i * threads < left ? number_of<T>(codes[i]) : padding;
    }
  }

  // Loads the team's array.
  static __device__ __forceinline__ void load(Code (&codes)[items], const char *array, u32 n,
                                              const CodeMap &map, u32 thread)
  {
    const Code padding = decode(highest_code<Code>(), map);
    u32 team_thread = thread % threads;
    int left = codes_left(n, team_thread);

    if constexpr (sizeof(Code) > 4)
      load_as<Code>(codes, array, left, padding, team_thread);
    else if (map.bytes == 4)
      load_as<u32>(codes, array, left, padding, team_thread);
    else if (map.bytes == 2)
      load_as<u16>(codes, array, left, padding, team_thread);
    else
      load_as<u8>(codes, array, left, padding, team_thread);
#pragma unroll
    for (int i = 0; i < items; i++)
      codes[i] = encode(codes[i], map);
  }

  template <typename T>
  static __device__ __forceinline__ void store_as(const Code *sorted, char *array, int left,
                                                  const CodeMap &map, u32 team_thread)
  {
    T *elements = reinterpret_cast<T *>(array) + team_thread;

#pragma unroll
    for (int i = 0; i < items; i++)
    {
      Code number = decode(sorted[slot(i * threads)], map);

      materialize(number);
      if (i * threads < left)
        store_number(elements, i * threads, number);
    }
  }

  // Stores the team's sorted array.
  static __device__ __forceinline__ void store(const Code (&codes)[items], Code *shared, char *array, u32 n,
                                               const CodeMap &map, u32 thread)
  {
    Code *slots = thread_slots(shared, thread);
    const Code *sorted = shared + slot(thread / threads * capacity);

    sync();
#pragma unroll
    for (int i = 0; i < items; i++)
      slots[i] = codes[i];
    sync();

    u32 team_thread = thread % threads;
    int left = codes_left(n, team_thread);

    materialize(left);

    // Ranks i * threads apart are a multiple of the banks apart, or in the same row.
    static_assert(threads % banks == 0 || banks % threads == 0, "slots of a team");
    sorted += slot(team_thread);
    if constexpr (sizeof(Code) > 4)
      store_as<Code>(sorted, array, left, map, team_thread);
    else if (map.bytes == 4)
      store_as<u32>(sorted, array, left, map, team_thread);
    else if (map.bytes == 2)
      store_as<u16>(sorted, array, left, map, team_thread);
    else
      store_as<u8>(sorted, array, left, map, team_thread);
  }
};

} // namespace gpusort

#endif // GS_ARRAYS_TEAM_CUH
