/*-------------------------------------------------------------------------
 *
 * tuple_keys.cu
 *	  Makes the keys that a chunk's records lack.
 *
 * A thread takes the tuple of a record apart twice: to find the length of its key, and to
 * write it.  Between the two a block sums the lengths, and takes as many bytes of the
 * keys' memory by one addition to a counter.  So keys of a chunk lie in no particular order.
 *
 * How tuples are taken apart is device/tuple_key.h's, for both devices.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/tuple_keys.cuh"

#include <cub/block/block_scan.cuh>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;

__global__ void __launch_bounds__(threads) make(ImageRef image, GsTupleKeys keys, u32 *used)
{
  using BlockScan = cub::BlockScan<u32, threads>;

  __shared__ typename BlockScan::TempStorage temp;
  __shared__ u32 block_begin;
  u32 i = blockIdx.x * threads + threadIdx.x;
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
    block_begin = total > 0 ? atomicAdd(used, total) : 0;
  __syncthreads();
  begin += block_begin;
  if (key_len == 0 || begin + key_len > image.key_bytes)
    return;
  begin += made_keys_begin(image);
  gs_tuple_key_write(&keys, row, values, reinterpret_cast<u8 *>(image.data) + begin);
  record->key_off = begin;
  record->key_len = key_len;
}

} // namespace

void make_keys(const ImageRef &image, const GsTupleKeys &keys, cudaStream_t stream)
{
  u32 *used = reinterpret_cast<u32 *>(image.data + made_keys_begin(image)) - 4;

  GS_CUDA_TRY(cudaMemsetAsync(used, 0, sizeof(u32), stream));
  make<<<blocks_for(image.n_records, threads), threads, 0, stream>>>(image, keys, used);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
