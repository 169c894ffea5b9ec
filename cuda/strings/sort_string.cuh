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

// Bytes of workspace for any n_rows keys.
u64 sort_string_workspace(u32 n_rows);

// Finds the order of the rows.  Returns a name for EXPLAIN.
const char *sort_string(const SortContext &context, const OrderJob &job);

} // namespace gpusort

#endif // GS_SORT_STRING_CUH
