/*-------------------------------------------------------------------------
 *
 * spilled.h
 *	  Our sort of strings that a device's memory does not hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_BENCH_SPILLED_H
#define GS_BENCH_SPILLED_H

#include <memory>

#include "device/device.h"
#include "datasets.h"

namespace bench
{

struct SpilledReport
{
  uint32_t runs; // 0: the device held all
  uint32_t ranges;
  uint32_t splits;        // of ranges that did not fit
  uint64_t spilled_bytes; // written and read
  double run_ms;          // making runs: all until the last one was written
  double range_ms;        // reading, sorting and fetching ranges
  double device_sort_ms;  // of all sorts
};

// Sorts by a device that may hold that many bytes, with as many threads of the CPU.
// path is that of files.  Throws std::runtime_error.
class SpilledSorter
{
public:
  SpilledSorter(const GsDeviceOps *ops, uint64_t memory_limit, int threads, const std::string &path);
  ~SpilledSorter();
  SpilledSorter(const SpilledSorter &) = delete;
  SpilledSorter &operator=(const SpilledSorter &) = delete;

  // The order of the strings, equal ones by row; tie tells what equals the rank before.
  SpilledReport sort(const Strings &strings, std::vector<uint32_t> *order, std::vector<uint8_t> *tie);

private:
  struct State;

  std::unique_ptr<State> state;
};

} // namespace bench

#endif // GS_BENCH_SPILLED_H
