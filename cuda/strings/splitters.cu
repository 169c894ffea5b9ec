/*-------------------------------------------------------------------------
 *
 * splitters.cu
 *	  Splitters of the string engine, from a sorted sample.
 *
 * The sample has one row at random out of each of n_samples equal parts of all
 * rows.  Each block sorts a piece of it with a merge sort on chip.  Then each
 * sample is searched for in all other pieces, one thread for each pair; the sum
 * of its lower bounds there is its rank.  Every fourth sample (oversampling) is a
 * splitter.
 *
 * Samples are compared by the two words after the prefix, and by their keys only
 * where both words tie.  Equal samples are ranked by piece, then by place, so
 * that ranks are distinct.
 *
 * One thread a splitter prepares what the search needs to know of it, from the sorted
 * splitters alone (classify.cu tells how the search works).
 *
 *-------------------------------------------------------------------------
 */
#include "strings/splitters.cuh"

#include <cub/block/block_merge_sort.cuh>
#include <cub/thread/thread_search.cuh>

#include <cstdlib>

#include "strings/key_compare.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

struct Sample
{
  u64 word;
  u32 number; // within its piece
};

// Greater than all words of keys, whose lowest byte is at most 8.
constexpr Sample no_sample = {~u64{0}, 0};

// Orders the samples of a piece.
struct SampleLess
{
  const u64 *next_words;
  const KeyRef *keys;
  u32 prefix;

  __device__ bool operator()(const Sample &a, const Sample &b) const
  {
    if (a.word != b.word || !goes_on(a.word))
      return a.word < b.word;

    u64 next_a = next_words[a.number];
    u64 next_b = next_words[b.number];

    if (next_a != next_b || !goes_on(next_a))
      return next_a < next_b;
    return compare_keys(keys[a.number], keys[b.number], prefix + 2 * word_bytes).order < 0;
  }
};

// Reads the samples of a piece and sorts them.
template <u32 items>
__global__ void __launch_bounds__(threads)
    sort_pieces(const KeyRef *keys, u32 n_rows, u32 n_samples, u32 prefix, SampleArrays sample)
{
  constexpr u32 piece_rows = threads * items;
  using MergeSort = cub::BlockMergeSort<Sample, threads, items>;

  __shared__ typename MergeSort::TempStorage temp;
  __shared__ u64 next_words[piece_rows];
  __shared__ KeyRef piece_keys[piece_rows];
  const u32 first = blockIdx.x * piece_rows;
  const u32 n = min(piece_rows, n_samples - first);
  Sample samples[items];

#pragma unroll
  for (u32 k = 0; k < items; k++)
  {
    u32 number = k * threads + threadIdx.x;

    samples[k] = no_sample;
    if (number >= n)
      continue;

    KeyRef key = load_key(keys, sample_row(n_rows, n_samples, first + number));

    piece_keys[number] = key;
    samples[k] = {key_word(key, prefix), number};
    next_words[number] = goes_on(samples[k].word) ? key_word(key, prefix + word_bytes) : 0;
  }
  __syncthreads();
  MergeSort(temp).Sort(samples, SampleLess{next_words, piece_keys, prefix});

  // A thread now holds neighbours in order.
#pragma unroll
  for (u32 k = 0; k < items; k++)
  {
    u32 place = threadIdx.x * items + k;

    if (place >= n)
      continue;
    sample.keys[first + place] = piece_keys[samples[k].number];
    sample.words[first + place] = samples[k].word;
    sample.next_words[first + place] = next_words[samples[k].number];
    sample.ranks[first + place] = place;
  }
}

