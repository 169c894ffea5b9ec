/*-------------------------------------------------------------------------
 *
 * splitters.cuh
 *	  Splitters of the string engine, from a sorted sample.
 *
 * All arrays lie in device memory, in the engine's temp storage.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_SPLITTERS_CUH
#define GS_STRINGS_SPLITTERS_CUH

#include "strings/tuning.cuh"
#include "strings/words.cuh"

namespace gpusort
{

// How many splitters divide the rows, and the words of the segments that result.
struct SplitPlan
{
  u32 levels; // of the search tree; 1 << levels less 1 splitters
  u32 n_samples;
  WordLayout layout;

  u32 n_splitters() const
  {
    return (1u << levels) - 1;
  }
  // Bucket 2i holds the keys between splitters i - 1 and i, 2i + 1 those that equal
  // splitter i.
  u32 n_buckets() const
  {
    return 2 * n_splitters() + 1;
  }
};

// The sample, piece by piece in order.
struct SampleArrays
{
  KeyRef *keys;
  u64 *words;      // of 7 bytes after the prefix of all keys
  u64 *next_words; // and of the 7 bytes after those
  u32 *ranks;      // among all samples
};

// A splitter as the binary search meets it.
struct alignas(16) Splitter
{
  u64 address;
  u32 length;
  u32 lcp_low;   // bytes shared with the splitter below in the search
  u64 word_low;  // 8 bytes after these
  u64 word_high; // 8 bytes after those shared with the splitter above
  u32 lcp_high;
  u32 run_end; // the first splitter after those with its first word
};

// Where the words of a bucket's rows begin: whole bytes that all of its keys share,
// then bits.
struct alignas(8) BucketStart
{
  u32 depth;
  u32 lead;
};

// The splitters, and what the search needs to know of them; classify.cu tells what
// each is for.
struct Splitters
{
  u32 n_splitters;
  SampleArrays sample;
  KeyRef *keys;        // in order
  u64 *root;           // their first words, in order
  u64 *tree;           // and as a perfect tree, node 1 the root
  Splitter *search;    // for the binary search after the tree
  BucketStart *starts; // one for each bucket between splitters
};

// A plan for any number of rows.
SplitPlan plan_split(u32 n_rows);

Splitters alias_splitters(TempStorage &storage, const SplitPlan &plan);

// Finds splitters among n_rows keys, which share their first `prefix` bytes.  Fills *splitters, and makes a
// segment of each bucket.
void find_splitters(const SplitPlan &plan, const KeyRef *keys, u32 n_rows, u32 prefix,
                    const Splitters &splitters, const Segments &segments, cudaStream_t stream);

// Makes a word of each row, in which its bucket is the segment, and lists the rows.
void classify_rows(const SplitPlan &plan, const Splitters &splitters, const KeyRef *keys, u32 n_rows,
                   u32 prefix, u32 n_multiprocessors, u64 *words, u32 *rows, cudaStream_t stream);

} // namespace gpusort

#endif // GS_STRINGS_SPLITTERS_CUH
