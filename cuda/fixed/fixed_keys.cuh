/*-------------------------------------------------------------------------
 *
 * fixed_keys.cuh
 *	  Keys of one length, squeezed into integers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_FIXED_KEYS_CUH
#define GS_FIXED_KEYS_CUH

#include "rows/rows.cuh"

namespace gpusort
{

using u128 = unsigned __int128;

constexpr u32 squeeze_steps = 6; // log2 of a word's bits

// Moves the bits of a word that vary together at its lower end.
struct Squeeze
{
  u64 mask;
  u64 moved[squeeze_steps]; // the bits that move by 1, 2, 4 ... places
  u32 n_bits;
};

// What is left of the keys: n_bits, 128 at most, which fit into n_bytes.
struct FixedSpan
{
  Squeeze word[diff_words];
  u32 n_bits;
  u32 n_bytes;
  int begin_bit; // of the integers, bits from here
  int end_bit;   // up to here vary
};

// Whether the keys have one length and differ in few enough bits.
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
