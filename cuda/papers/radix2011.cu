/*-------------------------------------------------------------------------
 *
 * radix2011.cu
 *	  Radix sort by count, scan and reorder, after Harada and Howes.
 *
 * T. Harada, L. Howes: Introduction to GPU Radix Sort.  2011 (AMD).
 *
 * A pass sorts by 4 bits, the lowest first.  The rows are cut into sections, one
 * for each work group.  There are 8 work groups for each multiprocessor of the GPU
 * (section 3: 4 to 8).
 *	  Count (3.1): a work group counts the values of the digit in its section.
 *		Each thread has its own counters in shared memory; these are added up.
 *	  Scan (3.2): one work group makes prefix sums of the table of counts, laid
 *		out value by value (equation 1).  Each thread sums a run of counts, the
 *		threads' sums are scanned, and each thread scans its run (figure 3).
 *	  Reorder (3.3): a work group of 64 threads takes 256 keys at a time, 4 a
 *		thread, sorts them locally by 2 bits, twice, and writes each key to
 *		i - lo + o (equation 2): i is its place among the 256, lo the first place
 *		of its value there, and o the next place of its value in the output.  o
 *		then grows by the number of these 256 keys that have the value.
 *
 * A local sort by 2 bits counts its four values in the four bytes of one word, so
 * that one scan serves all four (3.3).  All 256 keys can have one value, and a byte
 * cannot hold 256: the carry then runs into the count of the next value.  That only
 * happens in the sum over all threads, since the sum before a thread is 252 at most.
 * And then no key has a value whose place depends on the carry.
 *
 * Keys are those of fixed_keys.cu, of 4 or 8 bytes; the row number travels
 * with its key.  Only the bits that vary are sorted by, as in our own engine.  The
 * last 256 keys of a section are filled up with keys of the highest digit, which stay
 * behind all others and are not written.  Scans over a block are CUB's.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

#include <cub/block/block_scan.cuh>

#include <algorithm>
#include <utility>

#include "fixed/fixed_keys.cuh"

namespace gpusort
{

namespace
{

constexpr u32 digit_bits = 4;
constexpr u32 digits = 1 << digit_bits;
constexpr u32 local_bits = 2;
constexpr u32 group_threads = 64;
constexpr u32 keys_per_thread = 4;
constexpr u32 step_keys = group_threads * keys_per_thread;
constexpr u32 groups_per_processor = 8;
constexpr u32 scan_threads = 1024;

// How the rows are cut into sections: block b has rows first() to end() - 1.
struct Sections
{
  u32 groups;
  u64 keys; // of a section; a multiple of step_keys
  u32 n_rows;

  __device__ u64 first() const
  {
    return blockIdx.x * keys;
  }
  __device__ u64 end() const
  {
    return min((blockIdx.x + 1) * keys, u64{n_rows});
  }
};

Sections cut_sections(u32 n_rows)
{
  u32 processors = device_attribute(cudaDevAttrMultiProcessorCount);
  u32 steps = blocks_for(n_rows, step_keys);
  u32 groups = std::min(steps, processors * groups_per_processor);
  u64 keys = u64{blocks_for(steps, groups)} * step_keys;

  return {blocks_for(n_rows, static_cast<u32>(std::min<u64>(keys, UINT32_MAX))), keys, n_rows};
}

template <typename Key>
__device__ __forceinline__ u32 digit_of(Key key, int bit)
{
  return static_cast<u32>(key >> bit) & (digits - 1);
}

template <typename Key>
__global__ void __launch_bounds__(group_threads)
    count_digits(const Key *keys, Sections sections, int bit, u32 *table)
{
  __shared__ u32 counts[digits][group_threads + 1];

  for (u32 d = 0; d < digits; d++)
    counts[d][threadIdx.x] = 0;
  for (u64 i = sections.first() + threadIdx.x; i < sections.end(); i += group_threads)
    counts[digit_of(keys[i], bit)][threadIdx.x]++;
  __syncthreads();

  if (threadIdx.x < digits)
  {
    u32 sum = 0;

    for (u32 t = 0; t < group_threads; t++)
      sum += counts[threadIdx.x][t];
    table[threadIdx.x * sections.groups + blockIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(scan_threads) scan_table(u32 *table, u32 n)
{
  using BlockScan = cub::BlockScan<u32, scan_threads, cub::BLOCK_SCAN_WARP_SCANS>;

  __shared__ typename BlockScan::TempStorage temp;
  u32 thread_counts = (n + scan_threads - 1) / scan_threads;
  u32 first = min(threadIdx.x * thread_counts, n);
  u32 end = min(first + thread_counts, n);
  u32 sum = 0;

  for (u32 i = first; i < end; i++)
    sum += table[i];
  BlockScan(temp).ExclusiveSum(sum, sum);
  for (u32 i = first; i < end; i++)
  {
    u32 count = table[i];

    table[i] = sum;
    sum += count;
  }
}

// The scan of a local sort.
using LocalScan = cub::BlockScan<u32, group_threads, cub::BLOCK_SCAN_WARP_SCANS>;

// What a work group keeps in shared memory.
template <typename Key>
struct LocalStorage
{
  Key keys[step_keys];
  u32 rows[step_keys];
  LocalScan::TempStorage scan;
  u32 counts[digits]; // of the current 256
  u32 first[digits];  // the first place of a value among these: lo
  u32 next[digits];   // the next place of a value in the output: o
};

// The keys of a thread, neighbours in the order so far, and their rows.
template <typename Key>
struct ThreadKeys
{
  Key keys[keys_per_thread];
  u32 rows[keys_per_thread];

  __device__ __forceinline__ void load(const LocalStorage<Key> &local)
  {
#pragma unroll
    for (u32 k = 0; k < keys_per_thread; k++)
    {
      keys[k] = local.keys[threadIdx.x * keys_per_thread + k];
      rows[k] = local.rows[threadIdx.x * keys_per_thread + k];
    }
  }
};

// Sorts the 256 keys by 2 bits of their digit.
template <typename Key>
__device__ __forceinline__ void sort_locally(LocalStorage<Key> &local, ThreadKeys<Key> &thread, int bit)
{
  u32 shifts[keys_per_thread]; // of the byte that counts a key's value
  u32 packed = 0;
  u32 before;
  u32 total;

#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
  {
    shifts[k] = (static_cast<u32>(thread.keys[k] >> bit) & ((1 << local_bits) - 1)) * 8;
    packed += 1u << shifts[k];
  }
  LocalScan(local.scan).ExclusiveSum(packed, before, total);

  // The first place of each of the four values: sums of the bytes below its own.
  u32 first_places = (total << 8) + (total << 16) + (total << 24);
  u32 places = first_places + before;

#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
  {
    u32 place = places >> shifts[k] & 0xff;

    places += 1u << shifts[k];
    local.keys[place] = thread.keys[k];
    local.rows[place] = thread.rows[k];
  }
  __syncthreads();
  thread.load(local);
  __syncthreads();
}

// Loads up to 256 keys and counts the values of their digit.
template <typename Key>
__device__ __forceinline__ void load_step(LocalStorage<Key> &local, ThreadKeys<Key> &thread, const Key *keys,
                                          const u32 *rows, u32 n, int bit)
{
  // Coalesced into shared memory, then 4 neighbours to each thread.
  for (u32 i = threadIdx.x; i < step_keys; i += group_threads)
  {
    local.keys[i] = i < n ? keys[i] : ~Key{0};
    local.rows[i] = i < n ? rows[i] : 0;
  }
  if (threadIdx.x < digits)
    local.counts[threadIdx.x] = 0;
  __syncthreads();
  thread.load(local);
#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
    if (threadIdx.x * keys_per_thread + k < n)
      atomicAdd(&local.counts[digit_of(thread.keys[k], bit)], 1u);
  __syncthreads();
  if (threadIdx.x == 0)
  {
    u32 sum = 0;

    for (u32 d = 0; d < digits; d++)
    {
      local.first[d] = sum;
      sum += local.counts[d];
    }
  }
}

template <typename Key>
struct KeyArrays
{
  Key *keys;
  u32 *rows;
};

template <typename Key>
__global__ void __launch_bounds__(group_threads)
    reorder_keys(KeyArrays<Key> from, Sections sections, int bit, const u32 *table, KeyArrays<Key> to)
{
  __shared__ LocalStorage<Key> local;

  if (threadIdx.x < digits)
    local.next[threadIdx.x] = table[threadIdx.x * sections.groups + blockIdx.x];

  for (u64 first = sections.first(); first < sections.end(); first += step_keys)
  {
    u32 n = static_cast<u32>(min(sections.end() - first, u64{step_keys}));
    ThreadKeys<Key> thread;

    load_step(local, thread, from.keys + first, from.rows + first, n, bit);
    sort_locally(local, thread, bit);
    sort_locally(local, thread, bit + static_cast<int>(local_bits));

    // Neighbours in shared memory are written to neighbours.
    for (u32 i = threadIdx.x; i < n; i += group_threads)
    {
      Key key = local.keys[i];
      u32 d = digit_of(key, bit);
      u32 place = i - local.first[d] + local.next[d];

      to.keys[place] = key;
      to.rows[place] = local.rows[i];
    }
    __syncthreads();
    if (threadIdx.x < digits)
      local.next[threadIdx.x] += local.counts[threadIdx.x];
    __syncthreads();
  }
}

template <typename Key>
struct Workspace
{
  Key *keys[2];
  u32 *rows; // the other array of row numbers is the order itself
  u32 *table;
};

template <typename Key>
Workspace<Key> alias_workspace(TempStorage &storage, u32 n_rows, const Sections &sections)
{
  Workspace<Key> workspace;

  workspace.keys[0] = storage.alias<Key>(n_rows);
  workspace.keys[1] = storage.alias<Key>(n_rows);
  workspace.rows = storage.alias<u32>(n_rows);
  workspace.table = storage.alias<u32>(sections.groups * digits);
  return workspace;
}

template <typename Key>
u64 workspace_bytes(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage)
                       { alias_workspace<Key>(storage, n_rows, cut_sections(n_rows)); });
}

template <typename Key>
void sort_keys(const OrderJob &job, const SqueezedLayout &layout, cudaStream_t stream)
{
  TempStorage storage(job.workspace);
  Sections sections = cut_sections(job.n_rows);
  Workspace<Key> workspace = alias_workspace<Key>(storage, job.n_rows, sections);
  u32 passes = blocks_for(layout.n_bits, digit_bits);
  KeyArrays<Key> from = {workspace.keys[0], workspace.rows};
  KeyArrays<Key> to = {workspace.keys[1], job.order.row};

  if (passes % 2 == 0) // the last pass writes to the order
    std::swap(from.rows, to.rows);
  squeeze_keys(job, layout, from.keys, from.rows, stream);
  for (u32 pass = 0; pass < passes; pass++)
  {
    int bit = static_cast<int>(pass * digit_bits);

    count_digits<Key>
        <<<sections.groups, group_threads, 0, stream>>>(from.keys, sections, bit, workspace.table);
    GS_CUDA_LAUNCHED();
    scan_table<<<1, scan_threads, 0, stream>>>(workspace.table, sections.groups * digits);
    GS_CUDA_LAUNCHED();
    reorder_keys<Key>
        <<<sections.groups, group_threads, 0, stream>>>(from, sections, bit, workspace.table, to);
    GS_CUDA_LAUNCHED();
    std::swap(from, to);
  }
  mark_squeezed_ties(from.keys, job.n_rows, job.order.tie, stream);
}

} // namespace

u64 radix2011_workspace(u32 n_rows)
{
  return std::max(workspace_bytes<u32>(n_rows), workspace_bytes<u64>(n_rows));
}

void radix2011(const OrderJob &job, cudaStream_t stream)
{
  SqueezedLayout layout = squeezed_layout(job.stats);

  if (layout.n_bits == 0)
    return order_equal_keys(job.n_rows, job.order, stream);
  with_squeezed(layout, [&](auto key) { sort_keys<decltype(key)>(job, layout, stream); });
}

} // namespace gpusort
