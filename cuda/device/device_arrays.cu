/*-------------------------------------------------------------------------
 *
 * device_arrays.cu
 *	  The thread of a CUDA device that sorts chunks of arrays.
 *
 * A chunk is copied to the device, its arrays are sorted there in place, and it
 * is copied back.  All of that is queued at once, on the stream of the chunk's slot.
 * So chunks in different slots overlap: one is copied in while another is sorted
 * and a third one is copied out.  They end in the order in which they were given.
 *
 * The records are read twice.  The host checks them and takes the census, from which
 * follow the memory and the kernels needed.  The device makes spans of them.  So
 * the host need not wait between the copies.
 *
 * Memory is reserved and taken for one chunk at a time and given back after it,
 * which the pool makes cheap.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_state.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 span_threads = 256;

// Record i is the i-th from the end.
__global__ void __launch_bounds__(span_threads)
    make_spans(const GsRecord *records, u32 n, u32 elem_bytes, ArraySpan *spans)
{
  u32 i = blockIdx.x * span_threads + threadIdx.x;

  if (i < n)
  {
    GsRecord record = records[n - 1 - i];

    spans[i] = {record.row_off, record.row_len / elem_bytes};
  }
}

// Checks the records of a chunk and counts its arrays.
ArrayCensus count_chunk(const Request &request, u32 chunk_bytes, GsElem elem, u64 *bytes)
{
  ArrayCensus census = {};
  u32 elem_bytes = gs_elem_bytes(elem);

  if (request.data_bytes + u64{request.n_records} * sizeof(GsRecord) > chunk_bytes)
    fail(GS_INVALID, "a chunk's arrays and records overlap");
  for (u32 i = 0; i < request.n_records; i++)
  {
    const GsRecord &record = *gs_chunk_record(request.dst, chunk_bytes, i);

    if (record.row_off % 8 != 0 || record.row_len % elem_bytes != 0 ||
        u64{record.row_off} + record.row_len > request.data_bytes)
      fail(GS_INVALID, "array %u of a chunk has %u bytes at %u of %u", i, record.row_len, record.row_off,
           request.data_bytes);
    count_array(elem, {record.row_off, record.row_len / elem_bytes}, &census);
    *bytes += record.row_len;
  }
  return census;
}

// What a chunk needs on the device.
struct ChunkMemory
{
  char *data;
  GsRecord *records;
  ArraySpan *spans;
  void *workspace;
  u64 bytes;

  ChunkMemory(void *base, const Request &request, const ArrayCensus &census, u64 workspace_bytes)
  {
    TempStorage storage(base);

    data = storage.alias<char>(census.end);
    records = storage.alias<GsRecord>(request.n_records);
    spans = storage.alias<ArraySpan>(request.n_records);
    workspace = storage.alias<char>(workspace_bytes);
    bytes = storage.bytes();
  }
};

void start_arrays(ArraySlot *slot)
{
  const Request &request = slot->request;
  GsDeviceSort *sort = request.sort;
  const GsSortSpec &spec = sort->spec;
  DeviceMemory &device_memory = *sort->device->memory;
  cudaStream_t stream = slot->stream;
  u64 records_bytes = u64{request.n_records} * sizeof(GsRecord);
  char *chunk = static_cast<char *>(request.dst);

  slot->memory = nullptr;
  slot->reserved = 0;
  slot->bytes = 0;
  slot->engine = spec.engine;
  check_usable(sort, request);

  ArrayCensus census = count_chunk(request, spec.chunk_bytes, spec.elem, &slot->bytes);

  if (!array_engine_fits(spec.engine, spec.elem, census))
    slot->engine = GS_ENGINE_AUTO;
  slot->begin.record(stream);
  if (census.end > 0)
  {
    u64 workspace_bytes = array_engine_workspace(slot->engine, spec.elem, census);
    u64 bytes = ChunkMemory(nullptr, request, census, workspace_bytes).bytes;

    if (!device_memory.reserve(bytes))
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %llu of arrays",
           device_memory.limit(), bytes);
    slot->reserved = bytes;
    slot->memory = device_memory.allocate(bytes, stream);

    ChunkMemory memory(slot->memory, request, census, workspace_bytes);

    GS_CUDA_TRY(cudaMemcpyAsync(memory.data, chunk, census.end, cudaMemcpyHostToDevice, stream));
    GS_CUDA_TRY(cudaMemcpyAsync(memory.records, chunk + spec.chunk_bytes - records_bytes, records_bytes,
                                cudaMemcpyHostToDevice, stream));
    slot->copied.record(stream);
    make_spans<<<blocks_for(request.n_records, span_threads), span_threads, 0, stream>>>(
        memory.records, request.n_records, gs_elem_bytes(spec.elem), memory.spans);
    GS_CUDA_LAUNCHED();
    run_array_engine(slot->engine, {memory.data, memory.spans, request.n_records, spec.elem, spec.descending},
                     census, memory.workspace, stream);
    slot->sorted.record(stream);
    GS_CUDA_TRY(cudaMemcpyAsync(chunk, memory.data, census.end, cudaMemcpyDeviceToHost, stream));
  }
  else
  {
    slot->copied.record(stream);
    slot->sorted.record(stream);
  }
  slot->end.record(stream);
}

void finish_arrays(ArraySlot *slot)
{
  GsDeviceSort *sort = slot->request.sort;
  double in_ms = elapsed_ms(slot->begin, slot->copied);
  double sort_ms = elapsed_ms(slot->copied, slot->sorted);
  double out_ms = elapsed_ms(slot->sorted, slot->end);
  std::lock_guard<std::mutex> guard(sort->lock);

  sort->times.engine = array_engine_name(slot->engine);
  sort->times.n_rows += slot->request.n_records;
  sort->times.row_bytes += slot->bytes;
  sort->times.copy_in_ms += in_ms;
  sort->times.sort_ms += sort_ms;
  sort->times.copy_out_ms += out_ms;
}

void end_arrays(ArraySlot *slot)
{
  DeviceMemory &memory = *slot->request.sort->device->memory;

  if (!slot->failed)
    slot->failed = !guarded(&slot->failure, [&] { finish_arrays(slot); });

  // Part of the work may be under way, but the caller may reuse the chunk once the
  // job has ended.
  if (slot->failed)
    (void)cudaStreamSynchronize(slot->stream);
  if (slot->memory != nullptr)
    memory.free(slot->memory, slot->stream);
  memory.release(slot->reserved);
  end_request(slot->request, slot->failed ? slot->failure : success);
}

} // namespace

void run_array_lane(GsDevice *device, ArrayLane *lane)
{
  (void)cudaSetDevice(device->config.ordinal);
  serve_queue(
      &lane->queue, lane->slots,
      [&](ArraySlot *slot) { slot->failed = !guarded(&slot->failure, [&] { start_arrays(slot); }); },
      [](ArraySlot *slot) { return &slot->end; }, end_arrays, [] {});
}

} // namespace gpusort
