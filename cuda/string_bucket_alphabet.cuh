/*-------------------------------------------------------------------------
 *
 * string_bucket_alphabet.cuh
 *	  Words for keys that have few symbols.
 *
 * Seven bytes say little where keys have few different ones: digits, flags, bases.  If many probes
 * of a sample agree in their first words, and all bytes that they have are few, words hold codes
 * in place of bytes, 2 to 5 bits each: the bytes that probes have, and the gaps between these, numbered in
 * their order from 1 on, and 0 behind the end.  The order of words is that of keys, whatever the
 * keys have: two codes that differ tell which byte is less, and a word ends with the first
 * code of a gap, which says no more of its byte.
 *
 * Such a word is the codes from the top, and in its count whether the key goes on, which it also does
 * behind a gap.  It takes the place of a key's first word; the words behind it are of bytes, from the
 * first one on in which keys that have the same first word may differ.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_STRING_BUCKET_ALPHABET_CUH
#define GS_STRING_BUCKET_ALPHABET_CUH

#include "string_buckets.cuh"

namespace gpusort
{

constexpr u32 goes_on = (1u << count_bits) - 1; // the count of a word whose key does
constexpr u32 coded_bits = 64 - count_bits;
constexpr u32 most_symbol_bits = 5;
constexpr u32 most_coded_bytes = 32; // that are looked at for a word
constexpr u32 gap_code = 0x80;       // set for bytes in gaps

#ifdef __CUDACC__

// How many bytes of a key a word has codes of.
__device__ __forceinline__ u32 coded_bytes(u32 symbol_bits)
{
  return coded_bits / symbol_bits;
}

// The bytes of a key that are looked at.
struct CodedBytes
{
  Head heads[most_coded_bytes / 16];
  u32 left;

  __device__ __forceinline__ CodedBytes(const KeyRef &key, u32 prefix) : left(key.length - prefix)
  {
#pragma unroll
    for (u32 h = 0; h < most_coded_bytes / 16; h++)
      heads[h] = load_head(key.address + prefix + 16 * h, left - min(left, 16 * h));
  }

  // Four of them, the first one highest.
  __device__ __forceinline__ u32 four(u32 group) const
  {
    return static_cast<u32>(heads[group / 4].bytes[group / 2 % 2] >> (group % 2 == 0 ? 32 : 0));
  }
};

// What a block finds out about the symbols of the keys.
struct AlphabetState
{
  u8 seen[n_bytes];
  u8 codes[n_bytes];
  u32 begins[n_bytes / 32]; // of numbers
};

// Numbers the codes of bytes, once the block's threads have told which were seen.  Returns the bits of a
// code, or 0 if that would be too many.
__device__ __forceinline__ u32 number_codes(AlphabetState &state)
{
  const u32 me = threadIdx.x;
  u32 before = 0;
  u32 all = 0;

  if (me < n_bytes)
  {
    bool begins = me == 0 || state.seen[me] != 0 || state.seen[me - 1] != 0;
    u32 its = __ballot_sync(~0u, begins);

    if (me % 32 == 0)
      state.begins[me / 32] = its;
  }
  __syncthreads();
#pragma unroll
  for (u32 w = 0; w < n_bytes / 32; w++)
  {
    u32 its = state.begins[w];

    all += static_cast<u32>(__popc(its));
    if (w < me / 32)
      before += static_cast<u32>(__popc(its));
    else if (w == me / 32)
      before += static_cast<u32>(__popc(its & ((2u << me % 32) - 1)));
  }
  if (me < n_bytes)
    state.codes[me] = static_cast<u8>(before | (state.seen[me] != 0 ? 0 : gap_code));
  __syncthreads();

  u32 symbol_bits = max(32 - static_cast<u32>(__clz(static_cast<int>(all))), 2u);

  return symbol_bits <= most_symbol_bits ? symbol_bits : 0;
}

// The same from the bytes of probes, which the first of the block's threads have.  None was seen until the
// last barrier; threads that see the same byte all write the same.  Mostly the first words tell that
// these are too many.
__device__ __forceinline__ u32 learn_alphabet(AlphabetState &state, const KeyRef &probe, u32 prefix,
                                              u32 n_probes)
{
  const bool has_probe = threadIdx.x < n_probes;
  const u32 left = probe.length - prefix;

  if (has_probe)
  {
    u64 word = load_word(probe.address + prefix, left);

#pragma unroll
    for (u32 at = 0; at < word_bytes; at++)
      if (at < left)
        state.seen[word >> (56 - 8 * at) & 0xff] = 1;
  }
  __syncthreads();
  if (number_codes(state) == 0)
    return 0;
  if (has_probe)
  {
    CodedBytes bytes(probe, prefix);

#pragma unroll
    for (u32 at = word_bytes; at < most_coded_bytes; at++)
      if (at < left)
        state.seen[bytes.four(at / 4) >> (24 - at % 4 * 8) & 0xff] = 1;
  }
  __syncthreads();
  return number_codes(state);
}

// The word of a key.
__device__ __forceinline__ u64 coded_word(const u8 *codes, u32 symbol_bits, const CodedBytes &bytes)
{
  u32 n = min(bytes.left, coded_bytes(symbol_bits));
  bool ends = n == bytes.left;
  u32 n_bits = 0;
  u64 word = 0;

#pragma unroll
  for (u32 group = 0; group < most_coded_bytes / 4; group++)
    if (4 * group < n)
    {
      u32 code[4];
      u32 all = 0;

#pragma unroll
      for (u32 k = 0; k < 4; k++)
      {
        code[k] = 4 * group + k < n ? codes[bytes.four(group) >> (24 - 8 * k) & 0xff] : 0;
        all |= code[k];
      }
      if ((all & gap_code) != 0)
      {
        bool is_behind = false;

#pragma unroll
        for (u32 k = 0; k < 4; k++)
        {
          u32 its = code[k];

          code[k] = is_behind ? 0 : its & ~gap_code;
          is_behind = is_behind || (its & gap_code) != 0;
        }
        ends = false;
        n = 0;
      }
      word <<= 4 * symbol_bits;
      word |= ((code[0] << symbol_bits | code[1]) << symbol_bits | code[2]) << symbol_bits | code[3];
      n_bits += 4 * symbol_bits;
    }
  return (n_bits == 0 ? 0 : word << (64 - n_bits)) | (ends ? 0 : goes_on);
}

// Where a key's second word begins, behind its prefix: keys with the same first word, which go on, agree in
// so many bytes.  Where the last code is there, it may be that of a gap.
__device__ __forceinline__ u32 bytes_before(u64 first, u32 symbol_bits)
{
  if (symbol_bits == 0)
    return word_bytes;

  u32 n = coded_bytes(symbol_bits);
  u32 last = static_cast<u32>(first >> (64 - n * symbol_bits)) & ((1u << symbol_bits) - 1);

  return last != 0 ? n - 1 : 0;
}

// A row's value, of what its word has behind the bits in which its bucket's keys agree.
__device__ __forceinline__ u64 coded_value(u64 word, u32 agreed)
{
  u64 bits = word >> count_bits << count_bits << agreed;
  u64 kept = bits & ~u64{0} << (64 - value_bits);

  return kept | (is_whole(word) && bits == kept ? 0 : goes_on << row_bits);
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_STRING_BUCKET_ALPHABET_CUH
