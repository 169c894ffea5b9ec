/*-------------------------------------------------------------------------
 *
 * errors.cuh
 *	  How errors travel inside of cuda/: as exceptions of type Failure.
 *
 * device_cuda.cu and the threads of a device catch them all; what leaves cuda/
 * is a GsStatus.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ERRORS_CUH
#define GS_ERRORS_CUH

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdio>

#include "../../src/device/device.h"

#ifdef POSTGRES_H
#error "CUDA sources must not see PostgreSQL's headers"
#endif

namespace gpusort
{

struct Failure
{
  GsStatus status;
  GsError error;
};

[[noreturn, gnu::format(printf, 2, 3)]] inline void fail(GsStatus status, const char *format, ...)
{
  Failure failure{status, {}};
  va_list args;

  va_start(args, format);
  vsnprintf(failure.error.message, sizeof failure.error.message, format, args);
  va_end(args);
  throw failure;
}

// Only errors of refused calls leave the context usable.  After any other error this process cannot use the
// device any more.
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
  case cudaErrorLaunchOutOfResources:
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
  (void)cudaGetLastError(); // clears an error that is not sticky
  // without a device there is nothing to look for in the code
  if (status_of(code) == GS_NO_DEVICE)
    fail(GS_NO_DEVICE, "%s", cudaGetErrorString(code));
  fail(status_of(code), "CUDA: %s (%s:%d)", cudaGetErrorString(code), base, line);
}

#define GS_CUDA_TRY(call)                                                                                    \
  do                                                                                                         \
  {                                                                                                          \
    cudaError_t gs_code_ = (call);                                                                           \
    if (gs_code_ != cudaSuccess)                                                                             \
      ::gpusort::fail_cuda(gs_code_, __FILE__, __LINE__);                                                    \
  } while (0)

// Checks a kernel launch.  It follows each launch.
#define GS_CUDA_LAUNCHED() GS_CUDA_TRY(cudaGetLastError())

} // namespace gpusort

#endif // GS_ERRORS_CUH
