/*-------------------------------------------------------------------------
 *
 * rows.cuh
 *	  From chunk images in device memory to one array of keys.
 *
 * Rows are numbered in the order of their appending; the number is what the
 * engines sort along with a key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_ROWS_CUH
#define GS_ROWS_CUH

#include "common/common.cuh"

namespace gpusort
{

// The first words of keys, whose constant bytes need no sorting.
constexpr u32 diff_words = 5;

// A chunk as it lies in device memory: its data, and from the next multiple
// of 16 its records, the last one first.
struct ImageRef
{
  u64 data;
  u64 first_record; // where record 0 is; record i lies i * 16 before it
  u32 first_row;
  u32 n_records;
  u32 data_bytes;
  u32 padding;
};

// A row's key.
struct alignas(16) KeyRef
{
  u64 address;
  u32 length;
  u32 image; // the chunk that the row came in
};

// A row in key order.
struct alignas(16) RowRef
{
  u64 address;
  u32 info;        // length * 8 + GS_ENTRY_ flags
  u32 page_offset; // where it goes in its page
};

// Its key, which came in the same chunk.
struct alignas(8) KeySpan
{
  int32_t offset; // of the key from the row
  u32 length;     // and GS_KEY_INEXACT
};

// What one pass over all records finds out.
struct RowStats
{
  u64 key_bytes;
  u64 row_bytes;
  u64 page_bytes;       // of rows and entries
  u64 diff[diff_words]; // bits in which keys differ, the first byte highest;
                        // complete where no key is longer than diff_words * 8
  u32 max_page_bytes;   // of one row and its entry
  u32 min_key;
  u32 max_key;
  u32 prefix;  // bytes that all keys share, as far as was looked
  u32 invalid; // not 0: a record points outside of its chunk
};

inline u64 image_bytes(u32 data_bytes, u32 n_records)
{
  return align_up<u64>(data_bytes, 16) + static_cast<u64>(n_records) * sizeof(GsRecord);
}

// Throws where this build holds no code for the current device.
void check_device_code();

// Fills keys[0 .. n_rows) and *stats, both in device memory.
void build_keys(const ImageRef *images, u32 n_images, u32 n_rows, u32 chunk_bytes, u32 key_width,
                KeyRef *keys, RowStats *stats, cudaStream_t stream);

#ifdef __CUDACC__

__device__ __forceinline__ GsRecord load_record(const ImageRef &image, u32 i)
{
  int4 raw = __ldg(reinterpret_cast<const int4 *>(image.first_record) - i);

  return {static_cast<u32>(raw.x), static_cast<u32>(raw.y), static_cast<u32>(raw.z), static_cast<u32>(raw.w)};
}

__device__ __forceinline__ KeyRef load_key(const KeyRef *keys, u32 row)
{
  int4 raw = __ldg(reinterpret_cast<const int4 *>(keys + row));

  return {static_cast<u32>(raw.x) | static_cast<u64>(static_cast<u32>(raw.y)) << 32, static_cast<u32>(raw.z),
          static_cast<u32>(raw.w)};
}

#endif // __CUDACC__

} // namespace gpusort

#endif // GS_ROWS_CUH
