/*-------------------------------------------------------------------------
 *
 * classify.cu
 *	  The first words of the string engine: rows classified by splitters.
 *
 * The leading bytes of real keys say little: a million file paths begin with
 * "/usr/share", and rounds that look at seven bytes each move all rows many
 * times.  So the first round's words begin with the number of a bucket, found by
 * comparing the key with splitters, as in Bingmann and Sanders' super scalar
 * string sample sort.  Keys that differ late take a longer search, but no more
 * passes over the rows.
 *
 * Buckets
 *	  Bucket 2i holds the keys between splitters i - 1 and i, bucket 2i + 1 the
 *	  keys that equal splitter i; these are done.  The keys between two splitters
 *	  agree in the bytes in which the splitters agree, and in the first bits of
 *	  the next byte.  The bits after these are the rest of the word.
 *
 * Search
 *	  1. By the key's first word in a perfect tree of the splitters' first words.
 *	     It lies in shared memory level by level, so that neighbours in a level lie
 *	     in different banks.  A key whose word equals none is placed by that, and
 *	     one that equals a splitter's and does not go on equals the splitter.
 *	  2. Else by a binary search among the splitters that have this word, which reads no byte
 *	     of the key twice (Manber and Myers' search in suffix arrays).  It knows how
 *	     many bytes the key shares with the splitters at both ends of the interval.
 *	     A splitter is the middle of one interval only, and splitters.cu counts how many
 *	     bytes it shares with the ends.  Bytes are compared only where both numbers
 *	     agree.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/splitters.cuh"

#include <algorithm>

#include "strings/key_compare.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 1024; // a multiprocessor then holds the tree once or twice

// Step 2: searches the splitters [low, high), which share `depth` bytes with the
// key, which goes on after them.  Returns its bucket.
__device__ __forceinline__ u32 search_run(const Splitters &splitters, u32 low, u32 high, const KeyRef &key,
                                          u32 depth)
{
  u32 shared_low = depth;  // bytes shared with the splitter below the interval
  u32 shared_high = depth; // and with the one above it

  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    bool by_low = shared_low >= shared_high;
    u32 shared = by_low ? shared_low : shared_high;
    const Splitter &splitter = splitters.search[middle];
    u32 lcp = by_low ? splitter.lcp_low : splitter.lcp_high;

    // The splitter agrees with that end further than the key does, or less far.
    if (lcp != shared)
    {
      bool goes_up = (lcp > shared) == by_low;

      if (goes_up)
      {
        low = middle + 1;
        shared_low = lcp > shared ? shared_low : lcp;
      }
      else
      {
        high = middle;
        shared_high = lcp > shared ? shared_high : lcp;
      }
      continue;
    }

    u32 left = key.length - shared;
    u32 splitter_left = splitter.length - shared;
    u64 word = load_word(key.address + shared, left);
    u64 splitter_word = by_low ? splitter.word_low : splitter.word_high;
    int order;

    if (word != splitter_word)
    {
      order = word < splitter_word ? -1 : 1;
      shared += min(min(left, splitter_left), equal_bytes(word ^ splitter_word));
    }
    else
    {
      KeyRef other = {splitter.address, splitter.length, 0};
      Comparison comparison = compare_keys(key, other, shared + min(8u, min(left, splitter_left)));

      order = comparison.order;
      shared = comparison.shared;
    }
    if (order == 0)
      return 2 * middle + 1;
    if (order > 0)
    {
      low = middle + 1;
      shared_low = shared;
    }
    else
    {
      high = middle;
      shared_high = shared;
    }
  }
  return 2 * low;
}

// Step 1: the tree, whose upper levels lie in shared memory.  Returns the key's bucket.
__device__ __forceinline__ u32 find_bucket(const Splitters &splitters, const u64 *upper_tree, u32 levels,
                                           const KeyRef &key, u32 prefix)
{
  const u32 upper_levels = min(levels, tree_levels_on_chip);
  const u64 word = key_word(key, prefix);
  u32 node = 1;

  for (u32 level = 0; level < upper_levels; level++)
    node = 2 * node + (upper_tree[node] < word);
  for (u32 level = upper_levels; level < levels; level++)
    node = 2 * node + (__ldg(splitters.tree + node) < word);

  u32 splitter = node - (1u << levels);
  u32 lower_bound = node >> __ffs(static_cast<int>(~node)); // the last node that was not less, 0 for none

  if (lower_bound == 0 || (lower_bound < 1u << upper_levels ? upper_tree[lower_bound]
                                                            : __ldg(splitters.tree + lower_bound)) != word)
    return 2 * splitter;
  if (!goes_on(word))
    return 2 * splitter + 1;
  return search_run(splitters, splitter, splitters.search[splitter].run_end, key, prefix + word_bytes);
}

// Reads the upper levels of the tree into shared memory, for find_bucket().
__device__ __forceinline__ void load_upper_tree(const Splitters &splitters, u32 levels, u64 *upper_tree)
{
  for (u32 i = threadIdx.x + 1; i < 1u << min(levels, tree_levels_on_chip); i += threads)
    upper_tree[i] = splitters.tree[i];
}

// The word of a row of a bucket.
__device__ __forceinline__ u64 bucket_word(const Splitters &splitters, const WordLayout &layout, u32 bucket,
                                           const KeyRef &key)
{
  // The keys of odd buckets are equal.
  if (bucket % 2 != 0)
    return layout.make_word(bucket, 0, 0, 0);

  u64 start = __ldg(reinterpret_cast<const u64 *>(splitters.starts + bucket / 2));
  u32 depth = static_cast<u32>(start);
  u32 lead = static_cast<u32>(start >> 32);
  u32 left = key.length - depth;

  return layout.make_word(bucket, load_word(key.address + depth, left), lead, left);
}

__global__ void __launch_bounds__(threads)
    make_words(const KeyRef *keys, u32 n_rows, u32 prefix, u32 levels, WordLayout layout,
               const __grid_constant__ Splitters splitters, u64 *words, u32 *rows)
{
  extern __shared__ u64 upper_tree[];

  const u64 stride = u64{gridDim.x} * threads;
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;
  KeyRef next = {};

  if (at < n_rows)
    next = load_key(keys, static_cast<u32>(at));
  load_upper_tree(splitters, levels, upper_tree);
  __syncthreads();

  for (; at < n_rows; at += stride)
  {
    KeyRef key = next;

    // The next row's key is loaded while this one's bucket is searched.
    if (at + stride < n_rows)
      next = load_key(keys, static_cast<u32>(at + stride));
    words[at] = bucket_word(splitters, layout, find_bucket(splitters, upper_tree, levels, key, prefix), key);
    rows[at] = static_cast<u32>(at);
  }
}

} // namespace

void classify_rows(const SplitPlan &plan, const Splitters &splitters, const KeyRef *keys, u32 n_rows,
                   u32 prefix, u32 n_multiprocessors, u64 *words, u32 *rows, cudaStream_t stream)
{
  // The attribute is the kernel's, not the launch's: all threads that sort must set it alike.
  constexpr int max_bytes = sizeof(u64) << tree_levels_on_chip;
  int bytes = static_cast<int>(sizeof(u64) << std::min(plan.levels, tree_levels_on_chip));
  int blocks_each = 0;

  GS_CUDA_TRY(cudaFuncSetAttribute(make_words, cudaFuncAttributeMaxDynamicSharedMemorySize, max_bytes));
  GS_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, make_words, threads, bytes));

  u32 blocks =
      std::min(n_multiprocessors * static_cast<u32>(std::max(blocks_each, 1)), blocks_for(n_rows, threads));

  make_words<<<blocks, threads, bytes, stream>>>(keys, n_rows, prefix, plan.levels, plan.layout, splitters,
                                                 words, rows);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
