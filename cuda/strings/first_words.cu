/*-------------------------------------------------------------------------
 *
 * first_words.cu
 *	  First words of the keys, without splitters: their bytes, or a code of them.
 *
 * Choice
 *	  Bytes tell rows apart in random keys, hashes and most numbers, a code of them in
 *	  many more.  Then splitters would tell little that the bits
 *	  themselves do not.  A sample tells: we count how many pairs of its words agree in
 *	  their first 16, 24, ... bits, without the words that sorting by these bits
 *	  settles.  If all rows were grouped by so many bits, the group of a row would have
 *	  an expected n_rows * pairs / (all pairs of the sample) rows.
 *
 * Why a code
 *	  Where the bytes of keys are few and uneven, eight of them say little.  A code
 *	  that spends fewer bits on what is frequent says as much about twice or ten
 *	  times as many bytes, and still orders the keys.  It is an arithmetic code
 *	  (Rissanen and Langdon, "Arithmetic coding", IBM J. Res. Dev. 23, 1979) in
 *	  integers (Martin, "Range encoding", 1979).  Codes that keep the order of keys
 *	  are known from search trees (Zhang et al., "Order-Preserving Key Compression
 *	  for In-Memory Search Trees", SIGMOD 2020).
 *
 * Code
 *	  A key is a string of symbols: its bytes, and an end that is less than any
 *	  byte.  An interval, at first all of code_bits bits, is cut into 1 << part_bits
 *	  parts; each symbol gets some of them, at least one, in the order of the
 *	  symbols, and the key's next symbol selects the interval to go on with.  How
 *	  many parts depends on how often a sample has the symbol.  This stops behind
 *	  the end, or where the interval has become too small to be cut, or after
 *	  max_words words.  Whether it does depends on nothing but the symbols consumed.
 *	  So two keys that differ in these have intervals that are disjoint and lie in
 *	  the order of the keys, and keys that do not have the same interval and state.
 *	  That holds for all keys, whatever the sample had; symbols that it had not
 *	  only take many bits.
 *
 * Runs
 *	  Where most words of eight bytes are the same byte eight times, each word is
 *	  first coded as less than this run, equal, or greater; only where it is not
 *	  equal do its bytes follow.  Long runs so take a step for eight bytes.
 *
 * Words
 *	  A key that has ended is given the middle of its interval, and a count that
 *	  says from how many sorted bits on all codes that agree with it in these lie
 *	  in the interval, and belong to equal keys: WordLayout::is_settled().  Such rows
 *	  are done once they are sorted, however many there are.  Others that have the
 *	  same word and have ended are equal as well.  A key that goes on, with the
 *	  highest count, is given the beginning of its interval.  Rows that tie in it
 *	  are compared by their bytes, beginning behind the prefix of all: the code
 *	  does not say how far it reaches.
 *
 *-------------------------------------------------------------------------
 */
#include "strings/first_words.cuh"

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include <cstdlib>

