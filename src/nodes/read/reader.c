/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Reading the rows of a node's child (reader.h).
 *
 * A call for each row, through ExecProcNode() with its instrumentation and the layers below, costs several
 * times as much as the row itself.  So nodes above take rows from the page (GsReader).  They tell the GpuSort
 * how many, because it may have to skip these rows after it has lost its device.
 *
 * Tests: regress/windows_functions, regress/aggregates_grouped
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/read/reader.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_exec.h"

void
gs_reader_init(GsReader *reader, PlanState *child)
{
	memset(reader, 0, sizeof(*reader));
	reader->child = child;
	reader->is_sort = gs_node_is(child->plan, &gs_sort_node);
	reader->takes_rows = reader->is_sort && child->ps_ProjInfo == NULL;
	if (reader->takes_rows)
		reader->slot = ExecInitExtraTupleSlot(child->state, ExecGetResultType(child),
											  &TTSOpsMinimalTuple);
}

void
gs_reader_reset(GsReader *reader)
{
	if (reader->slot)
		ExecClearTuple(reader->slot);
	memset(&reader->page, 0, sizeof(reader->page));
	reader->at = 0;
}

void
gs_reader_leave_page(GsReader *reader)
{
	if (reader->at > 0)
		gs_sort_take(gs_sort_node_sort(reader->child), reader->at);
	gs_reader_reset(reader);
}

TupleTableSlot *
gs_reader_ask(GsReader *reader)
{
	TupleTableSlot *row;
	GsSort	   *sort;

	gs_reader_leave_page(reader);
	row = ExecProcNode(reader->child);
	if (reader->is_sort && !TupIsNull(row))
	{
		sort = gs_sort_node_sort(reader->child);
		if (sort == NULL || !gs_sort_page(sort, &reader->page))
			reader->page.n = 0;
	}
	return row;
}
