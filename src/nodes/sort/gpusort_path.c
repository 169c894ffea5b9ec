/*-------------------------------------------------------------------------
 *
 * gpusort_path.c
 *	  Making GpuSort paths, and offering them for a query's ORDER BY.
 *
 * Wherever sorted rows are of use up to two paths are made, and compete by cost
 * with those that PostgreSQL has:
 *
 *		GpuSort -> cheapest path
 *		GpuSort -> Gather -> GpuSortFeed (parallel aware) -> partial path
 *
 * In the second one the rows reach the device from all processes at once and
 * none goes through Gather, whose part is to launch and join the workers.
 *
 * Here they are offered at UPPERREL_ORDERED.  A MergeAppend under a libc collation costs
 * far more than PostgreSQL thinks.  Where it would win for that reason only, it is taken out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "guc.h"
#include "key/key_types.h"
#include "nodes/sort/gpusort.h"
#include "plan/query_volatile.h"
#include "plan/sort_cost.h"
#include "service/service_client.h"

/* Can gpusort sort by one member of each of these classes?  pick: the number of the member. */
static bool
members_are_supported(List *pathkeys, List **members, int pick)
{
	int			n = list_length(pathkeys);
	AttrNumber *attnos = palloc(n * sizeof(AttrNumber));
	Oid		   *operators = palloc(n * sizeof(Oid));
	Oid		   *collations = palloc(n * sizeof(Oid));
	bool	   *nulls_first = palloc(n * sizeof(bool));
	Oid		   *types = palloc(n * sizeof(Oid));
	GsRefusal	refusal;

	for (int i = 0; i < n; i++)
	{
		PathKey    *key = list_nth_node(PathKey, pathkeys, i);
		EquivalenceMember *member = list_nth(members[i], pick % list_length(members[i]));

		attnos[i] = i + 1;
		operators[i] = gs_compat_pathkey_operator(key, member->em_datatype);
		if (!OidIsValid(operators[i]))
			return false;
		collations[i] = key->pk_eclass->ec_collation;
		nulls_first[i] = key->pk_nulls_first;
		types[i] = exprType((Node *) member->em_expr);
	}
	/* a refusal is noted when the plan turns out to have a Sort in it */
	return gs_key_desc_create(n, attnos, operators, collations, nulls_first, types,
							  &refusal) != NULL;
}

/* Which member of a class a plan sorts by is not known yet, so all must do. */
bool
gs_sort_supports(List *pathkeys)
{
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
		if (!members_are_supported(pathkeys, members, pick))
			return false;
	return true;
}

bool
gs_sort_may_rerun(const Query *parse)
{
	return !parse->hasModifyingCTE && parse->rowMarks == NIL;
}

int
gs_sort_path_flags(const PlannerInfo *root)
{
	if (!gs_sort_may_rerun(root->parse) || gs_query_is_volatile(root->parse, GS_VOLATILE_BESIDE_SCANS))
		return 0;
	return GS_PLAN_FLAG_RERUN | GS_PLAN_FLAG_REPEATABLE;
}

static CustomPath *
make_custom_path(RelOptInfo *rel, Path *child, PathTarget *target, const CustomPathMethods *methods)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.param_info = NULL;
	path->custom_paths = list_make1(child);
	path->methods = methods;
	return path;
}

Path *
gs_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *child, List *pathkeys, double rows,
			 double rows_back, bool fed_below, int flags)
{
	CustomPath *path;
	SortPath   *sort = create_sort_path(root, rel, child, pathkeys, -1.0);
	double		rows_fed = fed_below ? 0 : rows;
	int			width = child->pathtarget->width;
	Cost		cost = gs_cost_sort(rows_fed, rows, width);

	path = make_custom_path(rel, (Path *) sort, child->pathtarget, &gs_sort_path_methods);
	path->path.parallel_aware = false;
	path->path.parallel_safe = false;
	path->path.parallel_workers = 0;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	path->custom_private = list_make1_int(flags);
	path->path.rows = rows_back;
	path->path.startup_cost = child->total_cost + gs_cost_sort_startup(rows_fed, rows, width);
	path->path.total_cost = child->total_cost + cost - (rows - rows_back) * gs_guc_fetch_row_cost;
	gs_compat_inherit_disabled(&path->path, child);
	return &path->path;
}

