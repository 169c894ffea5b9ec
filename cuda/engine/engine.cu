/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The choice of the engine that orders the rows of a sort, or sorts arrays.
 *
 * gpusort has two engines of its own for rows: sort_fixed for the keys that fit, and sort_string for all
 * others.  sort_arrays is the engine for arrays.  The engines in papers/ are published algorithms, run if a
 * caller names one of them and the build has them.  If such an engine cannot order the keys, our own does,
 * and the report names that.
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
  const RowsPaper *paper = rows_paper(engine);

  return std::max(own_workspace(n_rows), paper ? paper->workspace(n_rows) : 0);
}

const char *run_engine(const SortContext &context, GsEngine engine, const OrderJob &job)
{
  const RowsPaper *paper = rows_paper(engine);

  return paper && paper->run(context, job) ? gs_engine_name(engine) : run_own(context, job);
}

const char *array_engine_name(GsEngine engine)
{
  return arrays_paper(engine) ? gs_engine_name(engine) : "bitonic";
}

bool array_engine_fits(GsEngine engine, GsElem elem, const ArrayCensus &census)
{
  const ArraysPaper *paper = arrays_paper(engine);

  return !paper || paper->fits(elem, census);
}

u64 array_engine_workspace(GsEngine engine, GsElem elem, const ArrayCensus &census)
{
  const ArraysPaper *paper = arrays_paper(engine);

  return paper ? paper->workspace(elem, census) : sort_arrays_workspace(elem, census);
}

void run_array_engine(GsEngine engine, const ArrayJob &job, const ArrayCensus &census, void *workspace,
                      cudaStream_t stream)
{
  const ArraysPaper *paper = arrays_paper(engine);

  (paper ? paper->run : sort_arrays)(job, census, workspace, stream);
}

} // namespace gpusort
