/*-------------------------------------------------------------------------
 *
 * papers.cuh
 *	  Published algorithms that order records, as engines to compare with.
 *
 * Each orders row numbers by their keys, as engine.cuh says, within a
 * workspace for any n_rows keys, and returns how many rounds it took.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAPERS_CUH
#define GS_PAPERS_CUH

#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

struct Radix2013Options
{
  bool fixed; // segment numbers of 4 bytes always, not of as few as they need
  bool keep;  // singletons stay to the end
};

u64 radix2013_workspace(u32 n_rows);
u32 radix2013(const SortContext &context, Radix2013Options options, const KeyRef *keys, u32 n_rows,
              void *workspace, u32 *order, u8 *tie);

u64 merge2012_workspace(u32 n_rows);
u32 merge2012(const SortContext &context, const KeyRef *keys, u32 n_rows, const RowStats &stats,
              void *workspace, u32 *order, u8 *tie);

// For keys that fixed_keys_fit().
u64 radix2011_workspace(u32 n_rows);
u32 radix2011(const KeyRef *keys, u32 n_rows, const RowStats &stats, void *workspace, u32 *order, u8 *tie,
              cudaStream_t stream);

} // namespace gpusort

#endif // GS_PAPERS_CUH