Path *
gs_sort_feed_path(PlannerInfo *root, RelOptInfo *rel, Path *partial)
{
	CustomPath *feed;
	GatherPath *gather;
	double		none = 0;

	feed = make_custom_path(rel, partial, partial->pathtarget, &gs_feed_path_methods);
	feed->path.parallel_aware = true;
	feed->path.parallel_safe = true;
	feed->path.parallel_workers = partial->parallel_workers;
	feed->path.rows = partial->rows;
	feed->path.startup_cost = partial->startup_cost;
	gs_compat_inherit_disabled(&feed->path, partial);
	feed->path.total_cost = partial->total_cost +
		gs_cost_feed(partial->rows, partial->pathtarget->width);

	gather = create_gather_path(root, rel, &feed->path, partial->pathtarget, NULL, &none);
	gather->path.startup_cost = feed->path.startup_cost + parallel_setup_cost;
	gather->path.total_cost = feed->path.total_cost + parallel_setup_cost;
	return &gather->path;
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

List *
gs_sort_input_paths(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel, List *pathkeys,
					double rows_back)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	Path	   *serial = add_sort_columns(root, input_rel, cheapest, pathkeys, false);
	Path	   *partial = NULL;
	int			flags = gs_sort_path_flags(root);
	List	   *paths;

	paths = list_make1(gs_sort_path(root, rel, serial ? serial : cheapest, pathkeys,
									cheapest->rows, rows_back, false, flags));
	if (input_rel->partial_pathlist != NIL)
		partial = add_sort_columns(root, input_rel, linitial(input_rel->partial_pathlist),
								   pathkeys, true);
	if (partial)
		paths = lappend(paths, gs_sort_path(root, rel, gs_sort_feed_path(root, rel, partial),
											pathkeys, cheapest->rows, rows_back, true, flags));
	return paths;
}

static void
add_ordered_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *path)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];

	/* a set operation has no target of its own for this step */
	if (target && path->pathtarget != target)
		path = apply_projection_to_path(root, ordered_rel, path, target);
	add_path(ordered_rel, path);
}

/*
 * May the cheapest path be gone?  One in the right order was itself added to
 * ordered_rel, and freed if a Gather Merge then turned out to be cheaper.  Below
 * grouping that one was among the cheapest path's rivals before.
 */
static bool
may_be_freed(const RelOptInfo *input_rel, const RelOptInfo *ordered_rel)
{
	return IS_UPPER_REL(input_rel) && input_rel->partial_pathlist != NIL &&
		!list_member_ptr(ordered_rel->pathlist, input_rel->cheapest_total_path);
}

/* What so much of a path's rows cost. */
static Cost
fraction_cost(const Path *path, double fraction)
{
	return path->startup_cost + fraction * (path->total_cost - path->startup_cost);
}

/*
 * How many streams a path merges by the comparison of a libc collation; 0: it does no
 * such thing.
 */
static int
libc_merge_streams(const Path *path)
{
	const PathKey *first;
	GsKeyCollator *collator;
	const GsLibcCollation *libc;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (!IsA(path, MergeAppendPath) || path->pathkeys == NIL)
		return 0;
	first = linitial_node(PathKey, path->pathkeys);
	if (!gs_key_collation_lookup(first->pk_eclass->ec_collation, &collator, &libc) || libc == NULL)
		return 0;
	return list_length(((const MergeAppendPath *) path)->subpaths);
}

/*
 * Remove merges that PostgreSQL takes to be cheaper than a GpuSort, or as cheap, only
 * since it does not count what their comparisons cost.
 */
static void
remove_merges(const PlannerInfo *root, RelOptInfo *ordered_rel, const Path *sort)
{
	double		fraction = root->tuple_fraction >= 1.0 ?
		root->tuple_fraction / Max(sort->rows, 1.0) : root->tuple_fraction;
	ListCell   *lc;

	if (fraction <= 0 || fraction > 1.0)
		fraction = 1.0;
	foreach(lc, ordered_rel->pathlist)
	{
		const Path *path = lfirst(lc);
		int			streams = libc_merge_streams(path);

		if (streams > 1 && !gs_compat_more_disabled(sort, path) &&
			fraction_cost(sort, fraction) <
			fraction_cost(path, fraction) + fraction * gs_cost_libc_merge(path->rows, streams))
			ordered_rel->pathlist = foreach_delete_current(ordered_rel->pathlist, lc);
	}
}

