/*-------------------------------------------------------------------------
 *
 * sort_rows.c
 *	  Sorted rows by rank (sort_rows.h).
 *
 * Pages
 *	  A reader of a session's rows has up to GS_PAGES_AHEAD + 1 chunks.  While it reads a
 *	  page, the next pages are fetched into the other chunks.  So a reader that goes on in one
 *	  direction does not wait for the device.  A chunk is reused for the next request, without
 *	  going back to the free list.
 *
 *	  Slots of any node may point into the page that is being read, and the next row may be
 *	  requested much later, or never: the reader may be a cursor.  So the page is copied
 *	  into memory of this process, and its chunk is given back.  A page is read in its chunk only
 *	  if the reader will read on, has read the page before within a second, and its session
 *	  can be promised a chunk.  The service gives up fetched pages that are not read.  So an
 *	  idle or slow reader soon holds no chunk.
 *
 * Ranges
 *	  If a sort was larger than the device, its pages come in ranges, one at a time
 *	  (service/README.md).  To go beyond the last page of a range, or before the first, the
 *	  reader asks for another range.
 *
 * Tests: regress/plans, tap/memory_idle_cursors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "sort/sort_rows.h"

/* A reader is slow, or idle, if it reads a page for longer. */
#define GS_SLOW_PAGE_MS		1000

GsRows *
gs_rows_of_array(const GsLocalRow *array, uint64 n)
{
	GsRows	   *rows = palloc0(sizeof(GsRows));

	rows->n = n;
	rows->rank = -1;
	rows->array = array;
	rows->current = -1;
	return rows;
}

GsRows *
gs_rows_of_session(GsClient *client, bool to_end)
{
	GsRows	   *rows = palloc0(sizeof(GsRows));
	const GsSession *session = gs_client_session(client);

	rows->n = session->outcome.n_rows;
	rows->rank = -1;
	rows->client = client;
	rows->n_pages = session->n_pages;
	rows->current = -1;
	rows->to_end = to_end;
	for (int i = 0; i < lengthof(rows->slots); i++)
		rows->slots[i].chunk = -1;
	return rows;
}

void
gs_rows_end(GsRows *rows)
{
	/* chunks go back with the session */
	if (rows->own)
		pfree(rows->own);
	pfree(rows);
}

static inline uint32
page_entry(const GsRows *rows, int pos)
{
	return gs_page_entry(rows->memory, rows->page_bytes, pos);
}

/* Is the row of this rank in the current page? */
static inline bool
is_in_page(const GsRows *rows, int64 rank)
{
	return rows->memory && rank >= rows->page_rank && rank < rows->page_rank + rows->n_in_page;
}

static void
ask_for(GsRows *rows, int number, uint64 page)
{
	GsPageSlot *slot = &rows->slots[number];

	Assert(slot->held);
	slot->range = rows->range;
	slot->page = page;
	slot->request = gs_client_request(rows->client, slot->chunk, GS_FETCH_PAGE, page);
	slot->held = false;
}

static int
find_slot(const GsRows *rows, uint64 page)
{
	for (int i = 0; i < lengthof(rows->slots); i++)
		if (rows->slots[i].chunk >= 0 && rows->slots[i].range == rows->range &&
			rows->slots[i].page == page)
			return i;
	return -1;
}

/*
 * A slot to fetch a page into: one whose page is outside [low, high] of the current range, else an
 * unused one if a chunk is free.  -1: none.
 */
static int
free_slot(GsRows *rows, uint64 low, uint64 high)
{
	int			unused = -1;

	for (int i = 0; i < lengthof(rows->slots); i++)
	{
		GsPageSlot *slot = &rows->slots[i];

		if (slot->chunk >= 0 && slot->range == rows->range && slot->page >= low && slot->page <= high)
			continue;
		if (slot->chunk >= 0 && !slot->held)
			slot->held = gs_client_try_page(rows->client, &slot->chunk, slot->request);
		if (slot->chunk < 0)
			unused = i;
		else if (slot->held)
			return i;
	}
	if (unused < 0)
		return -1;
	rows->slots[unused].chunk = gs_client_try_chunk(rows->client);
	rows->slots[unused].held = rows->slots[unused].chunk >= 0;
	return rows->slots[unused].held ? unused : -1;
}

