/*-------------------------------------------------------------------------
 *
 * gpugroup_exec.c
 *	  The executor node GpuGroup.
 *
 * A group consists of rows that come one after the other and are equal in some columns.  For most rows a
 * GpuSort tells whether the next row is in the same group; other rows are compared (row_match.h).
 *
 * If count(*) is the only aggregate, the device may count the rows of each group.  Then one row of each
 * group comes, or none if the filter's first conditions reject the number.  Later conditions may raise
 * errors, so they must see the same groups as in PostgreSQL's node.
 *
 * Otherwise a group with aggregates is read to its end.  Its first row is copied, unless it is known to be
 * the only one.  When such a group is returned, the next group's first row has been read.  Without
 * aggregates a group is its first row, which is returned as soon as it is read.  If the node's columns are
 * the child's, the row stays in the slot in which it was read.
 *
 * GS_GROUP_COUNT_DISTINCT: the device knows how many different keys it has sorted.  So in most cases one
 * row is read, which tells whether there is a NULL.  If keys are inexact, or the device did not sort the
 * rows, or they are in temporary files, all rows are read and compared.
 *
 * Tests: regress/aggregates_grouped, regress/counts, regress/groups_kept
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "nodes/common/aggregates.h"
#include "nodes/group/gpugroup.h"
#include "nodes/read/row_match.h"
#include "nodes/sort/gpusort_exec.h"
#include "plan/drop_rows.h"

typedef struct GpuGroupState
{
	CustomScanState css;
	GsGroupKind kind;
	GsColumns	groups;
	GsScanColumns columns;
	bool		passes_rows;	/* the first row of a group is returned as it is */
	GsAggregates *aggregates;	/* NULL: there are none */

	GsReader	reader;
	GsRowMatcher *matcher;
	TupleTableSlot *copy;
	TupleTableSlot *first;		/* the group's first row: copy, or as it was read */
	TupleTableSlot *next;		/* the next group's; NULL: it was not read yet */
	bool		done;			/* all rows were read */
	List	   *count_conditions;	/* of the filter, by which the device may drop groups */
	const char *counted_by;		/* the last time, for EXPLAIN; NULL: not done, or no row */
} GpuGroupState;

/* Are the node's columns the child's, without a filter or a projection? */
static bool
passes_rows(const GpuGroupState *state)
{
	const PlanState *ps = &state->css.ss.ps;

	if (ps->ps_ProjInfo || ps->qual ||
		state->columns.n != list_length(outerPlan(ps->plan)->targetlist))
		return false;
	for (int i = 0; i < state->columns.n; i++)
		if (state->columns.attnos[i] != i + 1)
			return false;
	return true;
}

