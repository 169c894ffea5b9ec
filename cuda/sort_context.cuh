/*-------------------------------------------------------------------------
 *
 * sort_context.cuh
 *	  What a sorting thread brings along for an engine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_CONTEXT_CUH
#define GS_SORT_CONTEXT_CUH

#include "cuda_common.cuh"

namespace gpusort
{

// What a round of an engine tells the host, written by the device.
struct RoundCounts
{
  u32 live;
  u32 segments;
  u32 again = 0; // not 0: the engine must begin anew
  u32 pairs[8];  // of a sample, that agree in so many bits; see string_choose.cu
};

struct SortContext
{
  cudaStream_t stream;
  Event &event;
  RoundCounts *counts; // pinned
  const std::atomic<bool> &cancelled;

  void check_cancelled() const
  {
    if (cancelled.load(std::memory_order_relaxed))
      fail(GS_CANCELLED, "the sort was cancelled");
  }
  // Waits until the stream has done all of its work.
  void wait() const
  {
    event.record(stream);
    event.wait();
  }
};

} // namespace gpusort

#endif // GS_SORT_CONTEXT_CUH
