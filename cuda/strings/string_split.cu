/*-------------------------------------------------------------------------
 *
 * string_split.cu
 *	  The first words of the string engine: rows classified by splitters.
 *
 * The leading bytes of real keys say little: a million file paths begin with
 * "/usr/share", and rounds that look at seven bytes each move all rows many
 * times.  So the first round's words begin with the number of a bucket found by
 * comparing the key with splitters, which are keys of the sort themselves, at
 * equal distances in a sorted sample, as in Bingmann and Sanders' super scalar
 * string sample sort.  Keys that differ late take a longer search, but no more
 * passes over the rows.
 *
 * Buckets
 *	  Bucket 2i holds the keys between splitters i - 1 and i, and 2i + 1 those
 *	  that equal splitter i; these are done.  Keys between two splitters
 *	  agree in the bytes in which the splitters agree, and in the first bits of
 *	  the next byte.  What follows these is the rest of the word.
 *
 * Search
 *	  A root word is 7 bytes after the prefix of all keys, and the number of
 *	  bytes left or 8.  The splitters' root words lie in shared memory as a
 *	  perfect tree, level by level, so that neighbours in a level lie in
 *	  different banks.  A key whose root word equals none is placed by that.
 *	  If it equals some and the key has ended, the key equals that splitter.
 *	  Otherwise the run of splitters with this root word is searched by words of
 *	  the same kind, which begin behind the bytes that all of the run share; the
 *	  key is compared with one of them in these first.  So on for deeper_levels
 *	  levels, a load of 8 bytes for each step, and most keys are placed then.
 *	  Among the splitters that still agree with a key, a binary search follows
 *	  which never reads a byte of the key twice (Manber and Myers' search in
 *	  suffix arrays): it knows how many bytes the key shares with the splitters
 *	  below and above, and each splitter is at the middle of one interval only,
 *	  so that what it shares with the ends of that is known beforehand.  Only
 *	  where both numbers agree are bytes compared, from there on.
 *
 * Sample
 *	  finish_groups sorts the sample in pieces.  Each sample then finds its rank
 *	  by binary search in the other pieces, one thread a pair: by its root word,
 *	  then the word after it, and only then the keys.
 *
 *-------------------------------------------------------------------------
 */
#include "string_split.cuh"

#include <algorithm>
#include <cstdlib>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 classify_threads = 1024; // a multiprocessor then holds the tree once, and more of the keys
constexpr u32 min_levels = 2;
constexpr u32 max_levels = 17;
constexpr u32 shared_levels = 13; // of the tree in shared memory
constexpr u32 oversampling = 4;
constexpr u32 max_packed_lcp = 0xffff;
constexpr u32 bucket_rows = 900; // on average, while levels last

__device__ __forceinline__ u64 root_word(const KeyRef &key, u32 prefix)
{
  u32 left = key.length - prefix;

  return (load_word(key.address + prefix, left) & ~u64{0xff}) | min(left, 8u);
}

// Rows at random, one in each of n_samples equal parts of all.
__global__ void __launch_bounds__(threads)
    draw_sample(u32 n_rows, u32 n_samples, u32 piece, u32 prefix, u32 *sample, u32 *rank, GroupLists lists)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= n_samples)
    return;

  sample[i] = sample_row(n_rows, n_samples, i);
  rank[i] = i % piece;
  if (i % piece == 0)
  {
    Group group = {i, i, prefix, static_cast<uint16_t>(min(piece, n_samples - i)), 0};

    lists.groups[piece_class][i / piece] = group;
  }
  if (i == 0)
  {
    RoundState state = {};

    state.n_groups[piece_class] = (n_samples + piece - 1) / piece;
    *lists.state = state;
  }
}

// The root words of the samples, and the words after these.
__global__ void __launch_bounds__(threads) read_samples(const KeyRef *keys, u32 n_samples, u32 prefix,
                                                        const u32 *sorted, u64 *words, u64 *next_words)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= n_samples)
    return;

  KeyRef key = load_key(keys, sorted[i]);

  words[i] = root_word(key, prefix);
  next_words[i] = key.length - prefix > 7 ? root_word(key, prefix + 7) : 0;
}

