/*-------------------------------------------------------------------------
 *
 * device_memory.cu
 *	  Device memory under a hard limit.
 *
 * The pool is a cudaMemPool with an unlimited release threshold: allocations
 * and frees are ordered by streams and cost microseconds once it is warm.
 * Its cache is cut back as soon as memory in use and cached memory together pass the
 * limit.  On devices without pools (some virtual ones) cudaMalloc and cudaFree serve
 * instead; they wait for the device.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_memory.cuh"

namespace gpusort
{

DeviceMemory::DeviceMemory(int ordinal, u64 limit) : limit_bytes(limit)
{
  int has_pools = 0;

  GS_CUDA_TRY(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, ordinal));
  if (!has_pools)
    return;

  cudaMemPoolProps props = {};
  u64 threshold = UINT64_MAX;

  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = ordinal;
  GS_CUDA_TRY(cudaMemPoolCreate(&pool, &props));
  if (cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) != cudaSuccess)
    (void)cudaGetLastError(); // it only costs speed
}

DeviceMemory::~DeviceMemory()
{
  drain();
  (void)cudaStreamSynchronize(idle);
  if (pool != nullptr)
    (void)cudaMemPoolDestroy(pool);
}

bool DeviceMemory::reserve(u64 bytes)
{
  u64 most = limit();
  u64 before = reserved.load(std::memory_order_relaxed);

  do
  {
    if (bytes > most || before > most - bytes)
      return false;
  } while (!reserved.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void DeviceMemory::release(u64 bytes)
{
  reserved.fetch_sub(bytes, std::memory_order_relaxed);
}

bool DeviceMemory::passes_limit() const
{
  u64 bytes = 0;

  if (pool != nullptr)
    GS_CUDA_TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
  return bytes > limit();
}

void *DeviceMemory::take(u64 bytes, cudaStream_t stream)
{
  void *memory = nullptr;
  cudaError_t code =
      pool != nullptr ? cudaMallocFromPoolAsync(&memory, bytes, pool, stream) : cudaMalloc(&memory, bytes);

  if (code == cudaErrorMemoryAllocation)
  {
    (void)cudaGetLastError();
    return nullptr;
  }
  GS_CUDA_TRY(code);
  return memory;
}

void *DeviceMemory::allocate(u64 bytes, cudaStream_t stream)
{
  bool freed = drain();

  bytes = align_up(bytes == 0 ? u64{1} : bytes, u64{512});

  void *memory = take(bytes, stream);

  if (memory == nullptr)
  {
    trim();
    memory = take(bytes, stream);
  }
  if (memory == nullptr)
    fail(GS_NO_MEMORY, "the device has no %llu bytes of memory free", bytes);
  try
  {
    // Cached memory may have been in pieces too small for this request.  Above a limit that was lowered
    // only closed sorts leave much to trim, and a trim waits.
    if ((freed || used() <= limit()) && passes_limit())
      trim();
  }
  catch (...)
  {
    free(memory, stream);
    throw;
  }
  return memory;
}

void DeviceMemory::free(void *memory, cudaStream_t stream)
{
  // An error here is an earlier failure of the device, reported elsewhere.
  if (pool != nullptr)
    (void)cudaFreeAsync(memory, stream);
  else
    (void)cudaFree(memory);
  (void)cudaGetLastError();
}

void DeviceMemory::discard(const std::vector<void *> &memory)
{
  std::lock_guard<std::mutex> guard(lock);

  garbage.insert(garbage.end(), memory.begin(), memory.end());
}

bool DeviceMemory::drain()
{
  std::vector<void *> taken;
  {
    std::lock_guard<std::mutex> guard(lock);
    taken.swap(garbage);
  }
  for (void *memory : taken)
    free(memory, idle);
  if (!taken.empty())
    (void)cudaStreamSynchronize(idle); // nothing else is on it
  return !taken.empty();
}

void DeviceMemory::trim()
{
  drain();
  if (pool == nullptr)
    return;

  // A free counts once its stream has reached it.
  GS_CUDA_TRY(cudaStreamSynchronize(idle));
  GS_CUDA_TRY(cudaMemPoolTrimTo(pool, 0));
}

} // namespace gpusort
