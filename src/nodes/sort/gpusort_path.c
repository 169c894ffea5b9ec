/*-------------------------------------------------------------------------
 *
 * gpusort_path.c
 *	  Making GpuSort paths and offering them (gpusort_path.h).
 *
 * A place makes a GsOffer and calls gs_offer(): so what all places ask is asked once, here, and in
 * the order of what the questions cost.
 *
 * Tests: regress/paths, regress/plans
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

#include "client/client.h"
#include "compat.h"
#include "guc.h"
#include "key/key.h"
#include "nodes/sort/gpusort.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/plan_walk.h"
#include "plan/sort_cost.h"

/*
 * How many first pathkeys are in keys as a whole, if the sort is by one member of each of these
 * classes; -1: gpusort cannot sort so.  pick: the number of the member.
 */
static int
count_in_keys(List *pathkeys, List **members, int pick)
{
	int			n = list_length(pathkeys);
	GsColumns	columns = {
		n, palloc(n * sizeof(AttrNumber)), palloc(n * sizeof(Oid)), palloc(n * sizeof(Oid)),
		palloc(n * sizeof(bool))
	};
	Oid		   *types = palloc(n * sizeof(Oid));
	int32	   *typmods = palloc(n * sizeof(int32));
	const GsKeyDesc *desc;
	GsRefusal	refusal;

	for (int i = 0; i < n; i++)
	{
		PathKey    *key = list_nth_node(PathKey, pathkeys, i);
		EquivalenceMember *member = list_nth(members[i], pick % list_length(members[i]));

		columns.attnos[i] = i + 1;
		columns.operators[i] = gs_compat_pathkey_operator(key, member->em_datatype);
		if (!OidIsValid(columns.operators[i]))
			return -1;
		columns.collations[i] = key->pk_eclass->ec_collation;
		columns.nulls_first[i] = key->pk_nulls_first;
		types[i] = exprType((Node *) member->em_expr);
		typmods[i] = gs_plan_row_typmod(NULL, (Node *) member->em_expr);
	}
	/* a refusal is noted when the plan turns out to have a Sort in it */
	desc = gs_key_desc_create(&columns, types, typmods, true, &refusal);
	return desc ? desc->sort_cols : -1;
}

/* The time of settling rows that are equal in the first n_columns columns. */
static double
time_of_settling(PlannerInfo *root, const List *pathkeys, int n_columns, double rows)
{
	List	   *exprs = NIL;

	/* nothing is known of a part of a column, and columns of set operations are of no table */
	if (n_columns == 0 || root->parse->setOperations)
		return gs_time_settling(rows, DEFAULT_NUM_DISTINCT);
	for (int i = 0; i < n_columns; i++)
	{
		const PathKey *key = list_nth_node(PathKey, pathkeys, i);

		exprs = lappend(exprs, linitial_node(EquivalenceMember, key->pk_eclass->ec_members)->em_expr);
	}
	return gs_time_settling(rows, estimate_num_groups(root, exprs, rows, NULL, NULL));
}

/* It is not known yet by which member of a class the plan will sort, so each must be possible. */
bool
gs_offer_complete(PlannerInfo *root, GsOffer *offer)
{
	List	   *pathkeys = offer->pathkeys;
	int			in_keys = list_length(pathkeys);
	List	  **members = palloc(list_length(pathkeys) * sizeof(List *));
	int			most = 1;
	int			i = 0;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		ListCell   *member;

		members[i] = NIL;
		foreach(member, lfirst_node(PathKey, lc)->pk_eclass->ec_members)
			if (!((EquivalenceMember *) lfirst(member))->em_is_child)
				members[i] = lappend(members[i], lfirst(member));
		if (members[i] == NIL)
			return false;
		most = Max(most, list_length(members[i]));
		i++;
	}
	for (int pick = 0; pick < most; pick++)
		in_keys = Min(in_keys, count_in_keys(pathkeys, members, pick));
	if (in_keys < 0)
		return false;
	if (in_keys < list_length(pathkeys))
	{
		/* inexact keys do not tell which rows are not needed */
		offer->rows_back = offer->rows;
		offer->settling = time_of_settling(root, pathkeys, in_keys, offer->rows);
	}
	return true;
}

