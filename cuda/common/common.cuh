/*-------------------------------------------------------------------------
 *
 * common.cuh
 *	  What all CUDA sources of gpusort share: errors, owned handles, and the
 *	  loading of key words.
 *
 * Errors travel as exceptions of type Failure inside cuda/, and leave it as
 * GsStatus values: device_cuda.cu catches everything at its edge.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_COMMON_CUH
#define GS_COMMON_CUH

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "../../src/device/device.h"

#ifdef POSTGRES_H
#error "CUDA sources must not see PostgreSQL's headers"
#endif

namespace gpusort
{

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = unsigned long long;

struct Failure
{
  GsStatus status;
  GsError error;
};

[[noreturn]] inline void fail(GsStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));

[[noreturn]] inline void fail(GsStatus status, const char *format, ...)
{
  Failure failure{status, {}};
  va_list args;

  va_start(args, format);
  vsnprintf(failure.error.message, sizeof failure.error.message, format, args);
  va_end(args);
  throw failure;
}

// Errors that leave the context usable are few; after any other one nothing
// more can be done with the device in this process.
inline GsStatus status_of(cudaError_t code)
{
  switch (code)
  {
  case cudaErrorMemoryAllocation:
    return GS_NO_MEMORY;
  case cudaErrorNoDevice:
  case cudaErrorInvalidDevice:
  case cudaErrorInsufficientDriver:
  case cudaErrorStubLibrary:
    return GS_NO_DEVICE;
  case cudaErrorInvalidValue:
  case cudaErrorInvalidConfiguration:
  case cudaErrorInvalidResourceHandle:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorInvalidDeviceFunction:
    return GS_INTERNAL;
  default:
    return GS_DEVICE_LOST;
  }
}

[[noreturn]] inline void fail_cuda(cudaError_t code, const char *file, int line)
{
  const char *base = file;

  for (const char *p = file; *p != '\0'; p++)
    if (*p == '/')
      base = p + 1;
  (void)cudaGetLastError(); // an error that is not sticky ends here
  fail(status_of(code), "CUDA: %s (%s:%d)", cudaGetErrorString(code), base, line);
}

#define GS_CUDA_TRY(call)                                                                                    \
  do                                                                                                         \
  {                                                                                                          \
    cudaError_t gs_code_ = (call);                                                                           \
    if (gs_code_ != cudaSuccess)                                                                             \
      ::gpusort::fail_cuda(gs_code_, __FILE__, __LINE__);                                                    \
  } while (0)

// After every kernel launch.
#define GS_CUDA_LAUNCHED() GS_CUDA_TRY(cudaGetLastError())

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

// An event that takes the time and that a thread can sleep on.
class Event
{
public:
  Event()
  {
    GS_CUDA_TRY(cudaEventCreateWithFlags(&handle, cudaEventBlockingSync));
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
  // Most waits are short: spin first, then sleep, from which to wake takes some 25
  // microseconds.
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

// One object of T in pinned host memory, which kernels may write.
template <typename T>
class Pinned
{
public:
  Pinned()
  {
    GS_CUDA_TRY(cudaHostAlloc(reinterpret_cast<void **>(&object), sizeof(T), cudaHostAllocPortable));
  }
  ~Pinned()
  {
    (void)cudaFreeHost(object);
  }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
  T *get() const
  {
    return object;
  }
  T *operator->() const
  {
    return object;
  }

private:
  T *object = nullptr;
};

// Cuts one allocation into arrays.  Over no memory it only adds up sizes, so
// that one function both lays out a workspace and tells how large it is.
class TempStorage
{
public:
  explicit TempStorage(void *base = nullptr) : base(static_cast<char *>(base))
  {
  }
  template <typename T>
  T *alias(u64 count)
  {
    u64 at = (used + 255) & ~u64{255};

    used = at + count * sizeof(T);
    return base == nullptr ? nullptr : reinterpret_cast<T *>(base + at);
  }
  u64 bytes() const
  {
    return (used + 255) & ~u64{255};
  }

private:
  char *base;
  u64 used = 0;
};

inline u32 blocks_for(u64 items, u32 items_per_block)
{
  return static_cast<u32>((items + items_per_block - 1) / items_per_block);
}

template <typename T>
__host__ __device__ constexpr T align_up(T value, T to)
{
  return (value + to - 1) & ~(to - 1);
}

#ifdef __CUDACC__

__device__ __forceinline__ u64 swap_bytes(u64 word)
{
  u32 low = static_cast<u32>(word);
  u32 high = static_cast<u32>(word >> 32);

  return (static_cast<u64>(__byte_perm(low, 0, 0x0123)) << 32) | __byte_perm(high, 0, 0x0123);
}

// The next 8 bytes at an address of any alignment, the first byte highest,
// zeros after the last of `left` bytes.  Reads only aligned words that hold
// one of those bytes.
__device__ __forceinline__ u64 load_word(u64 address, u32 left)
{
  if (left == 0)
    return 0;

  const u64 *at = reinterpret_cast<const u64 *>(address & ~u64{7});
  u32 shift = static_cast<u32>(address & 7) * 8;
  u32 bits = left < 8 ? left * 8 : 64;
  u64 word = __ldg(at) >> shift;

  if (bits + shift > 64)
    word |= __ldg(at + 1) << (64 - shift);
  word = swap_bytes(word);
  if (bits < 64)
    word &= ~u64{0} << (64 - bits);
  return word;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_COMMON_CUH
