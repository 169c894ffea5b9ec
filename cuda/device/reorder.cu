/*-------------------------------------------------------------------------
 *
 * reorder.cu
 *	  Moves rows within a finished order.
 *
 * The ranks are checked first, with a bit for each rank.  One kernel sets the bits of
 * the ranks in `to`.  A second kernel clears the bits of the ranks in `from`, and
 * copies the rows of these ranks away.  A bit that is already set, or already clear,
 * belongs to a rank that is named twice or on one side only.  Once the host has seen
 * that the ranks are right, a third kernel copies the rows back to their new ranks.
 * Then the keys of new neighbours are compared, and the pages are laid out anew.
 *
 *-------------------------------------------------------------------------
 */
#include "device/perform.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

// The moves, in device memory.
struct Moves
{
  uint64_t *to;
  uint64_t *from;
  u32 n;
  u32 n_rows;
};

struct Workspace
{
  Moves moves;
  OrderedRows moved; // rows, in the order of the moves
  u32 *target_bits;  // a bit for each rank
  u64 target_bytes;
  u32 *wrong;
  char *layout;
};

Workspace alias_workspace(TempStorage &storage, const MoveInput &input, const RowStats &stats)
{
  Workspace workspace;

  workspace.moves.to = storage.alias<uint64_t>(input.n);
  workspace.moves.from = storage.alias<uint64_t>(input.n);
  workspace.moves.n = input.n;
  workspace.moves.n_rows = input.n_rows;
  workspace.moved.refs = storage.alias<RowRef>(input.n);
  workspace.moved.spans = storage.alias<KeySpan>(input.n);
  workspace.target_bytes = (u64{input.n_rows} / 32 + 1) * sizeof(u32);
  workspace.target_bits = storage.alias<u32>(workspace.target_bytes / sizeof(u32));
  workspace.wrong = storage.alias<u32>(1);
  workspace.layout =
      storage.alias<char>(layout_pages_workspace(input.n_rows, stats.page_bytes, input.chunk_bytes));
  return workspace;
}

// Sets *wrong where a rank in `to` does not exist or is named twice.
__global__ void __launch_bounds__(threads) mark_targets(Moves moves, u32 *target_bits, u32 *wrong)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= moves.n)
    return;

  u64 rank = moves.to[i];
  u32 bit = 1u << rank % 32;

  if (rank >= moves.n_rows || (atomicOr(&target_bits[rank / 32], bit) & bit) != 0)
    *wrong = 1;
}

// Copies away the rows that move.  Sets *wrong where a rank in `from` is not one in
// `to`, or is named twice.
__global__ void __launch_bounds__(threads)
    take_rows(Moves moves, OrderedRows rows, u32 *target_bits, u32 *wrong, OrderedRows moved)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= moves.n)
    return;

  u64 rank = moves.from[i];
  u32 bit = 1u << rank % 32;

  if (rank >= moves.n_rows || (atomicAnd(&target_bits[rank / 32], ~bit) & bit) == 0)
  {
    *wrong = 1;
    return;
  }
  moved.refs[i] = rows.refs[rank];
  moved.spans[i] = rows.spans[rank];
}

__global__ void __launch_bounds__(threads) put_rows(Moves moves, OrderedRows moved, OrderedRows rows)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= moves.n)
    return;
  rows.refs[moves.to[i]] = moved.refs[i];
  rows.spans[moves.to[i]] = moved.spans[i];
}

__device__ bool keys_equal(const OrderedRows &rows, u64 a, u64 b)
{
  const KeySpan span_a = rows.spans[a];
  const KeySpan span_b = rows.spans[b];
  u32 length = span_a.length & GS_LENGTH_MASK;
  u64 key_a = rows.refs[a].address + static_cast<u64>(static_cast<int64_t>(span_a.offset));
  u64 key_b = rows.refs[b].address + static_cast<u64>(static_cast<int64_t>(span_b.offset));

  if ((span_b.length & GS_LENGTH_MASK) != length)
    return false;
  for (u32 at = 0; at < length; at += 8)
    if (load_word(key_a + at, length - at) != load_word(key_b + at, length - at))
      return false;
  return true;
}

// Sets or clears the tie flag of a rank.  Two threads may do so for the same rank,
// with the same result.
__device__ void compare_row(const OrderedRows &rows, u64 rank)
{
  if (rank > 0 && keys_equal(rows, rank - 1, rank))
    atomicOr(&rows.refs[rank].info, GS_ENTRY_TIE);
  else
    atomicAnd(&rows.refs[rank].info, ~GS_ENTRY_TIE);
}

// Compares each moved row with the row before it, and the row after it with that.
__global__ void __launch_bounds__(threads) compare_rows(Moves moves, OrderedRows rows)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= moves.n)
    return;

  u64 rank = moves.to[i];

  compare_row(rows, rank);
  if (rank + 1 < moves.n_rows && (i + 1 == moves.n || moves.to[i + 1] != rank + 1))
    compare_row(rows, rank + 1);
}

// Copies the moves to the device, checks them, and copies the rows away.
void take_checked_rows(Performer &performer, const MoveInput &input, const Workspace &workspace,
                       const OrderedRows &rows)
{
  cudaStream_t stream = performer.stream;
  const Moves &moves = workspace.moves;
  u32 blocks = blocks_for(moves.n, threads);

  GS_CUDA_TRY(
      cudaMemcpyAsync(moves.to, input.to, moves.n * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(
      cudaMemcpyAsync(moves.from, input.from, moves.n * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(cudaMemsetAsync(workspace.target_bits, 0, workspace.target_bytes, stream));
  GS_CUDA_TRY(cudaMemsetAsync(workspace.wrong, 0, sizeof(u32), stream));
  mark_targets<<<blocks, threads, 0, stream>>>(moves, workspace.target_bits, workspace.wrong);
  GS_CUDA_LAUNCHED();
  take_rows<<<blocks, threads, 0, stream>>>(moves, rows, workspace.target_bits, workspace.wrong,
                                            workspace.moved);
  GS_CUDA_LAUNCHED();
  if (performer.read(workspace.wrong) != 0)
    fail(GS_INVALID, "rows were to be moved from other ranks than to");
}

} // namespace

void reorder(Performer &performer, DeviceMemory &memory, const MoveInput &input, const PerformOutput &output,
             PageTable *pages, bool *moving)
{
  cudaStream_t stream = performer.stream;
  const RowStats &stats = output.stats;
  u64 bytes = storage_bytes([&](TempStorage &storage) { alias_workspace(storage, input, stats); });
  Reservation reservation(memory, align_up<u64>(bytes, 512), "moving rows");
  DeviceBuffer workspace_memory(memory, bytes, stream);
  TempStorage storage(workspace_memory.get());
  Workspace workspace = alias_workspace(storage, input, stats);
  u32 blocks = blocks_for(input.n, threads);

  take_checked_rows(performer, input, workspace, output.rows);

  *moving = true;
  put_rows<<<blocks, threads, 0, stream>>>(workspace.moves, workspace.moved, output.rows);
  GS_CUDA_LAUNCHED();
  compare_rows<<<blocks, threads, 0, stream>>>(workspace.moves, output.rows);
  GS_CUDA_LAUNCHED();
  layout_pages(
      {output.rows, input.n_rows, output.format, input.chunk_bytes, stats.page_bytes, stats.max_page_bytes},
      workspace.layout, performer.buffer, pages, stream);
}

} // namespace gpusort
