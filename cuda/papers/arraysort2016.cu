/*-------------------------------------------------------------------------
 *
 * arraysort2016.cu
 *	  GPU-ArraySort: splitters, buckets, insertion sort, after Awan and Saeed.
 *
 * M. Awan, F. Saeed: GPU-ArraySort: A parallel, in-place algorithm for sorting
 * large number of arrays.  2016.
 *
 * Three kernels (section 4), a block for each array, which is sorted in place.
 * An array of n elements has p = n / 20 buckets (definition 2).
 *	  Splitters (5.1, algorithm 1): a regular sample of a tenth of the array is
 *		brought to shared memory; one thread sorts it by insertion and takes
 *		p - 1 splitters at regular intervals.
 *	  Buckets (5.2, algorithm 2): p threads; each has a pair of neighbouring
 *		splitters, goes over the whole array in shared memory, and finds the
 *		elements between them.  From the sizes of the buckets, which are kept in
 *		memory, follows where in the array each thread writes its elements.
 *	  Sorting (5.3, algorithm 3): p threads; each sorts its bucket by insertion.
 *
 * Corrections, where the printed algorithm does not sort:
 *	  - algorithm 1 takes splitters from the unsorted array, A[sampleIndex]; the
 *		text says that they come from the sorted samples;
 *	  - algorithm 2 keeps what is strictly between two splitters, and so loses
 *		elements equal to one: here the lower bound belongs to the bucket;
 *	  - its additional splitters, "smaller than the smallest value" and "larger
 *		than the largest", need not exist in the type: the first bucket has no
 *		lower bound here, the last one no upper bound;
 *	  - p is 0 for arrays of fewer than 20 elements: here it is 1 at least.
 * Algorithm 2 does not say how large a thread's bucket[] must be.  Threads go over
 * the array twice here, to count and to write.  In the third kernel buckets are
 * sorted in shared memory (section 3.3), which is to the algorithm's advantage.
 *
 * Arrays must fit into shared memory: 8192 elements of 4 bytes, fewer of larger
 * ones.  The work is n * p comparisons an array, so it grows with n * n.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <algorithm>

#include "arrays/classes.cuh"

namespace gpusort
{

namespace
{

constexpr u32 bucket_elements = 20;
constexpr u32 sample_stride = 10; // a tenth
constexpr u32 splitter_threads = 64;

template <typename Code>
constexpr u32 most_buckets = Classes<Code>::capacity / bucket_elements;

// Splitters of each array, and sizes of its buckets.  Arrays do not overlap, so an
// array's begin at a twentieth of its first element's number.
template <typename Code>
struct BucketMemory
{
  Code *splitters;
  u32 *sizes;
  u64 bytes;

  BucketMemory(void *workspace, u32 elem_bytes, const ArrayCensus &census)
  {
    TempStorage storage(workspace);
    u64 n = census.end / elem_bytes / bucket_elements + 1;

    splitters = storage.alias<Code>(n);
    sizes = storage.alias<u32>(n);
    bytes = storage.bytes();
  }
};

__device__ __forceinline__ u32 buckets_of(u32 n)
{
  return max(n / bucket_elements, 1u);
}

__device__ __forceinline__ u64 buckets_at(const ArraySpan &span, u32 elem_bytes)
{
  return span.offset / elem_bytes / bucket_elements;
}

template <typename Code>
__device__ __forceinline__ void insertion_sort(Code *codes, u32 n)
{
  for (u32 i = 1; i < n; i++)
  {
    Code code = codes[i];
    u32 j = i;

    for (; j > 0 && code < codes[j - 1]; j--)
      codes[j] = codes[j - 1];
    codes[j] = code;
  }
}

// The sum of the values of the threads before this one.  The number of threads is not
// constant, so cub::BlockScan does not fit.
__device__ __forceinline__ u32 exclusive_sum(u32 value, u32 *sums)
{
  u32 t = threadIdx.x;

  sums[t] = value;
  __syncthreads();
  for (u32 d = 1; d < blockDim.x; d *= 2)
  {
    u32 other = t >= d ? sums[t - d] : 0;

    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  return sums[t] - value;
}

template <typename Code>
__global__ void __launch_bounds__(splitter_threads)
    pick_splitters(ClassList list, CodeMap map, BucketMemory<Code> memory)
{
  __shared__ Code samples[Classes<Code>::capacity / sample_stride + 1];

  for (u64 i = blockIdx.x; i < list.n; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);
    u32 n_samples = span.length / sample_stride;
    u32 p = buckets_of(span.length);

    __syncthreads();
    for (u32 k = threadIdx.x; k < n_samples; k += splitter_threads)
      load_code(list.data + span.offset, k * sample_stride, map, &samples[k]);
    __syncthreads();
    if (threadIdx.x == 0 && p > 1)
    {
      Code *splitters = memory.splitters + buckets_at(span, map.bytes);
      u32 stride = n_samples / p;

      insertion_sort(samples, n_samples);
      for (u32 s = 1; s < p; s++)
        splitters[s - 1] = samples[s * stride];
    }
  }
}

template <typename Code>
__global__ void fill_buckets(ClassList list, CodeMap map, BucketMemory<Code> memory)
{
  __shared__ Code codes[Classes<Code>::capacity];
  __shared__ u32 sums[most_buckets<Code> + warp_size];

  for (u64 i = blockIdx.x; i < list.n; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);
    char *array = list.data + span.offset;
    u32 p = buckets_of(span.length);
    u32 b = threadIdx.x;
    const Code *splitters = memory.splitters + buckets_at(span, map.bytes);
    u32 size = 0;

    if (span.length <= 1)
      continue;
    __syncthreads();
    for (u32 k = threadIdx.x; k < span.length; k += blockDim.x)
      load_code(array, k, map, &codes[k]);
    __syncthreads();

    bool working = b < p;
    bool first = b == 0;
    bool last = b + 1 >= p;
    Code low = working && !first ? splitters[b - 1] : highest_code<Code>();
    Code high = working && !last ? splitters[b] : highest_code<Code>();

    if (working)
      for (u32 k = 0; k < span.length; k++)
        size += (first || !(codes[k] < low)) && (last || codes[k] < high);

    u32 at = exclusive_sum(size, sums);

    if (working)
    {
      if (p > 1)
        memory.sizes[buckets_at(span, map.bytes) + b] = size;
      for (u32 k = 0; k < span.length; k++)
        if ((first || !(codes[k] < low)) && (last || codes[k] < high))
          store_code(array, at++, map, codes[k]);
    }
  }
}

template <typename Code>
__global__ void sort_buckets(ClassList list, CodeMap map, BucketMemory<Code> memory)
{
  __shared__ Code codes[Classes<Code>::capacity];
  __shared__ u32 sums[most_buckets<Code> + warp_size];

  for (u64 i = blockIdx.x; i < list.n; i += gridDim.x)
  {
    ArraySpan span = load_span(list.spans, i);
    char *array = list.data + span.offset;
    u32 p = buckets_of(span.length);
    u32 b = threadIdx.x;

    if (span.length <= 1)
      continue;
    __syncthreads();
    for (u32 k = threadIdx.x; k < span.length; k += blockDim.x)
      load_code(array, k, map, &codes[k]);

    u32 size = b >= p ? 0 : p > 1 ? memory.sizes[buckets_at(span, map.bytes) + b] : span.length;
    u32 at = exclusive_sum(size, sums);

    insertion_sort(codes + at, size);
    __syncthreads();
    for (u32 k = threadIdx.x; k < span.length; k += blockDim.x)
      store_code(array, k, map, codes[k]);
  }
}

template <typename Code>
void run(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  BucketMemory<Code> memory(workspace, gs_elem_bytes(job.elem), census);
  CodeMap map = code_map(job.elem, job.descending);
  ClassList list = {job.spans, job.n_arrays, job.data};
  u32 blocks = grid_for(job.n_arrays, 1);
  u32 threads = align_up(std::max(census.longest / bucket_elements, 1u), u32{warp_size});

  pick_splitters<Code><<<blocks, splitter_threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  fill_buckets<Code><<<blocks, threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
  sort_buckets<Code><<<blocks, threads, 0, stream>>>(list, map, memory);
  GS_CUDA_LAUNCHED();
}

} // namespace

bool arraysort2016_fits(GsElem elem, const ArrayCensus &census)
{
  return with_code(elem, [&](auto code) { return census.longest <= Classes<decltype(code)>::capacity; });
}

u64 arraysort2016_workspace(GsElem elem, const ArrayCensus &census)
{
  return with_code(elem, [&](auto code)
                   { return BucketMemory<decltype(code)>(nullptr, gs_elem_bytes(elem), census).bytes; });
}

void arraysort2016(const ArrayJob &job, const ArrayCensus &census, void *workspace, cudaStream_t stream)
{
  with_code(job.elem, [&](auto code) { run<decltype(code)>(job, census, workspace, stream); });
}

} // namespace gpusort
