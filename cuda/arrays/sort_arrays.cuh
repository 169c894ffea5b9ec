/*-------------------------------------------------------------------------
 *
 * sort_arrays.cuh
 *	  Sorting the elements of many arrays in device memory.
 *
 * First a census of the arrays is taken, by whoever has them, on the host or on
 * the device; from it follow the workspace and the launches.  Then all of them
 * are sorted in the order of a stream, without waiting for it; what may run side
 * by side is also given to the streams beside it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_ARRAYS_CUH
#define GS_SORT_ARRAYS_CUH

#include "arrays/array_codes.cuh"
#include "common/sort_context.cuh"

namespace gpusort
{

// An array: where it begins, in bytes from the data's beginning, a multiple of 8,
// and its elements.
struct alignas(16) ArraySpan
{
  u64 offset;
  u32 length;
};

// Arrays are sorted in classes of similar length: 0 and 1 elements, which
// are sorted; up to 8, 16, 32, and so on; long ones, which are split; and huge
// ones.
constexpr u32 max_array_classes = 15;

struct ArrayCensus
{
  u64 n[max_array_classes]; // arrays in each class
  u64 elements;
  u64 tiles; // of the long ones
  u64 bins;
  u64 parts;   // of bins in tiles, and one more a tile
  u64 end;     // of the data
  u32 longest; // elements
};

struct ArrayJob
{
  char *data; // a multiple of 16
  const ArraySpan *spans;
  u64 n_arrays;
  GsElem elem;
  bool descending;
};

void count_array(GsElem elem, const ArraySpan &span, ArrayCensus *census);

// Of spans in device memory; waits for the stream.
void take_census(const ArrayJob &job, ArrayCensus *census, void *workspace, cudaStream_t stream);
u64 census_workspace();

u64 sort_arrays_workspace(GsElem elem, const ArrayCensus &census);

// Waits for the stream only where there are huge arrays.
void sort_arrays(const ArrayJob &job, const ArrayCensus &census, void *workspace, SideStreams &side,
                 cudaStream_t stream);

} // namespace gpusort

#endif // GS_SORT_ARRAYS_CUH
