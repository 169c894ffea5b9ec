/*-------------------------------------------------------------------------
 *
 * string_finish.cuh
 *	  Groups of rows that fit on chip, sorted to the end there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_FINISH_CUH
#define GS_STRING_FINISH_CUH

#include "string_words.cuh"

namespace gpusort
{

// Groups of up to so many rows are not listed, but sorted where they are found.
constexpr u32 small_rows = 64;

// What this device can finish.
struct FinishLimits
{
  u32 class_rows[group_classes]; // the largest group of each class
  u32 n_multiprocessors;

  __host__ __device__ u32 max_rows() const
  {
    return class_rows[group_classes - 1];
  }
};

// The least that max_rows() can be.
constexpr u32 least_max_rows = 2048;

// The smallest group of each class.
constexpr u32 least_class_rows[group_classes] = {small_rows + 1, 257, 1025};

FinishLimits finish_limits();

// Sorts the groups listed.
void finish_listed(const SortedRows &in, const GroupLists &lists, const FinishLimits &limits,
                   cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRING_FINISH_CUH
