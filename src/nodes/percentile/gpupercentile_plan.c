/*-------------------------------------------------------------------------
 *
 * gpupercentile_plan.c
 *	  Putting GpuPercentile between Agg and GpuSort.
 *
 *		Agg (percentile_disc(0.5) WITHIN GROUP (ORDER BY x), count(*))
 *		  -> GpuSort (g, x)
 *
 * becomes
 *
 *		Agg (value, count(*))
 *		  -> GpuPercentile (all columns, value)
 *			   -> GpuSort (g, x)
 *
 * The Agg takes the value from the first row of a group, as it does with the columns of
 * GROUP BY.  Without GROUP BY there may be no row to take it from.  So the Agg gets the empty
 * grouping set, GROUP BY (), which means the same: but where there are no rows it takes columns
 * to be NULL, which is what all of the functions return there.  An Agg that computes nothing
 * else gets the first row of each group only.
 *
 * Nothing is assumed of how the plan came about: operators, collations and columns are
 * compared (gpusort_agg.c).
 *
 * Tests: regress/percentiles
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"

#include "nodes/percentile/gpupercentile.h"
#include "nodes/sort/gpusort_agg.h"
#include "plan/plan_walk.h"

typedef struct PercentileContext
{
	GsAggInput	input;			/* of the Agg */
	const Aggref *order;		/* one of the functions; NULL: none was found */
	List	   *found;			/* the functions, each once */
	bool		others;			/* there are Aggrefs that stay */
	bool		possible;
} PercentileContext;

bool
gs_percentile_is_known(const Aggref *agg)
{
	switch (agg->aggfnoid)
	{
		case F_MODE:
			if (!gs_agg_may_compare(agg))
				return false;
			/* FALLTHROUGH */
		case F_PERCENTILE_DISC_FLOAT8_ANYELEMENT:
		case F_PERCENTILE_DISC__FLOAT8_ANYELEMENT:
		case F_PERCENTILE_CONT_FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT__FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT_FLOAT8_INTERVAL:
		case F_PERCENTILE_CONT__FLOAT8_INTERVAL:
			return list_length(agg->aggorder) == 1 && agg->aggfilter == NULL &&
				!contain_volatile_functions((Node *) agg) && !contain_subplans((Node *) agg);
		default:
			return false;
	}
}

bool
gs_percentile_same_order(const Aggref *a, const Aggref *b)
{
	SortGroupClause *ours = linitial_node(SortGroupClause, a->aggorder);
	SortGroupClause *theirs = linitial_node(SortGroupClause, b->aggorder);

	return ours->sortop == theirs->sortop && ours->nulls_first == theirs->nulls_first &&
		a->inputcollid == b->inputcollid &&
		equal(get_sortgroupclause_expr(ours, a->args), get_sortgroupclause_expr(theirs, b->args));
}

/* Do the Agg's rows come in a function's order, by a column? */
static bool
is_sorted(const Aggref *agg, const PercentileContext *context)
{
	Node	   *expr = get_sortgroupclause_expr(linitial(agg->aggorder), agg->args);

	return IsA(gs_plan_strip_relabel(expr), Var) &&
		gs_agg_is_sorted(&context->input, agg->aggorder, agg->args);
}

/* Sort out an Agg's aggregates. */
static bool
find_functions(Node *node, void *data)
{
	PercentileContext *context = data;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;

		if (!gs_percentile_is_known(agg))
			context->others = true;
		else if (!is_sorted(agg, context) ||
				 (context->order && !gs_percentile_same_order(agg, context->order)))
			context->possible = false;
		else
		{
			context->order = agg;
			context->found = list_append_unique(context->found, node);
		}
		return false;
	}
	return expression_tree_walker(node, find_functions, data);
}

/* The Agg's expressions with values in the place of the functions. */
static Node *
use_values(Node *node, void *data)
{
	const PercentileContext *context = data;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref) && gs_percentile_is_known((Aggref *) node))
	{
		const Aggref *agg = (const Aggref *) node;
		int			i = 0;

		while (!equal(list_nth(context->found, i), node))
			i++;
		return (Node *) makeVar(OUTER_VAR, list_length(outerPlan(context->input.agg)->targetlist) + i + 1,
								agg->aggtype, -1, agg->aggcollid, 0);
	}
	return expression_tree_mutator(node, use_values, data);
}

static bool
collect_aggrefs(Node *node, void *list)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		*(List **) list = lappend(*(List **) list, node);
		return false;
	}
	return expression_tree_walker(node, collect_aggrefs, list);
}

/* The executor has no room for numbers that no aggregate has. */
static void
renumber(Agg *agg)
{
	List	   *aggrefs = NIL;
	Bitmapset  *numbers = NULL;
	Bitmapset  *states = NULL;
	ListCell   *lc;

	(void) collect_aggrefs((Node *) agg->plan.targetlist, &aggrefs);
	(void) collect_aggrefs((Node *) agg->plan.qual, &aggrefs);
	foreach(lc, aggrefs)
	{
		numbers = bms_add_member(numbers, lfirst_node(Aggref, lc)->aggno);
		states = bms_add_member(states, lfirst_node(Aggref, lc)->aggtransno);
	}
	foreach(lc, aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		aggref->aggno = bms_member_index(numbers, aggref->aggno);
		aggref->aggtransno = bms_member_index(states, aggref->aggtransno);
	}
}

/* The node for the functions that were found. */
static CustomScan *
make_node(PercentileContext *context)
{
	const Agg  *agg = context->input.agg;
	Plan	   *sort = outerPlan(agg);
	GsColumns	groups = gs_columns_of_groups(&agg->plan);
	List	   *scan_tlist = gs_node_outer_tlist(sort->targetlist);
	ListCell   *lc;

	foreach(lc, context->found)
		scan_tlist = gs_node_add_column(scan_tlist, copyObject(lfirst(lc)));
	return gs_node_make(&gs_percentile_node, sort, gs_node_index_tlist(scan_tlist), scan_tlist, sort,
						list_make2(gs_columns_write(&groups),
								   list_make2_int(agg->aggstrategy == AGG_PLAIN, !context->others)));
}

Plan *
gs_percentile_replace(GsStepContext *step, Plan *plan)
{
	Agg		   *agg = (Agg *) plan;
	PercentileContext context;
	CustomScan *scan;

	memset(&context, 0, sizeof(context));
	if (!gs_agg_read_input(&context.input, agg) || context.input.unique)
		return plan;
	context.possible = true;
	(void) find_functions((Node *) agg->plan.targetlist, &context);
	(void) find_functions((Node *) agg->plan.qual, &context);
	if (!context.possible || context.order == NULL)
		return plan;
	scan = make_node(&context);
	agg->plan.targetlist = (List *) use_values((Node *) agg->plan.targetlist, &context);
	agg->plan.qual = (List *) use_values((Node *) agg->plan.qual, &context);
	renumber(agg);
	if (agg->aggstrategy == AGG_PLAIN)
		agg->groupingSets = list_make1(NIL);
	scan->scan.plan.plan_node_id = ++step->last_node_id;
	bms_free(scan->scan.plan.allParam);
	scan->scan.plan.allParam = bms_copy(agg->plan.allParam);
	outerPlan(agg) = &scan->scan.plan;
	return plan;
}
