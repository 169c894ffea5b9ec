/*-------------------------------------------------------------------------
 *
 * first_words.cuh
 *	  First words of the keys, without splitters: their bytes, or a code of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_FIRST_WORDS_CUH
#define GS_STRINGS_FIRST_WORDS_CUH

#include "common/sort_context.cuh"
#include "strings/words.cuh"

namespace gpusort
{

struct CodeCounts;
struct CodeModel;

struct CodeSpace
{
  CodeCounts *counts;
  CodeModel *model;
  u64 *plain; // first words of the sample
  u64 *coded; // and their codes
};

CodeSpace alias_code(TempStorage &storage);

// Chooses the words by which to sort the rows first, and how many of their bits:
// sorted_bits is 0 where neither bytes nor codes make groups that are small enough.
// Waits for the device.
WordLayout choose_words(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix,
                        const CodeSpace &space);

// Makes these words, of one segment, and lists the rows.
void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const WordLayout &layout, const CodeSpace &space,
                 const Segments &segments, u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_FIRST_WORDS_CUH
