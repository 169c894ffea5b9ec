/*-------------------------------------------------------------------------
 *
 * gpusort_order_path.c
 *	  Offering GpuSort for a query's ORDER BY.
 *
 * At UPPERREL_ORDERED GpuSort competes with PostgreSQL's Sort, Gather Merge and paths in the
 * right order; not where a Limit wants so few rows that a top-N heapsort is better, nor where an index
 * returns the rows for less.  A MergeAppend under a libc collation costs far more than PostgreSQL thinks.
 * Where it would win for that reason only, it is taken out.
 *
 * Tests: regress/plans, regress/explain, tap/plans_host
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "guc.h"
#include "key/key_types.h"
#include "nodes/sort/gpusort_path.h"
#include "plan/sort_cost.h"

/*
 * May the cheapest path be gone?  PostgreSQL adds an input path that is in the right order to ordered_rel
 * itself, and add_path() frees it if a Gather Merge is cheaper.  That cannot happen if the input is
 * no upper relation: there the Gather Merge has competed with the cheapest path before.
 */
static bool
may_be_freed(const RelOptInfo *input_rel, const RelOptInfo *ordered_rel)
{
	return IS_UPPER_REL(input_rel) && input_rel->partial_pathlist != NIL &&
		!list_member_ptr(ordered_rel->pathlist, input_rel->cheapest_total_path);
}

/* The cost of a part of a path's rows. */
static Cost
fraction_cost(const Path *path, double fraction)
{
	return path->startup_cost + fraction * (path->total_cost - path->startup_cost);
}

/*
 * PostgreSQL does not count what a merge by the comparison of a libc collation costs.
 * Equal texts are compared by their bytes.  In each stream all rows with one text come together, and most
 * streams are taken to have each text.
 */
static Cost
libc_merge_cost(PlannerInfo *root, const Path *path)
{
	double		rows = path->rows;
	const PathKey *first;
	const EquivalenceMember *member;
	GsKeyCollator *collator;
	const GsLibcCollation *libc;
	EstimationInfo estimate;
	double		texts;
	int			streams;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (!IsA(path, MergeAppendPath) || path->pathkeys == NIL)
		return 0;
	first = linitial_node(PathKey, path->pathkeys);
	if (!gs_key_collation_lookup(first->pk_eclass->ec_collation, &collator, &libc) || libc == NULL)
		return 0;
	streams = list_length(((const MergeAppendPath *) path)->subpaths);
	member = linitial_node(EquivalenceMember, first->pk_eclass->ec_members);
	/* a set operation's columns are of no table; of UNION ALL's and of parents' there may be no statistics */
	if (!root->parse->setOperations)
	{
		texts = estimate_num_groups(root, list_make1(member->em_expr), rows, NULL, &estimate);
		if ((estimate.flags & SELFLAG_USED_DEFAULT) == 0)
			rows = Min(rows, streams * texts);
	}
	return streams > 1 ? gs_cost_libc_merge(rows, streams) : 0;
}

/*
 * Remove merges that PostgreSQL takes to be cheaper than a GpuSort, or as cheap, only
 * since it does not count what their comparisons cost.
 */
static void
remove_merges(PlannerInfo *root, RelOptInfo *ordered_rel, const Path *sort)
{
	double		fraction = root->tuple_fraction >= 1.0 ?
		root->tuple_fraction / Max(sort->rows, 1.0) : root->tuple_fraction;
	ListCell   *lc;

	if (fraction <= 0 || fraction > 1.0)
		fraction = 1.0;
	foreach(lc, ordered_rel->pathlist)
	{
		const Path *path = lfirst(lc);
		Cost		merge = libc_merge_cost(root, path);

		if (merge > 0 && !gs_compat_more_disabled(sort, path) &&
			fraction_cost(sort, fraction) < fraction_cost(path, fraction) + fraction * merge)
			ordered_rel->pathlist = foreach_delete_current(ordered_rel->pathlist, lc);
	}
}

static void
add_ordered_paths(PlannerInfo *root, const GsOffer *offer, List *paths)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	ListCell   *lc;

	foreach(lc, paths)
		if (!gs_guc_force)
			remove_merges(root, offer->rel, lfirst(lc));
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		/* a set operation has no target of its own for this step */
		if (target && path->pathtarget != target)
			path = apply_projection_to_path(root, offer->rel, path, target);
		add_path(offer->rel, path);
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

/*
 * Is an index cheaper than a sort of input's rows?  It may return the rows in order, or nearly so: where
 * the index's columns tell most rows apart, PostgreSQL's incremental sort has little to do.
 * 200,000 rows took 20 ms of CPU time beyond the scan, 36 with a GpuSort, and by cost 8854 and 3410.
 */
static bool
index_is_faster(PlannerInfo *root, const Path *input, const RelOptInfo *ordered_rel)
{
	const Path *path = get_cheapest_path_for_pathkeys(ordered_rel->pathlist, NIL, NULL, TOTAL_COST,
													  false);
	List	   *exprs = NIL;

	if (path && IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	if (path && IsA(path, IndexPath))
		return gs_cost_by_index(path->total_cost) <
			input->total_cost + gs_cost_sort(input->rows, input->rows, input->pathtarget->width);
	if (path == NULL || !IsA(path, IncrementalSortPath) || root->parse->setOperations)
		return false;
	for (int i = 0; i < ((const IncrementalSortPath *) path)->nPresortedCols; i++)
	{
		const PathKey *key = list_nth_node(PathKey, path->pathkeys, i);

		exprs = lappend(exprs, linitial_node(EquivalenceMember, key->pk_eclass->ec_members)->em_expr);
	}
	return 2.0 * estimate_num_groups(root, exprs, path->rows, NULL, NULL) > path->rows;
}

/* Is a top-N heapsort of a path's rows, a part of all, better? */
static bool
heapsort_is_faster(PlannerInfo *root, const Path *path, double rows, double limit)
{
	return gs_cost_prefers_heapsort(path->rows, rows, path->pathtarget->width, limit,
									gs_order_of_path(root, path, root->sort_pathkeys));
}

void
gs_order_offer_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *cheapest = input_rel->cheapest_total_path;
	Path	   *partial = NULL;
	double		limit;
	GsOffer		offer;

	if (root->parse->sortClause == NIL || root->sort_pathkeys == NIL || cheapest == NULL ||
		may_be_freed(input_rel, ordered_rel) ||
		!gs_offer_may_pay(ordered_rel, cheapest, gs_guc_force) ||
		pathkeys_contained_in(root->sort_pathkeys, cheapest->pathkeys) ||
		(!gs_guc_force && (postgres_is_faster(cheapest) || index_is_faster(root, cheapest, ordered_rel))))
		return;
	offer = (GsOffer){.rel = ordered_rel, .pathkeys = root->sort_pathkeys, .rows = cheapest->rows,
					  .rows_back = cheapest->rows, .forced = gs_guc_force, .add = add_ordered_paths};
	limit = limit_rows(root);
	if (gs_guc_force || !heapsort_is_faster(root, cheapest, offer.rows, limit))
		offer.serial = cheapest;
	if (ordered_rel->consider_parallel && input_rel->partial_pathlist != NIL)
		partial = linitial(input_rel->partial_pathlist);
	if (partial && (gs_guc_force || !heapsort_is_faster(root, partial, offer.rows, limit)))
		offer.partial = partial;
	if (offer.serial || offer.partial)
		gs_offer(root, &offer);
}
