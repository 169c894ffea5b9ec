/*-------------------------------------------------------------------------
 *
 * gpusort_keep.c
 *	  Rows of a GpuSort that the plan above does not need.
 *
 * Of rows that are equal in all sort columns the first one is enough
 *
 *	  - below a Unique, or a Group (GROUP BY without aggregates), by some or all of
 *		these columns: it returns the first row of each of its groups
 *	  - below an Agg by some or all of these columns, all of whose aggregates have
 *		a DISTINCT by some or all of them
 *
 * What is above still compares rows: GpuSort drops those only whose keys tell that
 * they are equal.  So nothing is asked of it but that no row is lost; for which the
 * equality of the sort must be that of the node above, operator and collation, column
 * by column.
 *
 * A Limit's bound reaches a sort as in PostgreSQL (gs_plan_sure_bound_below()), and
 * here through a Unique, each of whose groups is one row of the sort then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "nodes/gpusort.h"
#include "plan/plan_walk.h"

/* A GpuSort and the columns of its key that its parent compares. */
typedef struct KeepContext
{
	const CustomScan *sort;
	GsSortKeys	keys;
	Bitmapset  *compared;		/* numbers of keys */
	bool		possible;		/* aggregates only: all have been so far */
} KeepContext;

/* The key that a column of the sort's output is; -1: none with this equality. */
static int
find_key(const KeepContext *context, AttrNumber attno, Oid equality, Oid collation)
{
	const TargetEntry *tle = get_tle_by_resno(context->sort->scan.plan.targetlist, attno);
	const GsSortKeys *keys = &context->keys;

	if (tle == NULL || !IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != INDEX_VAR)
		return -1;
	for (int i = 0; i < keys->ncols; i++)
		if (keys->attnos[i] == ((Var *) tle->expr)->varattno && keys->collations[i] == collation &&
			get_equality_op_for_ordering_op(keys->operators[i], NULL) == equality)
			return i;
	return -1;
}

/* Are all columns that a node compares among the keys? */
static bool
compares_keys(KeepContext *context, int n, const AttrNumber *attnos, const Oid *operators,
			  const Oid *collations)
{
	for (int i = 0; i < n; i++)
	{
		int			key = find_key(context, attnos[i], operators[i], collations[i]);

		if (key < 0)
			return false;
		context->compared = bms_add_member(context->compared, key);
	}
	return true;
}

/* Has an aggregate a DISTINCT by columns among the keys, and no other use for rows? */
static bool
takes_one_of_equal(const KeepContext *context, const Aggref *agg)
{
	ListCell   *lc;

	if (agg->aggdistinct == NIL || agg->aggfilter || agg->aggdirectargs != NIL)
		return false;
	foreach(lc, agg->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, agg->args);
		const Var  *var = (const Var *) gs_tlist_strip_relabel(expr);

		if (IsA(var, Const))
			continue;
		if (!IsA(var, Var) || var->varno != OUTER_VAR ||
			find_key(context, var->varattno, clause->eqop, exprCollation(expr)) < 0)
			return false;
	}
	return true;
}

static bool
look_at_aggregates(Node *node, void *arg)
{
	KeepContext *context = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		context->possible &= takes_one_of_equal(context, (const Aggref *) node);
		return false;
	}
	return expression_tree_walker(node, look_at_aggregates, arg);
}

static bool
agg_takes_one_of_equal(KeepContext *context, const Agg *agg)
{
	if ((agg->aggstrategy != AGG_PLAIN && agg->aggstrategy != AGG_SORTED) ||
		agg->aggsplit != AGGSPLIT_SIMPLE || agg->groupingSets != NIL || agg->chain != NIL ||
		!compares_keys(context, agg->numCols, agg->grpColIdx, agg->grpOperators,
					   agg->grpCollations))
		return false;
	context->possible = true;
	(void) look_at_aggregates((Node *) agg->plan.targetlist, context);
	(void) look_at_aggregates((Node *) agg->plan.qual, context);
	return context->possible;
}

/* Would anybody notice that an output column is not computed for some rows? */
static bool
returns_columns_only(const Plan *sort)
{
	ListCell   *lc;

	foreach(lc, sort->targetlist)
		if (!IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return false;
	return true;
}

void
gs_keep_for_parent(const Plan *parent, double bound)
{
	KeepContext context = {0};
	CustomScan *sort = (CustomScan *) outerPlan(parent);
	bool		unique = false;
	int			flags;

	if ((!IsA(parent, Unique) && !IsA(parent, Group) && !IsA(parent, Agg)) ||
		!gs_node_is(&sort->scan.plan, &gs_sort_node) || !returns_columns_only(&sort->scan.plan))
		return;
	context.sort = sort;
	gs_plan_read(sort, &context.keys, &flags);
	if (IsA(parent, Unique))
	{
		const Unique *node = (const Unique *) parent;

		unique = compares_keys(&context, node->numCols, node->uniqColIdx, node->uniqOperators,
							   node->uniqCollations);
	}
	else if (IsA(parent, Group))
	{
		const Group *node = (const Group *) parent;

		unique = compares_keys(&context, node->numCols, node->grpColIdx, node->grpOperators,
							   node->grpCollations);
	}
	else
		unique = agg_takes_one_of_equal(&context, (const Agg *) parent);
	if (!unique)
		return;
	gs_plan_keep_unique(sort);
	if (!IsA(parent, Agg) && bms_num_members(context.compared) == context.keys.ncols)
	{
		sort->scan.plan.plan_rows = Min(sort->scan.plan.plan_rows, parent->plan_rows);
		if (IsA(parent, Unique))
			gs_plan_keep_bound(sort, bound);
	}
}