/* Make a range the current one. */
static GsClientStatus
open_range(GsRows *rows, uint32 range)
{
	GsClientStatus status;

	if (range == rows->range)
		return GS_CLIENT_OK;
	status = gs_client_open_range(rows->client, range);
	if (status == GS_CLIENT_OK)
	{
		rows->range = range;
		rows->n_pages = gs_client_session(rows->client)->n_pages;
		/* the service has ended the promise, as for the first range (gs_leader_answer()) */
		rows->promised = false;
	}
	return status;
}

/* Wait for a slot's page.  The slot has no chunk afterwards if the page was given up. */
static GsClientStatus
wait_for(GsRows *rows, int number)
{
	GsPageSlot *slot = &rows->slots[number];
	GsClientStatus status = GS_CLIENT_OK;

	if (!slot->held)
		status = gs_client_wait_page(rows->client, &slot->chunk, slot->request);
	slot->held = status == GS_CLIENT_OK && slot->chunk >= 0;
	return status;
}

/* Find the slot of a page of the current range, or request the page into a slot. */
static GsClientStatus
ask_for_page(GsRows *rows, uint64 page, uint64 low, uint64 high, int *slot)
{
	*slot = find_slot(rows, page);
	if (*slot >= 0)
		return GS_CLIENT_OK;
	*slot = free_slot(rows, low, high);
	if (*slot < 0)
		*slot = free_slot(rows, page, page);
	while (*slot < 0)
	{
		GsClientStatus status;
		int			coming = 0;

		/* wait for a page that is on its way, and take its chunk; else wait for a chunk of others */
		while (coming < lengthof(rows->slots) && rows->slots[coming].chunk < 0)
			coming++;
		if (coming < lengthof(rows->slots))
			status = wait_for(rows, coming);
		else
		{
			coming = 0;
			status = gs_client_take_chunk(rows->client, true, &rows->slots[coming].chunk);
			rows->slots[coming].held = status == GS_CLIENT_OK;
		}
		if (status != GS_CLIENT_OK)
			return status;
		if (rows->slots[coming].held)
			*slot = coming;
	}
	ask_for(rows, *slot, page);
	return GS_CLIENT_OK;
}

/* Request the pages beyond a page in a direction, as far as chunks are free. */
static void
ask_ahead(GsRows *rows, uint64 page, bool forward, uint64 low, uint64 high)
{
	for (uint64 i = 1; i <= high - low; i++)
	{
		uint64		other = forward ? page + i : page - i;
		int			slot;

		if (find_slot(rows, other) >= 0)
			continue;
		slot = free_slot(rows, low, high);
		if (slot < 0)
			break;
		ask_for(rows, slot, other);
	}
}

/* May the page that is being opened be read where it lies? */
static bool
may_read_in_place(GsRows *rows)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		wanted = rows->to_end && rows->opened != 0 &&
		!TimestampDifferenceExceeds(rows->opened, now, GS_SLOW_PAGE_MS);

	rows->opened = now;
	if (wanted != rows->promised)
		rows->promised = gs_client_promise(rows->client, wanted ? 1 : 0) > 0;
	return rows->promised;
}

/* The bytes of a page's rows, from its front; or a little more. */
static uint32
row_bytes(const GsRows *rows, const char *page)
{
	uint32		entry = gs_page_entry(page, GS_CHUNK_BYTES, rows->n_in_page - 1);
	uint32		row = entry & ~GS_ENTRY_FLAGS;

	if (entry & GS_ENTRY_EXTERNAL)
		return row + sizeof(GsBigStub);
	return row + ((const MinimalTupleData *) (page + row))->t_len;
}

