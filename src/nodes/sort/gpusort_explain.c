/*-------------------------------------------------------------------------
 *
 * gpusort_explain.c
 *	  What EXPLAIN says of a GpuSort.
 *
 * Tests: regress/explain
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/explain.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

#include "compat.h"
#include "nodes/common/gpunode.h"
#include "nodes/sort/gpusort_exec.h"

/*
 * Print the sort keys just as Sort does (show_sort_group_keys and
 * show_sortorder_options in explain.c).
 */
void
gs_explain_sort_keys(CustomScanState *node, List *ancestors, const GsColumns *keys,
					 ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	bool		prefixed = gs_compat_explain_prefix(es);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	List	   *result = NIL;
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < keys->n; i++)
	{
		TargetEntry *tle = get_tle_by_resno(plan->custom_scan_tlist, keys->attnos[i]);
		Oid			type;
		Oid			collation;
		TypeCacheEntry *typentry;
		bool		reverse = false;
		Var		   *var;

		if (tle == NULL)
			elog(ERROR, "no tlist entry for key %d", keys->attnos[i]);
		type = exprType((Node *) tle->expr);
		collation = keys->collations[i];

		resetStringInfo(&buf);
		var = makeVarFromTargetEntry(INDEX_VAR, tle);
		appendStringInfoString(&buf, deparse_expression((Node *) var, context, prefixed, true));
		if (OidIsValid(collation) && collation != get_typcollation(type))
		{
			char	   *name = get_collation_name(collation);

			if (name == NULL)
				elog(ERROR, "cache lookup failed for collation %u", collation);
			appendStringInfo(&buf, " COLLATE %s", quote_identifier(name));
		}
		typentry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
		if (keys->operators[i] == typentry->gt_opr)
		{
			appendStringInfoString(&buf, " DESC");
			reverse = true;
		}
		else if (keys->operators[i] != typentry->lt_opr)
		{
			char	   *name = get_opname(keys->operators[i]);

			if (name == NULL)
				elog(ERROR, "cache lookup failed for operator %u", keys->operators[i]);
			appendStringInfo(&buf, " USING %s", name);
			(void) get_equality_op_for_ordering_op(keys->operators[i], &reverse);
		}
		if (keys->nulls_first[i] && !reverse)
			appendStringInfoString(&buf, " NULLS FIRST");
		else if (!keys->nulls_first[i] && reverse)
			appendStringInfoString(&buf, " NULLS LAST");
		result = lappend(result, pstrdup(buf.data));
	}
	ExplainPropertyList("Sort Key", result, es);
}

/* A limit that is not known yet. */
static void
explain_limit(CustomScanState *node, List *ancestors, const char *name, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	Node	   *offset = lsecond(plan->custom_exprs);
	char	   *text = deparse_expression(linitial(plan->custom_exprs), context, false, false);

	if (!IsA(offset, Const) || !((Const *) offset)->constisnull)
		text = psprintf("%s + %s", text, deparse_expression(offset, context, false, false));
	ExplainPropertyText(name, text, es);
}

void
gs_explain_sort_keep(CustomScanState *node, List *ancestors, const GsSortKeep *keep,
					 ExplainState *es)
{
	const char *limit_name = keep->counted ? "Top Groups" : "First Rows";

	if (keep->unique)
		ExplainPropertyBool("Distinct", true, es);
	if (keep->counted)
		ExplainPropertyBool("Counted", true, es);
	if (keep->group_first > 0 && keep->group_ties)
		ExplainPropertyInteger("First Ranks per Group", NULL, keep->group_first, es);
	else if (keep->group_first > 0 && keep->group_first < PG_UINT32_MAX)
		ExplainPropertyInteger("First Rows per Group", NULL, keep->group_first, es);
	if (keep->group_several)
		ExplainPropertyBool("Groups of Several Rows", true, es);
	if (keep->limit > 0)
		ExplainPropertyInteger(limit_name, NULL, keep->limit, es);
	else if (!es->analyze && ((CustomScan *) node->ss.ps.plan)->custom_exprs != NIL)
		explain_limit(node, ancestors, limit_name, es);
}

