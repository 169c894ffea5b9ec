/*-------------------------------------------------------------------------
 *
 * choose.cu
 *	  Whether the first words of the keys alone separate the rows.
 *
 * Their bytes do for random keys, hashes and most numbers, a code of their bytes
 * (code.cu) for many more.  Then splitters would tell little that the bits
 * themselves do not.  A sample tells: we count how many pairs of its words agree in
 * their first 16, 24, ... bits, without the words that sorting by these bits
 * settles.  If all rows were grouped by so many bits, the group of a row would have
 * an expected n_rows * pairs / (all pairs of the sample) rows.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/choose.cuh"

#include <cub/block/block_reduce.cuh>

#include <cstdlib>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 pair_threads = 1024;
constexpr u32 n_slots = 6000; // of a hash table with max_probes keys

// Words to try, and how many rows a group may be expected to have.
struct Trial
{
  bool coded;
  u32 bits;
  u32 max_expected;
};

constexpr u32 n_trials = 7;

struct Trials
{
  Trial list[n_trials];
};

// What the device tells the host: of each trial, the pairs of the sample's words that
// agree in its bits.
struct TrialCounts
{
  u32 pairs[n_trials];
};

// The first one that does is taken.
constexpr Trials trials = {{{false, 16, 32},
                            {false, 24, 32},
                            {true, 16, 8},
                            {true, 24, 8},
                            {false, 32, 32},
                            {true, 32, 8},
                            {true, 40, 8}}};

// Counts how often an item occurs: a slot holds the item and, below it, its count.
// Returns how often it was added before.
__device__ u32 add_to_table(u64 *slots, u64 item)
{
  constexpr u32 tally_bits = log_max_probes + 1;
  static_assert(max_first_bits + tally_bits <= 64);
  u32 hash = static_cast<u32>(item * 0x9e3779b97f4a7c15ull >> 32);
  u32 slot = static_cast<u32>(u64{hash} * n_slots >> 32);

  for (;;)
  {
    u64 found = atomicCAS(&slots[slot], u64{0}, item << tally_bits | 1);

    if (found == 0)
      return 0;
    if (found >> tally_bits == item)
      return static_cast<u32>(atomicAdd(&slots[slot], u64{1})) & ((1u << tally_bits) - 1);
    slot = slot + 1 < n_slots ? slot + 1 : 0;
  }
}

// Counts the pairs of each trial; one block for a trial.
__global__ void __launch_bounds__(pair_threads)
    count_pairs(CodeSpace sample, u32 n_probes, Trials tried, TrialCounts *counts)
{
  using BlockReduce = cub::BlockReduce<u32, pair_threads>;
  __shared__ u64 slots[n_slots];
  __shared__ typename BlockReduce::TempStorage temp;
  const Trial trial = tried.list[blockIdx.x];
  const WordLayout layout = {0, 64 - count_bits, trial.bits, trial.coded};
  const u64 *words = trial.coded ? sample.coded : sample.plain;
  u32 pairs = 0;

  for (u32 i = threadIdx.x; i < n_slots; i += pair_threads)
    slots[i] = 0;
  __syncthreads();
  for (u32 i = threadIdx.x; i < n_probes; i += pair_threads)
    if (!trial.coded || !layout.is_settled(words[i], 0))
      pairs += add_to_table(slots, layout.group_of(words[i]));
  pairs = BlockReduce(temp).Sum(pairs);
  if (threadIdx.x == 0)
    counts->pairs[blockIdx.x] = pairs;
}

__global__ void __launch_bounds__(threads)
    plain_words(const KeyRef *keys, u32 n_rows, u32 prefix, WordLayout layout, Segments segments, u64 *words,
                u32 *rows)
{
  u32 row = blockIdx.x * threads + threadIdx.x;

  if (row == 0)
    segments.set(0, prefix, 0);
  if (u64{blockIdx.x} * threads + threadIdx.x >= n_rows)
    return;

  KeyRef key = load_key(keys, row);
  u32 left = key.length - prefix;

  words[row] = layout.make_word(0, load_word(key.address + prefix, left), 0, left);
  rows[row] = row;
}

} // namespace

WordLayout choose_words(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix,
                        const CodeSpace &space)
{
  WordLayout layout = {0, 64 - count_bits, 0};

#ifdef GPUSORT_FAULTS
  if (getenv("GPUSORT_FAULT_CODE") != nullptr)
  {
    learn_code(keys, n_rows, prefix, space, context.stream);
    layout.sorted_bits = min_first_bits;
    layout.coded = true;
    return layout;
  }
  if (getenv("GPUSORT_FAULT_BITS") != nullptr)
  {
    layout.sorted_bits = min_first_bits;
    return layout;
  }
#endif
  if (n_rows < min_rows_to_choose)
    return layout;

  u32 n_probes = probes_of(n_rows);
  TrialCounts *counts = context.counts<TrialCounts>();

  learn_code(keys, n_rows, prefix, space, context.stream);
  count_pairs<<<n_trials, pair_threads, 0, context.stream>>>(space, n_probes, trials, counts);
  GS_CUDA_LAUNCHED();
  context.wait();
  for (u32 i = 0; i < n_trials; i++)
    if (u64{counts->pairs[i]} * n_rows <= u64{trials.list[i].max_expected} * (n_probes / 2) * n_probes)
    {
      layout.sorted_bits = trials.list[i].bits;
      layout.coded = trials.list[i].coded;
      break;
    }
  return layout;
}

void first_words(const KeyRef *keys, u32 n_rows, u32 prefix, const WordLayout &layout, const CodeSpace &space,
                 const Segments &segments, u64 *words, u32 *rows, cudaStream_t stream)
{
  if (layout.coded)
  {
    code_words(keys, n_rows, prefix, space.model, segments, words, rows, stream);
    return;
  }
  plain_words<<<blocks_for(n_rows, threads), threads, 0, stream>>>(keys, n_rows, prefix, layout, segments,
                                                                   words, rows);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
