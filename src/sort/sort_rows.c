/*-------------------------------------------------------------------------
 *
 * sort_rows.c
 *	  Sorted rows by rank (sort_rows.h).
 *
 * Pages
 *	  A reader of a session's rows holds up to GS_PAGES_AHEAD + 1 chunks.  In
 *	  one of them is the page that it reads; into the others the following
 *	  pages are fetched meanwhile, so that a reader that goes on in one
 *	  direction never waits for the device once it is under way.  A chunk is
 *	  reused for the next request without going back to the free list.
 *
 * Ranges
 *	  Where a sort was larger than the device, its pages come in ranges, of
 *	  which one is at hand (service_shmem.h).  Going beyond its last page, or
 *	  before its first one, the reader asks for another one.
 *
 * Keeping track
 *	  Should the service be lost while rows are being returned, the sort is
 *	  done again on the CPU, where rows with equal keys may come in another
 *	  order.  The rows returned so far are then the first ones of the new
 *	  order up to the last group of equal keys, and some of that group.  So
 *	  each time a page is left, the hashes of the rows of its last group are
 *	  kept: usually one hash a page.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "sort/sort_big.h"
#include "sort/sort_rows.h"

/* Pages asked for beyond the current one. */
#define GS_PAGES_AHEAD		3

/* More returned rows of one group of equal keys are not kept track of. */
#define GS_TRACK_MAX		(UINT64CONST(1) << 20)

typedef struct PageSlot
{
	int			chunk;			/* -1: slot not in use */
	bool		asked;			/* page was asked for */
	bool		here;			/* and has arrived */
	uint32		range;
	uint64		page;			/* of the range */
} PageSlot;

struct GsRows
{
	uint64		n;
	int64		rank;

	/* rows in memory */
	const GsLocalRow *array;

	/* rows of a session */
	GsClient   *client;
	uint32		range;			/* the one at hand; pages are counted in it */
	uint64		n_pages;
	PageSlot	slots[GS_PAGES_AHEAD + 1];
	int			n_slots;
	int			current;		/* slot of the current page; -1: none */
	int			n_in_page;
	int64		page_rank;		/* rank of its first row */
	bool		seeking;		/* the next page to use is sought.page */
	GsRowsPlace sought;

	bool		keep_track;
	uint64		track_before;
	GsRowHashes track;
};

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
gs_rows_of_session(GsClient *client, bool keep_track)
{
	GsRows	   *rows = palloc0(sizeof(GsRows));
	const GsSession *session = gs_client_session(client);

	rows->n = session->n_rows;
	rows->rank = -1;
	rows->client = client;
	rows->n_pages = session->n_pages;
	rows->current = -1;
	rows->keep_track = keep_track;
	return rows;
}

void
gs_rows_end(GsRows *rows)
{
	gs_row_hashes_free(&rows->track);
	/* chunks go back with the session */
	pfree(rows);
}

uint64
gs_rows_count(const GsRows *rows)
{
	return rows->n;
}

static inline char *
slot_memory(const GsRows *rows, int slot)
{
	return gs_chunk_memory(rows->slots[slot].chunk);
}

static inline uint32
page_entry(const GsRows *rows, int pos)
{
	return gs_page_entry(slot_memory(rows, rows->current), GS_CHUNK_BYTES, pos);
}

void
gs_row_hashes_add(GsRowHashes *list, MemoryContext context, uint64 hash)
{
	if (list->n >= GS_TRACK_MAX)
	{
		list->lost = true;
		return;
	}
	if (list->n == list->room)
	{
		list->room = Max(64, list->room * 2);
		if (list->hashes)
			list->hashes = repalloc(list->hashes, list->room * sizeof(uint64));
		else
			list->hashes = MemoryContextAlloc(context, list->room * sizeof(uint64));
	}
	list->hashes[list->n++] = hash;
}

void
gs_row_hashes_free(GsRowHashes *list)
{
	if (list->hashes)
		pfree(list->hashes);
	memset(list, 0, sizeof(*list));
}

static void
add_to_track(GsRows *rows, const char *row, uint32 flags)
{
	gs_row_hashes_add(&rows->track, GetMemoryChunkContext(rows),
					  flags & GS_ENTRY_EXTERNAL ? ((const GsBigStub *) row)->hash :
					  gs_tuple_hash((const MinimalTupleData *) row));
}

