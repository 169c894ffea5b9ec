/*-------------------------------------------------------------------------
 *
 * device_buffers.cu
 *	  Device memory through which the pages and keys of a sort reach the host.
 *
 * Appends reserve the memory for the least number of page buffers, so that a sort
 * that was performed can be fetched.  Further page buffers, and all buffers for
 * keys, are taken where the limit leaves room.
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

} // namespace

u64 min_output_bytes(const GsDeviceSort *sort, u64 n_rows)
{
  return rows_bytes(n_rows) + page_buffers_bytes(sort, min_page_buffers);
}

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

} // namespace gpusort
