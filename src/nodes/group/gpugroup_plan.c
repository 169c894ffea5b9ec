/*-------------------------------------------------------------------------
 *
 * gpugroup_plan.c
 *	  Putting GpuGroup in the place of Agg, Group and Unique.
 *
 *		GroupAggregate (x, string_agg(y))		GpuGroup (x, string_agg(y))
 *		  -> GpuSort (x, y)						  -> GpuSort (x, y)
 *
 *		Unique (x, y), or Group					GpuGroup (x, y)
 *		  -> GpuSort (x, y)						  -> GpuSort (x, y)
 *
 *		Agg (count(DISTINCT x))					GpuGroup (count(DISTINCT x))
 *		  [-> Unique (x)]						  -> GpuSort (x)
 *			 -> GpuSort (x)
 *
 *		Agg (count(*))							GpuGroup (count(*))
 *		  [-> SubqueryScan]						  -> GpuSort (x, y)
 *			 -> Unique (x, y)
 *				  -> GpuSort (x, y)
 *
 * For each row Agg evaluates the arguments, calls a function for each aggregate and compares the row with
 * the first one of its group.  It interprets expressions for that, which takes several times as long as
 * reading the row.  GpuGroup compares few rows, and calls functions for some aggregates only
 * (aggregates.h).  Unique and Group copy rows as well.
 *
 * In the last two plans nobody sees the rows' order, nor which of several equal texts was kept.  So texts are
 * sorted by their bytes, whatever their collation is.  The same is done in the first two plans if the node is
 * the statement's topmost one and the statement has no ORDER BY.
 *
 * Nothing is assumed of how the plan came about: operators, collations and columns are compared.
 * PostgreSQL's node stays if it has ordered sets, aggregates that sort, or expressions that need it:
 * subplans, GROUPING(), gpu_sort_array(), which has a node of its own around Agg.
 *
 * If the device counts the rows of groups, it also drops groups that nobody wants.  The filter may compare
 * count(*) with a constant, or a Limit may want the first groups by count(*).  The filter, the Sort and the
 * Limit stay, because the rows may not come from a device.
 *
 * Tests: regress/aggregates_grouped, regress/counts, regress/groups_kept
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_opfamily_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "nodes/group/gpugroup.h"
#include "nodes/sort/gpuchoice.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "nodes/window/gpuwindow.h"
#include "plan/array_calls.h"
#include "plan/drop_rows.h"
#include "plan/plan_walk.h"

/* What an Agg counts. */
typedef struct CountInput
{
	CustomScan *sort;
	const Unique *unique;		/* NULL: there is none */
	bool		renumbered;		/* the Agg's columns are not those of the sort's output */
	GsColumns	columns;		/* that are counted, */
	AttrNumber	attno;			/* if it is one column: that one */
	Oid			collation;
} CountInput;

/* Are rows equal for a node exactly if they are equal in all of the sort's keys? */
static bool
compares_all_keys(const CustomScan *sort, const GsColumns *columns)
{
	Bitmapset  *compared = NULL;
	bool		all;

	/* nondeterministic collations take different bytes to be equal, and sorting by bytes parts them */
	for (int i = 0; i < columns->n; i++)
		if (OidIsValid(columns->collations[i]) && !get_collation_isdeterministic(columns->collations[i]))
			return false;
	return gs_plan_find_keys(sort, columns, &compared, &all) && all;
}

/* Is it count(*) of different rows, or count(DISTINCT x) of rows sorted by x? */
static bool
counts_different_rows(CountInput *input, const Aggref *agg)
{
	SortGroupClause *clause;
	Node	   *expr;
	const Var  *var;

	/* as gs_aggregates_count() needs it */
	if (agg->aggfilter || agg->aggsplit != AGGSPLIT_SIMPLE || !FLOAT8PASSBYVAL)
		return false;
	if (agg->aggfnoid == F_COUNT_)
		return input->unique != NULL;
	if (input->renumbered || agg->aggfnoid != F_COUNT_ANY || list_length(agg->aggdistinct) != 1 ||
		list_length(agg->args) != 1)
		return false;
	clause = linitial_node(SortGroupClause, agg->aggdistinct);
	expr = get_sortgroupclause_expr(clause, agg->args);
	var = (const Var *) gs_plan_strip_relabel(expr);
	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return false;
	input->attno = var->varattno;
	input->collation = exprCollation(expr);
	input->columns = (GsColumns){1, &input->attno, &clause->eqop, &input->collation};
	return compares_all_keys(input->sort, &input->columns);
}