/* All rows of the current page have been returned: keep its last group. */
static void
track_page(GsRows *rows)
{
	int			first = rows->n_in_page - 1;

	while (first >= 0 && page_entry(rows, first) & GS_ENTRY_TIE)
		first--;
	if (first >= 0)
	{
		/* the group begins here */
		gs_row_hashes_clear(&rows->track);
		rows->track_before = rows->page_rank + first;
	}
	for (int i = Max(first, 0); i < rows->n_in_page && !rows->track.lost; i++)
	{
		uint32		entry = page_entry(rows, i);

		add_to_track(rows, slot_memory(rows, rows->current) + (entry & ~GS_ENTRY_FLAGS),
					 entry & GS_ENTRY_FLAGS);
	}
}

bool
gs_rows_track(const GsRows *rows, uint64 *before, const GsRowHashes **latest)
{
	*before = rows->track_before;
	*latest = &rows->track;
	return rows->keep_track && !rows->track.lost;
}

static void
ask_for(GsRows *rows, int slot, uint64 page)
{
	rows->slots[slot].range = rows->range;
	rows->slots[slot].page = page;
	rows->slots[slot].asked = true;
	rows->slots[slot].here = false;
	gs_client_request(rows->client, rows->slots[slot].chunk, GS_FETCH_PAGE, page);
}

static int
find_slot(const GsRows *rows, uint64 page)
{
	for (int i = 0; i < rows->n_slots; i++)
		if (rows->slots[i].asked && rows->slots[i].range == rows->range &&
			rows->slots[i].page == page)
			return i;
	return -1;
}

/*
 * A slot to fetch a page into: a new one where a chunk can be had, else one
 * whose page is outside [low, high] of the range at hand.  -1 where there is none.
 */
static int
free_slot(GsRows *rows, uint64 low, uint64 high)
{
	if (rows->n_slots < GS_PAGES_AHEAD + 1)
	{
		int			chunk = gs_client_try_chunk(rows->client);

		if (chunk >= 0)
		{
			rows->slots[rows->n_slots].chunk = chunk;
			rows->slots[rows->n_slots].asked = false;
			return rows->n_slots++;
		}
	}
	for (int i = 0; i < rows->n_slots; i++)
	{
		PageSlot   *slot = &rows->slots[i];

		if (!slot->asked ||
			((slot->range != rows->range || slot->page < low || slot->page > high) &&
			 (slot->here || gs_chunks[slot->chunk].state == GS_CHUNK_FETCHED)))
			return i;
	}
	return -1;
}

/* Make a range the one at hand. */
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
	}
	return status;
}

/* The device did not know of the row before the first one of a range. */
static void
mark_first_row(GsRows *rows, int slot)
{
	uint32	   *entry = (uint32 *) (slot_memory(rows, slot) + GS_CHUNK_BYTES) - 1;

	if (gs_client_session(rows->client)->range_ties)
		*entry |= GS_ENTRY_TIE;
}

/* Make a page the current one, and ask for so many that follow it in a direction. */
static GsClientStatus
open_page(GsRows *rows, uint64 page, bool forward, uint64 ahead)
{
	uint64		low = forward ? page : page - Min(page, ahead);
	uint64		high = forward ? Min(page + ahead, rows->n_pages - 1) : page;
	int			slot = find_slot(rows, page);
	GsClientStatus status;

	if (slot < 0)
	{
		if (rows->n_slots == 0)
		{
			status = gs_client_take_chunk(rows->client, &rows->slots[0].chunk);
			if (status != GS_CLIENT_OK)
				return status;
			rows->slots[rows->n_slots++].asked = false;
		}
		slot = free_slot(rows, low, high);
		if (slot < 0)
			slot = free_slot(rows, page, page);
		for (int i = 0; slot < 0; i++)
		{
			/* all chunks are on their way from the device: wait for one */
			Assert(i < rows->n_slots);
			if (rows->slots[i].here)
				continue;
			status = gs_client_wait(rows->client, rows->slots[i].chunk);
			if (status != GS_CLIENT_OK)
				return status;
			slot = i;
		}
		ask_for(rows, slot, page);
	}
	for (uint64 i = 1; i <= ahead; i++)
	{
		int			other;

		if (forward ? page + i > high : i > page)
			break;
		if (find_slot(rows, forward ? page + i : page - i) >= 0)
			continue;
		other = free_slot(rows, low, high);
		if (other < 0)
			break;
		ask_for(rows, other, forward ? page + i : page - i);
	}

	if (!rows->slots[slot].here)
	{
		status = gs_client_wait(rows->client, rows->slots[slot].chunk);
		if (status != GS_CLIENT_OK)
			return status;
		rows->slots[slot].here = true;
		if (page == 0 && rows->range > 0)
			mark_first_row(rows, slot);
	}
	rows->current = slot;
	rows->n_in_page = gs_chunks[rows->slots[slot].chunk].n_records;
	return GS_CLIENT_OK;
}