// Adds to each sample's rank what another piece of the sample holds before it.
__global__ void __launch_bounds__(threads)
    rank_samples(const KeyRef *keys, u32 n_samples, u32 piece, u32 prefix, const u32 *sorted,
                 const u64 *words, const u64 *next_words, u32 *rank)
{
  u32 i = blockIdx.x * threads + threadIdx.x;
  u32 other = blockIdx.y;

  if (i >= n_samples || i / piece == other)
    return;

  bool equal_count = other < i / piece;
  u64 word = words[i];
  u64 next_word = next_words[i];
  KeyRef mine = load_key(keys, sorted[i]);
  u32 first = other * piece;
  u32 low = first;
  u32 high = min(first + piece, n_samples);
  u32 shared_low = prefix; // bytes shared with what is below low, and from high on
  u32 shared_high = prefix;

  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    u64 its = words[middle];
    Comparison comparison = {its < word ? -1 : its > word, prefix};

    if (its == word && (word & 0xff) == 8)
    {
      u64 its_next = next_words[middle];

      comparison.order = its_next < next_word ? -1 : its_next > next_word;
      if (comparison.order == 0 && (next_word & 0xff) == 8)
        comparison = compare_keys(load_key(keys, sorted[middle]), mine,
                                  max(prefix + 14, min(shared_low, shared_high)));
    }
    if (comparison.order < 0 || (comparison.order == 0 && equal_count))
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
    atomicAdd(&rank[i], low - first);
}

// Takes every so manieth sample for a splitter.
__global__ void __launch_bounds__(threads)
    take_splitters(u32 n_samples, u32 levels, const u32 *sorted, const u64 *words, const u32 *rank,
                   u32 *splitter_rows, u64 *root, u64 *tree)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= n_samples)
    return;

  u32 at = rank[i];
  u32 splitter = at / oversampling;

  if (at % oversampling != oversampling - 1 || splitter >= (1u << levels) - 1)
    return;

  u64 word = words[i];
  u32 trailing = static_cast<u32>(__ffs(static_cast<int>(splitter + 1))) - 1;

  splitter_rows[splitter] = sorted[i];
  root[splitter] = word;
  tree[(1u << (levels - 1 - trailing)) + ((splitter + 1) >> (trailing + 1))] = word;
}

// The splitters of [begin, end) whose words equal that of splitter i, which is
// one of these.  Most such runs are short.
__device__ void find_run(const u64 *words, u32 i, u32 *begin, u32 *end)
{
  u64 word = words[i];
  u32 inside = i;
  u32 outside = *end;

  for (u32 step = 1; inside + step < outside; step *= 2)
    if (words[inside + step] == word)
      inside += step;
    else
      outside = inside + step;
  while (outside - inside > 1)
  {
    u32 middle = inside + (outside - inside) / 2;

    if (words[middle] == word)
      inside = middle;
    else
      outside = middle;
  }
  *end = outside;

  u32 least = *begin; // what may be inside

  inside = i;
  for (u32 step = 1; least + step <= inside; step *= 2)
    if (words[inside - step] == word)
      inside -= step;
    else
      least = inside - step + 1;
  while (inside > least)
  {
    u32 middle = least + (inside - least) / 2;

    if (words[middle] == word)
      inside = middle;
    else
      least = middle + 1;
  }
  *begin = inside;
}

// The run of splitter i after the root and `levels` levels; its depth is in how
// many bytes the run agrees with a key that the search has led there.
__device__ Run run_after(const Deeper &deeper, u32 levels, const u64 *root, u32 prefix, u32 i)
{
  Run run = {0, deeper.n_splitters, prefix, 0};
  const u64 *words = root;

  if (levels > 0)
  {
    const u32 level = (levels - 1) * deeper.n_splitters;

    run = deeper.runs[level + i];
    words = deeper.words + level;
  }
  find_run(words, i, &run.begin, &run.end);
  run.depth += 7;
  return run;
}

// Makes a level from the one before.
__global__ void __launch_bounds__(threads)
    prepare_level(const KeyRef *keys, u32 prefix, const u32 *rows, const u64 *root, Deeper deeper, u32 level)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i >= deeper.n_splitters)
    return;

  KeyRef key = load_key(keys, rows[i]);
  Run run = run_after(deeper, level, root, prefix, i);

  // Keys that have ended before are all equal, and no search comes there.
  run.depth = min(run.depth, key.length);
  if (run.end - run.begin > 1)
    run.depth =
        compare_keys(load_key(keys, rows[run.begin]), load_key(keys, rows[run.end - 1]), run.depth).shared;
  deeper.runs[level * deeper.n_splitters + i] = run;
  deeper.words[level * deeper.n_splitters + i] = root_word(key, run.depth);
}

