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
 * search.cuh tells how a bucket is found.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/classify.cuh"

#include <algorithm>

#include "strings/search.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 1024; // a multiprocessor then holds the tree once or twice

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
  load_upper_tree<threads>(splitters, levels, upper_tree);
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
