/*-------------------------------------------------------------------------
 *
 * gpusort_agg_path.c
 *	  Offering GpuSort for the sorts of aggregates with DISTINCT or ORDER BY.
 *
 * Before PostgreSQL 16 an aggregate with DISTINCT or ORDER BY sorts its input by
 * itself, in one process: that sort is no node of the plan, and not part of its
 * cost.  Later versions sort the input by a Sort node, which is replaced like
 * any other.  Here the same is done for the older ones:
 *
 *		Agg -> GpuSort -> cheapest path
 *		Agg -> GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * sorted by the columns of GROUP BY, then by the aggregate's.  Where all
 * aggregates have the same DISTINCT, a Unique above the GpuSort drops the rows
 * that they would have dropped; where they count them and nothing else, GpuGroup takes
 * the place of Agg and Unique (gpucount_plan.c), and no rows come back.
 *
 * Whether an aggregate then does without its own sort is decided again for the
 * finished plan, by what stands in it (gpusort_agg_plan.c).  An aggregate that
 * sorts what is sorted already gives the same result.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "guc.h"
#include "key/key.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_rivals.h"
#include "plan/sort_cost.h"
#include "service/service_client.h"

#ifndef GS_COMPAT_PRESORTED_AGGREGATES

/* What to sort the input of an Agg by, beyond the columns of GROUP BY. */
typedef struct AggOrder
{
	const Aggref *agg;			/* one of those that want this order */
	List	   *pathkeys;		/* with those of GROUP BY */
	bool		unique;			/* all aggregates have the same DISTINCT */
	bool		count_only;		/* and all there is to know is how many rows differ */
	int			served;			/* how many sorts this one saves */
} AggOrder;

/* SortGroupClauses that say how an aggregate sorts; NIL: it does not. */
static List *
sort_clauses(const Aggref *agg)
{
	if (AGGKIND_IS_ORDERED_SET(agg->aggkind))
		return NIL;
	return agg->aggdistinct != NIL ? agg->aggdistinct : agg->aggorder;
}

/* Can this aggregate do without a sort if its input comes in order? */
static bool
takes_order(const Aggref *agg)
{
	List	   *clauses = sort_clauses(agg);
	ListCell   *lc;

	if (clauses == NIL || contain_volatile_functions((Node *) agg))
		return false;
	/* the first of equal rows may be one that the filter keeps away */
	if (agg->aggdistinct != NIL &&
		(agg->aggfilter || !gs_agg_takes_any_equal(agg) || !gs_agg_may_compare(agg)))
		return false;
	foreach(lc, clauses)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), agg->args);

		Oid			collation = exprCollation(expr);

		if (contain_subplans(expr) ||
			(OidIsValid(collation) && !get_collation_isdeterministic(collation)))
			return false;
		/* it would be evaluated for rows that the filter keeps away from it */
		if (agg->aggfilter && !IsA(gs_tlist_strip_relabel(expr), Var))
			return false;
	}
	return true;
}

/* Have all aggregates of a query the same DISTINCT, so that a Unique below does it? */
static bool
same_distinct(const PlannerInfo *root)
{
	const Aggref *first = ((const AggInfo *) linitial(root->agginfos))->representative_aggref;
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;

		if (agg->aggdistinct == NIL || !takes_order(agg) || !gs_agg_equal_distinct(agg, first))
			return false;
	}
	return true;
}

/* Is all that a query wants the number of its different values?  same_distinct() is true. */
static bool
counts_only(const PlannerInfo *root)
{
	ListCell   *lc;

	if (root->parse->groupClause != NIL)
		return false;
	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;

		if (agg->aggfnoid != F_COUNT_ANY || list_length(agg->aggdistinct) != 1)
			return false;
	}
	return true;
}

static bool
has_class(List *pathkeys, const PathKey *key)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
		if (lfirst_node(PathKey, lc)->pk_eclass == key->pk_eclass)
			return true;
	return false;
}

/*
 * The order of an aggregate as pathkeys, behind those of GROUP BY.  NIL: there is
 * nothing to sort by, or a column has no pathkey of its own, because the query
 * makes it equal to another one or to a constant.  In the finished plan that
 * could not be seen (gpusort_agg_plan.c).
 */
static List *
order_pathkeys(PlannerInfo *root, const Aggref *agg)
{
	List	   *pathkeys = list_copy(root->group_pathkeys);
	List	   *exprs = get_sortgrouplist_exprs(root->parse->groupClause, root->processed_tlist);
	ListCell   *lc;

	foreach(lc, sort_clauses(agg))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, agg->args);
		List	   *keys;

		if (IsA(expr, Const) || list_member(exprs, expr))
			continue;
		keys = make_pathkeys_for_sortclauses(root, list_make1(clause), agg->args);
		if (keys == NIL || has_class(pathkeys, linitial(keys)))
			return NIL;
		pathkeys = list_concat(pathkeys, keys);
		exprs = lappend(exprs, expr);
	}
	return pathkeys;
}

