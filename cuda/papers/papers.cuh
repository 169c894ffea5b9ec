/*-------------------------------------------------------------------------
 *
 * papers.cuh
 *	  Published algorithms that order records or arrays, as engines to compare with.
 *
 *	  radix2013	 A. Deshpande, P. J. Narayanan: Can GPUs Sort Strings
 *				 Efficiently?, 2013
 *	  merge2012	 A. Davidson, D. Tarjan, M. Garland, J. D. Owens: Efficient
 *				 Parallel Merge Sort for Fixed and Variable Length Keys, 2012
 *	  radix2011	 T. Harada, L. Howes: Introduction to GPU Radix Sort, 2011
 *
 * Each of these finds the order of the rows, with a workspace for any n_rows keys.
 *
 *	  arraysort2016	 M. Awan, F. Saeed: GPU-ArraySort, 2016
 *	  sta			 the baseline of the same paper
 *
 * These two sort like sort_arrays().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PAPERS_CUH
#define GS_PAPERS_CUH

#include "arrays/sort_arrays.cuh"
#include "common/sort_context.cuh"
#include "rows/rows.cuh"

namespace gpusort
{

// False: it cannot tell the order of a key and the same key with a NUL behind it.
u64 radix2013_workspace(u32 n_rows);
bool radix2013(const SortContext &context, const OrderJob &job);

u64 merge2012_workspace(u32 n_rows);
void merge2012(const OrderJob &job, cudaStream_t stream);

// For keys that fixed_keys_fit().
u64 radix2011_workspace(u32 n_rows);
void radix2011(const OrderJob &job, cudaStream_t stream);

// Sorts arrays that all fit into shared memory.
bool arraysort2016_fits(GsElem elem, const ArrayCensus &census);
u64 arraysort2016_workspace(GsElem elem, const ArrayCensus &census);
void arraysort2016(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);

u64 sta_workspace(GsElem elem, const ArrayCensus &census);
void sta(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);

} // namespace gpusort

#endif // GS_PAPERS_CUH
