/*-------------------------------------------------------------------------
 *
 * sort_string.cuh
 *	  The engine for keys of any length: radix sorts of key words, round by
 *	  round, on the rows that still tie.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_STRING_CUH
#define GS_SORT_STRING_CUH

#include "rows.cuh"

namespace gpusort
{

// What a round tells the host, written by the device.
struct RoundCounts
{
  u32 live;
  u32 segments;
};

// What a sorting thread brings along.
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

// Bytes of workspace for any n_rows keys.
u64 sort_string_workspace(u32 n_rows);

// Orders row numbers by their keys, all of which share their first `prefix`
// bytes: rank i goes to row order[i], and tie[i] tells whether its key equals
// rank i - 1's.  Returns the number of rounds.
u32 sort_string(const SortContext &context, const KeyRef *keys, u32 n_rows, u32 prefix, void *workspace,
                u32 *order, u8 *tie);

} // namespace gpusort

#endif // GS_SORT_STRING_CUH
