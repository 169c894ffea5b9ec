/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The choice of the engine that orders the rows of a sort, or sorts arrays.
 *
 * There are two engines of our own for rows: sort_fixed for the keys that it takes, and
 * sort_string for all others; sort_arrays is that for arrays.  The engines in papers/ are
 * published algorithms, run where a caller names one of them.  What it cannot order
 * is left to our own, and the report then names these.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine.cuh"

#include <algorithm>

#include "fixed/fixed_keys.cuh"
#include "papers/papers.cuh"
#include "strings/sort_string.cuh"

namespace gpusort
{

namespace
{

u64 own_workspace(u32 n_rows)
{
  return std::max(sort_string_workspace(n_rows), sort_fixed_workspace(n_rows));
}

const char *run_own(const SortContext &context, const OrderJob &job)
{
  const RowStats &stats = job.stats;

  // Equal keys of any length.
  if (stats.min_key == stats.max_key && stats.prefix == stats.max_key)
  {
    order_equal_keys(job.n_rows, job.order, context.stream);
    return "all keys equal";
  }
  if (fixed_keys_fit(stats))
    return sort_fixed(job, context.stream);
  return sort_string(context, job);
}

} // namespace

u64 engine_workspace(GsEngine engine, u32 n_rows)
{
  switch (engine)
  {
  case GS_ENGINE_RADIX2013:
    return std::max(radix2013_workspace(n_rows), own_workspace(n_rows));
  case GS_ENGINE_MERGE2012:
    return merge2012_workspace(n_rows);
  case GS_ENGINE_RADIX2011:
    return std::max(radix2011_workspace(n_rows), own_workspace(n_rows));
  default:
    return own_workspace(n_rows);
  }
}

const char *run_engine(const SortContext &context, GsEngine engine, const OrderJob &job)
{
  bool done = false;

  switch (engine)
  {
  case GS_ENGINE_RADIX2013:
    done = radix2013(context, job);
    break;
  case GS_ENGINE_MERGE2012:
    merge2012(job, context.stream);
    done = true;
    break;
  case GS_ENGINE_RADIX2011:
    done = fixed_keys_fit(job.stats);
    if (done)
      radix2011(job, context.stream);
    break;
  default:
    break;
  }
  return done ? gs_engine_name(engine) : run_own(context, job);
}

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
                      cudaStream_t stream)
{
  switch (engine)
  {
  case GS_ENGINE_ARRAYSORT2016:
    return arraysort2016(job, census, workspace, stream);
  case GS_ENGINE_STA:
    return sta(job, census, workspace, stream);
  default:
    return sort_arrays(job, census, workspace, stream);
  }
}

} // namespace gpusort
