/*-------------------------------------------------------------------------
 *
 * device_sorters.cu
 *	  The threads of a CUDA device that perform sorts.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_state.cuh"

namespace gpusort
{

namespace
{

// Waits for the stream.  Returns its milliseconds since `started`.
double finish_timing(Performer *performer)
{
  performer->wait();
  return elapsed_ms(performer->started, performer->event);
}

void perform_sort(GsDeviceSort *sort, const Request &request, Performer *performer)
{
  check_usable(sort, request);
  if (sort->totals.n_rows == 0)
  {
    std::lock_guard<std::mutex> guard(sort->lock);

    sort->output.pages.first_row.assign(1, 0);
    sort->output.engine = "none";
    sort->performed = true;
    return;
  }

  std::vector<ImageRef> images;
  u64 n_rows = 0;

  for (const ImageRef &image : sort->images)
  {
    n_rows += image.n_records;
    if (image.n_records > 0)
      images.push_back(image);
  }
  if (n_rows != sort->totals.n_rows)
    fail(GS_INTERNAL, "%llu rows of %llu were copied", n_rows, u64{sort->totals.n_rows});

  performer->started.record(performer->stream);
  perform(*performer, *sort->device->memory, sort->cancelled,
          {images, static_cast<u32>(sort->totals.n_rows), sort->spec.chunk_bytes, sort->spec.tuple_keys,
           sort->spec.engine, request.format, request.keep},
          &sort->output);
  take_page_buffers(sort, performer->stream);

  double ms = finish_timing(performer);
  std::lock_guard<std::mutex> guard(sort->lock);

  sort->performed = true;
  sort->times.sort_ms = ms;
}

} // namespace

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
      if (!guarded(&outcome, [&] { perform_sort(request.sort, request, performer); }))
        (void)cudaStreamSynchronize(performer->stream);
      end_request(request, outcome);
    }
    else if (!device->sorting.wait())
      return;
  }
}

} // namespace gpusort