/* Can GpuGroup compute it of each group? */
static bool
is_possible(const Aggref *agg)
{
	return agg->aggsplit == AGGSPLIT_SIMPLE && agg->aggkind == AGGKIND_NORMAL &&
		!gs_compat_aggref_sorts(agg);
}

/*
 * Returns the node that replaces plan, or plan.  groups: the columns of the groups.  checked: check the right
 * to compare them when the node begins.  input: only for GS_GROUP_COUNT_DISTINCT; its columns are set here.
 */
static Plan *
make_node(Plan *plan, Plan *child, GsGroupKind kind, const GsColumns *groups, bool checked,
		  CountInput *input)
{
	Node	   *exprs = (Node *) list_make2(plan->targetlist, plan->qual);
	bool		one_row = kind == GS_GROUP_COUNT_DISTINCT || groups->n == 0;
	bool		has_aggregate = false;
	List	   *scan_tlist = NIL;
	List	   *tlist;
	List	   *qual;
	CustomScan *scan;
	ListCell   *lc;

	if (gs_array_calls_are_in(exprs) || contain_subplans(exprs))
		return plan;
	tlist = gs_node_use_scan_tuple(plan->targetlist, PVC_INCLUDE_AGGREGATES, &scan_tlist);
	qual = gs_node_use_scan_tuple(plan->qual, PVC_INCLUDE_AGGREGATES, &scan_tlist);
	foreach(lc, scan_tlist)
	{
		const Expr *column = lfirst_node(TargetEntry, lc)->expr;
		const Aggref *agg = (const Aggref *) column;

		if (IsA(column, GroupingFunc))
			return plan;
		if (!IsA(column, Aggref))
		{
			/* without rows there is no first row to take the column from */
			if (one_row)
				return plan;
		}
		else if (!(input ? counts_different_rows(input, agg) : is_possible(agg)))
			return plan;
		has_aggregate |= IsA(column, Aggref);
		/* Agg checks no right to compare for DISTINCT; the Unique below a count(*) does */
		checked |= input && agg->aggdistinct == NIL;
	}
	if (one_row && !has_aggregate)
		return plan;
	scan = gs_node_make(&gs_group_node, plan, tlist, scan_tlist, child,
						list_make2(gs_columns_write(input ? &input->columns : groups),
								   list_make2_int(kind, checked)));
	scan->scan.plan.qual = qual;
	scan->scan.plan.initPlan = plan->initPlan;
	return &scan->scan.plan;
}

/* Are all aggregates of the node count(*)? */
static bool
only_counts_rows(const CustomScan *group)
{
	bool		counts = false;
	ListCell   *lc;

	foreach(lc, group->custom_scan_tlist)
	{
		const Aggref *agg = (const Aggref *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(agg, Aggref))
			continue;
		if (agg->aggfnoid != F_COUNT_ || agg->aggfilter || !FLOAT8PASSBYVAL)
			return false;
		counts = true;
	}
	return counts;
}

/* Find what an Agg without groups counts.  False: it does not read a GpuSort whose rows may be counted. */
static bool
find_input(CountInput *input, const Agg *agg)
{
	Plan	   *child = outerPlan(agg);

	memset(input, 0, sizeof(*input));
	if (agg->aggstrategy != AGG_PLAIN || !gs_plan_agg_is_simple(agg))
		return false;
	/* count(*) needs none of the columns that a SubqueryScan chooses */
	if (IsA(child, SubqueryScan) && child->qual == NIL && child->initPlan == NIL &&
		IsA(((SubqueryScan *) child)->subplan, Unique))
	{
		child = ((SubqueryScan *) child)->subplan;
		input->renumbered = true;
	}
	if (IsA(child, Unique))
	{
		input->unique = (const Unique *) child;
		if (child->initPlan != NIL)
			return false;
		child = outerPlan(child);
	}
	if (!gs_node_is(child, &gs_sort_node) || !gs_may_drop_rows(&agg->plan, child))
		return false;
	input->sort = (CustomScan *) child;
	if (input->unique == NULL)
		return true;
	input->columns = gs_columns_of_groups(&input->unique->plan);
	return compares_all_keys(input->sort, &input->columns);
}

