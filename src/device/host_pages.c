/*-------------------------------------------------------------------------
 *
 * host_pages.c
 *	  Rows in their order: cutting it into pages, reading rows and keys, and
 *	  moving rows about.
 *
 * Pages
 *	  What rows take in pages is summed by GS_HOST_SUM_ROWS of them, so that
 *	  cutting, which one thread does, looks at few single rows: those around
 *	  the end of each page.
 *
 * Moving rows
 *	  First the ranks are checked, with a bit for every row: none may be named
 *	  twice, and those that rows go to are those that they come from.  So the
 *	  rows stay the same rows, which is what bounds the number of pages.  Then
 *	  the rows are copied away and to their new places, the sums follow, and
 *	  the keys of neighbours are compared anew.  Two threads may find that they
 *	  have the same successor to compare: they store the same flags, so those
 *	  are stored atomically and that is all.
 *
 * Tests: unit/plain/test_device
 *
 *-------------------------------------------------------------------------
 */
#ifdef POSTGRES_H
#error "src/device is plain C and must not see postgres.h"
#endif

#include <stdlib.h>
#include <string.h>

#include "host_pages.h"

/* Rows on their way from memory. */
#define PREFETCH_ROWS 16

/* Ranks that one part of a move has. */
#define MOVE_ROWS 16384

typedef struct Move
{
	const GsHostOrder *order;
	const uint64_t *to;
	const uint64_t *from;
	uint64_t	n;
	GsHostRow  *rows;			/* those that move, in the order of to */
	uint64_t   *seen;			/* a bit for every row of the order */
	int			wrong;			/* not the same set; set by all threads */
} Move;

/* Room for the page table of these rows in any order, or NULL. */
static uint64_t *
allocate_pages(const GsHostOrder *order, uint32_t chunk_bytes)
{
	uint64_t	bytes = 0;

	/* What a page and the first row of the next one take is more than a page. */
	for (uint64_t i = 0; i * GS_HOST_SUM_ROWS < order->n_rows; i++)
		bytes += order->sums[i];
	return malloc((bytes / (chunk_bytes / 2) + 2) * sizeof(uint64_t));
}

static void
cut_pages(GsHostOrder *order, uint64_t *page_first, uint32_t chunk_bytes)
{
	uint64_t	n_pages = 0;
	uint64_t	row = 0;

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
}

