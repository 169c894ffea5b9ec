/*-------------------------------------------------------------------------
 *
 * host_pages.h
 *	  Rows in their order: cutting it into pages, reading rows and keys, and
 *	  moving rows about.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HOST_PAGES_H
#define GS_HOST_PAGES_H

#include "base/threads.h"
#include "device/device.h"

/* A row in its place; the pointer goes into an image. */
typedef struct GsHostRow
{
	const char *row;
	uint32_t	len;			/* bytes */
	uint32_t	flags;			/* of the page's entry */
	uint32_t	key_len;		/* bytes, and GS_KEY_INEXACT */
	int32_t		key_off;		/* bytes from the row's start to the key's */
} GsHostRow;

typedef struct GsHostOrder
{
	GsHostRow  *rows;
	uint64_t	n_rows;
	GsPageFormat format;		/* of pages */
	uint64_t   *sums;			/* bytes in pages of each GS_HOST_SUM_ROWS rows */
	uint64_t   *page_first;		/* as in GsSortResult */
	uint64_t	n_pages;
} GsHostOrder;

#define GS_HOST_SUM_ROWS 1024

/* Returns the bytes that a row takes in a page, with its entry, or its key and record. */
static inline uint64_t
gs_host_page_bytes(GsPageFormat format, const GsHostRow *row)
{
	bool		chunks = format == GS_FORMAT_CHUNKS;
	uint64_t	len = (uint64_t) row->len + (chunks ? row->key_len & GS_LENGTH_MASK : 0);

	return ((len + 7) & ~(uint64_t) 7) + (chunks ? sizeof(GsRecord) : sizeof(uint32_t));
}

/*
 * Cuts an order with rows and sums into pages, each as full as possible.  Sets n_pages and page_first,
 * which malloc() allocates.  False: no memory, and nothing has changed.  No row takes more than a page.
 */
extern bool gs_host_cut_pages(GsHostOrder *order, uint32_t chunk_bytes);

/* Write a page in the order's format. */
extern void gs_host_gather(const GsHostOrder *order, uint64_t page, uint32_t chunk_bytes,
						   void *dst);

extern void gs_host_order_free(GsHostOrder *order);

#endif							/* GS_HOST_PAGES_H */
