/*-------------------------------------------------------------------------
 *
 * key_compare.cuh
 *	  Comparing keys on the device, by words and to their ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRINGS_KEY_COMPARE_CUH
#define GS_STRINGS_KEY_COMPARE_CUH

#include "rows/rows.cuh"

namespace gpusort
{

constexpr u32 word_bytes = 7;

// The 7 bytes of a key from `depth` on, the first one highest, and in the lowest byte how
// many bytes are left, or 8 for more than 7.  The order of words is that of the keys,
// and words that are equal and do not go on belong to equal keys.
__device__ __forceinline__ u64 key_word(const KeyRef &key, u32 depth)
{
  u32 left = key.length - depth;

  return (load_word(key.address + depth, left) & ~u64{0xff}) | min(left, word_bytes + 1);
}

// Has the key more bytes than the word?
__device__ __forceinline__ bool goes_on(u64 word)
{
  return (word & 0xff) == word_bytes + 1;
}

// The order of two keys: negative, 0 or positive, and how many bytes they share.
struct Comparison
{
  int order;
  u32 shared; // bytes
};

constexpr u32 words_at_a_time = 2;

// Loads several words from an address on, as load_word() makes them of `left` bytes.
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

// Compares the bytes at two addresses, `left` at most.  Returns how many are equal from
// the first on, and in the upper half 1 if the next byte at the first address is less.
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
      return (place + equal_bytes(diff)) | static_cast<u64>(is_less) << 32;
    at = left - at > 8 * words_at_a_time ? at + 8 * words_at_a_time : left;
  }
  return left;
}

// Compares two keys that share their first `from` bytes, and looks no further than the
// first `to`.  Keys that agree in one word often agree in many, so the words after the
// first are loaded several at a time.
__device__ __forceinline__ Comparison compare_keys(const KeyRef &a, const KeyRef &b, u32 from, u32 to = ~0u)
{
  u32 common = min(min(a.length, b.length), to);

  if (from < common)
  {
    u64 x = load_word(a.address + from, common - from);
    u64 y = load_word(b.address + from, common - from);

    if (x != y)
      return {x < y ? -1 : 1, from + equal_bytes(x ^ y)};
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

} // namespace gpusort

#endif // GS_STRINGS_KEY_COMPARE_CUH
