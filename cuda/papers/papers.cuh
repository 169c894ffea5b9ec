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
 * Each of these finds the order of the rows, in a workspace whose size depends on n_rows only.
 *
 *	  arraysort2016	 M. Awan, F. Saeed: GPU-ArraySort, 2016
 *	  sta			 the baseline of the same paper
 *
 * These two sort like sort_arrays().
 *
 * They are compiled with PAPERS=yes only.
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

// An engine that orders the rows of a sort.
struct RowsPaper
{
  u64 (*workspace)(u32 n_rows);
  bool (*run)(const SortContext &context, const OrderJob &job); // false: it cannot order these keys
};

// An engine that sorts arrays.
struct ArraysPaper
{
  bool (*fits)(GsElem elem, const ArrayCensus &census); // does it take these arrays?
  u64 (*workspace)(GsElem elem, const ArrayCensus &census);
  void (*run)(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);
};

// The engine of that name; nullptr: it is not one of these, or not compiled.
#ifdef GS_WITH_PAPERS
const RowsPaper *rows_paper(GsEngine engine);
const ArraysPaper *arrays_paper(GsEngine engine);
#else
inline const RowsPaper *rows_paper(GsEngine)
{
  return nullptr;
}
inline const ArraysPaper *arrays_paper(GsEngine)
{
  return nullptr;
}
#endif

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
