/*-------------------------------------------------------------------------
 *
 * choose.cuh
 *	  Whether the first words of the keys alone separate the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_CHOOSE_CUH
#define GS_STRINGS_CHOOSE_CUH

#include "common/sort_context.cuh"
#include "strings/code.cuh"

namespace gpusort
{

// What words the rows are to be sorted by, and how many bits of these: none
// where that leaves groups that are too large.  Waits for the device.
WordLayout choose_words(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix,
                        const CodeSpace &space);

// Such words of one segment for all rows, and their numbers.
void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const WordLayout &layout, const CodeSpace &space,
                 const Segments &segments, u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_CHOOSE_CUH
