/*-------------------------------------------------------------------------
 *
 * array_engine.cu
 *	  The choice of the engine that sorts arrays.
 *
 * It is our own, unless the caller names a published algorithm (papers/) that takes
 * the arrays.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/array_engine.cuh"

#include "papers/papers_arrays.cuh"

namespace gpusort
{

const char *array_engine_name(GsEngine engine)
{
  switch (engine)
  {
  case GS_ENGINE_ARRAYSORT2016:
  case GS_ENGINE_STA:
    return gs_engine_name(engine);
  default:
    return "bitonic";
  }
}

bool array_engine_fits(GsEngine engine, GsElem elem, const ArrayCensus &census)
{
  return engine != GS_ENGINE_ARRAYSORT2016 || arraysort2016_fits(elem, census);
}

u64 array_engine_workspace(GsEngine engine, GsElem elem, const ArrayCensus &census)
{
  switch (engine)
  {
  case GS_ENGINE_ARRAYSORT2016:
    return arraysort2016_workspace(elem, census);
  case GS_ENGINE_STA:
    return sta_workspace(elem, census);
  default:
    return sort_arrays_workspace(elem, census);
  }
}

void run_array_engine(GsEngine engine, const ArrayJob &job, const ArrayCensus &census, void *workspace,
                      SideStreams &side, cudaStream_t stream)
{
  switch (engine)
  {
  case GS_ENGINE_ARRAYSORT2016:
    return arraysort2016(job, census, workspace, stream);
  case GS_ENGINE_STA:
    return sta(job, census, workspace, stream);
  default:
    return sort_arrays(job, census, workspace, side, stream);
  }
}

} // namespace gpusort
