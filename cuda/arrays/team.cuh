/*-------------------------------------------------------------------------
 *
 * array_team.cuh
 *	  A team of threads sorts an array on the chip.
 *
 * A team is some lanes of a warp, a warp, or some warps that make a block; each
 * thread holds R codes in registers.  The more registers, the fewer threads, the
 * less has to go across them.  sort() is a network, so its time does not depend on
 * the data: every thread sorts its registers by Batcher's odd-even merge sort;
 * then neighbouring threads' sorted sequences, those of pairs, fours, and so on,
 * are merged by bitonic merges.  A merge of 2m threads compares each element
 * with its mirror image in the other half, keeping the lower one in the first
 * half; the halves are bitonic then, and half-cleaners with distances of m / 2,
 * m / 4, ... threads follow, until every thread has a bitonic sequence of its
 * own and merges that in its registers.  Nothing ever sorts downwards, so
 * what is to be kept where is known to the compiler, or for a thread by one bit.
 * (K. Batcher, Sorting networks and their applications, 1968; for registers and
 * shuffles, D. Merrill's and others' warp sorts.)
 *
 * What counts is the number of instructions of the arithmetic units.  A
 * comparator within a thread takes two for two codes, one that goes across
 * threads two for one code, as each side computes only the half that it keeps.
 * So with 32 registers, merges of 8 threads and more turn their codes around
 * through shared memory: thread i of a warp then holds what all threads had in
 * register i, and all the comparisons between lanes are within threads.  The
 * upper half's codes are read in reverse for the mirrored comparison; a bitonic
 * sequence read backwards is bitonic, so nothing has to turn them again.
 * Comparisons between warps go through shared memory one by one: there are
 * 1, 2, 3 of them in merges of 2, 4, 8 warps.
 *
 * Large teams first try something that takes fewer instructions, but for which the
 * codes have to be spread over their range: spread() cuts the range from the lowest
 * to the highest code into as many equal pieces as the team has places, counts the
 * codes of each piece, and places them piece by piece.  What is left to do is to
 * order the few codes within each piece, and as these are neighbours, some rounds of
 * an odd-even transposition sort do that for all pieces at once.  The number of rounds
 * is that of the codes in the fullest piece.  Where that has too many, nothing has been
 * moved yet, and the network takes over.  (D. Knuth, The Art of Computer Programming,
 * volume 3: address calculation sorting, in section 5.2.1, and odd-even transposition,
 * in 5.3.4.)
 *
 * Global memory is read and written with a stride of the team's size; the order
 * in which a network gets its input does not matter, and the output is turned
 * around in shared memory.  There a code is left free after as many as there are
 * banks, so that the threads of a warp use different banks both ways, and where a
 * register's code lies is known to the compiler but for a number of the thread.
 *
 * What is beyond the end of an array is the highest code.  Where it must not count,
 * only the one instruction that matters is conditional: a branch around each of R
 * pieces of work takes longer than the work.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_TEAM_CUH
#define GS_ARRAY_TEAM_CUH

#include "arrays/array_codes.cuh"

namespace gpusort
{

constexpr int warp_size = 32;

template <typename Code, int Threads, int R>
struct Team
{
  static_assert(R >= 2 && (R & (R - 1)) == 0, "registers of a team");

  static constexpr u32 threads = Threads;
  static constexpr u32 capacity = threads * R;
  static constexpr bool turns = R == warp_size && Threads >= 8;

  // The threads that share memory: the team, or the warp that its lanes are
  // of.  Codes of it that they need, of any contents.
  static constexpr u32 group = Threads < warp_size ? warp_size : Threads;
  static constexpr u32 row = turns ? R + 1 : R;
  static constexpr u32 warps = group / warp_size;
  static constexpr u32 banks = 128 / sizeof(Code);
  static constexpr u32 padded_codes = group * R + group * R / banks;
  static constexpr u32 shared_codes = padded_codes + (warps > 1 ? 2 * warps : 0);

  static_assert(banks % R == 0, "a thread's codes are in one row of banks");
  static_assert(group * row <= padded_codes, "memory of a team");

  // Register r of thread t of the team holds one of n codes if r * threads < left.
  static __device__ __forceinline__ int codes_left(u32 n, u32 t)
  {
    return static_cast<int>(n) - static_cast<int>(t);
  }

  static __device__ __forceinline__ void sync()
  {
    if (group == warp_size)
      __syncwarp();
    else
      __syncthreads();
  }

  // Batcher's odd-even merge sort.
  static __device__ __forceinline__ void sort_registers(Code (&x)[R])
  {
#pragma unroll
    for (int p = 1; p < R; p *= 2)
#pragma unroll
      for (int k = p; k >= 1; k /= 2)
#pragma unroll
        for (int i = 0; i < R; i++)
          if (i >= k % p && (i - k % p) / k % 2 == 0 && i + k < R && i / (2 * p) == (i + k) / (2 * p))
            order(x[i], x[i + k]);
  }

  // Half-cleaners for registers at distance `from` and below.
  template <int From, int Count>
  static __device__ __forceinline__ void clean_registers(Code (&x)[Count])
  {
#pragma unroll
    for (int d = From; d >= 1; d /= 2)
#pragma unroll
      for (int i = 0; i < Count; i++)
        if ((i & d) == 0)
          order(x[i], x[i + d]);
  }

  // Compares registers with those of the thread at t ^ mask, mirrored if Mirror.
  template <bool Mirror>
  static __device__ __forceinline__ void compare_lanes(Code (&x)[R], u32 mask, bool lower)
  {
    if constexpr (Mirror)
    {
#pragma unroll
      for (int r = 0; r < R / 2; r++)
      {
        Code y = shuffle_xor(x[R - 1 - r], mask);
        Code z = shuffle_xor(x[r], mask);

        x[r] = keep(x[r], y, lower);
        x[R - 1 - r] = keep(x[R - 1 - r], z, lower);
      }
    }
    else
    {
#pragma unroll
      for (int r = 0; r < R; r++)
        x[r] = keep(x[r], shuffle_xor(x[r], mask), lower);
    }
  }

  // The same with a thread of another warp.
  static __device__ __forceinline__ void compare_warps(Code (&x)[R], Code *shared, u32 t, u32 mask,
                                                       bool mirror, bool lower)
  {
    sync();
#pragma unroll
    for (int r = 0; r < R; r++)
      shared[r * threads + t] = x[r];
    sync();

    const Code *other = shared + (t ^ mask);

    if (mirror)
    {
#pragma unroll
      for (int r = 0; r < R; r++)
        x[r] = keep(x[r], other[(R - 1 - r) * threads], lower);
    }
    else
    {
#pragma unroll
      for (int r = 0; r < R; r++)
        x[r] = keep(x[r], other[r * threads], lower);
    }
  }

  // All comparisons between lanes of a merge of 2 * Half lanes, of those from
  // distance Half on, the first one mirrored if Mirror.
  template <int Half, bool Mirror>
  static __device__ __forceinline__ void merge_turned(Code (&x)[R], Code *shared, u32 lane)
  {
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R; r++)
      shared[lane * row + r] = x[r];
    __syncwarp();

    // Register a is what lane a had in register `lane`, or in its mirror image.
    const Code *straight = shared + lane;
    const Code *mirrored = shared + (R - 1 - lane);

#pragma unroll
    for (int a = 0; a < R; a++)
      x[a] = Mirror && (a & Half) != 0 ? mirrored[a * row] : straight[a * row];
    if (Mirror)
    {
#pragma unroll
      for (int a = 0; a < R; a++)
        if ((a & Half) == 0)
          order(x[a], x[a ^ (2 * Half - 1)]);
      clean_registers<Half / 2>(x);
    }
    else
      clean_registers<Half>(x);
    __syncwarp();
#pragma unroll
    for (int a = 0; a < R; a++)
      shared[a * row + lane] = x[a];
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R; r++)
      x[r] = shared[lane * row + r];
  }

  // Sorts the team's codes: its thread t's register r gets that of rank t * R + r.
  // `shared` is the group's, and t the number of the thread in the group.
  static __device__ __forceinline__ void sort(Code (&x)[R], Code *shared, u32 t)
  {
    constexpr u32 lanes = Threads < warp_size ? Threads : warp_size;
    constexpr u32 plain = turns ? 4 : lanes; // the widest merge that does not turn
    u32 lane = t % warp_size;
    Code *own = shared + (t - lane) * row;

    sort_registers(x);
#pragma unroll(R <= 8 ? 8 : 1)
    for (u32 width = 2; width <= plain; width *= 2)
    {
      compare_lanes<true>(x, width - 1, (t & (width / 2)) == 0);
#pragma unroll(R <= 8 ? 8 : 1)
      for (u32 d = width / 4; d >= 1; d /= 2)
        compare_lanes<false>(x, d, (t & d) == 0);
      clean_registers<R / 2>(x);
    }
    if constexpr (turns)
    {
      merge_turned<4, true>(x, own, lane);
      clean_registers<R / 2>(x);
      if constexpr (lanes >= 16)
      {
        merge_turned<8, true>(x, own, lane);
        clean_registers<R / 2>(x);
      }
      if constexpr (lanes >= 32)
      {
        merge_turned<16, true>(x, own, lane);
        clean_registers<R / 2>(x);
      }
    }
#pragma unroll 1
    for (u32 width = 2 * warp_size; width <= threads; width *= 2)
    {
      compare_warps(x, shared, t, width - 1, true, (t & (width / 2)) == 0);
#pragma unroll 1
      for (u32 d = width / 4; d >= warp_size; d /= 2)
        compare_warps(x, shared, t, d, false, (t & d) == 0);
      if constexpr (turns)
      {
        sync(); // a warp's part is its own again
        merge_turned<16, false>(x, own, lane);
      }
      else
      {
#pragma unroll 1
        for (u32 d = warp_size / 2; d >= 1; d /= 2)
          compare_lanes<false>(x, d, (t & d) == 0);
      }
      clean_registers<R / 2>(x);
    }
  }

  // Where the code of a rank of the group lies in shared memory.
  static __device__ __forceinline__ u32 place(u32 rank)
  {
    return rank + rank / banks;
  }

  // Of rank t * R: those of the following registers are the next ones.
  static __device__ __forceinline__ Code *own_places(Code *shared, u32 t)
  {
    return shared + place(t * R);
  }

  // One number of all of the group's, where x is one of all of a warp's; through the
  // codes beyond the rows.
  template <typename T, typename F>
  static __device__ __forceinline__ T reduce(T x, Code *shared, u32 t, F combine)
  {
    if constexpr (warps > 1)
    {
      T *all = reinterpret_cast<T *>(shared + padded_codes);

      sync();
      if (t % warp_size == 0)
        all[t / warp_size] = x;
      sync();
#pragma unroll
      for (u32 w = 0; w < warps; w++)
        x = w == 0 ? all[w] : combine(x, all[w]);
    }
    return x;
  }

  // Rounds of an odd-even transposition sort: places in succession are compared with
  // each other.
  static __device__ __forceinline__ void settle(Code (&x)[R], Code *shared, u32 t, u32 rounds)
  {
    u32 lane = t % warp_size;
    bool begins = t % threads == 0;
    bool ends = t % threads == threads - 1;

#pragma unroll 1
    for (u32 round = 0; round < rounds; round += 2)
    {
#pragma unroll
      for (int r = 0; r < R; r += 2)
        order(x[r], x[r + 1]);
#pragma unroll
      for (int r = 1; r + 1 < R; r += 2)
        order(x[r], x[r + 1]);

      Code before = shuffle(x[R - 1], lane - 1);
      Code after = shuffle(x[0], lane + 1);

      if constexpr (warps > 1)
      {
        Code *firsts = shared + padded_codes;
        Code *lasts = firsts + warps;
        u32 warp = t / warp_size;

        sync();
        if (lane == 0)
          firsts[warp] = x[0];
        if (lane == warp_size - 1)
          lasts[warp] = x[R - 1];
        sync();
        if (lane == 0 && !begins)
          before = lasts[warp - 1];
        if (lane == warp_size - 1 && !ends)
          after = firsts[warp + 1];
      }
      if (!begins)
        x[0] = keep(x[0], before, false);
      if (!ends)
        x[R - 1] = keep(x[R - 1], after, true);
    }
  }

  // Sorts as sort() does, if the codes are spread well enough over their range, else
  // leaves them as they are.  There are n of them, as codes_left() says.
  static __device__ __forceinline__ bool spread(Code (&x)[R], Code *shared, u32 n, u32 t)
  {
    constexpr u32 most = 24; // codes of a piece
    constexpr u32 stride = R + 1;
    constexpr u32 lanes = Threads < warp_size ? Threads : warp_size;
    using Head = decltype(head(x[0]));

    static_assert(group * stride * sizeof(u32) <= padded_codes * sizeof(Code), "counts of a team");

    u32 own = t % threads;
    u32 *counts = reinterpret_cast<u32 *>(shared) + (t - own) * stride;
    int left = codes_left(n, own);
    Head lowest = ~Head{0};
    Head highest = 0;

    compute_here(left); // here and below, as comparing again takes less than what was kept
#pragma unroll
    for (int r = 0; r < R; r++)
    {
      lowest = min(lowest, head(x[r]));
      highest = max(highest, r * Threads < left ? head(x[r]) : 0);
    }
#pragma unroll
    for (u32 d = 1; d < lanes; d *= 2)
    {
      lowest = min(lowest, __shfl_xor_sync(~0u, lowest, d));
      highest = max(highest, __shfl_xor_sync(~0u, highest, d));
    }
    lowest = reduce(lowest, shared, t, [](Head a, Head b) { return min(a, b); });
    highest = reduce(highest, shared, t, [](Head a, Head b) { return max(a, b); });

    // A head's piece is (head - lowest) * capacity / (range + a little), by a product
    // of 32 bits of each.
    Head range = n == 0 ? 1 : (highest - lowest) | 1;
    u32 shift = sizeof(Head) == 8 ? __clzll(static_cast<long long>(range)) : __clz(static_cast<int>(range));
    float top = static_cast<float>(static_cast<u32>(range << shift >> (sizeof(Head) - 4) * 8));
    u32 factor =
        static_cast<u32>(__fdividef(static_cast<float>(capacity) * (4294967296.0f * 0.999999f), top));

    u32 *mine = counts + own * stride;

    sync();
#pragma unroll
    for (u32 r = 0; r < R; r++)
      mine[r] = 0;
    sync();
    // Where a code's piece has its count, two in each; then where the code goes.  What
    // is beyond the end is counted behind the thread's pieces.
    u32 places[R / 2];

    compute_here(left);
#pragma unroll
    for (int r = 0; r < R; r++)
    {
      Head above = (head(x[r]) - lowest) << shift;
      u32 piece = __umulhi(static_cast<u32>(above >> (sizeof(Head) - 4) * 8), factor);
      u32 at = r * Threads < left ? piece + piece / R : own * stride + R;

      atomicAdd(&counts[at], 1);
      places[r / 2] = r % 2 == 0 ? at : places[r / 2] | at << 16;
    }
#pragma unroll
    for (int i = 0; i < R / 2; i++)
      compute_here(places[i]); // or each would be kept in two registers
    sync();

    u32 sum = 0;
    u32 fullest = 0;

#pragma unroll
    for (u32 r = 0; r < R; r++)
    {
      sum += mine[r];
      fullest = max(fullest, mine[r]);
    }
    if (sizeof(Code) <= 8 && range <= capacity / 2)
      fullest = 1; // each code has a piece of its own
#pragma unroll
    for (u32 d = 1; d < warp_size; d *= 2)
      fullest = max(fullest, __shfl_xor_sync(~0u, fullest, d));
    fullest = reduce(fullest, shared, t, [](u32 a, u32 b) { return max(a, b); });
    if (fullest > most)
      return false;

    u32 before = sum;

#pragma unroll
    for (u32 d = 1; d < lanes; d *= 2)
    {
      u32 other = __shfl_up_sync(~0u, before, d);

      before += t % lanes >= d ? other : 0;
    }
    if constexpr (warps > 1)
    {
      u32 *sums = reinterpret_cast<u32 *>(shared + padded_codes);

      sync();
      if (t % warp_size == warp_size - 1)
        sums[t / warp_size] = before;
      sync();
#pragma unroll
      for (u32 w = 0; w < warps; w++)
        before += w < t / warp_size ? sums[w] : 0;
    }
    before -= sum;
#pragma unroll
    for (u32 r = 0; r < R; r++)
    {
      u32 count = mine[r];

      mine[r] = before;
      before += count;
    }
    mine[R] = n + own * (R - n / threads) - min(own, n % threads);
    sync();

#pragma unroll
    for (int i = 0; i < R / 2; i++)
    {
      u32 first = atomicAdd(&counts[places[i] & 0xffff], 1);
      u32 second = atomicAdd(&counts[places[i] >> 16], 1);

      places[i] = first | second << 16;
    }
    sync();

    Code *team = shared + place(t / threads * capacity);

#pragma unroll
    for (int r = 0; r < R; r++)
      team[place(r % 2 == 0 ? places[r / 2] & 0xffff : places[r / 2] >> 16)] = x[r];
    sync();

    const Code *sorted = own_places(shared, t);

#pragma unroll
    for (int r = 0; r < R; r++)
      x[r] = sorted[r];
    if (fullest > 1)
      settle(x, shared, t, fullest);
    return true;
  }

  // What is loaded is left alone until all loads are under way.
  template <typename T>
  static __device__ __forceinline__ void load_as(Code (&x)[R], const char *array, int left, const Code &none,
                                                 u32 t)
  {
    constexpr bool arranged = sizeof(T) == sizeof(Code) && sizeof(T) <= 8;
    const T *from = reinterpret_cast<const T *>(array) + t;

#pragma unroll
    for (int r = 0; r < R; r++)
    {
      x[r] = none;
      if (r * Threads < left)
        x[r] = load_raw<Code>(from, r * Threads);
    }
    if constexpr (!arranged)
    {
      compute_here(left);
#pragma unroll
      for (int r = 0; r < R; r++)
        x[r] = r * Threads < left ? arrange<T>(x[r]) : none;
    }
  }

  // Loads the array of the team; t is the number of the thread in the group.
  static __device__ __forceinline__ void load(Code (&x)[R], const char *array, u32 n, const CodeMap &map,
                                              u32 t)
  {
    const Code none = decode(CodeTraits<Code>::highest(), map);

    t %= threads;

    int left = codes_left(n, t);

    if constexpr (sizeof(Code) > 4)
      load_as<Code>(x, array, left, none, t);
    else if (map.bytes == 4)
      load_as<u32>(x, array, left, none, t);
    else if (map.bytes == 2)
      load_as<u16>(x, array, left, none, t);
    else
      load_as<u8>(x, array, left, none, t);
#pragma unroll
    for (int r = 0; r < R; r++)
      x[r] = encode(x[r], map);
  }

  template <typename T>
  static __device__ __forceinline__ void store_as(const Code *sorted, char *array, int left,
                                                  const CodeMap &map, u32 t)
  {
    T *to = reinterpret_cast<T *>(array) + t;

#pragma unroll
    for (int r = 0; r < R; r++)
    {
      Code x = decode(sorted[place(r * threads)], map);

      compute_here(x);
      if (r * Threads < left)
        store_bits(to, r * Threads, x);
    }
  }

  static __device__ __forceinline__ void store(Code (&x)[R], Code *shared, char *array, u32 n,
                                               const CodeMap &map, u32 t)
  {
    Code *own = own_places(shared, t);
    const Code *sorted = shared + place(t / threads * capacity);

    sync();
#pragma unroll
    for (int r = 0; r < R; r++)
      own[r] = x[r];
    sync();
    t %= threads;

    int left = codes_left(n, t);

    compute_here(left);

    // Ranks of the registers are a multiple of the banks apart, or in the same row.
    static_assert(threads % banks == 0 || banks % threads == 0, "places of a team");
    sorted += place(t);
    if constexpr (sizeof(Code) > 4)
      store_as<Code>(sorted, array, left, map, t);
    else if (map.bytes == 4)
      store_as<u32>(sorted, array, left, map, t);
    else if (map.bytes == 2)
      store_as<u16>(sorted, array, left, map, t);
    else
      store_as<u8>(sorted, array, left, map, t);
  }
};

} // namespace gpusort

#endif // GS_ARRAY_TEAM_CUH
