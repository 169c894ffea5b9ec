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

// The next 16 bytes of a key, the first one highest, zeros where it has ended.
struct Head
{
  u64 bytes[2];

  // Eight of them, from byte 0 to 8 on.
  __device__ __forceinline__ u64 from(u32 byte) const
  {
    return byte == 8 ? bytes[1] : bytes[0] << byte * 8 | bytes[1] >> 1 >> (63 - byte * 8);
  }
};

// Reads only aligned 16 bytes that hold some of the `left` bytes.
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

// How a key relates to a pivot after the bytes that their segment shares; finish.cu
// explains the order of values.
struct Relation
{
  u32 value;
  u32 shared; // bytes
  u64 next;   // the key's 8 bytes after these
};

constexpr u32 relation_bits = 9;
constexpr u32 max_shared = 255;
static_assert(2 * max_shared < 1u << relation_bits);

// The shared bytes that a value tells.
__device__ __forceinline__ u32 shared_of(u32 relation)
{
  return relation > max_shared ? 2 * max_shared - relation : relation;
}

// Relates a key with `left` bytes left at an address to a pivot.
__device__ __forceinline__ Relation relate(u64 key, u32 left, u64 pivot, u32 pivot_left, bool is_pivot)
{
  u32 common = min(min(left, pivot_left), max_shared); // at most
  u32 shared = 0;
  u32 at = 0;
  bool is_less = left < pivot_left; // unless bytes say otherwise
  bool differs = left != pivot_left;
  Head head;

  for (;; at += 16)
  {
    head = load_head(key + at, left - at);
    if (is_pivot)
    {
      shared = common;
      break;
    }

    Head pivot_head = load_head(pivot + at, pivot_left - at);
    u32 half = head.bytes[0] != pivot_head.bytes[0] ? 0 : 1;
    u64 x = half == 0 ? head.bytes[0] : head.bytes[1];
    u64 y = half == 0 ? pivot_head.bytes[0] : pivot_head.bytes[1];

    if (x != y)
    {
      shared = at + half * 8 + equal_bytes(x ^ y);
      if (shared < common)
      {
        is_less = x < y;
        differs = true;
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

  if (differs && shared < max_shared)
    relation.value = is_less ? shared : 2 * max_shared - shared;
  relation.next = shared - at <= 8 ? head.from(shared - at) : load_word(key + shared, left - shared);
  return relation;
}

} // namespace gpusort

#endif // GS_STRINGS_PIVOT_RELATION_CUH
