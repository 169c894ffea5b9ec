/*-------------------------------------------------------------------------
 *
 * words.cuh
 *	  What the parts of the string engine share: words, segments, groups.
 *
 * Words
 *	  A round sorts its rows by one 64-bit word each.  From the top, a word holds
 *	  the number of the row's segment, the next bits of its key, zeros where the key
 *	  has ended, and in 3 bits how many whole bytes of the key there are.  This count
 *	  orders "ab" before "ab\0", whose words are otherwise the same.  The last byte
 *	  may be there in part: its upper bits separate rows, but `depth` counts whole
 *	  bytes.  Where the keys of a segment also agree in the first bits of their next
 *	  byte, the words begin after these (`lead`).
 *
 * Segments
 *	  A segment is rows, neighbours in the order so far, whose keys agree
 *	  in all bytes that were looked at.  Rows move only within their segment, so a
 *	  segment's ranks never change.
 *
 * Groups
 *	  A round sorts by all bits of the words or by the upper ones only.  Rows that
 *	  agree in the bits sorted by form a group.  Groups that fit on chip are sorted
 *	  there (groups.cu, finish.cu); larger ones are the next round's segments.
 *
 * Live rows are those whose rank is not known yet.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_WORDS_CUH
#define GS_STRINGS_WORDS_CUH

#include "rows/rows.cuh"
#include "strings/tuning.cuh"

namespace gpusort
{

constexpr u32 count_bits = 3;
constexpr u32 max_chars = 7; // that a count can tell

// A segment's lead where all of its keys are equal.
constexpr u32 equal_keys = 64;

// The segments of a round, an array for each property.
struct Segments
{
  u32 *place;      // of its first row among the rows of the round
  u32 *source;     // of the same row among the sorted rows of the round before
  u32 *first_rank; // of its first row; a first round stores 0 for it and for the place
  u32 *depth;      // bytes that all of its keys share,
  u32 *skip;       // more such bytes that were found later,
  u32 *lead;       // and more such bits

  // A segment of a first round.
  __device__ void set(u32 i, u32 shared_bytes, u32 shared_bits) const
  {
    place[i] = 0;
    first_rank[i] = 0;
    depth[i] = shared_bytes;
    skip[i] = 0;
    lead[i] = shared_bits;
  }
};

// The layout of a round's words.
struct WordLayout
{
  u32 segment_bits;
  u32 key_bits;
  u32 sorted_bits; // of 64, from the top

  // Whole bytes of a key that a word covers.
  __host__ __device__ u32 chars(u32 lead) const
  {
    u32 bytes = (lead + key_bits) / 8;

    return bytes < max_chars ? bytes : max_chars;
  }
  __host__ __device__ bool is_partial() const
  {
    return sorted_bits < 64;
  }
  // Does a sorted word tell that all keys of its group are equal?
  __device__ bool has_equal_keys(u64 word, u32 lead) const
  {
    u32 count = static_cast<u32>(word) & ((1u << count_bits) - 1);

    return !is_partial() && count < chars(lead);
  }
  __device__ u32 segment_of(u64 word) const
  {
    return static_cast<u32>(word >> 1 >> (63 - segment_bits));
  }
  // Equal for the words of a group only.
  __device__ u64 group_of(u64 word) const
  {
    return word >> (64 - sorted_bits);
  }
  // A word of 8 bytes of a key with `left` bytes left.
  __device__ u64 make_word(u32 segment, u64 next_bytes, u32 lead, u32 left) const
  {
    u64 bits = next_bytes << lead >> (64 - key_bits);

    return static_cast<u64>(segment) << 1 << (63 - segment_bits) | bits << count_bits |
           min(left, chars(lead));
  }
};

// The rows of a round after its sort, and where the result goes: rank r to order[r],
// and whether its key equals that of rank r - 1 to tie[r].
struct SortedRows
{
  const KeyRef *keys; // of all rows, by number
  u64 *words;
  u32 *rows; // numbers
  u32 live;
  WordLayout layout;
  u32 *order;
  u8 *tie;
};

// A group that one block sorts to the end.
struct alignas(16) Group
{
  u32 start; // its first row's place among the sorted rows
  u32 first_rank;
  u32 depth; // bytes that its keys share once they are sorted by their whole words
  uint16_t size;
  uint16_t chars; // whole bytes of the key in a word
};

// The groups that a round found, by class of size.
struct GroupCounts
{
  u64 large; // rows in groups too large for a block; such groups in the upper half
  u32 listed[group_classes];
  u32 taken[group_classes]; // by blocks that sort them
};

struct GroupLists
{
  Group *groups[group_classes];
  GroupCounts *counts;
};

// Where the groups of a round go whose rows' ranks are not known at once.
struct GroupOutput
{
  GroupLists lists;
  Segments segments; // of the next round: groups of more than max_rows
  u32 max_rows;
};

// Bits that tell all numbers up to `value` apart.
inline u32 bits_of(u32 value)
{
  return value == 0 ? 0 : 32 - static_cast<u32>(__builtin_clz(value));
}

// The row of sample i: one at random in each of n_samples equal parts.
__device__ __forceinline__ u32 sample_row(u32 n_rows, u32 n_samples, u32 i)
{
  u64 begin = u64{n_rows} * i / n_samples;
  u64 end = u64{n_rows} * (i + 1) / n_samples;
  u32 hash = (i + 1) * 0x9e3779b1u;

  hash ^= hash >> 15;
  hash *= 0x85ebca77u;
  hash ^= hash >> 13;
  return static_cast<u32>(begin + (u64{hash} * (end - begin) >> 32));
}

} // namespace gpusort

#endif // GS_STRINGS_WORDS_CUH