/* Finds the filter's conditions on count(*) that may drop groups, and tells the GpuSort which counts pass. */
static void
keep_counts(GpuGroupState *state, bool explain_only)
{
	PlanState  *ps = &state->css.ss.ps;
	int64		min = 0;
	int64		max = PG_UINT32_MAX;	/* no group has more */
	ListCell   *lc;

	foreach(lc, gs_deciding_conditions(ps->plan->qual))
	{
		OpExpr	   *op = lfirst(lc);
		bool		commuted;
		Expr	   *number;
		Oid			type;
		int			strategy;
		bool		isnull;
		Datum		value;
		int64		n;

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		commuted = !gs_group_is_count((CustomScan *) ps->plan, linitial(op->args));
		if (commuted && !gs_group_is_count((CustomScan *) ps->plan, lsecond(op->args)))
			continue;
		number = commuted ? linitial(op->args) : lsecond(op->args);
		type = exprType((Node *) number);
		strategy = get_op_opfamily_strategy(commuted ? get_commutator(op->opno) : op->opno,
											INTEGER_BTREE_FAM_OID);
		/* other parameters change, and a rescan would not sort again */
		if (strategy == 0 || (type != INT8OID && type != INT4OID && type != INT2OID) ||
			(!IsA(number, Const) && (!IsA(number, Param) || ((Param *) number)->paramkind != PARAM_EXTERN)))
			continue;
		state->count_conditions = lappend(state->count_conditions, op);
		if (explain_only)
			continue;
		value = ExecEvalExprSwitchContext(ExecInitExpr(number, ps), ps->ps_ExprContext, &isnull);
		if (isnull)
			continue;
		n = type == INT8OID ? DatumGetInt64(value) :
			type == INT4OID ? DatumGetInt32(value) : DatumGetInt16(value);
		n = Max(Min(n, (int64) PG_UINT32_MAX + 1), 0);
		if (strategy >= BTEqualStrategyNumber)
			min = Max(min, n + (strategy == BTGreaterStrategyNumber));
		if (strategy <= BTEqualStrategyNumber)
			max = Min(max, n - (strategy == BTLessStrategyNumber));
	}
	if (state->count_conditions != NIL)
		gs_sort_node_keep_counts(outerPlanState(state), Min(min, PG_UINT32_MAX), Max(max, 1));
}

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	GpuGroupState *state = (GpuGroupState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *private = gs_node_private(plan, GS_GROUP_Count);
	List	   *kind = list_nth(private, GS_GROUP_KIND);
	PlanState  *child;

	state->kind = linitial_int(kind);
	state->groups = gs_columns_read(list_nth(private, GS_GROUP_KEY));
	if (lsecond_int(kind) != 0)
		gs_columns_check(&state->groups);

	gs_scan_columns_read(&state->columns, plan);
	state->passes_rows = passes_rows(state);

	/* as with Agg, a rescan need not sort again */
	state->aggregates = gs_aggregates_init(node, state->kind == GS_GROUP_COUNT_DISTINCT ?
										   GS_AGGREGATED_DIFFERENT : GS_AGGREGATED_GROUP, estate,
										   eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	child = outerPlanState(node);
	if (gs_group_is_counted(&plan->scan.plan))
		keep_counts(state, (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0);
	gs_reader_init(&state->reader, child);
	state->matcher = gs_row_matcher_create(node, &state->reader, &state->groups, NULL);
	state->copy = ExecInitExtraTupleSlot(estate, ExecGetResultType(child), &TTSOpsMinimalTuple);
	if (state->passes_rows)
	{
		node->ss.ps.resultops = ExecGetResultSlotOps(child, &node->ss.ps.resultopsfixed);
		node->ss.ps.resultopsset = true;
	}
}

static void
forget_rows(GpuGroupState *state)
{
	ExecClearTuple(state->copy);
	gs_reader_reset(&state->reader);
	gs_row_matcher_reset(state->matcher);
	state->next = NULL;
	state->done = false;
}

static void
end(CustomScanState *node)
{
	GpuGroupState *state = (GpuGroupState *) node;

	forget_rows(state);
	gs_aggregates_end(state->aggregates, node);
}

static void
rescan(CustomScanState *node)
{
	forget_rows((GpuGroupState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* The next row, and whether it begins a group; NULL: there is none. */
static TupleTableSlot *
read_row(GpuGroupState *state, bool *begins_group)
{
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	row = gs_reader_next(&state->reader);
	if (TupIsNull(row))
	{
		state->done = true;
		return NULL;
	}
	*begins_group = gs_row_matcher_match(state->matcher, row) == GS_OTHER_PARTITION;
	return row;
}

/* Reads up to the first row of the next group; NULL: there is none. */
static TupleTableSlot *
read_first(GpuGroupState *state)
{
	TupleTableSlot *row = NULL;
	bool		begins_group = false;

	while (!state->done && !begins_group)
		row = read_row(state, &begins_group);
	return row;
}

/* The group's first row as its GpuSort has stored it, before columns were chosen from it. */
static TupleTableSlot *
stored_row(const GpuGroupState *state)
{
	return state->reader.takes_rows ? state->first : ((ScanState *) state->reader.child)->ss_ScanTupleSlot;
}

/* Aggregate the rows of the next group; false: there is none. */
static bool
read_group(GpuGroupState *state)
{
	TupleTableSlot *row = state->next;
	bool		begins_group;

	if (state->done)
		return false;
	if (row == NULL)
		row = read_row(state, &begins_group);
	if (row == NULL && state->groups.n > 0)
		return false;
	state->first = row;
	state->next = NULL;
	if (state->reader.page.counted)
	{
		state->counted_by = "device";
		return true;
	}
	state->counted_by = NULL;
	gs_aggregates_begin(state->aggregates);
	while (row)
	{
		gs_aggregates_advance(state->aggregates, row);
		if (gs_row_matcher_knows_end(state->matcher))
			break;
		if (row == state->first && state->columns.last > 0)
			state->first = ExecCopySlot(state->copy, row);
		row = read_row(state, &begins_group);
		if (row && begins_group)
		{
			state->next = row;
			break;
		}
	}
	return true;
}

/* Count the groups, if that was not done yet. */
static bool
count_groups(GpuGroupState *state)
{
	PlanState  *child = outerPlanState(state);
	const GsSort *sort;
	uint64		count;
	TupleTableSlot *row;

	if (state->done)
		return false;
	gs_aggregates_begin(state->aggregates);
	state->counted_by = NULL;
	row = read_first(state);
	if (row == NULL)
		return true;
	state->counted_by = "comparison";
	gs_aggregates_advance(state->aggregates, row);
	sort = gs_sort_node_sort(child);
	if (sort && gs_sort_count_distinct(sort, &count))
	{
		state->counted_by = "device";
		gs_aggregates_count(state->aggregates, count - 1);
	}
	else
		while ((row = read_first(state)) != NULL)
			gs_aggregates_advance(state->aggregates, row);
	state->done = true;
	gs_reader_reset(&state->reader);
	gs_sort_node_release(child);
	return true;
}

static bool
next_group(GpuGroupState *state)
{
	if (state->kind == GS_GROUP_COUNT_DISTINCT)
		return count_groups(state);
	if (state->aggregates)
		return read_group(state);
	state->first = read_first(state);
	return state->first != NULL;
}

static TupleTableSlot *
exec(CustomScanState *node)
{
	GpuGroupState *state = (GpuGroupState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;

	if (state->passes_rows)
		return read_first(state);
	for (;;)
	{
		ExecClearTuple(scan);
		ResetExprContext(econtext);
		if (!next_group(state))
			return projection ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : scan;
		gs_scan_columns_set(&state->columns, state->first, scan);
		if (state->aggregates && state->kind == GS_GROUP_BY && state->reader.page.counted)
			gs_aggregates_set_count(state->aggregates, gs_sort_row_count(stored_row(state)), scan);
		else if (state->aggregates)
			gs_aggregates_finish(state->aggregates, scan);
		ExecStoreVirtualTuple(scan);
		econtext->ecxt_scantuple = scan;
		if (ExecQual(node->ss.ps.qual, econtext))
			return projection ? ExecProject(projection) : scan;
		InstrCountFiltered1(node, 1);
	}
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	static const char *const names[] = {
		[GS_GROUP_BY] = "Group Key",
		[GS_GROUP_DISTINCT] = "Distinct Key",
		[GS_GROUP_COUNT_DISTINCT] = "Counted Key",
	};
	const GpuGroupState *state = (const GpuGroupState *) node;

	if (state->groups.n > 0)
		gs_explain_columns(names[state->kind], node, ancestors, &state->groups, es);
	if (state->count_conditions != NIL)
	{
		Node	   *conditions = (Node *) make_ands_explicit(state->count_conditions);
		List	   *context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);

		ExplainPropertyText("Groups Kept", deparse_expression(conditions, context, false, false), es);
	}
	if (es->analyze && state->counted_by)
		ExplainPropertyText("Counted By", state->counted_by, es);
}

const GsNode gs_group_node = {
	GS_NODE(GS_GROUP_NAME, GpuGroupState),
};
