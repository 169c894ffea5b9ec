/*-------------------------------------------------------------------------
 *
 * engine.cuh
 *	  The choice of the engine that orders the rows of a sort, or sorts arrays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ENGINE_CUH
#define GS_ENGINE_CUH

#include "arrays/sort_arrays.cuh"
#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

// Bytes of workspace for any n_rows keys.
u64 engine_workspace(GsEngine engine, u32 n_rows);

// Finds the order of the rows.  Returns the name of the way that they were sorted, for EXPLAIN; static.
// Work may still be under way when it returns, but it comes before what the context's stream is given next.
const char *run_engine(const SortContext &context, GsEngine engine, const OrderJob &job);

// The name for EXPLAIN of an engine that sorts arrays; static.
const char *array_engine_name(GsEngine engine);

// Does the engine take these arrays?  Otherwise the caller uses GS_ENGINE_AUTO.
bool array_engine_fits(GsEngine engine, GsElem elem, const ArrayCensus &census);

// Like sort_arrays_workspace() and sort_arrays().
u64 array_engine_workspace(GsEngine engine, GsElem elem, const ArrayCensus &census);
void run_array_engine(GsEngine engine, const ArrayJob &job, const ArrayCensus &census, void *workspace,
                      cudaStream_t stream);

} // namespace gpusort

#endif // GS_ENGINE_CUH