/* How many sorts of aggregates an order saves; aggregates that share a state share one. */
static int
count_served(PlannerInfo *root, List *pathkeys)
{
	Bitmapset  *states = NULL;
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);
		const Aggref *agg = info->representative_aggref;
		List	   *wanted;

		if (!takes_order(agg))
			continue;
		wanted = order_pathkeys(root, agg);
		if (wanted != NIL && pathkeys_contained_in(wanted, pathkeys))
			states = bms_add_member(states, info->transno);
	}
	return bms_num_members(states);
}

/* The order that saves most sorts. */
static bool
choose_order(PlannerInfo *root, AggOrder *order)
{
	ListCell   *lc;

	memset(order, 0, sizeof(*order));
	if (same_distinct(root))
	{
		Bitmapset  *states = NULL;

		foreach(lc, root->agginfos)
			states = bms_add_member(states, ((const AggInfo *) lfirst(lc))->transno);
		order->agg = ((const AggInfo *) linitial(root->agginfos))->representative_aggref;
		order->pathkeys = order_pathkeys(root, order->agg);
		order->unique = true;
		order->count_only = counts_only(root);
		order->served = bms_num_members(states);
		return order->pathkeys != NIL;
	}
	foreach(lc, root->agginfos)
	{
		const Aggref *agg = ((const AggInfo *) lfirst(lc))->representative_aggref;
		List	   *pathkeys;
		int			served;

		if (!gs_agg_ignores_order(agg))
			return false;
		if (!takes_order(agg))
			continue;
		pathkeys = order_pathkeys(root, agg);
		served = count_served(root, pathkeys);
		if (pathkeys != NIL && served > order->served)
		{
			order->agg = agg;
			order->pathkeys = pathkeys;
			order->served = served;
		}
	}
	return order->served > 0;
}

/* Can gpusort sort by the columns of GROUP BY and the aggregate's? */
static bool
is_supported(const PlannerInfo *root, const Aggref *agg)
{
	List	   *group = root->parse->groupClause;
	List	   *clauses = list_concat_copy(group, sort_clauses(agg));
	int			n = list_length(clauses);
	AttrNumber *attnos = palloc(n * sizeof(AttrNumber));
	Oid		   *operators = palloc(n * sizeof(Oid));
	Oid		   *collations = palloc(n * sizeof(Oid));
	bool	   *nulls_first = palloc(n * sizeof(bool));
	Oid		   *types = palloc(n * sizeof(Oid));
	GsRefusal	refusal;

	for (int i = 0; i < n; i++)
	{
		SortGroupClause *clause = list_nth_node(SortGroupClause, clauses, i);
		Node	   *expr = get_sortgroupclause_expr(clause, i < list_length(group) ?
													root->processed_tlist : agg->args);

		attnos[i] = i + 1;
		operators[i] = clause->sortop;
		collations[i] = exprCollation(expr);
		nulls_first[i] = clause->nulls_first;
		types[i] = exprType(expr);
	}
	return gs_key_desc_create(n, attnos, operators, collations, nulls_first, types,
							  &refusal) != NULL;
}

/*
 * Find the expressions that the aggregate sorts by and that input has no column
 * for.  A variable under another type or collation will do.  False: input has
 * another expression so, which the Sort would take for the aggregate's.
 */
static bool
find_missing(const PathTarget *input, const Aggref *agg, List **missing)
{
	ListCell   *lc;

	*missing = NIL;
	foreach(lc, sort_clauses(agg))
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), agg->args);
		Node	   *bare = gs_tlist_strip_relabel(expr);
		ListCell   *column;

		if (IsA(expr, Const))
			continue;
		foreach(column, input->exprs)
			if (equal(gs_tlist_strip_relabel(lfirst(column)), bare))
				break;
		if (column == NULL)
			*missing = lappend(*missing, expr);
		else if (!IsA(bare, Var) && !equal(lfirst(column), expr))
			return false;
	}
	return true;
}

/* A path that has these columns as well. */
static Path *
add_columns(PlannerInfo *root, RelOptInfo *rel, Path *path, List *columns)
{
	PathTarget *target;

	if (columns == NIL)
		return path;
	target = copy_pathtarget(path->pathtarget);
	add_new_columns_to_pathtarget(target, columns);
	target = set_pathtarget_cost_width(root, target);
	return (Path *) create_projection_path(root, rel, path, target);
}

/* How many rows are left when a Unique has dropped those that are equal in order's columns. */
static double
distinct_rows(PlannerInfo *root, const AggOrder *order, double rows)
{
	List	   *exprs = list_concat(get_sortgrouplist_exprs(root->parse->groupClause,
															root->processed_tlist),
									get_sortgrouplist_exprs(sort_clauses(order->agg),
															order->agg->args));

	return estimate_num_groups(root, exprs, rows, NULL, NULL);
}

