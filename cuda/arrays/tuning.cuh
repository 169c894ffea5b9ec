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
constexpr u32 max_team_warps = 8;       // of a block that sorts one array or bin
constexpr u32 small_team_threads = 128; // of a block that holds several teams
constexpr u32 resident_warps = 24;      // that a multiprocessor should have room for
constexpr u32 max_bucket_codes = 24;    // more in one bucket: the network is faster

// Arrays of up to 16 elements (classes.cuh)
constexpr u32 small_threads = 256;
constexpr int small_batch = 8; // arrays that a group of lanes sorts at a time

// Lists of arrays (sorter_impl.cuh)
constexpr u32 list_threads = 256;
template <typename Code>
constexpr u32 list_batch = sizeof(Code) <= 8 ? 8 : 4; // spans of a thread

// Long arrays (split.cuh, bins.cuh).  Most bins should be sorted by one warp or two.
// Bins of 4-byte codes are larger in arrays of many tiles, whose parts of bins would
// be short otherwise.
constexpr u32 tile_bytes = 32768; // of codes
constexpr u32 many_tiles = 32;
template <typename Code>
constexpr u32 bin_target = sizeof(Code) <= 8 ? 800 : 400; // codes
template <typename Code>
constexpr u32 large_bin_target = sizeof(Code) == 4 ? 2 * bin_target<Code> : bin_target<Code>;
constexpr u32 samples_per_bin = 32;
constexpr u32 min_crowd = 8; // lanes with the same bin, from which on one of them counts for all
constexpr u32 sample_threads = max_team_warps * warp_size;
constexpr u32 split_threads = 512;
constexpr u32 split_blocks = 2; // that a multiprocessor should have room for
constexpr u32 list_bins_threads = 256;
constexpr u32 bin_threads = 512;
constexpr u32 max_bin_blocks = 8192; // only the device knows how many bins a list has, mostly none

} // namespace gpusort

#endif // GS_ARRAYS_TUNING_CUH
