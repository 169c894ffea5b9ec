/*-------------------------------------------------------------------------
 *
 * sort_context.cuh
 *	  What a sorting thread gives to an engine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_CONTEXT_CUH
#define GS_SORT_CONTEXT_CUH

#include <atomic>

#include "common/side_streams.cuh"

namespace gpusort
{

// Pinned host memory for the counts that an engine's kernels tell the host.  Each
// engine has its own struct for them.
struct alignas(16) CountsMemory
{
  char bytes[64];
};

// What an engine tells of a sort.
struct EngineReport
{
  const char *name; // of the way that the rows were sorted, for EXPLAIN; static
  u32 rounds;
};

struct SortContext
{
  cudaStream_t stream;
  SideStreams &side;
  Event &event;
  CountsMemory *counts_memory;
  const std::atomic<bool> &cancelled;

  // The pinned memory as an engine's struct, which kernels may write as well.
  template <typename Counts>
  Counts *counts() const
  {
    static_assert(sizeof(Counts) <= sizeof(CountsMemory) && alignof(Counts) <= alignof(CountsMemory));
    return reinterpret_cast<Counts *>(counts_memory);
  }
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