/*
 * Make a copy of a page the current one.  If it is the sort's only page, the copy is only as large as its
 * rows need, because a query may have hundreds of small sorts open.
 */
static void
copy_page(GsRows *rows, const char *page)
{
	uint32		entries = rows->n_in_page * sizeof(uint32);
	uint32		bytes = GS_CHUNK_BYTES;

	if (rows->n == (uint64) rows->n_in_page && gs_client_session(rows->client)->spec.minimal_tuples)
		bytes = Min(MAXALIGN(row_bytes(rows, page)) + MAXALIGN(entries), GS_CHUNK_BYTES);
	if (rows->own_bytes < bytes)
	{
		if (rows->own)
			pfree(rows->own);
		rows->own = NULL;
		rows->own = MemoryContextAlloc(GetMemoryChunkContext(rows), bytes);
		rows->own_bytes = bytes;
	}
	memcpy(rows->own, page, bytes - entries);
	memcpy(rows->own + bytes - entries, page + GS_CHUNK_BYTES - entries, entries);
	rows->memory = rows->own;
	rows->page_bytes = bytes;
}

/* The page has come: make it the current one. */
static void
use_page(GsRows *rows, int number)
{
	GsPageSlot *slot = &rows->slots[number];
	char	   *memory = gs_chunk_memory(slot->chunk);

	/* the device did not know the last row of the range before */
	if (slot->page == 0 && slot->range > 0 && gs_client_session(rows->client)->range_ties)
		((uint32 *) (memory + GS_CHUNK_BYTES))[-1] |= GS_ENTRY_TIE;
	rows->page = slot->page;
	rows->n_in_page = gs_chunks[slot->chunk].n_records;
	rows->first_row = gs_chunks[slot->chunk].first_row;
	rows->turned = true;
	if (may_read_in_place(rows))
	{
		rows->memory = memory;
		rows->page_bytes = GS_CHUNK_BYTES;
		rows->current = number;
		return;
	}
	copy_page(rows, memory);
	gs_client_give_chunk(rows->client, slot->chunk);
	slot->chunk = -1;
}

/* Make a page the current one, and request this many pages that follow it in a direction. */
static GsClientStatus
open_page(GsRows *rows, uint64 page, bool forward, uint64 ahead)
{
	uint64		low = forward ? page : page - Min(page, ahead);
	uint64		high = forward ? Min(page + ahead, rows->n_pages - 1) : page;
	GsClientStatus status;
	int			slot;

	rows->memory = NULL;
	rows->current = -1;
	do
	{
		status = ask_for_page(rows, page, low, high, &slot);
		if (status == GS_CLIENT_OK)
		{
			ask_ahead(rows, page, forward, low, high);
			status = wait_for(rows, slot);
		}
		if (status != GS_CLIENT_OK)
			return status;
	} while (rows->slots[slot].chunk < 0);
	use_page(rows, slot);

	/* pages left behind may be wanted again */
	for (int i = 0; i < lengthof(rows->slots); i++)
		if (rows->slots[i].chunk >= 0 && rows->slots[i].held && i != rows->current)
		{
			gs_client_leave_page(rows->client, rows->slots[i].chunk);
			rows->slots[i].held = false;
		}
	return GS_CLIENT_OK;
}

/* The end was reached: leave the page, because nobody may read on.  It can be opened again. */
static void
rest(GsRows *rows)
{
	if (rows->current < 0)
		return;
	gs_rows_tell(rows, &rows->sought);
	gs_client_leave_page(rows->client, rows->slots[rows->current].chunk);
	rows->slots[rows->current].held = false;
	rows->memory = NULL;
	rows->current = -1;
	rows->promised = gs_client_promise(rows->client, 0) > 0;
}

