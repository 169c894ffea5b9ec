/*-------------------------------------------------------------------------
 *
 * keys.cuh
 *	  Copies keys, in key order, out of the chunks that they came in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEYS_CUH
#define GS_KEYS_CUH

#include "rows/rows.cuh"

namespace gpusort
{

// The capacity of a buffer for keys.
struct KeyRoom
{
  u32 bytes;    // of keys as fetch_keys of device.h hands them out
  u32 max_keys; // that can fit into these bytes
};

// The capacity for a fetch of up to `bytes` bytes of a sort's n_rows keys.
KeyRoom key_room(const RowStats &stats, u64 n_rows, u64 bytes);

// The size of a buffer of this capacity in device memory.  The keys are its first
// room.bytes bytes.
u64 key_buffer_bytes(KeyRoom room);

// Copies the first keys of n rows into the buffer at `memory`, as many whole ones as fit, and
// writes their number to *n_keys, in pinned memory.  n is at most room.max_keys.
void gather_keys(const OrderedRows &rows, u32 n, KeyRoom room, void *memory, u32 *n_keys,
                 cudaStream_t stream);

} // namespace gpusort

#endif // GS_KEYS_CUH
