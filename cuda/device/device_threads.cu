/*-------------------------------------------------------------------------
 *
 * device_threads.cu
 *	  The threads that serve a CUDA device's jobs.
 *
 * Copying
 *	  A lane keeps up to max_slots copies queued on its stream, so that the
 *	  link never idles between them, and ends them in order.  It looks for new
 *	  requests while it waits for the oldest copy, first spinning, then, if
 *	  none came, asleep.
 *
 * Images
 *	  Chunks are copied next to each other into slabs, which grow with the sort
 *	  from some megabytes to max_slab_bytes: a small sort takes little, and a
 *	  large one few allocations.  Nothing is moved afterwards.
 *
 * Booking ahead
 *	  An append reserves not only the memory of its image but also what
 *	  perform and the fetches will need for all rows so far.  So memory runs
 *	  out in an append, where the caller still holds the rows and can read back
 *	  the others, rather than after the last one.
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

// Device buffers for pages on their way to the host: these many at least and
// at most.
constexpr u64 min_page_buffers = 2;
constexpr u64 max_page_buffers = 4;

// The same for keys, of which there are one at least.
constexpr u64 max_key_buffers = 3;

const Failure success = {GS_OK, {}};

// The most that an image of a chunk can take, and a bit for alignment.
u64 slab_unit(const GsDeviceSort *sort)
{
  return align_up<u64>(u64{sort->spec.chunk_bytes} + 16, 512);
}

u64 page_buffers_bytes(const GsDeviceSort *sort, u64 count)
{
  return count * align_up<u64>(sort->spec.chunk_bytes, 512);
}

// Memory that must be reserved for a sort of so many rows besides its images.
u64 work_bytes_for(const GsDeviceSort *sort, u64 n_rows, u64 n_images, u64 data_bytes)
{
  return std::max(perform_bytes(sort->spec.engine, n_rows, n_images, data_bytes, sort->spec.chunk_bytes),
                  rows_bytes(n_rows) + page_buffers_bytes(sort, min_page_buffers));
}

// Books an image of so many bytes, and what the sort will need with it, and
// says where the image goes.
char *place_image(GsDeviceSort *sort, u64 bytes, u64 work_bytes, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 more_work = work_bytes - sort->work_bytes;
  Slab *last = sort->slabs.empty() ? nullptr : &sort->slabs.back();
  u64 slab_bytes = 0;

  bytes = align_up<u64>(bytes, 16);
  if (last == nullptr || last->bytes - last->used < bytes)
  {
    u64 unit = slab_unit(sort);
    u64 least = align_up<u64>(std::max<u64>(bytes, 16), 512);
    u64 wanted = sort->slab_bytes == 0
                     ? std::min(unit, first_slab_bytes)
                     : std::max<u64>(std::min<u64>(sort->slab_bytes, max_slab_bytes) / unit, 1) * unit;

    slab_bytes = std::max(wanted, least);
    if (!memory.reserve(slab_bytes + more_work))
    {
      slab_bytes = least;
      if (!memory.reserve(slab_bytes + more_work))
        fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %llu more",
             memory.limit(), slab_bytes + more_work);
    }
    try
    {
      sort->slabs.reserve(sort->slabs.size() + 1);
      sort->slabs.push_back({static_cast<char *>(memory.allocate(slab_bytes, stream)), slab_bytes, 0});
    }
    catch (...)
    {
      memory.release(slab_bytes + more_work);
      throw;
    }
    last = &sort->slabs.back();
  }
  else if (!memory.reserve(more_work))
    fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room to sort more rows",
         memory.limit());

  sort->slab_bytes += slab_bytes;
  sort->work_bytes = work_bytes;

  char *place = last->base + last->used;

  last->used += bytes;
  return place;
}

void start_append(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  u32 n_records = request.n_records;
  u64 records_bytes = u64{n_records} * sizeof(GsRecord);
  u64 n_rows = sort->n_rows + n_records;

  if (sort->refused)
    throw sort->refusal;
  try
  {
    check_usable(sort, request);
    if (request.data_bytes + records_bytes > sort->spec.chunk_bytes)
      fail(GS_INVALID, "a chunk's data and records overlap");
    if (n_rows > UINT32_MAX)
      fail(GS_NO_MEMORY, "more than 4294967295 rows");

    u64 data_bytes = sort->data_bytes + request.data_bytes;
    char *place =
        place_image(sort, image_bytes(request.data_bytes, n_records),
                    work_bytes_for(sort, n_rows, sort->n_images + 1, data_bytes), lane->copy_stream);
    char *records = place + align_up<u64>(request.data_bytes, 16);

    slot->copy_begin.record(lane->copy_stream);
    if (request.data_bytes > 0)
      GS_CUDA_TRY(cudaMemcpyAsync(place, request.chunk, request.data_bytes, cudaMemcpyHostToDevice,
                                  lane->copy_stream));
    if (n_records > 0)
      GS_CUDA_TRY(cudaMemcpyAsync(
          records, static_cast<const char *>(request.chunk) + sort->spec.chunk_bytes - records_bytes,
          records_bytes, cudaMemcpyHostToDevice, lane->copy_stream));
    slot->copy_end.record(lane->copy_stream);

    slot->image = {reinterpret_cast<u64>(place),
                   reinterpret_cast<u64>(records + records_bytes) - sizeof(GsRecord),
                   static_cast<u32>(sort->n_rows),
                   n_records,
                   request.data_bytes,
                   0};
    sort->n_rows = n_rows;
    sort->n_images++;
    sort->data_bytes = data_bytes;
  }
  catch (const Failure &failure)
  {
    sort->refused = true;
    sort->refusal = failure;
    throw;
  }
}

void finish_append(CopySlot *slot)
{
  GsDeviceSort *sort = slot->request.sort;
  double ms = elapsed_ms(slot->copy_begin, slot->copy_end);

  sort->images.push_back(slot->image);

  std::lock_guard<std::mutex> guard(sort->lock);

  sort->image_records.push_back(slot->image.n_records);
  sort->image_bytes.push_back(slot->image.data_bytes);
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
  u64 entry_bytes = u64{n} * sizeof(u32);
  PageBuffer &buffer = sort->page_buffers[sort->next_buffer++ % sort->page_buffers.size()];
  char *dst = static_cast<char *>(request.dst);

  // The gather of this page and the copy of the one before run at once.
  GS_CUDA_TRY(cudaStreamWaitEvent(lane->gather_stream, buffer.copied));
  slot->gather_begin.record(lane->gather_stream);
  gather_page(sort->output.rows + first, n, static_cast<u32>(chunk_bytes), buffer.page, lane->gather_stream);
  slot->gather_end.record(lane->gather_stream);

  GS_CUDA_TRY(cudaStreamWaitEvent(lane->copy_stream, slot->gather_end));
  slot->copy_begin.record(lane->copy_stream);
  if (row_bytes > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(dst, buffer.page, row_bytes, cudaMemcpyDeviceToHost, lane->copy_stream));
  GS_CUDA_TRY(cudaMemcpyAsync(dst + chunk_bytes - entry_bytes, buffer.page + chunk_bytes - entry_bytes,
                              entry_bytes, cudaMemcpyDeviceToHost, lane->copy_stream));
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
  u64 records_bytes = u64{image.n_records} * sizeof(GsRecord);
  char *dst = static_cast<char *>(request.dst);
  const char *data = reinterpret_cast<const char *>(image.data);

  slot->copy_begin.record(lane->copy_stream);
  if (image.data_bytes > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(dst, data, image.data_bytes, cudaMemcpyDeviceToHost, lane->copy_stream));
  if (records_bytes > 0)
    GS_CUDA_TRY(cudaMemcpyAsync(dst + sort->spec.chunk_bytes - records_bytes,
                                data + align_up<u64>(image.data_bytes, 16), records_bytes,
                                cudaMemcpyDeviceToHost, lane->copy_stream));
  slot->copy_end.record(lane->copy_stream);
}

// Gives the buffers for keys back; nothing uses them any more.
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

// Takes buffers for keys with that room, as many as there is memory for.
void take_key_buffers(GsDeviceSort *sort, KeyRoom room, CopyLane *lane)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 each = key_buffer_bytes(room);
  u64 count = max_key_buffers;

  if (sort->key_memory != nullptr)
  {
    GS_CUDA_TRY(cudaStreamSynchronize(lane->gather_stream));
    GS_CUDA_TRY(cudaStreamSynchronize(lane->copy_stream));
    drop_key_buffers(sort, lane->gather_stream);
  }
  while (!memory.reserve(each * count))
    if (--count == 0)
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %llu of keys",
           memory.limit(), each);
  sort->key_memory_bytes = each * count;
  try
  {
    sort->key_memory = static_cast<char *>(memory.allocate(each * count, lane->gather_stream));
  }
  catch (...)
  {
    memory.release(sort->key_memory_bytes);
    sort->key_memory_bytes = 0;
    throw;
  }
  for (u64 i = 0; i < count; i++)
    sort->key_buffers.emplace_back().memory = sort->key_memory + i * each;
  sort->key_room = room;
}

void start_fetch_keys(CopySlot *slot, CopyLane *lane)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  u64 first = request.number;
  u32 *n_keys = &lane->counts->n_keys[slot - lane->slots];

  check_usable(sort, request);
  if (!sort->performed || first > sort->n_rows)
    fail(GS_INVALID, "key %llu was fetched but does not exist", first);

  KeyRoom room = first < sort->n_rows ? key_room(sort->output.stats, sort->n_rows, request.bytes) : KeyRoom{};
  u32 n = static_cast<u32>(std::min<u64>(room.keys, sort->n_rows - first));
  KeyBuffer *buffer = nullptr;

  *n_keys = 0;
  if (n == 0 && first < sort->n_rows)
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
    gather_keys(sort->output.rows + first, sort->output.spans + first, n, room, buffer->memory, n_keys,
                lane->gather_stream);
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
    *request.n_keys = lane->counts->n_keys[slot - lane->slots];
    if (*request.n_keys == 0 && request.number < sort->n_rows)
      fail(GS_INVALID, "%llu bytes have no room for key %llu", request.bytes, request.number);
  }

  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.gather_ms += gather_ms;
  sort->times.copy_out_ms += copy_ms;
}

void start_copy(CopySlot *slot, CopyLane *lane)
{
  slot->failed = !guarded(&slot->failure,
                          [&]
                          {
                            switch (slot->request.call)
                            {
                            case Call::append:
                              start_append(slot, lane);
                              break;
                            case Call::fetch:
                              start_fetch(slot, lane);
                              break;
                            case Call::fetch_image:
                              start_fetch_image(slot, lane);
                              break;
                            case Call::fetch_keys:
                              start_fetch_keys(slot, lane);
                              break;
                            case Call::perform:
                            case Call::reorder:
                            case Call::sort_arrays:
                              fail(GS_INTERNAL, "another thread's job on a copying thread");
                            }
                          });

  // Part of the copy may be under way; the memory is still the caller's.
  if (slot->failed && (slot->failure.status == GS_INTERNAL || slot->failure.status == GS_DEVICE_LOST))
    (void)cudaStreamSynchronize(lane->copy_stream);
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

// Done, or failed; `sleep`: not before it is.
bool copy_is_over(CopySlot *slot, bool sleep)
{
  bool done = false;

  if (!slot->failed)
    slot->failed = !guarded(&slot->failure,
                            [&]
                            {
                              if (sleep)
                                GS_CUDA_TRY(cudaEventSynchronize(slot->copy_end));
                              done = slot->copy_end.done();
                            });
  return done || slot->failed;
}

// Takes the buffers through which pages will leave.
void take_page_buffers(GsDeviceSort *sort, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;
  u64 n_pages = sort->output.pages.row_bytes.size();
  u64 count = std::min(n_pages, max_page_buffers);
  u64 kept = rows_bytes(sort->n_rows) + page_buffers_bytes(sort, count);

  if (kept > sort->work_bytes && !memory.reserve(kept - sort->work_bytes))
  {
    count = std::min(n_pages, min_page_buffers);
    kept = rows_bytes(sort->n_rows) + page_buffers_bytes(sort, count);
  }
  if (kept < sort->work_bytes)
    memory.release(sort->work_bytes - kept);
  sort->work_bytes = kept;

  sort->page_memory = static_cast<char *>(memory.allocate(page_buffers_bytes(sort, count), stream));
  for (u64 i = 0; i < count; i++)
    sort->page_buffers.emplace_back().page = sort->page_memory + page_buffers_bytes(sort, i);
}

void perform_sort(GsDeviceSort *sort, const Request &request, Performer *performer)
{
  check_usable(sort, request);
  if (sort->n_rows == 0)
  {
    std::lock_guard<std::mutex> guard(sort->lock);

    sort->output.pages.first_row.assign(1, 0);
    sort->output.engine = "none";
    sort->performed = true;
    return;
  }

  std::vector<ImageRef> images;

  for (const ImageRef &image : sort->images)
    if (image.n_records > 0)
      images.push_back(image);

  performer->started.record(performer->stream);
  perform(*performer, *sort->device->memory, sort->cancelled,
          {images, static_cast<u32>(sort->n_rows), sort->spec.chunk_bytes, sort->spec.key_width,
           sort->spec.engine},
          &sort->output);
  take_page_buffers(sort, performer->stream);
  performer->event.record(performer->stream);
  performer->event.wait();

  double ms = elapsed_ms(performer->started, performer->event);
  std::lock_guard<std::mutex> guard(sort->lock);

  sort->performed = true;
  sort->times.sort_ms = ms;
}

void reorder_sort(GsDeviceSort *sort, const Request &request, Performer *performer)
{
  check_usable(sort, request);
  if (request.number > sort->n_rows)
    fail(GS_INVALID, "%llu rows were to be moved of %llu", request.number, u64{sort->n_rows});
  if (request.number == 0)
    return;
  drop_key_buffers(sort, performer->stream);

  PageTable pages;
  bool moving = false;

  performer->started.record(performer->stream);
  try
  {
    reorder(*performer, *sort->device->memory,
            {request.to, request.from, static_cast<u32>(request.number), static_cast<u32>(sort->n_rows),
             sort->spec.chunk_bytes},
            sort->output, &pages, &moving);
  }
  catch (...)
  {
    // Rows without their pages are of no use; the images still are.
    std::lock_guard<std::mutex> guard(sort->lock);

    sort->performed = sort->performed && !moving;
    throw;
  }
  performer->event.record(performer->stream);
  performer->event.wait();

  double ms = elapsed_ms(performer->started, performer->event);
  std::lock_guard<std::mutex> guard(sort->lock);

  sort->output.pages = std::move(pages);
  sort->times.sort_ms += ms;
}

} // namespace

void check_usable(const GsDeviceSort *sort, const Request &request)
{
  GsDevice *device = sort->device;

  if (device->lost.load(std::memory_order_acquire))
  {
    std::lock_guard<std::mutex> guard(device->lost_lock);

    throw Failure{GS_DEVICE_LOST, device->lost_error};
  }
  if (request.misuse != nullptr)
    fail(GS_INVALID, "%s", request.misuse);
  if (sort->cancelled.load(std::memory_order_relaxed))
    fail(GS_CANCELLED, "the sort was cancelled");
}

void RequestQueue::push(const Request &request)
{
  {
    std::lock_guard<std::mutex> guard(lock);
    requests.push_back(request);
  }
  changed.notify_one();
}

bool RequestQueue::try_pop(Request *request)
{
  std::lock_guard<std::mutex> guard(lock);

  if (requests.empty())
    return false;
  *request = requests.front();
  requests.pop_front();
  return true;
}

bool RequestQueue::wait()
{
  std::unique_lock<std::mutex> guard(lock);

  changed.wait(guard, [&] { return !requests.empty() || poked || closed; });
  poked = false;
  return !requests.empty() || !closed;
}

void RequestQueue::poke()
{
  {
    std::lock_guard<std::mutex> guard(lock);
    poked = true;
  }
  changed.notify_one();
}

void RequestQueue::close()
{
  {
    std::lock_guard<std::mutex> guard(lock);
    closed = true;
  }
  changed.notify_all();
}

void end_request(const Request &request, const Failure &outcome)
{
  GsDevice *device = request.sort->device;
  GsJob *job = request.job;

  if (outcome.status == GS_DEVICE_LOST && !device->lost.load(std::memory_order_relaxed))
  {
    std::lock_guard<std::mutex> guard(device->lost_lock);

    device->lost_error = outcome.error;
    device->lost.store(true, std::memory_order_release);
  }
  if (request.call == Call::fetch || request.call == Call::fetch_keys)
    request.sort->fetching.fetch_sub(1, std::memory_order_release);
  if (request.call == Call::reorder && request.misuse == nullptr)
    request.sort->reordering.store(false, std::memory_order_release);
  job->error = outcome.error;
  __atomic_store_n(&job->status, static_cast<int32_t>(outcome.status), __ATOMIC_RELEASE);
  if (device->config.notify != nullptr)
    device->config.notify(device->config.notify_arg);
}

void run_copy_lane(GsDevice *device, CopyLane *lane)
{
  using clock = std::chrono::steady_clock;

  size_t first = 0; // slot of the oldest copy
  size_t count = 0;
  clock::time_point sleep_after;

  (void)cudaSetDevice(device->config.ordinal);
  for (;;)
  {
    CopySlot *slot = &lane->slots[(first + count) % CopyLane::max_slots];

    while (count < CopyLane::max_slots && lane->queue.try_pop(&slot->request))
    {
      start_copy(slot, lane);
      if (count++ == 0)
        sleep_after = clock::now() + std::chrono::microseconds(100);
      slot = &lane->slots[(first + count) % CopyLane::max_slots];
    }

    if (count == 0)
    {
      if (lane == &device->copy_in)
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
      if (!lane->queue.wait())
        return;
      continue;
    }

    CopySlot *oldest = &lane->slots[first];

    if (!copy_is_over(oldest, clock::now() >= sleep_after))
      continue;
    finish_copy(oldest, lane);
    first = (first + 1) % CopyLane::max_slots;
    count--;
    sleep_after = clock::now() + std::chrono::microseconds(100);
  }
}

void run_sorter(GsDevice *device, Performer *performer)
{
  Request request;

  (void)cudaSetDevice(device->config.ordinal);
  for (;;)
  {
    if (device->sorting.try_pop(&request))
    {
      Failure outcome = success;

      // A sort that failed must have stopped reading its images too.
      if (!guarded(&outcome,
                   [&]
                   {
                     if (request.call == Call::reorder)
                       reorder_sort(request.sort, request, performer);
                     else
                       perform_sort(request.sort, request, performer);
                   }))
        (void)cudaStreamSynchronize(performer->stream);
      end_request(request, outcome);
    }
    else if (!device->sorting.wait())
      return;
  }
}

} // namespace gpusort
