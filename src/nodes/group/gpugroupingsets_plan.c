/*-------------------------------------------------------------------------
 *
 * gpugroupingsets_plan.c
 *	  Putting GpuGroupingSets in the place of an Agg that sorts its input several times.
 *
 *		GroupAggregate				GpuGroupingSets
 *		  Group Key: a				  -> GroupAggregate (a)
 *		  Sort Key: b				    -> GpuSpool
 *			Group Key: b				  -> GpuSort (a)
 *		  -> GpuSort (a)			  -> GroupAggregate (b)
 *									    -> GpuSort (b)
 *										  -> GpuSpool
 *
 * For each rollup but the first an Agg sorts its rows once more, in itself, by one process: they
 * are Sorts in Agg->chain of which the executor makes no nodes.  Here each rollup has an Agg of
 * its own.  The first GpuSpool keeps the rows that it passes on; the others read them.
 *
 * Of a rollup's rows the columns that it does not group by are NULL, if another rollup does.  An
 * Agg knows that of its own rollups only, so the others' columns are replaced by NULL in its expressions;
 * but not in the arguments of its aggregates, other than direct ones.  GROUPING() says right of them that
 * they are not grouped by.
 *
 * EXPLAIN finds out what a column is by looking it up in the nodes below, and there are none below
 * the second GpuSpool, nor one that stands for all sets below GpuGroupingSets.  So the scan tuples of these
 * have the expressions in terms of the tables.  Nobody evaluates them.
 *
 * The chain stays where Aggs have hash tables as well (AGG_MIXED), and where an expression cannot
 * be there twice: subplans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "nodes/group/gpugroupingsets.h"
#include "plan/array_calls.h"

typedef struct Resolve
{
	const Plan *plan;			/* whose expression it is */
	bool		failed;
} Resolve;

static const TargetEntry *
column_of(const Plan *plan, AttrNumber attno)
{
	return plan ? get_tle_by_resno(plan->targetlist, attno) : NULL;
}

/* The node that a node's OUTER_VAR refers to. */
static const Plan *
outer_of(const Plan *plan)
{
	if (IsA(plan, Append))
		return linitial(((const Append *) plan)->appendplans);
	if (IsA(plan, MergeAppend))
		return linitial(((const MergeAppend *) plan)->mergeplans);
	return outerPlan(plan);
}

/* The columns that a node's INDEX_VAR refers to. */
static List *
scan_tuple_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexOnlyScan:
			return ((const IndexOnlyScan *) plan)->indextlist;
		case T_ForeignScan:
			return ((const ForeignScan *) plan)->fdw_scan_tlist;
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_scan_tlist;
		default:
			return NIL;
	}
}

/* An expression of a node's target list in terms of tables. */
static Node *
resolve(Node *node, void *context)
{
	Resolve    *state = context;
	Resolve		below = *state;
	const TargetEntry *column;
	const Var  *var = (const Var *) node;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var) || !IS_SPECIAL_VARNO(var->varno))
		return expression_tree_mutator(node, resolve, context);
	check_stack_depth();
	switch (var->varno)
	{
		case OUTER_VAR:
			below.plan = outer_of(state->plan);
			column = column_of(below.plan, var->varattno);
			break;
		case INNER_VAR:
			below.plan = innerPlan(state->plan);
			column = column_of(below.plan, var->varattno);
			break;
		default:
			column = get_tle_by_resno(scan_tuple_of(state->plan), var->varattno);
			break;
	}
	if (column == NULL)
	{
		state->failed = true;
		return NULL;
	}
	node = resolve((Node *) column->expr, &below);
	state->failed |= below.failed;
	return node;
}

/* A plan's target list in terms of tables; NIL: there is a column of which that is not known. */
static List *
resolve_tlist(const Plan *plan)
{
	Resolve		state = {plan, false};
	List	   *tlist = NIL;
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Node	   *expr = resolve((Node *) tle->expr, &state);

		if (state.failed)
			return NIL;
		tle = flatCopyTargetEntry(tle);
		tle->expr = (Expr *) expr;
		tlist = lappend(tlist, tle);
	}
	return tlist;
}

/* Has it an expression that another rollup's Agg could not have as well? */
static bool
needs_one_agg(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Aggref) && gs_compat_aggref_presorted((Aggref *) node)))
		return true;
	return expression_tree_walker(node, needs_one_agg, context);
}

