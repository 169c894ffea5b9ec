/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  Reading the rows of a node's child, mostly a GpuSort.
 *
 * They are read forward only, as any child may be read.  Nodes take most rows straight from a GpuSort's page,
 * and tell it afterwards how many they took.  Its flags tell of rows behind the current one, before they are
 * read, whether their keys are equal.
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
	bool		takes_rows;		/* what the GpuSort returns is its rows as they are */
	TupleTableSlot *slot;		/* for rows that are taken */
	GsSortPage	page;			/* n = 0: there is none */
	uint32		at;				/* the row read last: so many behind the page's first */
} GsReader;

/* Has the row behind the one that was read last the same key? */
typedef enum GsNextRow
{
	GS_NEXT_ROW_UNKNOWN,		/* or there is none */
	GS_NEXT_ROW_EQUAL,
	GS_NEXT_ROW_OTHER
} GsNextRow;

/* The child has begun. */
extern void gs_reader_init(GsReader *reader, PlanState *child);

/* The child begins again, or ends. */
extern void gs_reader_reset(GsReader *reader);

/*
 * The child's position is that of the row that was read last, as its caller is going to mark it, or to
 * leave it.  No row that was read is good any more.
 */
extern void gs_reader_leave_page(GsReader *reader);

/* The next row, from the child. */
extern TupleTableSlot *gs_reader_ask(GsReader *reader);

/* The entry of the page for the row n places behind the one that was read last, or before it. */
static inline uint32
gs_reader_entry(const GsReader *reader, int32 n)
{
	return gs_page_entry(reader->page.page, reader->page.bytes, reader->page.first + reader->at + n);
}

/*
 * Is the next row in the page of the row that was read last?  If so, this one stays good.  If not, no row of
 * its page does.
 */
static inline bool
gs_reader_stays_in_page(const GsReader *reader)
{
	return reader->takes_rows && reader->at + 1 < reader->page.n &&
		!((gs_reader_entry(reader, 0) | gs_reader_entry(reader, 1)) & GS_ENTRY_EXTERNAL);
}

/*
 * The next row; it is good until the next call.  Empty, or NULL: there is none.  Where the child is a
 * GpuSort it is in a slot for minimal tuples, mostly in reader->slot.
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
