/*-------------------------------------------------------------------------
 *
 * comparator.cuh
 *	  The merge sort that libraries sort strings by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_COMPARATOR_CUH
#define GS_BENCH_COMPARATOR_CUH

#include "rows/rows.cuh"

namespace bench
{

gpusort::u64 comparator_workspace(gpusort::u32 n_rows);

// Orders row numbers by comparing keys where they lie.
void sort_by_comparator(const gpusort::KeyRef *keys, gpusort::u32 n_rows, void *workspace,
                        gpusort::u32 *order, cudaStream_t stream);

// A stable radix sort of n_rows pairs of 64 and 32 random bits: what one
// sort of the rows costs at least.
class RadixSortOfPairs
{
public:
  explicit RadixSortOfPairs(gpusort::u32 n_rows);
  ~RadixSortOfPairs();
  RadixSortOfPairs(const RadixSortOfPairs &) = delete;
  RadixSortOfPairs &operator=(const RadixSortOfPairs &) = delete;
  void run(cudaStream_t stream);

private:
  gpusort::u32 n_rows;
  void *memory = nullptr;
};

} // namespace bench

#endif // GS_BENCH_COMPARATOR_CUH
