/*-------------------------------------------------------------------------
 *
 * gpunode.c
 *	  The common parts of gpusort's plan nodes (gpunode.h).
 *
 * Tests: regress/explain_verbose, regress/custom_scans, regress/arrays_ahead
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "nodes/common/gpunode.h"
#include "plan/plan_walk.h"

Node *
gs_node_create_state(CustomScan *plan)
{
	const GsNode *node = (const GsNode *) plan->methods;
	CustomScanState *state = palloc0(node->state_bytes);

	NodeSetTag(state, T_CustomScanState);
	state->methods = &node->exec;
	return (Node *) state;
}

CustomScan *
gs_node_make(const GsNode *node, const Plan *like, List *tlist, List *scan_tlist, Plan *child,
			 List *private)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;

	plan->startup_cost = like->startup_cost;
	plan->total_cost = like->total_cost;
	gs_compat_copy_disabled(plan, like);
	plan->plan_rows = like->plan_rows;
	plan->plan_width = like->plan_width;
	plan->parallel_safe = like->parallel_safe;
	plan->plan_node_id = like->plan_node_id;
	plan->extParam = bms_copy(like->extParam);
	plan->allParam = bms_copy(like->allParam);
	plan->targetlist = tlist;
	plan->lefttree = child;
	scan->custom_scan_tlist = scan_tlist;
	scan->custom_private = private;
	scan->methods = &node->scan;
	return scan;
}

typedef struct Columns
{
	List	   *tlist;
	int			varno;
} Columns;

static Node *
use_columns(Node *node, void *context)
{
	const Columns *columns = context;
	TargetEntry *tle;

	if (node == NULL)
		return NULL;
	tle = tlist_member((Expr *) node, columns->tlist);
	if (tle)
		return (Node *) makeVarFromTargetEntry(columns->varno, tle);
	return expression_tree_mutator(node, use_columns, context);
}

List *
gs_node_use_columns(List *exprs, List *tlist, int varno)
{
	Columns		columns = {tlist, varno};

	return (List *) use_columns((Node *) exprs, &columns);
}

List *
gs_node_use_scan_tuple(List *exprs, int calls, List **scan_tlist)
{
	*scan_tlist = add_to_flat_tlist(*scan_tlist, pull_var_clause((Node *) exprs, calls));
	return gs_node_use_columns(exprs, *scan_tlist, INDEX_VAR);
}

List *
gs_node_tlist(List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		TargetEntry *entry = flatCopyTargetEntry(tle);

		entry->expr = (Expr *) makeVarFromTargetEntry(varno, tle);
		result = lappend(result, entry);
	}
	return result;
}

List *
gs_node_add_column(List *tlist, Expr *expr)
{
	return lappend(tlist, makeTargetEntry(expr, list_length(tlist) + 1, NULL, false));
}

void
gs_node_finish_columns(CustomScan *plan)
{
	plan->custom_scan_tlist = gs_node_tlist(outerPlan(plan)->targetlist, OUTER_VAR);
	plan->scan.plan.targetlist = gs_node_tlist(plan->scan.plan.targetlist, INDEX_VAR);
}

void
gs_node_type_records(CustomScanState *node)
{
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	TupleDesc	tupdesc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	ListCell   *lc;

	foreach(lc, plan->custom_scan_tlist)
	{
		const TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Form_pg_attribute att = TupleDescAttr(tupdesc, tle->resno - 1);

		if (att->atttypid == RECORDOID)
			att->atttypmod = gs_plan_row_typmod(&plan->scan.plan, (Node *) tle->expr);
	}
}

List *
gs_node_private(const CustomScan *plan, int n)
{
	if (list_length(plan->custom_private) != n)
		elog(ERROR, "malformed %s plan", plan->methods->CustomName);
	return plan->custom_private;
}

List *
gs_columns_write(const GsColumns *columns)
{
	List	   *attnos = NIL;
	List	   *operators = NIL;
	List	   *collations = NIL;
	List	   *nulls_first = NIL;

	for (int i = 0; i < columns->n; i++)
	{
		attnos = lappend_int(attnos, columns->attnos[i]);
		operators = lappend_oid(operators, columns->operators[i]);
		collations = lappend_oid(collations, columns->collations[i]);
		if (columns->nulls_first)
			nulls_first = lappend_int(nulls_first, columns->nulls_first[i]);
	}
	return list_make4(attnos, operators, collations, nulls_first);
}

GsColumns
gs_columns_read(const List *item)
{
	int			n = list_length(linitial(item));
	GsColumns	columns = {
		n, palloc(n * sizeof(AttrNumber)), palloc(n * sizeof(Oid)), palloc(n * sizeof(Oid)),
		lfourth(item) == NIL ? NULL : palloc(n * sizeof(bool))
	};

	for (int i = 0; i < n; i++)
	{
		columns.attnos[i] = list_nth_int(linitial(item), i);
		columns.operators[i] = list_nth_oid(lsecond(item), i);
		columns.collations[i] = list_nth_oid(lthird(item), i);
		if (columns.nulls_first)
			columns.nulls_first[i] = list_nth_int(lfourth(item), i) != 0;
	}
	return columns;
}

void
gs_columns_check(const GsColumns *columns)
{
	for (int i = 0; i < columns->n; i++)
		gs_compat_check_execute(get_opcode(columns->operators[i]), GetUserId(), OBJECT_FUNCTION);
}

GsColumns
gs_columns_of_groups(const Plan *plan)
{
	const Unique *unique = (const Unique *) plan;
	const Group *group = (const Group *) plan;
	const Agg  *agg = (const Agg *) plan;

	if (IsA(plan, Unique))
		return (GsColumns){unique->numCols, unique->uniqColIdx, unique->uniqOperators,
						   unique->uniqCollations};
	if (IsA(plan, Group))
		return (GsColumns){group->numCols, group->grpColIdx, group->grpOperators, group->grpCollations};
	Assert(IsA(plan, Agg));
	return (GsColumns){agg->numCols, agg->grpColIdx, agg->grpOperators, agg->grpCollations};
}

void
gs_scan_columns_read(GsScanColumns *columns, const CustomScan *plan)
{
	ListCell   *lc;

	columns->n = list_length(plan->custom_scan_tlist);
	columns->attnos = palloc0(columns->n * sizeof(AttrNumber));
	columns->last = 0;
	foreach(lc, plan->custom_scan_tlist)
	{
		const Var  *var = (const Var *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(var, Var))
			continue;
		columns->attnos[foreach_current_index(lc)] = var->varattno;
		columns->last = Max(columns->last, var->varattno);
	}
}

bool
gs_explain_details(ExplainState *es)
{
	return es->format != EXPLAIN_FORMAT_TEXT || es->verbose || gs_compat_has_explain_option(es);
}

void
gs_explain_device(const char *name, uint32 devices, ExplainState *es)
{
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;
	List	   *numbers = NIL;
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoString(&buf, name);
	for (int i = 0; devices >> i != 0; i++)
		if (devices >> i & 1)
		{
			if (text)
				appendStringInfo(&buf, numbers == NIL ? " %d" : ", %d", i);
			numbers = lappend(numbers, psprintf("%d", i));
		}
	ExplainPropertyText("Device", buf.data, es);
	if (numbers != NIL && !text)
		ExplainPropertyList("Device Numbers", numbers, es);
}

void
gs_explain_columns(const char *name, CustomScanState *node, List *ancestors, const GsColumns *columns,
				   ExplainState *es)
{
	Plan	   *plan = node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	List	   *keys = NIL;

	for (int i = 0; i < columns->n; i++)
	{
		TargetEntry *tle = get_tle_by_resno(outerPlan(plan)->targetlist, columns->attnos[i]);

		keys = lappend(keys, deparse_expression((Node *) makeVarFromTargetEntry(OUTER_VAR, tle), context,
												gs_compat_explain_prefix(es), true));
	}
	ExplainPropertyList(name, keys, es);
}

void
gs_explain_computed(const char *name, CustomScanState *node, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, plan->custom_scan_tlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(expr, Var))
			columns = lappend(columns, deparse_expression(expr, context, gs_compat_explain_prefix(es),
														  false));
	}
	ExplainPropertyList(name, columns, es);
}

/*
 * How many rows the executor was asked for.  ExecutorRun() does not tell the nodes.  So its hook keeps the
 * arguments during the call.  Calls nest if functions run queries.  Outside of ExecutorRun(), for example
 * while ExecutorFinish() completes a WITH query, nodes assume that rows are requested one by one.
 */
typedef struct Run
{
	const struct Run *outer;
	const EState *estate;
	bool		to_end;
	bool		once;			/* it will not be run again */
} Run;

static ExecutorRun_hook_type previous_run = NULL;
static const Run *innermost = NULL;

static void
run(gs_compat_executor_run_params)
{
	const Run	this_run = {innermost, query->estate, count == 0, gs_compat_executor_run_once};

	PG_TRY();
	{
		innermost = &this_run;
		if (previous_run)
			previous_run(gs_compat_executor_run_args);
		else
			standard_ExecutorRun(gs_compat_executor_run_args);
	}
	PG_FINALLY();
	{
		innermost = this_run.outer;
	}
	PG_END_TRY();
}

bool
gs_executor_runs_to_end(const EState *estate)
{
	return innermost != NULL && innermost->estate == estate && innermost->to_end;
}

bool
gs_executor_runs_once(const EState *estate)
{
	return gs_executor_runs_to_end(estate) && innermost->once;
}

void
gs_executor_run_init(void)
{
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run;
}
