/*-------------------------------------------------------------------------
 *
 * reorder.cuh
 *	  Moving rows of a finished order about.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_REORDER_CUH
#define GS_REORDER_CUH

#include "device/perform.cuh"

namespace gpusort
{

struct MoveInput
{
  const uint64_t *to; // ranks, in host memory
  const uint64_t *from;
  u32 n; // > 0
  u32 n_rows;
  u32 chunk_bytes;
};

// Moves rows as reorder of device.h does: rows and spans of the output are
// changed, its page table is left and the new one goes to *pages.  Where it
// throws with *moving still false, nothing has changed.
void reorder(Performer &performer, DeviceMemory &memory, const MoveInput &input, const PerformOutput &output,
             PageTable *pages, bool *moving);

} // namespace gpusort

#endif // GS_REORDER_CUH
