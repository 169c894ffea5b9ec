/*-------------------------------------------------------------------------
 *
 * gather.cuh
 *	  From an order to pages: which rows go where, and copying them there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GATHER_CUH
#define GS_GATHER_CUH

#include <vector>

#include "rows/rows.cuh"

namespace gpusort
{

// Where the pages of a sort begin and how full they are.
struct PageTable
{
  std::vector<uint64_t> first_row; // of each page; then the number of rows
  std::vector<uint32_t> row_bytes; // of each page, without entries
};

u64 layout_pages_workspace(u32 n_rows, u64 page_bytes_total, u32 chunk_bytes);

// Fills rows[0 .. n_rows) but for the places in pages, and spans, in key order.
void order_rows(const ImageRef *images, const KeyRef *keys, u32 n_rows, const u32 *order, const u8 *tie,
                RowRef *rows, KeySpan *spans, cudaStream_t stream);

// Gives rows in key order their places in pages, and fills the table.  Waits
// for the stream.
void layout_pages(u32 n_rows, const RowStats &stats, u32 chunk_bytes, void *workspace, RowRef *rows,
                  PageTable *table, cudaStream_t stream);

// Copies n rows into a page in device memory: rows from the front, entries
// from the end; what lies between is left as it was.
void gather_page(const RowRef *rows, u32 n, u32 chunk_bytes, void *page, cudaStream_t stream);

} // namespace gpusort

#endif // GS_GATHER_CUH
