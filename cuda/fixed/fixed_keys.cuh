/*-------------------------------------------------------------------------
 *
 * fixed_keys.cuh
 *	  Keys of one length, squeezed into integers; a radix sort of whole keys.
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

// How to move the bits of a word that vary to its lower end.
struct Squeeze
{
  u64 mask;                 // the bits that vary
  u64 moved[squeeze_steps]; // the bits that move by 1, 2, 4 ... places
  u32 n_bits;
};

// The layout of squeezed keys: integers of n_bits bits, which take n_bytes bytes.
struct SqueezedLayout
{
  Squeeze words[diff_words];
  u32 n_bits;
  u32 n_bytes;
};

// Do the keys have one length, and at most 128 bits that vary?
bool fixed_keys_fit(const RowStats &stats);

SqueezedLayout squeezed_layout(const RowStats &stats);

// The functions below have instances for Key = u32, u64 and u128.

// Fills keys with integers in the order of the rows' keys, and rows with the
// numbers of the rows.
template <typename Key>
void squeeze_keys(const OrderJob &job, const SqueezedLayout &layout, Key *keys, u32 *rows,
                  cudaStream_t stream);

// Writes to tie[i] whether sorted key i equals the one before.
template <typename Key>
void mark_squeezed_ties(const Key *keys, u32 n_rows, u8 *tie, cudaStream_t stream);

// The order of n_rows equal keys.
void order_equal_keys(u32 n_rows, const KeyOrder &order, cudaStream_t stream);

// The engine: does it take the keys, bytes of workspace for any n_rows of them, and their
// sort, which returns a name for EXPLAIN.  Not all keys are equal.
bool sort_fixed_fits(const RowStats &stats);
u64 sort_fixed_workspace(u32 n_rows);
const char *sort_fixed(const OrderJob &job, cudaStream_t stream);

} // namespace gpusort

#endif // GS_FIXED_KEYS_CUH
