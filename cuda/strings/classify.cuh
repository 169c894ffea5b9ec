/*-------------------------------------------------------------------------
 *
 * classify.cuh
 *	  The first words of the string engine: rows classified by splitters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_CLASSIFY_CUH
#define GS_STRINGS_CLASSIFY_CUH

#include "strings/splitters.cuh"

namespace gpusort
{

// Makes a word of each row, in which its bucket is the segment, and lists the rows.
void classify_rows(const SplitPlan &plan, const Splitters &splitters, const KeyRef *keys, u32 n_rows,
                   u32 prefix, u32 n_multiprocessors, u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_CLASSIFY_CUH
