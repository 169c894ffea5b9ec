/*-------------------------------------------------------------------------
 *
 * string_split.cuh
 *	  The first words of the string engine: rows classified by splitters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_SPLIT_CUH
#define GS_STRING_SPLIT_CUH

#include "string_finish.cuh"

namespace gpusort
{

// A splitter as the search meets it; see string_split.cu.
struct alignas(16) Splitter
{
  u64 address;
  u32 length;
  u32 lcp_low; // bytes shared with the one below in its search
  u64 word_low;
  u64 word_high; // its bytes after those shared with the one above
  u32 lcp_high;
  u32 run_end; // the first splitter after its run at the last level
};

// After the root, so many levels of words.
constexpr u32 deeper_levels = 2;

// The splitters that agree in all words of the levels before.
struct alignas(16) Run
{
  u32 begin;
  u32 end;
  u32 depth; // all of them agree in so many bytes, which the words follow
  u32 padding;
};

// What the levels hold for each splitter, level by level.
struct Deeper
{
  u32 n_splitters;
  Run *runs;
  u64 *words;
};

// Where the words of the rows between two splitters begin.
struct alignas(8) Start
{
  u32 depth;
  u32 lead;
};

struct SplitWorkspace
{
  u32 *sample; // rows
  u32 *rank;
  u64 *words;      // root words of the sorted sample
  u64 *next_words; // and the words after these
  u32 *rows;       // of the splitters, in order
  u64 *root;       // their root words in order
  u64 *tree;       // and as a search tree
  Splitter *splitters;
  Deeper deeper;
  Start *starts;
  u32 *packed_lcps; // both lcps of a splitter, 16 bits each: most steps need no more
};

// The sample is sorted in groups of this class.
constexpr u32 piece_class = 2;
constexpr u32 piece_rows = class_rows[piece_class];

// How many splitters rows are classified by, and the segments that makes.
struct SplitPlan
{
  u32 levels; // of the root's tree; 1 << levels less 1 splitters
  u32 n_samples;
  Shape shape;

  // Into how many groups the sample is cut to be sorted.
  u32 max_pieces() const
  {
    return (n_samples + piece_rows - 1) / piece_rows;
  }
  u32 n_splitters() const
  {
    return (1u << levels) - 1;
  }
  u32 n_segments() const
  {
    return 2 * n_splitters() + 1;
  }
};

// Chooses for any n_rows.
SplitPlan plan_split(u32 n_rows);

SplitWorkspace carve_split(Carver &carve, const SplitPlan &plan);

// Finds splitters among at least n_samples rows; fills *segments, words and
// rows.  order and tie are scratch; the lists must have room for max_pieces
// groups.
void split_rows(const SplitPlan &plan, const KeyRef *keys, u32 n_rows, u32 prefix, const FinishLimits &limits,
                const SplitWorkspace &space, const GroupLists &lists, const Segments &segments, u64 *words,
                u32 *rows, u32 *order, u8 *tie, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRING_SPLIT_CUH
