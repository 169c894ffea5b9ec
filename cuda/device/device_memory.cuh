/*-------------------------------------------------------------------------
 *
 * device_memory.cuh
 *	  Device memory under a hard limit.
 *
 * Reservations are counted and checked against the limit: reserve() before memory is needed, release()
 * when it is needed no longer.  Both only count.  Allocations take the memory.  Callers reserve before
 * they allocate, so all allocations together are never larger than the reservations.  Freed memory
 * stays cached in a pool of our own, since the driver is slow to give memory.  It goes back to the
 * driver when the limit or another allocation needs it, or with trim().  The limit can change.  A lower
 * one takes no reservation back, but reserve() fails until the reservations are below it.
 *
 * reserve, release, discard, used, limit and set_limit never call CUDA and may be called
 * on any thread; so may the others, but they can take a while.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_DEVICE_MEMORY_CUH
#define GS_DEVICE_MEMORY_CUH

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "common/common.cuh"

namespace gpusort
{

class DeviceMemory
{
public:
  DeviceMemory(int ordinal, u64 limit);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  // False: the limit would be exceeded, and nothing has changed.
  bool reserve(u64 bytes);
  void release(u64 bytes);

  // Returns memory that the stream may use, and other streams after it.  Throws GS_NO_MEMORY.
  void *allocate(u64 bytes, cudaStream_t stream);
  void free(void *memory, cudaStream_t stream);

  // Takes memory that no stream uses any more.  drain() frees it, and so does the
  // next allocation; false: there was none.
  void discard(const std::vector<void *> &memory);
  bool drain();

  // Does the memory in use and cached exceed the limit?
  bool passes_limit() const;

  // Gives cached memory back to the driver.
  void trim();

  u64 limit() const
  {
    return limit_bytes.load(std::memory_order_relaxed);
  }
  void set_limit(u64 bytes)
  {
    limit_bytes.store(bytes, std::memory_order_relaxed);
  }
  u64 used() const
  {
    return reserved.load(std::memory_order_relaxed);
  }

private:
  void *take(u64 bytes, cudaStream_t stream); // null where there is no memory

  std::atomic<u64> limit_bytes;
  std::atomic<u64> reserved{0};
  cudaMemPool_t pool = nullptr; // null where the device has no such pools
  Stream idle;                  // what drain() frees on
  std::mutex lock;              // guards garbage
  std::vector<void *> garbage;
};

// A reservation for a scope.
class Reservation
{
public:
  Reservation(DeviceMemory &memory, u64 bytes, const char *purpose) : memory(memory), bytes(bytes)
  {
    if (!memory.reserve(bytes))
      fail(GS_NO_MEMORY, "the device memory limit of %llu bytes leaves no room for %s", memory.limit(),
           purpose);
  }
  ~Reservation()
  {
    memory.release(bytes);
  }

  // Nothing is released.
  void keep()
  {
    bytes = 0;
  }
  Reservation(const Reservation &) = delete;
  Reservation &operator=(const Reservation &) = delete;

private:
  DeviceMemory &memory;
  u64 bytes;
};

// An allocation for a scope, usable in the order of a stream.
class DeviceBuffer
{
public:
  DeviceBuffer(DeviceMemory &memory, u64 bytes, cudaStream_t stream)
      : memory(memory), stream(stream), address(memory.allocate(bytes, stream))
  {
  }
  ~DeviceBuffer()
  {
    if (address != nullptr)
      memory.free(address, stream);
  }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  void *get() const
  {
    return address;
  }
  void *detach()
  {
    return std::exchange(address, nullptr);
  }

private:
  DeviceMemory &memory;
  cudaStream_t stream;
  void *address;
};

} // namespace gpusort

#endif // GS_DEVICE_MEMORY_CUH
