/*-------------------------------------------------------------------------
 *
 * gather.cu
 *	  From the order of the rows to pages: which rows, their layout, and copying them.
 *
 * Layout
 *	  A row takes its length, rounded up to 8, and 4 bytes of entry; in a chunk its
 *	  length and its key's, rounded up to 8, and a record.  P is the prefix
 *	  sum of these sizes.  To fill each page as far as possible, one has to know
 *	  where the page before it ends: fill_pages() is one warp that goes from page to
 *	  page.  Where the largest row takes at most a sixteenth of a page, find_pages()
 *	  finds all pages at once: every page gets the same quota, chunk_bytes less
 *	  the largest row, and row i belongs to page P[i] / quota.  A page then holds the
 *	  rows that begin within its quota, and even a largest row that begins at the
 *	  quota's end fits.  Either way every page but the last is full to seven eighths
 *	  or more, unless, in chunks, the next row is larger than what is left.  Since what
 *	  is left and that row are more than a page, max_pages() counts half a page for each.
 *
 * Gather
 *	  Rows in key order are scattered in device memory, but begin at multiples of 8,
 *	  in their chunk as in their page.  Eight neighbouring lanes copy a row, 8 bytes
 *	  each at a time.  They zero the bytes after a row's end: a page must not show
 *	  other contents of device memory.  In a chunk the key follows its row without a
 *	  gap, and comes from any address: each 8 bytes of it are put together from two
 *	  aligned words, and one word has the end of the row and the begin of the key.
 *
 *-------------------------------------------------------------------------
 */
#include "rows/gather.cuh"

#include <cub/device/device_scan.cuh>
#include <cub/thread/thread_search.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

namespace gpusort
{

namespace
{

constexpr u32 threads = 256;
constexpr u32 lanes = 8; // that copy one row

// The rows as a layout sees them.
struct RowShapes
{
  OrderedRows rows;
  GsPageFormat format;

