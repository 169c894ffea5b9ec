/*-------------------------------------------------------------------------
 *
 * handles.cuh
 *	  Streams, events and pinned memory, each owned by an object.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HANDLES_CUH
#define GS_HANDLES_CUH

#include <chrono>
#include <memory>

#include "common/errors.cuh"

namespace gpusort
{

class Stream
{
public:
  Stream()
  {
    GS_CUDA_TRY(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
  }
  ~Stream()
  {
    (void)cudaStreamDestroy(handle);
  }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  operator cudaStream_t() const
  {
    return handle;
  }

private:
  cudaStream_t handle = nullptr;
};

// An event with a time, for which a thread can sleep.
class Event
{
public:
  explicit Event(unsigned flags = cudaEventBlockingSync)
  {
    GS_CUDA_TRY(cudaEventCreateWithFlags(&handle, flags));
  }
  ~Event()
  {
    (void)cudaEventDestroy(handle);
  }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  operator cudaEvent_t() const
  {
    return handle;
  }
  void record(cudaStream_t stream)
  {
    GS_CUDA_TRY(cudaEventRecord(handle, stream));
  }
  bool done() const
  {
    cudaError_t code = cudaEventQuery(handle);

    if (code == cudaErrorNotReady)
      return false;
    GS_CUDA_TRY(code);
    return true;
  }
  // Spins first, since most waits are short and waking up takes some 25
  // microseconds; then sleeps.
  void wait() const
  {
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);

    while (!done())
    {
      if (std::chrono::steady_clock::now() < until)
        continue;
      GS_CUDA_TRY(cudaEventSynchronize(handle));
      return;
    }
  }

private:
  cudaEvent_t handle = nullptr;
};

inline double elapsed_ms(const Event &from, const Event &to)
{
  float ms = 0;

  GS_CUDA_TRY(cudaEventElapsedTime(&ms, from, to));
  return ms;
}

// An event that streams wait for, and no thread.
class UntimedEvent : Event
{
public:
  UntimedEvent() : Event(cudaEventDisableTiming)
  {
  }
  using Event::operator cudaEvent_t;
  using Event::record;
};

// Objects of T in pinned host memory, which kernels may write.
template <typename T>
class Pinned
{
public:
  explicit Pinned(size_t count = 1)
  {
    GS_CUDA_TRY(cudaHostAlloc(reinterpret_cast<void **>(&objects), count * sizeof(T), cudaHostAllocPortable));
  }
  ~Pinned()
  {
    (void)cudaFreeHost(objects);
  }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
  T *get() const
  {
    return objects;
  }
  T *operator->() const
  {
    return objects;
  }

private:
  T *objects = nullptr;
};

// Pinned host memory that grows.
class PinnedBuffer
{
public:
  // Returns memory of this many bytes.  Its former contents are lost.
  char *get(size_t bytes)
  {
    if (bytes > size)
    {
      size = 0;
      memory = std::make_unique<Pinned<char>>(2 * bytes);
      size = 2 * bytes;
    }
    return memory->get();
  }

private:
  size_t size = size_t{64} << 10;
  std::unique_ptr<Pinned<char>> memory = std::make_unique<Pinned<char>>(size);
};

} // namespace gpusort

#endif // GS_HANDLES_CUH