// Prepares splitter i for the search, and the segments 2i and 2i + 1.
__global__ void __launch_bounds__(threads)
    prepare_splitters(const KeyRef *keys, u32 n_splitters, u32 prefix, const u32 *rows, const u64 *root,
                      Deeper deeper, Splitter *splitters, u32 *packed_lcps, Start *starts, Segments segments)
{
  u32 i = blockIdx.x * threads + threadIdx.x;

  if (i > n_splitters)
    return;

  Start start = {prefix, 0};
  KeyRef key = {};

  if (i < n_splitters)
    key = load_key(keys, rows[i]);
  if (i > 0 && i < n_splitters)
  {
    KeyRef below = load_key(keys, rows[i - 1]);

    start.depth = compare_keys(below, key, prefix).shared;

    u64 diff = load_word(below.address + start.depth, below.length - start.depth) ^
               load_word(key.address + start.depth, key.length - start.depth);

    start.lead = min(7u, static_cast<u32>(__clzll(static_cast<long long>(diff))));
  }
  starts[i] = start;
  segments.place[2 * i] = 0;
  segments.slot[2 * i] = 0;
  segments.depth[2 * i] = start.depth;
  segments.skip[2 * i] = 0;
  segments.lead[2 * i] = start.lead;
  if (i == n_splitters)
    return;
  segments.place[2 * i + 1] = 0;
  segments.slot[2 * i + 1] = 0;
  segments.depth[2 * i + 1] = key.length;
  segments.skip[2 * i + 1] = 0;
  segments.lead[2 * i + 1] = equal_keys;

  // The interval whose middle this splitter is.
  Run run = run_after(deeper, deeper_levels, root, prefix, i);
  u32 low = run.begin;
  u32 high = run.end;
  u32 at_least = min(run.depth, key.length);
  u32 below = ~0u;
  u32 above = ~0u;
  Splitter result;

  for (;;)
  {
    u32 middle = low + (high - low) / 2;

    if (middle == i)
      break;
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
  }

  result.run_end = run.end;
  result.address = key.address;
  result.length = key.length;
  result.lcp_low = below == ~0u ? at_least : compare_keys(load_key(keys, rows[below]), key, at_least).shared;
  result.lcp_high = above == ~0u ? at_least : compare_keys(load_key(keys, rows[above]), key, at_least).shared;
  result.word_low = load_word(key.address + result.lcp_low, key.length - result.lcp_low);
  result.word_high = load_word(key.address + result.lcp_high, key.length - result.lcp_high);
  splitters[i] = result;
  packed_lcps[i] = min(result.lcp_low, max_packed_lcp) | min(result.lcp_high, max_packed_lcp) << 16;
}

// Searches the splitters [low, high), which share so many bytes with the key,
// which has not ended there.  Returns the key's bucket.
__device__ __forceinline__ u32 search_run(const Splitter *splitters, const u32 *packed_lcps, u32 low,
                                          u32 high, const KeyRef &key, u32 shared)
{
  u32 shared_low = shared; // with the splitter below, and above
  u32 shared_high = shared;

  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    bool by_low = shared_low >= shared_high;
    u32 known = by_low ? shared_low : shared_high;
    u32 lcps = __ldg(packed_lcps + middle);
    u32 lcp = by_low ? lcps & max_packed_lcp : lcps >> 16;

    if (lcp == max_packed_lcp)
      lcp = by_low ? splitters[middle].lcp_low : splitters[middle].lcp_high;

    if (lcp > known)
    {
      // It agrees with that end further than the key does.
      if (by_low)
        low = middle + 1;
      else
        high = middle;
      continue;
    }
    if (lcp < known)
    {
      if (by_low)
      {
        high = middle;
        shared_high = lcp;
      }
      else
      {
        low = middle + 1;
        shared_low = lcp;
      }
      continue;
    }

    const Splitter &splitter = splitters[middle];
    u32 left = key.length - known;
    u64 mine = load_word(key.address + known, left);
    u64 its = by_low ? splitter.word_low : splitter.word_high;
    u32 its_left = splitter.length - known;
    int order;

    if (mine != its)
    {
      order = mine < its ? -1 : 1;
      known += min(min(left, its_left), static_cast<u32>(__clzll(static_cast<long long>(mine ^ its))) / 8);
    }
    else
    {
      KeyRef other = {splitter.address, splitter.length, 0};
      Comparison comparison = compare_keys(key, other, known + min(8u, min(left, its_left)));

      order = comparison.order;
      known = comparison.shared;
    }
    if (order == 0)
      return 2 * middle + 1;
    if (order > 0)
    {
      low = middle + 1;
      shared_low = known;
    }
    else
    {
      high = middle;
      shared_high = known;
    }
  }
  return 2 * low;
}

