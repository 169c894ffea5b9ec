/*-------------------------------------------------------------------------
 *
 * keys.cuh
 *	  Copying keys in their order out of the chunks that they came in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_KEYS_CUH
#define GS_KEYS_CUH

#include "rows/rows.cuh"

namespace gpusort
{

// What fits into a buffer for keys.
struct KeyRoom
{
  u32 bytes; // of keys as they are handed out
  u32 keys;  // at most
};

// The room to take for a buffer of the caller's, of a sort's n_rows keys.
KeyRoom key_room(const RowStats &stats, u64 n_rows, u64 bytes);

// Device memory for a buffer with that room.
u64 key_buffer_bytes(KeyRoom room);

// Copies as many of n keys as have room into buffer, from where room.bytes
// bytes are to be copied to the host, and says how many in *n_keys, in pinned
// memory; n is at most room.keys.
void gather_keys(const RowRef *rows, const KeySpan *spans, u32 n, KeyRoom room, void *buffer, u32 *n_keys,
                 cudaStream_t stream);

} // namespace gpusort

#endif // GS_KEYS_CUH
