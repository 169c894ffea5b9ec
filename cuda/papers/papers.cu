/*-------------------------------------------------------------------------
 *
 * papers.cu
 *	  The list of the published algorithms.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include "fixed/fixed_keys.cuh"

namespace gpusort
{

const RowsPaper *rows_paper(GsEngine engine)
{
  static const RowsPaper radix_2013 = {radix2013_workspace, radix2013};
  static const RowsPaper merge_2012 = {merge2012_workspace,
                                       [](const SortContext &context, const OrderJob &job)
                                       {
                                         merge2012(job, context.stream);
                                         return true;
                                       }};
  static const RowsPaper radix_2011 = {radix2011_workspace,
                                       [](const SortContext &context, const OrderJob &job)
                                       {
                                         bool fits = fixed_keys_fit(job.stats);
                                         if (fits)
                                           radix2011(job, context.stream);
                                         return fits;
                                       }};

  switch (engine)
  {
  case GS_ENGINE_RADIX2013:
    return &radix_2013;
  case GS_ENGINE_MERGE2012:
    return &merge_2012;
  case GS_ENGINE_RADIX2011:
    return &radix_2011;
  default:
    return nullptr;
  }
}

const ArraysPaper *arrays_paper(GsEngine engine)
{
  static const ArraysPaper arraysort_2016 = {arraysort2016_fits, arraysort2016_workspace, arraysort2016};
  static const ArraysPaper baseline = {[](GsElem, const ArrayCensus &) { return true; }, sta_workspace, sta};

  switch (engine)
  {
  case GS_ENGINE_ARRAYSORT2016:
    return &arraysort_2016;
  case GS_ENGINE_STA:
    return &baseline;
  default:
    return nullptr;
  }
}

} // namespace gpusort
