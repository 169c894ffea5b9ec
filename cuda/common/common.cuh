/*-------------------------------------------------------------------------
 *
 * common.cuh
 *	  What all CUDA sources of gpusort share: integers, the arrays of a workspace, and
 *	  bytes of keys as integers in the order of the keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COMMON_CUH
#define GS_COMMON_CUH

#include <cstdint>

#include "common/errors.cuh"
#include "common/handles.cuh"

namespace gpusort
{

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = unsigned long long;

inline u32 blocks_for(u64 items, u32 items_per_block)
{
  return static_cast<u32>((items + items_per_block - 1) / items_per_block);
}

template <typename T>
__host__ __device__ constexpr T align_up(T value, T to)
{
  return (value + to - 1) & ~(to - 1);
}

// An attribute of the current device.
inline u32 device_attribute(cudaDeviceAttr attribute)
{
  int device = 0;
  int value = 0;

  GS_CUDA_TRY(cudaGetDevice(&device));
  GS_CUDA_TRY(cudaDeviceGetAttribute(&value, attribute, device));
  return static_cast<u32>(value);
}

// Places arrays one behind the other in an allocation.  Without an allocation it only adds up sizes, so
// that one function both lays out a workspace and computes its size.
class TempStorage
{
public:
  explicit TempStorage(void *base = nullptr) : base(static_cast<char *>(base))
  {
  }
  template <typename T>
  T *alias(u64 count)
  {
    u64 offset = bytes();

    used = offset + count * sizeof(T);
    return base == nullptr ? nullptr : reinterpret_cast<T *>(base + offset);
  }
  u64 bytes() const
  {
    return align_up<u64>(used, alignment);
  }

private:
  static constexpr u64 alignment = 256; // of each array

  char *base;
  u64 used = 0;
};

// The size of what a function places.
template <typename F>
u64 storage_bytes(F place)
{
  TempStorage storage;

  place(storage);
  return storage.bytes();
}

__device__ __forceinline__ u64 swap_bytes(u64 word)
{
  u32 low = static_cast<u32>(word);
  u32 high = static_cast<u32>(word >> 32);

  return (static_cast<u64>(__byte_perm(low, 0, 0x0123)) << 32) | __byte_perm(high, 0, 0x0123);
}

// Returns the next 8 bytes of a key with `left` bytes left, at an address of any alignment: the first byte
// highest, zeros after the last one.  Reads only aligned words that hold one of these bytes.
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

// Returns the number of bytes before the first one in which two words differ.
__device__ __forceinline__ u32 equal_bytes(u64 diff)
{
  return static_cast<u32>(__clzll(static_cast<long long>(diff))) / 8;
}

} // namespace gpusort

#endif // GS_COMMON_CUH
