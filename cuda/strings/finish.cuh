/*-------------------------------------------------------------------------
 *
 * finish.cuh
 *	  Groups of rows that fit on chip, each sorted to the end by one block.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_FINISH_CUH
#define GS_STRINGS_FINISH_CUH

#include "common/sort_context.cuh"
#include "strings/words.cuh"

namespace gpusort
{

// The least rows of a group of a class; find_groups() lists no smaller ones.
__host__ __device__ constexpr u32 min_class_rows(u32 group_class)
{
  return group_class == 0 ? small_rows + 1 : class_rows(group_class - 1) + 1;
}

// What this device can sort on chip: not all have the shared memory for all classes.
struct FinishLimits
{
  u32 n_classes;
  u32 n_multiprocessors;

  __host__ __device__ u32 max_rows() const
  {
    return class_rows(n_classes - 1);
  }
};

// What max_rows() is on the smallest device.
constexpr u32 min_max_rows = class_rows(group_classes - 2);

FinishLimits finish_limits();

// Sorts all listed groups; classes run side by side.
void finish_listed(const SortContext &context, const SortedRows &in, const GroupLists &lists,
                   const FinishLimits &limits);

} // namespace gpusort

#endif // GS_STRINGS_FINISH_CUH