/* An Agg like PostgreSQL's, over sorted rows. */
static Path *
make_agg_path(PlannerInfo *root, RelOptInfo *rel, const AggPath *like, Path *sorted,
			  const AggOrder *order)
{
	AggClauseCosts costs;
	AggPath    *path;

	if (order->unique)
		sorted = gs_compat_unique_path(root, rel, sorted, list_length(order->pathkeys), sorted->rows);
	MemSet(&costs, 0, sizeof(costs));
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	path = create_agg_path(root, rel, sorted, like->path.pathtarget, like->aggstrategy,
						   AGGSPLIT_SIMPLE, like->groupClause, like->qual, &costs,
						   like->numGroups);
	if (order->agg->aggdistinct != NIL && !order->unique)
	{
		/* GpuWindow compares rows, as Unique does */
		path->path.total_cost += cpu_operator_cost * sorted->rows * list_length(order->pathkeys);
	}
	/* the aggregate's columns are not those of its result */
	if (path->path.pathkeys != NIL)
		path->path.pathkeys = root->group_pathkeys;
	return &path->path;
}

/* One of the paths for the Agg; NULL: none does it as a whole. */
static AggPath *
find_agg_path(const RelOptInfo *grouped_rel)
{
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		AggPath    *path = lfirst(lc);

		if (IsA(path, AggPath) && path->aggsplit == AGGSPLIT_SIMPLE &&
			(path->aggstrategy == AGG_PLAIN || path->aggstrategy == AGG_SORTED))
			return path;
	}
	return NULL;
}

/*
 * Does a path cost less than all that PostgreSQL has?  Without groups nothing is
 * saved but the aggregate's sort.  Then a parallel scan alone is no reason: its
 * workers do not make the sort faster.
 */
static bool
is_cheapest(const PlannerInfo *root, const Path *path, const RelOptInfo *grouped_rel,
			const AggOrder *order)
{
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		const Path *other = lfirst(lc);
		Cost		inside = 0;

		if (IsA(other, AggPath))
		{
			const AggPath *agg = (const AggPath *) other;
			double		rows = agg->subpath->rows;
			int			width = agg->subpath->pathtarget->width;

			inside = gs_cost_inner_sorts(agg, order->agg, order->served,
										 pathkeys_contained_in(order->pathkeys,
															   agg->subpath->pathkeys));
			if (agg->aggstrategy == AGG_PLAIN &&
				inside <= (order->count_only ? gs_cost_sort_startup(rows, rows, width) :
						   gs_cost_sort(rows, rows, width)))
				return false;
		}
		if (other->total_cost + inside <= path->total_cost)
			return false;
		/* not all groups may be wanted, and this one returns the first one sooner */
		if (root->tuple_fraction > 0 && other->startup_cost < path->startup_cost &&
			!(IsA(other, AggPath) && ((const AggPath *) other)->aggstrategy == AGG_PLAIN))
			return false;
	}
	return true;
}

void
gs_agg_offer_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	const AggPath *like;
	AggOrder	order;
	List	   *missing;
	double		rows_back;
	int			flags;
	Path	   *path;

	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL || cheapest == NULL ||
		cheapest->param_info != NULL || IS_OTHER_REL(grouped_rel))
		return;
	if (!gs_guc_force && (!enable_sort || cheapest->rows < gs_guc_min_rows))
		return;
	like = find_agg_path(grouped_rel);
	if (like == NULL || !gs_client_service_ready() || !choose_order(root, &order) ||
		!is_supported(root, order.agg) ||
		!find_missing(cheapest->pathtarget, order.agg, &missing))
		return;

	flags = gs_sort_path_flags(root);
	if (order.count_only)
		rows_back = 1;			/* GpuGroup needs no more (gpugroup_exec.c) */
	else
		rows_back = order.unique ? distinct_rows(root, &order, cheapest->rows) : cheapest->rows;
	path = gs_sort_path(root, grouped_rel, add_columns(root, input_rel, cheapest, missing),
						order.pathkeys, cheapest->rows, rows_back, false, flags);
	if (input_rel->partial_pathlist != NIL && is_parallel_safe(root, (Node *) missing))
	{
		Path	   *partial = add_columns(root, input_rel, linitial(input_rel->partial_pathlist),
										  missing);
		Path	   *gather = gs_sort_feed_path(root, grouped_rel, partial);
		Path	   *parallel = gs_sort_path(root, grouped_rel, gather, order.pathkeys,
											cheapest->rows, rows_back, true, flags);

		if (parallel->total_cost < path->total_cost)
			path = parallel;
	}
	path = make_agg_path(root, grouped_rel, like, path, &order);
	if (!gs_guc_force && !is_cheapest(root, path, grouped_rel, &order))
		return;
	/* the costs of the others lack the sorts */
	grouped_rel->pathlist = list_make1(path);
}

#endif							/* GS_COMPAT_PRESORTED_AGGREGATES */
