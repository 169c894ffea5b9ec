/*-------------------------------------------------------------------------
 *
 * partition.cuh
 *	  The first round of few rows: a counting sort by bucket.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_PARTITION_CUH
#define GS_STRINGS_PARTITION_CUH

#include "strings/groups.cuh"
#include "strings/splitters.cuh"

namespace gpusort
{

// Temp storage in device memory.
struct Partition
{
  u32 n_tiles;
  u32 *offsets; // by bucket, then tile: the place of the tile's first row of the bucket
  void *temp;
  size_t temp_bytes;
};

// For n_rows, or as much as for max_few_rows where there are more.
Partition alias_partition(TempStorage &storage, u32 n_rows);

// Brings all rows into the order of buckets: fills sorted.words and sorted.rows.
// Settles the rows of buckets that hold equal keys or one row, and puts out the other
// buckets as groups, as find_groups() does.  `words` is scratch for a word of each row.
void partition_rows(const SplitPlan &plan, const Splitters &splitters, const Partition &partition, u32 prefix,
                    u64 *words, const SortedRows &sorted, const Segments &segments, const GroupOutput &output,
                    cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_PARTITION_CUH
