/*-------------------------------------------------------------------------
 *
 * device_fetches.cu
 *	  The thread of a CUDA device that copies pages and images out.
 *
 * Batches
 *	  A batch is all pages that wait, and at most one other fetch behind them.  It is copied between two
 *	  events, as in device_appends.cu.  While one batch is copied, the rows of the next one are gathered
 *	  into its pages, if these have other buffers.
 *
 * Buffers
 *	  Pages reach the host through buffers in device memory.  Appends reserve the
 *	  memory for the least number of them, so that a sort that was performed
 *	  can be fetched.  Further ones are taken if the limit leaves room.
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

u64 page_buffers_bytes(const GsDeviceSort *sort, u64 count)
{
  return count * align_up<u64>(sort->spec.chunk_bytes, 512);
}

// Takes a buffer for the newest batch.  The gather stream waits until the batch that had the buffer before
// has been copied.  That batch's slot follows from its number.
char *claim_buffer(OutputBuffer *buffer, FetchLane *lane)
{
  if (buffer->batch > lane->n_finished)
    GS_CUDA_TRY(cudaStreamWaitEvent(lane->gather_stream,
                                    lane->slots[(buffer->batch - 1) % lane->max_slots].copy_end));
  buffer->batch = lane->n_started;
  return buffer->memory;
}

void start_page(Fetch *fetch, FetchLane *lane)
{
  const Request &request = fetch->request;
  GsDeviceSort *sort = request.sort;

  if (!sort->performed || request.number >= sort->output.pages.row_bytes.size())
    fail(GS_INVALID, "page %llu was fetched but does not exist", request.number);

  const PageTable &pages = sort->output.pages;
  u64 first = pages.first_row[request.number];
  u32 n = static_cast<u32>(pages.first_row[request.number + 1] - first);
  GsPageFormat format = sort->output.format;
  char *memory = claim_buffer(&sort->page_buffers[sort->next_buffer++ % sort->page_buffers.size()], lane);

  gather_page(sort->output.rows.from(first), n, format, sort->spec.chunk_bytes, memory, lane->gather_stream);
  fetch->from = memory;
  fetch->from_bytes = fetch->to_bytes = sort->spec.chunk_bytes;
  fetch->front = pages.row_bytes[request.number];
  fetch->end = u64{n} * entry_bytes(format);
}

void start_image(Fetch *fetch)
{
  const Request &request = fetch->request;
  GsDeviceSort *sort = request.sort;

  if (request.number >= sort->images.size())
    fail(GS_INVALID, "chunk %llu was fetched but does not exist", request.number);

  const ImageRef &image = sort->images[request.number];

  *request.n_fetched = image.n_records;
  fetch->from = reinterpret_cast<const char *>(image.data);
  fetch->from_bytes = image.first_record + sizeof(GsRecord) - image.data;
  fetch->to_bytes = sort->spec.chunk_bytes;
  fetch->front = image.data_bytes;
  fetch->end = u64{image.n_records} * sizeof(GsRecord);
}

void start_fetch(Fetch *fetch, FetchLane *lane)
{
  check_usable(fetch->request.sort, fetch->request);
  switch (fetch->request.call)
  {
  case Call::fetch:
    return start_page(fetch, lane);
  case Call::fetch_image:
    return start_image(fetch);
  default:
    fail(GS_INTERNAL, "another thread's job on a copying thread");
  }
}

// Waits for all that was queued, as the caller may reuse its memory and close the sort once a job has failed.
void give_up(FetchLane *lane)
{
  (void)cudaStreamSynchronize(lane->gather_stream);
  (void)cudaStreamSynchronize(lane->copy_stream);
  (void)cudaGetLastError();
}

// Adds a fetch to a batch, and queues its gathering.
void add_fetch(FetchBatch *batch, const Request &request, FetchLane *lane)
{
  Fetch &fetch = batch->fetches[batch->n_fetches++];

  fetch = {};
  fetch.request = request;
  fetch.failed = !guarded(&fetch.failure, [&] { start_fetch(&fetch, lane); });
  if (fetch.failed)
    give_up(lane);
}

// May a batch also take this request?  Each fetch of a page needs a buffer.
bool is_wanted(const FetchBatch *batch, const Request &request)
{
  size_t pages = 0;

  if (request.call != Call::fetch)
    return true;
  for (size_t i = 0; i < batch->n_fetches; i++)
    pages += batch->fetches[i].request.sort == request.sort;
  return pages < request.sort->page_buffers.size();
}

// Queues the copies of a batch, behind its gathering.
void queue_copies(FetchBatch *batch, FetchLane *lane)
{
  batch->gather_end.record(lane->gather_stream);
  GS_CUDA_TRY(cudaStreamWaitEvent(lane->copy_stream, batch->gather_end));
  batch->copy_begin.record(lane->copy_stream);
  for (size_t i = 0; i < batch->n_fetches; i++)
  {
    const Fetch &fetch = batch->fetches[i];

    if (!fetch.failed)
      copy_ends(static_cast<char *>(fetch.request.dst), fetch.to_bytes, fetch.from, fetch.from_bytes,
                fetch.front, fetch.end, cudaMemcpyDeviceToHost, lane->copy_stream);
  }
  batch->copy_end.record(lane->copy_stream);
}

void start_batch(FetchBatch *batch, FetchLane *lane)
{
  Request request = batch->request;

  lane->n_started++;
  batch->n_fetches = 0;
  batch->failed = !guarded(&batch->failure, [&] { batch->gather_begin.record(lane->gather_stream); });
  do
    add_fetch(batch, request, lane);
  while (request.call == Call::fetch && batch->n_fetches < batch->max_fetches &&
         lane->queue.try_pop_if(&request, [&](const Request &next) { return is_wanted(batch, next); }));
  if (!batch->failed)
    batch->failed = !guarded(&batch->failure, [&] { queue_copies(batch, lane); });
  if (batch->failed)
    give_up(lane);
}

void finish_fetch(const Fetch &fetch, double gather_ms, double copy_ms)
{
  GsDeviceSort *sort = fetch.request.sort;
  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.gather_ms += gather_ms;
  sort->times.copy_out_ms += copy_ms;
}

// The times of a batch are shared among its fetches by their bytes.
void finish_batch(FetchBatch *batch, FetchLane *lane)
{
  double gather_ms = 0;
  double copy_ms = 0;
  u64 bytes = 0;

  if (!batch->failed)
    batch->failed = !guarded(&batch->failure,
                             [&]
                             {
                               gather_ms = elapsed_ms(batch->gather_begin, batch->gather_end);
                               copy_ms = elapsed_ms(batch->copy_begin, batch->copy_end);
                             });
  for (size_t i = 0; i < batch->n_fetches; i++)
    bytes += batch->fetches[i].front + batch->fetches[i].end;
  lane->n_finished++;
  for (size_t i = 0; i < batch->n_fetches; i++)
  {
    Fetch &fetch = batch->fetches[i];
    double part = bytes > 0 ? static_cast<double>(fetch.front + fetch.end) / static_cast<double>(bytes) : 0;

    if (batch->failed && !fetch.failed)
      fetch.failure = batch->failure;
    fetch.failed = fetch.failed || batch->failed;
    if (!fetch.failed)
      finish_fetch(fetch, fetch.request.call == Call::fetch_image ? 0 : part * gather_ms, part * copy_ms);
    end_request(fetch.request, fetch.failed ? fetch.failure : success);
  }
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

void run_fetch_lane(GsDevice *device, FetchLane *lane)
{
  (void)cudaSetDevice(device->config.ordinal);
  serve_queue(
      &lane->queue, lane->slots, [&](FetchBatch *batch) { start_batch(batch, lane); },
      [](FetchBatch *batch) { return &batch->copy_end; },
      [&](FetchBatch *batch) { finish_batch(batch, lane); }, [] {});
}

} // namespace gpusort
