/*-------------------------------------------------------------------------
 *
 * string_choose.cuh
 *	  Whether the first word of the keys alone separates the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_CHOOSE_CUH
#define GS_STRING_CHOOSE_CUH

#include "sort_context.cuh"
#include "string_words.cuh"

namespace gpusort
{

// By how many bits after the prefix rows are to be sorted, or 0 where these
// leave groups that are too large.  Waits for the device.
u32 choose_bits(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix);

// Words of one segment for all rows, and their numbers.
void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const Shape &shape, const Segments &segments,
                 u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRING_CHOOSE_CUH
