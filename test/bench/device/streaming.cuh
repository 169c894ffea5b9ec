/*-------------------------------------------------------------------------
 *
 * streaming.cuh
 *	  Sort of strings that stay in host memory, after Thakkar and Narayanan.
 *
 * Unlike the other papers' algorithms this one is no engine of device.h: strings
 * are in host memory from the beginning to the end, and only columns of their
 * bytes come to the device.  It is a part of the device benchmark.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STREAMING_CUH
#define GS_STREAMING_CUH

#include "common/common.cuh"

namespace gpusort
{

// The strings, the caller's.
struct HostStrings
{
  const char *bytes; // of all strings; copies of all of them are faster where pinned
  u64 n_bytes;
  const uint64_t *begin; // of each string in bytes
  const u32 *length;     // of each string
  u32 n;
};

enum class StreamingMode
{
  automatic, // by the paper's rule
  cpu,
  gpu, // all strings at once on the device
  both // columns
};

struct StreamingOptions
{
  u64 memory_limit; // bytes of device memory
  StreamingMode mode = StreamingMode::automatic;
  bool dynamic = false;   // columns get wider as rows get fewer
  u32 cpu_rows = 10000;   // automatic: fewer rows are sorted by the CPU
  u32 loader_threads = 1; // which make columns
};

struct StreamingReport
{
  StreamingMode mode; // not automatic
  u32 steps;          // columns sorted
  u32 rounds;         // of all steps
  u32 first_k;        // bytes that the first column has of each string
  u32 last_k;         // and the last one sorted
  u64 device_bytes;
  u64 copied_bytes; // to the device
  double setup_ms;  // taking memory
  double total_ms;  // from then on; what follows overlaps
  double load_ms;   // CPU: making columns, with waits for their copies
  double copy_ms;   // device: copies of strings or columns
  double sort_ms;   // device: rounds
  double adjust_ms; // device: index adjustment, with the index array's copy to the host
  double wait_ms;   // the device's for a column
};

// Device memory that mode "both" takes for n strings where columns have k bytes of
// each; k is 8 at least.
u64 streaming_bytes(u32 n, u32 k);

// Finds the order of the strings: the string of rank i is order[i], and tie[i] tells
// whether it equals that of rank i - 1.  Equal strings keep their order.  Throws
// GS_NO_MEMORY where the mode needs more device memory than it may use.
StreamingReport sort_streaming(const HostStrings &strings, const StreamingOptions &options, u32 *order,
                               u8 *tie);

} // namespace gpusort

#endif // GS_STREAMING_CUH
