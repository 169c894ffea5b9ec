/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The choice of what orders the rows of a sort.
 *
 * Ours are two: sort_fixed for the keys that it takes, sort_string for all
 * others.  Published algorithms, asked for by name, stand in papers/; keys that
 * one of them cannot order fall to ours, and the report says so.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine.cuh"

#include <algorithm>

#include "fixed/sort_fixed.cuh"
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

EngineReport run_own(const SortContext &context, const KeyRef *keys, u32 n_rows, const RowStats &stats,
                     void *workspace, u32 *order, u8 *tie)
{
  // However long they are.
  if (stats.min_key == stats.max_key && stats.prefix == stats.max_key)
  {
    order_equal_keys(n_rows, order, tie, context.stream);
    return {"all keys equal", 1};
  }
  if (sort_fixed_fits(stats))
    return {sort_fixed(keys, n_rows, stats, workspace, order, tie, context.stream), 1};

  StringReport report = sort_string(context, keys, n_rows, stats.prefix, workspace, order, tie);

  return {report.name, report.rounds};
}

// What is switched off in an engine of 2013; an engine of another kind has
// nothing to switch off.
Radix2013Options radix2013_options(GsEngine engine)
{
  return {engine == GS_ENGINE_RADIX2013_FIXED || engine == GS_ENGINE_RADIX2013_FIXED_KEEP,
          engine == GS_ENGINE_RADIX2013_KEEP || engine == GS_ENGINE_RADIX2013_FIXED_KEEP};
}

} // namespace

u64 engine_workspace(GsEngine engine, u32 n_rows)
{
  switch (engine)
  {
  case GS_ENGINE_RADIX2013:
  case GS_ENGINE_RADIX2013_FIXED:
  case GS_ENGINE_RADIX2013_KEEP:
  case GS_ENGINE_RADIX2013_FIXED_KEEP:
    return radix2013_workspace(n_rows);
  case GS_ENGINE_MERGE2012:
    return merge2012_workspace(n_rows);
  case GS_ENGINE_RADIX2011:
    return std::max(radix2011_workspace(n_rows), own_workspace(n_rows));
  default:
    return own_workspace(n_rows);
  }
}

EngineReport run_engine(const SortContext &context, GsEngine engine, const KeyRef *keys, u32 n_rows,
                        const RowStats &stats, void *workspace, u32 *order, u8 *tie)
{
  switch (engine)
  {
  case GS_ENGINE_RADIX2013:
  case GS_ENGINE_RADIX2013_FIXED:
  case GS_ENGINE_RADIX2013_KEEP:
  case GS_ENGINE_RADIX2013_FIXED_KEEP:
    return {gs_engine_name(engine),
            radix2013(context, radix2013_options(engine), keys, n_rows, workspace, order, tie)};
  case GS_ENGINE_MERGE2012:
    return {gs_engine_name(engine), merge2012(context, keys, n_rows, stats, workspace, order, tie)};
  case GS_ENGINE_RADIX2011:
    if (fixed_keys_fit(stats))
      return {gs_engine_name(engine), radix2011(keys, n_rows, stats, workspace, order, tie, context.stream)};
    break;
  default:
    break;
  }
  return run_own(context, keys, n_rows, stats, workspace, order, tie);
}

} // namespace gpusort
