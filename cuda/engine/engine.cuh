/*-------------------------------------------------------------------------
 *
 * engine.cuh
 *	  The choice of what orders the rows of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ENGINE_CUH
#define GS_ENGINE_CUH

#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

struct EngineReport
{
  const char *name; // of what did it; static
  u32 rounds;
};

// Bytes of workspace for any n_rows keys.
u64 engine_workspace(GsEngine engine, u32 n_rows);

// Orders row numbers by their keys: rank i goes to row order[i], and tie[i]
// tells whether its key equals rank i - 1's.  When it returns, all that was asked
// of the device, done or not, comes before what the context's stream gets next.
EngineReport run_engine(const SortContext &context, GsEngine engine, const KeyRef *keys, u32 n_rows,
                        const RowStats &stats, void *workspace, u32 *order, u8 *tie);

} // namespace gpusort

#endif // GS_ENGINE_CUH
