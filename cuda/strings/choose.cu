/*-------------------------------------------------------------------------
 *
 * choose.cu
 *	  Whether the first words of the keys alone separate the rows.
 *
 * Their bytes do for random keys, hashes, most numbers; a code of their bytes
 * (code.cu) for many more.  Then splitters would tell little that the
 * bits themselves do not.  Of a sample's words it is counted how many pairs agree
 * in their first 16, 24, ... bits, without those that sorting by these bits
 * settles.  Were groups made by so many bits, a row's group would be expected to
 * have n_rows * pairs / (all pairs of the sample) rows.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/choose.cuh"

#include <cstdlib>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 pair_threads = 1024;
constexpr u32 n_slots = 6000; // of a hash table with max_probes keys

// The words that are tried, in this order, and how many rows may be expected
// in a row's group.
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

// Of each trial, the pairs of probes in one group; what the device tells the host.
struct TrialCounts
{
  u32 pairs[n_trials];
};

constexpr Trials trials = {{{false, 16, 32},
                            {false, 24, 32},
                            {true, 16, 8},
                            {true, 24, 8},
                            {false, 32, 32},
                            {true, 32, 8},
                            {true, 40, 8}}};

// One block for each trial.  A slot holds the first bits of a word and, below
// them, how many words have these.
__global__ void __launch_bounds__(pair_threads)
    count_pairs(CodeSpace sample, u32 n_probes, Trials tried, TrialCounts *counts)
{
  constexpr u32 tally_bits = log_max_probes + 1;
  static_assert(max_first_bits + tally_bits <= 64);
  __shared__ u64 slots[n_slots];
  __shared__ u32 pairs;
  const Trial trial = tried.list[blockIdx.x];
  const WordLayout layout = {0, 64 - count_bits, trial.bits, trial.coded};
  const u64 *words = trial.coded ? sample.coded : sample.plain;
  u32 me = threadIdx.x;
  u32 mine = 0;

  for (u32 i = me; i < n_slots; i += pair_threads)
    slots[i] = 0;
  if (me == 0)
    pairs = 0;
  __syncthreads();

  for (u32 i = me; i < n_probes; i += pair_threads)
  {
    u64 word = words[i];

    if (trial.coded && layout.is_settled(word, 0))
      continue;

    u64 bits = layout.group_of(word);
    u32 hash = static_cast<u32>(bits * 0x9e3779b97f4a7c15ull >> 32);
    u32 slot = static_cast<u32>(u64{hash} * n_slots >> 32);

    for (;;)
    {
      u64 found = atomicCAS(&slots[slot], u64{0}, bits << tally_bits | 1);

      if (found == 0)
        break;
      if (found >> tally_bits == bits)
      {
        u32 before = atomicAdd(reinterpret_cast<u32 *>(&slots[slot]), 1u);

        mine += before & ((1u << tally_bits) - 1);
        break;
      }
      slot = slot + 1 < n_slots ? slot + 1 : 0;
    }
  }
  if (mine > 0)
    atomicAdd(&pairs, mine);
  __syncthreads();
  if (me == 0)
    counts->pairs[blockIdx.x] = pairs;
}

__global__ void __launch_bounds__(threads)
    plain_words(const KeyRef *keys, u32 n_rows, u32 prefix, WordLayout layout, Segments segments, u64 *words,
                u32 *rows)
{
  u64 at = u64{blockIdx.x} * threads + threadIdx.x;

  if (at == 0)
    segments.set(0, prefix, 0);
  if (at >= n_rows)
    return;

  u32 row = static_cast<u32>(at);
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
