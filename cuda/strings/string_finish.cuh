/*-------------------------------------------------------------------------
 *
 * string_finish.cuh
 *	  Groups of rows that fit on chip, sorted to the end there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_FINISH_CUH
#define GS_STRING_FINISH_CUH

#include "sort_context.cuh"
#include "string_words.cuh"

namespace gpusort
{

// Groups of up to so many rows are not listed, but sorted where they are found.
constexpr u32 small_rows = 64;

// The largest groups of each class.
constexpr u32 class_rows[group_classes] = {256, 512, 1024, 2048, 4096};

// And the smallest.
constexpr u32 least_class_rows(u32 group_class)
{
  return group_class == 0 ? small_rows + 1 : class_rows[group_class - 1] + 1;
}

// What this device can finish: not all have the shared memory for all classes.
struct FinishLimits
{
  u32 n_classes;
  u32 n_multiprocessors;
  u32 class_rows[group_classes];

  __host__ __device__ u32 max_rows() const
  {
    return class_rows[n_classes - 1];
  }
};

// The least that max_rows() can be.
constexpr u32 least_max_rows = class_rows[group_classes - 2];

FinishLimits finish_limits();

// Sorts the groups listed, of one class or all.
void finish_class(const SortedRows &in, const GroupLists &lists, u32 group_class, const FinishLimits &limits,
                  cudaStream_t stream);
void finish_listed(const SortContext &context, const SortedRows &in, const GroupLists &lists,
                   const FinishLimits &limits);

} // namespace gpusort

#endif // GS_STRING_FINISH_CUH
