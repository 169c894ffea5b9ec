/*-------------------------------------------------------------------------
 *
 * host_order.h
 *	  Ordering the rows of many chunks with many threads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_HOST_ORDER_H
#define GS_HOST_ORDER_H

#include "host/host_pages.h"

/*
 * A chunk as the host device keeps it: the data, padding up to a multiple of 16, so that the last row may
 * be read up to a multiple of 8, and the records, backwards as in the chunk.
 */
typedef struct GsHostImage
{
	char	   *data;			/* owned by the sort; multiple of 64 */
	uint32_t	data_bytes;
	uint32_t	n_records;
	uint32_t	key_bytes;		/* room behind the records for keys that the device makes */
} GsHostImage;

static inline size_t
gs_host_image_bytes(uint32_t data_bytes, uint32_t n_records)
{
	return (((size_t) data_bytes + 15) & ~(size_t) 15) + (size_t) n_records * sizeof(GsRecord);
}

static inline GsRecord *
gs_host_image_record(const GsHostImage *image, uint32_t i)
{
	return gs_chunk_record(image->data, gs_host_image_bytes(image->data_bytes, image->n_records), i);
}

/* Memory for each row, while ordering and afterwards. */
#define GS_HOST_WORK_BYTES 50
#define GS_HOST_KEEP_BYTES sizeof(GsHostRow)

/* The most rows that can be ordered at once. */
#define GS_HOST_MAX_ROWS UINT32_MAX

/*
 * Orders the rows of the images, and keeps some of them, for pages of this format.  Each row fits into a
 * page.  Runs on a thread of the pool.  Fails with GS_NO_MEMORY, or with GS_CANCELLED soon after *cancel
 * has changed from 0.  *order is set only with GS_OK.
 */
extern GsStatus gs_host_order(GsPool *pool, const GsHostImage *images, uint64_t n_images,
							  GsPageFormat format, const GsKeep *keep, uint32_t chunk_bytes,
							  const int *cancel, GsHostOrder *order);

#endif							/* GS_HOST_ORDER_H */
