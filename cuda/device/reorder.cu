/*-------------------------------------------------------------------------
 *
 * reorder.cu
 *	  Moving rows of a finished order about.
 *
 * The ranks are checked first, with a bit for every row: those that rows go to
 * are set, then those that rows come from are struck out.  A bit found set, or
 * found struck out, belongs to a rank named twice or to one side only.  The rows
 * are copied away while their ranks are struck out, and back to their new
 * ranks once the host has seen that all is well.  Then the keys of neighbours
 * are compared, and the pages laid out anew.
 *
 *-------------------------------------------------------------------------
 */
#include "device/reorder.cuh"

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

struct Workspace
{
  uint64_t *to;
  uint64_t *from;
  RowRef *rows; // those that move, in the order of to
  KeySpan *spans;
  u32 *seen;
  u64 seen_bytes;
  u32 *wrong;
  char *layout;
};

Workspace alias_workspace(TempStorage &storage, const MoveInput &input, const RowStats &stats)
{
  Workspace space;

  space.to = storage.alias<uint64_t>(input.n);
  space.from = storage.alias<uint64_t>(input.n);
  space.rows = storage.alias<RowRef>(input.n);
  space.spans = storage.alias<KeySpan>(input.n);
  space.seen_bytes = (u64{input.n_rows} / 32 + 1) * sizeof(u32);
  space.seen = storage.alias<u32>(space.seen_bytes / sizeof(u32));
  space.wrong = storage.alias<u32>(1);
  space.layout = storage.alias<char>(layout_pages_workspace(input.n_rows, stats.page_bytes, input.chunk_bytes));
  return space;
}

__global__ void __launch_bounds__(threads)
    mark_targets(const uint64_t *to, u32 n, u32 n_rows, u32 *seen, u32 *wrong)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u64 rank = to[i];
  u32 bit = 1u << rank % 32;

  if (rank >= n_rows || (atomicOr(&seen[rank / 32], bit) & bit) != 0)
    *wrong = 1;
}

__global__ void __launch_bounds__(threads)
    take_rows(const uint64_t *from, u32 n, u32 n_rows, const RowRef *rows, const KeySpan *spans, u32 *seen,
              u32 *wrong, RowRef *taken_rows, KeySpan *taken_spans)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u64 rank = from[i];
  u32 bit = 1u << rank % 32;

  if (rank >= n_rows || (atomicAnd(&seen[rank / 32], ~bit) & bit) == 0)
  {
    *wrong = 1;
    return;
  }
  taken_rows[i] = rows[rank];
  taken_spans[i] = spans[rank];
}

__global__ void __launch_bounds__(threads) put_rows(const uint64_t *to, u32 n, const RowRef *taken_rows,
                                                    const KeySpan *taken_spans, RowRef *rows, KeySpan *spans)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;
  rows[to[i]] = taken_rows[i];
  spans[to[i]] = taken_spans[i];
}

__device__ bool keys_equal(const RowRef *rows, const KeySpan *spans, u64 a, u64 b)
{
  const KeySpan x = spans[a];
  const KeySpan y = spans[b];
  u32 length = x.length & GS_LENGTH_MASK;
  u64 x_key = rows[a].address + static_cast<u64>(static_cast<int64_t>(x.offset));
  u64 y_key = rows[b].address + static_cast<u64>(static_cast<int64_t>(y.offset));

  if ((y.length & GS_LENGTH_MASK) != length)
    return false;
  for (u32 at = 0; at < length; at += 8)
    if (load_word(x_key + at, length - at) != load_word(y_key + at, length - at))
      return false;
  return true;
}

// Whether a row has the key of the one before it.  Two threads may look at
// one row, and find the same.
__device__ void compare_row(RowRef *rows, const KeySpan *spans, u64 rank)
{
  if (rank > 0 && keys_equal(rows, spans, rank - 1, rank))
    atomicOr(&rows[rank].info, GS_ENTRY_TIE);
  else
    atomicAnd(&rows[rank].info, ~GS_ENTRY_TIE);
}

__global__ void __launch_bounds__(threads)
    compare_rows(const uint64_t *to, u32 n, u32 n_rows, RowRef *rows, const KeySpan *spans)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n)
    return;

  u64 rank = to[i];

  compare_row(rows, spans, rank);
  if (rank + 1 < n_rows && (i + 1 == n || to[i + 1] != rank + 1))
    compare_row(rows, spans, rank + 1);
}

} // namespace

void reorder(Performer &performer, DeviceMemory &memory, const MoveInput &input, const PerformOutput &output,
             PageTable *pages, bool *moving)
{
  cudaStream_t stream = performer.stream;
  TempStorage sizes;

  alias_workspace(sizes, input, output.stats);

  Reservation reserved(memory, align_up<u64>(sizes.bytes(), 512), "moving rows");
  DeviceBuffer workspace(memory, sizes.bytes(), stream);
  TempStorage storage(workspace.get());
  Workspace space = alias_workspace(storage, input, output.stats);
  u32 n = input.n;
  u32 n_rows = input.n_rows;
  u32 blocks = blocks_for(n, threads);

  GS_CUDA_TRY(cudaMemcpyAsync(space.to, input.to, n * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(cudaMemcpyAsync(space.from, input.from, n * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(cudaMemsetAsync(space.seen, 0, space.seen_bytes, stream));
  GS_CUDA_TRY(cudaMemsetAsync(space.wrong, 0, sizeof(u32), stream));
  mark_targets<<<blocks, threads, 0, stream>>>(space.to, n, n_rows, space.seen, space.wrong);
  GS_CUDA_LAUNCHED();
  take_rows<<<blocks, threads, 0, stream>>>(space.from, n, n_rows, output.rows, output.spans, space.seen,
                                            space.wrong, space.rows, space.spans);
  GS_CUDA_LAUNCHED();
  GS_CUDA_TRY(
      cudaMemcpyAsync(performer.wrong.get(), space.wrong, sizeof(u32), cudaMemcpyDeviceToHost, stream));
  performer.event.record(stream);
  performer.event.wait();
  if (*performer.wrong.get() != 0)
    fail(GS_INVALID, "rows were to be moved from other ranks than to");

  *moving = true;
  put_rows<<<blocks, threads, 0, stream>>>(space.to, n, space.rows, space.spans, output.rows, output.spans);
  GS_CUDA_LAUNCHED();
  compare_rows<<<blocks, threads, 0, stream>>>(space.to, n, n_rows, output.rows, output.spans);
  GS_CUDA_LAUNCHED();
  layout_pages(n_rows, output.stats, input.chunk_bytes, space.layout, output.rows, pages, stream);
}

} // namespace gpusort
