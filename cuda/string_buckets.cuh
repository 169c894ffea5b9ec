/*-------------------------------------------------------------------------
 *
 * string_buckets.cuh
 *	  The string engine's way with up to two million rows: buckets between
 *	  splitters, and each bucket sorted on chip.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKETS_CUH
#define GS_STRING_BUCKETS_CUH

#include <cuda/atomic>

#include "sort_context.cuh"
#include "string_finish.cuh"

namespace gpusort
{

// So many bytes of a key are in a word, and words of a sample's key are looked at.
constexpr u32 word_bytes = 7;
constexpr u32 n_levels = 16;
constexpr u32 kept_levels = 4;  // of words that are kept of the sample's keys
constexpr u32 oversampling = 4; // samples to a bucket

constexpr u32 most_tiles = 256;

// The rows that a block sorts at most, and on average those of a part of a bucket with more.
constexpr u32 place_bits = 10;
constexpr u32 capacity = 1u << place_bits;
constexpr u32 part_rows = capacity * 5 / 8;

constexpr u32 n_bytes = 256; // that there are

// By how many tiles it is told which buckets are likely large.
constexpr u32 telling_tiles = 8;

// Set in a tile's part of a bucket once it is written.
constexpr u32 is_told = 1u << 31;

// The bucket of a turn; what is known of it is in the upper half.
constexpr u32 bucket_mask = 0xffff;

// What is known of a bucket: in how many bits behind the prefix all of its keys agree, and
constexpr u32 one_key = 0x8000;   // that they are all equal,
constexpr u32 many_rows = 0x4000; // and have thousands of rows
constexpr u32 has_codes = 0x400;  // or their words are of codes
constexpr u32 agreed_bits = 0x3ff;

static_assert(n_levels * word_bytes * 8 <= agreed_bits);

// The values of a tile's rows: bits of the key behind those in which the bucket's keys agree, how many
// bytes these are, and the row's number in the tile.
constexpr u32 row_bits = 13;
constexpr u32 value_bits = 64 - count_bits - row_bits;

// A part of a bucket that is split, to be sorted by any block.
struct alignas(16) QueuedPart
{
  u32 known;
  u32 depth;
  u32 base;
  u32 rows; // and in the lowest bit, whether its values relate to a pivot; 0: not yet written
};

// Rows are cut into tiles; a tile's rows lie in the order of their buckets.
struct Buckets
{
  u32 n_buckets; // a power of two
  u32 n_samples;
  u32 tile_rows;
  u32 n_tiles;
  u32 most_queued;
  u64 *samples;       // the first words of a sample, level by level, piece by piece in order
  u32 *sample_rows;   // and its rows
  u8 *codes;          // of bytes, if words hold such
  u64 *splitters;     // those of the splitters, one less than buckets
  u32 *turns;         // buckets in the order in which they are sorted, and what is known of them
  uint16_t *many;     // buckets that have many_rows
  u32 *n_many;        // how many there are
  QueuedPart *queued; // parts of buckets without room
  u64 *values;        // of rows, tile by tile
  u32 *parts;         // for each tile, of each bucket: see begin_of_part()
};

// Whether so many rows are sorted in this way, on this device.
bool buckets_fit(u32 n_rows, const FinishLimits &limits);

Buckets carve_buckets(Carver &carve, u32 n_rows, u64 *values);

// The shared memory that a block needs to find the splitters.
u32 sample_shared_bytes(u32 n_samples);

// Finds the splitters.  Sets again in *state, which it makes empty, and in *told, where words tell too little
// of the keys.
void find_splitters(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                    const FinishLimits &limits, RoundState *state, RoundCounts *told, cudaStream_t stream);

// Fills the buckets between them with all rows; may set again, too.
void fill_buckets(const KeyRef *keys, u32 n_rows, u32 prefix, const Buckets &buckets,
                  const FinishLimits &limits, RoundState *state, RoundCounts *told, cudaStream_t stream);

// Sorts the rows of each bucket.  Those without room are left in the lists or, if they are too large
// for these, in *next; rows then holds theirs.  Either is told in *told, as 1 for any number of them.
void finish_buckets(const KeyRef *keys, u32 prefix, const Buckets &buckets, const FinishLimits &limits,
                    const GroupLists &lists, const Segments &next, u32 *rows, u32 *order, u8 *tie,
                    RoundCounts *told, cudaStream_t stream);

#ifdef __CUDACC__

// A number that blocks tell each other.
using DeviceCount = cuda::atomic_ref<u32, cuda::thread_scope_device>;

// Where a tile's part of a bucket begins, and how many rows it has.
__device__ __forceinline__ u32 begin_of_part(u32 part)
{
  return part & 0xffff;
}

__device__ __forceinline__ u32 rows_of_part(u32 part)
{
  return ((part & ~is_told) >> 16) - (part & 0xffff);
}

// The word of a key behind so many bytes, zeros where it has ended, with the number of its
// bytes.
__device__ __forceinline__ u64 key_word(const KeyRef &key, u32 depth)
{
  u32 left = key.length - depth;

  return (load_word(key.address + depth, left) & ~u64{0xff}) |
         (left <= word_bytes ? left << count_bits : 0xff);
}

// The same, or 0 where the key has ended before.
__device__ __forceinline__ u64 word_or_0(const KeyRef &key, u32 depth)
{
  return depth <= key.length ? key_word(key, depth) : 0;
}

// A word of the two that 16 bytes of a key hold; so many bytes are left of the key.
__device__ __forceinline__ u64 word_of(const Head &head, u32 which, u32 left)
{
  u64 its = which == 0 ? head.bytes[0] : head.bytes[0] << 56 | head.bytes[1] >> 8;

  left -= which * word_bytes;
  return (its & ~u64{0xff}) | (left <= word_bytes ? left << count_bits : 0xff);
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
