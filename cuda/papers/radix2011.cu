/*-------------------------------------------------------------------------
 *
 * radix2011.cu
 *	  Radix sort by count, scan and reorder, after Harada and Howes.
 *
 * T. Harada, L. Howes: Introduction to GPU Radix Sort.  2011 (AMD).
 *
 * A pass sorts by 4 bits, the lowest first.  The rows are cut into sections,
 * one for each of a number of work groups that is 8 times that of the GPU's
 * processors (section 3: 4 to 8).
 *	  Count (3.1): a work group counts the values of the digit in its section,
 *		each of its threads in counters of its own in shared memory, and adds
 *		them up.
 *	  Scan (3.2): one work group makes prefix sums of the table of counts, laid
 *		out value by value (equation 1), a thread summing a run of them before
 *		and after the scan of the threads' sums (figure 3).
 *	  Reorder (3.3): a work group of 64 threads takes 256 keys at a time, 4 a
 *		thread, sorts them locally by 2 bits, twice, and writes each to i - lo + o
 *		(equation 2): i its place among the 256, lo the first place of its value
 *		there, o where its value goes next, which grows by how often the value
 *		was among these 256.
 *
 * A local sort by 2 bits counts its four values in the four bytes of one word, so
 * that one scan serves all (3.3).  All of 256 keys can have one value, which
 * a byte cannot hold: the carry then runs into the count of the next value.  But
 * only in the sum over all threads, never in what stands before a thread, 252
 * at most; and then no key has a value whose place depends on it.
 *
 * Keys are those of fixed_keys.cu, of 4, 8 or 16 bytes; the row number travels
 * with its key.  Only the digits between the first and last bit that vary are
 * sorted, as in our engine.  The last 256 of a section are filled up with
 * keys of the highest digit, which stay behind all others and are not written.
 *
 *-------------------------------------------------------------------------
 */
#include "papers/papers.cuh"

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
constexpr u32 warp = 32;

// The rows of a work group: up to `keys` of them from first on.
struct Sections
{
  u32 groups;
  u64 keys; // a multiple of step_keys
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
  int device = 0;
  int processors = 0;

  GS_CUDA_TRY(cudaGetDevice(&device));
  GS_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));

  u32 steps = blocks_for(n_rows, step_keys);
  u32 groups = std::min(steps, static_cast<u32>(processors) * groups_per_processor);
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

// What stands before a thread's value: in its warp by shuffles, and the sums of
// the warps before.  warp_sums has room for one word a warp.
template <u32 block_threads>
__device__ __forceinline__ u32 scan_block(u32 value, u32 *warp_sums, u32 *total)
{
  u32 lane = threadIdx.x % warp;
  u32 sum = value;
  u32 before = 0;
  u32 all = 0;

  for (u32 step = 1; step < warp; step *= 2)
  {
    u32 other = __shfl_up_sync(~0u, sum, step);

    if (lane >= step)
      sum += other;
  }
  __syncthreads(); // the last scan's readers are done
  if (lane == warp - 1)
    warp_sums[threadIdx.x / warp] = sum;
  __syncthreads();
  for (u32 w = 0; w < block_threads / warp; w++)
  {
    if (w < threadIdx.x / warp)
      before += warp_sums[w];
    all += warp_sums[w];
  }
  *total = all;
  return before + sum - value;
}

__global__ void __launch_bounds__(scan_threads) scan_table(u32 *table, u32 n)
{
  __shared__ u32 warp_sums[scan_threads / warp];
  u32 each = (n + scan_threads - 1) / scan_threads;
  u32 first = min(threadIdx.x * each, n);
  u32 end = min(first + each, n);
  u32 sum = 0;
  u32 total;

  for (u32 i = first; i < end; i++)
    sum += table[i];
  sum = scan_block<scan_threads>(sum, warp_sums, &total);
  for (u32 i = first; i < end; i++)
  {
    u32 count = table[i];

    table[i] = sum;
    sum += count;
  }
}

template <typename Key>
struct Local
{
  Key keys[step_keys];
  u32 rows[step_keys];
  u32 warp_sums[group_threads / warp];
  u32 counts[digits]; // of the current 256
  u32 first[digits];  // where a value begins among them
  u32 next[digits];   // where the value goes in the output
};

// Sorts the 256 keys by 2 bits of their digit.
template <typename Key>
__device__ __forceinline__ void sort_locally(Local<Key> &local, Key (&keys)[keys_per_thread],
                                             u32 (&rows)[keys_per_thread], int bit)
{
  u32 values[keys_per_thread];
  u32 packed = 0;
  u32 total;

#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
  {
    values[k] = (static_cast<u32>(keys[k] >> bit) & ((1 << local_bits) - 1)) * 8;
    packed += 1u << values[k];
  }

  u32 before = scan_block<group_threads>(packed, local.warp_sums, &total);

  // Where each of the four values begins: bytes of sums over the lower ones.
  u32 begins = (total << 8) + (total << 16) + (total << 24);
  u32 places = begins + before;

#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
  {
    u32 place = places >> values[k] & 0xff;

    places += 1u << values[k];
    local.keys[place] = keys[k];
    local.rows[place] = rows[k];
  }
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < keys_per_thread; k++)
  {
    keys[k] = local.keys[threadIdx.x * keys_per_thread + k];
    rows[k] = local.rows[threadIdx.x * keys_per_thread + k];
  }
  __syncthreads();
}