bool
gs_sort_may_rerun(const Query *parse)
{
	return !parse->hasModifyingCTE && parse->rowMarks == NIL;
}

static void
fill_custom_path(CustomPath *path, RelOptInfo *rel, Path *child, PathTarget *target,
				 const CustomPathMethods *methods)
{
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->custom_paths = list_make1(child);
	path->methods = methods;
}

/* fed: when all rows of the child are.  feed: the part of it that is not in the child's cost. */
static Path *
make_sort_path(PlannerInfo *root, const GsOffer *offer, Path *child, GsTime fed, double feed)
{
	SortPath   *sort = create_sort_path(root, offer->rel, child, offer->pathkeys, -1.0);
	GsSortPath *path = (GsSortPath *) newNode(sizeof(GsSortPath), T_CustomPath);
	GsSortInput rows = gs_rows_of_path(root, child, offer->pathkeys);

	fill_custom_path(&path->custom, offer->rel, (Path *) sort, child->pathtarget, &gs_sort_path_methods);
	path->custom.path.pathkeys = offer->pathkeys;
	path->custom.flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	path->custom.path.rows = offer->rows_back;
	rows.rows = offer->rows;
	path->time = gs_time_device(fed, &rows, offer->rows_back, offer->settling);
	path->custom.path.startup_cost = child->total_cost + gs_cost_of(path->time.first - fed.last + feed);
	path->custom.path.total_cost = child->total_cost + gs_cost_of(path->time.last - fed.last + feed);
	gs_compat_inherit_disabled(&path->custom.path, child);
	return &path->custom.path;
}

/* Sets the time of feeding a path's rows beyond the path's own, and returns when they are fed. */
static GsTime
time_of_feed(PlannerInfo *root, const GsOffer *offer, const Path *path, double *feed)
{
	GsPathTimes context = {root};
	GsSortInput rows = gs_rows_of_path(root, path, offer->pathkeys);
	GsTime		time = gs_time_of_path(&context, path, -1);

	*feed = gs_time_feed(&rows);
	time.last += *feed;
	time.cpu += *feed;
	return time;
}

static Path *
make_serial_path(PlannerInfo *root, const GsOffer *offer)
{
	double		feed;
	GsTime		fed = time_of_feed(root, offer, offer->serial, &feed);

	return make_sort_path(root, offer, offer->serial, fed, feed);
}

/* Over a Gather over GpuSortFeed. */
static Path *
make_parallel_path(PlannerInfo *root, const GsOffer *offer)
{
	Path	   *partial = offer->partial;
	double		feeding;
	GsTime		fed = time_of_feed(root, offer, partial, &feeding);
	CustomPath *feed = makeNode(CustomPath);
	GatherPath *gather;
	double		none = 0;

	fill_custom_path(feed, offer->rel, partial, partial->pathtarget, &gs_feed_path_methods);
	feed->path.parallel_aware = true;
	feed->path.parallel_safe = true;
	feed->path.parallel_workers = partial->parallel_workers;
	feed->path.rows = partial->rows;
	feed->path.startup_cost = partial->startup_cost;
	gs_compat_inherit_disabled(&feed->path, partial);
	feed->path.total_cost = partial->total_cost + gs_cost_of(feeding);

	gather = create_gather_path(root, offer->rel, &feed->path, partial->pathtarget, NULL, &none);
	gather->path.startup_cost = feed->path.startup_cost + parallel_setup_cost;
	gather->path.total_cost = feed->path.total_cost + parallel_setup_cost;
	fed.cpu *= gs_processes(partial->parallel_workers);
	gs_time_add_workers(&fed, partial->parallel_workers);
	return make_sort_path(root, offer, &gather->path, fed, 0);
}

/*
 * A path that has a column for each pathkey.  Without one PostgreSQL would compute the
 * column in the Gather above the feed, too late to be fed; and only for the sort, so that nodes above
 * it compute it again.  NULL: it cannot be computed, or, if this is a partial path, not by
 * workers.
 */