static bool
can_be_split(const Agg *agg)
{
	List	   *exprs = list_make2(agg->plan.targetlist, agg->plan.qual);
	List	   *array_calls = NIL;
	ListCell   *lc;

	if (agg->aggstrategy != AGG_SORTED || agg->aggsplit != AGGSPLIT_SIMPLE)
		return false;
	foreach(lc, agg->chain)
	{
		const Agg  *rollup = lfirst_node(Agg, lc);

		if (rollup->aggstrategy != AGG_SORTED || outerPlan(rollup) == NULL || !IsA(outerPlan(rollup), Sort))
			return false;
	}
	/* a GpuArraySort wants them in one node */
	(void) gs_array_calls_find((Node *) exprs, false, false, &array_calls);
	(void) gs_array_calls_find((Node *) exprs, false, true, &array_calls);
	return array_calls == NIL && !needs_one_agg((Node *) exprs, NULL);
}

/* Files of a spool's rows cost so much, if they do not fit into memory: once to write and once to read. */
static Cost
file_cost(const Plan *input)
{
	double		bytes = input->plan_rows * (input->plan_width + MAXALIGN(SizeofMinimalTupleHeader));

	return bytes > work_mem * 1024.0 ? seq_page_cost * bytes / BLCKSZ : 0;
}

/* What it costs to keep rows, as cost_material() has it. */
static Cost
keep_cost(const Plan *input)
{
	return 2 * cpu_operator_cost * input->plan_rows + file_cost(input);
}

/* The GpuSpool that keeps the rows of its child. */
static CustomScan *
make_keeper(Plan *input, int *last_node_id)
{
	List	   *columns = gs_node_outer_tlist(input->targetlist);
	CustomScan *spool = gs_node_make(&gs_spool_node, input, gs_node_index_tlist(columns), columns, input,
									 NIL);

	spool->scan.plan.total_cost += keep_cost(input);
	spool->scan.plan.plan_node_id = ++*last_node_id;
	return spool;
}

/* A GpuSpool that reads those rows.  columns: what they are, in terms of tables. */
static CustomScan *
make_reader(const Plan *input, const List *columns, int *last_node_id)
{
	List	   *copy = (List *) copyObjectImpl(columns);
	CustomScan *spool = gs_node_make(&gs_spool_node, input, gs_node_index_tlist(copy), copy, NULL, NIL);

	gs_compat_copy_disabled(&spool->scan.plan, NULL);
	spool->scan.plan.startup_cost = 0;
	spool->scan.plan.total_cost = cpu_operator_cost * input->plan_rows + file_cost(input);
	spool->scan.plan.plan_node_id = ++*last_node_id;
	return spool;
}

/* The Sort of a rollup over a reader, whose target list and costs the planner has left out. */
static Sort *
make_sort(const Sort *like, CustomScan *reader, Cost keeping, int *last_node_id)
{
	Plan	   *input = &reader->scan.plan;
	Sort	   *sort = makeNode(Sort);
	Cost		cost = gs_compat_cost_sort(input->plan_rows, input->plan_width, work_mem);

	*sort = *like;
	sort->plan.targetlist = gs_node_outer_tlist(input->targetlist);
	sort->plan.qual = NIL;
	sort->plan.lefttree = input;
	sort->plan.initPlan = NIL;
	gs_compat_copy_disabled(&sort->plan, input);
	sort->plan.extParam = bms_copy(input->extParam);
	sort->plan.allParam = bms_copy(input->allParam);
	sort->plan.plan_rows = input->plan_rows;
	sort->plan.plan_width = input->plan_width;
	sort->plan.plan_node_id = ++*last_node_id;

	/*
	 * PostgreSQL's sort has no need of spools.  So it is worth while to replace it, if what does costs
	 * less than the sort without their part.
	 */
	cost -= input->total_cost + keeping;
	sort->plan.startup_cost = sort->plan.total_cost = input->total_cost + Max(cost, 0);
	return sort;
}

List *
gs_grouping_sets_sorts(const Agg *agg, int *last_node_id)
{
	const Plan *input = outerPlan(agg);
	List	   *columns;
	List	   *sorts = NIL;
	ListCell   *lc;

	if (!can_be_split(agg))
		return NIL;
	columns = resolve_tlist(input);
	if (columns == NIL || resolve_tlist(&agg->plan) == NIL)
		return NIL;
	foreach(lc, agg->chain)
	{
		const Sort *sort = (const Sort *) outerPlan(lfirst_node(Agg, lc));
		CustomScan *reader = make_reader(input, columns, last_node_id);

		sorts = lappend(sorts, make_sort(sort, reader, keep_cost(input), last_node_id));
	}
	return sorts;
}

