/*-------------------------------------------------------------------------
 *
 * process.cuh
 *	  What the CUDA devices of one process have in common: CUDA's list of them, and
 *	  pinned host memory.
 *
 * Memory is pinned for all devices at once (cudaHostRegisterPortable), also for those
 * that are opened later.  It stays pinned until the last open device is closed.  One device pins it, but
 * another may still be copying from it when that device is closed.
 * For the same reason no device is ever reset.
 *
 * All functions may be called on any thread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PROCESS_CUH
#define GS_PROCESS_CUH

#include <string>

#include "common/errors.cuh"

namespace gpusort
{

// Throws if there is none.
int count_devices();

// Returns the UUID as nvidia-smi writes it.
std::string uuid_of(const cudaDeviceProp &properties);

// Returns the device with this UUID; -1: there is none.
int find_device(const char *uuid);

// A device's claim that pinned memory stays pinned.
class PinClaim
{
public:
  PinClaim();
  ~PinClaim();
  PinClaim(const PinClaim &) = delete;
  PinClaim &operator=(const PinClaim &) = delete;
};

// Pins memory with the current device, unless it is pinned already.
void pin_memory(void *memory, size_t bytes);

} // namespace gpusort

#endif // GS_PROCESS_CUH
