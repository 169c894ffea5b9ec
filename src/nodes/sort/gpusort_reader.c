/*-------------------------------------------------------------------------
 *
 * gpusort_reader.c
 *	  How a node reads its child's rows (gpusort_reader.h).
 *
 * Asking the child for a row costs several times what the row itself takes: ExecProcNode(), with its
 * instrumentation, and the layers below.  So rows are taken from the page.  The GpuSort
 * has to know how many when it is asked again, because it may have to leave these out after it has
 * lost its device.
 *
 * Tests: regress/windows_functions, tap/fault_service_lost
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_exec.h"
#include "nodes/sort/gpusort_reader.h"

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
	reader->page.n = 0;
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
