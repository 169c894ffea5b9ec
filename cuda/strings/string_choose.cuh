/*-------------------------------------------------------------------------
 *
 * string_choose.cuh
 *	  Whether the first words of the keys alone separate the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_CHOOSE_CUH
#define GS_STRING_CHOOSE_CUH

#include "sort_context.cuh"
#include "string_code.cuh"

namespace gpusort
{

// What words the rows are to be sorted by, and how many bits of these: none
// where that leaves groups that are too large.  Waits for the device.
Shape choose_words(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix,
                   const CodeSpace &space);

// Such words of one segment for all rows, and their numbers.
void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const Shape &shape, const CodeSpace &space,
                 const Segments &segments, u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRING_CHOOSE_CUH