template <typename Key>
__global__ void __launch_bounds__(group_threads)
    reorder_keys(const Key *keys, const u32 *rows, Sections sections, int bit, const u32 *table, Key *to_keys,
                 u32 *to_rows)
{
  __shared__ Local<Key> local;

  if (threadIdx.x < digits)
    local.next[threadIdx.x] = table[threadIdx.x * sections.groups + blockIdx.x];

  for (u64 first = sections.first(); first < sections.end(); first += step_keys)
  {
    u32 n = static_cast<u32>(min(sections.end() - first, u64{step_keys}));
    Key my_keys[keys_per_thread];
    u32 my_rows[keys_per_thread];

    // Coalesced into shared memory, then 4 neighbours a thread
    for (u32 i = threadIdx.x; i < step_keys; i += group_threads)
    {
      local.keys[i] = i < n ? keys[first + i] : ~Key{0};
      local.rows[i] = i < n ? rows[first + i] : 0;
    }
    if (threadIdx.x < digits)
      local.counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < keys_per_thread; k++)
    {
      my_keys[k] = local.keys[threadIdx.x * keys_per_thread + k];
      my_rows[k] = local.rows[threadIdx.x * keys_per_thread + k];
      if (threadIdx.x * keys_per_thread + k < n)
        atomicAdd(&local.counts[digit_of(my_keys[k], bit)], 1u);
    }
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
    sort_locally(local, my_keys, my_rows, bit);
    sort_locally(local, my_keys, my_rows, bit + static_cast<int>(local_bits));

    // The sorted keys are in shared memory too: neighbours write to neighbours.
    for (u32 i = threadIdx.x; i < n; i += group_threads)
    {
      Key key = local.keys[i];
      u32 d = digit_of(key, bit);
      u32 to = i - local.first[d] + local.next[d];

      to_keys[to] = key;
      to_rows[to] = local.rows[i];
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
  u32 *rows;
  u32 *table;
};

template <typename Key>
Workspace<Key> alias_workspace(TempStorage &storage, u32 n_rows, const Sections &sections)
{
  Workspace<Key> space;

  space.keys[0] = storage.alias<Key>(n_rows);
  space.keys[1] = storage.alias<Key>(n_rows);
  space.rows = storage.alias<u32>(n_rows);
  space.table = storage.alias<u32>(sections.groups * digits);
  return space;
}

template <typename Key>
u64 workspace_of(u32 n_rows)
{
  TempStorage storage;

  alias_workspace<Key>(storage, n_rows, cut_sections(n_rows));
  return storage.bytes();
}

template <typename Key>
u32 sort_keys(const KeyRef *refs, u32 n_rows, const FixedSpan &span, void *workspace, u32 *order, u8 *tie,
              cudaStream_t stream)
{
  TempStorage storage(workspace);
  Sections sections = cut_sections(n_rows);
  Workspace<Key> space = alias_workspace<Key>(storage, n_rows, sections);
  u32 first_digit = static_cast<u32>(span.begin_bit) / digit_bits;
  u32 passes = blocks_for(static_cast<u64>(span.end_bit), digit_bits) - first_digit;
  Key *keys = space.keys[0];
  Key *to_keys = space.keys[1];
  u32 *rows = passes % 2 == 0 ? order : space.rows; // the last pass writes to order
  u32 *to_rows = passes % 2 == 0 ? space.rows : order;

  squeeze_keys(refs, n_rows, span, keys, rows, stream);
  for (u32 pass = 0; pass < passes; pass++)
  {
    int bit = static_cast<int>((first_digit + pass) * digit_bits);

    count_digits<Key><<<sections.groups, group_threads, 0, stream>>>(keys, sections, bit, space.table);
    GS_CUDA_LAUNCHED();
    scan_table<<<1, scan_threads, 0, stream>>>(space.table, sections.groups * digits);
    GS_CUDA_LAUNCHED();
    reorder_keys<Key><<<sections.groups, group_threads, 0, stream>>>(keys, rows, sections, bit, space.table,
                                                                     to_keys, to_rows);
    GS_CUDA_LAUNCHED();
    std::swap(keys, to_keys);
    std::swap(rows, to_rows);
  }
  mark_fixed_ties(keys, n_rows, tie, stream);
  return passes;
}

} // namespace

u64 radix2011_workspace(u32 n_rows)
{
  return std::max({workspace_of<u32>(n_rows), workspace_of<u64>(n_rows), workspace_of<u128>(n_rows)});
}

u32 radix2011(const KeyRef *keys, u32 n_rows, const RowStats &stats, void *workspace, u32 *order, u8 *tie,
              cudaStream_t stream)
{
  FixedSpan span = find_fixed_span(stats);

  if (span.n_bytes == 0)
  {
    order_equal_keys(n_rows, order, tie, stream);
    return 0;
  }
  if (span.n_bytes <= 4)
    return sort_keys<u32>(keys, n_rows, span, workspace, order, tie, stream);
  if (span.n_bytes <= 8)
    return sort_keys<u64>(keys, n_rows, span, workspace, order, tie, stream);
  return sort_keys<u128>(keys, n_rows, span, workspace, order, tie, stream);
}

} // namespace gpusort
