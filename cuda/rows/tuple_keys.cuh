/*-------------------------------------------------------------------------
 *
 * tuple_keys.cuh
 *	  Makes the keys that a chunk's records lack.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_TUPLE_KEYS_CUH
#define GS_TUPLE_KEYS_CUH

#include "rows/rows.cuh"

namespace gpusort
{

// What an image with key_bytes takes behind its records, a multiple of 16: a counter, and the
// keys, which are read in words that may end behind the last one.
inline u64 made_keys_bytes(u32 key_bytes)
{
  return key_bytes == 0 ? 0 : 16 + align_up<u64>(u64{key_bytes} + 8, 16);
}

// Makes the keys of an image's records that have GS_KEY_MISSING.  A record whose key cannot be
// made, or has no room, keeps GS_KEY_MISSING.
void make_keys(const ImageRef &image, const GsTupleKeys &keys, cudaStream_t stream);

} // namespace gpusort

#endif // GS_TUPLE_KEYS_CUH