/* Go on to the next page, or back to the previous one, in another range if need be. */
static GsClientStatus
turn_page(GsRows *rows, bool forward)
{
	GsClientStatus status = GS_CLIENT_OK;
	uint64		page = rows->page;
	int64		next_rank = rows->page_rank + rows->n_in_page;

	if (forward && page + 1 == rows->n_pages)
	{
		status = open_range(rows, rows->range + 1);
		page = 0;
	}
	else if (!forward && page == 0)
	{
		status = open_range(rows, rows->range - 1);
		page = rows->n_pages - 1;
	}
	else
		page += forward ? 1 : -1;
	if (status == GS_CLIENT_OK)
		status = open_page(rows, page, forward, GS_PAGES_AHEAD);
	if (status == GS_CLIENT_OK)
		rows->page_rank = forward ? next_rank : rows->page_rank - rows->n_in_page;
	return status;
}

/* Make the page that holds the row of this rank the current one. */
static GsClientStatus
find_page(GsRows *rows, int64 rank)
{
	GsClientStatus status = GS_CLIENT_OK;

	if (rows->memory == NULL)
	{
		/* a cursor may never read on: do not fetch ahead yet */
		status = open_range(rows, rows->sought.range);
		if (status == GS_CLIENT_OK)
			status = open_page(rows, rows->sought.page, true, rows->to_end ? GS_PAGES_AHEAD : 0);
		rows->page_rank = rows->sought.page_rank;
	}
	while (status == GS_CLIENT_OK && rank >= rows->page_rank + rows->n_in_page)
		status = turn_page(rows, true);
	while (status == GS_CLIENT_OK && rank < rows->page_rank)
		status = turn_page(rows, false);
	return status;
}

GsClientStatus
gs_rows_move(GsRows *rows, bool forward, const char **row, uint32 *flags)
{
	uint32		entry;
	int64		rank = rows->rank + (forward ? 1 : -1);

	*row = NULL;
	if (unlikely(rank < 0 || rank >= (int64) rows->n))
	{
		if (forward)
			rest(rows);
		rows->rank = forward ? (int64) rows->n : -1;
		return GS_CLIENT_OK;
	}
	if (rows->array)
	{
		*row = (const char *) (rows->array[rank] & ~(GsLocalRow) GS_ENTRY_FLAGS);
		*flags = rows->array[rank] & GS_ENTRY_FLAGS;
		rows->rank = rank;
		return GS_CLIENT_OK;
	}

	if (unlikely(!is_in_page(rows, rank)))
	{
		GsClientStatus status = find_page(rows, rank);

		if (status != GS_CLIENT_OK)
			return status;
	}

	entry = page_entry(rows, rank - rows->page_rank);
	*row = rows->memory + (entry & ~GS_ENTRY_FLAGS);
	*flags = entry & GS_ENTRY_FLAGS;
	rows->rank = rank;
	return GS_CLIENT_OK;
}

/*
 * Make the page that holds the row of this rank the current one, by searching: each page tells its first row.
 * Guesses alternate between interpolation, as pages hold about as many rows each, and bisection, which bounds
 * their number.
 */
static GsClientStatus
jump(GsRows *rows, uint64 rank)
{
	uint64		low = 0;		/* pages, and their first rows */
	uint64		high = rows->n_pages;
	uint64		low_row = 0;
	uint64		high_row = rows->n;
	bool		halve = false;

	for (;;)
	{
		uint64		page = (low + high) / 2;
		GsClientStatus status;

		if (!halve)
			page = Min(low + (rank - low_row) * (high - low) / (high_row - low_row), high - 1);
		status = open_page(rows, page, true, 0);
		if (status != GS_CLIENT_OK)
			return status;
		rows->page_rank = rows->first_row;
		if (rank < (uint64) rows->page_rank)
		{
			high = page;
			high_row = rows->page_rank;
		}
		else if (rank >= (uint64) rows->page_rank + rows->n_in_page)
		{
			low = page + 1;
			low_row = rows->page_rank + rows->n_in_page;
		}
		else
			return GS_CLIENT_OK;
		Assert(low < high);
		halve = !halve;
	}
}

