/*-------------------------------------------------------------------------
 *
 * gpucount_plan.c
 *	  Putting GpuCount in the place of an Agg.
 *
 *		Agg (count(DISTINCT x))					GpuCount (count(DISTINCT x))
 *		  [-> Unique (x)]						  -> GpuSort (x)
 *			 -> GpuSort (x)
 *
 *		Agg (count(*))							GpuCount (count(*))
 *		  [-> SubqueryScan]						  -> GpuSort (x, y)
 *			 -> Unique (x, y)
 *				  -> GpuSort (x, y)
 *
 *		GroupAggregate (x, count(*))			GpuCount (x, count(*))
 *		  -> GpuSort (x)						  -> GpuSort (x)
 *
 * In the first two nobody sees the rows' order, nor which of equal texts was kept; so texts are
 * sorted by their bytes, whatever their collation is.
 *
 * Nothing is assumed of how the plan came about: operators, collations and columns are
 * compared.  What the Agg computes of the number, and HAVING, moves to GpuCount: the
 * number is the last column of its scan tuple, behind those of the first row of a group, and
 * expressions refer to them by INDEX_VAR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "nodes/group/gpucount.h"
#include "nodes/sort/gpusort.h"

typedef struct CountContext
{
	const Unique *unique;		/* NULL: there is none */
	CustomScan *sort;
	GsSortKeys	keys;			/* of sort */
	bool		grouped;		/* by all keys */
	bool		renumbered;		/* the Agg's columns are not those of the sort's output */
	const Aggref *found;		/* one of the aggregates, which are all alike */
	bool		possible;
} CountContext;

/* The key that a column of the GpuSort's output is, with this equality; -1: none is. */
static int
find_key(const CountContext *context, AttrNumber attno, Oid equality, Oid collation)
{
	/* others take different texts to be equal, and sorting by bytes would not */
	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		return -1;
	return gs_plan_find_key(context->sort, &context->keys, attno, equality, collation);
}

/* Does a node take the rows to be equal that are so in all keys, and no others? */
static bool
compares_all_keys(const CountContext *context, int n, const AttrNumber *attnos,
				  const Oid *operators, const Oid *collations)
{
	Bitmapset  *compared = NULL;

	for (int i = 0; i < n; i++)
	{
		int			key = find_key(context, attnos[i], operators[i], collations[i]);

		if (key < 0)
			return false;
		compared = bms_add_member(compared, key);
	}
	return bms_num_members(compared) == context->keys.ncols;
}

/* Is it count(*) of different rows or of a group, or count(DISTINCT x) of rows sorted by x? */
static bool
counts_different_rows(const CountContext *context, const Aggref *agg)
{
	SortGroupClause *clause;
	Node	   *expr;
	const Var  *var;

	if (agg->aggfilter || agg->aggsplit != AGGSPLIT_SIMPLE)
		return false;
	if (agg->aggfnoid == F_COUNT_)
		return context->grouped || context->unique != NULL;
	if (context->grouped || context->renumbered || agg->aggfnoid != F_COUNT_ANY ||
		list_length(agg->aggdistinct) != 1 || list_length(agg->args) != 1 ||
		context->keys.ncols != 1 || !gs_agg_may_compare(agg))
		return false;
	clause = linitial_node(SortGroupClause, agg->aggdistinct);
	expr = get_sortgroupclause_expr(clause, agg->args);
	var = (const Var *) gs_tlist_strip_relabel(expr);
	return IsA(var, Var) && var->varno == OUTER_VAR &&
		find_key(context, var->varattno, clause->eqop, exprCollation(expr)) == 0;
}

static bool
look_at_aggregates(Node *node, void *data)
{
	CountContext *context = data;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;

		if (!counts_different_rows(context, agg) ||
			(context->found && context->found->aggfnoid != agg->aggfnoid))
			context->possible = false;
		context->found = agg;
		return false;
	}
	/* GROUPING() is evaluated by an Agg only */
	if (IsA(node, GroupingFunc) || (IsA(node, Var) && !context->grouped))
		context->possible = false;
	return expression_tree_walker(node, look_at_aggregates, data);
}

/* The Agg's expressions with columns of the scan tuple in the place of columns and aggregates. */
static Node *
use_scan_tuple(Node *node, void *data)
{
	const int  *number = data;	/* the number's column */

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return (Node *) makeVar(INDEX_VAR, *number, INT8OID, -1, InvalidOid, 0);
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
	{
		Var		   *var = (Var *) copyObjectImpl(node);

		var->varno = INDEX_VAR;
		return (Node *) var;
	}
	return expression_tree_mutator(node, use_scan_tuple, data);
}