namespace gpusort
{

// The end of the key, then the values of a byte.
constexpr u32 n_symbols = 257;

constexpr u32 max_probes = 1u << log_max_probes; // keys that the code is made from

// With few rows, half of them tell as surely how many will agree.
static u32 probes_of(u32 n_rows)
{
  return n_rows < 1u << 22 ? max_probes / 2 : max_probes;
}

// The contents of a sample of the keys.
struct CodeCounts
{
  u32 symbols[n_symbols]; // outside of runs
  u32 runs[256];          // words of eight equal bytes, by their value
  u32 words;
};

// How the code divides an interval: parts before a symbol in the upper half,
// parts of its own in the lower.
struct CodeModel
{
  u32 symbols[n_symbols];
  u32 words[3]; // less than the run, equal, greater
  u32 has_run;
  u64 run;
};

namespace
{

constexpr u32 threads = 256;
constexpr u32 count_threads = 32;
constexpr u32 counted_words = 8; // of a sample's key
constexpr u32 code_bits = 64 - count_bits;
constexpr u32 part_bits = 16;
constexpr u64 least_range = u64{1} << part_bits; // that can be cut
constexpr u32 max_words = 512;
static_assert(n_symbols < 1u << part_bits);
static_assert(threads == n_symbols - 1);
static_assert(sizeof(CodeCounts) % sizeof(u32) == 0 && sizeof(CodeModel) % sizeof(u32) == 0);

// Reads a key word by word, each a step before it is asked for.  Only aligned
// words that hold a byte of the key are read.
class KeyReader
{
public:
  __device__ KeyReader(const KeyRef &key, u32 from)
      : at((key.address + from) & ~u64{7}), end(key.length > from ? key.address + key.length : 0),
        shift(static_cast<u32>((key.address + from) & 7) * 8), left(key.length - from)
  {
    low = load(at);
    high = load(at + 8);
  }
  // The next eight bytes, zeros after the last.
  __device__ u64 word() const
  {
    u64 bytes = swap_bytes(low >> shift | high << 1 << (63 - shift));

    return left >= 8 ? bytes : left == 0 ? 0 : bytes & ~u64{0} << (64 - left * 8);
  }
  __device__ u32 bytes_left() const
  {
    return left;
  }
  // What advance() will need.
  __device__ u64 ahead() const
  {
    return load(at + 16);
  }
  // Passes eight bytes.
  __device__ void advance(u64 next)
  {
    low = high;
    high = next;
    at += 8;
    left -= 8;
  }

private:
  __device__ u64 load(u64 address) const
  {
    return address < end ? __ldg(reinterpret_cast<const u64 *>(address)) : 0;
  }

  u64 at;
  u64 end;
  u64 low;
  u64 high;
  u32 shift;
  u32 left;
};

struct Interval
{
  u64 low = 0;
  u64 range = u64{1} << code_bits;

