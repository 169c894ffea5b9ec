/*-------------------------------------------------------------------------
 *
 * sort_arrays.cu
 *	  Sorting the elements of many arrays in device memory.
 *
 *-------------------------------------------------------------------------
 */
#include "arrays/sort_arrays.cuh"

#include <algorithm>

#include "arrays/classes.cuh"

namespace gpusort
{

namespace
{

template <typename Code>
void count_one(const ArraySpan &span, u32 elem_bytes, ArrayCensus *census)
{
  census->n[class_of<Code>(span.length)]++;
  census->elements += span.length;
  census->end = std::max(census->end, span.offset + u64{span.length} * elem_bytes);
  census->end_element = std::max(census->end_element, span.offset / elem_bytes + span.length);
  census->longest = std::max(census->longest, span.length);
}

} // namespace

void count_array(GsElem elem, const ArraySpan &span, ArrayCensus *census)
{
  with_code(elem, [&](auto code) { count_one<decltype(code)>(span, gs_elem_bytes(elem), census); });
}

u64 sort_arrays_workspace(GsElem elem, const ArrayCensus &census)
{
  return with_code(elem, [&](auto code) { return ArraySorter<decltype(code)>::workspace(census); });
}

void sort_arrays(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  with_code(job.elem, [&](auto code) { ArraySorter<decltype(code)>::sort(job, census, workspace, stream); });
}

} // namespace gpusort
