/*-------------------------------------------------------------------------
 *
 * perform.cuh
 *	  Ordering all rows of a sort: keys, engine, pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PERFORM_CUH
#define GS_PERFORM_CUH

#include "device/device_memory.cuh"
#include "engine/engine.cuh"
#include "rows/gather.cuh"

namespace gpusort
{

struct PerformInput
{
  const std::vector<ImageRef> &images; // those with records, in order
  u32 n_rows;                          // > 0
  u32 chunk_bytes;
  const GsTupleKeys &tuple_keys;
  GsEngine engine;
  GsPageFormat format;
  GsKeep keep;
};

struct PerformOutput
{
  OrderedRows rows; // one allocation, from rows.refs on, that the caller then owns
  u32 n_rows;       // that are kept; room for all is in the allocation
  GsPageFormat format;
  PageTable pages;
  RowStats stats; // of all rows
  const char *engine;
};

// What a sorting thread owns.
struct Performer
{
  Stream stream;
  SideStreams side;
  Event started;
  Event event;
  Pinned<CountsMemory> counts; // of the engine
  Pinned<RowStats> stats;
  Pinned<u32> number;
  PinnedBuffer buffer; // for arrays that are copied to the device and back

  // Waits until the stream has done all of its work.
  void wait()
  {
    event.record(stream);
    event.wait();
  }
  // Reads a number from device memory, after all that the stream was given.
  u32 read(const u32 *at)
  {
    GS_CUDA_TRY(cudaMemcpyAsync(number.get(), at, sizeof(u32), cudaMemcpyDeviceToHost, stream));
    wait();
    return *number.get();
  }
};

// Returns the most device memory that perform() takes at a time, in either format.  rows_bytes() of it stay
// taken.  data_bytes are the bytes of rows and keys in all chunks.
u64 perform_bytes(GsEngine engine, u64 n_rows, u64 n_images, u64 data_bytes, u32 chunk_bytes);
u64 rows_bytes(u64 n_rows);

void perform(Performer &performer, DeviceMemory &memory, const std::atomic<bool> &cancelled,
             const PerformInput &input, PerformOutput *output);

} // namespace gpusort

#endif // GS_PERFORM_CUH
