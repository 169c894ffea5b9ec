/*-------------------------------------------------------------------------
 *
 * merge2012.cu
 *	  Merge sort of fixed keys and of strings, after Davidson and others.
 *
 * A. Davidson, D. Tarjan, M. Garland, J. D. Owens: Efficient Parallel Merge
 * Sort for Fixed and Variable Length Keys.  Innovative Parallel Computing
 * (InPar) 2012.
 *
 * Block sort (section 3)
 *	  A block sorts m = 1024 items: each of its 128 threads 8 of them in
 *	  registers by a bitonic network, then log2(128) steps of merging neighbours
 *	  in shared memory.  In a step each thread finds where its 8 go among the
 *	  items of the neighbouring sequence: the first by binary search, the others
 *	  by linear search from its place.
 *
 * Merging (section 3, "simple" and "multiple")
 *	  A level merges pairs of sequences.  A block holds a window of its own sequence
 *	  in registers, 4 items a thread, and a window of the other sequence, 1024 items,
 *	  in shared memory.  Where an item's place in the other sequence is found, the
 *	  item goes to its own number plus that place in the output.  Items beyond the
 *	  shared window wait for the next one.  When all items in registers have been
 *	  written, the place of the last one is where the next search begins.  If that
 *	  skips shift_threshold items or more, the shared window is loaded anew from
 *	  there ("shift load").  Each sequence of a pair has both roles, so an item is
 *	  read twice and written once in a level, as section 6 counts.
 *
 *	  While there are enough sequences to fill the GPU, a block takes a whole one.
 *	  On the last levels each sequence is cut into parts, so that there are as many
 *	  parts as blocks that fill the GPU (s * l = p).  A binary search in memory finds
 *	  where in the other sequence a part begins.
 *
 * Items
 *	  Key and value (section 3): keys of one length are squeezed into 4 or 8
 *	  bytes by fixed_keys.cu, and the value is the row number.  The paper's third
 *	  kind, keys without a value, has no use here.
 *	  Strings (section 4): the key is the first 4 characters; where keys are equal,
 *	  the strings are compared in memory.  Linear searches are cut short and go on
 *	  as binary ones (section 6.2).
 *
 * What differs from the paper
 *	  The sort is stable, which a bitonic network is not: within the network equal
 *	  keys are ordered by row number.  While merging, the first sequence's items go
 *	  before equal ones of the second.  Strings may hold NUL: they are compared as
 *	  if zeros followed them, then by length.
 *
 * Memory
 *	  Per row two keys and two row numbers: 24 bytes at most.
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

constexpr u32 threads = 128;
constexpr u32 sort_items = 8; // of a thread, in the block sort
constexpr u32 block_items = threads * sort_items;
constexpr u32 merge_items = 4; // of a thread, in registers
constexpr u32 register_window = threads * merge_items;
constexpr u32 shared_window = 1024;
constexpr u32 shift_threshold = shared_window / 4;
constexpr u32 string_linear_steps = 4;

// The row number of an item behind the last one.
constexpr u32 no_row = ~0u;

template <typename Key>
struct Item
{
  Key key;
  u32 row;
};

// Compares squeezed keys.
template <typename Word>
struct FixedOrder
{
  using Key = Word;
  static constexpr u32 linear_steps = block_items;

  __device__ int compare(const Item<Key> &a, const Item<Key> &b) const
  {
    return a.key < b.key ? -1 : a.key > b.key;
  }
};

// Compares strings, by their first 4 characters where these differ.
struct StringOrder
{
  using Key = u32;
  static constexpr u32 linear_steps = string_linear_steps;
  static constexpr u32 key_bytes = sizeof(Key);

  const KeyRef *keys;

  __device__ int compare(const Item<Key> &a, const Item<Key> &b) const
  {
    return a.key != b.key ? (a.key < b.key ? -1 : 1) : compare_tails(a.row, b.row);
  }

private:
  __device__ __noinline__ int compare_tails(u32 a_row, u32 b_row) const
  {
    KeyRef a = load_key(keys, a_row);
    KeyRef b = load_key(keys, b_row);
    u32 length = min(a.length, b.length);

    for (u32 at = key_bytes; at < length; at += 8)
    {
      u64 a_word = load_word(a.address + at, a.length - at);
      u64 b_word = load_word(b.address + at, b.length - at);

      if (a_word != b_word)
        return a_word < b_word ? -1 : 1;
    }

    // One key is the other one with zeros and perhaps more behind it.
    return a.length < b.length ? -1 : a.length > b.length;
  }
};

template <typename Order>
__device__ __forceinline__ bool less(const Order &order, const Item<typename Order::Key> &a,
                                     const Item<typename Order::Key> &b)
{
  return order.compare(a, b) < 0;
}

template <typename Key>
struct Arrays
{
  Key *keys;
  u32 *rows;

  __device__ __forceinline__ Item<Key> operator[](u64 i) const
  {
    return {keys[i], rows[i]};
  }
  __device__ __forceinline__ void set(u64 i, const Item<Key> &item) const
  {
    keys[i] = item.key;
    rows[i] = item.row;
  }
  __device__ __forceinline__ Arrays from(u64 i) const
  {
    return {keys + i, rows + i};
  }
};

// Does a sorted item go before `item`?  It is less, or equal and of a sequence whose
// items go before equal ones.
template <typename Order>
__device__ __forceinline__ bool goes_before(const Order &order, const Item<typename Order::Key> &sorted,
                                            const Item<typename Order::Key> &item, bool equal_before)
{
  return equal_before ? !less(order, item, sorted) : less(order, sorted, item);
}

// The places of a search, and how many of them are searched one by one first.
struct SearchRange
{
  u32 begin;
  u32 end;
  u32 linear_steps;
};

// The first place of the range whose item does not go before `item`, or its end.
template <typename Order>
__device__ __forceinline__ u32 find_place(const Order &order, const Arrays<typename Order::Key> &sorted,
                                          const SearchRange &range, const Item<typename Order::Key> &item,
                                          bool equal_before)
{
  u32 low = range.begin;
  u32 high = range.end;

  for (u32 step = 0; step < range.linear_steps && low < high; step++)
  {
    if (!goes_before(order, sorted[low], item, equal_before))
      return low;
    low++;
  }
  while (low < high)
  {
    u32 middle = low + (high - low) / 2;

    if (goes_before(order, sorted[middle], item, equal_before))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// ---- block sort ----

// Puts two items in order; equal keys by row number.
template <typename Order>
__device__ __forceinline__ void exchange(const Order &order, Item<typename Order::Key> &a,
                                         Item<typename Order::Key> &b, bool ascending)
{
  bool behind; // does a go after b?

  if (a.row == no_row || b.row == no_row)
    behind = a.row > b.row;
  else
  {
    int result = order.compare(a, b);

    behind = result > 0 || (result == 0 && a.row > b.row);
  }
  if (behind == ascending)
  {
    Item<typename Order::Key> kept = a;

    a = b;
    b = kept;
  }
}

template <typename Order>
__device__ __forceinline__ void sort_registers(const Order &order,
                                               Item<typename Order::Key> (&items)[sort_items])
{
#pragma unroll
  for (u32 size = 2; size <= sort_items; size *= 2)
#pragma unroll
    for (u32 stride = size / 2; stride > 0; stride /= 2)
#pragma unroll
      for (u32 i = 0; i < sort_items; i++)
        if ((i & stride) == 0)
          exchange(order, items[i], items[i | stride], (i & size) == 0);
}

// One step of the block sort: merges neighbouring sequences of `length` items in
// shared memory, with n items in use.
template <typename Order>
__device__ __forceinline__ void merge_neighbours(const Order &order,
                                                 const Arrays<typename Order::Key> &shared, u32 n, u32 length)
{
  const u32 first = threadIdx.x * sort_items; // of the thread's items
  const u32 begin = first / length * length;  // of their sequence
  const u32 other = begin ^ length;           // the neighbouring sequence
  const u32 other_n = other < n ? min(length, n - other) : 0;
  const u32 output = min(begin, other) + (first - begin);
  Item<typename Order::Key> items[sort_items];
  u32 places[sort_items];
  u32 place = 0;

#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
  {
    items[k] = shared[first + k];
    if (first + k < n)
    {
      place = find_place(order, shared.from(other), {place, other_n, k == 0 ? 0 : Order::linear_steps},
                         items[k], other < begin);
      places[k] = output + k + place;
    }
  }
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
    if (first + k < n)
      shared.set(places[k], items[k]);
  __syncthreads();
}

template <typename Order>
__global__ void __launch_bounds__(threads)
    sort_blocks(Order order, u32 n_rows, Arrays<typename Order::Key> all)
{
  using Key = typename Order::Key;

  __shared__ Key shared_keys[block_items];
  __shared__ u32 shared_rows[block_items];
  const Arrays<Key> shared = {shared_keys, shared_rows};
  const Arrays<Key> block = all.from(u64{blockIdx.x} * block_items);
  const u32 n = static_cast<u32>(min(n_rows - u64{blockIdx.x} * block_items, u64{block_items}));
  const u32 first = threadIdx.x * sort_items;
  Item<Key> items[sort_items];

  for (u32 i = threadIdx.x; i < block_items; i += threads)
    shared.set(i, i < n ? block[i] : Item<Key>{0, no_row});
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
    items[k] = shared[first + k];
  sort_registers(order, items);
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
    shared.set(first + k, items[k]);
  __syncthreads();

  // The items of no_row are now at the block's end and take no part in merges.
  for (u32 length = sort_items; length < block_items; length *= 2)
    merge_neighbours(order, shared, n, length);
  for (u32 i = threadIdx.x; i < n; i += threads)
    block.set(i, shared[i]);
}

// ---- merging ----

// A level: merges neighbouring sequences of `length` items, each cut into parts.
struct Level
{
  u64 n_rows;
  u64 length;
  u32 parts;
};

// The part of a sequence that a block merges with the other sequence of the pair.
struct Part
{
  u64 sequence; // its first item
  u64 begin;    // of the part in the sequence
  u64 end;
  u64 other; // the first item of the other sequence
  u64 other_n;
  bool is_second; // in its pair: equal items of the other sequence go before

  __device__ __forceinline__ explicit Part(const Level &level)
  {
    u64 number = blockIdx.x / level.parts; // of the sequence
    u32 part = blockIdx.x % level.parts;

    sequence = number * level.length;
    other = (number ^ 1) * level.length;
    is_second = number % 2 != 0;

    u64 n = min(level.length, level.n_rows - sequence);
    u64 part_n = (n + level.parts - 1) / level.parts;

    other_n = other < level.n_rows ? min(level.length, level.n_rows - other) : 0;
    begin = min(part * part_n, n);
    end = min(begin + part_n, n);
  }
};

// Loads a window of the other sequence into shared memory.
template <typename Key>
__device__ __forceinline__ void load_window(const Arrays<Key> &shared, const Arrays<Key> &other, u32 n)
{
  __syncthreads(); // the window before is no longer used
  for (u32 i = threadIdx.x; i < n; i += threads)
    shared.set(i, other[i]);
  __syncthreads();
}

template <typename Order>
__global__ void __launch_bounds__(threads)
    merge_sequences(Order order, Level level, Arrays<typename Order::Key> from,
                    Arrays<typename Order::Key> to)
{
  using Key = typename Order::Key;

  __shared__ Key shared_keys[shared_window];
  __shared__ u32 shared_rows[shared_window];
  __shared__ u64 shared_next; // the place in the other sequence of the last item in registers
  const Arrays<Key> shared = {shared_keys, shared_rows};
  const Part part(level);

  if (part.begin == part.end)
    return;

  const Arrays<Key> own = from.from(part.sequence);
  const Arrays<Key> other = from.from(part.other);
  const Arrays<Key> output = to.from(min(part.sequence, part.other));

  // Where the part begins in the other sequence.
  if (threadIdx.x == 0)
    shared_next = part.begin == 0 ? 0
                                  : find_place(order, other, {0, static_cast<u32>(part.other_n), 0},
                                               own[part.begin], part.is_second);
  __syncthreads();

  u64 window = shared_next; // place of the shared window in the other sequence
  u32 window_n = 0;
  bool load = true;

  for (u64 registers = part.begin; registers < part.end; registers += register_window)
  {
    const u64 first = registers + threadIdx.x * merge_items;
    const u32 n = first < part.end ? static_cast<u32>(min(part.end - first, u64{merge_items})) : 0;
    Item<Key> items[merge_items];
    u32 done = 0;

#pragma unroll
    for (u32 k = 0; k < merge_items; k++)
      if (k < n)
        items[k] = own[first + k];

    for (;;)
    {
      if (load)
      {
        window_n = static_cast<u32>(min(part.other_n - window, u64{shared_window}));
        load_window(shared, other.from(window), window_n);
      }

      const bool is_last_window = window + window_n == part.other_n;
      u32 place = 0;
      u32 linear_steps = 0; // the first search in a window is binary

#pragma unroll
      for (u32 k = 0; k < merge_items; k++)
        if (k == done && k < n)
        {
          place = find_place(order, shared, {place, window_n, linear_steps}, items[k], part.is_second);
          linear_steps = Order::linear_steps;
          if (place == window_n && !is_last_window)
            continue;
          output.set(first + k + window + place, items[k]);
          done++;
          if (first + k + 1 == part.end || (threadIdx.x == threads - 1 && k == merge_items - 1))
            shared_next = window + place;
        }
      if (__syncthreads_and(done == n))
        break;
      window += window_n;
      load = true;
    }

    u64 next = shared_next;

    load = next - window >= shift_threshold;
    if (load)
      window = next;
    __syncthreads(); // all threads have read shared_next
  }
}

template <typename Key>
struct Workspace
{
  Arrays<Key> arrays[2];
};

template <typename Key>
Workspace<Key> alias_workspace(TempStorage &storage, u32 n_rows)
{
  Workspace<Key> workspace;

  for (Arrays<Key> &arrays : workspace.arrays)
    arrays = {storage.alias<Key>(n_rows), storage.alias<u32>(n_rows)};
  return workspace;
}

template <typename Key>
u64 workspace_bytes(u32 n_rows)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace<Key>(storage, n_rows); });
}

// Blocks that fill the GPU.
template <typename Order>
u32 needed_blocks()
{
  int blocks = 0;

  GS_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, merge_sequences<Order>,
                                                            static_cast<int>(threads), 0));
  return device_attribute(cudaDevAttrMultiProcessorCount) * static_cast<u32>(std::max(blocks, 1));
}

// Sorts the items in *from, which changes places with *to on each level.
template <typename Order>
void merge_sort(const Order &order, u32 n_rows, Arrays<typename Order::Key> *from,
                Arrays<typename Order::Key> *to, cudaStream_t stream)
{
  u32 needed = needed_blocks<Order>();

  sort_blocks<Order><<<blocks_for(n_rows, block_items), threads, 0, stream>>>(order, n_rows, *from);
  GS_CUDA_LAUNCHED();
  for (u64 length = block_items; length < n_rows; length *= 2)
  {
    u32 sequences = static_cast<u32>((n_rows + length - 1) / length);
    u32 max_parts = static_cast<u32>(length / register_window); // no part smaller than the registers hold
    u32 parts = std::max(std::min(needed / sequences, max_parts), 1u);

    merge_sequences<Order>
        <<<sequences * parts, threads, 0, stream>>>(order, Level{n_rows, length, parts}, *from, *to);
    GS_CUDA_LAUNCHED();
    std::swap(*from, *to);
  }
}

template <typename Key>
void sort_fixed_keys(const OrderJob &job, const SqueezedLayout &layout, cudaStream_t stream)
{
  TempStorage storage(job.workspace);
  Workspace<Key> workspace = alias_workspace<Key>(storage, job.n_rows);
  Arrays<Key> &from = workspace.arrays[0];

  squeeze_keys(job, layout, from.keys, from.rows, stream);
  merge_sort(FixedOrder<Key>(), job.n_rows, &from, &workspace.arrays[1], stream);
  GS_CUDA_TRY(cudaMemcpyAsync(job.order.row, from.rows, u64{job.n_rows} * sizeof(u32),
                              cudaMemcpyDeviceToDevice, stream));
  mark_squeezed_ties(from.keys, job.n_rows, job.order.tie, stream);
}

__global__ void __launch_bounds__(threads)
    load_first_characters(const KeyRef *refs, u32 n_rows, Arrays<u32> items)
{
  u64 row = u64{blockIdx.x} * threads + threadIdx.x;

  if (row >= n_rows)
    return;

  KeyRef ref = load_key(refs, static_cast<u32>(row));

  items.set(row, {static_cast<u32>(load_word(ref.address, ref.length) >> 32), static_cast<u32>(row)});
}

__global__ void __launch_bounds__(threads)
    write_order(StringOrder string_order, Arrays<u32> sorted, u32 n_rows, KeyOrder order)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;
  order.row[i] = sorted.rows[i];
  order.tie[i] = i > 0 && string_order.compare(sorted[i - 1], sorted[i]) == 0;
}

void sort_strings(const OrderJob &job, cudaStream_t stream)
{
  TempStorage storage(job.workspace);
  Workspace<u32> workspace = alias_workspace<u32>(storage, job.n_rows);
  Arrays<u32> &from = workspace.arrays[0];
  StringOrder string_order{job.keys};
  u32 blocks = blocks_for(job.n_rows, threads);

  load_first_characters<<<blocks, threads, 0, stream>>>(job.keys, job.n_rows, from);
  GS_CUDA_LAUNCHED();
  merge_sort(string_order, job.n_rows, &from, &workspace.arrays[1], stream);
  write_order<<<blocks, threads, 0, stream>>>(string_order, from, job.n_rows, job.order);
  GS_CUDA_LAUNCHED();
}

} // namespace

u64 merge2012_workspace(u32 n_rows)
{
  return std::max(workspace_bytes<u32>(n_rows), workspace_bytes<u64>(n_rows));
}

void merge2012(const OrderJob &job, cudaStream_t stream)
{
  if (!fixed_keys_fit(job.stats))
    return sort_strings(job, stream);

  SqueezedLayout layout = squeezed_layout(job.stats);

  with_squeezed(layout, [&](auto key) { sort_fixed_keys<decltype(key)>(job, layout, stream); });
}

} // namespace gpusort
