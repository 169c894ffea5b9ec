/*-------------------------------------------------------------------------
 *
 * gpusort_exec.h
 *	  What the nodes above a GpuSort ask of it while it runs, and EXPLAIN's lines about it.
 *
 * They read its rows forward only, as any child may be read.  Of a GpuSort most rows are not asked for: they
 * are taken from its page, where they lie, and it is told of them when they are all read.  Its flags tell of
 * rows behind the current one, before they are read, whether their keys are equal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GS_GPUSORT_EXEC_H
#define GS_GPUSORT_EXEC_H

#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/instrument.h"

#include "device/device.h"
#include "sort/sort.h"

/* The sort of a GpuSort that has returned a row; NULL: it does not have it any more. */
extern GsSort *gs_sort_node_sort(const PlanState *node);

/* As gs_sort_skip(), of one that was begun with EXEC_FLAG_MARK. */
extern void gs_sort_node_skip(PlanState *node, uint64 n);

/* Before its first row: the counts that are needed, of a GpuSort that counts groups (GsSortKeep). */
extern void gs_sort_node_keep_counts(PlanState *node, uint32 min_count, uint32 max_count);

/* Has it found few groups in its input, and returned no row? */
extern bool gs_sort_node_declined(const PlanState *node);

/* No row is asked for any more, unless the node is rescanned: give back what its rows take. */
extern void gs_sort_node_release(PlanState *node);

/* gpusort_explain.c: by what it sorts, which rows are needed, what became of them. */
extern void gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsColumns *keys,
								 ExplainState *es);
extern void gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
								 ExplainState *es);
extern void gs_explain_sort_report(const GsSortReport *report, ExplainState *es);

/*
 * Reading rows
 */

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

#endif							/* GS_GPUSORT_EXEC_H */
