/*-------------------------------------------------------------------------
 *
 * device_cuda.cu
 *	  The device "cuda" of device.h.
 *
 * gs_device_cuda is the only symbol that cuda/ has for the C side.  Its functions
 * book and queue; threads do what takes time (device_appends.cu, device_fetches.cu, device_sorters.cu,
 * device_arrays.cu).  No exception leaves any of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_WITH_CUDA
#define GS_WITH_CUDA
#endif
#include "device/device_state.cuh"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace gpusort;

namespace
{

constexpr u32 min_chunk_bytes = 1024;
constexpr u32 max_chunk_bytes = u32{1} << 30;

// Blocks all signals for a scope: threads that start in it inherit that.
class SignalBlock
{
public:
  SignalBlock()
  {
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalBlock()
  {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  SignalBlock(const SignalBlock &) = delete;
  SignalBlock &operator=(const SignalBlock &) = delete;

private:
  sigset_t before;
};

void stop_threads(GsDevice *device)
{
  device->copy_in.queue.close();
  device->copy_out.queue.close();
  device->arrays.queue.close();
  device->sorting.close();
  for (std::thread &thread : device->threads)
    thread.join();
  device->threads.clear();
}

void start_threads(GsDevice *device)
{
  try
  {
    device->threads.reserve(3 + GsDevice::n_sorters);
    device->threads.emplace_back(run_append_lane, device, &device->copy_in);
    device->threads.emplace_back(run_fetch_lane, device, &device->copy_out);
    device->threads.emplace_back(run_array_lane, device, &device->arrays);
    for (Performer &performer : device->performers)
      device->threads.emplace_back(run_sorter, device, &performer);
  }
  catch (...)
  {
    stop_threads(device);
    fail(GS_NO_MEMORY, "could not start the threads of a device");
  }
}

void select_device(int ordinal)
{
  int count = count_devices();

  if (ordinal < 0 || ordinal >= count)
    fail(GS_NO_DEVICE, "there is no CUDA device %d, only %d of them", ordinal, count);
  GS_CUDA_TRY(cudaSetDevice(ordinal));
  check_device_code();
}

// Returns the limit for which `bytes` stand.  A machine needs some of its memory for everything else.
u64 limit_for(const GsDevice *device, uint64_t bytes)
{
  u64 total = device->info.memory_total;

  return bytes == 0 ? device->default_limit
                    : std::min<u64>(bytes, device->is_integrated ? total / 10 * 9 : total);
}

bool has_memory_of_machine(const cudaDeviceProp &properties)
{
#ifdef GPUSORT_FAULTS
  if (getenv("GPUSORT_FAULT_INTEGRATED") != nullptr)
    return true;
#endif
  return properties.integrated != 0;
}

std::unique_ptr<GsDevice> make_device(const GsDeviceConfig *config)
{
  select_device(config->ordinal);

  auto device = std::make_unique<GsDevice>();
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  cudaDeviceProp properties;

  GS_CUDA_TRY(cudaGetDeviceProperties(&properties, config->ordinal));
  GS_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
  device->config = *config;
  std::string(properties.name).copy(device->info.name, sizeof device->info.name - 1);
  uuid_of(properties).copy(device->info.uuid, sizeof device->info.uuid - 1);
  device->info.memory_total = total_bytes;
  device->default_limit = free_bytes / 5 * 4;
  device->is_integrated = has_memory_of_machine(properties);
  if (device->is_integrated)
  {
    device->info.memory_total = std::min<u64>(total_bytes, gs_machine_total_memory());
    device->default_limit = gs_machine_default_limit(device->info.memory_total);
  }
  device->default_limit /= std::max(config->opened, 1);
  device->limit_is_default.store(config->memory_limit == 0);
  device->memory =
      std::make_unique<DeviceMemory>(config->ordinal, limit_for(device.get(), config->memory_limit));
  start_threads(device.get());
  return device;
}

int cuda_count(GsError *error)
{
  SignalBlock block;
  Failure failure;
  int count = 0;

  if (!guarded(&failure, [&] { count = count_devices(); }))
    *error = failure.error;
  return count;
}

int cuda_find(const char *uuid)
{
  SignalBlock block;
  Failure failure;
  int ordinal = -1;

  (void)guarded(&failure, [&] { ordinal = find_device(uuid); });
  return ordinal;
}

GsStatus cuda_open(const GsDeviceConfig *config, GsDevice **device, GsError *error)
{
  SignalBlock block;
  Failure failure;

  if (guarded(&failure, [&] { *device = make_device(config).release(); }))
    return GS_OK;
  *error = failure.error;
  return failure.status == GS_NO_MEMORY ? GS_NO_MEMORY : GS_NO_DEVICE;
}

// Leaves the device memory of a sort to a thread of the device, which frees it.
void discard_memory(GsDeviceSort *sort)
{
  std::vector<void *> memory;

  memory.reserve(sort->slabs.size() + 3);
  for (const Slab &slab : sort->slabs)
    memory.push_back(slab.base);
  if (sort->output.rows.refs != nullptr)
    memory.push_back(sort->output.rows.refs);
  if (sort->page_memory != nullptr)
    memory.push_back(sort->page_memory);
  sort->device->memory->discard(memory);
}

void cuda_sort_close(GsDeviceSort *sort)
{
  GsDevice *device = sort->device;
  Failure failure;

  // Memory that could not be discarded stays reserved.
  if (guarded(&failure, [&] { discard_memory(sort); }))
    device->memory->release(sort->memory_held());
  device->sorts.erase(std::find(device->sorts.begin(), device->sorts.end(), sort));
  delete sort;
  device->copy_in.queue.poke();
}

void cuda_close(GsDevice *device)
{
  for (GsDeviceSort *sort : device->sorts)
    sort->cancelled.store(true, std::memory_order_relaxed);
  stop_threads(device);

  // From here on errors have no consequence.
  (void)cudaSetDevice(device->config.ordinal);
  while (!device->sorts.empty())
    cuda_sort_close(device->sorts.back());
  delete device;
  (void)cudaGetLastError();
}

void cuda_info(GsDevice *device, GsDeviceInfo *info)
{
  *info = device->info;
  info->memory_limit = device->memory->limit();
  info->memory_used = device->memory->used();
  info->jobs_ended = device->jobs_ended;
  info->jobs_pending = device->jobs_begun - info->jobs_ended;
}

void pin(GsDevice *device, void *memory, size_t bytes)
{
  GS_CUDA_TRY(cudaSetDevice(device->config.ordinal));
  pin_memory(memory, bytes);
}

GsStatus cuda_pin(GsDevice *device, void *memory, size_t bytes, GsError *error)
{
  Failure failure;

  if (guarded(&failure, [&] { pin(device, memory, bytes); }))
    return GS_OK;
  *error = failure.error;
  return failure.status;
}

void cuda_trim(GsDevice *device)
{
  device->trim_wanted.store(true);
  device->copy_in.queue.poke();
}

void cuda_set_memory_limit(GsDevice *device, uint64_t bytes)
{
  device->limit_is_default.store(bytes == 0);
  device->memory->set_limit(limit_for(device, bytes));
  cuda_trim(device); // more may be cached than the limit allows now
}

// Throws if a sort cannot be opened.
void check_spec(const GsSortSpec &spec)
{
  u32 chunk_bytes = spec.chunk_bytes;

  if (chunk_bytes < min_chunk_bytes || chunk_bytes > max_chunk_bytes ||
      (chunk_bytes & (chunk_bytes - 1)) != 0)
    fail(GS_INVALID, "chunks cannot have %u bytes", chunk_bytes);
  if (spec.elem != GS_ELEM_NONE && gs_elem_bytes(spec.elem) == 0)
    fail(GS_INVALID, "there are no arrays of elements %d", static_cast<int>(spec.elem));
  if (gs_engine_name(spec.engine) == nullptr)
    fail(GS_INVALID, "there is no engine %d", static_cast<int>(spec.engine));
}

// Returns the device's copy of a table.
const GsTextTable *copy_table(GsDevice *device, const GsTextTable *table)
{
  for (const TableCopy &known : device->tables)
    if (known.original == table)
      return static_cast<const GsTextTable *>(known.copy.get());

  GS_CUDA_TRY(cudaSetDevice(device->config.ordinal));

  Stream stream;
  void *memory = nullptr;

  GS_CUDA_TRY(cudaMalloc(&memory, table->size));

  TableCopy copy{table, {memory, cudaFree}};

  GS_CUDA_TRY(cudaMemcpyAsync(memory, table, table->size, cudaMemcpyHostToDevice, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));
  device->tables.push_back(std::move(copy));
  return static_cast<const GsTextTable *>(memory);
}

GsDeviceSort *open_sort(GsDevice *device, const GsSortSpec &spec)
{
  check_not_lost(device);
  check_spec(spec);
  device->sorts.reserve(device->sorts.size() + 1);

  auto sort = std::make_unique<GsDeviceSort>();

  sort->device = device;
  sort->spec = spec;
  if (spec.tuple_keys.table != nullptr)
    sort->spec.tuple_keys.table = copy_table(device, spec.tuple_keys.table);
  if (spec.elem != GS_ELEM_NONE)
    sort->times.engine = array_engine_name(spec.engine);
  device->sorts.push_back(sort.get());
  return sort.release();
}

GsStatus cuda_sort_open(GsDevice *device, const GsSortSpec *spec, GsDeviceSort **sort, GsError *error)
{
  Failure failure;

  if (guarded(&failure, [&] { *sort = open_sort(device, *spec); }))
    return GS_OK;
  *error = failure.error;
  return failure.status;
}

Request make_request(Call call, GsDeviceSort *sort, GsJob *job)
{
  Request request = {};

  request.call = call;
  request.sort = sort;
  request.job = job;
  return request;
}

void submit(RequestQueue *queue, const Request &request)
{
  Failure failure;

  request.sort->device->jobs_begun++;
  request.job->error.message[0] = '\0';
  __atomic_store_n(&request.job->status, static_cast<int32_t>(GS_PENDING), __ATOMIC_RELAXED);
  if (!guarded(&failure, [&] { queue->push(request); }))
    end_request(request, failure);
}

void cuda_append(GsDeviceSort *sort, const void *chunk, uint32_t data_bytes, uint32_t n_records,
                 uint32_t key_bytes, GsJob *job)
{
  Request request = make_request(Call::append, sort, job);

  request.chunk = chunk;
  request.data_bytes = data_bytes;
  request.n_records = n_records;
  request.key_bytes = key_bytes;
  if (sort->spec.elem != GS_ELEM_NONE)
    request.misuse = "a chunk was appended to a sort of arrays";
  else if (sort->perform_called)
    request.misuse = "a chunk was appended to a sort that was performed";
  submit(&sort->device->copy_in.queue, request);
}

// No append is pending, so no thread of the device looks at it.
void cuda_resume(GsDeviceSort *sort)
{
  sort->refused = false;
}

void cuda_perform(GsDeviceSort *sort, GsPageFormat format, const GsKeep *keep, GsJob *job)
{
  Request request = make_request(Call::perform, sort, job);

  request.format = format;
  if (keep != nullptr)
    request.keep = *keep;
  if (sort->spec.elem != GS_ELEM_NONE)
    request.misuse = "a sort of arrays was performed";
  else if (sort->perform_called)
    request.misuse = "a sort was performed twice";
  sort->perform_called = true;
  submit(&sort->device->sorting, request);
}

void cuda_fetch(GsDeviceSort *sort, uint64_t page, void *dst, GsJob *job)
{
  Request request = make_request(Call::fetch, sort, job);

  request.dst = dst;
  request.number = page;
  submit(&sort->device->copy_out.queue, request);
}

void cuda_fetch_image(GsDeviceSort *sort, uint64_t i, void *dst, uint32_t *n_records, GsJob *job)
{
  Request request = make_request(Call::fetch_image, sort, job);

  *n_records = 0;
  request.n_fetched = n_records;
  request.dst = dst;
  request.number = i;
  submit(&sort->device->copy_out.queue, request);
}

void cuda_sort_arrays(GsDeviceSort *sort, void *chunk, uint32_t data_bytes, uint32_t n_arrays, GsJob *job)
{
  Request request = make_request(Call::sort_arrays, sort, job);

  request.dst = chunk;
  request.data_bytes = data_bytes;
  request.n_records = n_arrays;
  request.misuse = sort->spec.elem == GS_ELEM_NONE ? "a sort of rows was given arrays" : nullptr;
  submit(&sort->device->arrays.queue, request);
}

void cuda_result(GsDeviceSort *sort, GsSortResult *result)
{
  std::lock_guard<std::mutex> guard(sort->lock);

  *result = sort->times;
  if (!sort->performed)
    return;
  result->n_rows = sort->output.n_rows;
  result->n_dropped = sort->totals.n_rows - sort->output.n_rows;
  result->n_pages = sort->output.pages.row_bytes.size();
  result->page_first = sort->output.pages.first_row.data();
  result->row_bytes = sort->output.stats.row_bytes;
  result->key_bytes = sort->output.stats.key_bytes;
  result->engine = sort->output.engine;
}

uint64_t cuda_memory_held(GsDeviceSort *sort)
{
  return sort->memory_held();
}

void cuda_cancel(GsDeviceSort *sort)
{
  sort->cancelled.store(true, std::memory_order_relaxed);
}

} // namespace

extern "C" const GsDeviceOps gs_device_cuda = {
    "cuda",                // name
    cuda_count,            // count
    cuda_find,             // find
    cuda_open,             // open
    cuda_close,            // close
    cuda_info,             // info
    cuda_pin,              // pin
    cuda_set_memory_limit, // set_memory_limit
    cuda_trim,             // trim
    cuda_sort_open,        // sort_open
    cuda_append,           // append
    cuda_resume,           // resume
    cuda_perform,          // perform
    cuda_fetch,            // fetch
    cuda_fetch_image,      // fetch_image
    cuda_sort_arrays,      // sort_arrays
    cuda_result,           // result
    cuda_memory_held,      // memory_held
    cuda_cancel,           // cancel
    cuda_sort_close        // sort_close
};