bool
gs_rows_is_one_range(const GsRows *rows)
{
	const GsSession *session = rows->client ? gs_client_session(rows->client) : NULL;

	return session == NULL || session->outcome.n_runs == 0;
}

GsClientStatus
gs_rows_skip(GsRows *rows, uint64 n, bool *found)
{
	uint64		rank = rows->rank + Min(n, rows->n - rows->rank);
	GsClientStatus status = GS_CLIENT_OK;

	*found = rank < rows->n;
	if (*found && rows->client && !is_in_page(rows, rank) && gs_rows_is_one_range(rows))
		status = jump(rows, rank);
	if (status == GS_CLIENT_OK)
		rows->rank = rank;
	return status;
}

GsClientStatus
gs_rows_peek(GsRows *rows, uint32 *flags)
{
	GsClientStatus status = GS_CLIENT_OK;
	int64		rank = rows->rank + 1;

	*flags = 0;
	if (rank >= (int64) rows->n)
		return GS_CLIENT_OK;
	if (rows->array)
		*flags = rows->array[rank] & GS_ENTRY_FLAGS;
	else
	{
		status = find_page(rows, rank);
		if (status == GS_CLIENT_OK)
			*flags = page_entry(rows, rank - rows->page_rank) & GS_ENTRY_FLAGS;
	}
	return status;
}

bool
gs_rows_next_differs(const GsRows *rows)
{
	int64		rank = rows->rank + 1;

	if (rank >= (int64) rows->n)
		return true;
	if (rows->array)
		return (rows->array[rank] & GS_ENTRY_TIE) == 0;
	return is_in_page(rows, rank) &&
		(page_entry(rows, rank - rows->page_rank) & GS_ENTRY_TIE) == 0;
}

uint64
gs_rows_left_in_page(const GsRows *rows)
{
	Assert(rows->memory);
	return rows->page_rank + rows->n_in_page - rows->rank;
}

const char *
gs_rows_in_page(const GsRows *rows, uint64 i, uint32 *flags)
{
	Assert(i < gs_rows_left_in_page(rows));
	return gs_rows_of_page(rows, (int) (rows->rank - rows->page_rank + i), flags);
}

int
gs_rows_new_page(GsRows *rows)
{
	bool		turned = rows->turned && rows->memory != NULL;

	rows->turned = false;
	return turned ? rows->n_in_page : 0;
}

const char *
gs_rows_of_page(const GsRows *rows, int i, uint32 *flags)
{
	uint32		entry = page_entry(rows, i);

	*flags = entry & GS_ENTRY_FLAGS;
	return rows->memory + (entry & ~GS_ENTRY_FLAGS);
}

const char *
gs_rows_page(const GsRows *rows, uint32 *bytes, uint32 *number)
{
	Assert(gs_rows_left_in_page(rows) > 0 && rows->rank >= rows->page_rank);
	*number = rows->rank - rows->page_rank;
	*bytes = rows->page_bytes;
	return rows->memory;
}

void
gs_rows_advance(GsRows *rows, uint64 n)
{
	Assert(n < gs_rows_left_in_page(rows));
	rows->rank += n;
}

void
gs_rows_tell(const GsRows *rows, GsRowsPosition *position)
{
	*position = rows->sought;
	position->rank = rows->rank;
	if (rows->memory)
	{
		position->range = rows->range;
		position->page = rows->page;
		position->page_rank = rows->page_rank;
	}
}

void
gs_rows_seek(GsRows *rows, const GsRowsPosition *position)
{
	rows->rank = position->rank;
	rows->sought = *position;
	if (rows->range != position->range || rows->page != position->page)
		rows->memory = NULL;
}