typedef struct Rollup
{
	const Bitmapset *all;		/* the columns by which some rollup groups */
	const Bitmapset *own;		/* those by which this one does */
	bool		one_set;		/* and it has no other set than these */
} Rollup;

/* An expression of the Agg for all rollups, as one of this rollup's. */
static Node *
use_rollup(Node *node, void *context)
{
	const Rollup *rollup = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		/* its arguments are evaluated at rows of the input, but direct ones once a group */
		Aggref	   *agg = (Aggref *) copyObjectImpl(node);

		agg->aggdirectargs = (List *) use_rollup((Node *) agg->aggdirectargs, context);
		return (Node *) agg;
	}
	if (IsA(node, GroupingFunc))
	{
		int			bits = 0;
		ListCell   *lc;

		if (!rollup->one_set)
			return (Node *) copyObjectImpl(node);
		foreach(lc, ((GroupingFunc *) node)->cols)
			bits = bits << 1 | !bms_is_member(lfirst_int(lc), rollup->own);
		return (Node *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(bits), false, true);
	}
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR &&
		bms_is_member(((Var *) node)->varattno, rollup->all) &&
		!bms_is_member(((Var *) node)->varattno, rollup->own))
		return (Node *) makeNullConst(exprType(node), exprTypmod(node), exprCollation(node));
	return expression_tree_mutator(node, use_rollup, context);
}

static Bitmapset *
add_columns(Bitmapset *columns, const Agg *rollup)
{
	for (int i = 0; i < rollup->numCols; i++)
		columns = bms_add_member(columns, rollup->grpColIdx[i]);
	return columns;
}

/* One rollup's Agg, over its input. */
static Agg *
make_rollup(const Agg *all, const Agg *like, Bitmapset *all_columns, Plan *input, int *last_node_id)
{
	Agg		   *agg = makeNode(Agg);
	Rollup		rollup = {.all = all_columns, .own = add_columns(NULL, like)};

	rollup.one_set = list_length(like->groupingSets) == 1 && like->numCols > 0;
	*agg = *like;
	agg->chain = NIL;
	agg->groupingSets = rollup.one_set ? NIL : (List *) copyObjectImpl(like->groupingSets);
	agg->aggParams = bms_copy(all->aggParams);
	agg->plan.targetlist = (List *) use_rollup((Node *) all->plan.targetlist, &rollup);
	agg->plan.qual = (List *) use_rollup((Node *) all->plan.qual, &rollup);
	agg->plan.lefttree = input;
	agg->plan.initPlan = NIL;
	agg->plan.extParam = bms_copy(all->plan.extParam);
	agg->plan.allParam = bms_copy(all->plan.allParam);
	agg->plan.parallel_safe = all->plan.parallel_safe;
	agg->plan.plan_node_id = ++*last_node_id;
	agg->plan.plan_rows = like->numGroups;
	agg->plan.plan_width = all->plan.plan_width;
	agg->plan.startup_cost = input->startup_cost;
	agg->plan.total_cost = input->total_cost + cpu_operator_cost * like->numCols * input->plan_rows;
	return agg;
}

CustomScan *
gs_grouping_sets_make(Agg *agg, List *sorts, int *last_node_id)
{
	List	   *columns = resolve_tlist(&agg->plan);
	CustomScan *result = gs_node_make(&gs_grouping_sets_node, &agg->plan,
									  gs_node_index_tlist(agg->plan.targetlist), columns, NULL, NIL);
	CustomScan *spool = make_keeper(outerPlan(agg), last_node_id);
	Bitmapset  *all_columns = add_columns(NULL, agg);
	ListCell   *lc;
	ListCell   *sort;

	foreach(lc, agg->chain)
		all_columns = add_columns(all_columns, lfirst_node(Agg, lc));
	result->custom_plans = list_make1(make_rollup(agg, agg, all_columns, &spool->scan.plan, last_node_id));
	forboth(lc, agg->chain, sort, sorts)
		result->custom_plans = lappend(result->custom_plans,
									   make_rollup(agg, lfirst_node(Agg, lc), all_columns,
												   (Plan *) lfirst_node(Sort, sort), last_node_id));
	result->scan.plan.initPlan = agg->plan.initPlan;
	return result;
}
