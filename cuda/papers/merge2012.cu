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
 *	  items of the neighbouring sequence, the first by binary search, the others
 *	  by linear search from there.
 *
 * Merging (section 3, "simple" and "multiple")
 *	  A level merges pairs of sequences.  The items of one sequence, a window of
 *	  some for each thread, are held in registers; a window of the other one, of
 *	  1024 items, in shared memory.  Items whose place is found go to their own
 *	  number plus that place in the output, those beyond the shared window wait
 *	  for the next one.  When all registers are done, the place of their last item
 *	  is where the next search begins; if that spares threshold items or more,
 *	  the shared window is loaded anew from there ("shift load").  Each sequence of a
 *	  pair takes both parts, so that an item is read twice and written once in
 *	  a level, as section 6 counts.
 *
 *	  While there are sequences enough to fill the GPU, a block takes a whole
 *	  one.  On the last levels each is cut into as many parts as blocks are needed
 *	  (s * l = p), of any size; a binary search in memory tells where in the other
 *	  sequence a part begins.
 *
 * Items
 *	  Key and value: keys of one length are squeezed into 4, 8 or 16 bytes by
 *	  fixed_keys.cu, and the value is the row number; the paper's third kind, keys
 *	  without a value, has no use here.  Strings (section 4): the
 *	  first 4 characters as key; where keys are equal, the strings are compared in
 *	  memory.  For strings, linear searches are cut short and go on as binary
 *	  ones (section 6.2).
 *
 * Stability, which a bitonic network lacks: rows come in the order of their
 * numbers, so that within the network equal keys are ordered by them.  While
 * merging, the first sequence's items go before equal ones of the second.
 * Strings may hold NUL: they are compared as if zeros followed them, then by length.
 *
 * Memory
 *	  Per row two keys and two row numbers: 40 bytes at most.
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
constexpr u32 sort_items = 8; // a thread, in the block sort
constexpr u32 block_items = threads * sort_items;
constexpr u32 merge_items = 4; // a thread, in registers
constexpr u32 register_window = threads * merge_items;
constexpr u32 shared_window = 1024;
constexpr u32 shift_threshold = shared_window / 4;
constexpr u32 string_linear_steps = 4;

// Behind the last row, greater than all.
constexpr u32 no_row = ~0u;

template <typename Key>
struct Item
{
  Key key;
  u32 row;
};

// Keys that are the whole truth.
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

// Keys of the first 4 characters.
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
    u32 least = min(a.length, b.length);

    for (u32 at = key_bytes; at < least; at += 8)
    {
      u64 a_word = load_word(a.address + at, a.length - at);
      u64 b_word = load_word(b.address + at, b.length - at);

      if (a_word != b_word)
        return a_word < b_word ? -1 : 1;
    }

    // What is left of the longer one might begin with other bytes than zeros,
    // but is longer anyhow.
    return a.length < b.length ? -1 : a.length > b.length;
  }
};

// Whether a goes before b when a stands behind b: only if it is less.
template <typename Order>
__device__ __forceinline__ bool less(const Order &order, const Item<typename Order::Key> &a,
                                     const Item<typename Order::Key> &b)
{
  return order.compare(a, b) < 0;
}