/* Go on to the next page, or back to the previous one, in another range if need be. */
static GsClientStatus
turn_page(GsRows *rows, bool forward)
{
	GsClientStatus status = GS_CLIENT_OK;
	uint64		page = rows->slots[rows->current].page;
	int64		next_rank = rows->page_rank + rows->n_in_page;

	if (forward && rows->keep_track)
		track_page(rows);
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

	if (rows->current < 0 || rows->seeking)
	{
		status = open_range(rows, rows->sought.range);
		if (status == GS_CLIENT_OK)
			status = open_page(rows, rows->sought.page, true, GS_PAGES_AHEAD);
		rows->page_rank = rows->sought.page_rank;
		rows->seeking = false;
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

	if (unlikely(rows->current < 0 || rows->seeking ||
				 rank < rows->page_rank || rank >= rows->page_rank + rows->n_in_page))
	{
		GsClientStatus status = find_page(rows, rank);

		if (status != GS_CLIENT_OK)
			return status;
	}

	entry = page_entry(rows, rank - rows->page_rank);
	*row = slot_memory(rows, rows->current) + (entry & ~GS_ENTRY_FLAGS);
	*flags = entry & GS_ENTRY_FLAGS;
	rows->rank = rank;
	return GS_CLIENT_OK;
}

/*
 * Make the page that holds the row of this rank the current one, wherever it is: pages hold
 * about as many rows each, and each one tells its first row.  By turns the page is guessed
 * so and halfway between those known, which bounds the number of guesses.
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
		rows->page_rank = gs_chunks[rows->slots[rows->current].chunk].first_row;
		rows->seeking = false;
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

	return session == NULL || (session->n_runs == 0 && session->n_kept_runs == 0);
}

GsClientStatus
gs_rows_skip(GsRows *rows, uint64 n, bool *found)
{
	uint64		rank = rows->rank + Min(n, rows->n - rows->rank);
	GsClientStatus status = GS_CLIENT_OK;

	rows->keep_track = false;
	*found = rank < rows->n;
	if (*found && rows->client && rows->current >= 0 && rank >= (uint64) rows->page_rank &&
		rank < (uint64) rows->page_rank + rows->n_in_page)
		rows->seeking = false;	/* it is on the page at hand, wherever the reader was to go */
	else if (*found && rows->client && gs_rows_is_one_range(rows))
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

uint64
gs_rows_left_in_page(const GsRows *rows)
{
	Assert(rows->client && !rows->seeking);
	return rows->page_rank + rows->n_in_page - rows->rank;
}

const char *
gs_rows_in_page(const GsRows *rows, uint64 i, uint32 *flags)
{
	uint32		entry = page_entry(rows, rows->rank - rows->page_rank + i);

	Assert(i < gs_rows_left_in_page(rows));
	*flags = entry & GS_ENTRY_FLAGS;
	return slot_memory(rows, rows->current) + (entry & ~GS_ENTRY_FLAGS);
}

const char *
gs_rows_page(const GsRows *rows, uint32 *number)
{
	Assert(gs_rows_left_in_page(rows) > 0 && rows->rank >= rows->page_rank);
	*number = rows->rank - rows->page_rank;
	return slot_memory(rows, rows->current);
}

void
gs_rows_advance(GsRows *rows, uint64 n)
{
	Assert(n < gs_rows_left_in_page(rows));
	rows->rank += n;
}

void
gs_rows_tell(const GsRows *rows, GsRowsPlace *place)
{
	memset(place, 0, sizeof(*place));
	place->rank = rows->rank;
	if (rows->current >= 0 && !rows->seeking)
	{
		place->range = rows->range;
		place->page = rows->slots[rows->current].page;
		place->page_rank = rows->page_rank;
	}
	else
	{
		place->range = rows->sought.range;
		place->page = rows->sought.page;
		place->page_rank = rows->sought.page_rank;
	}
}

void
gs_rows_seek(GsRows *rows, const GsRowsPlace *place)
{
	rows->rank = place->rank;
	rows->sought = *place;
	rows->seeking = rows->current >= 0 &&
		(rows->range != place->range || rows->slots[rows->current].page != place->page);
}
