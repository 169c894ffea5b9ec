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

constexpr u32 squeeze_steps = 6; // log2 of a word's bits

// How to move the varying bits of a word to its lower end.
struct Squeeze
{
  u64 mask;                 // the bits that vary
  u64 moved[squeeze_steps]; // the bits that move by 1, 2, 4 ... places
  u32 n_bits;
};

// The layout of squeezed keys: integers of n_bits bits.
struct SqueezedLayout
{
  Squeeze words[diff_words];
  u32 n_bits;
};

// Do the keys have one length, and at most 64 bits that vary?
bool fixed_keys_fit(const RowStats &stats);

SqueezedLayout squeezed_layout(const RowStats &stats);

// Calls f with an integer of the type of such keys.
template <typename F>
void with_squeezed(const SqueezedLayout &layout, F f)
{
  if (layout.n_bits <= 32)
    f(u32{});
  else
    f(u64{});
}

// The functions below have instances for Key = u32 and u64.

// Fills keys with integers in the order of the rows' keys, and rows with the
// numbers of the rows.
template <typename Key>
void squeeze_keys(const OrderJob &job, const SqueezedLayout &layout, Key *keys, u32 *rows,
                  cudaStream_t stream);

// Writes to tie[i] whether sorted key i equals the one before.
template <typename Key>
void mark_squeezed_ties(const Key *keys, u32 n_rows, u8 *tie, cudaStream_t stream);

// Writes the order of n_rows equal keys.
void order_equal_keys(u32 n_rows, const KeyOrder &order, cudaStream_t stream);

// The engine: bytes of workspace for any n_rows keys, and the sort of keys that fit, which returns a name for
// EXPLAIN.  Not all keys are equal.
u64 sort_fixed_workspace(u32 n_rows);
const char *sort_fixed(const OrderJob &job, cudaStream_t stream);

} // namespace gpusort

#endif // GS_FIXED_KEYS_CUH