// Goes on where the root words of a key and of some splitters, of which `low` is
// the first, are equal and the key has not ended.  Returns the key's bucket.
__device__ __forceinline__ u32 search_deeper(const Deeper &deeper, const Splitter *splitters,
                                             const u32 *packed_lcps, u32 low, const KeyRef &key, u32 shared)
{
#pragma unroll 1
  for (u32 level = 0; level < deeper_levels; level++)
  {
    const u32 first = level * deeper.n_splitters;
    int4 run = __ldg(reinterpret_cast<const int4 *>(deeper.runs + first + low));
    u32 end = static_cast<u32>(run.y);
    u32 depth = static_cast<u32>(run.z);
    const u64 *words = deeper.words + first;

    if (depth > shared)
    {
      KeyRef other = {splitters[low].address, splitters[low].length, 0};
      Comparison comparison = compare_keys(key, other, shared, depth);

      if (comparison.shared < depth)
        return 2 * (comparison.order < 0 ? low : end);
    }

    u64 word = root_word(key, depth);
    u32 high = end;

    while (low < high)
    {
      u32 middle = low + (high - low) / 2;

      if (__ldg(words + middle) < word)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == end || __ldg(words + low) != word)
      return 2 * low;
    if ((word & 0xff) < 8)
      return 2 * low + 1;
    shared = depth + 7;
  }
  return search_run(splitters, packed_lcps, low, splitters[low].run_end, key, shared);
}

__global__ void __launch_bounds__(classify_threads)
    classify_rows(const KeyRef *keys, u32 n_rows, u32 prefix, u32 levels, Shape shape, const u64 *tree,
                  const Splitter *splitters, Deeper deeper, const u32 *packed_lcps, const Start *starts,
                  u64 *words, u32 *rows)
{
  extern __shared__ u64 root_tree[];

  const u32 shared = min(levels, shared_levels);
  const u64 stride = u64{gridDim.x} * classify_threads;
  u64 at = u64{blockIdx.x} * classify_threads + threadIdx.x;
  KeyRef next = {};

  if (at < n_rows)
    next = load_key(keys, static_cast<u32>(at));
  for (u32 i = threadIdx.x + 1; i < 1u << shared; i += classify_threads)
    root_tree[i] = tree[i];
  __syncthreads();

  for (; at < n_rows; at += stride)
  {
    KeyRef key = next;
    u64 word = root_word(key, prefix);
    u32 node = 1;

    if (at + stride < n_rows)
      next = load_key(keys, static_cast<u32>(at + stride));
    for (u32 level = 0; level < shared; level++)
      node = 2 * node + (root_tree[node] < word);
    for (u32 level = shared; level < levels; level++)
      node = 2 * node + (__ldg(tree + node) < word);

    u32 place = node - (1u << levels);
    u32 not_less = node >> __ffs(static_cast<int>(~node)); // the last node that was not less
    u32 bucket = 2 * place;

    if (not_less > 0 && (not_less < 1u << shared ? root_tree[not_less] : __ldg(tree + not_less)) == word)
    {
      if ((word & 0xff) < 8)
        bucket = 2 * place + 1;
      else
        bucket = search_deeper(deeper, splitters, packed_lcps, place, key, prefix + 7);
    }

    u64 bytes = 0;
    u32 lead = 0;
    u32 left = 0;

    // The keys of odd buckets are equal.
    if (bucket % 2 == 0)
    {
      u64 start = __ldg(reinterpret_cast<const u64 *>(starts + bucket / 2));
      u32 depth = static_cast<u32>(start);

      lead = static_cast<u32>(start >> 32);
      left = key.length - depth;
      bytes = load_word(key.address + depth, left);
    }
    words[at] = shape.make_word(bucket, bytes, lead, left);
    rows[at] = static_cast<u32>(at);
  }
}

} // namespace

SplitPlan plan_split(u32 n_rows)
{
  SplitPlan plan;
  u32 levels = max_levels;

#ifdef GPUSORT_FAULTS
  if (getenv("GPUSORT_FAULT_SPLITTERS") != nullptr)
    levels = min_levels;
#endif
  plan.levels = min_levels;
  while (plan.levels < levels && n_rows >> plan.levels > bucket_rows)
    plan.levels++;
  plan.n_samples = oversampling << plan.levels;
  plan.shape.segment_bits = plan.levels + 1;
  plan.shape.key_bits = 64 - count_bits - plan.shape.segment_bits;
  plan.shape.sorted_bits = plan.levels < 16 ? 16 : 24;
  return plan;
}

