/*-------------------------------------------------------------------------
 *
 * gpusort_parallel.c
 *	  Parallel mode while a GpuSort takes its input.
 *
 * PostgreSQL runs a plan without workers if the client asks for a number of rows, because Gather returns rows
 * while workers run, and parallel mode would have to last from one Execute message to the next.  A GpuSort
 * takes all input before it returns a row.  So it enters parallel mode for that time.
 *
 * Tests: regress/plans, tap/sessions_portals
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "executor/nodeSubplan.h"
#include "nodes/nodeFuncs.h"
#include "storage/bufmgr.h"

#include "nodes/sort/gpusort.h"

/*
 * Close the scans that Gather opened for its workers and this process.  They refer to the parallel context,
 * which is gone, and Gather opens others if it is executed again.  PostgreSQL keeps the context up to the
 * query's end.
 */
static bool
close_parallel_scans(PlanState *node, void *context)
{
	if (node == NULL)
		return false;
	if (node->plan->parallel_aware)
		switch (nodeTag(node))
		{
			case T_SeqScanState:
			case T_TidRangeScanState:
				if (((ScanState *) node)->ss_currentScanDesc)
					table_endscan(((ScanState *) node)->ss_currentScanDesc);
				((ScanState *) node)->ss_currentScanDesc = NULL;
				break;
			case T_IndexScanState:
				if (((IndexScanState *) node)->iss_ScanDesc)
					index_endscan(((IndexScanState *) node)->iss_ScanDesc);
				((IndexScanState *) node)->iss_ScanDesc = NULL;
				break;
			case T_IndexOnlyScanState:
				if (BufferIsValid(((IndexOnlyScanState *) node)->ioss_VMBuffer))
					ReleaseBuffer(((IndexOnlyScanState *) node)->ioss_VMBuffer);
				((IndexOnlyScanState *) node)->ioss_VMBuffer = InvalidBuffer;
				if (((IndexOnlyScanState *) node)->ioss_ScanDesc)
					index_endscan(((IndexOnlyScanState *) node)->ioss_ScanDesc);
				((IndexOnlyScanState *) node)->ioss_ScanDesc = NULL;
				break;
			default:
				break;
		}
	return planstate_tree_walker(node, close_parallel_scans, context);
}

/*
 * Gather computes what its workers need of InitPlans.  Do that before: an InitPlan may have workers as well,
 * which would be gone only when the query ends.
 */
bool
gs_gather_enter_parallel_mode(PlanState *gather)
{
	EState	   *estate = gather->state;

	if (estate->es_use_parallel_mode)
		return false;
	ExecSetParamPlanMulti(((Gather *) gather->plan)->initParam, GetPerTupleExprContext(estate));
	EnterParallelMode();
	estate->es_use_parallel_mode = true;
	return true;
}

/* After an error the transaction leaves parallel mode itself, and the query does not go on. */
void
gs_gather_leave_parallel_mode(PlanState *gather)
{
	(void) ExecShutdownNode(gather);
	(void) close_parallel_scans(gather, NULL);
	gather->state->es_use_parallel_mode = false;
	ExitParallelMode();
}
