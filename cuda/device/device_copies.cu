/*-------------------------------------------------------------------------
 *
 * device_copies.cu
 *	  The threads of a CUDA device that copy chunks in, and pages and keys out.
 *
 * Copying
 *	  A lane keeps up to max_slots copies queued on its stream, so that the link to
 *	  the host is never idle between them, and ends them in order.  While it waits
 *	  for the oldest copy it looks for new requests, for some time spinning.  If none
 *	  comes it sleeps until the copy ends.
 *
 * Images
 *	  Chunks are copied next to each other into slabs.  Slabs grow with the sort, up
 *	  to max_slab_bytes: a small sort takes little memory, and a large one makes few
 *	  allocations.  Images never move.  A chunk that is nearly full is copied as a whole.
 *
 * Booking ahead
 *	  An append reserves the memory of its image, and also what perform and the
 *	  fetches need for all rows so far.  So memory runs out in an append, while the
 *	  caller still holds the rows of that chunk and can read back the others, and not
 *	  after the last one.
 *
 * Buffers
 *	  Pages and keys reach the host through buffers in device memory.  Appends reserve the
 *	  memory for the least number of page buffers, so that a sort that was performed
 *	  can be fetched.  Further page buffers, and all buffers for keys, are taken where
 *	  the limit leaves room.
 *
 * Refusals
 *	  Once an append has failed, for whatever reason, all later ones fail with the same
 *	  error.  So the images are always those of the first chunks.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_state.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u64 first_slab_bytes = u64{2} << 20;
constexpr u64 max_slab_bytes = u64{64} << 20;

// The number of a sort's buffers for pages.
constexpr u64 min_page_buffers = 2;
constexpr u64 max_page_buffers = 4;

// The calls for another copy take as long as the link needs for this many bytes.
constexpr u64 max_gap = u64{64} << 10;

// The number of a sort's buffers for keys; one at least.
constexpr u64 max_key_buffers = 3;

u64 page_buffers_bytes(const GsDeviceSort *sort, u64 count)
{
  return count * align_up<u64>(sort->spec.chunk_bytes, 512);
}

// The most that the image of a chunk takes, with its alignment.
u64 slab_unit(const GsDeviceSort *sort)
{
  return align_up<u64>(u64{sort->spec.chunk_bytes} + 16, 512);
}

// Device memory that the appends reserve for the result of a sort of n_rows rows.
u64 min_output_bytes(const GsDeviceSort *sort, u64 n_rows)
{
  return rows_bytes(n_rows) + page_buffers_bytes(sort, min_page_buffers);
}

// Memory that must be reserved for a sort of n_rows rows besides its images.
u64 work_bytes_for(const GsDeviceSort *sort, u64 n_rows, u64 n_images, u64 data_bytes)
{
  return std::max(perform_bytes(sort->spec.engine, n_rows, n_images, data_bytes, sort->spec.chunk_bytes),
                  min_output_bytes(sort, n_rows));
}

// The size of a sort's next slab, for an image of min_bytes bytes or more.
u64 next_slab_bytes(const GsDeviceSort *sort, u64 min_bytes)
{
  u64 unit = slab_unit(sort);
  u64 most =
      sort->spec.spare_bytes > 0 ? std::min<u64>(sort->spec.spare_bytes, max_slab_bytes) : max_slab_bytes;
  u64 bytes = sort->slab_bytes == 0 ? std::min(unit, first_slab_bytes)
                                    : std::max<u64>(std::min<u64>(sort->slab_bytes, most) / unit, 1) * unit;

  return std::max(bytes, min_bytes);
}

// Adds a slab for an image, and reserves more_work bytes.  Returns the slab's size.
u64 add_slab(GsDeviceSort *sort, u64 image_bytes, u64 more_work, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 min_bytes = align_up<u64>(std::max<u64>(image_bytes, 16), 512);
  u64 bytes = next_slab_bytes(sort, min_bytes);

  if (!memory.reserve(bytes + more_work))
  {
    bytes = min_bytes;
    if (!memory.reserve(bytes + more_work))
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %llu more", memory.limit(),
           bytes + more_work);
  }
  try
  {
    sort->slabs.reserve(sort->slabs.size() + 1);
    sort->slabs.push_back({static_cast<char *>(memory.allocate(bytes, stream)), bytes, 0});
  }
  catch (...)
  {
    memory.release(bytes + more_work);
    throw;
  }
  return bytes;
}

// Reserves an image, and what the sort needs with it.  Returns the image's place.
char *place_image(GsDeviceSort *sort, u64 bytes, u64 work_bytes, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;

  // Some engines need less for more rows: radix2011, where its sections grow.
  work_bytes = std::max<u64>(work_bytes, sort->work_bytes);

  u64 more_work = work_bytes - sort->work_bytes;

  bytes = align_up<u64>(bytes, 16);
  if (sort->slabs.empty() || sort->slabs.back().bytes - sort->slabs.back().used < bytes)
    sort->slab_bytes += add_slab(sort, bytes, more_work, stream);
  else if (!memory.reserve(more_work))
    fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room to sort more rows",
         memory.limit());
  sort->work_bytes = work_bytes;

  Slab &slab = sort->slabs.back();
  char *place = slab.base + slab.used;

  slab.used += bytes;
  return place;
}

// Makes room for finish_append(), which must not fail once a later append has begun.
void make_room_for_image(GsDeviceSort *sort)
{
  u64 n = sort->n_images + 1;

  if (sort->images.capacity() < n)
    sort->images.reserve(std::max<u64>(n, 2 * sort->images.capacity()));
}

// Copies the first front bytes and the last end bytes of memory.  If both sides are as large, and little lies
// between the two, one copy takes all.
void copy_ends(char *to, u64 to_bytes, const char *from, u64 from_bytes, u64 front, u64 end,
               cudaMemcpyKind kind, cudaStream_t stream)
{
  if (front + end + max_gap >= from_bytes && to_bytes == from_bytes)
    front = from_bytes, end = 0;
  if (front > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(to, from, front, kind, stream));
  if (end > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(to + to_bytes - end, from + from_bytes - end, end, kind, stream));
}

// What an image takes, without the keys that are made for it.
u64 bytes_of_image(const Request &request)
{
  u64 chunk_bytes = request.sort->spec.chunk_bytes;
  u64 bytes = image_bytes(request.data_bytes, request.n_records);

  return bytes + max_gap >= chunk_bytes ? chunk_bytes : bytes;
}

// Queues the copy of a chunk to its image.
void copy_image(CopySlot *slot, char *place, cudaStream_t stream)
{
  const Request &request = slot->request;
  u64 bytes = bytes_of_image(request);

  slot->queued = true;
  slot->copy_begin.record(stream);
  copy_ends(place, bytes, static_cast<const char *>(request.chunk), request.sort->spec.chunk_bytes,
            request.data_bytes, u64{request.n_records} * sizeof(GsRecord), cudaMemcpyHostToDevice, stream);
  slot->image = {reinterpret_cast<u64>(place),
                 reinterpret_cast<u64>(place + bytes) - sizeof(GsRecord),
                 static_cast<u32>(request.sort->n_rows),
                 request.n_records,
                 request.data_bytes,
                 request.n_records == 0 ? 0 : request.key_bytes};
  slot->copy_end.record(stream);
}

void start_append(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  u64 n_rows = sort->n_rows + request.n_records;
  u64 data_bytes = sort->data_bytes + request.data_bytes + request.key_bytes;

  if (sort->refused)
    throw sort->refusal;
  check_usable(sort, request);
  if (request.data_bytes + u64{request.n_records} * sizeof(GsRecord) > sort->spec.chunk_bytes)
    fail(GS_INVALID, "a chunk's data and records overlap");
  if (n_rows > UINT32_MAX)
    fail(GS_NO_MEMORY, "more than 4294967295 rows");
  make_room_for_image(sort);
  copy_image(slot,
             place_image(sort, bytes_of_image(request) + made_keys_bytes(request.key_bytes),
                         work_bytes_for(sort, n_rows, sort->n_images + 1, data_bytes), lane->copy_stream),
             lane->copy_stream);
  sort->n_rows = n_rows;
  sort->n_images++;
  sort->data_bytes = data_bytes;
}

void finish_append(CopySlot *slot)
{
  GsDeviceSort *sort = slot->request.sort;
  double ms = elapsed_ms(slot->copy_begin, slot->copy_end);

  sort->images.push_back(slot->image);

  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.n_images++;
  sort->times.copy_in_ms += ms;
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
  GS_CUDA_TRY(cudaStreamWaitEvent(lane->gather_stream, buffer.copied));
  slot->gather_begin.record(lane->gather_stream);
  gather_page(sort->output.rows.from(first), n, format, static_cast<u32>(chunk_bytes), buffer.memory,
              lane->gather_stream);
  slot->gather_end.record(lane->gather_stream);

  GS_CUDA_TRY(cudaStreamWaitEvent(lane->copy_stream, slot->gather_end));
  slot->copy_begin.record(lane->copy_stream);
  copy_ends(dst, chunk_bytes, buffer.memory, chunk_bytes, row_bytes, entries_bytes, cudaMemcpyDeviceToHost,
            lane->copy_stream);
  slot->copy_end.record(lane->copy_stream);
  buffer.copied.record(lane->copy_stream);
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
    sort->key_buffers.emplace_back().memory = sort->key_memory + i * buffer_bytes;
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
    GS_CUDA_TRY(cudaStreamWaitEvent(lane->gather_stream, buffer->copied));
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
  if (n > 0)
    buffer->copied.record(lane->copy_stream);
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
  case Call::append:
    return start_append(slot, lane);
  case Call::fetch:
    return start_fetch(slot, lane);
  case Call::fetch_image:
    return start_fetch_image(slot, lane);
  case Call::fetch_keys:
    return start_fetch_keys(slot, lane);
  case Call::perform:
  case Call::reorder:
  case Call::sort_arrays:
    fail(GS_INTERNAL, "another thread's job on a copying thread");
  }
}

void start_copy(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;

  slot->queued = request.call != Call::append;
  slot->failed = !guarded(&slot->failure, [&] { queue_copy(slot, lane); });
  if (!slot->failed)
    return;
  if (request.call == Call::append && !request.sort->refused)
  {
    request.sort->refused = true;
    request.sort->refusal = slot->failure;
  }

  // Part of the work may be under way, but the caller may reuse the memory of its
  // chunk or page once the job has ended, and close the sort.  An append that was
  // refused before its copy began does not hold up the copies of other sorts.
  if (slot->queued)
  {
    (void)cudaStreamSynchronize(lane->gather_stream);
    (void)cudaStreamSynchronize(lane->copy_stream);
  }
  (void)cudaGetLastError();
}

void finish_copy(CopySlot *slot, CopyLane *lane)
{
  if (!slot->failed)
    slot->failed = !guarded(&slot->failure,
                            [&]
                            {
                              if (slot->request.call == Call::append)
                                finish_append(slot);
                              else
                                finish_fetch(slot, lane);
                            });
  end_request(slot->request, slot->failed ? slot->failure : success);
}

// Frees the memory of closed sorts, and what is cached where the caller wants that.
void tidy_memory(GsDevice *device)
{
  Failure ignored;

  (void)guarded(&ignored,
                [&]
                {
                  device->memory->drain();
                  if (device->trim_wanted.exchange(false))
                    device->memory->trim();
                });
}

} // namespace

void take_page_buffers(GsDeviceSort *sort, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 n_pages = sort->output.pages.row_bytes.size();
  u64 count = std::min(n_pages, max_page_buffers);
  u64 kept = rows_bytes(sort->n_rows) + page_buffers_bytes(sort, count);

  if (kept > sort->work_bytes && !memory.reserve(kept - sort->work_bytes))
  {
    count = std::min(n_pages, min_page_buffers); // reserved by the appends
    kept = rows_bytes(sort->n_rows) + page_buffers_bytes(sort, count);
  }
  if (kept < sort->work_bytes)
    memory.release(sort->work_bytes - kept);
  sort->work_bytes = kept;

  sort->page_memory = static_cast<char *>(memory.allocate(page_buffers_bytes(sort, count), stream));
  for (u64 i = 0; i < count; i++)
    sort->page_buffers.emplace_back().memory = sort->page_memory + page_buffers_bytes(sort, i);
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
      [&]
      {
        if (lane == &device->copy_in)
          tidy_memory(device);
      });
}

} // namespace gpusort
