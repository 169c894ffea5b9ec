/*-------------------------------------------------------------------------
 *
 * process.cu
 *	  What the CUDA devices of one process have in common.
 *
 *-------------------------------------------------------------------------
 */
#include "device/process.cuh"

#include <strings.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace gpusort
{

namespace
{

// Behind "GPU-" or "MIG-".
constexpr size_t prefix_length = 4;

std::mutex pin_lock; // guards the following
std::vector<void *> pinned;
int n_claims = 0;

} // namespace

int count_devices()
{
  int count = 0;

  GS_CUDA_TRY(cudaGetDeviceCount(&count));
  if (count == 0)
    fail(GS_NO_DEVICE, "CUDA shows no device");
  return count;
}

std::string uuid_of(const cudaDeviceProp &properties)
{
  std::string uuid = strstr(properties.name, " MIG ") != nullptr ? "MIG" : "GPU";
  char digits[3];

  for (int i = 0; i < 16; i++)
  {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
      uuid += '-';
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
    uuid += digits;
  }
  return uuid;
}

int find_device(const char *uuid)
{
  int count = count_devices();

  for (int i = 0; i < count; i++)
  {
    cudaDeviceProp properties;

    GS_CUDA_TRY(cudaGetDeviceProperties(&properties, i));
    if (strlen(uuid) > prefix_length &&
        strcasecmp(uuid_of(properties).c_str() + prefix_length, uuid + prefix_length) == 0)
      return i;
  }
  return -1;
}

PinClaim::PinClaim()
{
  std::lock_guard<std::mutex> guard(pin_lock);

  n_claims++;
}

PinClaim::~PinClaim()
{
  std::lock_guard<std::mutex> guard(pin_lock);

  if (--n_claims > 0)
    return;
  for (void *memory : pinned)
    (void)cudaHostUnregister(memory);
  pinned.clear();
}

void pin_memory(void *memory, size_t bytes)
{
  std::lock_guard<std::mutex> guard(pin_lock);

  if (std::find(pinned.begin(), pinned.end(), memory) != pinned.end())
    return;
  pinned.reserve(pinned.size() + 1);

  // The kernel provides pages that are new now, and not while the driver holds its locks.
  for (size_t i = 0; i < bytes; i += 4096)
    (void)*(static_cast<const volatile char *>(memory) + i);
  GS_CUDA_TRY(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
  pinned.push_back(memory);
}

} // namespace gpusort
