/*-------------------------------------------------------------------------
 *
 * gpusort_keep.c
 *	  Rows of a GpuSort that the plan above does not need.
 *
 * Some nodes need only the first of rows that are equal in all sort columns:
 *
 *	  - a Unique, or a Group (GROUP BY without aggregates), by some or all of these
 *		columns: it returns the first row of each of its groups
 *	  - an Agg by some or all of these columns, if all its aggregates have a DISTINCT
 *		by some or all of them
 *
 * If the node's columns are the first sort columns, it needs only one of the rows that are equal in them.
 *
 * The topmost WindowAgg with a partition by the first sort columns needs only the first n rows of each
 * partition if its run condition is row_number() <= n.  With rank() <= n it also needs the peers of the
 * last one.  Without a partition all rows are one group.  Its other functions must not need later rows.
 *
 * If its run condition, or the filter of a SubqueryScan above it, is row_number() > 1 or count(*) > 1, it
 * needs no row that is alone in its partition.  All functions of a WindowAgg have the same partitions.
 *
 * Rows stay if PostgreSQL would evaluate anything for them that might be noticed (plan/drop_rows.h).
 *
 * The node above still compares rows, because GpuSort drops only rows whose keys tell that they are equal.
 * GpuSort must not drop a needed row.  That holds if it compares each column with the operator and collation
 * of its parent.
 *
 * A Limit's bound reaches a sort as in PostgreSQL (gs_plan_bound_below()).  It also goes through a
 * Unique, if each of its groups is one row of the sort.
 *
 * Tests: regress/fewer_rows, regress/group_rows
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/drop_rows.h"
#include "plan/plan_walk.h"

/* Has an aggregate a DISTINCT by columns among the keys, and no other use for rows? */
static bool
takes_one_of_equal(const CustomScan *sort, const Aggref *agg)
{
	ListCell   *lc;

	if (agg->aggdistinct == NIL || agg->aggfilter || agg->aggdirectargs != NIL)
		return false;
	foreach(lc, agg->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		if (!IsA(gs_plan_strip_relabel(get_sortgroupclause_expr(clause, agg->args)), Const) &&
			gs_plan_find_argument(sort, clause, agg->args) < 0)
			return false;
	}
	return true;
}

static bool
agg_takes_one_of_equal(const CustomScan *sort, const Agg *agg)
{
	ListCell   *lc;

	if (!gs_plan_agg_is_simple(agg))
		return false;
	foreach(lc, gs_plan_aggregates(agg))
		if (!takes_one_of_equal(sort, lfirst(lc)))
			return false;
	return true;
}

/* Are these the first keys? */
static bool
are_first_keys(const Bitmapset *keys)
{
	return bms_equal(keys, bms_add_range(NULL, 0, bms_num_members(keys) - 1));
}

/* The value of a constant of one of the integer types; false: it is none. */
static bool
integer_value(const Node *node, int64 *value)
{
	const Const *constant = (const Const *) node;

	if (!IsA(node, Const) || constant->constisnull)
		return false;
	if (constant->consttype == INT2OID)
		*value = DatumGetInt16(constant->constvalue);
	else if (constant->consttype == INT4OID)
		*value = DatumGetInt32(constant->constvalue);
	else if (constant->consttype == INT8OID)
		*value = DatumGetInt64(constant->constvalue);
	else
		return false;
	return true;
}

/*
 * The function of a WindowAgg that a condition compares with a number, and how: strategy is that of
 * "function op value", or 0.  NULL: the condition is another one.  It refers to the WindowAgg's target list.
 */
static const WindowFunc *
read_condition(const WindowAgg *window, const Node *node, int *strategy, int64 *value)
{
	const OpExpr *op = (const OpExpr *) node;
	const TargetEntry *tle;
	const Node *left;
	bool		commuted;

	if (!IsA(node, OpExpr) || list_length(op->args) != 2)
		return NULL;
	commuted = IsA(linitial(op->args), Const);
	left = commuted ? lsecond(op->args) : linitial(op->args);
	if (IsA(left, Var))
	{
		tle = get_tle_by_resno(window->plan.targetlist, ((const Var *) left)->varattno);
		left = tle ? (const Node *) tle->expr : NULL;
	}
	if (left == NULL || !IsA(left, WindowFunc) ||
		!integer_value(commuted ? linitial(op->args) : lsecond(op->args), value))
		return NULL;
	*strategy = get_op_opfamily_strategy(commuted ? get_commutator(op->opno) : op->opno,
										 INTEGER_BTREE_FAM_OID);
	return (const WindowFunc *) left;
}

/* Do the conditions discard rows that are alone in their partition? */
static bool
need_several(const WindowAgg *window, List *conditions)
{
	ListCell   *lc;

	foreach(lc, gs_deciding_conditions(conditions))
	{
		int			strategy;
		int64		value;
		const WindowFunc *call = read_condition(window, lfirst(lc), &strategy, &value);

		/* their value for the only row is no more than 1 */
		if (call && (call->winfnoid == F_ROW_NUMBER || call->winfnoid == F_RANK_ ||
					 call->winfnoid == F_DENSE_RANK_ || call->winfnoid == F_COUNT_) &&
			(strategy == BTGreaterStrategyNumber ? value >= 1 :
			 (strategy == BTGreaterEqualStrategyNumber || strategy == BTEqualStrategyNumber) && value >= 2))
			return true;
	}
	return false;
}

