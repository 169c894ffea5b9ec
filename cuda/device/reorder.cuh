/*-------------------------------------------------------------------------
 *
 * reorder.cuh
 *	  Moves rows within a finished order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_REORDER_CUH
#define GS_REORDER_CUH

#include "device/perform.cuh"

namespace gpusort
{

// Rank to[i] gets the row of rank from[i].
struct MoveInput
{
  const uint64_t *to; // in host memory
  const uint64_t *from;
  u32 n; // moves, > 0
  u32 n_rows;
  u32 chunk_bytes;
};

// Moves rows as reorder of device.h demands.  Changes the rows of the output in
// place, but not its page table: the new one goes to *pages.  Where it throws while
// *moving is false, nothing has changed.
void reorder(Performer &performer, DeviceMemory &memory, const MoveInput &input, const PerformOutput &output,
             PageTable *pages, bool *moving);

} // namespace gpusort

#endif // GS_REORDER_CUH
