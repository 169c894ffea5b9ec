/*-------------------------------------------------------------------------
 *
 * engine.cuh
 *	  The choice of the engine that orders the rows of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ENGINE_CUH
#define GS_ENGINE_CUH

#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

// Bytes of workspace for any n_rows keys.
u64 engine_workspace(GsEngine engine, u32 n_rows);

// Finds the order of the rows.  Work may still be under way when it returns, but it
// comes before what the context's stream is given next.
EngineReport run_engine(const SortContext &context, GsEngine engine, const OrderJob &job);

} // namespace gpusort

#endif // GS_ENGINE_CUH
