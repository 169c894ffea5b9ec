/*-------------------------------------------------------------------------
 *
 * sort_string.cuh
 *	  The engine for keys of any length.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_STRING_CUH
#define GS_SORT_STRING_CUH

#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

struct StringReport
{
  const char *name; // of the way that the rows were sorted; static
  u32 rounds;
};

// Bytes of workspace for any n_rows keys.
u64 sort_string_workspace(u32 n_rows);

// Orders row numbers by their keys, all of which share their first `prefix`
// bytes: rank i goes to row order[i], and tie[i] tells whether its key equals
// rank i - 1's.
StringReport sort_string(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix,
                         void *workspace, u32 *order, u8 *tie);

} // namespace gpusort

#endif // GS_SORT_STRING_CUH
