/*-------------------------------------------------------------------------
 *
 * sort_context.cuh
 *	  What a sorting thread brings along for an engine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_CONTEXT_CUH
#define GS_SORT_CONTEXT_CUH

#include "common/common.cuh"

namespace gpusort
{

// What a round of an engine tells the host, written by the device.
struct RoundCounts
{
  u32 live;
  u32 segments;
  u32 again;    // not 0: the round must be done again in another way; see papers/radix2013.cu
  u32 pairs[8]; // of a sample, that agree in so many bits; see string_choose.cu
};

// An event that other streams wait for, and no thread.
class UntimedEvent
{
public:
  UntimedEvent()
  {
    GS_CUDA_TRY(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming));
  }
  ~UntimedEvent()
  {
    (void)cudaEventDestroy(handle);
  }
  UntimedEvent(const UntimedEvent &) = delete;
  UntimedEvent &operator=(const UntimedEvent &) = delete;
  operator cudaEvent_t() const
  {
    return handle;
  }

private:
  cudaEvent_t handle = nullptr;
};

// Streams beside a thread's own, for kernels that may run side by side.
struct SideStreams
{
  static constexpr u32 count = 2;

  Stream streams[count];
  UntimedEvent events[count];
};

// While it lives, the side streams go on from where the stream is.  However the
// scope is left, all that they got comes before what the stream gets next, such
// as the freeing of memory that they use.
class Fork
{
public:
  Fork(SideStreams &side, cudaStream_t stream) : side(side), stream(stream)
  {
    follow();
  }
  ~Fork()
  {
    if (joined == SideStreams::count)
      return;

    // After a failure, whose error is on its way.
    for (u32 i = joined; i < SideStreams::count; i++)
      if (cudaEventRecord(side.events[i], side.streams[i]) != cudaSuccess ||
          cudaStreamWaitEvent(stream, side.events[i], 0) != cudaSuccess)
        (void)cudaStreamSynchronize(side.streams[i]);
    (void)cudaGetLastError();
  }
  Fork(const Fork &) = delete;
  Fork &operator=(const Fork &) = delete;

  // What the side streams get next comes after all that the stream has got.
  void follow()
  {
    GS_CUDA_TRY(cudaEventRecord(side.events[0], stream));
    for (Stream &beside : side.streams)
      GS_CUDA_TRY(cudaStreamWaitEvent(beside, side.events[0], 0));
  }

  // One of all streams, by turns.
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

struct SortContext
{
  cudaStream_t stream;
  SideStreams &side;
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
