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

// The number of first words of keys whose constant bits are found.
constexpr u32 diff_words = 5;

// A chunk in device memory: its data, and behind them, at a multiple of 16, its
// records, the last one first.
struct ImageRef
{
  u64 data;
  u64 first_record; // address of record 0; record i lies i * 16 before it
  u32 first_row;
  u32 n_records;
  u32 data_bytes;
  u32 key_bytes; // room for keys that were made here, behind the records and the 16 bytes after them
};

// The key of a row.
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
  u32 page_offset; // of its first byte in its page
};

// The key of a row in key order, in the chunk that the row came in.
struct alignas(8) KeySpan
{
  int32_t offset; // of the key from the row
  u32 length;     // and GS_KEY_INEXACT
};

// Rows in key order and their keys, an array for each.
struct OrderedRows
{
  RowRef *refs;
  KeySpan *spans;

  OrderedRows from(u64 rank) const
  {
    return {refs + rank, spans + rank};
  }
};

// Statistics of all records.
struct RowStats
{
  u64 key_bytes;
  u64 row_bytes;
  u64 page_bytes;       // of all rows in pages of the sort's format
  u64 diff[diff_words]; // bits in which keys differ, the first byte highest;
                        // complete where no key is longer than diff_words * 8
  u32 max_page_bytes;   // of one row there
  u32 min_key;
  u32 max_key;
  u32 prefix;  // bytes that all keys share; keys may share more than build_keys() follows
  u32 invalid; // not 0: a record points outside of its chunk or breaks the sort's limits
};

// The chunks of a sort that have records.
struct Chunks
{
  const ImageRef *images; // in device memory
  u32 n_images;
  u32 n_rows;
  u32 chunk_bytes;
  GsPageFormat format;
};

// The order that an engine finds: the row of rank i is row[i], and tie[i] tells
// whether its key equals that of rank i - 1.
struct KeyOrder
{
  u32 *row;
  u8 *tie;
};

// The job of an engine: to find the order of n_rows rows by their keys.
struct OrderJob
{
  const KeyRef *keys;
  u32 n_rows;
  const RowStats &stats; // in host memory
  void *workspace;
  KeyOrder order;
};

// A row in a page takes front bytes, counted from the page's begin, and an entry at its
// end.  In GS_FORMAT_CHUNKS the front holds the row's key too, and the entry is a record.
__host__ __device__ constexpr u32 front_bytes(GsPageFormat format, u32 row_len, u32 key_len)
{
  return align_up<u32>(format == GS_FORMAT_CHUNKS ? row_len + key_len : row_len, 8);
}

__host__ __device__ constexpr u32 entry_bytes(GsPageFormat format)
{
  return format == GS_FORMAT_CHUNKS ? sizeof(GsRecord) : sizeof(u32);
}

// Returns the offset, from the image's data, of the memory for keys that are made here.
__host__ __device__ inline u32 made_keys_begin(const ImageRef &image)
{
  return static_cast<u32>(image.first_record - image.data + sizeof(GsRecord) + 16);
}

inline u64 image_bytes(u32 data_bytes, u32 n_records)
{
  return align_up<u64>(data_bytes, 16) + static_cast<u64>(n_records) * sizeof(GsRecord);
}

// Returns the bytes of an image with key_bytes behind its records, a multiple of 16: a counter, and the
// keys.  Keys are read in words, and the last word may end behind the last key.
inline u64 made_keys_bytes(u32 key_bytes)
{
  return key_bytes == 0 ? 0 : 16 + align_up<u64>(u64{key_bytes} + 8, 16);
}

// Throws if this build has no code for the current device.
void check_device_code();

// Makes the keys of records that have GS_KEY_MISSING, then fills keys[0 .. n_rows) and *stats, both in
// device memory.  A record whose key cannot be made, or has no room, is invalid.
void build_keys(const Chunks &chunks, const GsTupleKeys &tuple_keys, KeyRef *keys, RowStats *stats,
                cudaStream_t stream);

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

} // namespace gpusort

#endif // GS_ROWS_CUH
