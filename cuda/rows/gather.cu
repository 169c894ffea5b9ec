/*-------------------------------------------------------------------------
 *
 * gather.cu
 *	  From an order to pages: which rows go where, and copying them there.
 *
 * Layout
 *	  A row takes its length, rounded up to 8, and 4 bytes of entry; P are the
 *	  prefix sums over what rows take.  Filling each page to the brim makes each
 *	  page wait for the one before it: that is fill_pages, one warp that goes
 *	  from page to page.  With rows that are small against a page, at most a
 *	  sixteenth, all pages are found at once instead: every page gets the same quota,
 *	  chunk_bytes less the largest row, and row i belongs to page P[i] / quota.
 *	  A page then holds what begins within its quota, which fits even if a
 *	  largest row begins at its end.  Either way no page but the last is filled to
 *	  less than seven eighths.
 *
 * Gather
 *	  Rows in key order lie anywhere in device memory but begin at multiples of
 *	  8, in their chunk as in their page.  Eight neighbouring lanes copy a row,
 *	  8 bytes each at a time.  Bytes after a row's end are zeroed: pages tell
 *	  nothing of what else lies in the memory they pass through.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/gather.cuh"

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 lanes = 8; // that copy one row
constexpr u32 entry_bytes = sizeof(u32);

struct RowBytes
{
  __host__ __device__ u64 operator()(const RowRef &row) const
  {
    return align_up<u32>(row.info >> 3, 8) + entry_bytes;
  }
};

using RowSizes = thrust::transform_iterator<RowBytes, const RowRef *>;

struct Workspace
{
  u64 *begin;     // P of the head of this file
  u64 *first_row; // of pages
  u32 *row_bytes; // of pages
  void *temp;
  size_t temp_bytes;
};

u64 max_pages(u64 page_bytes_total, u32 chunk_bytes)
{
  return page_bytes_total / (chunk_bytes - chunk_bytes / 8) + 1;
}

Workspace alias_workspace(TempStorage &storage, u32 n_rows, u64 n_pages)
{
  Workspace space = {};

  space.begin = storage.alias<u64>(n_rows);
  space.first_row = storage.alias<u64>(n_pages + 1);
  space.row_bytes = storage.alias<u32>(n_pages);
  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(nullptr, space.temp_bytes, RowSizes(nullptr, RowBytes()),
                                            space.begin, n_rows));
  space.temp = storage.alias<char>(space.temp_bytes);
  return space;
}

__global__ void __launch_bounds__(threads)
    read_rows(const ImageRef *images, const KeyRef *keys, u32 n_rows, const u32 *order, const u8 *tie,
              RowRef *rows, KeySpan *spans)
{
  u64 rank = u64{blockIdx.x} * threads + threadIdx.x;

  if (rank >= n_rows)
    return;

  u32 row = order[rank];
  const ImageRef image = images[load_key(keys, row).image];
  GsRecord record = load_record(image, row - image.first_row);
  u32 info = (record.row_len & GS_LENGTH_MASK) << 3;

  info |= tie[rank] ? GS_ENTRY_TIE : 0;
  info |= record.key_len & GS_KEY_INEXACT ? GS_ENTRY_INEXACT : 0;
  info |= record.row_len & GS_ROW_EXTERNAL ? GS_ENTRY_EXTERNAL : 0;
  rows[rank] = {image.data + record.row_off, info, 0};
  spans[rank] = {static_cast<int32_t>(record.key_off - record.row_off), record.key_len};
}

__global__ void __launch_bounds__(threads)
    find_pages(const u64 *begin, u32 n_rows, u32 quota, u64 n_pages, u64 *first_row)
{
  u64 page = u64{blockIdx.x} * threads + threadIdx.x;

  if (page > n_pages)
    return;

  u64 low = 0;
  u64 high = n_rows;

  while (low < high)
  {
    u64 middle = low + (high - low) / 2;

    if (begin[middle] < page * quota)
      low = middle + 1;
    else
      high = middle;
  }
  first_row[page] = low;
}

// The same where rows can be large: by one warp, each page as full as can be.
__global__ void fill_pages(const u64 *begin, u32 n_rows, u64 total, u32 chunk_bytes, u64 n_pages,
                           u64 *first_row)
{
  u32 lane = threadIdx.x;
  u64 first = 0;

  for (u64 page = 0; page <= n_pages; page++)
  {
    if (lane == 0)
      first_row[page] = first;
    if (first == n_rows)
      continue;

    // Rows first .. low - 1 fit, rows first .. high - 1 do not.
    u64 limit = begin[first] + chunk_bytes;
    u64 low = first + 1;
    u64 high = min(u64{n_rows}, first + chunk_bytes / entry_bytes) + 1;

    while (high - low > 1)
    {
      u64 step = (high - low + 32) / 33;
      u64 probe = low + step * (lane + 1);
      bool fits = probe < high && (probe == n_rows ? total : begin[probe]) <= limit;
      u32 n_fit = __popc(__ballot_sync(~0u, fits));

      high = min(high, low + step * (n_fit + 1));
      low += step * n_fit;
    }
    first = low;
  }
}

__global__ void __launch_bounds__(threads)
    place_rows(const u64 *begin, const u64 *first_row, u64 n_pages, u32 n_rows, RowRef *rows, u32 *row_bytes)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  u64 page = 0;
  u64 after = n_pages;

  while (after - page > 1)
  {
    u64 middle = page + (after - page) / 2;

    if (first_row[middle] <= i)
      page = middle;
    else
      after = middle;
  }

  u64 first = first_row[page];
  u32 offset = static_cast<u32>(begin[i] - begin[first] - (i - first) * entry_bytes);

  rows[i].page_offset = offset;
  if (i + 1 == first_row[page + 1])
    row_bytes[page] = offset + align_up<u32>(rows[i].info >> 3, 8);
}

__global__ void __launch_bounds__(threads) copy_rows(const RowRef *rows, u32 n, u32 chunk_bytes, char *page)
{
  u32 i = (blockIdx.x * threads + threadIdx.x) / lanes;
  u32 lane = threadIdx.x % lanes;

  if (i >= n)
    return;

  const RowRef row = rows[i];
  u32 length = row.info >> 3;
  u32 whole = length / 8;
  const u64 *from = reinterpret_cast<const u64 *>(row.address);
  u64 *to = reinterpret_cast<u64 *>(page + row.page_offset);

#pragma unroll 4
  for (u32 w = lane; w < whole; w += lanes)
    to[w] = __ldg(from + w);
  if (length % 8 != 0 && lane == whole % lanes)
    to[whole] = __ldg(from + whole) & ((u64{1} << length % 8 * 8) - 1);
  if (lane == 0)
    reinterpret_cast<u32 *>(page + chunk_bytes)[-static_cast<int64_t>(i) - 1] =
        row.page_offset | (row.info & GS_ENTRY_FLAGS);
}

} // namespace

u64 layout_pages_workspace(u32 n_rows, u64 page_bytes_total, u32 chunk_bytes)
{
  TempStorage storage;

  alias_workspace(storage, n_rows, max_pages(page_bytes_total, chunk_bytes));
  return storage.bytes();
}

void order_rows(const ImageRef *images, const KeyRef *keys, u32 n_rows, const u32 *order, const u8 *tie,
                RowRef *rows, KeySpan *spans, cudaStream_t stream)
{
  read_rows<<<blocks_for(n_rows, threads), threads, 0, stream>>>(images, keys, n_rows, order, tie, rows,
                                                                 spans);
  GS_CUDA_LAUNCHED();
}

void layout_pages(u32 n_rows, const RowStats &stats, u32 chunk_bytes, void *workspace, RowRef *rows,
                  PageTable *table, cudaStream_t stream)
{
  u64 n_pages = max_pages(stats.page_bytes, chunk_bytes);
  TempStorage storage(workspace);
  Workspace space = alias_workspace(storage, n_rows, n_pages);
  u32 blocks = blocks_for(n_rows, threads);

  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(space.temp, space.temp_bytes, RowSizes(rows, RowBytes()),
                                            space.begin, n_rows, stream));
  if (stats.max_page_bytes <= chunk_bytes / 16)
    find_pages<<<blocks_for(n_pages + 1, threads), threads, 0, stream>>>(
        space.begin, n_rows, chunk_bytes - stats.max_page_bytes, n_pages, space.first_row);
  else
    fill_pages<<<1, 32, 0, stream>>>(space.begin, n_rows, stats.page_bytes, chunk_bytes, n_pages,
                                     space.first_row);
  GS_CUDA_LAUNCHED();
  place_rows<<<blocks, threads, 0, stream>>>(space.begin, space.first_row, n_pages, n_rows, rows,
                                             space.row_bytes);
  GS_CUDA_LAUNCHED();

  table->first_row.resize(n_pages + 1);
  table->row_bytes.resize(n_pages);
  GS_CUDA_TRY(cudaMemcpyAsync(table->first_row.data(), space.first_row, (n_pages + 1) * sizeof(u64),
                              cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaMemcpyAsync(table->row_bytes.data(), space.row_bytes, n_pages * sizeof(u32),
                              cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));

  // The number of pages was an upper bound; what is too many begins at the end.
  n_pages = static_cast<u64>(std::lower_bound(table->first_row.begin(), table->first_row.end(), n_rows) -
                             table->first_row.begin());
  table->first_row.resize(n_pages + 1);
  table->row_bytes.resize(n_pages);
}

void gather_page(const RowRef *rows, u32 n, u32 chunk_bytes, void *page, cudaStream_t stream)
{
  copy_rows<<<blocks_for(u64{n} * lanes, threads), threads, 0, stream>>>(rows, n, chunk_bytes,
                                                                         static_cast<char *>(page));
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
