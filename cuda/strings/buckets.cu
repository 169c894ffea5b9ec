/*-------------------------------------------------------------------------
 *
 * buckets.cu
 *	  The groups of a first round of few rows: its buckets.
 *
 * Many rows are sorted by their buckets and some bits more, and a pass over the words
 * finds groups of all sizes (groups.cu).  Of few rows that pass would take longer than
 * what it saves: they are sorted by their buckets alone, each of which is a group
 * that one block sorts.  So all that is left to find is where buckets begin.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/buckets.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

// Finds where buckets begin, empty ones at the next one's place, and settles the rows
// of those that hold equal keys.
__global__ void __launch_bounds__(threads)
    mark_buckets(const __grid_constant__ SortedRows in, u32 n_buckets, u32 *begins)
{
  const u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= in.live)
    return;

  const u32 bucket = in.layout.segment_of(in.words[i]);
  const u32 next_unmarked = i == 0 ? 0 : in.layout.segment_of(in.words[i - 1]) + 1;

  for (u32 b = next_unmarked; b <= bucket; b++)
    begins[b] = i;
  if (i + 1 == in.live)
    for (u32 b = bucket + 1; b <= n_buckets; b++)
      begins[b] = in.live;

  // The keys of odd buckets are equal.
  if (bucket % 2 != 0)
  {
    in.order[i] = in.rows[i];
    in.tie[i] = next_unmarked > bucket;
  }
}

// Puts out the buckets between splitters, which are the even ones; one thread for each.
__global__ void __launch_bounds__(threads)
    put_out_buckets(const __grid_constant__ SortedRows in, u32 n_buckets,
                    const __grid_constant__ Segments segments, const u32 *begins,
                    const __grid_constant__ GroupOutput output)
{
  const u32 bucket = 2 * (blockIdx.x * threads + threadIdx.x);

  if (bucket >= n_buckets)
    return;

  const u32 begin = begins[bucket];
  const u32 size = begins[bucket + 1] - begin;
  const u32 depth = segments.depth[bucket];
  const u32 lead = segments.lead[bucket];

  if (size == 1)
  {
    in.order[begin] = in.rows[begin];
    in.tie[begin] = 0;
  }
  else if (size > output.max_rows)
    make_segment(output, in.layout, begin, begin, size, depth, lead);
  else if (size > 1)
    list_group(output.lists, {begin, begin, depth + in.layout.advance(lead), static_cast<uint16_t>(size),
                              static_cast<uint16_t>(in.layout.chars(lead))});
}

} // namespace

void find_bucket_groups(const SortedRows &in, u32 n_buckets, const Segments &segments, u32 *begins,
                        const GroupOutput &output, cudaStream_t stream)
{
  mark_buckets<<<blocks_for(in.live, threads), threads, 0, stream>>>(in, n_buckets, begins);
  GS_CUDA_LAUNCHED();
  put_out_buckets<<<blocks_for(n_buckets / 2 + 1, threads), threads, 0, stream>>>(in, n_buckets, segments,
                                                                                  begins, output);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
