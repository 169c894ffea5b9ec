/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  Reading the rows of a node's child, mostly a GpuSort.
 *
 * Rows are read forward only.  Nodes take most rows straight from a GpuSort's page, and tell it afterwards
 * how many they took.  The page's flags tell whether the next row has the same key, before it is read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_READER_H
#define GS_READER_H

#include "executor/executor.h"
#include "executor/instrument.h"

#include "device/device.h"
#include "sort/sort.h"

typedef struct GsReader
{
	PlanState  *child;
	bool		is_sort;
	bool		takes_rows;		/* rows may be taken from the page: the GpuSort does not project them */
	TupleTableSlot *slot;		/* for rows that are taken */
	GsSortPage	page;			/* n = 0: no page */
	uint32		at;				/* the row read last, counted from the page's first */
} GsReader;

/* Does the next row have the key of the row read last? */
typedef enum GsNextRow
{
	GS_NEXT_ROW_UNKNOWN,		/* or there is no next row */
	GS_NEXT_ROW_EQUAL,
	GS_NEXT_ROW_OTHER
} GsNextRow;

/* The child has begun. */
extern void gs_reader_init(GsReader *reader, PlanState *child);

/* The child begins again, or ends. */
extern void gs_reader_reset(GsReader *reader);

/*
 * Move the child to the row read last, before the caller marks or leaves it.  Rows that were read are not
 * valid any more.
 */
extern void gs_reader_leave_page(GsReader *reader);

/* The next row, from the child. */
extern TupleTableSlot *gs_reader_ask(GsReader *reader);

/* The page's entry for the row n places behind the row read last, or before it if n is negative. */
static inline uint32
gs_reader_entry(const GsReader *reader, int32 n)
{
	return gs_page_entry(reader->page.page, reader->page.bytes, reader->page.first + reader->at + n);
}

/* Is the next row in the page of the row read last?  If not, reading it makes this page's rows invalid. */
static inline bool
gs_reader_stays_in_page(const GsReader *reader)
{
	return reader->takes_rows && reader->at + 1 < reader->page.n &&
		!((gs_reader_entry(reader, 0) | gs_reader_entry(reader, 1)) & GS_ENTRY_EXTERNAL);
}

/*
 * The next row, valid until the next call.  Empty, or NULL: there is none.  A GpuSort's row is in a slot for
 * minimal tuples, mostly in reader->slot.
 */
static inline TupleTableSlot *
gs_reader_next(GsReader *reader)
{
	uint32		entry;

	if (!reader->takes_rows || reader->at + 1 >= reader->page.n)
		return gs_reader_ask(reader);
	entry = gs_reader_entry(reader, 1);
	if (unlikely(entry & GS_ENTRY_EXTERNAL))
		return gs_reader_ask(reader);
	reader->at++;
	if (reader->child->instrument)
		reader->child->instrument->tuplecount += 1;
	return ExecStoreMinimalTuple((MinimalTuple) gs_page_row(reader->page.page, entry), reader->slot, false);
}

/* The row n places before the one that was read last, from the same page; slot is one for minimal tuples. */
static inline void
gs_reader_look_back(const GsReader *reader, uint32 n, TupleTableSlot *slot)
{
	uint32		entry = gs_reader_entry(reader, -(int32) n);

	Assert(n <= reader->at && !(entry & GS_ENTRY_EXTERNAL));
	ExecStoreMinimalTuple((MinimalTuple) (reader->page.page + (entry & ~GS_ENTRY_FLAGS)), slot, false);
}

static inline GsNextRow
gs_reader_next_row(const GsReader *reader)
{
	if (reader->page.one_of_equal)
		return GS_NEXT_ROW_OTHER;
	if (reader->at + 1 >= reader->page.n)
		return GS_NEXT_ROW_UNKNOWN;
	return gs_reader_entry(reader, 1) & GS_ENTRY_TIE ? GS_NEXT_ROW_EQUAL : GS_NEXT_ROW_OTHER;
}

#endif							/* GS_READER_H */
