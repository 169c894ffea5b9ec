/*-------------------------------------------------------------------------
 *
 * rows.cu
 *	  From chunk images in device memory to one array of keys.
 *
 * One kernel reads every record once.  It checks that records stay inside of
 * their chunk, since all later kernels trust them, and gathers what the choice
 * of an engine needs: key lengths, the prefix that all keys share, and the bits
 * in which short keys differ.  Keys are compared with row 0's, whose bytes stay
 * in the first-level cache.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/rows.cuh"

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 build_threads = 256;
constexpr u32 build_blocks = 1024;

// How far the shared prefix is followed in keys longer than diff_words words.
constexpr u32 max_prefix = 1024;

template <typename T, typename Op>
__device__ __forceinline__ T warp_reduce(T value, Op op)
{
  for (u32 step = 16; step > 0; step >>= 1)
    value = op(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

struct Sum
{
  __device__ u64 operator()(u64 a, u64 b) const
  {
    return a + b;
  }
};

struct Or
{
  __device__ u64 operator()(u64 a, u64 b) const
  {
    return a | b;
  }
};

struct Min
{
  __device__ u32 operator()(u32 a, u32 b) const
  {
    return a < b ? a : b;
  }
};

struct Max
{
  __device__ u32 operator()(u32 a, u32 b) const
  {
    return a > b ? a : b;
  }
};

__device__ u32 find_image(const ImageRef *images, u32 n_images, u32 row)
{
  u32 low = 0;
  u32 high = n_images;

  while (high - low > 1)
  {
    u32 middle = low + (high - low) / 2;

    if (images[middle].first_row <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ bool record_is_valid(const GsRecord &record, const ImageRef &image, u32 chunk_bytes, u32 key_width)
{
  u64 row_len = record.row_len & GS_LENGTH_MASK;
  u64 key_len = record.key_len & GS_LENGTH_MASK;

  return record.row_off % 8 == 0 && record.row_off + row_len <= image.data_bytes &&
         row_len <= gs_max_row_bytes(chunk_bytes) && record.key_off + key_len <= image.data_bytes &&
         (key_width == 0 || key_len == key_width);
}

__global__ void init_stats(RowStats *stats)
{
  RowStats empty = {};

  empty.min_key = empty.prefix = ~0u;
  *stats = empty;
}

// Adds one thread's findings to *to, which a block shares.
__device__ void merge_stats(RowStats *to, const RowStats &from)
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

__global__ void __launch_bounds__(build_threads)
    build(const ImageRef *images, u32 n_images, u32 n_rows, u32 chunk_bytes, u32 key_width, KeyRef *keys,
          RowStats *stats)
{
  __shared__ RowStats block_stats;
  RowStats mine = {};
  const ImageRef first_image = images[0];
  const GsRecord first = load_record(first_image, 0);
  u64 first_key = first_image.data + first.key_off;
  u32 first_length = first.key_len & GS_LENGTH_MASK;

  if (!record_is_valid(first, first_image, chunk_bytes, key_width))
    first_length = 0;
  mine.min_key = mine.prefix = ~0u;
  if (threadIdx.x == 0)
    block_stats = mine;
  __syncthreads();

  for (u64 at = blockIdx.x * build_threads + threadIdx.x; at < n_rows; at += u64{gridDim.x} * build_threads)
  {
    u32 row = static_cast<u32>(at);
    u32 image_number = find_image(images, n_images, row);
    const ImageRef image = images[image_number];
    GsRecord record = load_record(image, row - image.first_row);
    u32 key_len = record.key_len & GS_LENGTH_MASK;
    u32 row_len = record.row_len & GS_LENGTH_MASK;

    if (!record_is_valid(record, image, chunk_bytes, key_width))
    {
      mine.invalid = 1;
      key_len = row_len = record.key_off = 0;
    }

    KeyRef key = {image.data + record.key_off, key_len, image_number};
    u32 page_bytes = align_up<u32>(row_len, 8) + sizeof(u32);

    keys[row] = key;
    mine.key_bytes += key_len;
    mine.row_bytes += row_len;
    mine.page_bytes += page_bytes;
    mine.max_page_bytes = max(mine.max_page_bytes, page_bytes);
    mine.min_key = min(mine.min_key, key_len);
    mine.max_key = max(mine.max_key, key_len);

    u32 common = min(min(key_len, first_length), max_prefix);
    u32 shared = common;

#pragma unroll
    for (u32 w = 0; w < diff_words; w++)
    {
      if (w * 8 < key_len && (key_len <= diff_words * 8 || w * 8 < shared))
      {
        u64 diff = load_word(key.address + w * 8, key_len - w * 8) ^
                   (w * 8 < first_length ? load_word(first_key + w * 8, first_length - w * 8) : 0);

        mine.diff[w] |= diff;
        if (diff != 0)
          shared = min(shared, w * 8 + __clzll(static_cast<long long>(diff)) / 8);
      }
    }
    shared = min(shared, mine.prefix);
    for (u32 at_byte = diff_words * 8; at_byte < shared; at_byte += 8)
    {
      u64 diff = load_word(key.address + at_byte, key_len - at_byte) ^
                 load_word(first_key + at_byte, first_length - at_byte);

      if (diff != 0)
        shared = min(shared, at_byte + __clzll(static_cast<long long>(diff)) / 8);
    }
    mine.prefix = min(mine.prefix, shared);
  }

  mine.key_bytes = warp_reduce(mine.key_bytes, Sum());
  mine.row_bytes = warp_reduce(mine.row_bytes, Sum());
  mine.page_bytes = warp_reduce(mine.page_bytes, Sum());
#pragma unroll
  for (u32 w = 0; w < diff_words; w++)
    mine.diff[w] = warp_reduce(mine.diff[w], Or());
  mine.max_page_bytes = warp_reduce(mine.max_page_bytes, Max());
  mine.min_key = warp_reduce(mine.min_key, Min());
  mine.max_key = warp_reduce(mine.max_key, Max());
  mine.prefix = warp_reduce(mine.prefix, Min());
  mine.invalid = warp_reduce(mine.invalid, Max());

  if (threadIdx.x % 32 == 0)
    merge_stats(&block_stats, mine);
  __syncthreads();
  if (threadIdx.x == 0)
    merge_stats(stats, block_stats);
}

} // namespace

void check_device_code()
{
  cudaFuncAttributes attributes;

  GS_CUDA_TRY(cudaFuncGetAttributes(&attributes, build));
}

void build_keys(const ImageRef *images, u32 n_images, u32 n_rows, u32 chunk_bytes, u32 key_width,
                KeyRef *keys, RowStats *stats, cudaStream_t stream)
{
  init_stats<<<1, 1, 0, stream>>>(stats);
  GS_CUDA_LAUNCHED();
  build<<<std::min(blocks_for(n_rows, build_threads), build_blocks), build_threads, 0, stream>>>(
      images, n_images, n_rows, chunk_bytes, key_width, keys, stats);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
