/*-------------------------------------------------------------------------
 *
 * device_appends.cu
 *	  The thread of a CUDA device that copies chunks in.
 *
 * Batches
 *	  Many sorts may be fed at once, and this thread serves all of them.  So it must not take longer for a
 *	  chunk than the link does: all chunks that wait, up to max_appends, are copied between two events.
 *
 * Images
 *	  Chunks are copied next to each other into slabs.  Slabs grow with the sort, up
 *	  to max_slab_bytes: a small sort takes little memory, and a large one makes few
 *	  allocations.  Images never move.  A chunk that is nearly full is copied as a whole.
 *
 * Booking ahead
 *	  An append reserves the memory of its image, and also what perform and the fetches need for all
 *	  rows so far.  So memory runs out in an append and not after the last one: then the caller still
 *	  holds the rows of that chunk, and can read back the others.  CUB takes some ten microseconds to
 *	  tell how much it needs.  So a sort asks for as many chunks as its slab has room for, if the
 *	  limit allows that.
 *
 * Refusals
 *	  Once an append could not be started, for whatever reason, all later ones fail with the
 *	  same error.  So the images are always those of the first chunks.
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

// The totals of a sort with `count` more chunks like the request's.
SortTotals totals_with(const GsDeviceSort *sort, const Request &request, u64 count)
{
  SortTotals totals = sort->totals;

  totals.n_rows = std::min<u64>(totals.n_rows + count * request.n_records, UINT32_MAX);
  totals.n_images += count;
  totals.data_bytes += count * (u64{request.data_bytes} + request.key_bytes);
  return totals;
}

// Memory that must be reserved for a sort besides its images.
u64 work_bytes_for(const GsDeviceSort *sort, const SortTotals &totals)
{
  return std::max(perform_bytes(sort->spec.engine, totals.n_rows, totals.n_images, totals.data_bytes,
                                sort->spec.chunk_bytes),
                  min_output_bytes(sort, totals.n_rows));
}

// Throws if the device's memory is the machine's, and the machine has too little left for others.
void check_machine(GsDevice *device, u64 bytes)
{
  u64 total = device->info.memory_total;
  uint64_t available;

  if (device->is_integrated && device->limit_is_default.load(std::memory_order_relaxed) &&
      !gs_machine_may_reserve(total, bytes, &device->copy_in.unwatched, &available))
    fail(GS_NO_MEMORY, "the machine has only %llu of %llu bytes of memory left",
         static_cast<unsigned long long>(available), static_cast<unsigned long long>(total));
}

// Reserves a slab, and what a sort needs with `count` more chunks like the request's.
bool reserve_for(GsDeviceSort *sort, const Request &request, u64 slab_bytes, u64 count)
{
  SortTotals totals = sort->booked;
  u64 more_work = 0;

  if (!totals_with(sort, request, 1).fit(sort->booked))
  {
    totals = totals_with(sort, request, count);

    // Some engines need less for more rows: radix2011, where its sections grow.
    more_work = std::max<u64>(work_bytes_for(sort, totals), sort->work_bytes) - sort->work_bytes;
  }
  check_machine(sort->device, slab_bytes + more_work);
  if (!sort->device->memory->reserve(slab_bytes + more_work))
    return false;
  sort->work_bytes += more_work;
  sort->booked = totals;
  return true;
}

// The size of a sort's next slab, for an image of min_bytes bytes or more.
u64 next_slab_bytes(const GsDeviceSort *sort, u64 min_bytes)
{
  // The most that the image of a chunk takes, with its alignment.
  u64 unit = align_up<u64>(u64{sort->spec.chunk_bytes} + 16, 512);
  u64 most =
      sort->spec.spare_bytes > 0 ? std::min<u64>(sort->spec.spare_bytes, max_slab_bytes) : max_slab_bytes;
  u64 bytes = sort->slab_bytes == 0 ? std::min(unit, first_slab_bytes)
                                    : std::max<u64>(std::min<u64>(sort->slab_bytes, most) / unit, 1) * unit;

  return std::max(bytes, min_bytes);
}

// Adds a slab whose memory is reserved.
void add_slab(GsDeviceSort *sort, u64 bytes, cudaStream_t stream)
{
  DeviceMemory &memory = *sort->device->memory;

  try
  {
    sort->slabs.reserve(sort->slabs.size() + 1);
    sort->slabs.push_back({static_cast<char *>(memory.allocate(bytes, stream)), bytes, 0});
  }
  catch (...)
  {
    memory.release(bytes);
    throw;
  }
  sort->slab_bytes += bytes;
}

// Reserves an image, and what the sort needs with it.  Returns the image's place.
char *place_image(GsDeviceSort *sort, const Request &request, u64 bytes, cudaStream_t stream)
{
  u64 room = sort->slabs.empty() ? 0 : sort->slabs.back().bytes - sort->slabs.back().used;
  u64 min_slab = 0;
  u64 slab = 0;

  bytes = std::max<u64>(align_up<u64>(bytes, 16), 16);
  if (room < bytes)
  {
    min_slab = align_up<u64>(bytes, 512);
    slab = room = next_slab_bytes(sort, min_slab);
  }

  // The caller may limit the memory that is taken ahead.
  u64 count = sort->spec.spare_bytes > 0 ? 1 : room / bytes;

  if (!reserve_for(sort, request, slab, count))
  {
    slab = min_slab;
    if (!reserve_for(sort, request, slab, 1))
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for more rows",
           sort->device->memory->limit());
  }
  if (slab > 0)
    add_slab(sort, slab, stream);

  Slab &last = sort->slabs.back();
  char *place = last.base + last.used;

  last.used += bytes;
  return place;
}

// Makes room for finish_append(), which must not fail once a later append has begun.
void make_room_for_image(GsDeviceSort *sort)
{
  u64 n = sort->totals.n_images + 1;

  if (sort->images.capacity() < n)
    sort->images.reserve(std::max<u64>(n, 2 * sort->images.capacity()));
}

// What an image takes, without the keys that are made for it.
u64 bytes_of_image(const Request &request)
{
  u64 chunk_bytes = request.sort->spec.chunk_bytes;
  u64 bytes = image_bytes(request.data_bytes, request.n_records);

  return bytes + max_copy_gap >= chunk_bytes ? chunk_bytes : bytes;
}

// Queues the copy of a chunk to its image.
void copy_image(Append *append, char *place, cudaStream_t stream)
{
  const Request &request = append->request;
  u64 bytes = bytes_of_image(request);

  append->bytes = bytes;
  copy_ends(place, bytes, static_cast<const char *>(request.chunk), request.sort->spec.chunk_bytes,
            request.data_bytes, u64{request.n_records} * sizeof(GsRecord), cudaMemcpyHostToDevice, stream);
  append->image = {reinterpret_cast<u64>(place),
                   reinterpret_cast<u64>(place + bytes) - sizeof(GsRecord),
                   static_cast<u32>(request.sort->totals.n_rows),
                   request.n_records,
                   request.data_bytes,
                   request.n_records == 0 ? 0 : request.key_bytes};
}

void start_append(Append *append, cudaStream_t stream)
{
  const Request &request = append->request;
  GsDeviceSort *sort = request.sort;

  if (sort->refused)
    throw sort->refusal;
  check_usable(sort, request);
  if (request.data_bytes + u64{request.n_records} * sizeof(GsRecord) > sort->spec.chunk_bytes)
    fail(GS_INVALID, "a chunk's data and records overlap");
  if (sort->totals.n_rows + request.n_records > UINT32_MAX)
    fail(GS_NO_MEMORY, "more than 4294967295 rows");
  make_room_for_image(sort);
  copy_image(append,
             place_image(sort, request, bytes_of_image(request) + made_keys_bytes(request.key_bytes), stream),
             stream);
  sort->totals = totals_with(sort, request, 1);
}

// Adds an append to a batch.
void add_append(AppendBatch *batch, const Request &request, cudaStream_t stream)
{
  Append &append = batch->appends[batch->n_appends++];

  append.request = request;
  append.bytes = 0;
  append.failed = !guarded(&append.failure, [&] { start_append(&append, stream); });
  if (!append.failed)
    return;
  if (!request.sort->refused)
  {
    request.sort->refused = true;
    request.sort->refusal = append.failure;
  }

  // The caller may reuse the chunk once the job has ended, and close the sort.  An append that was
  // refused before its copy began does not hold up the copies of other sorts.
  if (append.bytes > 0)
    (void)cudaStreamSynchronize(stream);
  (void)cudaGetLastError();
}

void start_batch(AppendBatch *batch, AppendLane *lane)
{
  Request request = batch->request;

  batch->n_appends = 0;
  batch->failed = !guarded(&batch->failure, [&] { batch->copy_begin.record(lane->stream); });
  do
    add_append(batch, request, lane->stream);
  while (batch->n_appends < batch->max_appends && lane->queue.try_pop(&request));
  if (!batch->failed)
    batch->failed = !guarded(&batch->failure, [&] { batch->copy_end.record(lane->stream); });
  if (batch->failed)
  {
    (void)cudaStreamSynchronize(lane->stream);
    (void)cudaGetLastError();
  }
}

void finish_append(const Append &append, double ms)
{
  GsDeviceSort *sort = append.request.sort;

  sort->images.push_back(append.image);

  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.n_images++;
  sort->times.copy_in_ms += ms;
}

// The time of a batch is shared among its chunks by their bytes.
void finish_batch(AppendBatch *batch)
{
  double bytes = 0;
  double ms = 0;

  if (!batch->failed)
    batch->failed = !guarded(&batch->failure, [&] { ms = elapsed_ms(batch->copy_begin, batch->copy_end); });
  for (size_t i = 0; i < batch->n_appends; i++)
    bytes += static_cast<double>(batch->appends[i].bytes);
  for (size_t i = 0; i < batch->n_appends; i++)
  {
    const Append &append = batch->appends[i];
    bool failed = append.failed || batch->failed;

    if (!failed)
      finish_append(append, bytes > 0 ? ms * static_cast<double>(append.bytes) / bytes : 0);
    end_request(append.request, append.failed ? append.failure : failed ? batch->failure : success);
  }
}

// Frees the memory of closed sorts, and cached memory if the caller wants that.
void tidy_memory(GsDevice *device)
{
  Failure ignored;

  (void)guarded(&ignored,
                [&]
                {
                  bool freed = device->memory->drain();

                  if (device->trim_wanted.exchange(false) || (freed && device->memory->passes_limit()))
                    device->memory->trim();
                });
}

} // namespace

void run_append_lane(GsDevice *device, AppendLane *lane)
{
  (void)cudaSetDevice(device->config.ordinal);
  serve_queue(
      &lane->queue, lane->slots, [&](AppendBatch *batch) { start_batch(batch, lane); },
      [](AppendBatch *batch) { return &batch->copy_end; }, finish_batch, [&] { tidy_memory(device); });
}

} // namespace gpusort
