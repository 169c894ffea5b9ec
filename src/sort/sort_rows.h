/*-------------------------------------------------------------------------
 *
 * sort_rows.h
 *	  Sorted rows by rank, wherever they lie: in pages that come from the
 *	  device, or in memory of this process.
 *
 * A GsRows is a cursor over n rows.  The current row is one of 0 .. n - 1, or
 * before the first (-1), or behind the last (n).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_SORT_ROWS_H
#define GS_SORT_ROWS_H

#include "chunk/chunk.h"
#include "client/client.h"

/* A row of a local sort: its address, with GS_ENTRY_ flags in the low bits. */
typedef uintptr_t GsLocalRow;

/* A row too large for a chunk is in a temporary file, and this stands for it in the chunk (sort_stored.c). */
typedef struct GsBigStub
{
	uint32		len;			/* bytes of the minimal tuple */
	uint32		count;			/* where a device puts it (GsKeep.counted) */
	off_t		offset;
	int			fileno;
} GsBigStub;

/* A position to come back to: the current row. */
typedef struct GsRowsPosition
{
	int64		rank;
	uint32		range;
	uint64		page;
	int64		page_rank;		/* rank of the page's first row */
} GsRowsPosition;

/* Pages that are fetched beyond the current one. */
#define GS_PAGES_AHEAD		3

typedef struct GsPageSlot
{
	int			chunk;			/* -1: slot not in use */
	bool		held;			/* false: the page is on its way, has come, or was given up */
	uint64		request;		/* number of the request for the page */
	uint32		range;
	uint64		page;			/* number in the range */
} GsPageSlot;

/* For sort_rows.c and the inline functions here alone; others may read n and rank. */
typedef struct GsRows
{
	uint64		n;
	int64		rank;

	/* rows in memory */
	const GsLocalRow *array;

	/* rows of a session */
	GsClient   *client;
	uint32		range;			/* the current range */
	uint64		n_pages;		/* of the current range */
	GsPageSlot	slots[GS_PAGES_AHEAD + 1];
	bool		to_end;			/* they are read to the end without a rest */
	bool		promised;		/* the session has a chunk for the current page */
	TimestampTz opened;			/* when the current page was */
	char	   *own;			/* memory for a copy of a page; NULL until needed */
	uint32		own_bytes;		/* size of own */
	char	   *memory;			/* the current page; NULL: none */
	uint32		page_bytes;		/* size of the page; its entries end there */
	int			current;		/* the page's slot; -1: the page is a copy */
	uint64		page;			/* the page's number in the range */
	uint64		first_row;		/* the page's first row, counted in the range */
	int			n_in_page;		/* rows in the page */
	int64		page_rank;		/* rank of the page's first row */
	bool		turned;			/* gs_rows_new_page() was not called for the page yet */
	GsRowsPosition sought;		/* the position to open, if there is no current page */
} GsRows;

/*
 * Both allocate in CurrentMemoryContext.  to_end: the caller will read on to the end, or
 * close the session; it will not rest in between and keep its place, as a cursor does.
 */
extern GsRows *gs_rows_of_session(GsClient *client, bool to_end);
extern GsRows *gs_rows_of_array(const GsLocalRow *rows, uint64 n);
extern void gs_rows_end(GsRows *rows);

/*
 * Make the next row (or the previous one) the current one and return it, with
 * its flags.  It stays valid until the next call.  NULL with GS_CLIENT_OK at
 * either end.
 */
extern GsClientStatus gs_rows_move(GsRows *rows, bool forward, const char **row, uint32 *flags);

/* The same for the next row, if it is in the current page and has none of these flags; else NULL. */
static inline const char *
gs_rows_next_in_page(GsRows *rows, uint32 but_flags)
{
	uint64		place = (uint64) (rows->rank + 1 - rows->page_rank);
	uint32		entry;

	if (rows->memory == NULL || place >= (uint64) rows->n_in_page)
		return NULL;
	entry = gs_page_entry(rows->memory, rows->page_bytes, place);
	if (entry & but_flags)
		return NULL;
	rows->rank++;
	return gs_page_row(rows->memory, entry);
}

/*
 * Move n rows forward; *found is false if there are fewer, and the end is reached.  If a
 * session's rows are in one range, only the page of the new current row is fetched, and a few
 * pages to find it.
 */
extern GsClientStatus gs_rows_skip(GsRows *rows, uint64 n, bool *found);

/*
 * The flags of the row after the current one; 0 if there is none.  The
 * current row itself is no longer valid afterwards.
 */
extern GsClientStatus gs_rows_peek(GsRows *rows, uint32 *flags);

/*
 * Does the next row have another key than the current row?  False also if it is in another page.  The
 * current row stays valid.
 */
extern bool gs_rows_next_differs(const GsRows *rows);

/*
 * The number of a session's rows from the current one to the end of its page; and the i'th of them, which is
 * valid until the next call of gs_rows_move.
 */
extern uint64 gs_rows_left_in_page(const GsRows *rows);
extern const char *gs_rows_in_page(const GsRows *rows, uint64 i, uint32 *flags);

/* Returns the number of rows in the current page at the first call for that page, and then 0. */
extern int	gs_rows_new_page(GsRows *rows);

/* The i'th row of the current page. */
extern const char *gs_rows_of_page(const GsRows *rows, int i, uint32 *flags);

/* That page, its bytes, and the number of the current row in it. */
extern const char *gs_rows_page(const GsRows *rows, uint32 *bytes, uint32 *number);

/* Move n rows forward, within that page. */
extern void gs_rows_advance(GsRows *rows, uint64 n);

/* Can gs_rows_skip() go to any row at once? */
extern bool gs_rows_is_one_range(const GsRows *rows);

extern void gs_rows_tell(const GsRows *rows, GsRowsPosition *position);

/* The start is a position of all zeroes, except for rank -1. */
extern void gs_rows_seek(GsRows *rows, const GsRowsPosition *position);

#endif							/* GS_SORT_ROWS_H */