/* What is below an Agg; false: no GpuSort whose rows it gets. */
static bool
find_input(CountContext *context, const Agg *agg)
{
	Plan	   *child = outerPlan(agg);
	int			flags;

	if ((agg->aggstrategy != AGG_PLAIN && agg->aggstrategy != AGG_SORTED) ||
		agg->aggsplit != AGGSPLIT_SIMPLE || agg->groupingSets != NIL || agg->chain != NIL)
		return false;
	context->grouped = agg->aggstrategy == AGG_SORTED;
	/* it only says which columns the query above sees; to count rows none is needed */
	if (!context->grouped && IsA(child, SubqueryScan) && child->qual == NIL &&
		child->initPlan == NIL && IsA(((SubqueryScan *) child)->subplan, Unique))
	{
		child = ((SubqueryScan *) child)->subplan;
		context->renumbered = true;
	}
	if (!context->grouped && IsA(child, Unique))
	{
		context->unique = (const Unique *) child;
		if (child->initPlan != NIL)
			return false;
		child = outerPlan(child);
	}
	if (!gs_node_is(child, &gs_sort_node))
		return false;
	context->sort = (CustomScan *) child;
	gs_plan_read(context->sort, &context->keys, &flags);
	/* other expressions would not be computed for rows that are dropped */
	if (!context->grouped && !gs_plan_returns_columns(context->sort))
		return false;
	if (context->grouped)
		return compares_all_keys(context, agg->numCols, agg->grpColIdx, agg->grpOperators,
								 agg->grpCollations);
	if (context->unique)
		return compares_all_keys(context, context->unique->numCols, context->unique->uniqColIdx,
								 context->unique->uniqOperators,
								 context->unique->uniqCollations);
	return true;
}

/* The columns of the GpuSort's output that are its keys, in their order. */
static List *
key_columns(const CountContext *context)
{
	List	   *columns = NIL;

	for (int i = 0; i < context->keys.ncols; i++)
	{
		ListCell   *lc;

		foreach(lc, context->sort->scan.plan.targetlist)
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc);

			if (IsA(tle->expr, Var) && ((Var *) tle->expr)->varno == INDEX_VAR &&
				((Var *) tle->expr)->varattno == context->keys.attnos[i])
			{
				columns = lappend_int(columns, tle->resno);
				break;
			}
		}
	}
	return columns;
}

Plan *
gs_count_replace(Agg *agg)
{
	CountContext context;
	List	   *items[GS_COUNT_Count] = {NIL};
	List	   *lists = NIL;
	List	   *scan_tlist = NIL;
	int			number;
	CustomScan *scan;
	ListCell   *lc;

	memset(&context, 0, sizeof(context));
	context.possible = true;
	if (!find_input(&context, agg))
		return &agg->plan;
	(void) look_at_aggregates((Node *) agg->plan.targetlist, &context);
	(void) look_at_aggregates((Node *) agg->plan.qual, &context);
	if (!context.possible || context.found == NULL)
		return &agg->plan;

	items[GS_COUNT_ATTNOS] = key_columns(&context);
	for (int i = 0; i < context.keys.ncols; i++)
	{
		items[GS_COUNT_OPERATORS] =
			lappend_oid(items[GS_COUNT_OPERATORS],
						get_equality_op_for_ordering_op(context.keys.operators[i], NULL));
		items[GS_COUNT_COLLATIONS] = lappend_oid(items[GS_COUNT_COLLATIONS],
												 context.keys.collations[i]);
	}
	items[GS_COUNT_FUNCTION] = list_make1_oid(context.found->aggfnoid);
	items[GS_COUNT_SKIPS_NULL] = list_make1_int(context.found->aggfnoid == F_COUNT_ANY);
	items[GS_COUNT_GROUPED] = list_make1_int(context.grouped);
	for (int i = 0; i < GS_COUNT_Count; i++)
		lists = lappend(lists, items[i]);

	if (context.grouped)
		foreach(lc, context.sort->scan.plan.targetlist)
		{
			TargetEntry *tle = lfirst_node(TargetEntry, lc);

			scan_tlist = lappend(scan_tlist,
								 makeTargetEntry((Expr *) makeVarFromTargetEntry(OUTER_VAR, tle),
												 tle->resno, NULL, false));
		}
	/* EXPLAIN shows the number so; nobody evaluates it */
	number = list_length(scan_tlist) + 1;
	scan_tlist = lappend(scan_tlist, makeTargetEntry((Expr *) copyObjectImpl(context.found),
													 number, NULL, false));
	scan = gs_node_make(&gs_count_node, &agg->plan,
						(List *) use_scan_tuple((Node *) agg->plan.targetlist, &number), scan_tlist,
						&context.sort->scan.plan, lists);
	scan->scan.plan.qual = (List *) use_scan_tuple((Node *) agg->plan.qual, &number);
	scan->scan.plan.initPlan = agg->plan.initPlan;
	if (!context.grouped)
	{
		gs_plan_keep_unique(context.sort);
		gs_plan_forget_order(context.sort);
	}
	return &scan->scan.plan;
}
