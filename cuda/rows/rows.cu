/*-------------------------------------------------------------------------
 *
 * rows.cu
 *	  From chunk images in device memory to one array of keys.
 *
 * First the missing keys of all chunks are made at once.  Chunk by chunk would cost each of them some calls
 * of the driver, on the thread that serves all chunks.  A thread takes the tuple of a record apart twice:
 * to find the length of its key, and to write it.  Between the two a block sums the lengths, and takes as
 * many bytes of the keys' memory by one addition to a counter.  So keys of a chunk are in no particular
 * order.  device/tuple_key.h takes tuples apart, for both devices.
 *
 * Then one kernel reads every record once.  It checks that records stay inside of
 * their chunk, since all later kernels trust them, and collects the statistics that
 * the choice of an engine needs: key lengths, the prefix that all keys share, and
 * the bits in which short keys differ.  Keys are compared with the key of row 0,
 * whose bytes stay in the first-level cache.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/rows.cuh"

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/thread/thread_search.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 make_threads = 256;
constexpr u32 make_parts = 8;
constexpr u32 build_threads = 256;
constexpr u32 build_blocks = 1024;
constexpr u32 build_min_blocks = 4; // of a multiprocessor, in 64 registers a thread

// The longest shared prefix that is followed.
constexpr u32 max_prefix = 1024;

// The bytes used of an image's memory for keys.
__device__ u32 *made_bytes(const ImageRef &image)
{
  return reinterpret_cast<u32 *>(image.data + made_keys_begin(image)) - 4;
}

// make_parts blocks to an image.
__global__ void __launch_bounds__(make_threads) make(Chunks chunks, GsTupleKeys keys)
{
  using BlockScan = cub::BlockScan<u32, make_threads>;

  __shared__ typename BlockScan::TempStorage temp;
  __shared__ u32 block_begin;
  const ImageRef image = chunks.images[blockIdx.x / make_parts];

  if (image.key_bytes == 0)
    return;
  for (u32 first = blockIdx.x % make_parts * make_threads; first < image.n_records;
       first += make_parts * make_threads)
  {
    u32 i = first + threadIdx.x;
    GsRecord *record = reinterpret_cast<GsRecord *>(image.first_record) - i;
    const u8 *row = nullptr;
    GsTupleValue values[GS_TUPLE_COLUMNS];
    u32 key_len = 0;

    if (i < image.n_records && record->key_len == GS_KEY_MISSING)
    {
      u32 row_len = record->row_len & GS_LENGTH_MASK;

      row = reinterpret_cast<const u8 *>(image.data) + record->row_off;
      if (u64{record->row_off} + row_len <= image.data_bytes)
        key_len = gs_tuple_key_find(&keys, row, row_len, values);
    }

    u32 begin;
    u32 total;

    BlockScan(temp).ExclusiveSum(key_len, begin, total);
    if (threadIdx.x == 0)
      block_begin = total > 0 ? atomicAdd(made_bytes(image), total) : 0;
    __syncthreads();
    begin += block_begin;
    if (key_len > 0 && begin + key_len <= image.key_bytes)
    {
      begin += made_keys_begin(image);
      (void)gs_tuple_key_write(&keys, row, values, nullptr, reinterpret_cast<u8 *>(image.data) + begin,
                               key_len);
      record->key_off = begin;
      record->key_len = key_len;
    }
    __syncthreads();
  }
}

// Is the record inside of its chunk, and within the limits of the sort?
__device__ bool record_is_valid(const GsRecord &record, const ImageRef &image, const Chunks &chunks)
{
  u64 row_len = record.row_len & GS_LENGTH_MASK;
  u64 key_len = record.key_len & GS_LENGTH_MASK;
  u64 key_end = image.key_bytes == 0 ? image.data_bytes : u64{made_keys_begin(image)} + image.key_bytes;

  return record.row_off % 8 == 0 && record.row_off + row_len <= image.data_bytes &&
         row_len <= gs_max_row_bytes(chunks.chunk_bytes) && record.key_off + key_len <= key_end;
}

// The statistics of no rows.
__device__ RowStats no_rows()
{
  RowStats stats = {};

  stats.min_key = stats.prefix = ~0u;
  return stats;
}

// The statistics of two sets of rows together.
struct MergeStats
{
  __device__ RowStats operator()(const RowStats &a, const RowStats &b) const
  {
    RowStats both;

    both.key_bytes = a.key_bytes + b.key_bytes;
    both.row_bytes = a.row_bytes + b.row_bytes;
    both.page_bytes = a.page_bytes + b.page_bytes;
#pragma unroll
    for (u32 w = 0; w < diff_words; w++)
      both.diff[w] = a.diff[w] | b.diff[w];
    both.max_page_bytes = max(a.max_page_bytes, b.max_page_bytes);
    both.min_key = min(a.min_key, b.min_key);
    both.max_key = max(a.max_key, b.max_key);
    both.prefix = min(a.prefix, b.prefix);
    both.invalid = a.invalid | b.invalid;
    return both;
  }
};

// Adds the statistics of a block's rows to those of all rows.
__device__ void add_stats(const RowStats &from, RowStats *to)
{
  atomicAdd(&to->key_bytes, from.key_bytes);
  atomicAdd(&to->row_bytes, from.row_bytes);
  atomicAdd(&to->page_bytes, from.page_bytes);
  for (u32 w = 0; w < diff_words; w++)
    atomicOr(&to->diff[w], from.diff[w]);
  atomicMax(&to->max_page_bytes, from.max_page_bytes);
  atomicMin(&to->min_key, from.min_key);
  atomicMax(&to->max_key, from.max_key);
  atomicMin(&to->prefix, from.prefix);
  atomicOr(&to->invalid, from.invalid);
}

// No statistics, and no keys made.
__global__ void init(Chunks chunks, RowStats *stats)
{
  u32 i = blockIdx.x * build_threads + threadIdx.x;

  if (i == 0)
    *stats = no_rows();
  if (i < chunks.n_images && chunks.images[i].key_bytes > 0)
    *made_bytes(chunks.images[i]) = 0;
}

// A key without the other field of a KeyRef.
struct KeyBytes
{
  u64 address;
  u32 length;

  // The word at a byte of the key.
  __device__ __forceinline__ u64 word_at(u32 byte) const
  {
    return load_word(address + byte, length - byte);
  }
};

// Compares a key with row 0's: adds to the bits in which keys differ, and
// shortens the prefix that all keys share.
__device__ __forceinline__ void compare_key(const KeyBytes &key, const KeyBytes &first, RowStats *stats)
{
  u32 shared = min(min(key.length, first.length), max_prefix);

#pragma unroll
  for (u32 w = 0; w < diff_words; w++)
  {
    // Keys that are longer than all diff words need their shared prefix only.
    if (w * 8 < key.length && (key.length <= diff_words * 8 || w * 8 < shared))
    {
      u64 diff = key.word_at(w * 8) ^ (w * 8 < first.length ? first.word_at(w * 8) : 0);

      stats->diff[w] |= diff;
      if (diff != 0)
        shared = min(shared, w * 8 + equal_bytes(diff));
    }
  }
  shared = min(shared, stats->prefix);
  for (u32 byte = diff_words * 8; byte < shared; byte += 8)
  {
    u64 diff = key.word_at(byte) ^ first.word_at(byte);

    if (diff != 0)
      shared = min(shared, byte + equal_bytes(diff));
  }
  stats->prefix = min(stats->prefix, shared);
}

struct FirstRow
{
  __host__ __device__ u32 operator()(const ImageRef &image) const
  {
    return image.first_row;
  }
};

// Makes the key of a row and adds the row to the statistics.
__device__ __forceinline__ KeyRef build_key(const Chunks &chunks, u32 row, RowStats *stats)
{
  auto first_rows = thrust::make_transform_iterator(chunks.images, FirstRow());
  u32 image_number = cub::UpperBound(first_rows, chunks.n_images, row) - 1;
  const ImageRef image = chunks.images[image_number];
  GsRecord record = load_record(image, row - image.first_row);
  u32 key_len = record.key_len & GS_LENGTH_MASK;
  u32 row_len = record.row_len & GS_LENGTH_MASK;

  if (!record_is_valid(record, image, chunks))
  {
    stats->invalid = 1;
    key_len = row_len = record.key_off = 0;
  }

  u32 page_bytes = front_bytes(chunks.format, row_len, key_len) + entry_bytes(chunks.format);

  stats->key_bytes += key_len;
  stats->row_bytes += row_len;
  stats->page_bytes += page_bytes;
  stats->max_page_bytes = max(stats->max_page_bytes, page_bytes);
  stats->min_key = min(stats->min_key, key_len);
  stats->max_key = max(stats->max_key, key_len);
  return {image.data + record.key_off, key_len, image_number};
}

__global__ void __launch_bounds__(build_threads, build_min_blocks)
    build(Chunks chunks, KeyRef *keys, RowStats *stats)
{
  using BlockReduce = cub::BlockReduce<RowStats, build_threads>;

  __shared__ typename BlockReduce::TempStorage temp;
  const ImageRef first_image = chunks.images[0];
  const GsRecord first_record = load_record(first_image, 0);
  KeyBytes first_key = {first_image.data + first_record.key_off, first_record.key_len & GS_LENGTH_MASK};
  RowStats thread_stats = no_rows();

  if (!record_is_valid(first_record, first_image, chunks))
    first_key.length = 0;
  for (u64 i = blockIdx.x * build_threads + threadIdx.x; i < chunks.n_rows;
       i += u64{gridDim.x} * build_threads)
  {
    u32 row = static_cast<u32>(i);
    KeyRef key = build_key(chunks, row, &thread_stats);

    keys[row] = key;
    compare_key({key.address, key.length}, first_key, &thread_stats);
  }

  RowStats block_stats = BlockReduce(temp).Reduce(thread_stats, MergeStats());

  if (threadIdx.x == 0)
    add_stats(block_stats, stats);
}

} // namespace

void check_device_code()
{
  cudaFuncAttributes attributes;
  cudaError_t code = cudaFuncGetAttributes(&attributes, build);

  (void)cudaGetLastError();
  switch (code)
  {
  case cudaErrorNoKernelImageForDevice:
    fail(GS_NO_DEVICE, "this build of gpusort has no code for the GPU: %s", cudaGetErrorString(code));
  case cudaErrorUnsupportedPtxVersion:
  case cudaErrorJitCompilerNotFound:
  case cudaErrorJitCompilationDisabled:
    fail(GS_NO_DEVICE, "the driver cannot translate gpusort's code for the GPU: %s",
         cudaGetErrorString(code));
  default:
    GS_CUDA_TRY(code);
  }
}

void build_keys(const Chunks &chunks, const GsTupleKeys &tuple_keys, KeyRef *keys, RowStats *stats,
                cudaStream_t stream)
{
  init<<<blocks_for(chunks.n_images, build_threads), build_threads, 0, stream>>>(chunks, stats);
  GS_CUDA_LAUNCHED();
  if (tuple_keys.n_columns > 0)
  {
    make<<<chunks.n_images * make_parts, make_threads, 0, stream>>>(chunks, tuple_keys);
    GS_CUDA_LAUNCHED();
  }
  build<<<std::min(blocks_for(chunks.n_rows, build_threads), build_blocks), build_threads, 0, stream>>>(
      chunks, keys, stats);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