bool
gs_host_cut_pages(GsHostOrder *order, uint32_t chunk_bytes)
{
	uint64_t   *page_first = allocate_pages(order, chunk_bytes);

	if (page_first == NULL)
		return false;
	cut_pages(order, page_first, chunk_bytes);
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

uint64_t
gs_host_copy_keys(const GsHostOrder *order, uint64_t first, void *dst, size_t bytes)
{
	uint64_t	rank = first;
	char	   *out = dst;
	size_t		left = bytes;

	for (; rank < order->n_rows; rank++)
	{
		const GsHostRow *row = &order->rows[rank];
		uint32_t	len = row->key_len & GS_LENGTH_MASK;
		size_t		whole = ((size_t) len + 3) & ~(size_t) 3;

		if (left < sizeof(uint32_t) || left - sizeof(uint32_t) < whole)
			break;
		if (rank + PREFETCH_ROWS < order->n_rows)
		{
			const GsHostRow *ahead = row + PREFETCH_ROWS;

			__builtin_prefetch(ahead->row + ahead->key_off);
			__builtin_prefetch(ahead->row + ahead->key_off + 64);
		}
		memcpy(out, &row->key_len, sizeof(uint32_t));
		out += sizeof(uint32_t);
		memcpy(out, row->row + row->key_off, len);
		memset(out + len, 0, whole - len);
		out += whole;
		left -= sizeof(uint32_t) + whole;
	}
	return rank - first;
}

/* ---- moving ---- */

/* The ranks [*start, end) of the arrays that a part has. */
static uint64_t
part_range(const Move *move, uint32_t part, uint64_t *start)
{
	*start = (uint64_t) part * MOVE_ROWS;
	return move->n - *start < MOVE_ROWS ? move->n : *start + MOVE_ROWS;
}

/* Note the ranks that rows go to. */
static void
mark_part(void *arg, uint32_t part)
{
	Move	   *move = arg;
	uint64_t	start;
	uint64_t	end = part_range(move, part, &start);

	for (uint64_t i = start; i < end; i++)
	{
		uint64_t	rank = move->to[i];
		uint64_t	bit = UINT64_C(1) << (rank % 64);

		if (rank >= move->order->n_rows ||
			(__atomic_fetch_or(&move->seen[rank / 64], bit, __ATOMIC_RELAXED) & bit) != 0)
			__atomic_store_n(&move->wrong, 1, __ATOMIC_RELAXED);
	}
}

/* Strike out the ranks that rows come from, and copy those rows. */
static void
take_part(void *arg, uint32_t part)
{
	Move	   *move = arg;
	uint64_t	start;
	uint64_t	end = part_range(move, part, &start);

	for (uint64_t i = start; i < end; i++)
	{
		uint64_t	rank = move->from[i];
		uint64_t	bit = UINT64_C(1) << (rank % 64);

		if (rank >= move->order->n_rows ||
			(__atomic_fetch_and(&move->seen[rank / 64], ~bit, __ATOMIC_RELAXED) & bit) == 0)
			__atomic_store_n(&move->wrong, 1, __ATOMIC_RELAXED);
		else
			move->rows[i] = move->order->rows[rank];
	}
}

static void
put_part(void *arg, uint32_t part)
{
	Move	   *move = arg;
	const GsHostOrder *order = move->order;
	uint64_t	start;
	uint64_t	end = part_range(move, part, &start);

	for (uint64_t i = start; i < end; i++)
	{
		uint64_t	rank = move->to[i];
		uint64_t	grown = gs_host_page_bytes(order->format, &move->rows[i]) -
			gs_host_page_bytes(order->format, &order->rows[rank]);

		order->rows[rank] = move->rows[i];
		if (grown != 0)
			__atomic_fetch_add(&order->sums[rank / GS_HOST_SUM_ROWS], grown, __ATOMIC_RELAXED);
	}
}

/* Find out whether a row has the key of the one before it. */
static void
compare_row(const GsHostOrder *order, uint64_t rank)
{
	GsHostRow  *row = &order->rows[rank];
	uint32_t	len = row->key_len & GS_LENGTH_MASK;
	uint32_t	flags = __atomic_load_n(&row->flags, __ATOMIC_RELAXED) & ~GS_ENTRY_TIE;

	if (rank > 0 && (row[-1].key_len & GS_LENGTH_MASK) == len &&
		memcmp(row[-1].row + row[-1].key_off, row->row + row->key_off, len) == 0)
		flags |= GS_ENTRY_TIE;
	__atomic_store_n(&row->flags, flags, __ATOMIC_RELAXED);
}

static void
compare_part(void *arg, uint32_t part)
{
	Move	   *move = arg;
	uint64_t	start;
	uint64_t	end = part_range(move, part, &start);

	for (uint64_t i = start; i < end; i++)
	{
		uint64_t	rank = move->to[i];

		compare_row(move->order, rank);
		if (rank + 1 < move->order->n_rows && (i + 1 == end || move->to[i + 1] != rank + 1))
			compare_row(move->order, rank + 1);
	}
}

uint64_t
gs_host_reorder_bytes(const GsHostOrder *order, uint64_t n)
{
	return n * sizeof(GsHostRow) + (order->n_rows / 64 + 1) * sizeof(uint64_t);
}

GsStatus
gs_host_reorder(GsHostPool *pool, const GsHostOrder *order, const uint64_t *to,
				const uint64_t *from, uint64_t n, uint32_t chunk_bytes, GsHostOrder *moved)
{
	Move		move = {order, to, from, n, NULL, NULL, 0};
	uint32_t	parts = (uint32_t) ((n + MOVE_ROWS - 1) / MOVE_ROWS);
	uint64_t   *page_first;
	GsStatus	status = GS_OK;

	if (n > order->n_rows)
		return GS_INVALID;
	page_first = allocate_pages(order, chunk_bytes);
	move.rows = malloc((n + 1) * sizeof(GsHostRow));
	move.seen = calloc(order->n_rows / 64 + 1, sizeof(uint64_t));
	if (page_first == NULL || move.rows == NULL || move.seen == NULL)
		status = GS_NO_MEMORY;
	else
	{
		gs_host_pool_loop(pool, parts, mark_part, &move);
		gs_host_pool_loop(pool, parts, take_part, &move);
		if (move.wrong)
			status = GS_INVALID;
	}
	if (status == GS_OK)
	{
		gs_host_pool_loop(pool, parts, put_part, &move);
		gs_host_pool_loop(pool, parts, compare_part, &move);
		*moved = *order;
		cut_pages(moved, page_first, chunk_bytes);
	}
	else
		free(page_first);
	free(move.rows);
	free(move.seen);
	return status;
}