/* The value of LIMIT or OFFSET, as far as the planner knows it; -1: it does not, 0: there is none. */
static double
estimate_limit(PlannerInfo *root, Node *expr)
{
	Node	   *estimate = expr ? estimate_expression_value(root, expr) : NULL;

	if (estimate == NULL)
		return 0;
	if (!IsA(estimate, Const))
		return -1;
	return ((Const *) estimate)->constisnull ? 0 : (double) DatumGetInt64(((Const *) estimate)->constvalue);
}

/*
 * How many rows of the query's result will be asked for; -1: perhaps all.  root->limit_tuples
 * does not tell where the query has groups, DISTINCT, windows or set operations, since it is about
 * the rows below them.
 */
static double
limit_rows(PlannerInfo *root)
{
	const Query *parse = root->parse;
	double		count = estimate_limit(root, parse->limitCount);
	double		offset = estimate_limit(root, parse->limitOffset);

	if (parse->limitCount == NULL || parse->hasTargetSRFs)
		return root->limit_tuples;
	return count > 0 && offset >= 0 ? count + offset : -1;
}

/* Does PostgreSQL sort all rows of a path faster, whatever its planner says? */
static bool
postgres_is_faster(const Path *path)
{
	const PathTarget *target = path->pathtarget;
	Cost		cost = gs_compat_cost_sort(path->rows, target->width, work_mem);

	return target->exprs != NIL &&
		gs_cost_by_postgres(cost, list_length(target->exprs), exprType(linitial(target->exprs))) <
		gs_cost_sort(path->rows, path->rows, target->width);
}

void
gs_sort_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	Path	   *partial = NULL;
	Path	   *serial = NULL;
	Path	   *parallel = NULL;
	bool		serial_wins = true;
	bool		parallel_wins = true;
	double		rows;
	int			flags;

	if (root->parse->sortClause == NIL || root->sort_pathkeys == NIL || cheapest == NULL ||
		may_be_freed(input_rel, ordered_rel) || cheapest->param_info != NULL)
		return;
	rows = cheapest->rows;
	if (ordered_rel->consider_parallel && input_rel->partial_pathlist != NIL)
		partial = linitial(input_rel->partial_pathlist);
	if (gs_guc_force)
	{
		/* PostgreSQL sorts neither what is in order */
		serial_wins = !pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys);
		parallel_wins = partial && !pathkeys_contained_in(root->sort_pathkeys, partial->pathkeys);
		if (!serial_wins && !parallel_wins)
			return;
	}
	else
	{
		int			width = cheapest->pathtarget->width;
		double		limit;

		if (!enable_sort || rows < gs_guc_min_rows || postgres_is_faster(cheapest))
			return;
		limit = limit_rows(root);
		serial_wins = !gs_cost_prefers_heapsort(rows, rows, width, limit);
		parallel_wins = partial && !gs_cost_prefers_heapsort(partial->rows, rows, width, limit);
		if (!serial_wins && !parallel_wins)
			return;
		if (pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys))
			return;
	}
	if (!gs_client_service_ready() || !gs_sort_supports(root->sort_pathkeys))
		return;

	flags = gs_sort_path_flags(root);

	/* forced: leave the planner no other choice, unless none of its choices sorts */
	if (gs_guc_force && serial_wins)
		ordered_rel->pathlist = NIL;
	if (serial_wins)
		serial = gs_sort_path(root, ordered_rel, cheapest, root->sort_pathkeys, rows, rows, false,
							  flags);
	if (partial && parallel_wins)
		parallel = gs_sort_path(root, ordered_rel, gs_sort_feed_path(root, ordered_rel, partial),
								root->sort_pathkeys, rows, rows, true, flags);
	if (!gs_guc_force && serial)
		remove_merges(root, ordered_rel, serial);
	if (!gs_guc_force && parallel)
		remove_merges(root, ordered_rel, parallel);
	if (serial)
		add_ordered_path(root, ordered_rel, serial);
	if (parallel)
		add_ordered_path(root, ordered_rel, parallel);
}
