/*-------------------------------------------------------------------------
 *
 * keys.cu
 *	  Copies keys, in key order, out of the chunks that they came in.
 *
 * How many keys fit into a buffer is known only once their lengths are summed, and
 * the host does not wait for that.  So the device sums the lengths of as many keys
 * as can fit, given the shortest key of the sort.  It copies the keys whose sum
 * stays within the buffer, and the thread that copies the last of them writes their
 * number.  The host copies the whole buffer, which is full but for less than one
 * key, or zeroed after the last key of the sort.  Sums saturate, so 32 bits are
 * enough.
 *
 * Eight neighbouring lanes copy a key, 4 bytes each at a time.  Keys begin at any
 * address: a word is made from two aligned ones, of which the second is read only
 * where it has bytes of the key.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/keys.cuh"

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 lanes = 8; // that copy one key
constexpr u32 length_bytes = sizeof(u32);
constexpr u32 max_sum = UINT32_MAX;

struct SpanBytes
{
  __host__ __device__ u32 operator()(const KeySpan &span) const
  {
    return length_bytes + align_up<u32>(span.length & GS_LENGTH_MASK, 4);
  }
};

struct SaturatingSum
{
  __host__ __device__ u32 operator()(u32 a, u32 b) const
  {
    return a > max_sum - b ? max_sum : a + b;
  }
};

using SpanSizes = thrust::transform_iterator<SpanBytes, const KeySpan *>;

struct Buffer
{
  char *keys;
  u32 *ends; // where each key ends in it
  void *temp;
  size_t temp_bytes;
};

Buffer alias_buffer(TempStorage &storage, KeyRoom room)
{
  Buffer buffer = {};

  buffer.keys = storage.alias<char>(room.bytes);
  buffer.ends = storage.alias<u32>(room.max_keys);
  GS_CUDA_TRY(cub::DeviceScan::InclusiveScan(nullptr, buffer.temp_bytes, SpanSizes(nullptr, SpanBytes()),
                                             buffer.ends, SaturatingSum(), room.max_keys));
  buffer.temp = storage.alias<char>(buffer.temp_bytes);
  return buffer;
}

// The next 4 bytes of a key, of which `left` bytes, at least one, are left; zeros
// after the last one.
__device__ __forceinline__ u32 load_bytes(u64 address, u32 left)
{
  const u32 *at = reinterpret_cast<const u32 *>(address & ~u64{3});
  u32 skip = static_cast<u32>(address & 3);
  u32 low = __ldg(at);
  u32 high = skip + min(left, 4u) > 4 ? __ldg(at + 1) : 0;
  u32 word = __funnelshift_r(low, high, skip * 8);

  return left < 4 ? word & ((1u << left * 8) - 1) : word;
}

__global__ void __launch_bounds__(threads)
    copy_keys(OrderedRows rows, u32 n, u32 room_bytes, const u32 *ends, char *keys, u32 *n_keys)
{
  u32 i = static_cast<u32>((u64{blockIdx.x} * threads + threadIdx.x) / lanes);
  u32 lane = threadIdx.x % lanes;

  if (i >= n)
    return;
  if (ends[i] > room_bytes)
  {
    if (i == 0 && lane == 0)
      *n_keys = 0;
    return;
  }

  const KeySpan span = rows.spans[i];
  u32 length = span.length & GS_LENGTH_MASK;
  u64 from = rows.refs[i].address + static_cast<u64>(static_cast<int64_t>(span.offset));
  u32 *to = reinterpret_cast<u32 *>(keys + (i == 0 ? 0 : ends[i - 1]));

#pragma unroll 4
  for (u32 at = lane * 4; at < length; at += lanes * 4)
    to[1 + at / 4] = load_bytes(from + at, length - at);
  if (lane == 0)
  {
    to[0] = span.length;
    if (i + 1 == n || ends[i + 1] > room_bytes)
      *n_keys = i + 1;
  }
}

} // namespace

KeyRoom key_room(const RowStats &stats, u64 n_rows, u64 bytes)
{
  u64 total = stats.key_bytes + n_rows * (length_bytes + 3);
  u64 min_bytes = length_bytes + align_up<u64>(stats.min_key, 4);
  KeyRoom room;

  room.bytes = static_cast<u32>(std::min({bytes, total, u64{max_sum - 1}}) & ~u64{3});
  room.max_keys = static_cast<u32>(std::min(n_rows, room.bytes / min_bytes));
  return room;
}

u64 key_buffer_bytes(KeyRoom room)
{
  return align_up<u64>(storage_bytes([&](TempStorage &storage) { alias_buffer(storage, room); }), 512);
}

void gather_keys(const OrderedRows &rows, u32 n, KeyRoom room, void *memory, u32 *n_keys, cudaStream_t stream)
{
  TempStorage storage(memory);
  Buffer buffer = alias_buffer(storage, room);

  GS_CUDA_TRY(cudaMemsetAsync(buffer.keys, 0, room.bytes, stream));
  GS_CUDA_TRY(cub::DeviceScan::InclusiveScan(buffer.temp, buffer.temp_bytes,
                                             SpanSizes(rows.spans, SpanBytes()), buffer.ends, SaturatingSum(),
                                             n, stream));
  copy_keys<<<blocks_for(u64{n} * lanes, threads), threads, 0, stream>>>(rows, n, room.bytes, buffer.ends,
                                                                         buffer.keys, n_keys);
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
