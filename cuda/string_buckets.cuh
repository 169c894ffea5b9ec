/*-------------------------------------------------------------------------
 *
 * string_buckets.cuh
 *	  The string engine's way with up to half a million rows: buckets between
 *	  splitters, and each bucket sorted on chip.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKETS_CUH
#define GS_STRING_BUCKETS_CUH

#include "string_finish.cuh"

namespace gpusort
{

// So many bytes of a key are in a word, and words of a sample's key are looked at.
constexpr u32 word_bytes = 7;
constexpr u32 n_levels = 16;

constexpr u32 most_tiles = 128; // no more than large devices have multiprocessors

// What is known of a bucket: in how many words all of its keys agree, and
constexpr u8 one_key = 0x80; // that they are all equal

// Rows are cut into tiles; a tile's rows lie in the order of their buckets.
struct Buckets
{
  u32 n_buckets; // a power of two
  u32 n_samples;
  u32 tile_rows;
  u32 n_tiles;
  u64 *samples;     // words of a sample, level by level, piece by piece in order
  u64 *splitters;   // those of the splitters, one less than buckets
  u64 *tree;        // first words of these as a search tree
  u8 *known;        // of buckets
  u64 *words;       // of rows, tile by tile, behind what the bucket's keys agree in
  uint16_t *rows;   // and their numbers in their tile
  uint16_t *begins; // for each tile where its part of each bucket begins, and where the last one ends
};

// Whether so many rows are sorted in this way, on this device.
bool buckets_fit(u32 n_rows, const FinishLimits &limits);

Buckets carve_buckets(Carver &carve, u32 n_rows, u64 *words, u32 *rows);

// Fills the buckets with all rows; sets again in *state, which it makes empty, where words
// tell too little of the keys.
void fill_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                  const FinishLimits &limits, RoundState *state, cudaStream_t stream);

// Sorts the rows of each bucket.  Groups that stay large are left in the lists, buckets without
// room in *next; rows then holds theirs.
void finish_buckets(const KeyRef *keys, u32 prefix, const Buckets &buckets, const FinishLimits &limits,
                    const GroupLists &lists, const Segments &next, u32 *rows, u32 *order, u8 *tie,
                    cudaStream_t stream);

#ifdef __CUDACC__

// The word of a key behind so many bytes, zeros where it has ended, with the number of its
// bytes.
__device__ __forceinline__ u64 key_word(const KeyRef &key, u32 depth)
{
  u32 left = key.length - depth;

  return (load_word(key.address + depth, left) & ~u64{0xff}) |
         (left <= word_bytes ? left << count_bits : 0xff);
}

// Does the key end in such a word, or in another one whose lowest bits are not all set where
// it does?
__device__ __forceinline__ bool is_whole(u64 word)
{
  return (~word & ((1u << count_bits) - 1)) != 0;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_STRING_BUCKETS_CUH