static Path *
add_sort_columns(PlannerInfo *root, RelOptInfo *rel, Path *path, List *pathkeys, bool partial)
{
	PathTarget *target = NULL;
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		EquivalenceClass *class = lfirst_node(PathKey, lc)->pk_eclass;
		List	   *exprs = target ? target->exprs : path->pathtarget->exprs;
		EquivalenceMember *member = NULL;
		ListCell   *expr;

		foreach(expr, exprs)
			if (find_ec_member_matching_expr(class, lfirst(expr), NULL))
				break;
		if (expr != NULL)
			continue;
		if (!class->ec_has_volatile)
			member = find_computable_ec_member(root, class, exprs, NULL, partial);
		if (member == NULL)
			return NULL;
		if (target == NULL)
			target = copy_pathtarget(path->pathtarget);
		add_column_to_pathtarget(target, member->em_expr, 0);
	}
	if (target == NULL)
		return path;
	target = set_pathtarget_cost_width(root, target);
	/* PostgreSQL does not charge its own sorts for computing them either */
	target->cost = path->pathtarget->cost;
	return (Path *) create_projection_path(root, rel, path, target);
}

void
gs_offer_set_input(PlannerInfo *root, GsOffer *offer, RelOptInfo *input_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;

	offer->rows = offer->rows_back = cheapest->rows;
	offer->serial = add_sort_columns(root, input_rel, cheapest, offer->pathkeys, false);
	if (offer->serial == NULL)
		offer->serial = cheapest;
	if (input_rel->partial_pathlist != NIL)
		offer->partial = add_sort_columns(root, input_rel, linitial(input_rel->partial_pathlist),
										  offer->pathkeys, true);
}

List *
gs_offer_sorts(PlannerInfo *root, const GsOffer *offer)
{
	List	   *paths = NIL;

	if (offer->serial)
		paths = lappend(paths, make_serial_path(root, offer));
	if (offer->partial)
		paths = lappend(paths, make_parallel_path(root, offer));
	return paths;
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

List *
gs_agg_pathkeys(PlannerInfo *root, List *clauses, List *args)
{
	List	   *pathkeys = list_copy(root->group_pathkeys);
	List	   *exprs = get_sortgrouplist_exprs(gs_compat_group_clause(root), root->processed_tlist);
	ListCell   *lc;

	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, args);
		List	   *keys;

		if (IsA(expr, Const) || list_member(exprs, expr))
			continue;
		keys = make_pathkeys_for_sortclauses(root, list_make1(clause), args);
		if (keys == NIL || has_class(pathkeys, linitial(keys)))
			return NIL;
		pathkeys = list_concat(pathkeys, keys);
		exprs = lappend(exprs, expr);
	}
	return pathkeys;
}

Path *
gs_agg_path(PlannerInfo *root, const GsOffer *offer, Path *sorted)
{
	AggStrategy strategy = root->parse->groupClause != NIL ? AGG_SORTED : AGG_PLAIN;
	AggClauseCosts costs;
	AggPath    *path;

	memset(&costs, 0, sizeof(costs));
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	path = create_agg_path(root, offer->rel, sorted, offer->rel->reltarget, strategy, AGGSPLIT_SIMPLE,
						   gs_compat_group_clause(root), offer->having, &costs, offer->groups);
	/* columns that the aggregates want in order are not those of the result */
	if (list_length(path->path.pathkeys) > list_length(root->group_pathkeys))
		path->path.pathkeys = root->group_pathkeys;
	return &path->path;
}

void
gs_offer(PlannerInfo *root, GsOffer *offer)
{
	List	   *paths = NIL;
	ListCell   *lc;

	if (offer->pathkeys == NIL ||
		(!offer->in_order_too && offer->serial &&
		 pathkeys_contained_in(offer->pathkeys, offer->serial->pathkeys)) ||
		!gs_client_service_ready() || !gs_offer_complete(root, offer))
		return;
	foreach(lc, gs_offer_sorts(root, offer))
	{
		Path	   *path = lfirst(lc);

		if (offer->above)
			path = offer->above(root, offer, path);
		if (path)
			paths = lappend(paths, path);
	}
	if (paths == NIL)
		return;
	offer->add(root, offer, paths);
}
