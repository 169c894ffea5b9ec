/*-------------------------------------------------------------------------
 *
 * array_engine.cuh
 *	  The choice of what sorts arrays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAY_ENGINE_CUH
#define GS_ARRAY_ENGINE_CUH

#include "arrays/sort_arrays.cuh"

namespace gpusort
{

// For EXPLAIN; static.
const char *array_engine_name(GsEngine engine);

// Does the engine take these arrays?  Else they are left to ours.
bool array_engine_fits(GsEngine engine, GsElem elem, const ArrayCensus &census);

// As sort_arrays_workspace() and sort_arrays().
u64 array_engine_workspace(GsEngine engine, GsElem elem, const ArrayCensus &census);
void run_array_engine(GsEngine engine, const ArrayJob &job, const ArrayCensus &census, void *workspace,
                      SideStreams &side, cudaStream_t stream);

} // namespace gpusort

#endif // GS_ARRAY_ENGINE_CUH