SplitWorkspace carve_split(Carver &carve, const SplitPlan &plan)
{
  SplitWorkspace space;

  space.sample = carve.take<u32>(plan.n_samples);
  space.rank = carve.take<u32>(plan.n_samples);
  space.words = carve.take<u64>(plan.n_samples);
  space.next_words = carve.take<u64>(plan.n_samples);
  space.rows = carve.take<u32>(plan.n_splitters());
  space.root = carve.take<u64>(plan.n_splitters());
  space.tree = carve.take<u64>(plan.n_splitters() + 1);
  space.splitters = carve.take<Splitter>(plan.n_splitters());
  space.packed_lcps = carve.take<u32>(plan.n_splitters());
  space.starts = carve.take<Start>(plan.n_splitters() + 1);
  space.deeper.n_splitters = plan.n_splitters();
  space.deeper.runs = carve.take<Run>(u64{deeper_levels} * plan.n_splitters());
  space.deeper.words = carve.take<u64>(u64{deeper_levels} * plan.n_splitters());
  return space;
}

void split_rows(const SplitPlan &plan, const KeyRef *keys, u32 n_rows, u32 prefix, const FinishLimits &limits,
                const SplitWorkspace &space, const GroupLists &lists, const Segments &segments, u64 *words,
                u32 *rows, u32 *order, u8 *tie, cudaStream_t stream)
{
  u32 n_samples = plan.n_samples;
  u32 n_splitters = plan.n_splitters();
  u32 piece = std::min(n_samples, piece_rows);
  u32 pieces = blocks_for(n_samples, piece);
  u32 sample_blocks = blocks_for(n_samples, threads);
  Shape whole = {0, 64 - count_bits, 64};
  SortedRows sample = {keys, words, space.sample, n_samples, whole, order, tie};

  draw_sample<<<sample_blocks, threads, 0, stream>>>(n_rows, n_samples, piece, prefix, space.sample,
                                                     space.rank, lists);
  GS_CUDA_LAUNCHED();
  finish_class(sample, lists, piece_class, limits, stream);
  read_samples<<<sample_blocks, threads, 0, stream>>>(keys, n_samples, prefix, order, space.words,
                                                      space.next_words);
  GS_CUDA_LAUNCHED();
  if (pieces > 1)
  {
    rank_samples<<<dim3(sample_blocks, pieces), threads, 0, stream>>>(
        keys, n_samples, piece, prefix, order, space.words, space.next_words, space.rank);
    GS_CUDA_LAUNCHED();
  }
  take_splitters<<<sample_blocks, threads, 0, stream>>>(n_samples, plan.levels, order, space.words,
                                                        space.rank, space.rows, space.root, space.tree);
  GS_CUDA_LAUNCHED();
  for (u32 level = 0; level < deeper_levels; level++)
  {
    prepare_level<<<blocks_for(n_splitters, threads), threads, 0, stream>>>(keys, prefix, space.rows,
                                                                            space.root, space.deeper, level);
    GS_CUDA_LAUNCHED();
  }
  prepare_splitters<<<blocks_for(n_splitters + 1, threads), threads, 0, stream>>>(
      keys, n_splitters, prefix, space.rows, space.root, space.deeper, space.splitters, space.packed_lcps,
      space.starts, segments);
  GS_CUDA_LAUNCHED();

  // The attribute is the kernel's, not the launch's: all threads that sort must set it alike.
  constexpr int most_bytes = sizeof(u64) << shared_levels;
  int bytes = static_cast<int>(sizeof(u64) << std::min(plan.levels, shared_levels));
  int blocks_each = 0;

  GS_CUDA_TRY(cudaFuncSetAttribute(classify_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes));
  GS_CUDA_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, classify_rows, classify_threads, bytes));

  u32 blocks = std::min(limits.n_multiprocessors * static_cast<u32>(std::max(blocks_each, 1)),
                        blocks_for(n_rows, classify_threads));

  classify_rows<<<blocks, classify_threads, bytes, stream>>>(keys, n_rows, prefix, plan.levels, plan.shape,
                                                             space.tree, space.splitters, space.deeper,
                                                             space.packed_lcps, space.starts, words, rows);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
