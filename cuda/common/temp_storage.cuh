/*-------------------------------------------------------------------------
 *
 * temp_storage.cuh
 *	  The arrays of a workspace, in one allocation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TEMP_STORAGE_CUH
#define GS_TEMP_STORAGE_CUH

#include "common/types.cuh"

namespace gpusort
{

// Places arrays one after the other in an allocation.  Without an allocation it
// only adds up sizes, so that one function both lays out a workspace and
// computes its size.
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

} // namespace gpusort

#endif // GS_TEMP_STORAGE_CUH
