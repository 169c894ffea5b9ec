/*-------------------------------------------------------------------------
 *
 * perform.cu
 *	  Ordering all rows of a sort: keys, engine, pages.
 *
 * All memory is taken in two allocations before the first kernel: the rows in
 * key order, which stay, and the workspace, in which the engine's arrays and
 * those of the page layout follow each other in the same place.  The host
 * waits for the statistics of the rows, for the page table, and in between
 * once a round of those engines that need it.
 *
 *-------------------------------------------------------------------------
 */
#include "device/perform.cuh"

#include <algorithm>
#include <optional>

namespace gpusort
{

namespace
{

struct Workspace
{
  ImageRef *images;
  RowStats *stats;
  KeyRef *keys;
  u32 *order;
  u8 *tie;
  char *phase; // the engine's, then the layout's
};

Workspace alias_workspace(TempStorage &storage, GsEngine engine, u32 n_rows, u64 n_images, u64 page_bytes_total,
                          u32 chunk_bytes)
{
  Workspace space;

  space.images = storage.alias<ImageRef>(n_images);
  space.stats = storage.alias<RowStats>(1);
  space.keys = storage.alias<KeyRef>(n_rows);
  space.order = storage.alias<u32>(n_rows);
  space.tie = storage.alias<u8>(n_rows);
  space.phase = storage.alias<char>(std::max(engine_workspace(engine, n_rows),
                                          layout_pages_workspace(n_rows, page_bytes_total, chunk_bytes)));
  return space;
}

// What rows take in pages is known only on the device; this is never less.
u64 max_page_bytes(u64 n_rows, u64 row_bytes)
{
  return row_bytes + n_rows * (7 + sizeof(u32));
}

} // namespace

u64 rows_bytes(u64 n_rows)
{
  return align_up<u64>(n_rows * sizeof(RowRef), 512) + align_up<u64>(n_rows * sizeof(KeySpan), 512);
}

u64 perform_bytes(GsEngine engine, u64 n_rows, u64 n_images, u64 row_bytes, u32 chunk_bytes)
{
  if (n_rows == 0)
    return 0;

  TempStorage storage;

  alias_workspace(storage, engine, static_cast<u32>(n_rows), n_images, max_page_bytes(n_rows, row_bytes),
                  chunk_bytes);
  return align_up<u64>(storage.bytes(), 512) + rows_bytes(n_rows);
}

void perform(Performer &performer, DeviceMemory &memory, const std::atomic<bool> &cancelled,
             const PerformInput &input, PerformOutput *output)
{
  cudaStream_t stream = performer.stream;
  SortContext context = {stream, performer.side, performer.event, performer.counts.get(), cancelled};
  u32 n_rows = input.n_rows;
  u64 n_images = input.images.size();
  u64 row_bytes = 0;

  for (const ImageRef &image : input.images)
    row_bytes += image.data_bytes;

  u64 page_bytes_total = max_page_bytes(n_rows, row_bytes);
  TempStorage sizes;

  alias_workspace(sizes, input.engine, n_rows, n_images, page_bytes_total, input.chunk_bytes);

  DeviceBuffer rows(memory, rows_bytes(n_rows), stream);
  DeviceBuffer workspace(memory, sizes.bytes(), stream);
  TempStorage storage(workspace.get());
  Workspace space =
      alias_workspace(storage, input.engine, n_rows, n_images, page_bytes_total, input.chunk_bytes);

  GS_CUDA_TRY(cudaMemcpyAsync(space.images, input.images.data(), n_images * sizeof(ImageRef),
                              cudaMemcpyHostToDevice, stream));
  build_keys(space.images, static_cast<u32>(n_images), n_rows, input.chunk_bytes, input.key_width, space.keys,
             space.stats, stream);
  GS_CUDA_TRY(
      cudaMemcpyAsync(performer.stats.get(), space.stats, sizeof(RowStats), cudaMemcpyDeviceToHost, stream));
  context.wait();

  const RowStats stats = *performer.stats.get();

  if (stats.invalid)
    fail(GS_INVALID, "a record points outside of its chunk or breaks its sort's limits");
  context.check_cancelled();

  EngineReport report =
      run_engine(context, input.engine, space.keys, n_rows, stats, space.phase, space.order, space.tie);

  context.check_cancelled();

  // Rows that overlap in their chunks can fill more pages than were foreseen.
  u64 layout_bytes = layout_pages_workspace(n_rows, stats.page_bytes, input.chunk_bytes);
  std::optional<Reservation> reserved;
  std::optional<DeviceBuffer> more;
  void *phase = space.phase;

  if (stats.page_bytes > page_bytes_total)
  {
    reserved.emplace(memory, layout_bytes, "the page table");
    more.emplace(memory, layout_bytes, stream);
    phase = more->get();
  }

  RowRef *row_refs = static_cast<RowRef *>(rows.get());
  KeySpan *spans = reinterpret_cast<KeySpan *>(static_cast<char *>(rows.get()) +
                                               align_up<u64>(n_rows * sizeof(RowRef), 512));

  order_rows(space.images, space.keys, n_rows, space.order, space.tie, row_refs, spans, stream);
  layout_pages(n_rows, stats, input.chunk_bytes, phase, row_refs, &output->pages, stream);

  output->stats = stats;
  output->rounds = report.rounds;
  output->engine = report.name;
  output->spans = spans;
  output->rows = static_cast<RowRef *>(rows.detach());
}

} // namespace gpusort
