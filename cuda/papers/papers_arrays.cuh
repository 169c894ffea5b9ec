/*-------------------------------------------------------------------------
 *
 * papers_arrays.cuh
 *	  Published algorithms that sort many arrays, as engines to compare with.
 *
 *	  arraysort2016	 M. Awan, F. Saeed: GPU-ArraySort, 2016
 *	  sta			 the baseline of the same paper
 *
 * They sort like sort_arrays().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAPERS_ARRAYS_CUH
#define GS_PAPERS_ARRAYS_CUH

#include "arrays/sort_arrays.cuh"

namespace gpusort
{

// For arrays that all fit into shared memory.
bool arraysort2016_fits(GsElem elem, const ArrayCensus &census);
u64 arraysort2016_workspace(GsElem elem, const ArrayCensus &census);
void arraysort2016(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);

u64 sta_workspace(GsElem elem, const ArrayCensus &census);
void sta(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);

} // namespace gpusort

#endif // GS_PAPERS_ARRAYS_CUH
