/*-------------------------------------------------------------------------
 *
 * key_bytes.cuh
 *	  Bytes of keys as integers in the order of the keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEY_BYTES_CUH
#define GS_KEY_BYTES_CUH

#include "common/types.cuh"

namespace gpusort
{

#ifdef __CUDACC__

__device__ __forceinline__ u64 swap_bytes(u64 word)
{
  u32 low = static_cast<u32>(word);
  u32 high = static_cast<u32>(word >> 32);

  return (static_cast<u64>(__byte_perm(low, 0, 0x0123)) << 32) | __byte_perm(high, 0, 0x0123);
}

// The next 8 bytes of a key, of which `left` bytes are left, at an address of any
// alignment: the first byte highest, zeros after the last one.  Reads only aligned
// words that hold one of these bytes.
__device__ __forceinline__ u64 load_word(u64 address, u32 left)
{
  if (left == 0)
    return 0;

  const u64 *at = reinterpret_cast<const u64 *>(address & ~u64{7});
  u32 shift = static_cast<u32>(address & 7) * 8;
  u32 bits = left < 8 ? left * 8 : 64;
  u64 word = __ldg(at) >> shift;

  if (bits + shift > 64)
    word |= __ldg(at + 1) << (64 - shift);
  word = swap_bytes(word);
  if (bits < 64)
    word &= ~u64{0} << (64 - bits);
  return word;
}

// The bytes before the first one in which two words differ.
__device__ __forceinline__ u32 equal_bytes(u64 diff)
{
  return static_cast<u32>(__clzll(static_cast<long long>(diff))) / 8;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_KEY_BYTES_CUH