  __device__ __forceinline__ bool can_cut() const
  {
    return range >= least_range;
  }
  __device__ __forceinline__ void cut(u32 parts)
  {
    u64 part = range >> part_bits;

    low += part * (parts >> part_bits);
    range = part * (parts & ((1u << part_bits) - 1));
  }
};

// Codes a key word by word.
class KeyCoder
{
public:
  __device__ KeyCoder(const KeyRef &key, u32 prefix) : reader(key, prefix)
  {
  }
  // Consumes eight bytes; false: the key has ended or the interval is too small.
  __device__ __forceinline__ bool step(const CodeModel &model)
  {
    u64 next = reader.ahead();
    u64 word = reader.word();
    u32 left = reader.bytes_left();

    if (model.has_run != 0)
    {
      u32 relation = word < model.run || (word == model.run && left < 8) ? 0 : word == model.run ? 1 : 2;

      interval.cut(model.words[relation]);
      if (relation == 1)
      {
        reader.advance(next);
        return ++n_words < max_words && interval.can_cut();
      }
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++)
    {
      if (i >= left || !interval.can_cut())
        break;
      interval.cut(model.symbols[1 + (word >> (56 - 8 * i) & 0xff)]);
    }
    if (!interval.can_cut())
      return false;
    if (left < 8)
    {
      interval.cut(model.symbols[0]);
      has_ended = true;
      return false;
    }
    reader.advance(next);
    return ++n_words < max_words;
  }
  __device__ u64 word() const
  {
    if (!has_ended)
      return interval.low << count_bits | max_chars;

    // From so many bits on, the middle is in an aligned part of the interval.
    u32 needed = static_cast<u32>(__clzll(static_cast<long long>(interval.range))) + 2 - (64 - code_bits);

    return (interval.low + interval.range / 2) << count_bits | WordLayout::settled_count(needed);
  }

private:
  KeyReader reader;
  Interval interval;
  u32 n_words = 0;
  bool has_ended = false;
};

// Counts what the sample's keys consist of; one thread for a key.
__global__ void __launch_bounds__(count_threads)
    count_symbols(const KeyRef *keys, u32 n_rows, u32 prefix, CodeCounts *counts)
{
  __shared__ CodeCounts block;
  constexpr u32 n_counts = sizeof(CodeCounts) / sizeof(u32);
  u32 *block_counts = reinterpret_cast<u32 *>(&block);
  u32 *all_counts = reinterpret_cast<u32 *>(counts);

  for (u32 i = threadIdx.x; i < n_counts; i += count_threads)
    block_counts[i] = 0;
  __syncthreads();

  KeyReader reader(
      load_key(keys, sample_row(n_rows, gridDim.x * count_threads, blockIdx.x * count_threads + threadIdx.x)),
      prefix);
  u32 words = 0;
  bool has_ended = false;

  while (words < counted_words && !has_ended)
  {
    u64 next = reader.ahead();
    u64 word = reader.word();
    u32 left = reader.bytes_left();
    u32 first = static_cast<u32>(word >> 56);

    words++;
    has_ended = left < 8;
    if (!has_ended && word == first * 0x0101010101010101ull)
      atomicAdd(&block.runs[first], 1u);
    else
      for (u32 i = 0; i < min(left, 8u); i++)
        atomicAdd(&block.symbols[1 + (word >> (56 - 8 * i) & 0xff)], 1u);
    if (has_ended)
      atomicAdd(&block.symbols[0], 1u);
    else
      reader.advance(next);
  }
  atomicAdd(&block.words, words);
  __syncthreads();
  for (u32 i = threadIdx.x; i < n_counts; i += count_threads)
    if (block_counts[i] > 0)
      atomicAdd(&all_counts[i], block_counts[i]);
}

// What the threads of a block share to make a model.
struct ModelStorage
{
  typename cub::BlockReduce<u32, threads>::TempStorage reduce;
  typename cub::BlockScan<u32, threads>::TempStorage scan;
  u32 most_runs; // runs of the most frequent byte, and in the lowest 8 bits the byte
  u32 symbols;   // in all
};

// Makes the model in shared memory; thread i is for bytes of value i.
__device__ void make_model(const CodeCounts *counts, ModelStorage &storage, CodeModel &model)
{
  constexpr u32 free_parts = (1u << part_bits) - n_symbols;
  const u32 byte = threadIdx.x;
  const u32 runs = counts->runs[byte];
  const u32 words = counts->words;
  const u32 ends = counts->symbols[0];

  u32 most = cub::BlockReduce<u32, threads>(storage.reduce)
                 .Reduce(runs << 8 | byte, [](u32 a, u32 b) { return max(a, b); });

  if (byte == 0)
    storage.most_runs = most;
  __syncthreads();
  most = storage.most_runs;

  const bool has_run = 2 * (most >> 8) >= words;
  u32 count = counts->symbols[1 + byte];

  if (!has_run || (most & 0xff) != byte)
    count += 8 * runs;

  u32 total = cub::BlockReduce<u32, threads>(storage.reduce).Sum(count);

  if (byte == 0)
    storage.symbols = max(total + ends, 1u);
  __syncthreads();

  const u32 end_parts = 1 + static_cast<u32>(u64{ends} * free_parts / storage.symbols);
  const u32 parts = 1 + static_cast<u32>(u64{count} * free_parts / storage.symbols);
  u32 parts_before;

  cub::BlockScan<u32, threads>(storage.scan).ExclusiveSum(parts, parts_before);
  model.symbols[1 + byte] = (end_parts + parts_before) << part_bits | parts;
  if (byte == 0)
  {
    u32 equal = 1 + static_cast<u32>(u64{most >> 8} * ((1u << part_bits) - 3) / max(words, 1u));
    u32 less = ((1u << part_bits) - equal) / 2;

    model.symbols[0] = end_parts;
    model.words[0] = less;
    model.words[1] = less << part_bits | equal;
    model.words[2] = (less + equal) << part_bits | ((1u << part_bits) - less - equal);
    model.has_run = has_run;
    model.run = (most & 0xff) * 0x0101010101010101ull;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(threads)
    code_sample(const KeyRef *keys, u32 n_rows, u32 prefix, CodeSpace space)
{
  __shared__ CodeModel model;
  __shared__ ModelStorage storage;
  u32 i = blockIdx.x * threads + threadIdx.x;
  KeyRef key = load_key(keys, sample_row(n_rows, gridDim.x * threads, i));

  make_model(space.counts, storage, model);
  space.plain[i] = load_word(key.address + prefix, key.length - prefix);

  KeyCoder coder(key, prefix);

  while (coder.step(model))
    ;
  space.coded[i] = coder.word();
  if (i == 0)
    *space.model = model;
}

// A warp codes rows_each rows for each of its threads.  Keys take unequal numbers of
// steps: a thread that is done with one takes the warp's next.
__global__ void __launch_bounds__(threads)
    code_rows(const KeyRef *keys, u32 n_rows, u32 prefix, u32 rows_each, const CodeModel *learned,
              Segments segments, u64 *words, u32 *rows)
{
  __shared__ CodeModel model;
  const u32 *from = reinterpret_cast<const u32 *>(learned);
  u32 *to = reinterpret_cast<u32 *>(&model);

  for (u32 i = threadIdx.x; i < sizeof(CodeModel) / sizeof(u32); i += threads)
    to[i] = __ldg(from + i);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    segments.set(0, prefix, 0);
  __syncthreads();

  const u32 lanes_before = (1u << threadIdx.x % 32) - 1;
  u64 first = (u64{blockIdx.x} * threads + threadIdx.x / 32 * 32) * rows_each;
  u64 end = min(first + rows_each * 32, u64{n_rows});
  u64 row = 0;
  KeyCoder coder({}, 0);
  bool busy = false;

  for (;;)
  {
    u32 idle = __ballot_sync(~0u, !busy);

    if (!busy)
    {
      row = first + static_cast<u32>(__popc(idle & lanes_before));
      busy = row < end;
      if (busy)
      {
        coder = KeyCoder(load_key(keys, static_cast<u32>(row)), prefix);
        rows[row] = static_cast<u32>(row);
      }
    }
    first += static_cast<u32>(__popc(idle));
    if (!__any_sync(~0u, busy))
      return;
    if (busy && !coder.step(model))
    {
      words[row] = coder.word();
      busy = false;
    }
  }
}

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

// The device's answer to the host: for each trial, the pairs of the sample's words that
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

// Makes a code from probes_of() the keys, and both kinds of words of these.
void learn_code(const KeyRef *keys, u32 n_rows, u32 prefix, const CodeSpace &space, cudaStream_t stream)
{
  GS_CUDA_TRY(cudaMemsetAsync(space.counts, 0, sizeof(CodeCounts), stream));
  count_symbols<<<probes_of(n_rows) / count_threads, count_threads, 0, stream>>>(keys, n_rows, prefix,
                                                                                 space.counts);
  GS_CUDA_LAUNCHED();
  code_sample<<<probes_of(n_rows) / threads, threads, 0, stream>>>(keys, n_rows, prefix, space);
  GS_CUDA_LAUNCHED();
}

} // namespace

CodeSpace alias_code(TempStorage &storage)
{
  CodeSpace space;

  space.counts = storage.alias<CodeCounts>(1);
  space.model = storage.alias<CodeModel>(1);
  space.plain = storage.alias<u64>(max_probes);
  space.coded = storage.alias<u64>(max_probes);
  return space;
}

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
  // Fewer threads at a time leave long keys in the first-level cache.
  constexpr u32 rows_each = 16;

  if (layout.coded)
    code_rows<<<blocks_for(n_rows, threads * rows_each), threads, 0, stream>>>(
        keys, n_rows, prefix, rows_each, space.model, segments, words, rows);
  else
    plain_words<<<blocks_for(n_rows, threads), threads, 0, stream>>>(keys, n_rows, prefix, layout, segments,
                                                                     words, rows);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
