/*-------------------------------------------------------------------------
 *
 * gpusort_keys.c
 *	  What a GpuSort's plan says (gpusort.h): reading and writing custom_private, and what its keys tell the
 *	  node above.
 *
 * A GpuSortFeed's custom_private is a copy of that of the GpuSort above it.
 *
 * Nothing is assumed of how the plan came about.  Operators and collations are compared as well as columns,
 * because one equality takes values for equal that another one does not.
 *
 * Tests: regress/plans, regress/explain, regress/aggregates, regress/aggregates_grouped
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_steps.h"
#include "plan/plan_walk.h"

CustomScan *
gs_plan_feed(const CustomScan *sort)
{
	const Plan *child = outerPlan(&sort->scan.plan);

	return IsA(child, Gather) && gs_node_is(outerPlan(child), &gs_feed_node) ?
		(CustomScan *) outerPlan(child) : NULL;
}

List *
gs_plan_write(const Sort *sort, bool rerun)
{
	const GsColumns columns = {sort->numCols, sort->sortColIdx, sort->sortOperators, sort->collations,
							   sort->nullsFirst};
	List	   *settings = NIL;

	rerun = rerun && gs_plan_may_rerun(outerPlan(sort));
	for (int i = 0; i < GS_PLAN_SETTING_Count; i++)
		settings = lappend_int(settings, i == GS_PLAN_RERUN ? rerun : 0);
	return list_make2(gs_columns_write(&columns), settings);
}

int *
gs_plan_setting(const CustomScan *plan, GsPlanSetting setting)
{
	return &lfirst_int(list_nth_cell(list_nth(plan->custom_private, GS_PLAN_SETTINGS), setting));
}

/* Is it a text operator?  Texts that are equal under one deterministic collation are so under all. */
static bool
takes_texts(Oid sort_operator)
{
	Oid			opfamily;
	Oid			type;
	bool		descending;

	return gs_compat_ordering_op(sort_operator, &opfamily, &type, &descending) &&
		(type == TEXTOID || type == BPCHAROID);
}

GsColumns
gs_plan_read(const CustomScan *plan)
{
	return gs_columns_read(list_nth(gs_node_private(plan, GS_PLAN_Count), GS_PLAN_COLUMNS));
}

void
gs_plan_forget_order(CustomScan *plan, bool nulls_first)
{
	GsColumns	keys = gs_plan_read(plan);
	CustomScan *feed = gs_plan_feed(plan);

	for (int i = 0; i < keys.n; i++)
	{
		keys.nulls_first[i] |= nulls_first;
		if (OidIsValid(keys.collations[i]) && takes_texts(keys.operators[i]))
			keys.collations[i] = C_COLLATION_OID;
	}
	lfirst(list_nth_cell(plan->custom_private, GS_PLAN_COLUMNS)) = gs_columns_write(&keys);
	if (feed)
		lfirst(list_nth_cell(feed->custom_private, GS_PLAN_COLUMNS)) = gs_columns_write(&keys);
}

/* Are values that are equal under the collation so under that of a key, and the other way round? */
static bool
has_equality(Oid sort_operator, Oid key_collation, Oid collation)
{
	return key_collation == collation ||
		(key_collation == C_COLLATION_OID && OidIsValid(collation) &&
		 get_collation_isdeterministic(collation) && takes_texts(sort_operator));
}

/* The variable that a column of a GpuSort's child is computed from; NULL: it is no variable. */
static Node *
column_variable(const CustomScan *sort, AttrNumber attno)
{
	const CustomScan *feed = gs_plan_feed(sort);
	const TargetEntry *tle = get_tle_by_resno(outerPlan(feed ? feed : sort)->targetlist, attno);
	Node	   *bare = tle ? gs_plan_strip_relabel((Node *) tle->expr) : NULL;

	return bare && IsA(bare, Var) ? bare : NULL;
}

/* Do two columns of a GpuSort's child have the same value, apart from type and collation? */
static bool
same_column(const CustomScan *sort, AttrNumber a, AttrNumber b)
{
	Node	   *variable;

	if (a == b)
		return true;
	variable = column_variable(sort, a);
	return variable && equal(variable, column_variable(sort, b));
}

int
gs_plan_find_key(const CustomScan *plan, AttrNumber attno, Oid equality, Oid collation)
{
	const GsColumns keys = gs_plan_read(plan);
	const TargetEntry *tle = get_tle_by_resno(plan->scan.plan.targetlist, attno);

	if (tle == NULL || !IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != INDEX_VAR)
		return -1;
	for (int i = 0; i < keys.n; i++)
		if (same_column(plan, keys.attnos[i], ((Var *) tle->expr)->varattno) &&
			has_equality(keys.operators[i], keys.collations[i], collation) &&
			get_equality_op_for_ordering_op(keys.operators[i], NULL) == equality)
			return i;
	return -1;
}

int
gs_plan_find_argument(const CustomScan *plan, SortGroupClause *clause, List *args)
{
	Node	   *expr = get_sortgroupclause_expr(clause, args);
	const Var  *var = (const Var *) gs_plan_strip_relabel(expr);

	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return -1;
	return gs_plan_find_key(plan, var->varattno, clause->eqop, exprCollation(expr));
}

bool
gs_plan_find_keys(const CustomScan *plan, const GsColumns *columns, Bitmapset **found, bool *all)
{
	bool		are_keys = true;

	for (int i = 0; i < columns->n; i++)
	{
		int			key = gs_plan_find_key(plan, columns->attnos[i], columns->operators[i],
										   columns->collations[i]);

		if (key < 0)
			are_keys = false;
		else
			*found = bms_add_member(*found, key);
	}
	*all = bms_num_members(*found) == gs_plan_read(plan).n;
	return are_keys;
}

bool
gs_agg_read_input(GsAggInput *input, const Agg *agg)
{
	const Plan *child = outerPlan(agg);
	GsColumns	groups;
	bool		all;

	if (!gs_plan_agg_is_simple(agg))
		return false;
	memset(input, 0, sizeof(*input));
	input->agg = agg;
	if (IsA(child, Unique))
	{
		input->unique = (const Unique *) child;
		child = outerPlan(child);
	}
	if (!gs_node_is(child, &gs_sort_node))
		return false;
	input->sort = (const CustomScan *) child;
	groups = gs_columns_of_groups(&agg->plan);
	(void) gs_plan_find_keys(input->sort, &groups, &input->grouped, &all);
	return true;
}

/*
 * Rows of a group are equal in the columns of GROUP BY.  So the GpuSort's first columns may be any of these,
 * and its next ones must be the aggregate's.
 */
bool
gs_agg_is_sorted(const GsAggInput *input, List *clauses, List *args)
{
	const GsColumns keys = gs_plan_read(input->sort);
	int			i = 0;
	ListCell   *lc;

	while (bms_is_member(i, input->grouped))
		i++;
	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, args);
		Oid			collation = exprCollation(expr);
		int			key;

		if (IsA(expr, Const))
			continue;
		/* its equality says less than an operator that compares bytes, as ~<~ */
		if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
			return false;
		key = gs_plan_find_argument(input->sort, clause, args);
		if (key < 0)
			return false;
		/* rows that are equal in all columns before are equal in it */
		if (key < i || bms_is_member(key, input->grouped))
			continue;
		if (key > i || clause->sortop != keys.operators[i] || collation != keys.collations[i] ||
			clause->nulls_first != keys.nulls_first[i])
			return false;
		i++;
	}
	return true;
}
