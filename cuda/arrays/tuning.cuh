/*-------------------------------------------------------------------------
 *
 * tuning.cuh
 *	  The sizes that the array engine is tuned by, measured on an H200.
 *
 * Results do not depend on any of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_TUNING_CUH
#define GS_ARRAYS_TUNING_CUH

#include "arrays/warp.cuh"

namespace gpusort
{

// Teams (team.cuh, classes.cuh)
constexpr u32 max_items_bytes = 128;    // of a thread's codes in registers
constexpr u32 max_team_warps = 8;       // of a block that sorts one array
constexpr u32 small_team_threads = 128; // of a block that holds several teams
constexpr u32 resident_warps = 24;      // that a multiprocessor should have room for

// Lists of arrays (sorter_impl.cuh)
constexpr u32 list_threads = 256;
template <typename Code>
constexpr u32 list_batch = sizeof(Code) <= 8 ? 8 : 4; // spans of a thread

// Long arrays (long.cuh)
constexpr u32 long_threads = 256;
constexpr u32 long_blocks = 16; // that load or store an array

} // namespace gpusort

#endif // GS_ARRAYS_TUNING_CUH
