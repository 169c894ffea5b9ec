/*-------------------------------------------------------------------------
 *
 * code.cuh
 *	  Words that hold a code of the keys in place of their bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_CODE_CUH
#define GS_STRINGS_CODE_CUH

#include "strings/words.cuh"

namespace gpusort
{

// The end of the key, then the values of a byte.
constexpr u32 n_symbols = 257;

constexpr u32 max_probes = 1u << log_max_probes; // keys that the code is made from

// With few rows, half of them tell as surely how many will agree.
inline u32 probes_of(u32 n_rows)
{
  return n_rows < 1u << 22 ? max_probes / 2 : max_probes;
}

// What a sample of the keys consists of.
struct CodeCounts
{
  u32 symbols[n_symbols]; // outside of runs
  u32 runs[256];          // words of eight equal bytes, by their value
  u32 words;
};

// How the code divides an interval: parts before a symbol in the upper half,
// parts of its own in the lower.
struct CodeModel
{
  u32 symbols[n_symbols];
  u32 words[3]; // less than the run, equal, greater
  u32 has_run;
  u64 run;
};

struct CodeSpace
{
  CodeCounts *counts;
  CodeModel *model;
  u64 *plain; // first words of the sample
  u64 *coded; // and their codes
};

CodeSpace alias_code(TempStorage &storage);

// Makes a code from probes_of() the keys, and both kinds of words of these.
void learn_code(const KeyRef *keys, u32 n_rows, u32 prefix, const CodeSpace &space, cudaStream_t stream);

// Coded words of one segment for all rows, and their numbers.
void code_words(const KeyRef *keys, u32 n_rows, u32 prefix, const CodeModel *model, const Segments &segments,
                u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_CODE_CUH
