/*-------------------------------------------------------------------------
 *
 * pivot_relation.cuh
 *	  How a key relates to a pivot: what finish.cu sorts entries by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_PIVOT_RELATION_CUH
#define GS_STRINGS_PIVOT_RELATION_CUH

#include "common/common.cuh"

namespace gpusort
{

#ifdef __CUDACC__

// The next 16 bytes of a key, the first one highest, zeros where it has ended.  That so many come at once is
// worth more than that few are read.  Only aligned 16 bytes are read that hold one of those; memory ends no
// sooner.
struct Head
{
  u64 bytes[2];

  // Eight of them, from one of the first 9 on.
  __device__ __forceinline__ u64 from(u32 byte) const
  {
    return byte == 8 ? bytes[1] : bytes[0] << byte * 8 | bytes[1] >> 1 >> (63 - byte * 8);
  }
};

__device__ __forceinline__ Head load_head(u64 address, u32 left)
{
  const uint4 *at = reinterpret_cast<const uint4 *>(address & ~u64{15});
  uint4 low = {};
  uint4 high = {};

  if (left > 0)
    low = __ldg(at);
  if (static_cast<u32>(address & 15) + min(left, 16u) > 16)
    high = __ldg(at + 1);

  // From the four bytes on that hold the first one; then each four in one step.
  u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 turned[4];

#pragma unroll
  for (u32 i = 0; i < 6; i++)
    words[i] = (address & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (u32 i = 0; i < 5; i++)
    words[i] = (address & 4) != 0 ? words[i + 1] : words[i];
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    turned[i] = __byte_perm(words[i], words[i + 1], 0x0123 + static_cast<u32>(address & 3) * 0x1111);

  Head head = {
      {static_cast<u64>(turned[0]) << 32 | turned[1], static_cast<u64>(turned[2]) << 32 | turned[3]}};

  if (left < 16)
  {
    head.bytes[1] = left <= 8 ? 0 : head.bytes[1] & ~u64{0} << (16 - left) * 8;
    if (left < 8)
      head.bytes[0] = left == 0 ? 0 : head.bytes[0] & ~u64{0} << (8 - left) * 8;
  }
  return head;
}

// How an entry's key relates to that of its segment's pivot, behind what the segment's keys agree in:
// see string_finish.cu.
struct Relation
{
  u32 value;
  u32 shared; // bytes
  u64 next;   // those behind the shared ones
};

constexpr u32 relation_bits = 9;
constexpr u32 max_shared = 255;
static_assert(2 * max_shared < 1u << relation_bits);

__device__ __forceinline__ u32 shared_of(u32 relation)
{
  return relation > max_shared ? 2 * max_shared - relation : relation;
}

__device__ __forceinline__ Relation relate(u64 mine, u32 left, u64 pivot, u32 pivot_left, bool is_pivot)
{
  u32 common = min(min(left, pivot_left), max_shared); // at most
  u32 shared = 0;
  u32 at = 0;
  bool is_less = left < pivot_left; // should one be the beginning of the other
  bool is_unlike = left != pivot_left;
  Head head;

  for (;; at += 16)
  {
    head = load_head(mine + at, left - at);
    if (is_pivot)
    {
      shared = common;
      break;
    }

    Head its = load_head(pivot + at, pivot_left - at);
    bool at_once = head.bytes[0] != its.bytes[0];
    u64 x = at_once ? head.bytes[0] : head.bytes[1];
    u64 y = at_once ? its.bytes[0] : its.bytes[1];

    if (x != y)
    {
      shared = at + (at_once ? 0 : 8) + static_cast<u32>(__clzll(static_cast<long long>(x ^ y))) / 8;
      if (shared < common)
      {
        is_less = x < y;
        is_unlike = true;
      }
    }
    else
      shared = at + 16;
    if (x != y || shared >= common)
    {
      shared = min(shared, common);
      break;
    }
  }

  Relation relation = {max_shared, shared, 0};

  if (is_unlike && shared < max_shared)
    relation.value = is_less ? shared : 2 * max_shared - shared;
  relation.next = shared - at <= 8 ? head.from(shared - at) : load_word(mine + shared, left - shared);
  return relation;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_STRINGS_PIVOT_RELATION_CUH
