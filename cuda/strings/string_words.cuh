/*-------------------------------------------------------------------------
 *
 * string_words.cuh
 *	  What the parts of the string engine share: words, segments, groups.
 *
 * Words
 *	  A segment is a run of rows, neighbours in the order so far, whose keys
 *	  agree in all bytes looked at.  Rows are sorted by one 64-bit word: from
 *	  the top, the segment's number, the next bits of the key, zeros where it
 *	  has ended, and in 3 bits how many whole bytes of the key there are.  That
 *	  last field orders "ab" before "ab\0", whose words are otherwise the same.
 *	  The last byte may be there in part: its upper bits separate rows, but
 *	  depth counts whole bytes.  Where the keys of a segment also agree in the
 *	  first bits of their next byte, the word begins after those (`lead`).
 *	  The words of a first round may hold a code of the bytes instead: see
 *	  string_code.cu.
 *
 * Groups
 *	  A round sorts by all bits of the words or by the upper ones only.  Rows
 *	  that agree in the bits sorted by form a group.  Groups that fit on chip
 *	  leave the rounds, see string_finish.cu; larger ones are the next round's
 *	  segments.  Rows move only within their segment, so that a segment's ranks
 *	  never change: they begin at `slot`.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_WORDS_CUH
#define GS_STRING_WORDS_CUH

#include "rows.cuh"

namespace gpusort
{

constexpr u32 count_bits = 3;
constexpr u32 max_chars = 7;

// A segment's lead where all of its keys are equal.
constexpr u32 equal_keys = 64;

// How many more shared bytes are looked for before a round.
constexpr u32 max_skip = 64;

// The segments of a round, an array for each property.
struct Segments
{
  u32 *place;  // its first row's place among the rows of the round
  u32 *source; // and among those of the round before
  u32 *slot;   // its first rank, in the first round less the place
  u32 *depth;  // its keys agree in so many bytes,
  u32 *skip;   // in as many again that were found later,
  u32 *lead;   // and in so many bits

  // Makes all rows the one segment.
  __device__ void set_whole(u32 prefix) const
  {
    place[0] = 0;
    slot[0] = 0;
    depth[0] = prefix;
    skip[0] = 0;
    lead[0] = 0;
  }
};

// How many bits a first round without splitters sorts by: a multiple of 8.
constexpr u32 least_first_bits = 16;
constexpr u32 most_first_bits = 40;

// The layout of a round's words.
struct Shape
{
  u32 segment_bits;
  u32 key_bits;
  u32 sorted_bits;    // of 64, from the top
  bool coded = false; // in place of bytes; a count less than max_chars then tells is_settled()

  // How many whole bytes of a key a word covers.
  __host__ __device__ u32 chars(u32 lead) const
  {
    u32 bytes = (lead + key_bits) / 8;

    return bytes < max_chars ? bytes : max_chars;
  }
  // How many bytes keys agree in that agree in all bits of such words.
  __host__ __device__ u32 advance(u32 lead) const
  {
    return coded ? 0 : chars(lead);
  }
  __host__ __device__ bool partial() const
  {
    return sorted_bits < 64;
  }
  // The count of a coded word whose group holds equal keys only once at least
  // `needed` bits are sorted.
  __host__ __device__ static u32 settled_count(u32 needed)
  {
    u32 bits = needed < least_first_bits ? least_first_bits : needed;

    return bits > most_first_bits ? max_chars - 1 : (bits - least_first_bits + 7) / 8;
  }
  // Whether a sorted word tells that all keys of its group are equal.
  __device__ bool is_settled(u64 word, u32 lead) const
  {
    u32 count = static_cast<u32>(word) & ((1u << count_bits) - 1);

    return coded ? least_first_bits + 8 * count <= sorted_bits : !partial() && count < chars(lead);
  }
  __device__ u32 segment_of(u64 word) const
  {
    return static_cast<u32>(word >> 1 >> (63 - segment_bits));
  }
  __device__ u64 group_of(u64 word) const
  {
    return word >> (64 - sorted_bits);
  }
  __device__ u64 make_word(u32 segment, u64 next_bytes, u32 lead, u32 left) const
  {
    u64 bits = next_bytes << lead >> (64 - key_bits);

    return static_cast<u64>(segment) << 1 << (63 - segment_bits) | bits << count_bits |
           min(left, chars(lead));
  }
};

// The rows of a round after its sort, and where those go whose rank is known.
struct SortedRows
{
  const KeyRef *keys;
  const u64 *words;
  const u32 *rows;
  u32 live;
  Shape shape;
  u32 *order;
  u8 *tie;
};

// A group that one block sorts to the end.
struct alignas(16) Group
{
  u32 start; // among the rows of its round
  u32 slot;
  u32 depth; // its keys agree in so many bytes once the word is sorted by
  uint16_t size;
  uint16_t chars; // whole bytes in the word
};

constexpr u32 group_classes = 5;

// The groups that a round found, by size, and what its kernels count.
struct RoundState
{
  u64 large;       // rows in large groups; those groups in the upper half
  u32 n_groups[group_classes];
  u32 taken[group_classes];
};

struct GroupLists
{
  Group *groups[group_classes];
  RoundState *state;
};

inline u32 bits_of(u32 value)
{
  return value == 0 ? 0 : 32 - static_cast<u32>(__builtin_clz(value));
}

#ifdef __CUDACC__

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

struct Comparison
{
  int order;
  u32 shared; // bytes
};

constexpr u32 words_at_a_time = 2;

// Several words from an address on, as load_word() makes them of `left` bytes.
__device__ __forceinline__ void load_words(u64 address, u32 left, u64 (&words)[words_at_a_time])
{
  const u64 *at = reinterpret_cast<const u64 *>(address & ~u64{7});
  u32 offset = static_cast<u32>(address & 7);
  u32 end = offset + min(left, 8 * words_at_a_time);
  u64 raw[words_at_a_time + 1];

#pragma unroll
  for (u32 q = 0; q <= words_at_a_time; q++)
    raw[q] = 8 * q < end ? __ldg(at + q) : 0;
#pragma unroll
  for (u32 q = 0; q < words_at_a_time; q++)
  {
    words[q] = swap_bytes(raw[q] >> offset * 8 | raw[q + 1] << 1 << (63 - offset * 8));
    if (left < 8 * q + 8)
      words[q] = left <= 8 * q ? 0 : words[q] & ~u64{0} << (64 - (left - 8 * q) * 8);
  }
}

// In how many bytes, of `left` at most, those at two addresses agree; in the
// upper half 1 where the first ones are less then.  Not inline, since few keys
// come here and it takes many registers.
__device__ __forceinline__ u64 compare_further(u64 a, u64 b, u32 left)
{
  for (u32 at = 0; at < left;)
  {
    u64 x[words_at_a_time];
    u64 y[words_at_a_time];
    u64 diff = 0;
    u32 place = at;
    bool is_less = false;

    load_words(a + at, left - at, x);
    load_words(b + at, left - at, y);
#pragma unroll
    for (u32 q = words_at_a_time; q-- > 0;)
      if (x[q] != y[q])
      {
        diff = x[q] ^ y[q];
        place = at + 8 * q;
        is_less = x[q] < y[q];
      }
    if (diff != 0)
      return (place + static_cast<u32>(__clzll(static_cast<long long>(diff))) / 8) | static_cast<u64>(is_less)
                                                                                         << 32;
    at = left - at > 8 * words_at_a_time ? at + 8 * words_at_a_time : left;
  }
  return left;
}

// Compares two keys that agree in their first `from` bytes; where they do in the
// first `to`, it looks no further.  Keys that agree in one word often do in many:
// the words after the first are several on their way at a time.
__device__ __forceinline__ Comparison compare_keys(const KeyRef &a, const KeyRef &b, u32 from, u32 to = ~0u)
{
  u32 common = min(min(a.length, b.length), to);

  if (from < common)
  {
    u64 x = load_word(a.address + from, common - from);
    u64 y = load_word(b.address + from, common - from);

    if (x != y)
      return {x < y ? -1 : 1, from + static_cast<u32>(__clzll(static_cast<long long>(x ^ y))) / 8};
    if (common - from > 8)
    {
      u32 left = common - from - 8;
      u64 found = compare_further(a.address + from + 8, b.address + from + 8, left);
      u32 shared = static_cast<u32>(found);

      if (shared < left)
        return {found >> 32 != 0 ? -1 : 1, from + 8 + shared};
    }
  }
  return {(a.length > b.length) - (a.length < b.length), common};
}

// The next 16 bytes of a key, the first one highest, zeros where it has ended.  That so many come at once is
// worth more than that few are read.  Only aligned 16 bytes are read that hold one of those; memory ends no
// sooner.
struct Head
{
  u64 bytes[2];

  // Eight of them, from one of the first 9 on.
  __device__ __forceinline__ u64 from(u32 byte) const
  {
    return byte == 8 ? bytes[1] : bytes[0] << byte * 8 | bytes[1] >> 1 >> (63 - byte * 8);
  }
};

__device__ __forceinline__ Head load_head(u64 address, u32 left)
{
  const uint4 *at = reinterpret_cast<const uint4 *>(address & ~u64{15});
  uint4 low = {};
  uint4 high = {};

  if (left > 0)
    low = __ldg(at);
  if (static_cast<u32>(address & 15) + min(left, 16u) > 16)
    high = __ldg(at + 1);

  // From the four bytes on that hold the first one; then each four in one step.
  u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 turned[4];

#pragma unroll
  for (u32 i = 0; i < 6; i++)
    words[i] = (address & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (u32 i = 0; i < 5; i++)
    words[i] = (address & 4) != 0 ? words[i + 1] : words[i];
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    turned[i] = __byte_perm(words[i], words[i + 1], 0x0123 + static_cast<u32>(address & 3) * 0x1111);

  Head head = {
      {static_cast<u64>(turned[0]) << 32 | turned[1], static_cast<u64>(turned[2]) << 32 | turned[3]}};

  if (left < 16)
  {
    head.bytes[1] = left <= 8 ? 0 : head.bytes[1] & ~u64{0} << (16 - left) * 8;
    if (left < 8)
      head.bytes[0] = left == 0 ? 0 : head.bytes[0] & ~u64{0} << (8 - left) * 8;
  }
  return head;
}

// How an entry's key relates to that of its segment's pivot, behind what the segment's keys agree in:
// see string_finish.cu.
struct Relation
{
  u32 value;
  u32 shared; // bytes
  u64 next;   // those behind the shared ones
};

constexpr u32 relation_bits = 9;
constexpr u32 max_shared = 255;
static_assert(2 * max_shared < 1u << relation_bits);

__device__ __forceinline__ u32 shared_of(u32 relation)
{
  return relation > max_shared ? 2 * max_shared - relation : relation;
}

__device__ __forceinline__ Relation relate(u64 mine, u32 left, u64 pivot, u32 pivot_left, bool is_pivot)
{
  u32 common = min(min(left, pivot_left), max_shared); // at most
  u32 shared = 0;
  u32 at = 0;
  bool is_less = left < pivot_left; // should one be the beginning of the other
  bool is_unlike = left != pivot_left;
  Head head;

  for (;; at += 16)
  {
    head = load_head(mine + at, left - at);
    if (is_pivot)
    {
      shared = common;
      break;
    }

    Head its = load_head(pivot + at, pivot_left - at);
    bool at_once = head.bytes[0] != its.bytes[0];
    u64 x = at_once ? head.bytes[0] : head.bytes[1];
    u64 y = at_once ? its.bytes[0] : its.bytes[1];

    if (x != y)
    {
      shared = at + (at_once ? 0 : 8) + static_cast<u32>(__clzll(static_cast<long long>(x ^ y))) / 8;
      if (shared < common)
      {
        is_less = x < y;
        is_unlike = true;
      }
    }
    else
      shared = at + 16;
    if (x != y || shared >= common)
    {
      shared = min(shared, common);
      break;
    }
  }

  Relation relation = {max_shared, shared, 0};

  if (is_unlike && shared < max_shared)
    relation.value = is_less ? shared : 2 * max_shared - shared;
  relation.next = shared - at <= 8 ? head.from(shared - at) : load_word(mine + shared, left - shared);
  return relation;
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_STRING_WORDS_CUH
