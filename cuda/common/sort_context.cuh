/*-------------------------------------------------------------------------
 *
 * sort_context.cuh
 *	  What a sorting thread gives to an engine, and streams for kernels side by side.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_CONTEXT_CUH
#define GS_SORT_CONTEXT_CUH

#include <atomic>

#include "common/common.cuh"

namespace gpusort
{

// Streams beside a thread's own, for kernels that may run side by side.
struct SideStreams
{
  static constexpr u32 count = 2;

  Stream streams[count];
  UntimedEvent events[count];
};

// Lets the side streams share a stream's work for a scope.  Their work begins after the stream's work from
// before the scope, and ends before its work from after the scope, such as freeing memory that they use.
// That also holds if an exception leaves the scope.
class Fork
{
public:
  Fork(SideStreams &side, cudaStream_t stream) : side(side), stream(stream)
  {
    GS_CUDA_TRY(cudaEventRecord(side.events[0], stream));
    for (Stream &side_stream : side.streams)
      GS_CUDA_TRY(cudaStreamWaitEvent(side_stream, side.events[0], 0));
  }
  ~Fork()
  {
    if (joined == SideStreams::count)
      return;

    // An exception is leaving the scope: errors here would only hide it.
    for (u32 i = joined; i < SideStreams::count; i++)
      if (cudaEventRecord(side.events[i], side.streams[i]) != cudaSuccess ||
          cudaStreamWaitEvent(stream, side.events[i], 0) != cudaSuccess)
        (void)cudaStreamSynchronize(side.streams[i]);
    (void)cudaGetLastError();
  }
  Fork(const Fork &) = delete;
  Fork &operator=(const Fork &) = delete;

  // The stream itself or one of the side streams, in turn.
  cudaStream_t lane(u32 turn) const
  {
    u32 i = turn % (SideStreams::count + 1);

    return i == 0 ? stream : static_cast<cudaStream_t>(side.streams[i - 1]);
  }
  void join()
  {
    for (; joined < SideStreams::count; joined++)
    {
      GS_CUDA_TRY(cudaEventRecord(side.events[joined], side.streams[joined]));
      GS_CUDA_TRY(cudaStreamWaitEvent(stream, side.events[joined], 0));
    }
  }

private:
  SideStreams &side;
  cudaStream_t stream;
  u32 joined = 0;
};

// Pinned host memory for the counts that an engine's kernels return to the host.  Each engine has its own
// struct for them.
struct alignas(16) CountsMemory
{
  char bytes[64];
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
