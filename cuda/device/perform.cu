/*-------------------------------------------------------------------------
 *
 * perform.cu
 *	  Ordering all rows of a sort: keys, engine, pages.
 *
 * All memory is taken in two allocations before the first kernel: the rows in
 * key order, which stay, and the workspace.  In the workspace the engine's arrays
 * and those of the page layout have the same memory, because the layout comes after the engine.
 * The host waits for the statistics of the rows, then in each round of an engine that needs that, and at last
 * for the page table.
 *
 * If only some rows are kept, the order is cut down to them before any row is read.  All later steps have
 * the kept rows only.
 *
 *-------------------------------------------------------------------------
 */
#include "device/perform.cuh"

#include <algorithm>
#include <cstring>
#include <optional>

#include "rows/keep.cuh"

namespace gpusort
{

namespace
{

struct Workspace
{
  ImageRef *images;
  RowStats *stats;
  KeyRef *keys;
  KeyOrder order;
  u32 *kept;
  char *phase; // the workspace of the engine, then of keep_rows, then of the page layout
  u64 phase_bytes;
};

// What the workspace of a sort depends on.
struct SortSize
{
  GsEngine engine;
  u32 n_rows;
  u64 n_images;
  u64 max_page_bytes; // of all rows in pages, where none overlap in their chunks
  u32 chunk_bytes;

