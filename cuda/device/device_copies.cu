/*-------------------------------------------------------------------------
 *
 * device_copies.cu
 *	  The thread of a CUDA device that copies pages, keys and images out.
 *
 * Buffers
 *	  Pages and keys reach the host through buffers in device memory.  Appends reserve the
 *	  memory for the least number of page buffers, so that a sort that was performed
 *	  can be fetched.  Further page buffers, and all buffers for keys, are taken where
 *	  the limit leaves room.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_state.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

// The number of a sort's buffers for pages.
constexpr u64 min_page_buffers = 2;
constexpr u64 max_page_buffers = 4;

// The number of a sort's buffers for keys; one at least.
constexpr u64 max_key_buffers = 3;

u64 page_buffers_bytes(const GsDeviceSort *sort, u64 count)
{
  return count * align_up<u64>(sort->spec.chunk_bytes, 512);
}

// Lets the gather stream wait until what a buffer holds has been copied, by the fetch that used it last; it
// is this fetch's from now on.
void claim_buffer(OutputBuffer *buffer, CopyLane *lane)
{
  if (buffer->fetch > lane->n_finished)
    GS_CUDA_TRY(cudaStreamWaitEvent(lane->gather_stream,
                                    lane->slots[(buffer->fetch - 1) % lane->max_slots].copy_end));
  buffer->fetch = lane->n_started;
}

void start_fetch(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  u64 chunk_bytes = sort->spec.chunk_bytes;

  check_usable(sort, request);
  if (!sort->performed || request.number >= sort->output.pages.row_bytes.size())
    fail(GS_INVALID, "page %llu was fetched but does not exist", request.number);

  const PageTable &pages = sort->output.pages;
  u64 first = pages.first_row[request.number];
  u32 n = static_cast<u32>(pages.first_row[request.number + 1] - first);
  u32 row_bytes = pages.row_bytes[request.number];
  GsPageFormat format = sort->output.format;
  u64 entries_bytes = u64{n} * entry_bytes(format);
  OutputBuffer &buffer = sort->page_buffers[sort->next_buffer++ % sort->page_buffers.size()];
  char *dst = static_cast<char *>(request.dst);

  // This gather runs while the page before is copied.
  claim_buffer(&buffer, lane);
  slot->gather_begin.record(lane->gather_stream);
  gather_page(sort->output.rows.from(first), n, format, static_cast<u32>(chunk_bytes), buffer.memory,
              lane->gather_stream);
  slot->gather_end.record(lane->gather_stream);

  GS_CUDA_TRY(cudaStreamWaitEvent(lane->copy_stream, slot->gather_end));
  slot->copy_begin.record(lane->copy_stream);
  copy_ends(dst, chunk_bytes, buffer.memory, chunk_bytes, row_bytes, entries_bytes, cudaMemcpyDeviceToHost,
            lane->copy_stream);
  slot->copy_end.record(lane->copy_stream);
}

void start_fetch_image(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;

  check_usable(sort, request);
  if (request.number >= sort->images.size())
    fail(GS_INVALID, "chunk %llu was fetched but does not exist", request.number);

  const ImageRef &image = sort->images[request.number];
  const char *data = reinterpret_cast<const char *>(image.data);

  *request.n_fetched = image.n_records;
  slot->copy_begin.record(lane->copy_stream);
  copy_ends(static_cast<char *>(request.dst), sort->spec.chunk_bytes, data,
            image.first_record + sizeof(GsRecord) - image.data, image.data_bytes,
            u64{image.n_records} * sizeof(GsRecord), cudaMemcpyDeviceToHost, lane->copy_stream);
  slot->copy_end.record(lane->copy_stream);
}

// Takes buffers of this capacity for keys, in place of those that the sort has: as
// many as there is memory for.
void take_key_buffers(GsDeviceSort *sort, KeyRoom room, CopyLane *lane)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 buffer_bytes = key_buffer_bytes(room);
  u64 count = max_key_buffers;

  if (sort->key_memory != nullptr)
  {
    GS_CUDA_TRY(cudaStreamSynchronize(lane->gather_stream));
    GS_CUDA_TRY(cudaStreamSynchronize(lane->copy_stream));
    drop_key_buffers(sort, lane->gather_stream);
  }
  while (!memory.reserve(buffer_bytes * count))
    if (--count == 0)
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %llu of keys",
           memory.limit(), buffer_bytes);
  sort->key_memory_bytes = buffer_bytes * count;
  try
  {
    sort->key_memory = static_cast<char *>(memory.allocate(buffer_bytes * count, lane->gather_stream));
  }
  catch (...)
  {
    memory.release(sort->key_memory_bytes);
    sort->key_memory_bytes = 0;
    throw;
  }
  for (u64 i = 0; i < count; i++)
    sort->key_buffers.push_back({sort->key_memory + i * buffer_bytes, 0});
  sort->key_room = room;
}

void start_fetch_keys(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  u64 first = request.number;
  u64 n_rows = sort->output.n_rows;
  u32 *n_keys = lane->n_keys.get() + (slot - lane->slots);

  check_usable(sort, request);
  if (!sort->performed || first > n_rows)
    fail(GS_INVALID, "key %llu was fetched but does not exist", first);

  KeyRoom room = first < n_rows ? key_room(sort->output.stats, n_rows, request.bytes) : KeyRoom{};
  u32 n = static_cast<u32>(std::min<u64>(room.max_keys, n_rows - first));
  OutputBuffer *buffer = nullptr;

  *n_keys = 0;
  if (n == 0 && first < n_rows)
    fail(GS_INVALID, "%llu bytes have no room for a key", request.bytes);
  if (n > 0)
  {
    if (sort->key_room.bytes < room.bytes)
      take_key_buffers(sort, room, lane);
    buffer = &sort->key_buffers[sort->next_key_buffer++ % sort->key_buffers.size()];
    claim_buffer(buffer, lane);
  }
  slot->gather_begin.record(lane->gather_stream);
  if (n > 0)
    gather_keys(sort->output.rows.from(first), n, room, buffer->memory, n_keys, lane->gather_stream);
  slot->gather_end.record(lane->gather_stream);

  GS_CUDA_TRY(cudaStreamWaitEvent(lane->copy_stream, slot->gather_end));
  slot->copy_begin.record(lane->copy_stream);
  if (n > 0)
    GS_CUDA_TRY(
        cudaMemcpyAsync(request.dst, buffer->memory, room.bytes, cudaMemcpyDeviceToHost, lane->copy_stream));
  slot->copy_end.record(lane->copy_stream);
}

void finish_fetch(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  double gather_ms = request.call != Call::fetch_image ? elapsed_ms(slot->gather_begin, slot->gather_end) : 0;
  double copy_ms = elapsed_ms(slot->copy_begin, slot->copy_end);

  if (request.call == Call::fetch_keys)
  {
    *request.n_keys = lane->n_keys.get()[slot - lane->slots];
    if (*request.n_keys == 0 && request.number < sort->output.n_rows)
      fail(GS_INVALID, "%llu bytes have no room for key %llu", request.bytes, request.number);
  }

  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.gather_ms += gather_ms;
  sort->times.copy_out_ms += copy_ms;
}

void queue_copy(CopySlot *slot, CopyLane *lane)
{
  switch (slot->request.call)
  {
  case Call::fetch:
    return start_fetch(slot, lane);
  case Call::fetch_image:
    return start_fetch_image(slot, lane);
  case Call::fetch_keys:
    return start_fetch_keys(slot, lane);
  default:
    fail(GS_INTERNAL, "another thread's job on a copying thread");
  }
}

void start_copy(CopySlot *slot, CopyLane *lane)
{
  lane->n_started++;
  slot->failed = !guarded(&slot->failure, [&] { queue_copy(slot, lane); });
  if (!slot->failed)
    return;

  // Part of the work may be under way, but the caller may reuse the memory of its
  // page once the job has ended, and close the sort.
  (void)cudaStreamSynchronize(lane->gather_stream);
  (void)cudaStreamSynchronize(lane->copy_stream);
  (void)cudaGetLastError();
}

void finish_copy(CopySlot *slot, CopyLane *lane)
{
  if (!slot->failed)
    slot->failed = !guarded(&slot->failure, [&] { finish_fetch(slot, lane); });
  lane->n_finished++;
  end_request(slot->request, slot->failed ? slot->failure : success);
}

} // namespace

void copy_ends(char *to, u64 to_bytes, const char *from, u64 from_bytes, u64 front, u64 end,
               cudaMemcpyKind kind, cudaStream_t stream)
{
  if (front + end + max_copy_gap >= from_bytes && to_bytes == from_bytes)
    front = from_bytes, end = 0;
  if (front > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(to, from, front, kind, stream));
  if (end > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(to + to_bytes - end, from + from_bytes - end, end, kind, stream));
}

u64 min_output_bytes(const GsDeviceSort *sort, u64 n_rows)
{
  return rows_bytes(n_rows) + page_buffers_bytes(sort, min_page_buffers);
}

void take_page_buffers(GsDeviceSort *sort, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 n_pages = sort->output.pages.row_bytes.size();
  u64 count = std::min(n_pages, max_page_buffers);
  u64 kept = rows_bytes(sort->totals.n_rows) + page_buffers_bytes(sort, count);

  if (kept > sort->work_bytes && !memory.reserve(kept - sort->work_bytes))
  {
    count = std::min(n_pages, min_page_buffers); // reserved by the appends
    kept = rows_bytes(sort->totals.n_rows) + page_buffers_bytes(sort, count);
  }
  if (kept < sort->work_bytes)
    memory.release(sort->work_bytes - kept);
  sort->work_bytes = kept;

  sort->page_memory = static_cast<char *>(memory.allocate(page_buffers_bytes(sort, count), stream));
  for (u64 i = 0; i < count; i++)
    sort->page_buffers.push_back({sort->page_memory + page_buffers_bytes(sort, i), 0});
}

void drop_key_buffers(GsDeviceSort *sort, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;

  if (sort->key_memory == nullptr)
    return;
  memory.free(sort->key_memory, stream);
  memory.release(sort->key_memory_bytes);
  sort->key_memory = nullptr;
  sort->key_memory_bytes = 0;
  sort->key_room = {};
  sort->key_buffers.clear();
}

void run_copy_lane(GsDevice *device, CopyLane *lane)
{
  (void)cudaSetDevice(device->config.ordinal);
  serve_queue(
      &lane->queue, lane->slots, [&](CopySlot *slot) { start_copy(slot, lane); },
      [](CopySlot *slot) { return &slot->copy_end; }, [&](CopySlot *slot) { finish_copy(slot, lane); },
      [] {});
}

} // namespace gpusort
