/*-------------------------------------------------------------------------
 *
 * gpuarrays_explain.c
 *	  What EXPLAIN says of a GpuArraySort.
 *
 * Tests: regress/arrays_plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "nodes/arrays/gpuarrays.h"
#include "nodes/common/gpunode.h"
#include "service/service_shmem.h"

void
gs_explain_array_calls(CustomScanState *node, List *ancestors, int n_calls, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	bool		prefixed = gs_compat_explain_prefix(es);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	List	   *result = NIL;

	for (int i = list_length(plan->custom_scan_tlist) - n_calls;
		 i < list_length(plan->custom_scan_tlist); i++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, plan->custom_scan_tlist, i);

		result = lappend(result, deparse_expression((Node *) tle->expr, context, prefixed, false));
	}
	ExplainPropertyList("Array Sort", result, es);
}

void
gs_explain_array_report(const GsArrayReport *report, ExplainState *es)
{
	const char *device = "none (few arrays)";

	if (report->device_batches > 0)
		device = gs_shared->kind;
	else if (report->fallback != GS_FALLBACK_NONE)
		device = "none (fallback)";
	gs_explain_device(device, report->device_batches > 0 ? report->devices : 0, es);
	if (report->fallback != GS_FALLBACK_NONE)
		ExplainPropertyText("Fallback Reason", gs_fallback_name(report->fallback), es);
	ExplainPropertyInteger("Arrays Sorted", NULL, report->arrays, es);
	if (gs_explain_details(es))
		ExplainPropertyInteger("Batches", NULL, report->batches, es);
	if (report->device_batches == 0)
		return;
	ExplainPropertyInteger("Arrays on Device", NULL, report->device_arrays, es);
	if (gs_explain_details(es))
	{
		ExplainPropertyInteger("Batches on Device", NULL, report->device_batches, es);
		ExplainPropertyText("Engine", report->engine, es);
	}
	if (!es->timing)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Device Time",
							psprintf("copy in %.3f ms, sort %.3f ms, copy out %.3f ms",
									 report->copy_in_ms, report->sort_ms, report->copy_out_ms), es);
	else
	{
		ExplainPropertyFloat("Copy In Time", "ms", report->copy_in_ms, 3, es);
		ExplainPropertyFloat("Sort Time", "ms", report->sort_ms, 3, es);
		ExplainPropertyFloat("Copy Out Time", "ms", report->copy_out_ms, 3, es);
	}
}