// Of n sorted items those that go before `item`: the lesser ones, and with
// equal_too those equal to it.  Looked for from `from` on; the first `linear`
// one by one.
template <typename Order>
__device__ __forceinline__ u32 find_place(const Order &order, const typename Order::Key *keys,
                                          const u32 *rows, u32 from, u32 n,
                                          const Item<typename Order::Key> &item, bool equal_too, u32 linear)
{
  u32 low = from;
  u32 high = n;

  for (u32 step = 0; step < linear && low < high; step++)
  {
    Item<typename Order::Key> other = {keys[low], rows[low]};

    if (equal_too ? less(order, item, other) : !less(order, other, item))
      return low;
    low++;
  }
  while (low < high)
  {
    u32 middle = low + (high - low) / 2;
    Item<typename Order::Key> other = {keys[middle], rows[middle]};

    if (equal_too ? !less(order, item, other) : less(order, other, item))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// ---- block sort ----

template <typename Order>
__device__ __forceinline__ void exchange(const Order &order, Item<typename Order::Key> &a,
                                         Item<typename Order::Key> &b, bool ascending)
{
  // Rows stand for the order that they came in.
  bool behind;

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

template <typename Order>
__global__ void __launch_bounds__(threads)
    sort_blocks(Order order, u32 n_rows, typename Order::Key *keys, u32 *rows)
{
  using Key = typename Order::Key;

  __shared__ Key shared_keys[block_items];
  __shared__ u32 shared_rows[block_items];

  u64 first = u64{blockIdx.x} * block_items;
  u32 n = static_cast<u32>(min(u64{n_rows} - first, u64{block_items}));
  u32 own = threadIdx.x * sort_items;
  Item<Key> items[sort_items];

  for (u32 i = threadIdx.x; i < block_items; i += threads)
  {
    shared_keys[i] = i < n ? keys[first + i] : Key{0};
    shared_rows[i] = i < n ? rows[first + i] : no_row;
  }
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
    items[k] = {shared_keys[own + k], shared_rows[own + k]};
  sort_registers(order, items);
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < sort_items; k++)
  {
    shared_keys[own + k] = items[k].key;
    shared_rows[own + k] = items[k].row;
  }
  __syncthreads();

  // What fills the block up is at its end from now on, and no part of it.
  for (u32 length = sort_items; length < block_items; length *= 2)
  {
    u32 begin = own / length * length; // of the own sequence
    u32 other = begin ^ length;
    u32 other_n = other < n ? min(length, n - other) : 0;
    u32 base = min(begin, other) + (own - begin); // and the place in the other one
    u32 places[sort_items];
    u32 place = 0;

#pragma unroll
    for (u32 k = 0; k < sort_items; k++)
    {
      items[k] = {shared_keys[own + k], shared_rows[own + k]};
      if (own + k < n)
      {
        place = find_place(order, shared_keys + other, shared_rows + other, place, other_n, items[k],
                           other < begin, k == 0 ? 0 : Order::linear_steps);
        places[k] = base + k + place;
      }
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < sort_items; k++)
      if (own + k < n)
      {
        shared_keys[places[k]] = items[k].key;
        shared_rows[places[k]] = items[k].row;
      }
    __syncthreads();
  }
  for (u32 i = threadIdx.x; i < n; i += threads)
  {
    keys[first + i] = shared_keys[i];
    rows[first + i] = shared_rows[i];
  }
}

// ---- merging ----

// A level: sequences of `length` items, neighbours to be merged, each cut into
// parts.
struct Level
{
  u64 n_rows;
  u64 length;
  u32 parts;
};

template <typename Key>
struct Arrays
{
  Key *keys;
  u32 *rows;
};

// The same search in memory, for where a part begins.
template <typename Order>
__device__ u64 find_far(const Order &order, const typename Order::Key *keys, const u32 *rows, u64 n,
                        const Item<typename Order::Key> &item, bool equal_too)
{
  u64 low = 0;
  u64 high = n;

  while (low < high)
  {
    u64 middle = low + (high - low) / 2;
    Item<typename Order::Key> other = {keys[middle], rows[middle]};

    if (equal_too ? !less(order, item, other) : less(order, other, item))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <typename Order>
__global__ void __launch_bounds__(threads)
    merge_sequences(Order order, Level level, Arrays<typename Order::Key> from,
                    Arrays<typename Order::Key> to)
{
  using Key = typename Order::Key;

  __shared__ Key shared_keys[shared_window];
  __shared__ u32 shared_rows[shared_window];
  __shared__ u64 shared_begin;

  // Block numbers count parts of sequences.
  u64 sequence = blockIdx.x / level.parts;
  u32 part = blockIdx.x % level.parts;
  u64 own = sequence * level.length;
  u64 other = (sequence ^ 1) * level.length;
  bool second = sequence % 2 != 0; // equal items of the other one go before
  u64 own_n = min(level.length, level.n_rows - own);
  u64 other_n = other < level.n_rows ? min(level.length, level.n_rows - other) : 0;
  u64 part_n = (own_n + level.parts - 1) / level.parts;
  u64 part_begin = min(part * part_n, own_n);
  u64 part_end = min(part_begin + part_n, own_n);

  if (part_begin == part_end)
    return;

  const Key *own_keys = from.keys + own;
  const u32 *own_rows = from.rows + own;
  const Key *other_keys = from.keys + other;
  const u32 *other_rows = from.rows + other;
  Key *to_keys = to.keys + min(own, other);
  u32 *to_rows = to.rows + min(own, other);

  if (threadIdx.x == 0)
    shared_begin = part == 0 ? 0
                             : find_far(order, other_keys, other_rows, other_n,
                                        {own_keys[part_begin], own_rows[part_begin]}, second);
  __syncthreads();

  u64 window = shared_begin; // where the shared one begins
  u32 window_n = 0;
  bool load = true;

  for (u64 registers = part_begin; registers < part_end; registers += register_window)
  {
    u64 mine = registers + threadIdx.x * merge_items;
    u32 n = mine < part_end ? static_cast<u32>(min(part_end - mine, u64{merge_items})) : 0;
    Item<Key> items[merge_items];
    u32 done = 0;

#pragma unroll
    for (u32 k = 0; k < merge_items; k++)
      if (k < n)
        items[k] = {own_keys[mine + k], own_rows[mine + k]};

    for (;;)
    {
      if (load)
      {
        __syncthreads(); // the last window has been used
        window_n = static_cast<u32>(min(other_n - window, u64{shared_window}));
        for (u32 i = threadIdx.x; i < window_n; i += threads)
        {
          shared_keys[i] = other_keys[window + i];
          shared_rows[i] = other_rows[window + i];
        }
        __syncthreads();
      }

      bool last_window = window + window_n == other_n;
      u32 place = 0;
      bool first = true;

#pragma unroll
      for (u32 k = 0; k < merge_items; k++)
        if (k == done && k < n)
        {
          place = find_place(order, shared_keys, shared_rows, place, window_n, items[k], second,
                             first ? 0 : Order::linear_steps);
          first = false;
          if (place < window_n || last_window)
          {
            u64 at = mine + k + window + place;

            to_keys[at] = items[k].key;
            to_rows[at] = items[k].row;
            done++;

            // The last item of all tells where the next ones' search begins.
            if (mine + k + 1 == part_end || (threadIdx.x == threads - 1 && k == merge_items - 1))
              shared_begin = window + place;
          }
        }
      if (__syncthreads_and(done == n))
        break;
      window += window_n;
      load = true;
    }

    u64 begin = shared_begin;

    load = begin - window >= shift_threshold;
    if (load)
      window = begin;
    __syncthreads(); // all have read where to begin
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
  Workspace<Key> space;

  for (Arrays<Key> &arrays : space.arrays)
    arrays = {storage.alias<Key>(n_rows), storage.alias<u32>(n_rows)};
  return space;
}

template <typename Key>
u64 workspace_of(u32 n_rows)
{
  TempStorage storage;

  alias_workspace<Key>(storage, n_rows);
  return storage.bytes();
}

// Blocks that fill the GPU.
template <typename Order>
u32 needed_blocks()
{
  int device = 0;
  int processors = 0;
  int blocks = 0;

  GS_CUDA_TRY(cudaGetDevice(&device));
  GS_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  GS_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, merge_sequences<Order>,
                                                            static_cast<int>(threads), 0));
  return static_cast<u32>(processors * std::max(blocks, 1));
}

// Sorts the items in *from, which trades places with *to each level; returns
// how many levels there were, the block sort included.
template <typename Order>
u32 sort_items_of(const Order &order, u32 n_rows, Arrays<typename Order::Key> *from,
                  Arrays<typename Order::Key> *to, cudaStream_t stream)
{
  u32 needed = needed_blocks<Order>();
  u32 levels = 1;

  sort_blocks<Order>
      <<<blocks_for(n_rows, block_items), threads, 0, stream>>>(order, n_rows, from->keys, from->rows);
  GS_CUDA_LAUNCHED();
  for (u64 length = block_items; length < n_rows; length *= 2)
  {
    u32 sequences = static_cast<u32>((n_rows + length - 1) / length);
    u32 most = static_cast<u32>(length / register_window); // no part smaller than what registers hold
    u32 parts = std::max(std::min(needed / sequences, most), 1u);

    merge_sequences<Order>
        <<<sequences * parts, threads, 0, stream>>>(order, Level{n_rows, length, parts}, *from, *to);
    GS_CUDA_LAUNCHED();
    std::swap(*from, *to);
    levels++;
  }
  return levels;
}

template <typename Key>
u32 sort_fixed_keys(const KeyRef *refs, u32 n_rows, const FixedSpan &span, void *workspace, u32 *order,
                    u8 *tie, cudaStream_t stream)
{
  TempStorage storage(workspace);
  Workspace<Key> space = alias_workspace<Key>(storage, n_rows);
  Arrays<Key> &from = space.arrays[0];

  squeeze_keys(refs, n_rows, span, from.keys, from.rows, stream);

  u32 levels = sort_items_of(FixedOrder<Key>(), n_rows, &from, &space.arrays[1], stream);

  GS_CUDA_TRY(cudaMemcpyAsync(order, from.rows, u64{n_rows} * sizeof(u32), cudaMemcpyDeviceToDevice, stream));
  mark_fixed_ties(from.keys, n_rows, tie, stream);
  return levels;
}

__global__ void __launch_bounds__(threads)
    load_first_characters(const KeyRef *refs, u32 n_rows, u32 *keys, u32 *rows)
{
  u64 row = u64{blockIdx.x} * threads + threadIdx.x;

  if (row >= n_rows)
    return;

  KeyRef ref = load_key(refs, static_cast<u32>(row));

  keys[row] = static_cast<u32>(load_word(ref.address, ref.length) >> 32);
  rows[row] = static_cast<u32>(row);
}

__global__ void __launch_bounds__(threads)
    write_strings(StringOrder string_order, const u32 *keys, const u32 *rows, u32 n_rows, u32 *order, u8 *tie)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;
  order[i] = rows[i];
  tie[i] = i > 0 && string_order.compare({keys[i - 1], rows[i - 1]}, {keys[i], rows[i]}) == 0;
}

} // namespace

u64 merge2012_workspace(u32 n_rows)
{
  return std::max({workspace_of<u32>(n_rows), workspace_of<u64>(n_rows), workspace_of<u128>(n_rows)});
}

u32 merge2012(const SortContext &context, const KeyRef *keys, u32 n_rows, const RowStats &stats,
              void *workspace, u32 *order, u8 *tie)
{
  cudaStream_t stream = context.stream;

  if (fixed_keys_fit(stats))
  {
    FixedSpan span = find_fixed_span(stats);

    if (span.n_bytes <= 4)
      return sort_fixed_keys<u32>(keys, n_rows, span, workspace, order, tie, stream);
    if (span.n_bytes <= 8)
      return sort_fixed_keys<u64>(keys, n_rows, span, workspace, order, tie, stream);
    return sort_fixed_keys<u128>(keys, n_rows, span, workspace, order, tie, stream);
  }

  TempStorage storage(workspace);
  Workspace<u32> space = alias_workspace<u32>(storage, n_rows);
  Arrays<u32> &from = space.arrays[0];
  StringOrder string_order{keys};
  u32 blocks = blocks_for(n_rows, threads);

  load_first_characters<<<blocks, threads, 0, stream>>>(keys, n_rows, from.keys, from.rows);
  GS_CUDA_LAUNCHED();

  u32 levels = sort_items_of(string_order, n_rows, &from, &space.arrays[1], stream);

  write_strings<<<blocks, threads, 0, stream>>>(string_order, from.keys, from.rows, n_rows, order, tie);
  GS_CUDA_LAUNCHED();
  return levels;
}

} // namespace gpusort