// Adds to each sample's rank its lower bound in another piece, or its upper bound
// in a piece before its own.
__global__ void __launch_bounds__(threads)
    rank_samples(u32 n_samples, u32 piece_rows, u32 prefix, SampleArrays sample)
{
  u32 i = blockIdx.x * threads + threadIdx.x;
  u32 other = blockIdx.y;

  if (i >= n_samples || i / piece_rows == other)
    return;

  bool equal_is_before = other < i / piece_rows;
  u64 word = sample.words[i];
  u64 next_word = sample.next_words[i];
  KeyRef key = load_key(sample.keys, i);
  u32 first = other * piece_rows;
  u32 low = first;
  u32 high = min(first + piece_rows, n_samples);
  u32 shared_low = prefix; // bytes shared with the sample below `low`, and with the one at `high`
  u32 shared_high = prefix;

  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    u64 middle_word = sample.words[middle];
    Comparison comparison = {middle_word < word ? -1 : middle_word > word, prefix};

    if (middle_word == word && goes_on(word))
    {
      u64 middle_next = sample.next_words[middle];

      comparison.order = middle_next < next_word ? -1 : middle_next > next_word;
      if (comparison.order == 0 && goes_on(next_word))
        comparison = compare_keys(load_key(sample.keys, middle), key,
                                  max(prefix + 2 * word_bytes, min(shared_low, shared_high)));
    }
    if (comparison.order < 0 || (comparison.order == 0 && equal_is_before))
    {
      low = middle + 1;
      shared_low = comparison.shared;
    }
    else
    {
      high = middle;
      shared_high = comparison.shared;
    }
  }
  if (low > first)
    atomicAdd(&sample.ranks[i], low - first);
}

// Makes splitters of every fourth sample, in order and as a search tree.
__global__ void __launch_bounds__(threads)
    take_splitters(u32 n_samples, u32 levels, SampleArrays sample, Splitters splitters)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= n_samples)
    return;

  u32 rank = sample.ranks[i];
  u32 splitter = rank / oversampling;

  if (rank % oversampling != oversampling - 1 || splitter >= (1u << levels) - 1)
    return;

  u64 word = sample.words[i];
  u32 height = static_cast<u32>(__ffs(static_cast<int>(splitter + 1))) - 1;

  splitters.keys[splitter] = load_key(sample.keys, i);
  splitters.root[splitter] = word;
  splitters.tree[(1u << (levels - 1 - height)) + ((splitter + 1) >> (height + 1))] = word;
}

// Prepares splitter i for the binary search that follows the tree, among the splitters with
// the same first word.  It is the middle of one interval of these only, whose ends are known
// therefore.
__device__ void prepare_search(const Splitters &splitters, u32 prefix, u32 i, const KeyRef &key)
{
  const u64 word = splitters.root[i];
  const u32 run_end = cub::UpperBound(splitters.root, splitters.n_splitters, word);
  const u32 depth = min(prefix + word_bytes, key.length); // bytes that all of them share
  u32 low = cub::LowerBound(splitters.root, splitters.n_splitters, word);
  u32 high = run_end;
  u32 below = ~0u; // the splitters at the ends of the interval
  u32 above = ~0u;
  Splitter result;

  for (u32 middle; (middle = low + (high - low) / 2) != i;)
    if (middle < i)
    {
      below = middle;
      low = middle + 1;
    }
    else
    {
      above = middle;
      high = middle;
    }

  auto shared_with = [&](u32 other)
  { return other == ~0u ? depth : compare_keys(load_key(splitters.keys, other), key, depth).shared; };

  result.run_end = run_end;
  result.address = key.address;
  result.length = key.length;
  result.lcp_low = shared_with(below);
  result.lcp_high = shared_with(above);
  result.word_low = load_word(key.address + result.lcp_low, key.length - result.lcp_low);
  result.word_high = load_word(key.address + result.lcp_high, key.length - result.lcp_high);
  splitters.search[i] = result;
}

// Where the words of bucket 2i begin, between splitters i - 1 and i.
__device__ BucketStart start_of_bucket(const Splitters &splitters, u32 prefix, u32 i, const KeyRef &key)
{
  BucketStart start = {prefix, 0};

  if (i == 0 || i == splitters.n_splitters)
    return start;

  KeyRef below = load_key(splitters.keys, i - 1);

  start.depth = compare_keys(below, key, prefix).shared;

  u64 diff = load_word(below.address + start.depth, below.length - start.depth) ^
             load_word(key.address + start.depth, key.length - start.depth);

  start.lead = min(7u, static_cast<u32>(__clzll(static_cast<long long>(diff))));
  return start;
}

