/*-------------------------------------------------------------------------
 *
 * fixed_keys.cuh
 *	  Keys of one length, squeezed into integers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_FIXED_KEYS_CUH
#define GS_FIXED_KEYS_CUH

#include "rows.cuh"

namespace gpusort
{

using u128 = unsigned __int128;

// The bytes of a key that vary, as 0xff in the words of a key.
struct ByteMask
{
  u64 word[diff_words];
  u32 n_words;
};

// What is left of the keys: n_bytes, 16 at most, of which the bits from
// begin_bit up to end_bit vary.
struct FixedSpan
{
  ByteMask mask;
  u32 n_bytes;
  int begin_bit;
  int end_bit;
};

// Whether the keys have one length and differ in few enough bytes.
bool fixed_keys_fit(const RowStats &stats);

FixedSpan find_fixed_span(const RowStats &stats);

// The functions below are there for Key = u32, u64 and u128.

// Fills keys with integers in the order of the rows' keys, and rows with their
// numbers.
template <typename Key>
void squeeze_keys(const KeyRef *refs, u32 n_rows, const FixedSpan &span, Key *keys, u32 *rows,
                  cudaStream_t stream);

// tie[i] tells whether sorted key i equals the one before.
template <typename Key>
void mark_fixed_ties(const Key *keys, u32 n_rows, u8 *tie, cudaStream_t stream);

// The order of n_rows equal keys.
void order_equal_keys(u32 n_rows, u32 *order, u8 *tie, cudaStream_t stream);

} // namespace gpusort

#endif // GS_FIXED_KEYS_CUH
