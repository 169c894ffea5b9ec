/*-------------------------------------------------------------------------
 *
 * tuning.cuh
 *	  The sizes that the string engine is tuned by, measured on an H200.
 *
 * test/bench/NOTES.md holds what other values cost.  Results do not depend on any
 * of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_TUNING_CUH
#define GS_STRINGS_TUNING_CUH

#include "common/common.cuh"

namespace gpusort
{

// Splitters (splitters.cu, classify.cu)
constexpr u32 min_levels = 2;
constexpr u32 max_levels = 17;          // of the search tree
constexpr u32 tree_levels_on_chip = 13; // 64 kB: a multiprocessor then holds it once or twice
constexpr u32 rows_per_splitter = 900;  // at most, while there are levels left
constexpr u32 oversampling = 4;
constexpr u32 few_samples = 1u << 14; // no more samples than this are sorted in small pieces

// Groups (groups.cu, finish.cu)
constexpr u32 small_rows = 64; // no more rows than this are sorted where they are found
constexpr u32 group_classes = 5;

// The most rows of a group of a class.
__host__ __device__ constexpr u32 class_rows(u32 group_class)
{
  return 256u << group_class;
}

// Rounds (sort_string.cu)
constexpr u32 max_skip = 64; // shared bytes that are looked for before a round

} // namespace gpusort

#endif // GS_STRINGS_TUNING_CUH