/* What did not fit into the device's memory. */
static void
explain_spill(const GsSortReport *report, ExplainState *es)
{
	uint64		kb = (report->session.temp_bytes + 1023) / 1024;

	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Temporary Files",
							psprintf("%u runs, %u ranges, " UINT64_FORMAT "kB",
									 report->session.n_runs, report->session.n_ranges, kb), es);
	else
	{
		ExplainPropertyInteger("Runs", NULL, report->session.n_runs, es);
		ExplainPropertyInteger("Ranges", NULL, report->session.n_ranges, es);
		ExplainPropertyInteger("Temporary Space Used", "kB", kb, es);
	}
}

static void
explain_details(const GsSortReport *report, ExplainState *es)
{
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;

	ExplainPropertyText("Engine", report->session.engine, es);
	ExplainPropertyInteger("Key Bytes", text ? NULL : "B", report->session.key_bytes, es);
	ExplainPropertyInteger("Row Bytes", text ? NULL : "B", report->session.row_bytes, es);
	ExplainPropertyInteger("Chunks", NULL, report->session.n_images, es);
	if (report->session.table_pages > 0)
		ExplainPropertyInteger("Table Pages", NULL, report->session.table_pages, es);
}

void
gs_explain_sort_report(const GsSortReport *report, ExplainState *es)
{
	const char *device = NULL;
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;

	switch (report->place)
	{
		case GS_SORT_LOCAL:
			device = "none (few rows)";
			break;
		case GS_SORT_DEVICE:
			device = gs_shared->device_kind;
			break;
		case GS_SORT_CPU:
			device = report->fallback == GS_FALLBACK_NONE ? "none (few rows)" : "none (fallback)";
			break;
	}
	gs_explain_device(device, report->place == GS_SORT_DEVICE ? report->devices : 0, es);
	if (report->place == GS_SORT_CPU)
	{
		if (report->fallback != GS_FALLBACK_NONE)
			ExplainPropertyText("Fallback Reason", gs_fallback_name(report->fallback), es);
		if (report->cpu_method)
		{
			if (text)
			{
				ExplainPropertyText("Sort Method", psprintf("%s  %s: " INT64_FORMAT "kB",
															report->cpu_method,
															report->cpu_space_type,
															report->cpu_space_kb), es);
			}
			else
			{
				ExplainPropertyText("Sort Method", report->cpu_method, es);
				ExplainPropertyInteger("Sort Space Used", "kB", report->cpu_space_kb, es);
				ExplainPropertyText("Sort Space Type", report->cpu_space_type, es);
			}
		}
		return;
	}
	ExplainPropertyInteger("Rows Sorted", NULL, report->rows, es);
	if (report->settled > 0)
		ExplainPropertyInteger("Rows Settled", NULL, report->settled, es);
	if (report->place != GS_SORT_DEVICE)
		return;
	if (report->session.n_dropped > 0)
		ExplainPropertyInteger("Rows Dropped", NULL, report->session.n_dropped, es);
	if (gs_explain_details(es))
		explain_details(report, es);
	if (report->session.n_runs > 0)
		explain_spill(report, es);
	if (report->session.limited)
		ExplainPropertyText("Limited By", "gpusort.role_memory", es);
	if (!es->timing)
		return;
	if (text)
		ExplainPropertyText("Device Time",
							psprintf("copy in %.3f ms, sort %.3f ms, gather %.3f ms, copy out %.3f ms",
									 report->session.copy_in_ms, report->session.sort_ms,
									 report->session.gather_ms, report->session.copy_out_ms), es);
	else
	{
		ExplainPropertyFloat("Copy In Time", "ms", report->session.copy_in_ms, 3, es);
		ExplainPropertyFloat("Sort Time", "ms", report->session.sort_ms, 3, es);
		ExplainPropertyFloat("Gather Time", "ms", report->session.gather_ms, 3, es);
		ExplainPropertyFloat("Copy Out Time", "ms", report->session.copy_out_ms, 3, es);
	}
}
