/*-------------------------------------------------------------------------
 *
 * gpuwindow_explain.c
 *	  What EXPLAIN says of a GpuWindow.
 *
 * Tests: regress/windows, regress/windows_functions
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "nodes/window/gpuwindow.h"

void
gs_window_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *conditions = gs_window_run_condition(plan);
	bool		prefixed = gs_compat_explain_prefix(es);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	List	   *functions = NIL;
	ListCell   *lc;

	foreach(lc, plan->custom_scan_tlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (!IsA(tle->expr, Var))
			functions = lappend(functions, deparse_expression((Node *) tle->expr, context,
															  prefixed, false));
	}
	ExplainPropertyList("Window Functions", functions, es);
	if (conditions != NIL)
		ExplainPropertyText("Run Condition",
							deparse_expression((Node *) make_ands_explicit(conditions), context,
											   prefixed, false), es);
}