  SortSize(GsEngine engine, u64 n_rows, u64 n_images, u64 data_bytes, u32 chunk_bytes)
      : engine(engine), n_rows(static_cast<u32>(n_rows)), n_images(n_images),
        max_page_bytes(data_bytes + n_rows * (7 + sizeof(GsRecord))), // rows begin at multiples of 8
        chunk_bytes(chunk_bytes)
  {
  }
};

Workspace alias_workspace(TempStorage &storage, const SortSize &size)
{
  Workspace workspace;

  workspace.images = storage.alias<ImageRef>(size.n_images);
  workspace.stats = storage.alias<RowStats>(1);
  workspace.keys = storage.alias<KeyRef>(size.n_rows);
  workspace.order.row = storage.alias<u32>(size.n_rows);
  workspace.order.tie = storage.alias<u8>(size.n_rows);
  workspace.kept = storage.alias<u32>(1);
  workspace.phase_bytes =
      std::max({engine_workspace(size.engine, size.n_rows), keep_some_workspace(size.n_rows),
                layout_pages_workspace(size.n_rows, size.max_page_bytes, size.chunk_bytes)});
  workspace.phase = storage.alias<char>(workspace.phase_bytes);
  return workspace;
}

u64 workspace_bytes(const SortSize &size)
{
  return storage_bytes([&](TempStorage &storage) { alias_workspace(storage, size); });
}

u64 refs_bytes(u64 n_rows)
{
  return align_up<u64>(n_rows * sizeof(RowRef), 512);
}

OrderedRows alias_rows(void *memory, u64 n_rows)
{
  return {static_cast<RowRef *>(memory),
          reinterpret_cast<KeySpan *>(static_cast<char *>(memory) + refs_bytes(n_rows))};
}

// Makes the keys of all rows, and returns the statistics once they are known.
RowStats make_keys(Performer &performer, const SortContext &context, const PerformInput &input,
                   const Workspace &workspace)
{
  u64 n_images = input.images.size();
  u64 bytes = n_images * sizeof(ImageRef);
  char *images = performer.buffer.get(bytes);

  memcpy(images, input.images.data(), bytes);
  GS_CUDA_TRY(cudaMemcpyAsync(workspace.images, images, bytes, cudaMemcpyHostToDevice, context.stream));
  build_keys({workspace.images, static_cast<u32>(n_images), input.n_rows, input.chunk_bytes, input.format},
             input.tuple_keys, workspace.keys, workspace.stats, context.stream);
  GS_CUDA_TRY(cudaMemcpyAsync(performer.stats.get(), workspace.stats, sizeof(RowStats),
                              cudaMemcpyDeviceToHost, context.stream));
  context.wait();
  return *performer.stats.get();
}

// Cuts the order down to the rows that are kept.  Returns their number.
u32 keep_rows(Performer &performer, const GsKeep &keep, const Workspace &workspace, const OrderJob &job)
{
  u32 n = job.n_rows;

  if (keep.unique || keep.group.first > 0)
  {
    keep_some(keep, workspace.images, job, workspace.phase, workspace.kept, performer.stream);
    n = performer.read(workspace.kept);
  }
  return keep.limit > 0 ? static_cast<u32>(std::min<u64>(n, keep.limit)) : n;
}

} // namespace

u64 rows_bytes(u64 n_rows)
{
  return refs_bytes(n_rows) + align_up<u64>(n_rows * sizeof(KeySpan), 512);
}

u64 perform_bytes(GsEngine engine, u64 n_rows, u64 n_images, u64 data_bytes, u32 chunk_bytes)
{
  if (n_rows == 0)
    return 0;
  return align_up<u64>(workspace_bytes({engine, n_rows, n_images, data_bytes, chunk_bytes}), 512) +
         rows_bytes(n_rows);
}

void perform(Performer &performer, DeviceMemory &memory, const std::atomic<bool> &cancelled,
             const PerformInput &input, PerformOutput *output)
{
  cudaStream_t stream = performer.stream;
  SortContext context = {stream, performer.side, performer.event, performer.counts.get(), cancelled};
  u32 n_rows = input.n_rows;
  u64 data_bytes = 0;

  for (const ImageRef &image : input.images)
    data_bytes += image.data_bytes + image.key_bytes;

  const SortSize size(input.engine, n_rows, input.images.size(), data_bytes, input.chunk_bytes);
  DeviceBuffer rows_memory(memory, rows_bytes(n_rows), stream);
  DeviceBuffer workspace_memory(memory, workspace_bytes(size), stream);
  TempStorage storage(workspace_memory.get());
  Workspace workspace = alias_workspace(storage, size);
  const RowStats stats = make_keys(performer, context, input, workspace);

  if (stats.invalid)
    fail(GS_INVALID, "a record points outside of its chunk or breaks its sort's limits");
  if (stats.max_page_bytes > input.chunk_bytes)
    fail(GS_INVALID, "a row and its key take %u bytes in a chunk of %u", stats.max_page_bytes,
         input.chunk_bytes);
  context.check_cancelled();

  OrderJob job = {workspace.keys, n_rows, stats, workspace.phase, workspace.order};

  output->engine = run_engine(context, input.engine, job);

  context.check_cancelled();
  job.n_rows = n_rows = keep_rows(performer, input.keep, workspace, job);

  // Rows and keys that overlap in their chunks can fill more pages than the workspace foresees.
  u64 layout_bytes = layout_pages_workspace(n_rows, stats.page_bytes, input.chunk_bytes);
  std::optional<Reservation> reservation;
  std::optional<DeviceBuffer> layout_memory;
  void *layout_workspace = workspace.phase;

  if (layout_bytes > workspace.phase_bytes)
  {
    reservation.emplace(memory, layout_bytes, "the page table");
    layout_memory.emplace(memory, layout_bytes, stream);
    layout_workspace = layout_memory->get();
  }

  OrderedRows rows = alias_rows(rows_memory.get(), n_rows);

  if (n_rows == 0)
    output->pages.first_row.assign(1, 0);
  else
  {
    order_rows(workspace.images, job, rows, stream);
    layout_pages({rows, n_rows, input.format, input.chunk_bytes, stats.page_bytes, stats.max_page_bytes},
                 layout_workspace, performer.buffer, &output->pages, stream);
  }

  output->n_rows = n_rows;
  output->format = input.format;
  output->stats = stats;
  output->rows = rows;
  (void)rows_memory.detach();
}

} // namespace gpusort