// Prepares splitter i for the search, and the segments 2i and 2i + 1.
__global__ void __launch_bounds__(threads)
    prepare_splitters(u32 prefix, const __grid_constant__ Splitters splitters, Segments segments)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i > splitters.n_splitters)
    return;

  KeyRef key = i < splitters.n_splitters ? load_key(splitters.keys, i) : KeyRef{};
  BucketStart start = start_of_bucket(splitters, prefix, i, key);

  splitters.starts[i] = start;
  segments.set(2 * i, start.depth, start.lead);
  if (i == splitters.n_splitters)
    return;
  segments.set(2 * i + 1, key.length, equal_keys);
  prepare_search(splitters, prefix, i, key);
}

template <u32 items>
void sort_sample(const KeyRef *keys, u32 n_rows, u32 prefix, u32 n_samples, const SampleArrays &sample,
                 cudaStream_t stream)
{
  constexpr u32 piece_rows = threads * items;
  u32 pieces = blocks_for(n_samples, piece_rows);

  sort_pieces<items><<<pieces, threads, 0, stream>>>(keys, n_rows, n_samples, prefix, sample);
  GS_CUDA_LAUNCHED();
  if (pieces == 1)
    return;
  rank_samples<<<dim3(blocks_for(n_samples, threads), pieces), threads, 0, stream>>>(n_samples, piece_rows,
                                                                                     prefix, sample);
  GS_CUDA_LAUNCHED();
}

} // namespace

SplitPlan plan_split(u32 n_rows)
{
  u32 most_levels = max_levels;
  SplitPlan plan;

#ifdef GPUSORT_FAULTS
  if (getenv("GPUSORT_FAULT_SPLITTERS") != nullptr)
    most_levels = min_levels;
#endif
  plan.levels = min_levels;
  while (plan.levels < most_levels && n_rows >> plan.levels > rows_per_splitter)
    plan.levels++;
  plan.n_samples = oversampling << plan.levels;
  plan.layout.segment_bits = plan.levels + 1;
  plan.layout.key_bits = 64 - count_bits - plan.layout.segment_bits;

  // finish.cu shifts the unsorted bits up by 12 at most, for 4096 entries, so at least 12 bits must be
  // sorted.
  plan.layout.sorted_bits = plan.levels < 16 ? 16 : 24;
  return plan;
}

Splitters alias_splitters(TempStorage &storage, const SplitPlan &plan)
{
  Splitters splitters;
  const u64 n = plan.n_splitters();

  splitters.n_splitters = plan.n_splitters();
  splitters.sample.keys = storage.alias<KeyRef>(plan.n_samples);
  splitters.sample.words = storage.alias<u64>(plan.n_samples);
  splitters.sample.next_words = storage.alias<u64>(plan.n_samples);
  splitters.sample.ranks = storage.alias<u32>(plan.n_samples);
  splitters.keys = storage.alias<KeyRef>(n);
  splitters.root = storage.alias<u64>(n);
  splitters.tree = storage.alias<u64>(n + 1);
  splitters.search = storage.alias<Splitter>(n);
  splitters.starts = storage.alias<BucketStart>(n + 1);
  return splitters;
}

void find_splitters(const SplitPlan &plan, const KeyRef *keys, u32 n_rows, u32 prefix,
                    const Splitters &splitters, const Segments &segments, cudaStream_t stream)
{
  const u32 n_samples = plan.n_samples;

  // Small pieces are sorted sooner, large ones make fewer pairs to rank.
  if (n_samples <= few_samples)
    sort_sample<2>(keys, n_rows, prefix, n_samples, splitters.sample, stream);
  else
    sort_sample<4>(keys, n_rows, prefix, n_samples, splitters.sample, stream);
  take_splitters<<<blocks_for(n_samples, threads), threads, 0, stream>>>(n_samples, plan.levels,
                                                                         splitters.sample, splitters);
  GS_CUDA_LAUNCHED();
  prepare_splitters<<<blocks_for(plan.n_splitters() + 1, threads), threads, 0, stream>>>(prefix, splitters,
                                                                                         segments);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
