/*-------------------------------------------------------------------------
 *
 * host_pages.c
 *	  Rows in their order: cutting it into pages, and reading rows.
 *
 * Pages
 *	  The bytes that rows take in pages are summed for each GS_HOST_SUM_ROWS rows.  One thread cuts the
 *	  order into pages.  By the sums, it looks at few single rows: those around the end of each page.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "host/host_pages.h"

/* Rows that are prefetched. */
#define PREFETCH_ROWS 16

/* Returns room for the page table of these rows, in any order; NULL: no memory. */
static uint64_t *
allocate_pages(const GsHostOrder *order, uint32_t chunk_bytes)
{
	uint64_t	bytes = 0;

	/* The rows of two neighbouring pages do not fit into one, so a page is at least half full on average. */
	for (uint64_t i = 0; i * GS_HOST_SUM_ROWS < order->n_rows; i++)
		bytes += order->sums[i];
	return malloc((bytes / (chunk_bytes / 2) + 2) * sizeof(uint64_t));
}

bool
gs_host_cut_pages(GsHostOrder *order, uint32_t chunk_bytes)
{
	uint64_t   *page_first = allocate_pages(order, chunk_bytes);
	uint64_t	n_pages = 0;
	uint64_t	row = 0;

	if (page_first == NULL)
		return false;
	while (row < order->n_rows)
	{
		uint64_t	used = 0;

		page_first[n_pages++] = row;
		while (row < order->n_rows)
		{
			bool		whole = row % GS_HOST_SUM_ROWS == 0;
			uint64_t	bytes = whole ? order->sums[row / GS_HOST_SUM_ROWS]
				: gs_host_page_bytes(order->format, &order->rows[row]);

			if (used + bytes > chunk_bytes)
			{
				if (!whole)
					break;
				whole = false;
				bytes = gs_host_page_bytes(order->format, &order->rows[row]);
				if (used + bytes > chunk_bytes)
					break;
			}
			used += bytes;
			row += whole ? GS_HOST_SUM_ROWS : 1;
		}
	}
	page_first[n_pages] = order->n_rows;
	order->page_first = page_first;
	order->n_pages = n_pages;
	return true;
}

void
gs_host_order_free(GsHostOrder *order)
{
	free(order->rows);
	free(order->sums);
	free(order->page_first);
	memset(order, 0, sizeof(*order));
}

/* ---- reading ---- */

static inline void
prefetch_row(const GsHostRow *row)
{
	__builtin_prefetch(row->row);
	__builtin_prefetch(row->row + 64);
}

static void
gather_rows(const GsHostRow *rows, size_t n, uint32_t chunk_bytes, void *dst)
{
	uint32_t   *entry = (uint32_t *) ((char *) dst + chunk_bytes);
	uint32_t	offset = 0;

	for (size_t i = 0; i < n; i++)
	{
		uint32_t	bytes = (rows[i].len + 7) & ~7u;

		if (i + PREFETCH_ROWS < n)
			prefetch_row(&rows[i + PREFETCH_ROWS]);
		memcpy((char *) dst + offset, rows[i].row, bytes);
		*--entry = offset | rows[i].flags;
		offset += bytes;
	}
}

static void
gather_records(const GsHostRow *rows, size_t n, uint32_t chunk_bytes, void *dst)
{
	GsRecord   *record = gs_chunk_record(dst, chunk_bytes, 0);
	char	   *out = dst;

	for (size_t i = 0; i < n; i++, record--)
	{
		const GsHostRow *row = &rows[i];
		uint32_t	key_len = row->key_len & GS_LENGTH_MASK;
		uint32_t	len = row->len + key_len;
		uint32_t	bytes = (len + 7) & ~7u;

		if (i + PREFETCH_ROWS < n)
			prefetch_row(row + PREFETCH_ROWS);
		memcpy(out, row->row, row->len);
		memcpy(out + row->len, row->row + row->key_off, key_len);
		memset(out + len, 0, bytes - len);
		record->row_off = (uint32_t) (out - (char *) dst);
		record->row_len = row->len | (row->flags & GS_ENTRY_EXTERNAL ? GS_ROW_EXTERNAL : 0);
		record->key_off = record->row_off + row->len;
		record->key_len = row->key_len;
		out += bytes;
	}
}

void
gs_host_gather(const GsHostOrder *order, uint64_t page, uint32_t chunk_bytes, void *dst)
{
	const GsHostRow *rows = order->rows + order->page_first[page];
	size_t		n = (size_t) (order->page_first[page + 1] - order->page_first[page]);

	if (order->format == GS_FORMAT_CHUNKS)
		gather_records(rows, n, chunk_bytes, dst);
	else
		gather_rows(rows, n, chunk_bytes, dst);
}
