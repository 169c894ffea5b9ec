/*-------------------------------------------------------------------------
 *
 * gather.cuh
 *	  From the order of the rows to pages: which rows, their layout, and copying them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GATHER_CUH
#define GS_GATHER_CUH

#include <vector>

#include "rows/rows.cuh"

namespace gpusort
{

// The pages of a sort.
struct PageTable
{
  std::vector<uint64_t> first_row; // of each page; then the number of rows
  std::vector<uint32_t> row_bytes; // of each page, without entries; in chunks with keys
};

// Writes the rows in key order, all but their page_offset.
void order_rows(const ImageRef *images, const OrderJob &job, const OrderedRows &rows, cudaStream_t stream);

// Rows in key order that are to be put into pages.
struct PageInput
{
  OrderedRows rows; // layout_pages() sets page_offset
  u32 n_rows;
  GsPageFormat format;
  u32 chunk_bytes;      // of a page
  u64 page_bytes_total; // of all rows, as in RowStats, or more
  u32 max_page_bytes;   // of one row; at most chunk_bytes
};

u64 layout_pages_workspace(u32 n_rows, u64 page_bytes_total, u32 chunk_bytes);

// Gives rows their places in pages, and fills the table.  The buffer is for the copy.  `memory` is the
// workspace.  Waits for the stream.
void layout_pages(const PageInput &input, void *memory, PinnedBuffer &buffer, PageTable *table,
                  cudaStream_t stream);

// Copies n rows into a page in device memory: rows, in chunks with their keys, from the
// front, entries or records from the end.  The bytes between them are not written.
void gather_page(const OrderedRows &rows, u32 n, GsPageFormat format, u32 chunk_bytes, void *page,
                 cudaStream_t stream);

} // namespace gpusort

#endif // GS_GATHER_CUH
