/*-------------------------------------------------------------------------
 *
 * array_engine.cuh
 *	  The choice of the engine that sorts arrays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_ENGINE_CUH
#define GS_ARRAY_ENGINE_CUH

#include "arrays/sort_arrays.cuh"

namespace gpusort
{

// The engine's name for EXPLAIN; static.
const char *array_engine_name(GsEngine engine);

// Does the engine take these arrays?  Otherwise the caller uses GS_ENGINE_AUTO.
bool array_engine_fits(GsEngine engine, GsElem elem, const ArrayCensus &census);

// Like sort_arrays_workspace() and sort_arrays().
u64 array_engine_workspace(GsEngine engine, GsElem elem, const ArrayCensus &census);
void run_array_engine(GsEngine engine, const ArrayJob &job, const ArrayCensus &census, void *workspace,
                      SideStreams &side, cudaStream_t stream);

} // namespace gpusort

#endif // GS_ARRAY_ENGINE_CUH