  __host__ __device__ u32 front_bytes_at(u64 rank) const
  {
    u32 key_len = format == GS_FORMAT_CHUNKS ? rows.spans[rank].length & GS_LENGTH_MASK : 0;

    return front_bytes(format, rows.refs[rank].info >> 3, key_len);
  }
  // The size of a row, for the prefix sum.
  __host__ __device__ u64 operator()(u32 rank) const
  {
    return u64{front_bytes_at(rank)} + entry_bytes(format);
  }
};

using RowSizes = thrust::transform_iterator<RowShapes, thrust::counting_iterator<u32>>;

RowSizes row_sizes(const RowShapes &shapes)
{
  return RowSizes(thrust::counting_iterator<u32>(0), shapes);
}

struct Workspace
{
  u64 *begin;     // of each row: P of the head of this file
  u64 *first_row; // of each page
  u32 *row_bytes; // of each page
  void *temp;
  size_t temp_bytes;
};

u64 max_pages(u64 page_bytes_total, u32 chunk_bytes)
{
  return page_bytes_total / (chunk_bytes / 2) + 1;
}

Workspace alias_workspace(TempStorage &storage, u32 n_rows, u64 n_pages)
{
  Workspace workspace = {};

  workspace.begin = storage.alias<u64>(n_rows);
  workspace.first_row = storage.alias<u64>(n_pages + 1);
  workspace.row_bytes = storage.alias<u32>(n_pages);
  GS_CUDA_TRY(
      cub::DeviceScan::ExclusiveSum(nullptr, workspace.temp_bytes, row_sizes({}), workspace.begin, n_rows));
  workspace.temp = storage.alias<char>(workspace.temp_bytes);
  return workspace;
}

__global__ void __launch_bounds__(threads) write_ordered_rows(const ImageRef *images, const KeyRef *keys,
                                                              u32 n_rows, KeyOrder order, OrderedRows rows)
{
  u64 rank = u64{blockIdx.x} * threads + threadIdx.x;

  if (rank >= n_rows)
    return;

  u32 row = order.row[rank];
  const ImageRef image = images[load_key(keys, row).image];
  GsRecord record = load_record(image, row - image.first_row);
  u32 info = (record.row_len & GS_LENGTH_MASK) << 3;

  info |= order.tie[rank] ? GS_ENTRY_TIE : 0;
  info |= record.key_len & GS_KEY_INEXACT ? GS_ENTRY_INEXACT : 0;
  info |= record.row_len & GS_ROW_EXTERNAL ? GS_ENTRY_EXTERNAL : 0;
  rows.refs[rank] = {image.data + record.row_off, info, 0};
  rows.spans[rank] = {static_cast<int32_t>(record.key_off - record.row_off), record.key_len};
}

// Finds all pages by their quota.
__global__ void __launch_bounds__(threads)
    find_pages(const u64 *begin, u32 n_rows, u32 quota, u64 n_pages, u64 *first_row)
{
  u64 page = u64{blockIdx.x} * threads + threadIdx.x;

  if (page <= n_pages)
    first_row[page] = cub::LowerBound(begin, u64{n_rows}, page * quota);
}

// Finds the pages one after the other, by one warp, each as full as possible.
__global__ void fill_pages(const u64 *begin, u32 n_rows, RowShapes shapes, u32 chunk_bytes, u64 n_pages,
                           u64 *first_row)
{
  u32 lane = threadIdx.x;
  u64 total = begin[n_rows - 1] + shapes(n_rows - 1);
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
    u64 high = min(u64{n_rows}, first + chunk_bytes / entry_bytes(shapes.format)) + 1;

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

__global__ void __launch_bounds__(threads) place_rows(const u64 *begin, const u64 *first_row, u64 n_pages,
                                                      u32 n_rows, RowShapes shapes, u32 *row_bytes)
{
  u64 i = u64{blockIdx.x} * threads + threadIdx.x;

  if (i >= n_rows)
    return;

  u64 page = cub::UpperBound(first_row, n_pages, i) - 1;
  u64 first = first_row[page];
  u32 offset = static_cast<u32>(begin[i] - begin[first] - (i - first) * entry_bytes(shapes.format));

  shapes.rows.refs[i].page_offset = offset;
  if (i + 1 == first_row[page + 1])
    row_bytes[page] = offset + shapes.front_bytes_at(i);
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

// Returns the next 8 bytes of a key with `left` bytes left: the first byte lowest, zeros after the last
// one.
__device__ __forceinline__ u64 load_key_bytes(u64 address, u32 left)
{
  return swap_bytes(load_word(address, left));
}

__global__ void __launch_bounds__(threads) copy_records(OrderedRows rows, u32 n, u32 chunk_bytes, char *chunk)
{
  u32 i = (blockIdx.x * threads + threadIdx.x) / lanes;
  u32 lane = threadIdx.x % lanes;

  if (i >= n)
    return;

  const RowRef row = rows.refs[i];
  const KeySpan span = rows.spans[i];
  u32 row_len = row.info >> 3;
  u32 len = row_len + (span.length & GS_LENGTH_MASK);
  u32 row_words = row_len / 8; // without bytes of the key
  u64 key = row.address + static_cast<u64>(static_cast<int64_t>(span.offset));
  const u64 *from = reinterpret_cast<const u64 *>(row.address);
  u64 *to = reinterpret_cast<u64 *>(chunk + row.page_offset);

#pragma unroll 4
  for (u32 w = lane; w < row_words; w += lanes)
    to[w] = __ldg(from + w);
#pragma unroll 4
  for (u32 w = row_words + lane; w * 8 < len; w += lanes)
  {
    u32 at = w * 8;

    if (at < row_len)
    {
      u32 bits = row_len % 8 * 8; // of the row

      to[w] = (__ldg(from + w) & ((u64{1} << bits) - 1)) | load_key_bytes(key, len - row_len) << bits;
    }
    else
      to[w] = load_key_bytes(key + (at - row_len), len - at);
  }
  if (lane == 0)
    reinterpret_cast<uint4 *>(chunk + chunk_bytes)[-static_cast<int64_t>(i) - 1] =
        make_uint4(row.page_offset, row_len | (row.info & GS_ENTRY_EXTERNAL ? GS_ROW_EXTERNAL : 0),
                   row.page_offset + row_len, span.length);
}

} // namespace

u64 layout_pages_workspace(u32 n_rows, u64 page_bytes_total, u32 chunk_bytes)
{
  return storage_bytes([&](TempStorage &storage)
                       { alias_workspace(storage, n_rows, max_pages(page_bytes_total, chunk_bytes)); });
}

void order_rows(const ImageRef *images, const OrderJob &job, const OrderedRows &rows, cudaStream_t stream)
{
  write_ordered_rows<<<blocks_for(job.n_rows, threads), threads, 0, stream>>>(images, job.keys, job.n_rows,
                                                                              job.order, rows);
  GS_CUDA_LAUNCHED();
}

void layout_pages(const PageInput &input, void *memory, PinnedBuffer &buffer, PageTable *table,
                  cudaStream_t stream)
{
  u64 n_pages = max_pages(input.page_bytes_total, input.chunk_bytes);
  TempStorage storage(memory);
  Workspace workspace = alias_workspace(storage, input.n_rows, n_pages);
  const RowShapes shapes = {input.rows, input.format};

  GS_CUDA_TRY(cub::DeviceScan::ExclusiveSum(workspace.temp, workspace.temp_bytes, row_sizes(shapes),
                                            workspace.begin, input.n_rows, stream));
  if (input.max_page_bytes <= input.chunk_bytes / 16)
    find_pages<<<blocks_for(n_pages + 1, threads), threads, 0, stream>>>(
        workspace.begin, input.n_rows, input.chunk_bytes - input.max_page_bytes, n_pages,
        workspace.first_row);
  else
    fill_pages<<<1, 32, 0, stream>>>(workspace.begin, input.n_rows, shapes, input.chunk_bytes, n_pages,
                                     workspace.first_row);
  GS_CUDA_LAUNCHED();
  place_rows<<<blocks_for(input.n_rows, threads), threads, 0, stream>>>(
      workspace.begin, workspace.first_row, n_pages, input.n_rows, shapes, workspace.row_bytes);
  GS_CUDA_LAUNCHED();

  u64 first_row_bytes = (n_pages + 1) * sizeof(u64);
  char *table_memory = buffer.get(first_row_bytes + n_pages * sizeof(u32));
  u64 *first_row = reinterpret_cast<u64 *>(table_memory);
  u32 *row_bytes = reinterpret_cast<u32 *>(table_memory + first_row_bytes);

  GS_CUDA_TRY(
      cudaMemcpyAsync(first_row, workspace.first_row, first_row_bytes, cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(
      cudaMemcpyAsync(row_bytes, workspace.row_bytes, n_pages * sizeof(u32), cudaMemcpyDeviceToHost, stream));
  GS_CUDA_TRY(cudaStreamSynchronize(stream));

  // n_pages was an upper bound.  The pages beyond the last one begin at n_rows.
  n_pages = static_cast<u64>(std::lower_bound(first_row, first_row + n_pages + 1, input.n_rows) - first_row);
  table->first_row.assign(first_row, first_row + n_pages + 1);
  table->row_bytes.assign(row_bytes, row_bytes + n_pages);
}

void gather_page(const OrderedRows &rows, u32 n, GsPageFormat format, u32 chunk_bytes, void *page,
                 cudaStream_t stream)
{
  u32 blocks = blocks_for(u64{n} * lanes, threads);

  if (format == GS_FORMAT_CHUNKS)
    copy_records<<<blocks, threads, 0, stream>>>(rows, n, chunk_bytes, static_cast<char *>(page));
  else
    copy_rows<<<blocks, threads, 0, stream>>>(rows.refs, n, chunk_bytes, static_cast<char *>(page));
  GS_CUDA_LAUNCHED();
}

} // namespace gpusort
