/*-------------------------------------------------------------------------
 *
 * prefix_words.cuh
 *	  Words of segments and prefixes, by which radix2013 and streaming sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_PREFIX_WORDS_CUH
#define GS_PREFIX_WORDS_CUH

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "common/common.cuh"

namespace gpusort
{

constexpr u32 prefix_bytes = 8;

// The characters that the current words hold, below the segment's number: those from
// `from` to `to` - 1.
struct Window
{
  u32 from;
  u32 to;

  __host__ __device__ u32 chars() const
  {
    return to - from;
  }
};

// Does a segment begin at a place?  Segments are numbered from the first place on,
// so the answer there is no.
struct BeginsSegment
{
  const u64 *words;

  __host__ __device__ u32 operator()(u64 i) const
  {
    return i > 0 && words[i] != words[i - 1];
  }
};

inline auto segment_flags(const u64 *words)
{
  return thrust::make_transform_iterator(thrust::counting_iterator<u64>(0), BeginsSegment{words});
}

__device__ __forceinline__ bool has_zero_byte(u64 word)
{
  return ((word - 0x0101010101010101) & ~word & 0x8080808080808080) != 0;
}

} // namespace gpusort

#endif // GS_PREFIX_WORDS_CUH