Plan *
gs_group_count(GsStepContext *context, Plan *plan)
{
	CountInput	input;
	Plan	   *result;

	if (!find_input(&input, (const Agg *) plan))
		return plan;
	result = make_node(plan, &input.sort->scan.plan, GS_GROUP_COUNT_DISTINCT, NULL, false, &input);
	if (result != plan)
	{
		*gs_plan_setting(input.sort, GS_PLAN_UNIQUE) = true;
		gs_plan_forget_order(input.sort, true);
	}
	return result;
}

/* Put GpuGroup in the place of a node that groups, or aggregates all rows. */
static Plan *
replace(const GsStepContext *context, Plan *plan, GsGroupKind kind)
{
	GsColumns	columns = gs_columns_of_groups(plan);
	Plan	   *group = make_node(plan, outerPlan(plan), kind, &columns,
								   !list_member_ptr(context->unchecked, plan), NULL);
	CustomScan *sort = (CustomScan *) outerPlan(group);
	const Plan *top = context->stmt->planTree;

	if (gs_node_is(top, &gs_choice_node))
		top = outerPlan(top);
	if (group == plan || !gs_node_is(&sort->scan.plan, &gs_sort_node) || !compares_all_keys(sort, &columns))
		return group;
	/* without ORDER BY nobody sees the order of the topmost node's groups */
	if (context->any_order && plan == top)
		gs_plan_forget_order(sort, false);
	if (only_counts_rows((CustomScan *) group) && gs_may_drop_rows(group, &sort->scan.plan))
		*gs_plan_setting(sort, GS_PLAN_COUNTED) = true;
	return group;
}

Plan *
gs_group_aggregate(GsStepContext *context, Plan *plan)
{
	const Agg  *agg = (const Agg *) plan;
	const Plan *child = outerPlan(plan);

	if (IsA(child, Unique))
		child = outerPlan(child);
	if (!gs_plan_agg_is_simple(agg) || (agg->aggstrategy == AGG_SORTED) != (agg->numCols > 0) ||
		!gs_window_is_sorted(child))
		return plan;
	return replace(context, plan, GS_GROUP_BY);
}

Plan *
gs_group_distinct(GsStepContext *context, Plan *plan)
{
	if (!gs_node_is(outerPlan(plan), &gs_sort_node))
		return plan;
	return replace(context, plan, IsA(plan, Unique) ? GS_GROUP_DISTINCT : GS_GROUP_BY);
}

bool
gs_group_is_counted(const Plan *plan)
{
	const Plan *child = outerPlan(plan);

	return gs_node_is(plan, &gs_group_node) && gs_node_is(child, &gs_sort_node) &&
		*gs_plan_setting((const CustomScan *) child, GS_PLAN_COUNTED);
}

bool
gs_group_is_count(const CustomScan *group, const Node *expr)
{
	return IsA(expr, Var) && ((const Var *) expr)->varno == INDEX_VAR &&
		IsA(get_tle_by_resno(group->custom_scan_tlist, ((const Var *) expr)->varattno)->expr, Aggref);
}

Plan *
gs_group_keep_top(GsStepContext *context, Plan *plan)
{
	Sort	   *sort = (Sort *) plan;
	const CustomScan *group = (const CustomScan *) outerPlan(plan);
	List	   *columns;
	GsColumns	keys;
	const Var  *var;
	const TargetEntry *tle;

	/* a filter may drop some of the groups with most rows */
	if ((!IsA(plan, Sort) && !gs_node_is(plan, &gs_sort_node)) || !gs_group_is_counted(&group->scan.plan) ||
		group->scan.plan.qual != NIL)
		return plan;
	if (IsA(plan, Sort))
	{
		columns = plan->targetlist;
		keys = (GsColumns){sort->numCols, sort->sortColIdx, sort->sortOperators};
	}
	else
	{
		columns = ((CustomScan *) plan)->custom_scan_tlist;
		keys = gs_plan_read((CustomScan *) plan);
	}
	var = (const Var *) get_tle_by_resno(columns, keys.attnos[0])->expr;
	if (!IsA(var, Var) || !gs_may_drop_rows(plan, outerPlan(group)))
		return plan;
	tle = get_tle_by_resno(group->scan.plan.targetlist, var->varattno);
	if (gs_group_is_count(group, (Node *) tle->expr) &&
		get_op_opfamily_strategy(keys.operators[0], INTEGER_BTREE_FAM_OID) == BTGreaterStrategyNumber)
		gs_keep_bound((CustomScan *) outerPlan(group), &context->bound);
	return plan;
}
