/*-------------------------------------------------------------------------
 *
 * sort_arrays.cuh
 *	  Sorting the elements of many arrays in device memory.
 *
 * The caller first takes a census of the arrays, from which the workspace and the
 * launches follow.  sort_arrays() then sorts all arrays in the order of a stream and
 * does not wait for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ARRAYS_SORT_ARRAYS_CUH
#define GS_ARRAYS_SORT_ARRAYS_CUH

#include "arrays/codes.cuh"
#include "common/common.cuh"

namespace gpusort
{

// An array: its offset in bytes from the beginning of the data, a multiple of 8, and
// the number of its elements.
struct alignas(16) ArraySpan
{
  u64 offset;
  u32 length;
};

// Arrays are sorted in classes of similar length; see classes.cuh.
constexpr u32 max_array_classes = 12;

struct ArrayCensus
{
  u64 n[max_array_classes]; // arrays of each class
  u64 elements;
  u64 end;         // of the data, in bytes
  u64 end_element; // and in elements
  u32 longest;     // elements
};

struct ArrayJob
{
  char *data; // a multiple of 16
  const ArraySpan *spans;
  u32 n_arrays;
  GsElem elem;
  bool descending;
};

// Adds an array to a census.
void count_array(GsElem elem, const ArraySpan &span, ArrayCensus *census);

u64 sort_arrays_workspace(GsElem elem, const ArrayCensus &census);

void sort_arrays(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);

// The same for elements with codes of one type.  Each of sort_arrays_4.cu, _8.cu and _16.cu
// instantiates it for one type, so that the many kernels are compiled in parallel.
template <typename Code>
struct ArraySorter
{
  static u64 workspace(const ArrayCensus &census);
  static void sort(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream);
};

} // namespace gpusort

#endif // GS_ARRAYS_SORT_ARRAYS_CUH