static void
keep_first(CustomScan *sort, double rows)
{
	if (rows >= 1 && rows <= INT_MAX)
		*gs_plan_setting(sort, GS_PLAN_BOUND) = (int) rows;
}

void
gs_keep_bound(CustomScan *sort, const GsBound *bound)
{
	keep_first(sort, bound->sure);
	if (bound->limit)
	{
		Node	   *offset = bound->limit->limitOffset;

		if (offset == NULL)
			offset = (Node *) makeNullConst(INT8OID, -1, InvalidOid);
		sort->custom_exprs = copyObject(list_make2(bound->limit->limitCount, offset));
	}
}

static void
keep_group(CustomScan *sort, int cols, int first, bool ties)
{
	*gs_plan_setting(sort, GS_PLAN_GROUP_COLS) = cols;
	*gs_plan_setting(sort, GS_PLAN_GROUP_FIRST) = first;
	*gs_plan_setting(sort, GS_PLAN_GROUP_TIES) = ties;
}

/* parent: the node above the WindowAgg, or NULL. */
static void
keep_for_window(CustomScan *sort, const WindowAgg *window, const Plan *parent)
{
	const GsColumns partition = {window->partNumCols, window->partColIdx, window->partOperators,
								 window->partCollations};
	const GsColumns order = {window->ordNumCols, window->ordColIdx, window->ordOperators,
							 window->ordCollations};
	Bitmapset  *compared = NULL;
	bool		all_keys;
	int64		rows = PG_INT64_MAX;	/* that pass */
	int64		ranks = PG_INT64_MAX;
	bool		judges;			/* the WindowAgg may do so by its run condition */
	bool		first;
	bool		several;
	int			n;
	ListCell   *lc;

	foreach(lc, gs_deciding_conditions(window->runCondition))
	{
		int			strategy;
		int64		most;
		const WindowFunc *call = read_condition(window, lfirst(lc), &strategy, &most);

		if (call == NULL || (strategy != BTLessStrategyNumber && strategy != BTLessEqualStrategyNumber))
			continue;
		most = Max(most, 1) - (strategy == BTLessStrategyNumber && most > 1);
		if (call->winfnoid == F_ROW_NUMBER)
			rows = Min(rows, most);
		else if (call->winfnoid == F_RANK_)
			ranks = Min(ranks, most);
	}
	judges = window->topWindow && gs_may_drop_rows(&window->plan, &sort->scan.plan);
	first = judges && (rows <= INT_MAX || ranks <= INT_MAX) && gs_window_looks_back(window);
	several = (judges && need_several(window, window->runCondition)) ||
		(parent && IsA(parent, SubqueryScan) && need_several(window, parent->qual) &&
		 gs_may_drop_rows(parent, &sort->scan.plan));
	if (!(first || several) || !gs_plan_find_keys(sort, &partition, &compared, &all_keys) ||
		!are_first_keys(compared))
		return;
	n = bms_num_members(compared);
	if (several && n > 0)
	{
		keep_group(sort, n, -1, false);
		*gs_plan_setting(sort, GS_PLAN_GROUP_SEVERAL) = true;
	}
	if (!first)
		return;
	if (rows <= ranks)
	{
		if (n > 0)
			keep_group(sort, n, rows, false);
		else
			keep_first(sort, rows);
	}
	else if (gs_plan_find_keys(sort, &order, &compared, &all_keys) && all_keys)
		keep_group(sort, n, ranks, true);
}

Plan *
gs_keep_for_parent(GsStepContext *step, Plan *parent)
{
	CustomScan *sort = (CustomScan *) outerPlan(parent);
	GsColumns	columns;
	Bitmapset  *compared = NULL;
	bool		all_keys;

	if (!gs_node_is(&sort->scan.plan, &gs_sort_node))
		return parent;
	if (IsA(parent, WindowAgg))
	{
		keep_for_window(sort, (const WindowAgg *) parent, step->parent);
		return parent;
	}
	columns = gs_columns_of_groups(parent);
	if (!gs_may_drop_rows(parent, &sort->scan.plan) ||
		!gs_plan_find_keys(sort, &columns, &compared, &all_keys) ||
		(IsA(parent, Agg) && !agg_takes_one_of_equal(sort, (const Agg *) parent)))
		return parent;
	*gs_plan_setting(sort, GS_PLAN_UNIQUE) = true;
	if (IsA(parent, Agg) || !are_first_keys(compared))
		return parent;
	if (!all_keys)
		keep_group(sort, bms_num_members(compared), 1, false);
	else
		sort->scan.plan.plan_rows = Min(sort->scan.plan.plan_rows, parent->plan_rows);
	/* each row of the GpuSort is one of the Unique's */
	if (IsA(parent, Unique))
		gs_keep_bound(sort, &step->bound);
	return parent;
}

Plan *
gs_keep_for_limit(GsStepContext *step, Plan *plan)
{
	if (gs_node_is(plan, &gs_sort_node))
		gs_keep_bound((CustomScan *) plan, &step->bound);
	return plan;
}
